//! Markdown as far as these tests need it: headings, fenced blocks, tables, and prose by its paragraphs and list items.

use std::fs;
use std::path::{Path, PathBuf};

/// A Markdown file of the repository.
#[derive(Debug)]
pub struct Page {
    /// Its path from the repository's root, as in `docs/pace.md`.
    pub name: String,
    pub text: String,
    pub blocks: Vec<Block>,
}

/// A part of a page.
#[derive(Debug)]
pub struct Block {
    /// The number of its first line, from 1.
    pub line: usize,
    pub kind: Kind,
    /// Its lines; those of a fence without the fences.
    pub lines: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Heading,
    /// A fenced block, with what stands behind its opening fence.
    Fence(String),
    Table,
    /// A paragraph, or one item of a list.
    Prose,
}

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages that a user reads: README and all of `docs/`.
pub fn manual() -> Vec<Page> {
    let mut names = vec![PathBuf::from("README.md")];
    markdown_below(Path::new("docs"), &mut names);
    names.sort();
    names.iter().map(|name| Page::of(&name.to_string_lossy())).collect()
}

/// All pages that are kept true: the manual, and what a maintainer reads.
pub fn all() -> Vec<Page> {
    let more = [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "examples/deploy/README.md",
        "sites/README.md",
        "src/frontier/README.md",
    ];
    manual().into_iter().chain(more.map(Page::of)).collect()
}

fn markdown_below(folder: &Path, names: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root().join(folder)).expect("a folder of the repository").flatten() {
        let name = folder.join(entry.file_name());
        if entry.path().is_dir() {
            markdown_below(&name, names);
        } else if name.extension().is_some_and(|end| end == "md") {
            names.push(name);
        }
    }
}

impl Page {
    /// The page of that path from the root.
    pub fn of(name: &str) -> Self {
        let text = fs::read_to_string(root().join(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
        let blocks = blocks(&text);
        Self { name: name.to_owned(), text, blocks }
    }

    /// Its blocks of one kind.
    pub fn of_kind(&self, kind: &Kind) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(move |block| block.kind == *kind)
    }

    /// Its fenced blocks, with what stands behind the opening fence.
    pub fn fences(&self) -> impl Iterator<Item = (&str, &Block)> {
        self.blocks.iter().filter_map(|block| match &block.kind {
            Kind::Fence(info) => Some((info.as_str(), block)),
            _ => None,
        })
    }

    /// A place on the page, as compilers name it.
    pub fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.name)
    }
}

impl Block {
    /// Its lines as one text.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut goes_on = false;
    while let Some((at, line)) = lines.next() {
        let begin = |kind, lines| Block { line: at + 1, kind, lines };
        if let Some(info) = line.strip_prefix("```") {
            let fenced = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
            let fenced = fenced.map(str::to_owned).collect();
            blocks.push(begin(Kind::Fence(info.to_owned()), fenced));
            goes_on = false;
        } else if line.trim().is_empty() {
            goes_on = false;
        } else {
            let kind = kind_of(line);
            let last = blocks.last_mut().filter(|last| goes_on && last.kind == kind && !begins_an_item(line));
            match last {
                Some(last) => last.lines.push(line.to_owned()),
                None => blocks.push(begin(kind.clone(), vec![line.to_owned()])),
            }
            goes_on = kind != Kind::Heading;
        }
    }
    blocks
}

fn kind_of(line: &str) -> Kind {
    match line.trim_start().chars().next() {
        Some('#') => Kind::Heading,
        Some('|') => Kind::Table,
        _ => Kind::Prose,
    }
}

fn begins_an_item(line: &str) -> bool {
    let line = line.trim_start();
    let numbered = || line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    line.starts_with("* ") || line.starts_with("- ") || numbered()
}

#[test]
fn a_page_is_read_as_headings_fences_tables_and_prose() {
    let found: Vec<(usize, Kind, usize)> = blocks(
        "# A\n\nOne\ntwo\n* an item\n  of two lines\n* another\n\n| a |\n|---|\n\n```sh no-run\nls\n\n# no heading\n```\n1. n\n",
    )
    .into_iter()
    .map(|block| (block.line, block.kind, block.lines.len()))
    .collect();
    let fence = Kind::Fence("sh no-run".to_owned());
    let expected = [
        (1, Kind::Heading, 1),
        (3, Kind::Prose, 2),
        (5, Kind::Prose, 2),
        (7, Kind::Prose, 1),
        (9, Kind::Table, 2),
        (12, fence, 3),
        (17, Kind::Prose, 1),
    ];
    assert_eq!(found, expected);
}
