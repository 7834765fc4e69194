//! `shakedown help`: what the verbs take, and pages for people who use the package for Python.

use clap::CommandFactory as _;

use super::{Cli, Done, output};
use crate::report::ExitCode;
use crate::value::error::{Error, unknown};

/// The pages by name; the package for Python has the same files.
const PAGES: [(&str, &str); 4] = [
    ("manifest", include_str!("../../python/shakedown/pages/manifest.md")),
    ("settings", include_str!("../../python/shakedown/pages/settings.md")),
    ("cookbook", include_str!("../../python/shakedown/pages/cookbook.md")),
    ("batches", include_str!("../../python/shakedown/pages/batches.md")),
];

pub(super) fn run(topic: Option<&str>) -> Done {
    let mut command = Cli::command();
    command.build();
    let Some(topic) = topic else {
        command.print_long_help()?;
        return Ok(ExitCode::AllHold);
    };
    if let Some((_, page)) = PAGES.iter().find(|(name, _)| *name == topic) {
        write!(output().0, "{page}")?;
        return Ok(ExitCode::AllHold);
    }
    if let Some(verb) = command.find_subcommand_mut(topic) {
        verb.print_long_help()?;
        return Ok(ExitCode::AllHold);
    }
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let verbs = shown.map(|verb| verb.get_name());
    let known: Vec<&str> = verbs.chain(PAGES.iter().map(|(name, _)| *name)).collect();
    Err(Error::new(unknown("topic", topic, &known)).into())
}
