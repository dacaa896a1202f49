//! See `src/warc_tail.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| paced_fuzz::warc_tail::hold(bytes));
