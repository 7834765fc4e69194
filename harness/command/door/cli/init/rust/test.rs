//! The test of one component, as a user would write it.

use super::scan::{Function, Type};
use crate::door::cli::init::guess;
use crate::door::cli::init::guess::{Form, GROUP_SIZE, Guess, Parameter};
use crate::door::cli::init::template::fill;

/// A test, and what it is a test of.
pub(super) struct Test {
    pub(super) contract: &'static str,
    pub(super) imports: String,
    pub(super) text: String,
    pub(super) is_example: bool,
}

impl Test {
    /// A test of a function that stands beside it and is right, to be replaced.
    pub(super) fn example() -> Test {
        Test {
            contract: GROUP_ADVANTAGE,
            imports: imports(
                "group_advantage",
                &["GroupAdvantage", "GroupAdvantageCase", "Options"],
            ),
            text: include_str!("example.rs.in").to_owned(),
            is_example: true,
        }
    }
}

const GROUP_ADVANTAGE: &str = "group-advantage";
const REWARD_FUNCTION: &str = "reward-function";

/// The contract that the function looks like, and its test where its types allow one.
pub(super) fn guess_of(function: &Function) -> Option<(&Function, &'static str, Option<Test>)> {
    let required = |(name, _): &(String, Type)| Parameter { name: name.clone(), required: true };
    let parameters: Vec<Parameter> = function.parameters.iter().map(required).collect();
    let guess = guess::guess(&function.name, &parameters)?;
    let test = match guess.contract {
        GROUP_ADVANTAGE => advantages(function, &guess),
        REWARD_FUNCTION => rewards(function, &guess),
        _ => None,
    };
    Some((function, guess.contract, test))
}

/// A test of a function from rewards to advantages.
fn advantages(function: &Function, guess: &Guess) -> Option<Test> {
    let Type::Numbers { of: returned, borrowed: false } = &function.returns else { return None };
    if returned != "f32" && returned != "f64" {
        return None;
    }
    let mut number = String::new();
    let mut arguments = Vec::new();
    let mut takes_epsilon = false;
    for ((_, ours), (_, given)) in guess.arguments.iter().zip(&function.parameters) {
        let from = |field: &str, own: &str, of: &str| match (guess.form, field) {
            (Form::OneGroup, "rewards") => "of_group".to_owned(),
            _ if of == own => format!("case.{field}.to_vec()"),
            _ => format!("case.{field}.mapv(|x| x as {of}).to_vec()"),
        };
        let argument = match (*ours, given) {
            ("rewards", Type::Numbers { of, borrowed }) if of == "f64" || of == "f32" => {
                number.clone_from(of);
                Some((from("rewards", "f64", of), *borrowed))
            }
            ("groups", Type::Numbers { of, borrowed }) if is_integer(of) => {
                Some((from("groups", "i64", of), *borrowed))
            }
            (GROUP_SIZE, Type::Number(of)) if is_integer(of) => {
                Some((format!("group_size as {of}"), false))
            }
            ("epsilon", Type::Number(of)) if of == "f64" || of == "f32" => {
                takes_epsilon = true;
                Some((format!("epsilon as {of}"), false))
            }
            _ => None,
        };
        let (text, borrowed) = argument?;
        let text = text.replace("epsilon as f64", "epsilon").replace("size as usize", "size");
        arguments.push(if borrowed { format!("&{text}") } else { text });
    }
    let template = match guess.form {
        Form::Whole => include_str!("whole.rs.in"),
        Form::EqualGroups => include_str!("equal_groups.rs.in"),
        Form::OneGroup => include_str!("one_group.rs.in"),
        Form::PerRow | Form::Matrix => return None,
    };
    let mut names = vec!["GroupAdvantage", "GroupAdvantageCase", "Options"];
    let mut options = String::new();
    if function.name.contains("rloo") {
        names.extend(["Baseline", "Scale"]);
        options.push_str("baseline: Baseline::LeaveOneOut, scale: Scale::None, ");
    } else if function.name.contains("dr_grpo") {
        names.push("Scale");
        options.push_str("scale: Scale::None, ");
    }
    if guess.form == Form::EqualGroups {
        names.push("Layout");
        options.push_str("layout: Layout::Contiguous, ");
    }
    let (options, is_f32) = (options_text(&options), number == "f32" || returned == "f32");
    let call = format!("{}({})", function.path, arguments.join(", "));
    let mut values = vec![
        ("NAME", &*function.name),
        ("OPTIONS", &*options),
        ("EPSILON", if takes_epsilon { "    let epsilon = options.epsilon;" } else { "" }),
        ("CALL", &*call),
        ("PLACES", places(is_f32)),
    ];
    if guess.form == Form::OneGroup {
        values.push(("NUMBER", &*number));
        values.push(("CAST", if number == "f32" { " as f32" } else { "" }));
    }
    let text = fill(template, &values);
    let imports = imports("group_advantage", &names);
    Some(Test { contract: GROUP_ADVANTAGE, imports, text, is_example: false })
}

/// A test of a function that scores completions, all of them or one.
fn rewards(function: &Function, guess: &Guess) -> Option<Test> {
    let types = guess.arguments.iter().zip(&function.parameters);
    let mut arguments = Vec::new();
    let mut per_row = None;
    for ((_, ours), (_, given)) in types {
        let (text, borrowed, row) = match given {
            Type::Text { borrowed: true } => (format!("case.{ours}[row]"), true, true),
            Type::Text { borrowed: false } => (format!("case.{ours}[row].clone()"), false, true),
            Type::Texts { borrowed } => (format!("case.{ours}.to_vec()"), *borrowed, false),
            _ => return None,
        };
        if *per_row.get_or_insert(row) != row {
            return None;
        }
        arguments.push(if borrowed { format!("&{text}") } else { text });
    }
    let per_row = per_row?;
    let returned = match &function.returns {
        Type::Number(of) if per_row => of,
        Type::Numbers { of, borrowed: false } if !per_row => of,
        _ => return None,
    };
    if !["f64", "f32", "i32", "u32", "bool"].contains(&&**returned) {
        return None;
    }
    let gives_answers = guess.arguments.iter().any(|(_, ours)| *ours == "answers");
    let judges = match (function.name.contains("format"), gives_answers) {
        (true, _) => "Format",
        (false, true) => "Correctness",
        (false, false) => "None",
    };
    let template =
        if per_row { include_str!("reward_rows.rs.in") } else { include_str!("reward.rs.in") };
    let text = fill(
        template,
        &[
            ("NAME", &function.name),
            ("OPTIONS", &options_text(&format!("judges: Judges::{judges}, range: [0.0, 1.0], "))),
            ("CALL", &format!("{}({})", function.path, arguments.join(", "))),
            ("PLACES", places(returned == "f32")),
        ],
    );
    let imports =
        imports("reward_function", &["Judges", "Options", "RewardFunction", "RewardFunctionCase"]);
    Some(Test { contract: REWARD_FUNCTION, imports, text, is_example: false })
}

fn is_integer(name: &str) -> bool {
    ["i64", "i32", "u64", "u32", "usize"].contains(&name)
}

fn options_text(declared: &str) -> String {
    match declared {
        "" => "Options::default()".to_owned(),
        _ => format!("Options {{ {declared}..Options::default() }}"),
    }
}

/// What is rounded to f32 is compared as f32.
fn places(is_f32: bool) -> &'static str {
    if is_f32 { "        .places([shakedown::place::Place::CPU_F32])" } else { "" }
}

fn imports(module: &str, names: &[&str]) -> String {
    let mut names = names.to_vec();
    names.sort_unstable();
    format!("use shakedown::contracts::{module}::{{{}}};", names.join(", "))
}
