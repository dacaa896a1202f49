//! The site file of a shop of the benches, as text.

/// Links and four fields, at an interval of so many ms.
pub fn site_toml(name: &str, addr: &str, interval: u64) -> String {
    format!(
        r#"name  = "{name}"
seeds = ["http://{addr}/"]

[fetch]
allow_private = true

[pace]
interval = "{interval}ms"
parallel = 64
contact  = "bench@example.com"

[[page]]
name   = "listing"
match  = ["/", "/page/*"]
follow = ["a.card-link", "a.next"]

[[page]]
name  = "product"
match = "/product/*"
item  = true
  [page.fields]
  title = "h1"
  price = {{ css = ".price", as = "price" }}
  stock = {{ css = ".stock", regex = '(\d+) available', as = "integer", default = 0 }}
  brand = ".brand"
"#
    )
}
