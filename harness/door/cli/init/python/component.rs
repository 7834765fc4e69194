//! A Python function as a component of a contract: its entry in the manifest, and its adapter.

use std::path::PathBuf;

use super::scan::{Function, Parameter};
use super::search_path;
use crate::door::cli::init::guess;
use crate::door::cli::init::guess::{Form, GROUP_SIZE, Guess, names_of};
use crate::door::cli::init::template::fill;
use crate::value::yaml;

/// One entry of a manifest.
#[derive(Clone)]
pub(super) struct Component {
    pub(super) name: String,
    /// File and line; none for the example.
    pub(super) at: Option<String>,
    pub(super) contract: &'static str,
    /// None where it looks like the contract but cannot be called as it is.
    pub(super) target: Option<String>,
    /// The signature of a library.
    pub(super) signature: Option<&'static str>,
    /// Names and values.
    pub(super) options: Vec<(&'static str, String)>,
    /// The code that stands between, where the names or the rows differ.
    pub(super) adapter: Option<String>,
    pub(super) arrays: &'static str,
    pub(super) path: Vec<PathBuf>,
}

impl Component {
    /// The entry in a manifest.
    pub(super) fn yaml(&self) -> String {
        let target = yaml::inline(self.target.as_ref().expect("it can be called"));
        let signature = self.signature.map(|name| format!("signature: {name}"));
        let options: Vec<String> =
            self.options.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        fill(
            include_str!("component.yaml"),
            &[
                ("NAME", &self.name),
                ("CONTRACT", self.contract),
                ("TARGET", &target),
                ("SIGNATURE", &signature.map(|line| format!("  {line}")).unwrap_or_default()),
                ("OPTIONS", &options.join(", ")),
            ],
        )
    }

    /// Where it is and what it looks like.
    pub(super) fn looks(&self) -> String {
        let at = self.at.as_deref().unwrap_or_default();
        format!("`{}` ({at}) looks like {}", self.name, self.contract)
    }
}

/// The function as a component, where it looks like one.
pub(super) fn of(function: &Function) -> Option<Component> {
    reward(function).or_else(|| guessed(function))
}

/// What stands where nothing was found: a function that is right, to be replaced.
pub(super) fn example() -> Component {
    Component {
        name: "example".to_owned(),
        at: None,
        contract: "group-advantage",
        target: Some("python:shakedown_adapters.py:example".to_owned()),
        signature: None,
        options: Vec::new(),
        adapter: None,
        arrays: "list",
        path: vec![PathBuf::from(".")],
    }
}

/// A reward function in the signature of TRL or of verl, which need no adapter.
fn reward(function: &Function) -> Option<Component> {
    names_of(REWARDS)?;
    let takes = |name: &str| function.parameters.iter().any(|parameter| parameter.name == name);
    let named = function.name.to_lowercase();
    let trl = ["prompts", "completions", "completion_ids"];
    let is_gold = |name: &str| ANSWERS.contains(&name);
    // Any column that it requires gets the gold answers; without `**kwargs` it may be no column.
    let known = |one: &Parameter| !one.required || trl.contains(&&*one.name) || is_gold(&one.name);
    let in_trl =
        function.others || (named.contains("reward") && function.parameters.iter().all(known));
    let signature = if takes("completions") && in_trl {
        if function.chat { "trl-chat" } else { "trl" }
    } else if takes("solution_str") && takes("ground_truth") {
        "verl"
    } else {
        return None;
    };
    let about = |words: &[&str]| words.iter().any(|word| named.contains(word));
    let is_column =
        |one: &Parameter| !trl.contains(&&*one.name) && (one.required || is_gold(&one.name));
    let gold = signature == "verl" || function.parameters.iter().any(is_column);
    let judges = if about(&["format", "xml", "tag"]) {
        "format"
    } else if gold {
        "correctness"
    } else {
        "none"
    };
    let options = vec![("judges", judges.to_owned()), ("range", "[0, 1]".to_owned())];
    Some(component(function, REWARDS, Some(signature), options, Some(direct(function)), None))
}

const REWARDS: &str = "reward-function";

/// The columns under which TRL's reward functions get the gold answers.
const ANSWERS: [&str; 7] =
    ["answer", "answers", "solution", "ground_truth", "target", "label", "gold"];

/// A function that its name and parameters give away.
fn guessed(function: &Function) -> Option<Component> {
    let parameters: Vec<_> = function
        .parameters
        .iter()
        .map(|one| guess::Parameter { name: one.name.clone(), required: one.required })
        .collect();
    let guess = guess::guess(&function.name, &parameters)?;
    let same_names = guess.arguments.iter().all(|(theirs, ours)| theirs == ours);
    let (target, adapter) = if guess.form == Form::Whole && same_names {
        (Some(direct(function)), None)
    } else {
        match adapter(function, &guess) {
            Some(text) => {
                let target = format!("python:shakedown_adapters.py:adapted_{}", function.name);
                (Some(target), Some(text))
            }
            None => (None, None),
        }
    };
    let options = options(function, &guess);
    Some(component(function, guess.contract, None, options, target, adapter))
}

fn component(
    function: &Function,
    contract: &'static str,
    signature: Option<&'static str>,
    options: Vec<(&'static str, String)>,
    target: Option<String>,
    adapter: Option<String>,
) -> Component {
    let arrays = ["torch", "numpy"].into_iter().find(|name| *name == function.arrays);
    Component {
        name: function.name.clone(),
        at: Some(format!("{}:{}", function.file, function.line)),
        contract,
        target,
        signature,
        options,
        adapter,
        arrays: arrays.unwrap_or("list"),
        path: search_path(function),
    }
}

/// The function itself: by its module where that has relatives to import, else by its file.
fn direct(function: &Function) -> String {
    let Function { name, file, module, .. } = function;
    match module.as_ref().filter(|_| function.package) {
        Some(module) => format!("python:{module}:{name}"),
        None => format!("python:{file}:{name}"),
    }
}

/// What the defaults of its parameters and its name say about its conventions.
fn options(function: &Function, guess: &Guess) -> Vec<(&'static str, String)> {
    let names = names_of(guess.contract).expect("it was guessed");
    let mut options = Vec::new();
    for (theirs, ours) in &guess.arguments {
        let parameter = function.parameters.iter().find(|one| one.name == *theirs);
        let default = parameter.and_then(|parameter| parameter.default.as_ref());
        if let Some(default) = default.filter(|_| names.options.contains(ours)) {
            options.push((*ours, yaml::inline(default)));
        }
    }
    let named = function.name.to_lowercase();
    if guess.contract == "group-advantage" {
        if named.contains("rloo") {
            options.push(("baseline", "leave-one-out".to_owned()));
            options.push(("scale", "none".to_owned()));
        } else if named.contains("dr_grpo") {
            options.push(("scale", "none".to_owned()));
        }
        if guess.form == Form::EqualGroups {
            options.push(("layout", "contiguous".to_owned()));
        }
    }
    options
}

/// The adapter; none where no import or no call by name reaches the function.
fn adapter(function: &Function, guess: &Guess) -> Option<String> {
    let module = function.module.as_ref()?;
    if !function.by_keyword || function.waits {
        return None;
    }
    let lists = !matches!(&*function.arrays, "torch" | "numpy");
    let template = match guess.form {
        Form::Whole => include_str!("adapters/whole.py"),
        Form::PerRow => include_str!("adapters/per_row.py"),
        Form::EqualGroups if lists => include_str!("adapters/equal_groups_of_lists.py"),
        Form::EqualGroups => include_str!("adapters/equal_groups.py"),
        Form::OneGroup if lists => include_str!("adapters/one_group_of_lists.py"),
        Form::OneGroup => include_str!("adapters/one_group.py"),
    };
    let mut ours: Vec<&str> = guess.arguments.iter().map(|(_, ours)| *ours).collect();
    let names = names_of(guess.contract).expect("it was guessed");
    let is_input = |name: &str| names.inputs.contains(&name);
    if let Form::EqualGroups | Form::OneGroup = guess.form {
        ours.retain(|name| *name != GROUP_SIZE);
        ours.insert(1, "groups");
    }
    let arguments = guess.arguments.iter().map(|(theirs, ours)| match guess.form {
        Form::PerRow if is_input(ours) => format!("{theirs}={ours}[row]"),
        Form::OneGroup if *ours == "rewards" => format!("{theirs}=of_group"),
        _ => format!("{theirs}={ours}"),
    });
    let arguments: Vec<String> = arguments.collect();
    let mut values = vec![
        ("MODULE", module.as_str()),
        ("FUNCTION", function.name.as_str()),
        ("CONTRACT", guess.contract),
    ];
    let (ours_text, arguments) = (ours.join(", "), arguments.join(", "));
    values.push(("OURS", &ours_text));
    values.push(("ARGUMENTS", &arguments));
    let first = guess.arguments.iter().map(|(_, ours)| *ours).find(|name| is_input(name));
    if guess.form == Form::PerRow {
        values.push(("FIRST", first.expect("every look has an input")));
    }
    Some(fill(template, &values))
}
