//! What `paced try` found, as text for a terminal and as JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::look::{Field, Hop, Look, PaidRequest, RefusedLink, Walk};
use crate::quantity::spoken;
use crate::site::Site;

/// Links shown of those that are followed.
const LINKS: usize = 10;
/// Characters of a value that are shown.
const VALUE: usize = 160;

/// Where the page came from.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::cli) enum PageSource {
    Fetched,
    Stored,
    File,
}

/// Everything there is to show.
#[derive(Debug)]
pub(in crate::cli) struct PrintedTrial<'a> {
    pub site: &'a Site,
    pub rules: &'a str,
    pub source: PageSource,
    pub walk: &'a Walk,
    pub rule: Option<usize>,
    pub look: Option<&'a Look>,
}

impl PrintedTrial<'_> {
    /// Whether a crawl would take the page, with nothing required missing.
    pub(in crate::cli) fn is_taken(&self) -> bool {
        let allowed = self.walk.hops.last().is_some_and(|hop| {
            hop.taken.is_ok() && hop.robots.as_ref().is_some_and(|verdict| verdict.allowed)
        });
        allowed && self.look.is_some_and(|look| look.missing.is_empty())
    }

    pub(in crate::cli) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for hop in &self.walk.hops {
            lines.push(hop.url.to_string());
            lines.push(row("site", format_args!("{}, {}", self.site.name, self.rules)));
            lines.extend(hop_rows(hop));
            lines.extend(self.request_of(hop).map(request_row));
            lines.extend(hop.ended.as_ref().map(|why| row("answer", why)));
        }
        lines.extend(self.content_row());
        if let Some(look) = self.look {
            lines.extend(item_rows(look));
            lines.extend(field_rows(&look.fields));
            lines.extend(link_rows(look));
        }
        lines
    }

    fn request_of(&self, hop: &Hop) -> Option<&PaidRequest> {
        self.walk.sent.iter().find(|sent| sent.url == hop.url)
    }

    fn content_row(&self) -> Option<String> {
        let content = self.walk.content.as_ref()?;
        let kind = content.headers.get("content-type").unwrap_or("no type given");
        let from = match self.source {
            PageSource::Fetched => String::new(),
            PageSource::Stored => format!("stored, fetched {}: ", content.fetched_at),
            PageSource::File => "from a file: ".to_owned(),
        };
        let status = content.status.map(|status| format!("HTTP {status}, ")).unwrap_or_default();
        let read = self.look.map(|look| format!(", read as {}", look.encoding)).unwrap_or_default();
        let cut = if self.look.is_some_and(|look| look.cut) { ", cut: too large a page" } else { "" };
        Some(row("page", format_args!("{from}{status}{kind}, {} bytes{read}{cut}", content.body.len())))
    }

    pub(in crate::cli) fn object(&self) -> Value {
        let content = self.walk.content.as_ref();
        json!({
            "url": self.walk.hops.first().map(|hop| &hop.url), "site": self.site.name, "rules": self.rules,
            "source": self.source, "taken": self.is_taken(),
            "hops": self.walk.hops.iter().map(hop_object).collect::<Vec<_>>(),
            "requests": self.walk.sent.iter().map(request_object).collect::<Vec<_>>(),
            "page": content.map(|content| json!({
                "url": content.url, "status": content.status, "fetched_at": content.fetched_at,
                "content_type": content.headers.get("content-type"), "bytes": content.body.len(),
                "rule": self.rule.map(|rule| &self.site.pages[rule].name),
            })),
            "look": self.look.map(look_object),
        })
    }
}

fn row(name: &str, text: impl std::fmt::Display) -> String {
    format!("  {name:<9}{text}")
}

fn hop_rows(hop: &Hop) -> Vec<String> {
    let mut rows = vec![match &hop.taken {
        Ok(rule) => row("rule", rule),
        Err(why) => row("rule", format_args!("none: {why}; a crawl doesn't ask for it")),
    }];
    rows.extend(hop.robots.as_ref().map(|verdict| row("robots", &verdict.why)));
    rows
}

fn item_rows(look: &Look) -> Vec<String> {
    let asked = &look.directives;
    let flags = [("nofollow", asked.nofollow), ("noindex", asked.noindex), ("noarchive", asked.noarchive)];
    let flags: Vec<&str> = flags.iter().filter(|(_, set)| *set).map(|(name, _)| *name).collect();
    let mut rows = Vec::new();
    if !flags.is_empty() {
        rows.push(row("asks for", flags.join(", ")));
    }
    if !look.left_out.is_empty() {
        rows.push(row("left out", format_args!("{}: too much", look.left_out.join(", "))));
    }
    rows.push(match (&look.item, look.missing.as_slice()) {
        (Some(item), _) => {
            row("item", format_args!("yes, its key: {}", item.key.as_deref().unwrap_or(&item.url)))
        }
        (None, []) => row("item", "none: the rule makes none"),
        (None, missing) => {
            row("item", format_args!("none: required field not found: {}", missing.join(", ")))
        }
    });
    rows
}

fn request_row(sent: &PaidRequest) -> String {
    let answered = match sent.answer {
        Some((_, took)) => format!("answered in {}", spoken(took)),
        None => "no answer".to_owned(),
    };
    row("request", format_args!("{}, {answered}, pace of {}: {}", sent.at, sent.unit, spoken(sent.interval)))
}

fn field_rows(fields: &[Field]) -> Vec<String> {
    let shown = |field: &Field| match (&field.found, field.required) {
        (Some((value, from)), _) => (from.clone(), shortened(&value.to_string())),
        (None, true) => ("-".to_owned(), "not found, and required".to_owned()),
        (None, false) => ("-".to_owned(), "not found".to_owned()),
    };
    let rows: Vec<_> = fields.iter().map(|field| (&field.name, shown(field))).collect();
    let name = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let from = rows.iter().map(|(_, (from, _))| from.len()).max().unwrap_or(0);
    let lines =
        rows.iter().map(|(field, (source, value))| format!("    {field:<name$}  {source:<from$}  {value}"));
    (!rows.is_empty()).then(|| "  fields".to_owned()).into_iter().chain(lines).collect()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn link_rows(look: &Look) -> Vec<String> {
    let (all, refused) = (look.followed.len(), look.refused.len());
    let dropped = if look.dropped > 0 { format!(", {} dropped", look.dropped) } else { String::new() };
    let mut rows = vec![row("links", format_args!("{all} followed, {refused} refused{dropped}"))];
    let shown = &look.followed[..all.min(LINKS)];
    let rule = shown.iter().map(|link| link.rule.chars().count()).max().unwrap_or(0);
    rows.extend(shown.iter().map(|link| format!("    {:<rule$}  {}", link.rule, link.url)));
    if all > LINKS {
        rows.push(format!("    … and {} more: --json shows them", all - LINKS));
    }
    let mut by_reason: BTreeMap<&str, Vec<&RefusedLink>> = BTreeMap::new();
    for link in &look.refused {
        by_reason.entry(&link.why).or_default().push(link);
    }
    let refused = by_reason.iter().map(|(why, links)| (links.len(), why, &links[0].url));
    rows.extend(refused.map(|(count, why, url)| format!("    refused {count}: {why}, as {url}")));
    rows
}

fn hop_object(hop: &Hop) -> Value {
    let (rule, refused) = match &hop.taken {
        Ok(rule) => (Some(rule), None),
        Err(why) => (None, Some(json!({ "reason": why.name(), "why": why.to_string() }))),
    };
    let robots = hop.robots.as_ref().map(|verdict| {
        let line = verdict.line.as_ref().map(|(number, text)| json!({ "number": number, "text": text }));
        json!({ "allowed": verdict.allowed, "line": line, "why": verdict.why })
    });
    json!({ "url": hop.url, "rule": rule, "refused": refused, "robots": robots, "answer": hop.ended })
}

fn request_object(sent: &PaidRequest) -> Value {
    json!({
        "url": sent.url, "sent_at": sent.at, "unit": sent.unit, "interval_ms": sent.interval.as_millis(),
        "status": sent.answer.map(|(status, _)| status),
        "response_ms": sent.answer.map(|(_, took)| took.as_millis()),
    })
}

fn look_object(look: &Look) -> Value {
    let fields = look.fields.iter().map(|field| {
        let (value, from) =
            field.found.as_ref().map_or((None, None), |(value, from)| (Some(value), Some(from)));
        json!({ "name": field.name, "value": value, "from": from, "required": field.required })
    });
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for link in &look.refused {
        *counts.entry(link.reason).or_default() += 1;
    }
    let followed = look.followed.iter().map(|link| json!({ "url": link.url, "rule": link.rule }));
    let refused =
        look.refused.iter().map(|link| json!({ "url": link.url, "reason": link.reason, "why": link.why }));
    json!({
        "encoding": look.encoding, "cut": look.cut, "left_out": look.left_out, "item": look.item, "missing": look.missing,
        "nofollow": look.directives.nofollow, "noindex": look.directives.noindex, "noarchive": look.directives.noarchive,
        "fields": fields.collect::<Vec<_>>(),
        "links": {
            "followed": followed.collect::<Vec<_>>(), "refused": refused.collect::<Vec<_>>(), "refused_counts": counts,
            "dropped": look.dropped,
        },
    })
}
