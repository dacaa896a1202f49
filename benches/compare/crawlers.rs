//! The two crawlers as commands over the same shops, and where each leaves its items.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::measure::Yard;

/// The version that was compared.
pub const SCRAPY: &str = "2.19.0";

/// A crawler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crawler {
    Scrapy,
    Paced,
}

impl Crawler {
    pub const BOTH: [Self; 2] = [Self::Scrapy, Self::Paced];

    pub fn name(self) -> String {
        match self {
            Self::Scrapy => format!("Scrapy {SCRAPY}"),
            Self::Paced => format!("paced {}", env!("CARGO_PKG_VERSION")),
        }
    }

    /// The command that crawls all the shops with what it keeps in `folder`; the same command again goes on.
    pub fn command(self, yard: &Yard, folder: &Path, goes_on: bool) -> Command {
        let mut command = match self {
            Self::Scrapy => scrapy(yard, folder, goes_on),
            Self::Paced => paced(yard, folder),
        };
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// The different products of which an item is there.
    pub fn items(self, folder: &Path) -> usize {
        let texts = match self {
            Self::Scrapy => vec![folder.join("items.jsonl")],
            Self::Paced => std::fs::read_dir(folder.join("data/items"))
                .map(|files| files.flatten().map(|file| file.path()).collect())
                .unwrap_or_default(),
        };
        let texts: Vec<String> = texts.iter().flat_map(std::fs::read_to_string).collect();
        let lines = texts.iter().flat_map(|text| text.lines());
        let url = |line: &str| {
            let item: serde_json::Value = serde_json::from_str(line).ok()?;
            Some(item["url"].as_str()?.to_owned())
        };
        lines.filter_map(url).collect::<BTreeSet<_>>().len()
    }
}

fn scrapy(yard: &Yard, folder: &Path, goes_on: bool) -> Command {
    let mut command = Command::new(venv().join("bin/scrapy"));
    let urls: Vec<String> = yard.addrs.iter().map(|addr| format!("http://{addr}/")).collect();
    command.arg("runspider").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/compare/spider.py"));
    command.arg("-a").arg(format!("urls={}", urls.join(","))).arg("-o").arg(folder.join("items.jsonl"));
    let mut set = |name: &str, value: &str| {
        command.arg("-s").arg(format!("{name}={value}"));
    };
    set("ROBOTSTXT_OBEY", "True");
    set("LOG_LEVEL", "ERROR");
    set("TELNETCONSOLE_ENABLED", "False");
    if yard.plan.interval > 0 {
        set("DOWNLOAD_DELAY", &format!("0.{:03}", yard.plan.interval));
        set("RANDOMIZE_DOWNLOAD_DELAY", "False");
        set("CONCURRENT_REQUESTS", "2000");
        set("CONCURRENT_REQUESTS_PER_DOMAIN", "64");
    } else {
        set("CONCURRENT_REQUESTS", "128");
        set("CONCURRENT_REQUESTS_PER_DOMAIN", "16");
    }
    if goes_on {
        set("JOBDIR", &folder.join("job").to_string_lossy());
    }
    command
}

fn paced(yard: &Yard, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paced"));
    command.arg("crawl").arg("--data").arg(folder.join("data"));
    if yard.plan.interval == 0 {
        command.args(["--workers", "64"]);
    }
    for (shop, addr) in yard.plan.shops().iter().zip(&yard.addrs) {
        let path = folder.join(format!("{}.toml", shop.name));
        let text = super::site_toml(&shop.name, &addr.to_string(), yard.plan.interval);
        std::fs::write(&path, text).expect("room on the disk");
        command.arg(path);
    }
    command
}

/// A Python environment with Scrapy, made where there is none yet. `None`, with a word about it, where it can't be made.
pub fn has_scrapy() -> bool {
    let run = |program: &Path, arguments: &[&str]| {
        Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
    };
    let python = venv().join("bin/python");
    let made = python.exists() || run(Path::new("python3"), &["-m", "venv", &venv().to_string_lossy()]);
    let wanted = format!("scrapy=={SCRAPY}");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", &wanted];
    made && run(&python, &pip)
}

fn venv() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("scrapy")
}
