//! See `src/site_file.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| paced_fuzz::site_file::hold(bytes));
