//! See `src/robots.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| paced_fuzz::robots::hold(bytes));
