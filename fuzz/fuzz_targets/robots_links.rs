//! See `src/robots_links.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| paced_fuzz::robots_links::hold(bytes));
