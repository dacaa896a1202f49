//! `[notify]` of `paced.toml`: by what this machine tells of events, and of which.

use std::fmt;

use toml::de::DeValue;
use url::Url;

use super::KEYS;
use crate::site::read::{Entry, Section};
use crate::task::EventKind;

/// The parts of which a share is counted.
pub const SHARE_PARTS: u64 = 10_000;
/// Of a run's ended pages, so many may be dead where nothing else is said: a tenth.
pub const DEAD_SHARE: u64 = SHARE_PARTS / 10;

const COMMAND: &str = "write it as in command = [\"/usr/local/bin/tell\"]";
const URL: &str = "write it as in url = \"https://hooks.example/paced\"";
const SHARE: &str = "write a share above 0 and up to 1, as in dead_share = 0.1";

/// By what an operator is told, and of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notify {
    /// By what.
    pub to: NotifyTo,
    /// Of these.
    pub on: Vec<EventKind>,
    /// How many of a run's ended pages are dead, of [`SHARE_PARTS`], before that is told.
    pub dead_share: u64,
}

/// By what an operator is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotifyTo {
    /// A program with its arguments: it reads an event from its standard input.
    Command(Vec<String>),
    /// An address that an event is posted to.
    Webhook(WebhookUrl),
}

/// A URL whose path may be as good as a password: it is shown without it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl(Url);

impl WebhookUrl {
    /// The whole of it, for the request.
    pub(crate) fn whole(&self) -> &Url {
        &self.0
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/…", self.0.origin().ascii_serialization())
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for NotifyTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(words) => f.write_str(words.first().map_or("", String::as_str)),
            Self::Webhook(url) => url.fmt(f),
        }
    }
}

/// What the section says.
pub(super) fn read(entry: &Entry<'_>) -> Option<Notify> {
    let section = entry.section(KEYS, "notify", "write [notify] on its own line")?;
    let to = to(&section);
    let on = section.get("on").map_or_else(|| Some(every_kind()), |entry| kinds(&entry));
    let dead_share = section.get("dead_share").map_or(Some(DEAD_SHARE), |entry| share(&entry));
    Some(Notify { to: to?, on: on?, dead_share: dead_share? })
}

fn to(section: &Section<'_>) -> Option<NotifyTo> {
    match (section.get("command"), section.get("url")) {
        (Some(command), None) => words(&command).map(NotifyTo::Command),
        (None, Some(url)) => address(&url).map(NotifyTo::Webhook),
        (Some(_), Some(url)) => url.refuse("[notify] has a `command` and a `url`", "keep one of them"),
        (None, None) => {
            section.missing("[notify] has neither `command` nor `url`", format!("{COMMAND}, or {URL}"))
        }
    }
}

fn words(entry: &Entry<'_>) -> Option<Vec<String>> {
    if !entry.value.is_array() {
        return entry.wrong_type("a list of words", COMMAND);
    }
    let words = entry.some_list("`command` is empty", COMMAND);
    let texts: Option<Vec<String>> = words.iter().map(|word| word.text().map(str::to_owned)).collect();
    texts.filter(|texts| !texts.is_empty())
}

fn address(entry: &Entry<'_>) -> Option<WebhookUrl> {
    let text = entry.text()?;
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Some(WebhookUrl(url)),
        _ => entry.refuse("`url` is no URL of http or https", URL),
    }
}

fn every_kind() -> Vec<EventKind> {
    EventKind::WORDS.map(|(_, kind)| kind).to_vec()
}

fn kinds(entry: &Entry<'_>) -> Option<Vec<EventKind>> {
    let named = entry.some_list("`on` is empty", "name an event, or remove the line: then it is all of them");
    let kinds: Option<Vec<EventKind>> = named.iter().map(|entry| entry.word(&EventKind::WORDS)).collect();
    let kinds = kinds.filter(|kinds| !kinds.is_empty())?;
    Some(every_kind().into_iter().filter(|kind| kinds.contains(kind)).collect())
}

fn share(entry: &Entry<'_>) -> Option<u64> {
    let number = match entry.value {
        DeValue::Float(float) => float.as_str().replace('_', "").parse::<f64>().ok(),
        DeValue::Integer(integer) => integer.as_str().parse().ok(),
        _ => return entry.wrong_type("a number", SHARE),
    };
    let Some(number) = number.filter(|number| *number > 0.0 && *number <= 1.0) else {
        return entry.refuse("`dead_share` is out of its range", SHARE);
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 10,000")]
    let parts = (number * 10_000.0).round() as u64;
    Some(parts.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn notify(text: &str) -> Notify {
        let settings = Settings::parse(&format!("[notify]\n{text}"), "paced.toml").expect("good settings");
        assert_eq!(settings.fleet, None, "it is this machine's own");
        settings.notify.expect("it is there")
    }

    fn told(text: &str) -> Vec<String> {
        let errors = Settings::parse(&format!("[notify]\n{text}"), "paced.toml")
            .map_or_else(|errors| errors.errors, |_| Vec::new());
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn c19_a_command_tells_of_everything_unless_it_says_of_what() {
        let short = notify("command = [\"/usr/local/bin/tell\", \"-x\"]");
        let command = ["/usr/local/bin/tell", "-x"].map(str::to_owned).to_vec();
        assert_eq!(
            short,
            Notify { to: NotifyTo::Command(command), on: every_kind(), dead_share: DEAD_SHARE }
        );
        let long = notify("command = [\"tell\"]\non = [\"walled\", \"run_failed\"]\ndead_share = 0.25");
        assert_eq!((long.on, long.dead_share), (vec![EventKind::RunFailed, EventKind::Walled], 2_500));
        assert_eq!(notify("command = [\"t\"]\ndead_share = 1").dead_share, SHARE_PARTS);
    }

    #[test]
    fn c19_a_webhook_is_shown_without_what_lets_one_in() {
        let hook = notify("url = \"https://hooks.example:8443/services/T0/secret?key=1\"");
        assert_eq!(hook.to.to_string(), "https://hooks.example:8443/…");
        assert!(!format!("{hook:?}").contains("secret"), "{hook:?}");
        let NotifyTo::Webhook(url) = hook.to else { panic!("it is one") };
        assert!(url.whole().as_str().ends_with("/services/T0/secret?key=1"));
    }

    #[test]
    fn c19_what_is_wrong_with_it_is_said_with_its_place_and_what_to_do() {
        for (text, said) in [
            (
                "on = [\"walled\"]",
                "1:1: [notify] has neither `command` nor `url`; write it as in command = \
                 [\"/usr/local/bin/tell\"], or write it as in url = \"https://hooks.example/paced\"",
            ),
            (
                "command = [\"a\"]\nurl = \"http://a/\"",
                "3:7: [notify] has a `command` and a `url`; keep one of them",
            ),
            (
                "command = \"tell me\"",
                "2:11: `command` is a text, not a list of words; write it as in command = [\"/usr/local/bin/tell\"]",
            ),
            ("command = []", "2:11: `command` is empty; write it as in command = [\"/usr/local/bin/tell\"]"),
            ("command = [\" \"]", "2:12: `command` is empty; write something in it or remove it"),
            (
                "url = \"ftp://a/\"",
                "2:7: `url` is no URL of http or https; write it as in url = \"https://hooks.example/paced\"",
            ),
            ("command = [\"a\"]\non = [\"waled\"]", "3:7: `on` can't be `waled`; did you mean `walled`?"),
            (
                "command = [\"a\"]\non = []",
                "3:6: `on` is empty; name an event, or remove the line: then it is all of them",
            ),
            (
                "command = [\"a\"]\ndead_share = 1.5",
                "3:14: `dead_share` is out of its range; write a share above 0 and up to 1, as in dead_share = 0.1",
            ),
            (
                "command = [\"a\"]\ndead_share = 0",
                "3:14: `dead_share` is out of its range; write a share above 0 and up to 1, as in dead_share = 0.1",
            ),
            (
                "command = [\"a\"]\ndead_share = \"10%\"",
                "3:14: `dead_share` is a text, not a number; write a share above 0 and up to 1, as in dead_share = 0.1",
            ),
            (
                "command = [\"a\"]\nto = 1",
                "3:1: unknown key `to`; remove it; [notify] takes command, url, on, dead_share",
            ),
        ] {
            assert_eq!(told(text), [format!("paced.toml:{said}")], "{text}");
        }
    }
}
