//! `shakedown adopt`: a finding becomes a regression.

use std::path::{Component, Path, PathBuf};

use super::{Done, output};
use shakedown_contracts::REGISTRY;
use shakedown_core::value::error::Error;
use shakedown_engine::files::case_file::CaseFile;
use shakedown_engine::files::corpora::regressions_folder;
use shakedown_engine::report::ExitCode;

pub(super) fn run(
    path: &Path,
    why: &str,
    link: Option<&str>,
    name: Option<&str>,
    corpora: Option<&Path>,
) -> Done {
    if why.trim().is_empty() {
        return Err(Error::new("--why is empty, expected the reason why the case is kept").into());
    }
    let file = CaseFile::read(&REGISTRY, path)?;
    let regression = CaseFile {
        recorded: None,
        behaves: None,
        stateful: false,
        reported: false,
        place: None,
        why: Some(why.trim().to_owned()),
        link: link.map(str::to_owned).or(file.link.clone()),
        ..file
    };
    let folder = folder_for(path, regression.contract.id(), corpora);
    let name = match (name, path.file_name()) {
        (Some(name), _) => file_name(name)?,
        (None, Some(name)) => PathBuf::from(name),
        (None, None) => PathBuf::from("case.yaml"),
    };
    let kept = folder.join(name);
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

/// The folder of regressions that a case goes into: that of the corpora folder which is named, else
/// the one beside `found`. The tests of Python find into `.shakedown`, which git does not see, and
/// what they keep is in `corpora` beside that.
fn folder_for(path: &Path, contract: &str, corpora: Option<&Path>) -> PathBuf {
    if let Some(corpora) = corpora {
        return regressions_folder(corpora, contract);
    }
    let state = path.ancestors().find(|folder| folder.ends_with(".shakedown"));
    if let Some(parent) = state.and_then(Path::parent) {
        return regressions_folder(&parent.join("corpora"), contract);
    }
    let found = path.parent().unwrap_or(Path::new(""));
    let beside = if found.ends_with("found") { found.parent() } else { Some(found) };
    beside.unwrap_or(Path::new("")).join("regressions")
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
