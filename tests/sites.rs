//! The files of `sites/`: each loads, and on the saved copy of its shop it reaches every item and finds its true values.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;

use paced::internals::budget::Budget;
use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::site::{FieldRule, Follow, Site, load, parse, two_sites_one_host};
use scraper::{ElementRef, Html};
use serde_json::Value;

#[test]
fn every_site_file_loads_and_no_two_share_a_host() {
    let sites: Vec<(String, Site)> = site_files()
        .iter()
        .map(|path| (path.display().to_string(), load(path).unwrap_or_else(|errors| panic!("{errors}"))))
        .collect();
    assert!(sites.len() >= 2, "{sites:?}");
    assert_eq!(two_sites_one_host(&sites), []);
    for (file, site) in &sites {
        assert_eq!(Path::new(file).file_stem().and_then(|stem| stem.to_str()), Some(site.name.as_str()));
    }
}

#[test]
fn the_first_file_of_the_guide_loads_and_its_mistakes_are_told_as_it_says() {
    let guide = include_str!("../docs/first-site.md");
    let block =
        |start: &str| guide.split(start).nth(1).and_then(|rest| rest.split("```").next()).expect("a block");
    let first = block("```toml\n");
    assert_eq!(parse(first, "sites/shop.toml").map(|site| site.name), Ok("shop".to_owned()));
    let mistaken = first.replace("interval =", "intervall =").replace("article a", "article > ");
    let errors = parse(&mistaken, "typo.toml").expect_err("two mistakes").to_string();
    assert_eq!(errors, block("$ paced check typo.toml\n").trim_end());
}

#[test]
fn books_reaches_each_of_the_thousand_books_once_and_nothing_else_of_the_shop() {
    let Some(shop) = Shop::unpacked("books-toscrape") else { return };
    let crawled = crawl(&site("books"), |path| shop.plain_file(path));
    assert_eq!(crawled.by_rule["listing"], 50);
    assert_eq!(crawled.by_rule["product"], 1000);
    assert_eq!(crawled.missing, Vec::<String>::new());
    for truth in &shop.truth {
        let item = &crawled.items[text(truth, "url_path")];
        assert_eq!(item["title"], text(truth, "title"));
        assert_eq!(item["price"], format!("£{}", text(truth, "price")));
        assert_eq!(item["stock"], truth["stock_count"].to_string());
        assert_eq!(item["in_stock"], "In stock");
        assert_eq!(item["upc"], text(truth, "upc"));
        assert_eq!(item["rating"], text(truth, "rating"));
        assert_eq!(item["category"], text(truth, "category"));
        assert_eq!(item["tags"], format!("Home|Books|{}", text(truth, "category")));
        assert_eq!(item["image"], format!("../..{}", text(truth, "image_path")));
        let description = truth["description"].as_str().map(folded);
        assert_eq!(item.get("description"), description.as_ref());
    }
}

#[test]
fn quotes_reaches_each_of_the_fifty_authors_through_its_redirects() {
    let Some(shop) = Shop::unpacked("quotes-toscrape") else { return };
    let manifest = shop.manifest();
    let crawled = crawl(&site("quotes"), |path| manifest.get(path).cloned());
    assert_eq!(crawled.by_rule["listing"], 10);
    assert_eq!(crawled.by_rule["author"], 50);
    assert_eq!(crawled.missing, Vec::<String>::new());
    let authors: Vec<&Value> = shop.truth.iter().filter(|row| row["kind"] == "author").collect();
    assert_eq!(authors.len(), 50);
    for truth in authors {
        let item = &crawled.items[text(truth, "url_path")];
        assert_eq!(item["name"], text(truth, "name"));
        assert_eq!(item["born_at"], text(truth, "born_at"));
        assert_eq!(item["born_in"], text(truth, "born_in"));
        assert!(item["description"].len() > 50, "{item:?}");
    }
}

fn site_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sites");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

fn site(name: &str) -> Site {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sites").join(format!("{name}.toml"));
    load(&path).unwrap_or_else(|errors| panic!("{errors}"))
}

/// What a path answers.
#[derive(Clone)]
enum Answer {
    Page(String),
    Redirect(String),
}

/// What a walk along the rules found.
#[derive(Default)]
struct Crawled {
    by_rule: BTreeMap<String, usize>,
    /// By path, what each field's selector finds.
    items: HashMap<String, BTreeMap<String, String>>,
    missing: Vec<String>,
}

/// Walks from the seeds as the rules say, each URL once and no deeper than allowed.
fn crawl(site: &Site, answer: impl Fn(&str) -> Option<Answer>) -> Crawled {
    let mut crawled = Crawled::default();
    let mut known: HashSet<CanonicalUrl> = site.seeds.iter().cloned().collect();
    let mut waiting: VecDeque<(CanonicalUrl, u32)> = site.seeds.iter().map(|url| (url.clone(), 0)).collect();
    while let Some((url, depth)) = waiting.pop_front() {
        let mut put = |target: &str, depth: u32| {
            let Ok(target) =
                url.url().join(target).map_err(drop).and_then(|u| site.canonical(u).map_err(drop))
            else {
                return;
            };
            let wanted = site.scope.covers(&target) && site.rule_for(&target).is_some();
            if wanted && depth <= site.scope.max_depth && known.insert(target.clone()) {
                waiting.push_back((target, depth));
            }
        };
        match answer(url.url().path()) {
            None => crawled.missing.push(url.to_string()),
            Some(Answer::Redirect(target)) => put(&target, depth),
            Some(Answer::Page(html)) => {
                for link in visit(site, &url, &html, &mut crawled) {
                    put(&link, depth + 1);
                }
            }
        }
    }
    crawled
}

/// Notes what the page's rule finds on it; the links to follow.
fn visit(site: &Site, url: &CanonicalUrl, html: &str, crawled: &mut Crawled) -> Vec<String> {
    let rule = site.rule_for(url).expect("only pages of a rule are put");
    let page = Html::parse_document(html);
    *crawled.by_rule.entry(rule.name.clone()).or_default() += 1;
    if rule.item {
        let fields = rule.fields.iter().filter_map(|field| Some((field.name.clone(), found(field, &page)?)));
        crawled.items.insert(url.url().path().to_owned(), fields.collect());
    }
    let Follow::Selected(selectors) = &rule.follow else { return Vec::new() };
    let budget = Budget::without_end();
    let links = selectors.iter().flat_map(|css| css.select(&page, &budget));
    links.filter_map(|link| link.attr("href").map(str::to_owned)).collect()
}

/// The text that a field's selector, attribute and expression find; several are joined by `|`.
fn found(field: &FieldRule, page: &Html) -> Option<String> {
    let value = |element: ElementRef<'_>| -> Option<String> {
        let text = match &field.attr {
            Some(attr) => element.attr(attr)?.to_owned(),
            None => folded(&element.text().collect::<String>()),
        };
        let Some(regex) = &field.regex else { return Some(text) };
        let groups = regex.captures(&text)?;
        Some(groups.get(1).or(groups.get(0))?.as_str().to_owned())
    };
    let budget = Budget::without_end();
    let mut values = field.css.select(page, &budget).filter_map(value);
    if field.all { Some(values.collect::<Vec<_>>().join("|")) } else { values.next() }
}

fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn text<'v>(row: &'v Value, key: &str) -> &'v str {
    row[key].as_str().unwrap_or_else(|| panic!("no text `{key}` in {row}"))
}

/// A saved shop, unpacked into a folder of its own.
struct Shop {
    corpus: PathBuf,
    files: tempfile::TempDir,
    truth: Vec<Value>,
}

impl Shop {
    /// `None`, said loudly, where the corpora aren't there; in CI they must be.
    fn unpacked(name: &str) -> Option<Self> {
        let corpora = std::env::var("PACED_CORPORA").unwrap_or_else(|_| "../shared/corpora".to_owned());
        let corpus = Path::new(&corpora).join("shops").join(name);
        if !corpus.is_dir() {
            assert!(std::env::var_os("CI").is_none(), "no corpus {}; set PACED_CORPORA", corpus.display());
            eprintln!("SKIPPED: no corpus {}; set PACED_CORPORA", corpus.display());
            return None;
        }
        let files = tempfile::tempdir().expect("a folder");
        let unpacked = Command::new("tar")
            .args(["-I", "zstd --long=27", "-xf"])
            .arg(corpus.join("site.tar.zst"))
            .arg("-C")
            .arg(files.path())
            .status()
            .expect("tar starts");
        assert!(unpacked.success(), "tar and zstd unpack the shop");
        let truth = rows(&corpus.join("truth.jsonl"));
        Some(Self { corpus, files, truth })
    }

    /// The page of a shop of plain files.
    fn plain_file(&self, path: &str) -> Option<Answer> {
        let path = if path.ends_with('/') { format!("{path}index.html") } else { path.to_owned() };
        std::fs::read_to_string(self.files.path().join(path.trim_start_matches('/'))).ok().map(Answer::Page)
    }

    /// By path, what a shop with a manifest answers.
    fn manifest(&self) -> HashMap<String, Answer> {
        let rows = rows(&self.corpus.join("manifest.jsonl"));
        rows.iter().map(|row| (text(row, "url").to_owned(), self.answer(row))).collect()
    }

    fn answer(&self, row: &Value) -> Answer {
        if let Some(target) = row["location"].as_str() {
            return Answer::Redirect(target.to_owned());
        }
        let file = self.files.path().join(text(row, "file"));
        let bytes = std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        Answer::Page(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn rows(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}
