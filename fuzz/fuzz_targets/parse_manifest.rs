#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shakedown::door::fuzz::parsers::manifest(bytes));
