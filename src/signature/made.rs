//! A signature that a site's owner made for its crawler, as a shop's administration hands it out: header lines that hold until a
//! given time.

use sfv::{BareItem, Dictionary, InnerList, ListEntry, Parser};

use super::{AGENT, INPUT, SIGNATURE, SignatureFields};
use crate::clock::Timestamp;

/// The header fields that may be there, in the order in which they are sent.
const FIELDS: [&str; 3] = [AGENT, INPUT, SIGNATURE];

/// The header fields in a text of lines as in `Signature-Input: sig1=(…)`. A line's end may be written as `\n`, as files of
/// variables need it.
///
/// # Errors
/// In words, which don't repeat the text.
pub fn read(text: &str) -> Result<SignatureFields, String> {
    let mut found: [Option<&str>; 3] = [None; 3];
    let lines = text.split('\n').flat_map(|line| line.split("\\n")).map(str::trim);
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or("a line is no header field")?;
        let name = name.trim().to_ascii_lowercase();
        let at = FIELDS.iter().position(|field| *field == name);
        let at = at.ok_or("it has another field than Signature-Agent, Signature-Input and Signature")?;
        if found[at].replace(value.trim()).is_some() {
            return Err(format!("it has {name} twice"));
        }
    }
    let value = |at: usize| found[at].ok_or(format!("it has no {}", FIELDS[at]));
    let (inputs, signatures) = (dictionary(value(1)?, INPUT)?, dictionary(value(2)?, SIGNATURE)?);
    let mut params = inputs.iter().map(|(label, entry)| match entry {
        ListEntry::InnerList(params) if signatures.contains_key(label) => Ok(params),
        _ => Err(format!("its {INPUT} and its {SIGNATURE} don't belong together")),
    });
    let first = params.next().ok_or(format!("its {INPUT} is empty"))??;
    let ends = params.try_fold(end(first), |ends, params| {
        params.map(|params| [ends, end(params)].into_iter().flatten().min())
    })?;
    let key_id = match first.params.get("keyid") {
        Some(BareItem::String(id)) => id.as_str().to_owned(),
        _ => return Err(format!("its {INPUT} has no keyid")),
    };
    let fields = FIELDS.into_iter().zip(found).filter_map(|(name, value)| Some((name, value?.to_owned())));
    Ok(SignatureFields { fields: fields.collect(), key_id, ends })
}
fn dictionary(value: &str, name: &str) -> Result<Dictionary, String> {
    Parser::new(value).parse().map_err(|_| format!("its {name} is no dictionary (RFC 9651)"))
}

/// When a signature ends, if it does.
fn end(params: &InnerList) -> Option<Timestamp> {
    match params.params.get("expires")? {
        BareItem::Integer(seconds) => Some(Timestamp::from_millis(i64::from(*seconds).saturating_mul(1_000))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT_LINE: &str =
        "Signature-Input: sig1=(\"@authority\" \"signature-agent\");keyid=\"abc\";expires=1800000000";

    #[test]
    fn lines_of_a_shop_are_its_header_fields_until_they_end() {
        let agent = "Signature-Agent: \"https://shop.example\"";
        for ends in ["\n", "\\n", "\r\n", "\n\n"] {
            let text = [INPUT_LINE, "Signature: sig1=:AAAA:", agent].join(ends);
            let made = read(&text).expect("a signature");
            let names: Vec<_> = made.fields.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, FIELDS);
            assert_eq!(made.fields[0].1, "\"https://shop.example\"");
            assert_eq!(made.ends, Some(Timestamp::from_millis(1_800_000_000_000)));
            assert_eq!(made.key_id, "abc");
        }
    }

    #[test]
    fn of_several_signatures_the_first_end_counts_and_one_without_an_end_has_none() {
        let made = |inputs: &str, signatures: &str| {
            read(&format!("signature-input:{inputs}\nsignature:{signatures}"))
        };
        let two = made("a=();keyid=\"k\";expires=9, b=();expires=7", "a=:AA==:, b=:AA==:").expect("two");
        assert_eq!(two.ends, Some(Timestamp::from_millis(7_000)));
        assert_eq!(made("a=();keyid=\"k\"", "a=:AA==:").expect("one").ends, None);
    }

    #[test]
    fn what_is_no_signature_is_refused_without_a_word_of_it() {
        for (text, why) in [
            ("planted", "a line is no header field"),
            ("Cookie: planted", "another field than"),
            (INPUT_LINE, "no signature"),
            ("Signature: sig1=:AAAA:", "no signature-input"),
            ("Signature-Input: planted=\nSignature: a=:AA==:", "is no dictionary"),
            ("Signature-Input: \nSignature: a=:AA==:", "is empty"),
            ("Signature-Input: a=();keyid=\"planted\"\nSignature: b=:AA==:", "don't belong together"),
            ("Signature-Input: a=1\nSignature: a=:AA==:", "don't belong together"),
            ("Signature-Input: a=()\nSignature: a=:AA==:", "no keyid"),
            ("Signature: planted\nSignature: planted", "twice"),
        ] {
            let Err(told) = read(text) else { panic!("{text}") };
            assert!(told.contains(why) && !told.contains("planted"), "{text}: {told}");
        }
    }
}
