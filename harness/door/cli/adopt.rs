//! `shakedown adopt`: a finding becomes a regression.

use std::path::{Path, PathBuf};

use super::{Done, Stopped, output};
use crate::files::case_file::{CaseFile, Head};
use crate::contract::Contract;
use crate::contracts;
use crate::contracts::Visit;
use crate::value::error::Error;
use crate::report::ExitCode;

pub(super) fn run(path: &Path, why: &str, link: Option<&str>, name: Option<&str>) -> Done {
    if why.trim().is_empty() {
        return Err(Error::new("--why is empty, expected the reason why the case is kept").into());
    }
    let contract = Head::read(path)?.contract;
    let adopt = Adopt { path, why, link, name };
    let kept = contracts::visit(&contract, adopt).expect("the name was checked")?;
    let (mut to, _) = output();
    writeln!(to, "kept as {}", kept.display())?;
    Ok(ExitCode::AllHold)
}

struct Adopt<'a> {
    path: &'a Path,
    why: &'a str,
    link: Option<&'a str>,
    name: Option<&'a str>,
}

impl Visit for Adopt<'_> {
    type Output = Result<PathBuf, Stopped>;

    fn visit<C: Contract>(self) -> Self::Output {
        let file = CaseFile::<C>::read(self.path)?;
        let regression = CaseFile {
            // A regression is of the contract, not of the component that happened to show it.
            component: None,
            place: None,
            why: Some(self.why.trim().to_owned()),
            link: self.link.map(str::to_owned).or(file.link.clone()),
            ..file
        };
        let found = self.path.parent().unwrap_or(Path::new("."));
        let beside = if found.file_name().is_some_and(|name| name == "found") {
            found.parent().unwrap_or(Path::new("."))
        } else {
            found
        };
        let name = match (self.name, self.path.file_name()) {
            (Some(name), _) => PathBuf::from(name).with_extension("yaml"),
            (None, Some(name)) => PathBuf::from(name),
            (None, None) => PathBuf::from(regression.name()),
        };
        let kept = beside.join("regressions").join(name);
        if kept.exists() {
            let message = "a regression of this name exists; choose another with --name";
            return Err(Error::new(message).at(&kept).into());
        }
        regression.write(&kept)?;
        std::fs::remove_file(self.path).map_err(|error| Error::io("remove", self.path, &error))?;
        Ok(kept)
    }
}
