//! The functions of a Python repository, as Python's own parser sees them. Nothing is imported.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use shakedown_engine::host::process::default_interpreter;

/// What the files of a repository define.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scan {
    pub(super) functions: Vec<Function>,
    pub(super) lines: Vec<Lines>,
    /// Files that Python does not understand, each with the reason.
    pub(super) unread: Vec<String>,
    /// Whether something there speaks of pytest.
    pub(super) pytest: bool,
}

/// A step of the pipeline that a function takes somewhere between its lines.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lines {
    pub(super) file: String,
    pub(super) line: u64,
    /// The function in its file, after its class where it is a method.
    pub(super) path: String,
    pub(super) contract: String,
}

/// One function at the top of a file, or a method of a class there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Function {
    pub(super) name: String,
    /// Its file and line.
    pub(super) file: String,
    pub(super) line: u64,
    /// What to import; none where no import statement can name the file.
    pub(super) module: Option<String>,
    /// The folder from which `module` is imported.
    pub(super) root: String,
    /// Whether the file is in a package, whose imports may be relative.
    pub(super) package: bool,
    pub(super) parameters: Vec<Parameter>,
    /// Whether it takes `**kwargs`.
    pub(super) others: bool,
    /// Whether all parameters can be given by name.
    pub(super) by_keyword: bool,
    /// Whether it is a coroutine.
    pub(super) waits: bool,
    /// Whether it looks for `"content"`, as in a list of messages.
    pub(super) chat: bool,
    /// The class of a method.
    pub(super) owner: Option<Owner>,
    /// The library of arrays that its file imports.
    pub(super) arrays: String,
}

/// The class of a method.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Owner {
    pub(super) name: String,
    /// What its constructor takes.
    pub(super) parameters: Vec<Parameter>,
    /// What the method reads of its instance; none where it does more with it.
    pub(super) reads: Option<Vec<String>>,
    /// Whether the method needs an instance.
    pub(super) is_made: bool,
    /// Whether the method is what calling an instance does.
    pub(super) is_called: bool,
}

impl Function {
    /// Its name in its file: `grpo`, `Trainer.advantages`, or `PolicyLoss` where an instance is
    /// called.
    pub(super) fn path(&self) -> String {
        match &self.owner {
            None => self.name.clone(),
            Some(owner) if owner.is_called => owner.name.clone(),
            Some(owner) => format!("{}.{}", owner.name, self.name),
        }
    }

    /// What its name says: that of its class too where the method's says little.
    pub(super) fn words(&self) -> String {
        const GENERAL: [&str; 8] =
            ["__call__", "forward", "score", "verify", "compute", "loss", "grade", "extract"];
        match &self.owner {
            None => self.name.clone(),
            Some(owner) if owner.is_called => snake(&owner.name),
            Some(owner) if GENERAL.contains(&&*self.name) => {
                format!("{}_{}", snake(&owner.name), self.name)
            }
            Some(_) => self.name.clone(),
        }
    }

    /// The parameter of its constructor that nothing says how to give.
    pub(super) fn needs(&self) -> Option<&Parameter> {
        self.owner.as_ref()?.parameters.iter().find(|one| one.required)
    }
}

/// `PolicyLoss` as `policy_loss`, `GAELoss` as `gae_loss`.
fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let after_small = at > 0 && !letters[at - 1].is_uppercase();
        let before_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if at > 0 && letter.is_uppercase() && (after_small || before_small) {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake.replace("__", "_")
}

/// One parameter of a function.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) default: Option<serde_json::Number>,
}

const SCAN: &str = include_str!("scan.py");

/// Scans the folder, or says why it could not.
pub(super) fn of(dir: &Path) -> Result<Scan, String> {
    let interpreter = default_interpreter();
    let name = interpreter.display();
    // Isolated: a file `json.py` of the repository must not be imported in the place of Python's.
    let output = Command::new(&interpreter)
        .args(["-I", "-c", SCAN])
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start the interpreter {name}: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().last().unwrap_or("").to_owned();
        return Err(format!("{name} ended with {}: {last}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{name} answered {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_classes_are_words() {
        for (name, words) in [
            ("PolicyLoss", "policy_loss"),
            ("GAELoss", "gae_loss"),
            ("MathVerifier", "math_verifier"),
            ("GRPO", "grpo"),
            ("_KLPenalty", "_kl_penalty"),
        ] {
            assert_eq!(snake(name), words);
        }
    }
}
