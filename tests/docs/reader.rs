//! A reader at a terminal: a folder with site files, the program, and the demo's shops in the places of the pages' ones.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use regex::Regex;

use crate::markdown::{Block, Page};
use crate::support::*;

/// The site that pages use as their example, and the one of README.
const SHOP: &str = "https://shop.example";
const BOOKS: &str = "https://books.toscrape.com";
/// The pace that the pages' file names, and the one that is quick enough for a test.
const POLITE: &str = "interval = \"2s\"";
const QUICK: &str = "interval = \"100ms\"";
const REDIS: &str = "redis://redis.internal/0";

/// The shops that stand for those of the pages.
pub struct Town {
    shops: Shops,
    redis: Option<RedisServer>,
}

impl Town {
    pub fn open() -> Self {
        let shops =
            serve([ShopPlan::new("shop", 45), ShopPlan::new("books", 6)]).expect("ports of 127.0.0.1");
        Self { shops, redis: redis_or_skip() }
    }

    fn shop(&self, name: &str) -> &Shop {
        self.shops.get(name).expect("a shop of the town")
    }

    /// What stands on a page, and what it is here.
    fn places(&self) -> Vec<(&'static str, String)> {
        let here = |name: &str| format!("http://{}", self.shop(name).addr());
        let redis = self.redis.iter().map(|redis| (REDIS, redis.url(0)));
        [(SHOP, here("shop")), (BOOKS, here("books"))].into_iter().chain(redis).collect()
    }

    /// The page's words with the places that there are here.
    pub fn here(&self, text: &str) -> String {
        self.places().iter().fold(text.to_owned(), |text, (there, here)| text.replace(there, here))
    }

    /// What was printed here, as the page would have it.
    pub fn there(&self, text: &str) -> String {
        let text =
            self.places().iter().fold(text.to_owned(), |text, (there, here)| text.replace(here, there));
        text.replace(&self.shop("shop").addr().to_string(), "shop.example")
    }

    /// Whether commands for a Redis can be run.
    pub fn has_redis(&self) -> bool {
        self.redis.is_some()
    }
}

/// The folder in which one page's commands are run, one after the other.
pub struct Desk<'a> {
    town: &'a Town,
    folder: TempData,
}

/// What a command printed, without its log.
pub struct Printed {
    pub code: Option<i32>,
    pub text: String,
    /// All of standard error, for who has to find out what went wrong.
    pub log: String,
}

impl<'a> Desk<'a> {
    /// With the site files that the pages speak of.
    pub fn new(town: &'a Town) -> Self {
        let folder = TempData::new();
        folder.write("sites/shop.toml", &(town.here(&first_file()) + "\n[fetch]\nallow_private = true\n"));
        folder.write("sites/books.toml", &town.shop("books").site_toml(Duration::from_millis(10)));
        Self { town, folder }
    }

    /// With the `paced.toml` that a page shows first, if it shows one.
    pub fn with_settings_of(self, page: &Page) -> Self {
        let first = |(info, block): &(&str, &Block)| {
            *info == "toml" && block.lines.first().is_some_and(|line| line == "# paced.toml")
        };
        if let Some((_, settings)) = page.fences().find(first) {
            self.folder.write("paced.toml", &(settings.text() + "\n"));
        }
        self
    }

    /// With both sites crawled to their end, and a page that isn't there.
    pub fn crawled(self) -> Self {
        let lost = "paced put shop https://shop.example/product/99";
        for lines in ["paced crawl sites/*.toml", lost, "paced crawl sites/shop.toml"] {
            let printed = self.run(lines);
            assert_eq!(printed.code, Some(0), "{lines}\n{}", printed.log);
        }
        self
    }

    /// Runs lines of shell. Where something is crawled, the site's pace is a quick one.
    pub fn run(&self, lines: &str) -> Printed {
        let asks = Regex::new(r"paced (crawl|work|try)").expect("a pattern").is_match(lines);
        self.set_pace(if asks { (POLITE, QUICK) } else { (QUICK, POLITE) });
        let here = self.town.here(lines);
        let script: Vec<&str> = here.lines().flat_map(|line| [line, CHECK]).collect();
        let output = self.shell(&script.join("\n"));
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.extend(log.lines().filter(|line| !is_log(line)).flat_map(|line| [line, "\n"]));
        Printed { code: output.status.code(), text: self.town.there(&text), log }
    }

    fn shell(&self, script: &str) -> Output {
        let program = paced();
        let folder = program.parent().expect("a program in a folder");
        let path = std::env::var("PATH").expect("a PATH to find commands by");
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script).current_dir(self.folder.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PACED_"))
        {
            shell.env_remove(name);
        }
        shell.env("PATH", format!("{}:{path}", folder.display())).env("HOME", self.folder.path());
        shell.output().expect("a shell")
    }

    fn set_pace(&self, (from, to): (&str, &str)) {
        for entry in fs::read_dir(self.folder.file("sites")).expect("site files").flatten() {
            let text = fs::read_to_string(entry.path()).expect("a site file");
            fs::write(entry.path(), text.replace(from, to)).expect("a site file");
        }
    }
}

/// After each line: 0 is fine, and 3 too, with which a crawl ends early as it was asked to.
const CHECK: &str = "code=$?; [ $code = 0 ] || [ $code = 3 ] || exit $code";

/// The file that the first page teaches to write.
fn first_file() -> String {
    let page = Page::of("docs/first-site.md");
    let (_, file) = page.fences().find(|(info, _)| *info == "toml").expect("a site file on the page");
    file.text() + "\n"
}

/// Log lines begin with their time.
fn is_log(line: &str) -> bool {
    Regex::new(r"^\d{4}-\d\d-\d\dT").expect("a pattern").is_match(line)
}
