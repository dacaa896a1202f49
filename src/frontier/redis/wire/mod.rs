//! What goes over the wire between a step and the script: the question and the answer, both as JSON values, which travel as
//! `MessagePack`. What a step does isn't here.

mod answer;
mod ask;
pub(super) mod mark;
mod value;

pub(super) use answer::{Admitted, Booked, admitted, answer, booked, names, refusal};
pub(super) use ask::{admission, ask, bar, booking, confirmation};
pub(super) use value::Odd;
