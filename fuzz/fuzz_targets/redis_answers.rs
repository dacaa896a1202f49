//! See `src/redis_answers.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| paced_fuzz::redis_answers::hold(bytes));
