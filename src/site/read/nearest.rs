//! Which known word a misspelt one was meant to be. Reporting it is done elsewhere.

/// The known word nearest to `word`, if one is so near that it may be meant.
pub(crate) fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let most = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (edits(&word.to_lowercase(), candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance: how many characters to insert, remove or replace.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, f) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, t) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(f != *t);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_finds_the_one_that_was_meant() {
        let known = ["interval", "parallel", "robots", "css", "as", "all"];
        for (word, meant) in [
            ("intervall", Some("interval")),
            ("Interval", Some("interval")),
            ("paralell", Some("parallel")),
            ("robot", Some("robots")),
            ("cs", Some("css")),
            ("delay", None),
            ("xpath", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
