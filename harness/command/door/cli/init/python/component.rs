//! A Python function as a component of a contract: its entry in the manifest, and its adapter.

use std::path::PathBuf;

use serde_json::Value as Json;

use super::scan::{Function, Parameter};
use super::{ADAPTERS_FILE, search_path};
use crate::door::cli::init::guess;
use crate::door::cli::init::guess::{Form, GROUP_SIZE, Guess, names_of};
use crate::door::cli::init::template::fill;
use shakedown_contracts::reward_function::Options;
use shakedown_core::value::yaml;

/// The code that calls a function.
#[derive(Clone)]
pub(super) struct Code {
    /// Its module, and what is imported of it.
    pub(super) module: String,
    pub(super) import: String,
    /// The function: by itself, of its class, or of an instance.
    callee: String,
    /// A function between, but for its name; none under the signature of a library.
    between: Option<String>,
    /// The call inside of that.
    call: String,
    /// Another function between, for all groups at once, where the first one is for one group.
    matrix: Option<String>,
    /// Its name in words.
    pub(super) words: String,
    /// Why it cannot be called without more.
    pub(super) lacks: Option<String>,
    /// Whether a plain object replaces its instance.
    stands_in: bool,
}

impl Code {
    /// The lines that import what the call needs.
    pub(super) fn imports(&self) -> String {
        let own = format!("from {} import {}", self.module, self.import);
        if self.stands_in { format!("{STAND_IN}\n{own}") } else { own }
    }
}

/// What imports the object that replaces an instance.
pub(super) const STAND_IN: &str = "from types import SimpleNamespace";

/// One entry of a manifest, or one test.
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
    /// Inputs and options, each with the function's own name where that is another.
    pub(super) args: Vec<(&'static str, String)>,
    /// The code that stands between, where the rows differ.
    pub(super) adapter: Option<String>,
    /// How a test calls it; none where no import or no call by name reaches it.
    pub(super) code: Option<Code>,
    pub(super) arrays: &'static str,
    pub(super) path: Vec<PathBuf>,
}

impl Component {
    /// The entry in a manifest.
    pub(super) fn yaml(&self) -> String {
        let target = yaml::inline(self.target.as_ref().expect("it can be called"));
        let signature = self.signature.map(|name| format!("signature: {name}"));
        let args: Vec<String> =
            self.args.iter().map(|(ours, theirs)| format!("{ours}: {theirs}")).collect();
        let args = (!args.is_empty()).then(|| format!("args: {{{}}}", args.join(", ")));
        let options: Vec<String> =
            self.options.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        fill(
            include_str!("component.yaml"),
            &[
                ("NAME", &self.name),
                ("CONTRACT", self.contract),
                ("TARGET", &target),
                ("SIGNATURE", &signature.or(args).map(|it| format!("  {it}")).unwrap_or_default()),
                ("OPTIONS", &options.join(", ")),
            ],
        )
    }

    /// The test, under a name.
    pub(super) fn test(&self, name: &str) -> Option<String> {
        let Code { between, callee, .. } = self.code.as_ref()?;
        let options = self.options.iter().map(|(name, value)| {
            let value = yaml::parse(value).unwrap_or(Json::Null);
            format!(", {name}={}", python(&value))
        });
        let contract =
            format!("shakedown.contract(\"{}\"{})", self.contract, options.collect::<String>());
        let signature = self.signature.map(|name| format!("signature=\"{name}\""));
        let takes_arrays = !ON_TEXTS.contains(&self.contract) && self.arrays != "torch";
        let arrays = takes_arrays.then(|| format!("arrays=\"{}\"", self.arrays));
        let settings: Vec<String> = signature.into_iter().chain(arrays).collect();
        let settings = match settings.join(", ") {
            text if text.is_empty() => text,
            text => format!(".settings({text})"),
        };
        Some(match between {
            Some(between) => {
                let between = fill(between, &[("NAME", name)]);
                let decorator = format!("@{contract}{settings}");
                let decorator = match decorator.len() {
                    ..=LINE => decorator,
                    _ => decorator.replacen("contract(", "contract(\n    ", 1).replacen(
                        &format!("){settings}"),
                        &format!("\n){settings}"),
                        1,
                    ),
                };
                format!("{decorator}\n{}\n", between.trim_end())
            }
            None => format!(
                "def {name}():\n    contract = {contract}\n    contract{settings}.check({callee})\n"
            ),
        })
    }

    /// The same, where the function gives more than the output: its first value is that.
    pub(super) fn first(mut self) -> Option<Component> {
        let code = self.code.as_mut()?;
        let first = match code.call.strip_prefix("await ") {
            Some(call) => format!("(await {call})[0]"),
            None => format!("{}[0]", code.call),
        };
        code.between = Some(code.between.take()?.replace(&code.call, &first));
        Some(self)
    }

    /// The same, where what is imported gets another name.
    pub(super) fn called(mut self, alias: &str) -> Component {
        if let Some(code) = &mut self.code {
            let (wait, call) = match code.call.strip_prefix("await ") {
                Some(call) => ("await ", call),
                None => ("", &*code.call),
            };
            let renamed = |text: &str| text.replacen(&code.import, alias, 1);
            let call = format!("{wait}{}", renamed(call));
            let callee = renamed(&code.callee);
            code.between = code.between.take().map(|text| text.replace(&code.call, &call));
            code.import = format!("{} as {alias}", code.import);
            (code.call, code.callee) = (call, callee);
        }
        self
    }

    /// The same, where the function takes groups of equal size as the rows of a matrix.
    pub(super) fn of_matrix(mut self) -> Option<Component> {
        let code = self.code.as_mut()?;
        code.between = Some(code.matrix.take()?);
        self.options.push(("layout", "contiguous".to_owned()));
        Some(self)
    }

    /// A module with the function as a test calls it, by the name `candidate`; none under the
    /// signature of a library, where it is called as it is.
    pub(super) fn candidate(&self) -> Option<String> {
        let code = self.code.as_ref()?;
        let between = fill(code.between.as_ref()?, &[("NAME", "candidate")]);
        Some(format!("{}\n\n\n{between}", code.imports()))
    }

    /// Whether it is a reward function whose score is about the answer.
    pub(super) fn judges_answers(&self) -> bool {
        self.contract == REWARDS
            && self.options.iter().all(|(name, value)| *name != "judges" || value == "correctness")
    }

    /// Declares the form in which it reads answers, where that is not the default.
    pub(super) fn read_from(&mut self, template: &str) {
        if template != Options::default().template {
            self.options.push(("template", yaml::inline(&template)));
        }
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
        args: Vec::new(),
        adapter: None,
        code: None,
        arrays: "list",
        path: vec![PathBuf::from(".")],
    }
}

/// A reward function in the signature of TRL or of verl, which need no adapter.
fn reward(function: &Function) -> Option<Component> {
    names_of(REWARDS)?;
    let takes = |name: &str| function.parameters.iter().any(|parameter| parameter.name == name);
    let named = function.words();
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
    let code = code(function, None, &[]);
    let target = function.needs().is_none().then(|| direct(function));
    let component = component(function, REWARDS, options, code);
    Some(Component { signature: Some(signature), target, ..component })
}

/// The longest line of a decorator.
const LINE: usize = 88;

/// The contracts whose inputs are texts.
const ON_TEXTS: [&str; 2] = [REWARDS, "answer-extractor"];

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
    let guess = guess::guess(&function.words(), &parameters)?;
    let made = constructed(function, &guess);
    let between = between(function, &guess, &made);
    let mut code = between.clone().and_then(|between| code(function, Some(between), &made));
    if let Some(code) = code.as_mut().filter(|_| guess.form == Form::OneGroup) {
        let matrix = self::between(function, &Guess { form: Form::Matrix, ..guess.clone() }, &made);
        code.matrix = matrix.map(|(matrix, _)| matrix);
    }
    let mut component = component(function, guess.contract, options(function, &guess, &made), code);
    let stands_in = stand_in(function, &made).is_some();
    if function.needs().is_some() && !stands_in {
        return Some(component);
    }
    if guess.form == Form::Whole && !stands_in {
        component.target = Some(direct(function));
        let renamed = guess.arguments.iter().filter(|(theirs, ours)| theirs != ours);
        component.args = renamed.map(|(theirs, ours)| (*ours, theirs.clone())).collect();
    } else if let (Some((between, _)), Some(code)) = (between, &component.code) {
        let name = format!("adapted_{}", code.words);
        component.target = Some(format!("python:{ADAPTERS_FILE}:{name}"));
        let between = fill(&between, &[("NAME", &name)]);
        component.adapter = Some(format!("{}\n\n\n{between}", code.imports()));
    }
    Some(component)
}

/// The parameters of its constructor that are options, its own names and the contract's; or what it
/// reads of its instance, where that cannot be made.
fn constructed(function: &Function, guess: &Guess) -> Vec<(String, &'static str)> {
    let Some(owner) = &function.owner else { return Vec::new() };
    let parameters = owner.parameters.iter().map(|one| &one.name);
    let made = as_options(parameters, guess);
    let reads = as_options(owner.reads.iter().flatten(), guess);
    if stand_in(function, &reads).is_some() { reads } else { made }
}

/// Those of some names that are options, each with the contract's name.
fn as_options<'a>(
    names: impl Iterator<Item = &'a String>,
    guess: &Guess,
) -> Vec<(String, &'static str)> {
    let mut made: Vec<(String, &'static str)> = Vec::new();
    for name in names {
        let option = guess::option(guess.contract, name);
        let is_new = |ours: &&str| guess.arguments.iter().chain(&made).all(|(_, o)| o != ours);
        made.extend(option.filter(is_new).map(|ours| (name.clone(), ours)));
    }
    made
}

/// An object with all that a method reads of its instance, where these options are all, and an
/// instance cannot be made.
fn stand_in(function: &Function, reads: &[(String, &'static str)]) -> Option<String> {
    let owner = function.owner.as_ref().filter(|owner| owner.is_made)?;
    let all = owner.reads.as_ref()?;
    let is_option = |name: &String| reads.iter().any(|(theirs, _)| theirs == name);
    let can_be_made =
        |one: &Parameter| !one.required || reads.iter().any(|(theirs, _)| *theirs == one.name);
    if owner.parameters.iter().all(can_be_made) || !all.iter().all(is_option) {
        return None;
    }
    let given: Vec<String> =
        reads.iter().map(|(theirs, ours)| format!("{theirs}={ours}")).collect();
    Some(format!("SimpleNamespace({})", given.join(", ")))
}

fn component(
    function: &Function,
    contract: &'static str,
    options: Vec<(&'static str, String)>,
    code: Option<Code>,
) -> Component {
    let arrays = ["torch", "numpy"].into_iter().find(|name| *name == function.arrays);
    Component {
        name: match &function.owner {
            None => function.name.clone(),
            Some(_) => function.path(),
        },
        at: Some(format!("{}:{}", function.file, function.line)),
        contract,
        target: None,
        signature: None,
        options,
        args: Vec::new(),
        adapter: None,
        code,
        arrays: arrays.unwrap_or("list"),
        path: search_path(function),
    }
}

/// How a call reaches the function; `made` are the options that its constructor takes.
fn code(
    function: &Function,
    between: Option<(String, String)>,
    made: &[(String, &'static str)],
) -> Option<Code> {
    let (between, call) = between.unzip();
    let mut parameters = function.owner.iter().flat_map(|owner| &owner.parameters);
    let is_open = |one: &&Parameter| one.required && made.iter().all(|(own, _)| *own != one.name);
    let stands_in = stand_in(function, made).is_some();
    let lacks = parameters.find(|one| is_open(one) && !stands_in).map(|one| {
        let owner = function.owner.as_ref().expect("it has a constructor");
        format!("the constructor of `{}` requires `{}`", owner.name, one.name)
    });
    Some(Code {
        module: function.module.clone()?,
        import: function.owner.as_ref().map_or(&function.name, |owner| &owner.name).clone(),
        callee: callee(function, made),
        between,
        call: call.unwrap_or_default(),
        matrix: None,
        words: function.words(),
        lacks,
        stands_in,
    })
}

/// The function by itself, of its class, or of an instance.
fn callee(function: &Function, made: &[(String, &'static str)]) -> String {
    let Some(owner) = &function.owner else { return function.name.clone() };
    if stand_in(function, made).is_some() {
        return format!("{}.{}", owner.name, function.name);
    }
    let given = |(theirs, ours): &(String, _)| format!("{theirs}={ours}");
    let open =
        |one: &&Parameter| one.required && made.iter().all(|(theirs, _)| *theirs != one.name);
    let open = owner.parameters.iter().filter(open).map(|one| format!("{}=...", one.name));
    let given: Vec<String> = made.iter().map(given).chain(open).collect();
    match (owner.is_made, owner.is_called) {
        (true, true) => format!("{}({})", owner.name, given.join(", ")),
        (true, false) => format!("{}({}).{}", owner.name, given.join(", "), function.name),
        (false, _) => function.path(),
    }
}

/// A value as Python writes it.
fn python(value: &Json) -> String {
    match value {
        Json::Null => "None".to_owned(),
        Json::Bool(true) => "True".to_owned(),
        Json::Bool(false) => "False".to_owned(),
        Json::Array(items) => {
            format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

/// The function itself: by its module where that has relatives to import, else by its file.
fn direct(function: &Function) -> String {
    let Function { file, module, .. } = function;
    let name = function.path();
    match module.as_ref().filter(|_| function.package) {
        Some(module) => format!("python:{module}:{name}"),
        None => format!("python:{file}:{name}"),
    }
}

/// What the defaults of its parameters and its name say about its conventions.
fn options(
    function: &Function,
    guess: &Guess,
    made: &[(String, &'static str)],
) -> Vec<(&'static str, String)> {
    let names = names_of(guess.contract).expect("it was guessed");
    let mut options = Vec::new();
    let constructor = function.owner.iter().flat_map(|owner| &owner.parameters);
    let parameters: Vec<&Parameter> = function.parameters.iter().chain(constructor).collect();
    for (theirs, ours) in guess.arguments.iter().chain(made) {
        let parameter = parameters.iter().find(|one| one.name == *theirs);
        let default = parameter.and_then(|parameter| parameter.default.as_ref());
        if let Some(default) = default.filter(|_| names.options.contains(ours)) {
            options.push((*ours, yaml::inline(default)));
        }
    }
    let named = function.words().to_lowercase();
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

/// A function of the contract's names that calls it, but for its name; none where no import or no
/// call by name reaches the function. And the call inside of it.
fn between(
    function: &Function,
    guess: &Guess,
    made: &[(String, &'static str)],
) -> Option<(String, String)> {
    function.module.as_ref()?;
    if !function.by_keyword {
        return None;
    }
    let lists = !matches!(&*function.arrays, "torch" | "numpy");
    let template = match guess.form {
        Form::Whole => include_str!("adapters/whole.py"),
        Form::PerRow => include_str!("adapters/per_row.py"),
        Form::EqualGroups if lists => include_str!("adapters/equal_groups_of_lists.py"),
        Form::EqualGroups => include_str!("adapters/equal_groups.py"),
        Form::Matrix if lists => include_str!("adapters/matrix_of_lists.py"),
        Form::Matrix => include_str!("adapters/matrix.py"),
        Form::OneGroup if lists => include_str!("adapters/one_group_of_lists.py"),
        Form::OneGroup => include_str!("adapters/one_group.py"),
    };
    let mut ours: Vec<&str> = guess.arguments.iter().map(|(_, ours)| *ours).collect();
    let names = names_of(guess.contract).expect("it was guessed");
    let is_input = |name: &str| names.inputs.contains(&name);
    if let Form::EqualGroups | Form::OneGroup | Form::Matrix = guess.form {
        ours.retain(|name| *name != GROUP_SIZE);
        ours.insert(1, "groups");
    }
    ours.extend(made.iter().map(|(_, ours)| *ours));
    let arguments = guess.arguments.iter().map(|(theirs, ours)| match guess.form {
        Form::PerRow if is_input(ours) => format!("{theirs}={ours}[row]"),
        Form::OneGroup | Form::Matrix if *ours == "rewards" => format!("{theirs}=of_group"),
        _ => format!("{theirs}={ours}"),
    });
    let arguments: Vec<String> = stand_in(function, made).into_iter().chain(arguments).collect();
    let call = format!("{}({})", callee(function, made), arguments.join(", "));
    let call = if function.waits { format!("await {call}") } else { call };
    let ours = ours.join(", ");
    let mut values = vec![
        ("DEF", if function.waits { "async def" } else { "def" }),
        ("OURS", &ours),
        ("CALL", &call),
    ];
    if guess.form != Form::Whole {
        values.push(("CONTRACT", guess.contract));
    }
    let first = guess.arguments.iter().map(|(_, ours)| *ours).find(|name| is_input(name));
    if guess.form == Form::PerRow {
        values.push(("FIRST", first.expect("every look has an input")));
    }
    Some((fill(template, &values), call.clone()))
}
