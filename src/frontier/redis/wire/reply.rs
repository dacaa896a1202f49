//! What a batch of steps is answered: the server's time, and an answer to each of them. What an answer means to its step is
//! in `answers.rs`.

use serde_json::Value;

use crate::frontier::table::Reply;
use crate::frontier::value::Decoded;

/// The last millisecond of the year 9999, since 1970: a clock that is past it counts something else.
const LATEST: i64 = 253_402_300_799_999;

/// The answer to a batch, unpacked.
#[derive(Debug)]
pub(in crate::frontier::redis) struct BatchReply {
    /// The server's time, in ms since 1970.
    pub(in crate::frontier::redis) now: i64,
    /// What the steps are answered, one after the other.
    pub(in crate::frontier::redis) answers: Vec<Value>,
}

impl BatchReply {
    /// Unpacks it; else why that can't be done.
    pub(in crate::frontier::redis) fn read(packed: &[u8]) -> Result<Self, String> {
        let (now, answers) = rmp_serde::from_slice(packed).map_err(|why| why.to_string())?;
        if !(0..=LATEST).contains(&now) {
            return Err(format!("{now} is no time"));
        }
        Ok(Self { now, answers })
    }
}

/// What a Redis answered to a batch, each answer read as that to every step there is, for fuzzing: as it is shown to programmers,
/// or why it can't be read.
pub fn redis_answers(packed: &[u8]) -> Result<impl Iterator<Item = Result<String, String>>, String> {
    let shown = |read: Decoded<Reply>| match read {
        Ok(reply) => Ok(format!("{reply:?}")),
        Err(why) => Err(why.to_string()),
    };
    let BatchReply { answers, .. } = BatchReply::read(packed)?;
    Ok(answers.into_iter().flat_map(|answer| Reply::of_each_step(&answer)).map(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_no_clock_shows_is_no_answer() {
        let read = |now: i64| {
            let packed = rmp_serde::to_vec(&(now, [true])).expect("packed");
            BatchReply::read(&packed).map(|reply| reply.answers.len())
        };
        assert_eq!((read(0), read(LATEST)), (Ok(1), Ok(1)));
        for now in [-1, LATEST + 1, i64::MAX, i64::MIN] {
            assert_eq!(read(now), Err(format!("{now} is no time")));
        }
    }
}
