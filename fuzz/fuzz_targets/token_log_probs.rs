#![no_main]
libfuzzer_sys::fuzz_target!(init: shakedown::door::fuzz::init(), |bytes: &[u8]| shakedown::door::fuzz::one::<shakedown::contracts::token_log_probs::TokenLogProbs>(bytes));
