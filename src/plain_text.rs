//! Text from outside as it may be shown: nothing in it moves a cursor, hides, or turns the reading direction.

use std::borrow::Cow;
use std::fmt::{Display, Write};

/// One line: what could steer a terminal is escaped, line ends too. A tab stays.
pub fn plain(text: impl Display) -> String {
    let text = text.to_string();
    match escaped(&text, |c| c.escape_unicode().to_string()) {
        Cow::Owned(escaped) => escaped,
        Cow::Borrowed(_) => text,
    }
}

/// JSON with the same characters escaped as JSON escapes them: its values stay what they are.
pub fn plain_json(json: &str) -> Cow<'_, str> {
    escaped(json, |c| {
        let mut units = [0; 2];
        c.encode_utf16(&mut units).iter().fold(String::new(), |mut text, unit| {
            let _ = write!(text, "\\u{unit:04x}");
            text
        })
    })
}

fn escaped(text: &str, escape: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let pieces = text.chars().map(|c| if steers(c) { escape(c) } else { c.to_string() });
    Cow::Owned(pieces.collect())
}

/// Controls (C0 but the tab, DEL, C1), marks and overrides of the direction, line ends of Unicode, and what no font draws: tags, and
/// the mark of byte order.
fn steers(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}');
    let is_unseen = matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    turns || is_unseen || (c.is_control() && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped_and_all_else_stays() {
        for (text, shown) in [
            ("a\tb c\u{a0}é 日本 🧑\u{200d}🌾", "a\tb c\u{a0}é 日本 🧑\u{200d}🌾"),
            ("\u{1b}[2J\r\n\u{7f}\0", "\\u{1b}[2J\\u{d}\\u{a}\\u{7f}\\u{0}"),
            ("\u{80}\u{9b}31m\u{9f}", "\\u{80}\\u{9b}31m\\u{9f}"),
            ("gpj.\u{202e}exe\u{2066}\u{2069}", "gpj.\\u{202e}exe\\u{2066}\\u{2069}"),
            ("\u{200e}\u{200f}\u{61c}\u{2028}\u{206f}", "\\u{200e}\\u{200f}\\u{61c}\\u{2028}\\u{206f}"),
            ("\u{fffa}\u{e0041}\u{feff}", "\\u{fffa}\\u{e0041}\\u{feff}"),
        ] {
            assert_eq!(plain(text), shown);
        }
    }

    #[test]
    fn json_is_the_same_value_without_what_steers() {
        let value = serde_json::json!({ "a\u{9b}": "\u{1b}\u{7f}\u{202e}\u{e0041}\n🧑\u{200d}🌾" });
        let json = value.to_string();
        let shown = plain_json(&json);
        assert!(!shown.contains(steers), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), value);
        assert!(shown.contains("\\u202e\\udb40\\udc41"), "{shown}");
    }
}
