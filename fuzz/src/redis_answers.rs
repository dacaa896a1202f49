//! What a Redis answers: bytes as its protocol (RESP), as a packed answer to a batch of steps, or as JSON that is packed first,
//! which may be a recipe.

use paced::internals::frontier::redis_answers;
use redis::{FromRedisValue, parse_redis_value};
use serde_json::Value;

use super::cost::Linear;
use super::recipe::grown;

const MOST_BYTES: usize = 128 << 10;
/// A step's answer in Rust's own spelling, which names each field. A byte of a text may be written as six, and a row has about
/// forty fields.
const GIVEN: Linear = Linear { least: 4 << 10, each: 64 };
/// A batch has 64 steps at the most, and there are about 50 kinds of steps.
const LOOKED_AT: usize = 64 * 50;
/// What can't be read is shown in so many letters.
const LONGEST_REASON: usize = 1 << 10;

/// Whatever comes, each step has an answer of its own type, or is told in a line that it can't be read; and neither is longer
/// than what came allows.
pub fn hold(bytes: &[u8]) {
    if let Ok(answer) = parse_redis_value(bytes)
        && let Ok(packed) = Vec::<u8>::from_redis_value(answer)
    {
        steps(&packed);
    }
    match serde_json::from_slice::<Value>(&grown(bytes, MOST_BYTES)) {
        Ok(json) => steps(&rmp_serde::to_vec(&json).expect("JSON can be packed")),
        Err(_) => steps(bytes),
    }
}

fn steps(packed: &[u8]) {
    let answers = match redis_answers(packed) {
        Ok(answers) => answers,
        Err(why) => return assert!(!why.is_empty() && why.len() <= LONGEST_REASON, "{why}"),
    };
    for answer in answers.take(LOOKED_AT) {
        match answer {
            Ok(shown) => GIVEN.holds(shown.len(), packed.len(), "bytes of an answer"),
            Err(why) => assert!(!why.is_empty() && why.len() <= LONGEST_REASON, "{why}"),
        }
    }
}
