//! See `src/headers.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| paced_fuzz::headers::hold(bytes));
