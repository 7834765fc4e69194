//! `shakedown check-trainer`: a trainer of a library, checked as it is.
//!
//! The package for Python knows the trainers: it reads the configuration and says which options
//! that declares, as a manifest. The manifest is kept, so that a finding can be replayed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{CheckArguments, CheckTrainerArguments, Done, check};
use shakedown_core::value::error::Error;
use shakedown_engine::host::process::default_interpreter;

/// The first line of the manifests that this verb writes, and may write again.
const HEAD: &str = "# Written by `shakedown check-trainer`, which writes it anew.";

pub(super) fn run(arguments: CheckTrainerArguments) -> Done {
    let CheckTrainerArguments {
        trainer, config, sweep, manifest, cases, time, seed, places, ..
    } = arguments;
    let manifest = manifest.unwrap_or_else(|| named_after(&trainer));
    write(&manifest, &declared(&trainer, config.as_deref(), sweep)?)?;
    check::run(&CheckArguments {
        manifest,
        only: Vec::new(),
        component: Vec::new(),
        stage: None,
        last_failed: false,
        cases,
        time,
        seed,
        places,
        jobs: 0,
        values: false,
        show_output: arguments.show_output,
        shard: None,
        sweep,
        files: arguments.files,
    })
}

/// `shakedown-trl.GRPOTrainer.yaml`.
fn named_after(trainer: &str) -> PathBuf {
    let name = trainer.rsplit(['/', '\\']).next().unwrap_or(trainer).replace(':', ".");
    PathBuf::from(format!("shakedown-{name}.yaml"))
}

/// What the trainer and its configuration declare, as a manifest. What is not judged, Python says
/// on standard error.
fn declared(trainer: &str, config: Option<&Path>, sweep: bool) -> Result<String, Error> {
    let interpreter = default_interpreter();
    let mut command = Command::new(&interpreter);
    command.args(["-m", "shakedown.trainers", trainer]).stderr(Stdio::inherit());
    if let Some(config) = config {
        command.arg("--config").arg(config);
    }
    if sweep {
        command.arg("--sweep");
    }
    let output = command
        .output()
        .map_err(|error| Error::new(format!("cannot start {}: {error}", interpreter.display())))?;
    if !output.status.success() {
        let message = format!(
            "{} cannot say what {trainer} declares: the lines above say why",
            interpreter.display()
        );
        return Err(Error::new(message));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| Error::new("shakedown.trainers printed no manifest".to_owned()))
}

/// Writes a manifest, but not over one that somebody else wrote.
fn write(path: &Path, manifest: &str) -> Result<(), Error> {
    let at = path.display();
    match fs::read_to_string(path) {
        Ok(before) if !before.starts_with(HEAD) => {
            let message = format!("{at} is there already: name another file with --manifest");
            return Err(Error::new(message));
        }
        _ => {}
    }
    fs::write(path, format!("{HEAD}\n{manifest}"))
        .map_err(|error| Error::new(format!("cannot write {at}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_named_after_the_trainer() {
        let named = |trainer| named_after(trainer).display().to_string();
        assert_eq!(named("trl.GRPOTrainer"), "shakedown-trl.GRPOTrainer.yaml");
        assert_eq!(named("src/ours.py:Ours"), "shakedown-ours.py.Ours.yaml");
    }

    #[test]
    fn only_our_own_manifest_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.yaml");
        write(&path, "version: 1\n").unwrap();
        write(&path, "version: 2\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{HEAD}\nversion: 2\n"));
        fs::write(&path, "version: 1\n").unwrap();
        let refused = write(&path, "version: 2\n").unwrap_err().to_string();
        assert!(refused.contains("--manifest"), "{refused}");
    }
}
