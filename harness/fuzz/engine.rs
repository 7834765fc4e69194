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

type Body = Box<dyn FnMut(&[u8]) -> Next + Send>;

static BODY: Mutex<Option<Body>> = Mutex::new(None);

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

        // The exit handlers of libFuzzer would take the end inside a callback for a crash.
        pub(super) safe fn _exit(code: c_int) -> !;
    }
}

/// Gives inputs to `body` until it ends the process. libFuzzer never returns the control.
#[expect(unsafe_code, reason = "libFuzzer is written in C++")]
pub(crate) fn drive(arguments: &[String], body: Body) -> ! {
    *BODY.lock().expect("nothing panics with the lock") = Some(body);
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
        let mut body = BODY.lock().expect("nothing panics with the lock");
        body.as_mut().expect("it was set before the driver ran")(input)
    }));
    match next {
        Ok(Next::Input) => 0,
        Ok(Next::Reject) => -1,
        Ok(Next::Exit(code)) => foreign::_exit(code.into()),
        // The panic has been printed.
        Err(_) => foreign::_exit(101),
    }
}
