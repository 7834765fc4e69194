//! CUDA places: libtorch's CUDA half is loaded at run time, so one binary serves all machines.
//!
//! Nothing refers to `libtorch_cuda.so`, so the linker leaves it out (`--as-needed`), also where
//! the libtorch at hand has it. libtorch looks for that half once in a process, at the first
//! gradient, the first seed or the first question whether CUDA is there, and keeps to what it
//! found. So it is loaded when the first tensor component is made, where a GPU may be wanted:
//! `SHAKEDOWN_PLACES` names a CUDA place, or is not set on a machine with an NVIDIA driver. That
//! takes some 0.15 s and some memory; other processes do without.

use std::path::Path;
use std::sync::OnceLock;

use shakedown::place::{Device, Place};

/// What one of these files tells: a machine has an NVIDIA driver, or is Linux inside Windows.
const DRIVER_FILES: [&str; 3] = ["/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"];

/// Loads the CUDA half if a GPU may be wanted.
pub(crate) fn load_if_wanted() {
    if wanted(Place::from_env().ok().flatten().as_deref(), has_driver()) {
        let _ = load(); // said by `lacks`, when a CUDA place comes up
    }
}

/// Why there is no such CUDA device here; `None` where there is.
pub(crate) fn lacks(index: usize) -> Option<String> {
    let loaded = load().as_ref().err().map(String::as_str); // before libtorch is asked
    why_not(index, tch::Cuda::device_count(), loaded, has_driver())
}

fn has_driver() -> bool {
    DRIVER_FILES.iter().any(|file| Path::new(file).exists())
}

fn wanted(asked: Option<&[Place]>, driver: bool) -> bool {
    match asked {
        Some(places) => places.iter().any(|place| matches!(place.device, Device::Cuda(_))),
        None => driver,
    }
}

fn why_not(index: usize, devices: i64, not_loaded: Option<&str>, driver: bool) -> Option<String> {
    let count = usize::try_from(devices).unwrap_or(0);
    match (not_loaded, driver) {
        _ if index < count => None,
        _ if count > 0 => Some(format!(
            "there is no CUDA device {index}: libtorch finds {count}, numbered from 0"
        )),
        (Some(why), _) => Some(format!("this libtorch has no CUDA half: {why}")),
        (None, false) => Some("this machine has no NVIDIA driver".to_owned()),
        (None, true) => Some(
            "libtorch finds no CUDA device, although this machine has an NVIDIA driver; was a \
             gradient taken in this process before its first tensor component was made?"
                .to_owned(),
        ),
    }
}

/// Loads the CUDA half, once in a process.
fn load() -> &'static Result<(), String> {
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    LOADED.get_or_init(open)
}

#[cfg(unix)]
#[expect(unsafe_code, reason = "loading a library runs its initialisers")]
fn open() -> Result<(), String> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    // SAFETY: the library is the CUDA half of the libtorch that this process already runs. Its
    // initialisers register kernels and hooks with the CPU half, which expects that at any time,
    // and it is never unloaded, so what they registered stays valid.
    let library = unsafe { Library::open(Some("libtorch_cuda.so"), RTLD_NOW | RTLD_GLOBAL) };
    std::mem::forget(library.map_err(|error| error.to_string())?);
    Ok(())
}

#[cfg(not(unix))]
fn open() -> Result<(), String> {
    Err("loading it at run time is written for Unix only".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cuda_half_is_wanted_where_places_name_it_or_a_driver_is_there() {
        let places = |list| Place::list(list).unwrap();
        assert!(wanted(Some(&places("cpu/f32,cuda:1/bf16")), false));
        assert!(!wanted(Some(&places("cpu/f32")), true));
        assert!(wanted(None, true));
        assert!(!wanted(None, false));
    }

    #[test]
    fn a_missing_device_is_explained() {
        assert_eq!(why_not(1, 2, None, true), None);
        // A libtorch that links its CUDA half needs no second one.
        assert_eq!(why_not(0, 1, Some("not found"), true), None);
        let why = |index, devices, not_loaded, driver| {
            why_not(index, devices, not_loaded, driver).unwrap()
        };
        assert!(why(2, 2, None, true).contains("no CUDA device 2"));
        assert!(why(0, 0, Some("not found"), true).ends_with("no CUDA half: not found"));
        assert!(why(0, 0, None, false).contains("no NVIDIA driver"));
        assert!(why(0, -1, None, true).contains("before its first tensor component"));
    }
}
