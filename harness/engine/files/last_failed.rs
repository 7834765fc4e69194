//! Which components failed when they were checked last, for `check --last-failed`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::files::atomic::write_atomically;
use shakedown_core::value::error::Error;
use shakedown_core::value::place::Place;

/// A component of a manifest at a place.
pub(crate) type Checked = (String, Place);

/// Where it is kept: beside the manifest, in a folder that no repository takes.
fn path(manifest: &Path) -> PathBuf {
    manifest.with_file_name(".shakedown").join("last-failed.json")
}

/// What failed when it was checked last; nothing where nothing was checked yet.
///
/// # Errors
/// The file is not ours.
pub fn read(manifest: &Path) -> Result<BTreeSet<Checked>, Error> {
    let path = path(manifest);
    let Ok(text) = fs::read_to_string(&path) else { return Ok(BTreeSet::new()) };
    serde_json::from_str(&text).map_err(|error| Error::new(error.to_string()).at(&path))
}

/// Keeps what failed of what was checked now; of what was not, what failed before.
///
/// # Errors
/// The file cannot be written.
pub fn update(
    manifest: &Path,
    checked: impl IntoIterator<Item = (Checked, bool)>,
) -> Result<(), Error> {
    // A file that is not ours is replaced.
    let mut failed = read(manifest).unwrap_or_default();
    for (component, is_failed) in checked {
        if is_failed {
            failed.insert(component);
        } else {
            failed.remove(&component);
        }
    }
    let path = path(manifest);
    let text = serde_json::to_string_pretty(&failed).expect("names can be written");
    write_atomically(&path.with_file_name(".gitignore"), b"*\n")?;
    write_atomically(&path, text.as_bytes())
}
