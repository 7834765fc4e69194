//! Python scripts: what they give to TRL's configuration and trainer, by Python's own parser.
//! Nothing of a script is run.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value as Json;

use super::layer::{self, Field, How, LARGEST_FILE_BYTES, Layer, MOST_FIELDS};
use super::others;
use crate::report::Location;
use crate::settings::{Library, Origin};
use shakedown_core::value::error::{Error, cut};

const PROGRAM: &str = include_str!("python.py");

/// Parsers that take longer are stopped.
const PATIENCE: Duration = Duration::from_secs(30);

/// What `python.py` prints.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Found {
    call: Option<String>,
    trainer: Option<String>,
    /// What the first of the two comes from: nothing where the script does not say, and an empty
    /// text where it is the script's own.
    module: Option<String>,
    uses_unsloth: bool,
    fields: Vec<Given>,
    is_whole: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    name: String,
    line: usize,
    is_read: bool,
    value: Json,
}

/// What `python.py` prints of a text that is no Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrong {
    error: String,
    line: usize,
    column: usize,
}

/// Reads a script.
///
/// # Errors
/// It cannot be read or parsed, there is no interpreter, or it gives TRL nothing.
pub(super) fn read(path: &Path) -> Result<Layer, Error> {
    let bytes = layer::bytes(path)?;
    let answer = parsed(bytes).map_err(|error| error.at(path))?;
    if let Ok(Wrong { error, line, column }) = serde_json::from_slice(&answer) {
        return Err(Error::new(cut(&error)).at(path).line(line, column));
    }
    let found: Found = serde_json::from_slice(&answer).map_err(|error| {
        Error::new(format!("cannot read what {} answers: {error}", interpreter().display()))
            .at(path)
    })?;
    if found.call.is_none() && found.fields.is_empty() {
        let message = "expected a call of GRPOConfig, RLOOConfig, PPOConfig, DPOConfig or \
                       KTOConfig, found none";
        return Err(Error::new(message).at(path));
    }
    if found.fields.len() > MOST_FIELDS {
        return Err(Error::new(format!("expected at most {MOST_FIELDS} fields")).at(path));
    }
    Ok(layer_of(found, path))
}

fn layer_of(found: Found, path: &Path) -> Layer {
    const RL: [&str; 5] = ["GRPOConfig", "RLOOConfig", "PPOConfig", "DPOConfig", "KTOConfig"];
    const SUPERVISED: [&str; 5] = ["SFT", "GKD", "GOLD", "Reward", "PRM"];
    let is_trl = found.module.as_deref().is_none_or(|module| module == "trl");
    let (library, other) = match is_trl {
        true if found.uses_unsloth => (Some(Library::Trl), others::named("unsloth")),
        true => (Some(Library::Trl), None),
        false => (None, Some(others::OWN)),
    };
    let mut layer = Layer { library, other, ..Layer::new(path, "Python") };
    let trainer = found.trainer.as_deref().unwrap_or("");
    layer.is_supervised = match found.call.as_deref() {
        Some(call) => !RL.contains(&call),
        None => SUPERVISED.iter().any(|name| trainer.starts_with(name)),
    };
    // Without the call, the configuration comes from a file or from flags.
    layer.is_partial = found.call.is_none();
    let first = Location::new(path, 1);
    let field = |given: Given| {
        let origin = Origin::Line(Location { line: given.line, ..first.clone() });
        let json = given.is_read.then_some(given.value);
        Field { name: given.name, json, origin, how: How::Set }
    };
    layer.fields = found.fields.into_iter().map(field).collect();
    if !found.is_whole {
        let call = found.call.as_deref().unwrap_or("the configuration");
        layer.gaps.push(format!("`{call}` is given more than can be read"));
    }
    if let (false, Some(call)) = (is_trl, &found.call) {
        let from = match found.module.as_deref() {
            None | Some("") => "the script itself".to_owned(),
            Some(".") => "the script's own package".to_owned(),
            Some(module) => format!("`{module}`"),
        };
        layer.warnings.push(format!("`{call}` is that of {from}, not of TRL"));
    }
    layer.call = found.call;
    layer
}

/// The interpreter: that of `SHAKEDOWN_PYTHON`, else `python3`.
fn interpreter() -> PathBuf {
    let named = std::env::var_os("SHAKEDOWN_PYTHON").filter(|name| !name.is_empty());
    named.map_or_else(|| PathBuf::from("python3"), PathBuf::from)
}

/// What `python.py` says of a script.
fn parsed(script: Vec<u8>) -> Result<Vec<u8>, Error> {
    let interpreter = interpreter();
    let name = interpreter.display();
    // Isolated and without packages: nothing beside the script is imported.
    let mut child = Command::new(&interpreter)
        .args(["-I", "-S", "-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            let hint = "a Python script needs an interpreter, named by SHAKEDOWN_PYTHON";
            Error::new(format!("cannot start the interpreter {name}: {error}; {hint}"))
        })?;
    let (mut stdin, stdout, stderr) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        // It may end before it has read everything.
        scope.spawn(move || drop(stdin.take().map(|mut pipe| pipe.write_all(&script))));
        let answer = scope.spawn(move || all_of(stdout));
        let said = scope.spawn(move || all_of(stderr));
        let status = wait(&mut child).map_err(|why| Error::new(format!("{name} {why}")))?;
        let (answer, said) = (answer.join(), said.join());
        if !status {
            let said = said.unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            let last = said.lines().last().unwrap_or("without a word");
            return Err(Error::new(format!("{name} could not parse it: {}", cut(last))));
        }
        answer.map_err(|_| Error::new(format!("{name} gave no answer")))
    })
}

fn all_of(pipe: Option<impl std::io::Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What is cut or cannot be read is no answer, which shows when it is parsed.
        drop(pipe.take(LARGEST_FILE_BYTES).read_to_end(&mut bytes));
    }
    bytes
}

/// Whether it ended well; why it did not end at all.
fn wait(child: &mut Child) -> Result<bool, String> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if begin.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(None) => {
                drop(child.kill());
                drop(child.wait());
                return Err(format!("took more than {} seconds", PATIENCE.as_secs()));
            }
            Err(error) => return Err(format!("cannot be waited for: {error}")),
        }
    }
}
