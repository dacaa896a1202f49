//! See `src/page.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| paced_fuzz::page::hold(bytes));
