//! Site files: what a good one means, and what a bad one is told, all of it at once.

use std::time::Duration;

use paced::internals::secret::SecretName;
use paced::internals::settings::Settings;
use paced::internals::site::{
    FetchRules, FieldKind, FieldRule, Follow, ItemKey, MetaRobots, Pace, ProxyRule, RobotsPolicy, Scope,
    SignatureRule, Site, SiteError, load, outlook, parse, two_sites_one_host, unknown_lanes, warnings,
};
use proptest::prelude::*;
use serde_json::json;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/site_files");

const MINIMAL: &str = r#"
seeds = ["https://www.shop.example/"]
[[page]]
name = "all"
match = "/**"
follow = "*"
"#;

fn fixture(name: &str) -> String {
    let path = format!("{FIXTURES}/{name}");
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn site(text: &str, file: &str) -> Site {
    parse(text, file).unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(text: &str) -> Vec<String> {
    match parse(text, "shop.toml") {
        Ok(_) => Vec::new(),
        Err(errors) => texts(&errors.errors),
    }
}

fn texts(errors: &[SiteError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn everything_that_is_wrong_is_said_at_once_with_its_place_and_what_to_do() {
    let told =
        parse(&fixture("everything_wrong.toml"), "everything_wrong.toml").expect_err("it is all wrong");
    let told: Vec<String> = told.to_string().lines().map(str::to_owned).collect();
    let expected: Vec<String> = fixture("everything_wrong.txt").lines().map(str::to_owned).collect();
    for (told, expected) in told.iter().zip(&expected) {
        assert_eq!(told, expected);
    }
    assert_eq!(told.len(), expected.len(), "{}", told.join("\n"));
}

#[test]
fn what_is_missing_or_contradicts_itself_is_said() {
    for (text, expected) in [
        (
            "",
            &[
                "shop.toml:1:1: there are no seeds; \
                 write where the crawl starts, as in seeds = [\"https://shop.example/\"]",
                "shop.toml:1:1: there are no page rules; \
                 write a [[page]] for each kind of page, with `name`, `match` and `follow` or `item`",
            ][..],
        ),
        (
            "seeds = []\npage = []\n[scope]\nhosts = []\n[fetch]\naccept_types = []\nheaders = 5\n",
            &[
                "shop.toml:1:9: there are no seeds; \
                 write where the crawl starts, as in seeds = [\"https://shop.example/\"]",
                "shop.toml:2:8: there are no page rules; \
                 write a [[page]] for each kind of page, with `name`, `match` and `follow` or `item`",
                "shop.toml:4:9: `hosts` is empty, so nothing is in scope; name a host or remove the line",
                "shop.toml:6:16: `accept_types` is empty, so no page would be kept; name a type or remove the line",
                "shop.toml:7:11: `headers` is an integer, not a table; write it as in headers = { Accept-Language = \"ja\" }",
            ],
        ),
        (
            "seeds = [\"https://a.example/x?q=1\", \"https://b.example/\"]\npace = 1\n\
             [scope]\nhosts = [\"a.example\"]\ndeny = \"/x\"\n\
             [[page]]\nname = \"l\"\nmatch = \"/\"\nfollow = \"a[\"\n",
            &[
                "shop.toml:1:10: no page rule takes the seed `https://a.example/x?q=1`; \
                 add \"/x?q=1\" to the `match` of a [[page]]",
                "shop.toml:1:37: the seed `https://b.example/` is out of scope: its host is not among `hosts`; \
                 add \"b.example\" to `hosts` in [scope]",
                "shop.toml:2:8: `pace` is an integer, not a section; write [pace] on its own line",
                "shop.toml:5:8: `deny` is a text, not a list; write it in brackets, as in [\"a\", \"b\"]",
                "shop.toml:9:10: `a[` is no CSS selector (it ends too early); \
                 write what a browser's querySelector takes, as in \"article h3 a\"",
            ],
        ),
        (
            "seeds = [\"http://127.0.0.1:8000/\", \"https://shop.localhost/\", \"http://[::1]/\"]\n\
             [scope]\ndeny = [\"/\"]\n[page]\nname = \"all\"\n",
            &[
                "shop.toml:1:10: the seed `http://127.0.0.1:8000/` is denied by `/`; change the seed, or `deny` in [scope]",
                "shop.toml:1:10: the seed `http://127.0.0.1:8000/` is on a private address; \
                 if it is meant, write allow_private = true in [fetch]",
                "shop.toml:1:36: the seed `https://shop.localhost/` is denied by `/`; change the seed, or `deny` in [scope]",
                "shop.toml:1:36: the seed `https://shop.localhost/` is on a private address; \
                 if it is meant, write allow_private = true in [fetch]",
                "shop.toml:1:63: the seed `http://[::1]/` is denied by `/`; change the seed, or `deny` in [scope]",
                "shop.toml:1:63: the seed `http://[::1]/` is on a private address; \
                 if it is meant, write allow_private = true in [fetch]",
                "shop.toml:4:1: `page` is a table, not a list of sections; write [[page]], in two brackets",
            ],
        ),
    ] {
        assert_eq!(errors(text), expected, "{text}");
    }
}

#[test]
fn slips_in_the_toml_do_not_hide_what_else_is_wrong() {
    let text = "seeds = [\"https://shop.example/\"]\n\
                [pace]\n\
                interval = 2s\n\
                robots = obay\n\
                parallel = 1\n\
                parallel = 2\n\
                contact = \"me@shop.example\n\
                [fetch]\n\
                cookies = True\n\
                [[page]]\n\
                name = \"all\"\n\
                match = \"re:/\\d\"\n\
                item = true\n\
                key = \"isbn\"\n";
    let quotes = "a text without quotes; put it in quotes, as in name = \"books\"";
    assert_eq!(
        errors(text),
        [
            "shop.toml:1:10: no page rule takes the seed `https://shop.example/`; add \"/\" to the `match` of a [[page]]",
            &format!("shop.toml:3:12: {quotes}"),
            &format!("shop.toml:4:10: {quotes}"),
            "shop.toml:4:10: `robots` can't be `obay`; did you mean `obey`?",
            "shop.toml:6:1: the key is there twice; keep one of the two",
            "shop.toml:7:27: a text that doesn't end on its line; close it with the quote it began with",
            "shop.toml:9:11: a misspelt true or false; write true or false, in small letters",
            "shop.toml:12:15: a backslash before a character that needs none; \
             write the text in 'single quotes', where a backslash stands for itself",
            "shop.toml:14:7: `key` names the field `isbn`, which this page rule doesn't have; \
             write \"url\", \"canonical\" or a name of [page.fields]",
        ]
    );
}

#[test]
fn what_is_no_toml_at_all_is_said_alone() {
    assert_eq!(
        errors("name: shop\nseeds = 5\n[pace\n"),
        [
            "shop.toml:1:5: not TOML: invalid unquoted key, expected letters, numbers, `-`, `_`; \
             mend the line; the form is key = value below a [section] (https://toml.io)",
            "shop.toml:3:6: not TOML: unclosed table, expected `]`; \
             mend the line; the form is key = value below a [section] (https://toml.io)",
        ]
    );
}

#[test]
fn a_file_that_cannot_be_read_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let latin = folder.path().join("latin.toml");
    std::fs::write(&latin, b"name = \"caf\xe9\"").expect("a file");
    for (path, why) in [
        (folder.path().join("none.toml"), "there is no such file"),
        (folder.path().to_owned(), "it is a folder"),
        (latin, "it is not UTF-8 text"),
    ] {
        let told = load(&path).expect_err("it can't be read").to_string();
        let file = path.display();
        assert_eq!(
            told,
            format!("{file}:1:1: can't read the file: {why}; name a TOML file that can be read")
        );
    }
}

#[test]
fn every_key_of_a_full_file_takes_effect() {
    let text = fixture("every_key.toml");
    let site = load(format!("{FIXTURES}/every_key.toml").as_ref()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(site.name, "books");
    assert_eq!(
        site.seeds.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["https://books.toscrape.com/"]
    );
    assert_eq!(site.group.as_deref(), Some("shopify"));
    assert_eq!((site.lane.as_deref(), site.tenant.as_deref()), (Some("slow"), Some("acme")));
    assert_eq!(site.text, text);
    assert_eq!(
        site.pace,
        Pace {
            min_interval: Some(Duration::from_millis(100)),
            max_parallel: Some(6),
            interval: Duration::from_millis(200),
            parallel: 3,
            robots: RobotsPolicy::Ignore,
            meta_robots: MetaRobots::Ignore,
            contact: Some("crawler@example.com".to_owned()),
            max_crawl_delay: Duration::from_secs(45),
            max_retry_after: Duration::from_mins(90),
        }
    );
    assert_eq!(
        site.fetch,
        FetchRules {
            timeout: Duration::from_secs(20),
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(7),
            max_body: 512 * 1024,
            parse_budget: Duration::from_secs(3),
            accept_types: vec!["text/html".to_owned(), "application/xhtml+xml".to_owned()],
            attempts: 4,
            headers: vec![
                ("X-Shop".to_owned(), "1".to_owned()),
                ("Accept-Language".to_owned(), "ja".to_owned())
            ],
            cookies: true,
            auth_env: SecretName::of("PACED_SECRET_BOOKS", &["books"]),
            secret_headers: vec![(
                "X-Api-Key".to_owned(),
                SecretName::of("PACED_SECRET_SHOPIFY_KEY", &["shopify"]).expect("a name")
            )],
            signature: Some(SignatureRule::Key {
                name: "crawler".to_owned(),
                agent: "https://bots.example".to_owned(),
            }),
            proxy: Some(ProxyRule::Open("http://proxy.example:3128".parse().expect("a URL"))),
            allow_private: true,
        }
    );
    full_scope(&site.scope);
    full_pages(&site);
}

fn full_scope(scope: &Scope) {
    assert_eq!(hosts(scope), ["books.toscrape.com", "books.example:8080"]);
    assert_eq!(
        scope.deny.iter().map(paced::internals::site::UrlPattern::as_str).collect::<Vec<_>>(),
        ["/cart", "re:[?&]sort="]
    );
    assert_eq!((scope.max_depth, scope.max_pages), (30, Some(2_000_000)));
    for (url, covered) in [
        ("https://books.toscrape.com/x", true),
        ("http://books.toscrape.com/x", true),
        ("http://books.example:8080/x", true),
        ("http://books.example/x", false),
        ("https://books.toscrape.com/cart/1", false),
        ("https://books.toscrape.com/x?a=1&sort=up", false),
    ] {
        assert_eq!(scope.covers(&url.parse().expect("a URL")), covered, "{url}");
    }
}

fn full_pages(site: &Site) {
    let [listing, product, other] = &site.pages[..] else { panic!("{:?}", site.pages) };
    assert_eq!((listing.name.as_str(), listing.matches.len(), listing.max_pages), ("listing", 3, Some(5000)));
    assert!(matches!(&listing.follow, Follow::Selected(selectors) if selectors.len() == 2));
    assert_eq!((listing.item, listing.product, listing.recrawl), (false, false, None));
    assert_eq!((product.name.as_str(), product.item, product.product), ("product", true, true));
    assert!(matches!(product.follow, Follow::Everything));
    assert_eq!(product.key, ItemKey::Field("upc".to_owned()));
    assert_eq!(product.recrawl, Some(Duration::from_hours(6)));
    assert_eq!(
        product.fields.iter().map(described).collect::<Vec<_>>(),
        [
            "title Text",
            "price Price",
            "stock Integer regex=(\\d+) available default=0",
            "upc Text required",
            "image Url attr=src",
            "tags Text default=[\"none\",1.5,false,{\"a\":1}] all",
            "sold Bool",
        ]
    );
    assert_eq!(
        other.fields.iter().map(described).collect::<Vec<_>>(),
        ["html Html", "n Number", "d Date", "t Text"]
    );
    assert_eq!(other.key, ItemKey::Canonical);
    assert!(matches!(other.follow, Follow::Nothing));
    let url = "https://books.toscrape.com/catalogue/soumission_998/index.html".parse().expect("a URL");
    assert_eq!(site.rule_for(&url).map(|rule| rule.name.as_str()), Some("product"));
}

fn described(field: &FieldRule) -> String {
    let mut text = format!("{} {:?}", field.name, field.kind);
    text.extend(field.attr.iter().map(|attr| format!(" attr={attr}")));
    text.extend(field.regex.iter().map(|regex| format!(" regex={regex}")));
    text.extend(field.default.iter().map(|default| format!(" default={default}")));
    text.extend(field.required.then_some(" required"));
    text.extend(field.all.then_some(" all"));
    text
}

fn hosts(scope: &Scope) -> Vec<&str> {
    scope.hosts.iter().map(paced::internals::canonical_url::Host::as_str).collect()
}

#[test]
fn a_minimal_file_gets_every_default() {
    let site = site(MINIMAL, "sites/shop.toml");
    assert_eq!(site.name, "shop");
    assert_eq!([&site.group, &site.lane, &site.tenant], [&None; 3]);
    assert_eq!(site.pace, Pace::default());
    assert_eq!(site.fetch, FetchRules::default());
    assert_eq!(hosts(&site.scope), ["www.shop.example", "shop.example"]);
    assert_eq!((site.scope.max_depth, site.scope.max_pages), (Scope::MAX_DEPTH, None));
    let url = "https://shop.example/?utm_source=x&gclid=1&fbclid=2&id=3".parse().expect("a URL");
    assert_eq!(site.canonical(url).expect("a URL").as_str(), "https://shop.example/?id=3");
}

#[test]
fn the_hosts_of_the_seeds_are_in_scope_with_and_without_www() {
    for (seed, expected) in [
        ("https://shop.example/", &["shop.example", "www.shop.example"][..]),
        ("http://www.shop.example:8080/", &["www.shop.example:8080", "shop.example:8080"]),
        ("http://127.0.0.1:9/", &["127.0.0.1:9"]),
        ("http://localhost:9/", &["localhost:9"]),
    ] {
        let text = MINIMAL.replace("https://www.shop.example/", seed) + "[fetch]\nallow_private = true\n";
        assert_eq!(hosts(&site(&text, "shop.toml").scope), expected, "{seed}");
    }
}

#[test]
fn an_interval_of_zero_is_for_private_addresses() {
    let zero = format!("{MINIMAL}[pace]\ninterval = \"0s\"\n");
    assert_eq!(
        errors(&zero),
        ["shop.toml:8:12: `interval` can't be zero on a site that isn't yours; \
          write \"1s\"; zero is for your own machines, with allow_private = true in [fetch]"]
    );
    let allowed = site(&format!("{zero}[fetch]\nallow_private = true\n"), "shop.toml");
    assert_eq!(allowed.pace.interval, Duration::ZERO);
}

#[test]
fn the_key_of_a_product_may_be_a_field_of_its_structured_data() {
    let product = "item = true\nkey = \"sku\"\n";
    assert_eq!(errors(&format!("{MINIMAL}{product}")).len(), 1);
    let site = site(&format!("{MINIMAL}{product}product = true\n"), "shop.toml");
    assert_eq!(site.pages[0].key, ItemKey::Field("sku".to_owned()));
}

#[test]
fn a_default_is_the_json_that_the_item_holds() {
    let text = format!(
        "{MINIMAL}item = true\n[page.fields]\nn = {{ css = \"p\", as = \"number\", default = 1.5 }}\n"
    );
    let field = &site(&text, "shop.toml").pages[0].fields[0];
    assert_eq!((field.kind, &field.default), (FieldKind::Number, &Some(json!(1.5))));
}

#[test]
fn what_is_allowed_but_unwise_is_a_warning() {
    let told = |text: &str| texts(&warnings(&site(text, "shop.toml"), "shop.toml"));
    assert_eq!(
        told(MINIMAL),
        ["shop.toml:1:1: no `contact`: the site's owner can't ask you to slow down; \
          write contact = \"you@example.com\" in [pace]"]
    );
    let text = format!(
        "{MINIMAL}item = true\n[pace]\nrobots = \"ignore\"\nmeta_robots = \"ignore\"\ncontact = \"me@shop.example\"\n"
    );
    assert_eq!(
        told(&text),
        [
            "shop.toml:9:10: robots.txt is ignored, so pages the owner closed to crawlers are asked for; \
             write robots = \"obey\" unless the owner agreed",
            "shop.toml:10:15: what pages say to robots (nofollow, noindex, noarchive) is ignored; \
             write meta_robots = \"obey\" unless the owner agreed",
            "shop.toml:3:1: the items of the page rule `all` have no fields; \
             write [page.fields], or product = true for structured data",
        ]
    );
    for (scheme, warned) in
        [("http", 1), ("https", 1), ("socks4a", 1), ("socks5h", 1), ("socks4", 0), ("socks5", 0)]
    {
        let text = format!("{MINIMAL}[fetch]\nproxy = \"{scheme}://10.0.0.1:1\"\n");
        let all = told(&text);
        let of_proxy: Vec<&String> =
            all.iter().filter(|warning| warning.contains("proxy resolves")).collect();
        assert_eq!(of_proxy.len(), warned, "{scheme}: {all:?}");
        assert!(of_proxy.iter().all(|warning| warning.ends_with("or write socks5://")), "{all:?}");
    }
    let below = format!("{MINIMAL}item = true\n[page.fields]\ntitle = \"h1\"\nfollow = \"a\"\n");
    let last = told(&below).pop().expect("a warning");
    assert_eq!(
        last,
        "shop.toml:3:1: `follow` below [page.fields] is a field of the page rule `all`; \
         if the key of [[page]] was meant, write it above [page.fields]"
    );
}

#[test]
fn a_host_belongs_to_one_site_unless_a_group_shares_its_pace() {
    let file = |name: &str, more: &str| (name.to_owned(), site(&format!("{more}{MINIMAL}"), name));
    let other_host = |name: &str| {
        let text = MINIMAL.replace("www.shop.example", "else.example");
        (name.to_owned(), site(&text, name))
    };
    let told = |sites: &[(String, Site)]| texts(&two_sites_one_host(sites));
    assert_eq!(told(&[file("a.toml", ""), other_host("b.toml")]), Vec::<String>::new());
    assert_eq!(
        told(&[file("a.toml", ""), file("b.toml", "")]),
        [
            "b.toml:2:9: the host `www.shop.example` also belongs to a.toml, so it would be asked at two paces; \
          put both into one file, or give both the same `group`"
        ]
    );
    let group = "group = \"g\"\n";
    assert_eq!(told(&[file("a.toml", group), file("b.toml", group)]), Vec::<String>::new());
    assert_eq!(told(&[file("a.toml", group), file("b.toml", "")]).len(), 1);
    let named =
        ("c.toml".to_owned(), site(&format!("name = \"A\"\n{}", MINIMAL.replace("shop", "c")), "c.toml"));
    assert_eq!(
        told(&[file("a.toml", ""), named]),
        ["c.toml:1:8: the name `A` is also that of a.toml; give each site its own name"]
    );
    let scoped =
        ("d.toml".to_owned(), site(&format!("{MINIMAL}[scope]\nhosts = [\"www.shop.example\"]\n"), "d.toml"));
    assert_eq!(told(&[file("a.toml", ""), scoped])[0].split(": ").next(), Some("d.toml:8:9"));
}

#[test]
fn f15_a_site_waits_in_a_lane_that_is_there() {
    let file = |lane: &str| ("a.toml".to_owned(), site(&format!("lane = \"{lane}\"\n{MINIMAL}"), "a.toml"));
    let fleet = Settings::parse("[lanes]\nslow = 3\n", "paced.toml").expect("good settings").fleet;
    let told = |lane: &str| texts(&unknown_lanes(&[file(lane)], &fleet.clone().expect("lanes")));
    assert_eq!([told("slow"), told("general")].concat(), [""; 0]);
    assert_eq!(file("general").1.lane, None);
    assert_eq!(
        told("slo"),
        ["a.toml:1:8: there is no lane `slo`; \
          write it into [lanes] of paced.toml, or name one that is there: general, slow"]
    );
    for (line, told) in [
        ("lane = \"a b\"", "`a b` can't be a lane; use up to 100 of a-z, A-Z, 0-9"),
        ("tenant = \"a:b\"", "`a:b` can't be a tenant; use up to 100 of a-z, A-Z, 0-9"),
    ] {
        let errors = errors(&format!("{line}\n{MINIMAL}"));
        assert!(errors.len() == 1 && errors[0].contains(told), "{errors:?}");
    }
}

#[test]
fn no_secret_stands_in_a_file_and_none_of_another_site_is_named() {
    for (line, told) in [
        ("auth_env = \"planted\"", "write \"PACED_SECRET_SHOP\", or that with `_` and more"),
        ("auth_env = \"AWS_SECRET_ACCESS_KEY\"", "`auth_env` names no variable of this site's"),
        ("auth_env = \"PACED_SECRET_SHOP2\"", "`auth_env` names no variable of this site's"),
        (
            "headers = { Authorization = \"planted\" }",
            "secret_headers = { Authorization = \"PACED_SECRET_SHOP_KEY\" }",
        ),
        ("headers = { Cookie = \"planted\" }", "the header `Cookie` holds a secret"),
        ("headers = { X-API-Key = \"planted\" }", "the header `X-API-Key` holds a secret"),
        ("headers = { X_Api_Key = \"planted\" }", "the header `X_Api_Key` holds a secret"),
        ("headers = { X-Session-Id = \"planted\" }", "the header `X-Session-Id` holds a secret"),
        ("headers = { X-Auth-Token = \"planted\" }", "the header `X-Auth-Token` holds a secret"),
        ("secret_headers = { X-Api-Key = \"planted\" }", "`X-Api-Key` names no variable of this site's"),
        (
            "secret_headers = { Host = \"PACED_SECRET_SHOP\" }",
            "the header `Host` is set by the crawler itself",
        ),
        ("proxy = \"http://me:planted@proxy.example:3128\"", "proxy = { env = \"PACED_SECRET_SHOP_PROXY\" }"),
        ("proxy = { env = \"planted\" }", "`env` names no variable of this site's"),
        ("signature = \"planted\"", "write signature = { env = \"PACED_SECRET_SHOP_SIG\" }, or { key ="),
        ("signature = { env = \"planted\" }", "`env` names no variable of this site's"),
        ("signature = { key = \"../k\", agent = \"https://b.example\" }", "`key` is no key's name"),
        ("signature = { key = \"k\", agent = \"http://b.example\" }", "is no site that publishes keys"),
        ("signature = { key = \"k\", agent = \"https://me:planted@b\" }", "is no site that publishes keys"),
        ("signature = { key = \"-- planted\", agent = \"https://b.example\" }", "`key` is no key's name"),
        ("proxy = \"http://${planted}:3128\"", "`proxy` is no URL of a proxy"),
        ("signature = { key = \"k\", agent = \"https://b.example/x\" }", "is no site that publishes keys"),
        ("signature = { key = \"k\", url = \"https://b.example\" }", "`signature` has other keys"),
        ("signature = { key = \"k\" }", "`signature` has other keys"),
        ("signature = {}", "`signature` has other keys"),
        ("proxy = { url = \"http://proxy.example\" }", "`proxy` has other keys than `env`"),
    ] {
        let text = format!(
            "seeds = [\"https://shop.example/\"]\n[fetch]\n{line}\n[[page]]\nname = \"p\"\nmatch = \"/**\"\n"
        );
        let errors = parse(&text, "shop.toml").expect_err(line).to_string();
        assert!(errors.contains(told) && !errors.contains("planted"), "{line}: {errors}");
    }
    for seed in ["https://me:planted@shop.example/", "https://me:planted@shop.example:99999/"] {
        let text = format!("seeds = [\"{seed}\"]\n[[page]]\nname = \"p\"\nmatch = \"/**\"\n");
        let errors = parse(&text, "shop.toml").expect_err("a password").to_string();
        assert!(
            errors.contains("a seed holds a user or a password") && !errors.contains("planted"),
            "{errors}"
        );
    }
    for line in ["auth_env = \"PACED_SECRET_SHOP\"", "proxy = { env = \"PACED_SECRET_SHOP_PROXY\" }"] {
        let text = format!(
            "seeds = [\"https://shop.example/\"]\n[fetch]\n{line}\n[[page]]\nname = \"p\"\nmatch = \"/**\"\n"
        );
        assert!(parse(&text, "shop.toml").is_ok(), "{line}");
    }
}

proptest! {
    /// Whatever a slip of the hand makes of a file, it is a site or errors that stand within it.
    #[test]
    fn no_slip_of_the_hand_panics(at in 0..4000_usize, cut in 0..12_usize, typed in "[\\[\\]{}=\"'.,#a-z0-9本 \n\\\\-]{0,6}") {
        let mut text = fixture("every_key.toml");
        let start = text.floor_char_boundary(at.min(text.len()));
        let end = text.floor_char_boundary((start + cut).min(text.len()));
        text.replace_range(start..end, &typed);
        if let Err(errors) = parse(&text, "shop.toml") {
            prop_assert!(!errors.errors.is_empty());
            for error in errors.errors {
                prop_assert!((1..=text.lines().count() + 1).contains(&error.line), "{error}");
            }
        }
    }
}

#[test]
fn what_a_file_asks_for_and_its_pace_cannot_give_is_told() {
    let head = "seeds = [\"https://www.shop.example/\"]\n";
    let of = |name: &str, text: &str| (name.to_owned(), site(&format!("{head}{text}"), name));
    let rule = "[[page]]\nname = \"all\"\nmatch = \"/**\"\n";
    let told = |sites: &[(String, Site)], groups: &[(&str, u64)], measured: &[(&str, u64)]| {
        let named = |pairs: &[(&str, u64)]| {
            pairs.iter().map(|(name, ms)| ((*name).to_owned(), Duration::from_millis(*ms))).collect()
        };
        texts(&outlook(sites, &named(groups), &named(measured)))
    };
    let none: [String; 0] = [];
    assert_eq!(told(&[of("a.toml", rule)], &[], &[]), none);
    let few = format!("[pace]\ninterval = \"2s\"\n[scope]\nmax_pages = 40000\n{rule}");
    assert_eq!(told(&[of("a.toml", &few)], &[], &[]), none);
    let many = few.replace("40000", "412000");
    let todo =
        "nothing, if that is soon enough; else fewer pages, or a shorter `interval` if the owner agrees";
    assert_eq!(
        told(&[of("a.toml", &many)], &[], &[]),
        [format!("a.toml:5:13: 412,000 pages at 2 s = 9.5 days; {todo}")]
    );
    let fresh = format!("{rule}recrawl = \"6h\"\nmax_pages = 480000\n[scope]\nmax_pages = 500000\n");
    let todo_old = "write a longer `recrawl`, or a shorter `interval` if the owner agrees";
    assert_eq!(
        told(&[of("a.toml", &fresh)], &[], &[])[1..],
        [format!("a.toml:2:1: 480,000 pages every 6 h need 22/s, allowed 1/s; {todo_old}")]
    );
    let narrow = format!("[pace]\nparallel = 2\n{rule}");
    assert_eq!(told(&[of("a.toml", &narrow)], &[], &[]), none);
    assert_eq!(
        told(&[of("a.toml", &narrow)], &[], &[("a", 9_000)]),
        ["a.toml:3:12: answers take 9 s, parallel = 2 makes 0.22/s of the 1/s that `interval` allows; \
          write parallel = 11 in [pace]"]
    );
    let fast = narrow.replace("parallel = 2", "parallel = 2\ninterval = \"100ms\"");
    assert_eq!(
        told(&[of("a.toml", &fast)], &[], &[]),
        ["a.toml:3:12: if answers take 1 s, parallel = 2 makes 2/s of the 10/s that `interval` allows; \
          write parallel = 12 in [pace]"]
    );
    let grouped = format!("group = \"g\"\n[scope]\nmax_pages = 30000\n{rule}");
    let sites = [of("a.toml", &grouped), of("b.toml", &grouped)];
    assert_eq!(told(&sites, &[], &[]), none, "60,000 s are less than a day");
    assert_eq!(
        told(&sites, &[("g", 2_000)], &[]),
        [format!("a.toml:4:13: the sites of group `g` together: 60,000 pages at 2 s = 1.4 days; {todo}")]
    );
    let many = many.replacen("[pace]", "group = \"g\"\n[pace]", 1);
    assert_eq!(
        told(&[of("a.toml", &many)], &[("g", 100)], &[]),
        [format!("a.toml:6:13: 412,000 pages at 2 s = 9.5 days; {todo}")],
        "the group's interval is shorter than the site's own"
    );
    let one_at_a_time =
        format!("[pace]\ninterval = \"100ms\"\nparallel = 1\n[scope]\nmax_pages = 412000\n{rule}");
    assert_eq!(
        told(&[of("a.toml", &one_at_a_time)], &[], &[])[..1],
        [format!("a.toml:6:13: 412,000 pages at 1/s (if answers take 1 s, parallel = 1) = 4.8 days; {todo}")]
    );
}

#[test]
fn the_manuals_page_of_keys_is_what_the_table_of_keys_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/site-keys.md");
    let made = paced::internals::site::keys_page();
    if std::env::var_os("PACED_WRITE_DOCS").is_some() {
        std::fs::write(path, &made).expect("docs/ can be written");
    }
    let lies = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        made == lies,
        "docs/site-keys.md is old: PACED_WRITE_DOCS=1 cargo test --test site_files manuals"
    );
}
