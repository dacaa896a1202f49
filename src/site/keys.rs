//! Every key of a site file: the one table that its reader, its JSON Schema and `docs/site-keys.md` are made of.

use super::load::{KINDS, META_ROBOTS, ROBOTS};
use super::read::{FileKey, Layout, Shape, TextForm};
use super::{FetchRules, Pace, Scope};

/// How often a page must be 404 or 410 before its item counts as gone; the only number supported so far.
const GONE_AFTER: u32 = 3;

/// The keys, section by section in the order of the manual.
pub(super) const KEYS: Layout = &[
    top("name", Shape::Text(TextForm::Name, "the file's name"), "The site's name, which names files and queues."),
    top("seeds", Shape::List(TextForm::Url, 1, ""), "Where a run starts.").needed(),
    top("sitemaps", Shape::OnlyText("off"), "Sitemaps to read."),
    top("lane", Shape::OnlyText("general"), "The lane that the site's tasks wait in."),
    top("group", Shape::Text(TextForm::Name, "none"), "Sites of one group share one pace. The group's own interval may stand in `paced.toml`."),
    top("pace", Shape::Section("pace"), "How fast, and with what manners."),
    top("scope", Shape::Section("scope"), "Which URLs belong to the crawl."),
    top("fetch", Shape::Section("fetch"), "How one request is made."),
    top("page", Shape::Sections("page"), "What to do with a page. The first whose `match` fits takes it.").needed(),
    pace(
        "interval",
        Shape::Duration { zero: true, default: Some(Pace::INTERVAL) },
        "The least time between the starts of two requests. robots.txt may ask for more. Zero is allowed only with `allow_private`.",
    ),
    pace("parallel", Shape::Count { least: 1, default: Some(Pace::PARALLEL) }, "The most requests in flight at once."),
    pace("robots", Shape::OneOf(|| words(&ROBOTS)), "Whether robots.txt is obeyed. Ignoring it is logged at every start."),
    pace(
        "meta_robots",
        Shape::OneOf(|| words(&META_ROBOTS)),
        "Whether a page's own nofollow, noindex and noarchive are obeyed. Links of a nofollow page are not put; the others are told on the item.",
    ),
    pace(
        "contact",
        Shape::Text(TextForm::Text, "none, with a warning"),
        "A mail address or URL of who runs the crawl. It is part of the user agent.",
    ),
    pace(
        "max_crawl_delay",
        Shape::Duration { zero: true, default: Some(Pace::MAX_CRAWL_DELAY) },
        "If robots.txt asks for more, the site is blocked.",
    ),
    pace(
        "max_retry_after",
        Shape::Duration { zero: true, default: Some(Pace::MAX_RETRY_AFTER) },
        "The longest that a Retry-After is followed.",
    ),
    pace("window", Shape::OnlyEmpty, "When the site may be asked."),
    scope(
        "hosts",
        Shape::List(TextForm::Host, 1, "the seeds', with and without `www.`"),
        "The site's hosts, by http and https. A host has its port if that is unusual.",
    ),
    scope("deny", Shape::ListOr(TextForm::Pattern, 0, &[]), "Patterns of what is never asked for, and all below it."),
    scope(
        "max_depth",
        Shape::Count { least: 0, default: Some(Scope::MAX_DEPTH) },
        "How many links away from a seed a page may be. Listings count: page 50 is 49 links away.",
    ),
    scope("max_pages", Shape::Count { least: 1, default: None }, "The most pages of a run."),
    scope(
        "strip_query",
        Shape::ListOr(TextForm::Text, 0, &Scope::STRIP_QUERY),
        "Query parameters that don't make another page. A `*` at the end stands for any ending.",
    ),
    fetch("timeout", above_zero(FetchRules::TIMEOUT), "For a whole request."),
    fetch("connect_timeout", above_zero(FetchRules::CONNECT_TIMEOUT), "For a connection to be up, TLS included."),
    fetch("read_timeout", above_zero(FetchRules::READ_TIMEOUT), "The longest silence while an answer is read."),
    fetch("max_body", Shape::Size(FetchRules::MAX_BODY), "The largest body, after decompression."),
    fetch("accept_types", Shape::ListOr(TextForm::MediaType, 1, &FetchRules::ACCEPT_TYPES), "The media types that are kept."),
    fetch(
        "attempts",
        Shape::Count { least: 1, default: Some(FetchRules::ATTEMPTS) },
        "How often a page is tried before it is dead.",
    ),
    fetch("gone_after", Shape::OnlyCount(GONE_AFTER), "404 or 410 so often before an item counts as gone."),
    fetch("headers", Shape::Table(TextForm::Header), "Further header fields of each request."),
    fetch("cookies", Shape::Flag, "Whether cookies are kept and sent back."),
    fetch(
        "auth_env",
        Shape::Text(TextForm::Variable, "none"),
        "The environment variable with `user:password`. It is sent to the seeds' hosts alone, and unencrypted only where a seed is.",
    ),
    fetch("proxy", Shape::Text(TextForm::Proxy, "none"), "The proxy. The environment's is never used."),
    fetch("allow_private", Shape::Flag, "Whether loopback and private addresses may be crawled."),
    page("name", Shape::Text(TextForm::Text, ""), "The rule's name, unique in the file.").needed(),
    page(
        "match",
        Shape::OneOrList(TextForm::Pattern, 1),
        "Which pages it takes, by path and query. A `*` stops at / and ?, a `**` doesn't; `re:` stands before a regular expression.",
    )
    .needed(),
    page("follow", Shape::OneOrList(TextForm::Selector, 0), "Selectors of links to put. `\"*\"` is every link in scope."),
    page("max_pages", Shape::Count { least: 1, default: None }, "The most pages it takes in a run. It bounds endless calendars."),
    page("item", Shape::Flag, "Whether its pages are items."),
    page(
        "key",
        Shape::TextOr(TextForm::Text, "canonical"),
        "What makes two items one. It is `\"url\"`, `\"canonical\"` or the name of a field.",
    ),
    page(
        "recrawl",
        Shape::Duration { zero: false, default: None },
        "How old a page may grow before it is fetched again.",
    ),
    page(
        "product",
        Shape::Flag,
        "Whether structured data fills the fields of a product. They are name, price, currency, availability, sku, gtin, brand and image, from JSON-LD, microdata and OpenGraph.",
    ),
    page("fields", Shape::Table(TextForm::Field), "The item's fields. Each is a CSS selector, or a table of the keys below."),
    field("css", Shape::Text(TextForm::Selector, ""), "Where on the page. What a browser's `querySelector` takes is allowed.").needed(),
    field("attr", Shape::Text(TextForm::Text, "the element's text"), "This attribute's value instead of the element's text."),
    field("regex", Shape::Text(TextForm::Text, "none"), "The value is its first group, or the whole match."),
    field("as", Shape::OneOf(|| words(&KINDS)), "What the text is read as."),
    field("default", Shape::Any, "The value if nothing is found."),
    field("required", Shape::Flag, "Whether a page without it is no item but a dead letter."),
    field("all", Shape::Flag, "Every match, as a list, instead of the first."),
];

const fn top(name: &'static str, shape: Shape, says: &'static str) -> FileKey {
    FileKey::new("", name, shape, says)
}

const fn pace(name: &'static str, shape: Shape, says: &'static str) -> FileKey {
    FileKey::new("pace", name, shape, says)
}

const fn scope(name: &'static str, shape: Shape, says: &'static str) -> FileKey {
    FileKey::new("scope", name, shape, says)
}

const fn fetch(name: &'static str, shape: Shape, says: &'static str) -> FileKey {
    FileKey::new("fetch", name, shape, says)
}

const fn page(name: &'static str, shape: Shape, says: &'static str) -> FileKey {
    FileKey::new("page", name, shape, says)
}

const fn field(name: &'static str, shape: Shape, says: &'static str) -> FileKey {
    FileKey::new("field", name, shape, says)
}

const fn above_zero(default: std::time::Duration) -> Shape {
    Shape::Duration { zero: false, default: Some(default) }
}

fn words<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
    words.iter().map(|(word, _)| *word).collect()
}
