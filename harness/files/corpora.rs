//! The corpora: regressions that are kept for ever, and what runs found.

/// `CORPORA/CONTRACT/found`: what runs found; ignored by git.
pub fn found_folder(corpora: &Path, contract: &str) -> PathBuf {
    corpora.join(contract).join("found")
}

/// Makes the `found` folder, with a file that keeps git out of it.
///
/// # Errors
/// It cannot be written.
pub(crate) fn make_found_folder(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|error| Error::io("make", folder, &error))?;
    let ignore = folder.join(".gitignore");
    if ignore.exists() {
        return Ok(());
    }
    fs::write(&ignore, "*\n").map_err(|error| Error::io("write", &ignore, &error))
}

/// `CORPORA/CONTRACT/regressions`: what is kept for ever, each with its reason.
pub fn regressions_folder(corpora: &Path, contract: &str) -> PathBuf {
    corpora.join(contract).join("regressions")
}

/// shakedown's own regressions, which every component of their contract is checked on.
static OWN: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/corpora");

/// The regressions of a contract: shakedown's own, then those in the corpora folder.
///
/// # Errors
/// One of them cannot be read.
pub(crate) fn regressions<C: Contract>(corpora: Option<&Path>) -> Result<Vec<CaseFile<C>>, Error> {
    Ok(named_regressions(corpora)?.into_iter().map(|(_, file)| file).collect())
}

/// The same, each with the name of its file.
///
/// # Errors
/// One of them cannot be read.
pub(crate) fn named_regressions<C: Contract>(
    corpora: Option<&Path>,
) -> Result<Vec<(String, CaseFile<C>)>, Error> {
    let stem = |path: &Path| path.file_stem().map_or_else(String::new, |s| s.display().to_string());
    let mut cases = Vec::new();
    let own = OWN.get_dir(regressions_folder(Path::new(""), C::ID));
    for file in own.into_iter().flat_map(Dir::files) {
        let text = file.contents_utf8().unwrap_or("");
        let case = CaseFile::parse(text).map_err(|error| error.at(file.path()))?;
        cases.push((stem(file.path()), case));
    }
    let Some(corpora) = corpora else { return Ok(cases) };
    for path in yaml_files(&regressions_folder(corpora, C::ID)) {
        cases.push((stem(&path), CaseFile::read(&path)?));
    }
    Ok(cases)
}

/// The YAML files of a folder by name, none where there is no folder.
pub(crate) fn yaml_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    paths.sort();
    paths
}
