//! A short text that stands for a long one, so that a change of a few bytes reaches any size.
//!
//! `{%900*piece%}` is the piece 900 times, which may hold others. `#%` in it is which time it is, from 0.

/// Pieces within pieces, at most: what is deeper stands for itself.
const DEEPEST: usize = 8;

/// A part of a recipe.
#[derive(Debug)]
enum Part<'a> {
    Bytes(&'a [u8]),
    Which,
    /// It is never empty.
    Times(usize, Vec<Part<'a>>),
}

/// The text that a recipe stands for, cut behind so many bytes.
pub fn grown(recipe: &[u8], most: usize) -> Vec<u8> {
    let mut text = Vec::new();
    write(&parts(recipe, 0), 0, most, &mut text);
    text.truncate(most);
    text
}

fn write(parts: &[Part<'_>], which: usize, most: usize, text: &mut Vec<u8>) {
    for part in parts {
        match part {
            Part::Bytes(bytes) => text.extend_from_slice(bytes),
            Part::Which => text.extend_from_slice(which.to_string().as_bytes()),
            Part::Times(times, inner) => {
                for nth in 0..*times {
                    write(inner, nth, most, text);
                    if text.len() >= most {
                        return;
                    }
                }
            }
        }
    }
}

fn parts(recipe: &[u8], depth: usize) -> Vec<Part<'_>> {
    let (mut found, mut plain, mut at) = (Vec::new(), 0, 0);
    while at < recipe.len() {
        let Some((part, length)) = part(&recipe[at..], depth) else {
            at += 1;
            continue;
        };
        found.extend(bytes(&recipe[plain..at]));
        found.extend(part);
        at += length;
        plain = at;
    }
    found.extend(bytes(&recipe[plain..]));
    found
}

fn bytes(plain: &[u8]) -> Option<Part<'_>> {
    (!plain.is_empty()).then_some(Part::Bytes(plain))
}

/// The part other than plain bytes that begins here, unless nothing comes of it, and how long it is in the recipe.
fn part(recipe: &[u8], depth: usize) -> Option<(Option<Part<'_>>, usize)> {
    if recipe.starts_with(b"#%") {
        return Some((Some(Part::Which), 2));
    }
    let (times, piece, length) = repeated(recipe).filter(|_| depth < DEEPEST)?;
    let inner = parts(piece, depth + 1);
    Some(((times > 0 && !inner.is_empty()).then_some(Part::Times(times, inner)), length))
}

/// How often the piece is repeated that begins here, the piece, and the length of all that.
fn repeated(recipe: &[u8]) -> Option<(usize, &[u8], usize)> {
    let digits = recipe.strip_prefix(b"{%")?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let start = 2 + digits;
    if digits == 0 || recipe.get(start) != Some(&b'*') {
        return None;
    }
    let times = std::str::from_utf8(&recipe[2..start]).ok()?.parse().unwrap_or(usize::MAX);
    let (mut open, mut at) = (1, start + 1);
    while open > 0 {
        match recipe.get(at..at + 2)? {
            b"{%" => (open, at) = (open + 1, at + 2),
            b"%}" => (open, at) = (open - 1, at + 2),
            _ => at += 1,
        }
    }
    Some((times, &recipe[start + 1..at - 2], at))
}
