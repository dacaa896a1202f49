//! See `src/foreign_warc.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| paced_fuzz::foreign_warc::hold(bytes));
