//! The `charset` of a `Content-Type`, as browsers read it (WHATWG MIME Sniffing section 4, Fetch section 2.2.2).

/// The label after the first `charset=`; where a field was sent twice and joined with a comma, that of the last type.
pub fn charset(content_type: &str) -> Option<String> {
    let (mut named, mut essence_before) = (None, None);
    for value in values(content_type) {
        let (essence, mut rest) = value.split_once(';').unwrap_or((value, ""));
        let essence = essence.trim_matches(SPACE).to_ascii_lowercase();
        if !essence.contains('/') || essence == "*/*" {
            continue;
        }
        if essence_before.as_ref() != Some(&essence) {
            named = None;
        }
        essence_before = Some(essence);
        while !rest.is_empty() {
            let (name, value, after) = parameter(rest);
            if name.eq_ignore_ascii_case("charset") && value.is_some() {
                named = value;
                break;
            }
            rest = after;
        }
    }
    named
}

const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// The field's values, divided by commas outside of quotes.
fn values(field: &str) -> Vec<&str> {
    let (mut values, mut from) = (Vec::new(), 0);
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in field.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ',' if !quoted => {
                values.push(&field[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    values.push(&field[from..]);
    values
}

/// The next parameter, and what follows it; no value where it has none that counts.
fn parameter(text: &str) -> (&str, Option<String>, &str) {
    let text = text.trim_start_matches(SPACE);
    let end = text.find([';', '=']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let Some(value) = rest.strip_prefix('=') else { return (name, None, rest.get(1..).unwrap_or_default()) };
    if let Some(quoted) = value.strip_prefix('"') {
        let (value, rest) = unquoted(quoted);
        return (name, Some(value), rest.split_once(';').map_or("", |(_, after)| after));
    }
    let (value, rest) = value.split_once(';').unwrap_or((value, ""));
    let value = value.trim_end_matches(SPACE);
    (name, (!value.is_empty()).then(|| value.to_owned()), rest)
}

/// A quoted string without its quotes; one that isn't closed goes up to the end.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(chars.next().map_or('\\', |(_, c)| c)),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_is_what_browsers_take_for_it() {
        for (field, label) in [
            ("text/html", None),
            ("text/html; charset=utf-8", Some("utf-8")),
            ("text/html;\tCHARSET=utf-8 ;x", Some("utf-8")),
            ("text/html; charset=\"a\\\"b\"junk; charset=c", Some("a\"b")),
            ("text/html; charset=\"utf-8", Some("utf-8")),
            ("text/html; charset='utf-8'", Some("'utf-8'")),
            ("text/html; charset = utf-8", None),
            ("text/html; charset; charset=; charset=utf-8", Some("utf-8")),
            ("text/html; a=\"x; charset=b, c/d\"; charset=utf-8", Some("utf-8")),
            ("text/html; charset=a, text/html", Some("a")),
            ("text/html; charset=a, text/plain", None),
            ("text/html; charset=a, */*, text/plain; charset=b", Some("b")),
            ("charset=utf-8", None),
            ("", None),
        ] {
            assert_eq!(charset(field).as_deref(), label, "{field}");
        }
    }
}
