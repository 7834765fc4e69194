//! What an input made happen, as counters that guide a fuzzer: lines and branches of Python
//! modules, and events of the harness itself. Compiled Rust code is counted by the compiler's own
//! instrumentation, where it was built with it.
//!
//! libFuzzer knows the section in which the counters stand, clears them before each input, and
//! keeps an input that raises one of them into a new range.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

use crate::value::text::fnv1a;

/// How many counters there are; what happens is mapped to one of them by a hash.
const COUNTERS: usize = 1 << 14;

/// Aligned as libFuzzer's loops want it.
#[repr(align(64))]
struct Counters([AtomicU8; COUNTERS]);

impl Counters {
    const fn new() -> Counters {
        Counters([const { AtomicU8::new(0) }; COUNTERS])
    }
}

/// Whether something is counted, and what is asked for.
struct Switches {
    /// Off outside fuzzing, where threads would fight over the counters.
    counting: AtomicBool,
    /// While a finding is looked into: what the shrinker does says nothing about the input.
    paused: AtomicBool,
    /// Whether the next call of a component in another process is to say what ran. Only the first
    /// one for a case does: relations call with other inputs, and following a program slows it
    /// down.
    following: AtomicBool,
}

impl Switches {
    const fn new() -> Switches {
        let [counting, paused, following] = [const { AtomicBool::new(false) }; 3];
        Switches { counting, paused, following }
    }
}

#[expect(unsafe_code, reason = "the section is libFuzzer's, and holds bytes only")]
#[cfg_attr(target_os = "linux", unsafe(link_section = "__libfuzzer_extra_counters"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__libfuzzer_extra_counters"))]
static HAPPENED: Counters = Counters::new();

static SWITCHES: Switches = Switches::new();

thread_local! {
    /// Where what this thread does is counted, if not there.
    static APART: Cell<Option<(&'static Counters, &'static Switches)>> = const { Cell::new(None) };
}

/// Counts what this thread does for itself from now on: tests run side by side.
pub fn apart() {
    let (counters, switches) = (Box::new(Counters::new()), Box::new(Switches::new()));
    APART.set(Some((Box::leak(counters), Box::leak(switches))));
}

fn happened() -> &'static Counters {
    APART.get().map_or(&HAPPENED, |(counters, _)| counters)
}

fn switches() -> &'static Switches {
    APART.get().map_or(&SWITCHES, |(_, switches)| switches)
}

/// Begins to count.
pub fn start() {
    switches().counting.store(true, Relaxed);
}

/// Asks for what runs in the next call.
#[cfg(feature = "fuzz")]
pub fn follow_next() {
    switches().following.store(true, Relaxed);
}

/// Whether what runs in this call is asked for.
pub fn is_followed() -> bool {
    switches().following.swap(false, Relaxed)
}

/// Counts nothing while `work` is done.
#[cfg(feature = "fuzz")]
pub fn paused<T>(work: impl FnOnce() -> T) -> T {
    switches().paused.store(true, Relaxed);
    let done = work();
    switches().paused.store(false, Relaxed);
    done
}

/// Whether it counts.
pub fn is_counting() -> bool {
    switches().counting.load(Relaxed)
}

/// Notes something that happened, in one or more words: which side was clipped, which branch of
/// the oracle was taken.
#[inline]
pub fn event(words: &[&str]) {
    if switches().counting.load(Relaxed) {
        // A word ends with a byte that no text has.
        let bytes = words.iter().flat_map(|word| word.bytes().chain([0xff]));
        raise(fnv1a(bytes) as usize);
    }
}

/// Notes that a place in a Python module ran.
pub fn ran(place: usize) {
    if switches().counting.load(Relaxed) {
        raise(place);
    }
}

fn raise(index: usize) {
    if switches().paused.load(Relaxed) {
        return;
    }
    let counter = &happened().0[index % COUNTERS];
    counter.store(counter.load(Relaxed).saturating_add(1), Relaxed);
}

/// Sets all counters to 0, as libFuzzer does before each input.
#[cfg(feature = "fuzz")]
pub fn clear() {
    happened().0.iter().for_each(|counter| counter.store(0, Relaxed));
}

/// What happened since the last [`clear`]: counters with the range in which each is.
#[cfg(feature = "fuzz")]
pub fn features() -> impl Iterator<Item = (usize, u8)> {
    let counts = happened().0.iter().map(|counter| counter.load(Relaxed)).enumerate();
    counts.filter(|(_, count)| *count > 0).map(|(index, count)| (index, range(count)))
}

/// Counts as fuzzers tell them apart: 1, 2, 3, 4–7, 8–15, 16–31, 32–127, 128 and more.
#[cfg(feature = "fuzz")]
fn range(count: u8) -> u8 {
    match count {
        0..=3 => count,
        4..=7 => 4,
        8..=15 => 5,
        16..=31 => 6,
        32..=127 => 7,
        128.. => 8,
    }
}
