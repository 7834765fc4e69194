//! Files written whole or not at all.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use shakedown_core::value::error::Error;

/// Writes a file atomically where there is a regular one or none; into what is no regular file, as
/// a pipe or `/dev/stdout`, and to the end of a link, it writes.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let is_other = fs::metadata(path).is_ok_and(|there| !there.is_file());
    if is_other {
        return fs::write(path, bytes).map_err(|error| Error::io("write", path, &error));
    }
    // A link stays one.
    let end = fs::canonicalize(path);
    write_atomically(end.as_deref().unwrap_or(path), bytes)
}

/// Writes a file beside its place and renames it, so that nobody ever reads half of it.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let failed = |error: std::io::Error| Error::io("write", path, &error);
    fs::create_dir_all(folder).map_err(failed)?;
    let mut builder = tempfile::Builder::new();
    // Who may read it is for the umask to say, as for every new file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}
