#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shakedown::fuzz::parsers::data_set(bytes));
