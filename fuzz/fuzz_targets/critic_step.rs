#![no_main]
libfuzzer_sys::fuzz_target!(init: shakedown::fuzz::init(), |bytes: &[u8]| shakedown::fuzz::one::<shakedown::contracts::critic_step::CriticStep>(bytes));
