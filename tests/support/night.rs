//! Whether there is a night's time: `SHAKEDOWN_NIGHT=1`, as `.ci/run --night` sets it.

pub(crate) fn is_night() -> bool {
    std::env::var_os("SHAKEDOWN_NIGHT").is_some_and(|set| set == "1")
}
