//! How long pages, paragraphs, sentences and cells may be.

use crate::markdown::{Block, Kind, Page, all, manual};

const WIDTH: usize = 120;
const LINES_OF_A_PARAGRAPH: usize = 5;
const WORDS_OF_A_CELL: usize = 12;
const WORDS_OF_A_SENTENCE: usize = 25;
const WORDS_OF_A_SENTENCE_IN_THE_MEAN: usize = 14;
const LINES_OF_A_BULLET: usize = 2;

#[test]
fn the_readme_and_the_architecture_are_short() {
    for (name, words) in [("README.md", 1_500), ("ARCHITECTURE.md", 1_500)] {
        let page = Page::of(name);
        let found = (page.text.lines().count(), page.text.split_whitespace().count());
        assert!(found.0 <= 130 && found.1 <= words, "{name}: {} lines, {} words", found.0, found.1);
        let wide = page.text.lines().enumerate().filter(|(_, line)| line.chars().count() > WIDTH);
        fail_on(wide.map(|(at, line)| format!("{}: {} wide", page.at(at + 1), line.chars().count())));
    }
}

#[test]
fn paragraphs_have_five_lines_at_most() {
    let pages = kept_short();
    let prose = pages.iter().flat_map(|page| page.of_kind(&Kind::Prose).map(move |block| (page, block)));
    fail_on(prose.flat_map(|(page, block)| {
        let long = (block.lines.len() > LINES_OF_A_PARAGRAPH)
            .then(|| format!("{}: {} lines", page.at(block.line), block.lines.len()));
        let wide = block.lines.iter().filter(|line| line.chars().count() > WIDTH);
        long.into_iter()
            .chain(wide.map(|line| format!("{}: {} wide", page.at(block.line), line.chars().count())))
    }));
}

#[test]
fn sentences_are_short() {
    let mut wrong = Vec::new();
    for page in kept_short() {
        let prose: Vec<&Block> = page.of_kind(&Kind::Prose).collect();
        let lengths: Vec<usize> =
            prose.iter().flat_map(|block| sentences(block)).map(|text| words(&text)).collect();
        let (sum, count) = (lengths.iter().sum::<usize>(), lengths.len().max(1));
        if sum > WORDS_OF_A_SENTENCE_IN_THE_MEAN * count {
            wrong.push(format!("{}: {} words in {count} sentences", page.name, sum));
        }
        for block in prose {
            let long = sentences(block).into_iter().filter(|text| words(text) > WORDS_OF_A_SENTENCE);
            wrong.extend(long.map(|text| format!("{}: {} words: {text}", page.at(block.line), words(&text))));
        }
    }
    fail_on(wrong);
}

#[test]
fn cells_have_twelve_words_at_most() {
    let pages = kept_short();
    fail_on(pages.iter().flat_map(|page| {
        page.of_kind(&Kind::Table).flat_map(move |table| {
            let cells = table.lines.iter().flat_map(|row| row.split(" | "));
            let long = cells.filter(|cell| words(cell) > WORDS_OF_A_CELL);
            long.map(move |cell| format!("{}: {} words: {cell}", page.at(table.line), words(cell)))
        })
    }));
}

#[test]
fn the_changelog_has_bullets_of_two_lines_under_added_changed_and_fixed() {
    let page = Page::of("CHANGELOG.md");
    let parts: Vec<String> = page.of_kind(&Kind::Heading).map(Block::text).collect();
    let known = |part: &String| ["### Added", "### Changed", "### Fixed"].contains(&part.as_str());
    assert!(parts.iter().filter(|part| part.starts_with("###")).all(known), "{parts:?}");
    let long = page.of_kind(&Kind::Prose).filter(|block| block.lines.len() > LINES_OF_A_BULLET);
    fail_on(long.map(|block| page.at(block.line)));
}

/// The pages whose prose is bounded. The changelog has a bound of its own; others only need links that lead somewhere.
fn kept_short() -> Vec<Page> {
    let mut pages = manual();
    pages.extend(
        all().into_iter().filter(|page| ["ARCHITECTURE.md", "CONTRIBUTING.md"].contains(&page.name.as_str())),
    );
    pages
}

/// The sentences of a paragraph: they end with a full stop, a question mark, a colon or a semicolon.
fn sentences(block: &Block) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for word in block.text().split_whitespace() {
        let ends = word.trim_end_matches(['*', '_', ')', '"', '`']).ends_with(['.', '?', '!', ':', ';', '·']);
        let sentence = sentences.last_mut().expect("there is always one");
        sentence.push(' ');
        sentence.push_str(word);
        if ends {
            sentences.push(String::new());
        }
    }
    sentences.retain(|sentence| words(sentence) > 0);
    sentences
}

fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

fn fail_on(wrong: impl IntoIterator<Item = String>) {
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
