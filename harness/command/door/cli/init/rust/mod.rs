//! A Rust package: a suite, a dev-dependency, a folder for regressions and a workflow.

mod cargo;
mod scan;
mod test;

use std::path::Path;

use super::files::File;
use super::template::fill;
use super::{Plan, REPOSITORY, repository, workflow};
use cargo::{Dependency, Package};
use scan::Scan;
use shakedown_core::value::error::Error;
use test::Test;

const SUITE_FILE: &str = "tests/shakedown.rs";
const NEXTEST_FILE: &str = ".config/nextest.toml";
const NEXTEST: &str = include_str!("nextest.toml");

/// What `init` writes into the folder; the dependency is on `checkout` where one is given.
///
/// # Errors
/// There is no package to write into, or no shakedown in `checkout`.
pub(super) fn plan(dir: &Path, checkout: Option<&Path>) -> Result<Plan, Error> {
    let package = Package::read(dir)?;
    let checkout = checkout.map(full_path).transpose()?;
    let scan = match &package.library {
        Some((name, root)) => scan::of(dir, name, root),
        None => Scan::default(),
    };
    let looking = scan.functions.iter().filter_map(test::guess_of);
    let (mut ready, others): (Vec<_>, Vec<_>) = looking.partition(|(_, _, test)| test.is_some());
    let filled = if ready.is_empty() { None } else { Some(ready.remove(0)) };

    let mut said = vec![format!("Rust package `{}` in `{}`.", package.name, dir.display())];
    said.extend(scan.unread.iter().map(|why| format!("Not read: {why}.")));
    let test = match filled {
        Some((function, contract, Some(test))) => {
            said.push(format!("Filled in: `{}` ({}) as {contract}.", function.path, function.at()));
            test
        }
        _ => {
            let why = match &package.library {
                Some(_) => "No public function looks like a component that can be filled in",
                None => "The package has no library, and tests cannot call a program's functions",
            };
            said.push(format!("{why}: an example is, in {SUITE_FILE}."));
            Test::example()
        }
    };
    for (function, contract, _) in ready.iter().chain(&others) {
        said.push(format!(
            "Also found: `{}` ({}) looks like {contract}.",
            function.path,
            function.at()
        ));
    }

    let mut steps = Vec::new();
    if test.is_example {
        steps.push(format!("Replace the example in {SUITE_FILE} by a function of yours"));
    }
    steps.push("cargo test --test shakedown".to_owned());
    let list = format!("shakedown list {}", test.contract);
    steps.push(format!("Compare the options with what your function does: {list}"));

    let suite = fill(
        include_str!("suite.rs.in"),
        &[("IMPORTS", &test.imports), ("TEST", test.text.trim_end())],
    );
    let mut files = vec![File::new(SUITE_FILE, suite, test.text.clone())];
    match package.dependency(checkout.as_deref()) {
        Dependency::There => said.push("The dependency on shakedown is there already.".to_owned()),
        Dependency::Added { text, line } => files.push(File {
            change: format!("[dev-dependencies] {line}"),
            ..File::new("Cargo.toml", text, String::new())
        }),
    }
    files.extend(workflow::regressions(test.contract));
    files.push(File::new(NEXTEST_FILE, NEXTEST.to_owned(), profile()));
    let (root, inside) = repository(dir);
    files.push(workflow::rust(&root, &inside, dir));
    if let Some(checkout) = checkout.filter(|checkout| !checkout.starts_with(&root)) {
        steps.push(format!(
            "CI does not have {}: depend on {{ git = \"{REPOSITORY}\" }} before it runs there",
            checkout.display()
        ));
    }
    steps.push(format!(
        "Keep what was found and fixed: cargo install --git {REPOSITORY} --locked shakedown; \
         shakedown adopt FILE --why \"…\""
    ));
    steps.push(format!(
        "Look through {}, commit what was written, and run it once: gh workflow run shakedown",
        workflow::FILE
    ));
    Ok(Plan { found: said, files, steps })
}

/// The profile of the workflow, without what the file says of itself.
fn profile() -> String {
    NEXTEST.lines().skip(1).map(|line| format!("{line}\n")).collect()
}

/// The whole path of a checkout of shakedown: the folder that it is given from is not the one that
/// `Cargo.toml` is in.
fn full_path(checkout: &Path) -> Result<std::path::PathBuf, Error> {
    let full = checkout
        .canonicalize()
        .map_err(|error| Error::io("find the checkout of shakedown", checkout, &error))?;
    match Package::read(&full) {
        Ok(package) if package.name == "shakedown" => Ok(full),
        Ok(package) => {
            let found = format!("expected a checkout of shakedown, found `{}`", package.name);
            Err(Error::new(found).at(checkout))
        }
        Err(error) => Err(error),
    }
}
