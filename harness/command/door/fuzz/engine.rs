//! libFuzzer as a library: it makes inputs, and keeps those that made something new happen.

use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Mutex;

use libfuzzer_sys as _; // links libFuzzer

/// Whether the fuzzer shall go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The input was tried.
    Input,
    /// The bytes stand for nothing: the fuzzer need not keep them.
    Reject,
    /// End the process with this exit code.
    Exit(u8),
}

/// What is fuzzed.
pub(crate) trait Fuzzed: Send {
    /// Tries an input.
    fn input(&mut self, bytes: &[u8]) -> Next;

    /// How many of the bytes say anything: the others are not read.
    fn read(&self, bytes: &[u8]) -> usize;
}

static FUZZED: Mutex<Option<Box<dyn Fuzzed>>> = Mutex::new(None);

/// Bytes that are not read are kept up to this many, as a mutation may make a case longer.
const SPARE: usize = 64;

#[expect(unsafe_code, reason = "libFuzzer is written in C++")]
mod foreign {
    use super::{c_char, c_int};

    pub(super) type Callback = extern "C" fn(*const u8, usize) -> c_int;

    unsafe extern "C" {
        pub(super) fn LLVMFuzzerRunDriver(
            argc: *mut c_int,
            argv: *mut *mut *mut c_char,
            callback: Callback,
        ) -> c_int;

        pub(super) fn LLVMFuzzerMutate(data: *mut u8, size: usize, max_size: usize) -> usize;

        // The exit handlers of libFuzzer would take the end inside a callback for a crash.
        pub(super) safe fn _exit(code: c_int) -> !;
    }
}

/// Ends the process at once: nothing of libFuzzer has a part in it.
pub(crate) fn exit(code: u8) -> ! {
    foreign::_exit(code.into())
}

/// Gives inputs until it ends the process. libFuzzer never returns the control.
#[expect(unsafe_code, reason = "libFuzzer is written in C++")]
pub(crate) fn drive(arguments: &[String], fuzzed: Box<dyn Fuzzed>) -> ! {
    *FUZZED.lock().expect("nothing panics with the lock") = Some(fuzzed);
    let arguments = ["shakedown"].into_iter().chain(arguments.iter().map(String::as_str));
    let mut argv: Vec<*mut c_char> = arguments
        .map(|argument| CString::new(argument).expect("no argument has a NUL").into_raw())
        .collect();
    let mut argc = c_int::try_from(argv.len()).expect("a dozen arguments");
    argv.push(ptr::null_mut());
    let mut argv = argv.as_mut_ptr();
    // SAFETY: `argv` holds `argc` C strings, which live as long as the process, and a null pointer
    // after them; the callback has the type that libFuzzer calls, and no panic leaves it.
    let code = unsafe { foreign::LLVMFuzzerRunDriver(&mut argc, &mut argv, callback) };
    foreign::_exit(code)
}

#[expect(unsafe_code, reason = "the input is a pointer and a length")]
extern "C" fn callback(data: *const u8, size: usize) -> c_int {
    let input = match size {
        0 => &[],
        // SAFETY: libFuzzer's input lives through the call.
        _ => unsafe { std::slice::from_raw_parts(data, size) },
    };
    let next = catch_unwind(AssertUnwindSafe(|| {
        let mut fuzzed = FUZZED.lock().expect("nothing panics with the lock");
        fuzzed.as_mut().expect("it was set before the driver ran").input(input)
    }));
    match next {
        Ok(Next::Input) => 0,
        Ok(Next::Reject) => -1,
        Ok(Next::Exit(code)) => foreign::_exit(code.into()),
        // The panic has been printed.
        Err(_) => foreign::_exit(101),
    }
}

/// libFuzzer's own mutations, but only of the bytes that are read.
#[expect(unsafe_code, reason = "libFuzzer finds it by its name, and the input is a pointer")]
#[unsafe(no_mangle)]
extern "C" fn LLVMFuzzerCustomMutator(
    data: *mut u8,
    size: usize,
    max_size: usize,
    _seed: u32,
) -> usize {
    // SAFETY: libFuzzer's buffer holds `max_size` bytes, `size` of them the input.
    let buffer = unsafe { std::slice::from_raw_parts_mut(data, max_size) };
    let read = match FUZZED.lock().ok().as_deref() {
        Some(Some(fuzzed)) => fuzzed.read(&buffer[..size]).clamp(1.min(size), size),
        _ => size,
    };
    let spare = buffer[read..size.min(read + SPARE)].to_vec();
    // SAFETY: the buffer holds `max_size - spare` bytes and more.
    let mutated = unsafe { foreign::LLVMFuzzerMutate(data, read, max_size - spare.len()) };
    buffer[mutated..mutated + spare.len()].copy_from_slice(&spare);
    mutated + spare.len()
}
