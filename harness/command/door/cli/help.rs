//! `shakedown help`: what the verbs take, and pages for people who use the package for Python.

use clap::CommandFactory as _;

use super::{Cli, Done, output};
use shakedown_core::value::error::{Error, unknown};
use shakedown_engine::report::ExitCode;

/// The pages by name; the package for Python has the same files.
const PAGES: [(&str, &str); 8] = [
    ("manifest", include_str!("../../../python/shakedown/pages/manifest.md")),
    ("settings", include_str!("../../../python/shakedown/pages/settings.md")),
    ("cookbook", include_str!("../../../python/shakedown/pages/cookbook.md")),
    ("trainers", include_str!("../../../python/shakedown/pages/trainers.md")),
    ("runs", include_str!("../../../python/shakedown/pages/runs.md")),
    ("batches", include_str!("../../../python/shakedown/pages/batches.md")),
    ("ci", include_str!("../../../python/shakedown/pages/ci.md")),
    ("rust", include_str!("../../../python/shakedown/pages/rust.md")),
];

pub(super) fn run(topic: Option<&str>) -> Done {
    if let Some((_, page)) = PAGES.iter().find(|(name, _)| Some(*name) == topic) {
        write!(output().0, "{page}")?;
        return Ok(ExitCode::AllHold);
    }
    let mut command = Cli::command();
    if topic.is_none_or(|topic| command.find_subcommand(topic).is_some()) {
        let asked = ["shakedown"].into_iter().chain(topic).chain(["--help"]);
        if let Err(help) = command.try_get_matches_from_mut(asked) {
            help.print()?;
        }
        return Ok(ExitCode::AllHold);
    }
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let verbs = shown.map(|verb| verb.get_name());
    let known: Vec<&str> = verbs.chain(PAGES.iter().map(|(name, _)| *name)).collect();
    Err(Error::new(unknown("topic", topic.unwrap_or(""), &known)).into())
}
