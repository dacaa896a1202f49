//! Cents behind the sign, as French shops write them: `12€99`.

use super::currency;

/// What shops say of a price, right behind it.
const WORDS: [&str; 12] =
    ["ttc", "ht", "htva", "tvac", "tva", "dont", "soit", "au lieu", "l'unité", "l'un", "la pièce", "le lot"];

/// The two digits after the sign that stand for cents, of a whole number between `before` and `after`. A sign before
/// the number is the number's own, so that the one after it is the next number's.
pub fn behind_sign<'a>(before: &str, after: &'a str) -> Option<&'a str> {
    if currency::beside(before, "").is_some() {
        return None;
    }
    // Only the euro sign is written apart from the number before it: `5 £10` are two numbers.
    let rest = after.strip_prefix(['€', '£', '$']).or_else(|| after.trim_start().strip_prefix('€'))?;
    let digits = rest.trim_start();
    let is_apart = digits.len() < rest.len();
    let cents = digits.get(..2).filter(|cents| cents.bytes().all(|b| b.is_ascii_digit()))?;
    let rest = &digits[2..];
    let ends = if is_apart { ends_price(rest) } else { ends_cents(rest) };
    ends.then_some(cents)
}

/// Whether the digits before `rest` are no part of a longer number, of a unit or of a price with its own sign.
fn ends_cents(rest: &str) -> bool {
    let next = rest.trim_start();
    let is_glued = rest.len() == next.len() && rest.starts_with(char::is_alphanumeric);
    !(goes_on(rest) || next.starts_with('%') || currency::begins(next) || is_glued && !begins_word(next))
}

/// Whether nothing stands behind the digits that they could count: `5 € 10 pièces`. They stand apart from the sign.
fn ends_price(rest: &str) -> bool {
    let next = rest.trim_start();
    let unit = next.strip_prefix('/').map(str::trim_start);
    let is_mark = next.starts_with(['*', '(', ')', '.', ';', '!']);
    !goes_on(rest) && (next.is_empty() || is_mark || begins_word(unit.unwrap_or(next)) || is_unit(unit))
}

/// A point or comma with nothing behind it ends a sentence; otherwise it makes the digits a number of their own.
fn goes_on(rest: &str) -> bool {
    let marked = rest.strip_prefix(['.', ',']);
    rest.starts_with(|c: char| c.is_ascii_digit())
        || marked.is_some_and(|rest| !(rest.is_empty() || rest.starts_with(' ')))
}

/// `/kg`, but not `/48h`.
fn is_unit(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.starts_with(char::is_alphabetic))
}

fn begins_word(text: &str) -> bool {
    let text = text.chars().take(20).flat_map(char::to_lowercase).collect::<String>();
    WORDS
        .iter()
        .filter_map(|word| text.strip_prefix(word))
        .any(|rest| !rest.starts_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_behind_the_sign_are_cents() {
        for (before, after, cents) in [
            ("", "€99", Some("99")),
            ("", "€99 TTC", Some("99")),
            ("", "€99TTC", Some("99")),
            ("", "€99.", Some("99")),
            ("", "€99, livré", Some("99")),
            ("", "€99/kg", Some("99")),
            ("", "€99 kg", Some("99")),
            ("", " €99", Some("99")),
            ("", "€99 au lieu de 19€99", Some("99")),
            ("dès ", "€99 - 19€99", Some("99")),
            ("", "£50", Some("50")),
            ("", "€ 99", Some("99")),
            ("", " € 99", Some("99")),
            ("", "€ 99 dont 0,02 € d'éco-part", Some("99")),
            ("", "€ 99 l'unité", Some("99")),
            ("", "€ 50/kg", Some("50")),
            ("", "€ 50 / la pièce", Some("50")),
            ("", "€ 99*", Some("99")),
        ] {
            assert_eq!(behind_sign(before, after), cents, "{before}12{after}");
        }
    }

    #[test]
    fn other_numbers_behind_the_sign_are_no_cents() {
        for (before, after) in [
            ("", "€"),
            ("", "€ - 20 €"),
            ("", "€9"),
            ("", "€990"),
            ("", "€99.50"),
            ("", "€99,-"),
            ("", "€15€"),
            ("", "€15 EUR"),
            ("", "€ 15 €"),
            ("", "€50%"),
            ("", "€24h"),
            ("", " € 50 g"),
            ("", " € 10 pièces"),
            ("", " € 24h"),
            ("", " € 24/48h"),
            ("", " € 10 - 15 jours"),
            ("", " € 10, 20 ou 30 pièces"),
            ("$", " $10"),
            ("$", "$10"),
            ("€", " €15"),
            ("", " £10"),
            ("", " 99"),
            ("", "€é9"),
        ] {
            assert_eq!(behind_sign(before, after), None, "{before}12{after}");
        }
    }
}
