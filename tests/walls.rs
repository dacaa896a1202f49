//! W9: walls and good pages, each case a file of `tests/fixtures/walls`, told apart by the rules that the crawler goes by.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::clock::Timestamp;
use paced::internals::extract::{Fetched, extract};
use paced::internals::manners::Signal;
use paced::internals::manners::wall::{
    Answer, Met, RulePage, RuleRecord, ServerErrors, Suspicion, mark, may_be_a_page, met,
};
use paced::internals::page::{Headers, Page};
use paced::internals::site::{self, Site};
use serde::Deserialize;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const RULE: &str = r#"
[[page]]
name = "product"
match = "/p/*"
item = true

[page.fields]
title = { css = "h1", required = true }
price = { css = ".price", as = "price" }
"#;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    what: String,
    expect: String,
    site: Option<String>,
    #[serde(default = "yes")]
    worked: bool,
    answer: Vec<Given>,
    probe: Option<Given>,
    after: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    status: u16,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    body: String,
}

fn yes() -> bool {
    true
}

/// What one answer is, as far as no other one is known.
enum Told {
    Wall,
    Block,
    Met(Met, bool),
}

struct Shop {
    site: Site,
    errors: ServerErrors,
}

impl Shop {
    fn of(case: &Case) -> Self {
        let rules = case.site.as_deref().unwrap_or(RULE);
        let text =
            format!("seeds = [\"https://shop.example/p/0\"]\n[pace]\ncontact = \"a@b.example\"\n{rules}");
        let site = site::parse(&text, "shop.toml").unwrap_or_else(|e| panic!("{}: {e}", case.what));
        Self { site, errors: ServerErrors::default() }
    }

    fn hear(&mut self, url: &CanonicalUrl, given: &Given) -> Told {
        let headers =
            given.headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone().into_bytes()));
        let headers = Headers(headers.collect());
        let body = Bytes::from(given.body.clone());
        let page = Page {
            url: url.clone(),
            sent_at: NOW,
            version: http::Version::HTTP_11,
            status: given.status,
            headers: headers.clone(),
            body: body.clone(),
            response: Duration::ZERO,
            remote: None,
        };
        let is_block =
            matches!(Signal::of(&page, &self.site.pace, NOW), Signal::Retry { block: Some(_), .. });
        let has_fields = may_be_a_page(given.status) && {
            let rule = self.site.rule_for(url).expect("a rule that takes it");
            let fetched = Fetched { url, fetched_at: NOW, headers: &headers, body: &body };
            extract(&fetched, rule, &self.site).expect("within its budget").has_fields()
        };
        let is_error = self.errors.hear(given.status == 503 && !is_block);
        let mark = mark(&Answer { status: given.status, headers: &headers, body: &body, is_block });
        match mark {
            _ if is_block => Told::Block,
            Some(mark) if mark.is_sure || !has_fields => Told::Wall,
            _ if is_error => Told::Wall,
            _ => Told::Met(met(given.status, &body), has_fields),
        }
    }
}

fn page(n: usize) -> CanonicalUrl {
    CanonicalUrl::parse(&format!("https://shop.example/p/{n}")).expect("a URL")
}

fn at_depth(n: usize) -> RulePage {
    RulePage { url: page(n), depth: 1 }
}

fn judge(case: &Case) -> (String, Option<String>) {
    let (mut shop, mut record) = (Shop::of(case), RuleRecord::default());
    if case.worked {
        record.worked(&at_depth(9_999));
    }
    let mut open: Option<Suspicion> = None;
    let mut is_blocked = false;
    for (n, given) in (1..).zip(&case.answer) {
        match shop.hear(&page(n), given) {
            Told::Wall => return ("wall".to_owned(), None),
            Told::Block => is_blocked = true,
            Told::Met(met, has_fields) => {
                let suspected = record.hear(&at_depth(n), met, Duration::ZERO);
                if suspected.is_some() && has_fields {
                    record.cleared(Duration::ZERO);
                } else {
                    open = suspected.or(open);
                }
            }
        }
    }
    let (Some(open), Some(probe)) = (&open, &case.probe) else {
        let told = if open.is_some() {
            "suspicion"
        } else if is_blocked {
            "block"
        } else {
            "good"
        };
        return (told.to_owned(), None);
    };
    let refused = match shop.hear(&open.probe.url, probe) {
        Told::Wall => true,
        Told::Block => false,
        Told::Met(met, has_fields) => open.is_confirmed_by(met) && !has_fields,
    };
    ("suspicion".to_owned(), Some(if refused { "wall" } else { "good" }.to_owned()))
}

#[test]
fn w9_no_wall_of_the_table_is_missed_and_no_good_page_is_taken_for_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/walls");
    let (mut wrong, mut cases) = (Vec::new(), 0);
    for file in std::fs::read_dir(folder).expect("the table") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        let case: Case = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let told = judge(&case);
        if told != (case.expect.clone(), case.after.clone()) {
            wrong.push(format!(
                "{}: {told:?}, not {:?} {:?}: {}",
                path.display(),
                case.expect,
                case.after,
                case.what
            ));
        }
        cases += 1;
    }
    assert!(wrong.is_empty() && cases >= 16, "{cases} cases, these wrong:\n{}", wrong.join("\n"));
}
