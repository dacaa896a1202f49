//! The shapes in which people write numbers: `1,234.50`, `1.234,50`, `1 234,50`, `1'234.50`. Currencies are elsewhere.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Longer runs of digits are codes, not numbers.
const MAX_LENGTH: usize = 40;

/// How `1.234` is read, where one mark stands before exactly three digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneMark {
    /// It groups thousands.
    Groups,
    /// It is the decimal mark.
    Decimal,
    /// A point is the decimal mark, a comma groups thousands.
    PointIsDecimal,
}

/// The text with full-width and Arabic-Indic digits and marks in their ASCII spelling. White space is folded before.
pub fn ascii(text: &str) -> String {
    let digit = |c: char, zero: char| char::from_digit(u32::from(c) - u32::from(zero), 10).unwrap_or(c);
    text.chars()
        .map(|c| match c {
            '０'..='９' => digit(c, '０'),
            '\u{660}'..='\u{669}' => digit(c, '\u{660}'),
            '\u{6f0}'..='\u{6f9}' => digit(c, '\u{6f0}'),
            '，' => ',',
            '．' | '\u{66b}' => '.',
            '\u{66c}' | '’' => '\'',
            _ => c,
        })
        .collect()
}

/// Where numbers stand in the text, percentages left out.
pub fn find_all(text: &str) -> impl Iterator<Item = Range<usize>> {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?x) ( [0-9]{1,3} (?:\ [0-9]{3})+ (?:[.,][0-9]+)?
                   | [0-9]{1,3} (?:'[0-9]{3})+ (?:[.,][0-9]+)?
                   | [0-9]+ (?:[.,][0-9]+)* (?:[.,]\ [0-9]{2})?
                   | \.+[0-9]+
                   ) (?: [^0-9] | $ )",
        )
        .expect("a tested expression")
    });
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let number = NUMBER.captures_at(text, from)?.get(1)?;
            from = number.end();
            if !text[from..].trim_start().starts_with('%') {
                return Some(number.range());
            }
        }
    })
}

/// The number as a plain decimal: digits, and where there are decimals a point and digits. None if the marks don't
/// make a number, as in a date.
pub fn decimal(written: &str, one_mark: OneMark) -> Option<String> {
    let grouped = written.contains('\'') || Regex::is_match(&GROUPED, written);
    let plain: String = written.chars().filter(|c| !matches!(c, ' ' | '\'')).collect();
    if plain.len() > MAX_LENGTH {
        return None;
    }
    if let Some(decimals) = plain.strip_prefix('.') {
        return Some(format!("0.{}", decimals.trim_start_matches('.')));
    }
    let marks: Vec<char> = plain.chars().filter(|c| !c.is_ascii_digit()).collect();
    let parts: Vec<&str> = plain.split(['.', ',']).collect();
    let has_decimals = match marks.as_slice() {
        [] => false,
        [_] if grouped => true,
        [mark] => one_mark_is_decimal(*mark, &parts, one_mark),
        [first, .., last] if first == last => parts.last().is_some_and(|part| part.len() < 3),
        _ => true,
    };
    let consistent = marks.is_empty() || marks[..marks.len() - 1].windows(2).all(|two| two[0] == two[1]);
    let (whole, decimals) = parts.split_at(parts.len() - usize::from(has_decimals));
    (consistent && groups_well(whole)).then(|| joined(&whole.concat(), decimals.first().copied()))
}

static GROUPED: LazyLock<Regex> = LazyLock::new(|| Regex::new("[0-9] [0-9]").expect("a tested expression"));

fn one_mark_is_decimal(mark: char, parts: &[&str], one_mark: OneMark) -> bool {
    let may_group = parts[1].len() == 3 && parts[0].len() <= 3 && parts[0] != "0";
    match one_mark {
        OneMark::Groups => !may_group,
        OneMark::Decimal => true,
        OneMark::PointIsDecimal => mark == '.' || !may_group,
    }
}

/// Thousands in threes; above them in twos as well, as in India.
fn groups_well(parts: &[&str]) -> bool {
    match parts {
        [_] => true,
        [first, middle @ .., last] => {
            let threes = middle.iter().all(|part| part.len() == 3);
            let twos = middle.iter().all(|part| part.len() == 2);
            (1..=3).contains(&first.len()) && last.len() == 3 && (threes || twos)
        }
        [] => false,
    }
}

fn joined(whole: &str, decimals: Option<&str>) -> String {
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    match decimals {
        Some(decimals) => format!("{whole}.{decimals}"),
        None => whole.to_owned(),
    }
}

/// The one number of the text, with its sign. Text around it is fine; a second number is not.
pub fn only(text: &str, one_mark: OneMark) -> Option<String> {
    let text = ascii(text);
    let mut found = find_all(&text);
    let (Some(range), None) = (found.next(), found.next()) else { return None };
    let before = text[..range.start].trim_end_matches(' ');
    let front = before.strip_suffix(['-', '−']);
    let negative = front.is_some_and(|front| !front.ends_with(char::is_alphanumeric));
    let number = decimal(&text[range], one_mark)?;
    Some(if negative { format!("-{number}") } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_has_many_spellings() {
        for (written, plain) in [
            ("51.77", Some("51.77")),
            ("51,77", Some("51.77")),
            ("1.234,50", Some("1234.50")),
            ("1,234.50", Some("1234.50")),
            ("1 234,50", Some("1234.50")),
            ("1'234.50", Some("1234.50")),
            ("12,800", Some("12800")),
            ("12.800", Some("12800")),
            ("0.800", Some("0.800")),
            ("1234.567", Some("1234.567")),
            ("1.234.567", Some("1234567")),
            ("1,234,567.8", Some("1234567.8")),
            ("12,34,567.00", Some("1234567.00")),
            ("1,234,50", Some("1234.50")),
            ("1 234 567", Some("1234567")),
            ("1 234.500", Some("1234.500")),
            ("36. 24", Some("36.24")),
            (".75", Some("0.75")),
            ("007", Some("7")),
            ("00.50", Some("0.50")),
            ("15.08.2017", None),
            ("1.2.3.4", None),
            ("1,2.3,4", None),
            ("12.345,678.90", None),
        ] {
            assert_eq!(decimal(written, OneMark::Groups).as_deref(), plain, "{written}");
        }
    }

    #[test]
    fn one_mark_before_three_digits_is_read_as_asked() {
        for (written, one_mark, plain) in [
            ("1.234", OneMark::Groups, "1234"),
            ("1.234", OneMark::Decimal, "1.234"),
            ("1.234", OneMark::PointIsDecimal, "1.234"),
            ("1,234", OneMark::PointIsDecimal, "1234"),
            ("1,23", OneMark::PointIsDecimal, "1.23"),
        ] {
            assert_eq!(decimal(written, one_mark).as_deref(), Some(plain), "{written} {one_mark:?}");
        }
    }

    #[test]
    fn only_one_number_may_stand_in_the_text() {
        for (text, number) in [
            ("In stock (22 available)", Some("22")),
            ("１，２３４円", Some("1234")),
            ("٣٤", Some("34")),
            ("-5", Some("-5")),
            ("− 5 °C", Some("-5")),
            ("SKU-5", Some("5")),
            ("10 % of 7", Some("7")),
            ("3 of 5", None),
            ("none", None),
            ("", None),
        ] {
            assert_eq!(only(text, OneMark::Groups).as_deref(), number, "{text}");
        }
    }
}
