//! Every key of a site file: the one table that its reader, its JSON Schema and `docs/site-keys.md` are made of.

use super::read::{Layout, Shape, TextForm, key, words};
use super::{FetchRules, FieldKind, MetaRobots, Pace, RobotsPolicy, Scope};
use crate::task::LANE;

/// The keys, section by section in the order of the manual.
pub(super) const KEYS: Layout = &[
    ("", &[
        key("name", Shape::Text(TextForm::Name, "the file's name"), "The site's name, which names files and queues."),
        key("seeds", Shape::List(TextForm::Url, 1, ""), "Where a run starts.").needed(),
        key("sitemaps", Shape::Only("\"off\""), "Sitemaps to read."),
        key(
            "lane",
            Shape::TextOr(TextForm::Name, LANE),
            "The lane that the site's tasks wait in. Lanes other than `general` stand in `[lanes]` of `paced.toml`.",
        ),
        key(
            "tenant",
            Shape::Text(TextForm::Name, "none"),
            "Whom the site's tasks are for. Fairness rules of `paced.toml` count tasks by tenant.",
        ),
        key("group", Shape::Text(TextForm::Name, "none"), "Sites of one group share one pace. The group's own interval may stand in `paced.toml`."),
        key("pace", Shape::Section("pace"), "How fast, and with what manners."),
        key("scope", Shape::Section("scope"), "Which URLs belong to the crawl."),
        key("fetch", Shape::Section("fetch"), "How one request is made."),
        key("page", Shape::Sections("page"), "What to do with a page. The first whose `match` fits takes it.").needed(),
    ]),
    ("pace", &[
        key(
            "interval",
            Shape::Duration { zero: true, default: Some(Pace::INTERVAL) },
            "The least time between the starts of two requests. robots.txt may ask for more. Zero is allowed only with `allow_private`.",
        ),
        key("parallel", Shape::Count { least: 1, default: Some(Pace::PARALLEL) }, "The most requests in flight at once."),
        key(
            "min_interval",
            Shape::Duration { zero: false, default: None },
            "The least interval that `paced tune` may set. Without it, that is `interval`.",
        ),
        key(
            "max_parallel",
            Shape::Count { least: 1, default: None },
            "The most requests in flight that `paced tune` may set. Without it, four times `parallel`, at most 256.",
        ),
        key("robots", Shape::OneOf(|| words(&RobotsPolicy::WORDS)), "Whether robots.txt is obeyed. Ignoring it is logged at every start."),
        key(
            "meta_robots",
            Shape::OneOf(|| words(&MetaRobots::WORDS)),
            "Whether a page's own nofollow, noindex and noarchive are obeyed. Links of a nofollow page are not put; the others are told on the item.",
        ),
        key(
            "contact",
            Shape::Text(TextForm::Text, "none, with a warning"),
            "A mail address or URL of who runs the crawl. It is part of the user agent.",
        ),
        key(
            "max_crawl_delay",
            Shape::Duration { zero: true, default: Some(Pace::MAX_CRAWL_DELAY) },
            "If robots.txt asks for more, the site is blocked.",
        ),
        key(
            "max_retry_after",
            Shape::Duration { zero: true, default: Some(Pace::MAX_RETRY_AFTER) },
            "The longest that a Retry-After is followed.",
        ),
        key("window", Shape::Only("[]"), "When the site may be asked."),
    ]),
    ("scope", &[
        key(
            "hosts",
            Shape::List(TextForm::Host, 1, "the seeds', with and without `www.`"),
            "The site's hosts, by http and https. A host has its port if that is unusual.",
        ),
        key("deny", Shape::ListOr(TextForm::Pattern, 0, &[]), "Patterns of what is never asked for, and all below it."),
        key(
            "max_depth",
            Shape::Count { least: 0, default: Some(Scope::MAX_DEPTH) },
            "How many links away from a seed a page may be. Listings count: page 50 is 49 links away.",
        ),
        key("max_pages", Shape::Count { least: 1, default: None }, "The most pages of a run."),
        key(
            "strip_query",
            Shape::ListOr(TextForm::Text, 0, &Scope::STRIP_QUERY),
            "Query parameters that don't make another page. A `*` at the end stands for any ending.",
        ),
    ]),
    ("fetch", &[
        key("timeout", above_zero(FetchRules::TIMEOUT), "For a whole request."),
        key("connect_timeout", above_zero(FetchRules::CONNECT_TIMEOUT), "For a connection to be up, TLS included."),
        key("read_timeout", above_zero(FetchRules::READ_TIMEOUT), "The longest silence while an answer is read."),
        key("max_body", Shape::Size(FetchRules::MAX_BODY), "The largest body, after decompression."),
        key("parse_budget", above_zero(FetchRules::PARSE_BUDGET), "Time on a processor for the parse of one page."),
        key("accept_types", Shape::ListOr(TextForm::MediaType, 1, &FetchRules::ACCEPT_TYPES), "The media types that are kept."),
        key(
            "attempts",
            Shape::Count { least: 1, default: Some(FetchRules::ATTEMPTS) },
            "How often a page is tried before it is dead.",
        ),
        key("gone_after", Shape::Only("3"), "404 or 410 so often before an item counts as gone."),
        key("headers", Shape::Table(TextForm::Header), "Further header fields of each request."),
        key("cookies", Shape::Flag, "Whether cookies are kept and sent back."),
        key(
            "auth_env",
            Shape::Text(TextForm::Variable, "none"),
            "The environment variable with `user:password`. Its name begins with `PACED_SECRET_` and the site's or group's name. Secrets and cookies are sent to the seeds' hosts alone, unencrypted only where a seed is.",
        ),
        key("secret_headers", Shape::Table(TextForm::Variable), "Header fields whose values are in the variables that are named."),
        key(
            "signature",
            Shape::Text(TextForm::Signature, "none"),
            "How requests are signed (Web Bot Auth). `{ env = \"PACED_SECRET_…\" }` names header lines that the site's owner made. `{ key = \"NAME\", agent = \"https://…\" }` signs with a key of `paced key new NAME`, which that site publishes.",
        ),
        key("proxy", Shape::Text(TextForm::Proxy, "none"), "The proxy. One with a password is `{ env = \"PACED_SECRET_…\" }`. The environment's own is never used."),
        key("allow_private", Shape::Flag, "Whether loopback and private addresses may be crawled."),
    ]),
    ("page", &[
        key("name", Shape::Text(TextForm::Text, ""), "The rule's name, unique in the file.").needed(),
        key(
            "match",
            Shape::OneOrList(TextForm::Pattern, 1),
            "Which pages it takes, by path and query. A `*` stops at / and ?, a `**` doesn't; `re:` stands before a regular expression.",
        )
        .needed(),
        key("follow", Shape::OneOrList(TextForm::Selector, 0), "Selectors of links to put. `\"*\"` is every link in scope."),
        key("max_pages", Shape::Count { least: 1, default: None }, "The most pages it takes in a run. It bounds endless calendars."),
        key("item", Shape::Flag, "Whether its pages are items."),
        key(
            "key",
            Shape::TextOr(TextForm::Text, "canonical"),
            "What makes two items one. It is `\"url\"`, `\"canonical\"` or the name of a field.",
        ),
        key(
            "recrawl",
            Shape::Duration { zero: false, default: None },
            "How old a page may grow before it is fetched again.",
        ),
        key(
            "product",
            Shape::Flag,
            "Whether structured data fills the fields of a product. They are name, price, currency, availability, sku, gtin, brand and image, from JSON-LD, microdata and OpenGraph.",
        ),
        key("fields", Shape::Table(TextForm::Field), "The item's fields. Each is a CSS selector, or a table of the keys below."),
    ]),
    ("field", &[
        key("css", Shape::Text(TextForm::Selector, ""), "Where on the page. What a browser's `querySelector` takes is allowed.").needed(),
        key("attr", Shape::Text(TextForm::Text, "the element's text"), "This attribute's value instead of the element's text."),
        key("regex", Shape::Text(TextForm::Text, "none"), "The value is its first group, or the whole match."),
        key("as", Shape::OneOf(|| words(&FieldKind::WORDS)), "What the text is read as."),
        key("default", Shape::Any, "The value if nothing is found."),
        key("required", Shape::Flag, "Whether a page without it is no item but a dead letter."),
        key("all", Shape::Flag, "Every match, as a list, instead of the first."),
    ]),
];

const fn above_zero(default: std::time::Duration) -> Shape {
    Shape::Duration { zero: false, default: Some(default) }
}
