//! See `src/canonical_url.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| paced_fuzz::canonical_url::hold(bytes));
