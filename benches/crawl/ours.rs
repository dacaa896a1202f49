//! The program itself over the shops, and a look at what it left: each product's item, each page in the archive.

use std::path::Path;
use std::process::{Command, Stdio};

use paced::internals::archive::{Filter, scan};

use super::in_flight;
use super::measure::{Cost, Measured, Shop, Yard, must_be};
use super::site_file::site_toml;

/// Crawls all the shops into a folder that goes again; what that took.
pub fn run(yard: &Yard) -> Cost {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_paced"));
    command.arg("crawl").args(site_files(yard, folder.path()));
    command.args(["--workers", &in_flight().to_string()]).arg("--data").arg(folder.path().join("data"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let Measured { status, cost } = Measured::run(&mut command);
    must_be("the exit code of `paced crawl`", &status.code(), &Some(0));
    look_over(yard, &folder.path().join("data"));
    cost
}

fn site_files(yard: &Yard, folder: &Path) -> Vec<String> {
    let write = |(shop, addr): (Shop, &std::net::SocketAddr)| {
        let path = folder.join(format!("{}.toml", shop.name));
        std::fs::write(&path, site_toml(&shop.name, &addr.to_string(), 0)).expect("room on the disk");
        path.to_string_lossy().into_owned()
    };
    yard.plan.shops().into_iter().zip(&yard.addrs).map(write).collect()
}

/// Nothing may be missing: each product's item once and right, each page and `robots.txt` in the archive.
fn look_over(yard: &Yard, data: &Path) {
    for shop in yard.plan.shops() {
        let file = data.join("items").join(format!("{}.jsonl", shop.name));
        let items = std::fs::read_to_string(file).expect("its items");
        must_be("items of a shop", &items.lines().count(), &(shop.products as usize));
        let [title, ..] = shop.truth(shop.products);
        must_be("whether the last product's title is there", &items.contains(&title), &true);
    }
    let requests = yard.plan.pages() + u64::from(yard.plan.shops);
    let kept = scan(&data.join("pages"), Filter::default()).expect("pages").flatten().count() as u64;
    must_be("requests in the archive", &kept, &requests);
}
