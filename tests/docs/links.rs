//! Whether every link and anchor leads somewhere, and every page is led to.

use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};

use regex::Regex;

use crate::markdown::{Kind, Page, all, manual, root};

#[test]
fn every_link_and_every_anchor_leads_somewhere() {
    let pages = all();
    let anchors: HashMap<&str, BTreeSet<String>> =
        pages.iter().map(|page| (page.name.as_str(), anchors(page))).collect();
    let mut wrong = Vec::new();
    for page in &pages {
        for (line, link) in links(page) {
            let (target, anchor) = link.split_once('#').map_or((link.as_str(), None), |(t, a)| (t, Some(a)));
            let target = if target.is_empty() { page.name.clone() } else { beside(&page.name, target) };
            let is_there = root().join(&target).exists();
            let known = anchor.is_none_or(|name| anchors.get(&*target).is_some_and(|all| all.contains(name)));
            if !is_there || !known {
                wrong.push(format!("{}: {link}", page.at(line)));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_page_of_the_manual_is_reached_from_the_readme() {
    let pages: HashMap<String, Page> = manual().into_iter().map(|page| (page.name.clone(), page)).collect();
    let mut reached = BTreeSet::new();
    let mut next = vec!["README.md".to_owned()];
    while let Some(name) = next.pop() {
        let Some(page) = pages.get(&name).filter(|_| reached.insert(name.clone())) else { continue };
        let targets =
            links(page).into_iter().filter_map(|(_, link)| link.split('#').next().map(str::to_owned));
        next.extend(targets.filter(|target| !target.is_empty()).map(|target| beside(&name, &target)));
    }
    let lost: Vec<&String> = pages.keys().filter(|name| !reached.contains(*name)).collect();
    assert!(lost.is_empty(), "nothing leads to {lost:?}");
}

/// The links of a page that lead into the repository, with their lines.
fn links(page: &Page) -> Vec<(usize, String)> {
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
    let prose = page.blocks.iter().filter(|block| !matches!(block.kind, Kind::Fence(_)));
    prose
        .flat_map(|block| block.lines.iter().zip(block.line..))
        .flat_map(|(text, line)| link.captures_iter(text).map(move |found| (line, found[1].to_owned())))
        .filter(|(_, target)| !target.contains("://"))
        .collect()
}

/// What a link on `page` to `target` means, from the root.
fn beside(page: &str, target: &str) -> String {
    let mut path = PathBuf::new();
    for part in Path::new(page).parent().unwrap_or(Path::new("")).join(target).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
    }
    path.to_string_lossy().into_owned()
}

/// What the headings of a page can be called by, as GitHub makes it of their words.
fn anchors(page: &Page) -> BTreeSet<String> {
    let words = page
        .of_kind(&Kind::Heading)
        .map(|heading| heading.text().trim_start_matches('#').trim().to_lowercase());
    let kept = |c: &char| c.is_alphanumeric() || ['-', '_', ' '].contains(c);
    words.map(|words| words.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}
