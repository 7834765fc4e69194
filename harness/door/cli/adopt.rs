//! `shakedown adopt`: a finding becomes a regression.

use std::path::{Component, Path, PathBuf};

use super::{Done, output};
use crate::files::case_file::CaseFile;
use crate::report::ExitCode;
use crate::value::error::Error;

pub(super) fn run(path: &Path, why: &str, link: Option<&str>, name: Option<&str>) -> Done {
    if why.trim().is_empty() {
        return Err(Error::new("--why is empty, expected the reason why the case is kept").into());
    }
    let file = CaseFile::read(path)?;
    let regression = CaseFile {
        // A regression is of the contract, not of the component that happened to show it.
        component: None,
        recorded: None,
        behaves: None,
        reported: false,
        place: None,
        why: Some(why.trim().to_owned()),
        link: link.map(str::to_owned).or(file.link.clone()),
        ..file
    };
    let found = path.parent().unwrap_or(Path::new("."));
    let beside = if found.file_name().is_some_and(|name| name == "found") {
        found.parent().unwrap_or(Path::new("."))
    } else {
        found
    };
    let name = match (name, path.file_name()) {
        (Some(name), _) => file_name(name)?,
        (None, Some(name)) => PathBuf::from(name),
        (None, None) => PathBuf::from("case.yaml"),
    };
    let kept = beside.join("regressions").join(name);
    if kept.symlink_metadata().is_ok() {
        let message = "a regression of this name exists; choose another with --name";
        return Err(Error::new(message).at(&kept).into());
    }
    regression.write(&kept)?;
    std::fs::remove_file(path).map_err(|error| Error::io("remove", path, &error))?;
    let (mut to, _) = output();
    writeln!(to, "kept as {}", kept.display())?;
    Ok(ExitCode::AllHold)
}

/// The file of a name, which stays inside the folder.
fn file_name(name: &str) -> Result<PathBuf, Error> {
    let stem = name.strip_suffix(".yaml").unwrap_or(name);
    let mut parts = Path::new(stem).components();
    let inside = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    if !inside || stem.contains(['/', '\\']) {
        return Err(Error::new(format!("--name: expected the name of a file, found `{name}`")));
    }
    Ok(PathBuf::from(format!("{stem}.yaml")))
}
