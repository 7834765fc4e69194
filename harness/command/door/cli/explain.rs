//! `shakedown list` and `shakedown explain`: the catalogue.

use std::fmt::Write as _;

use super::{Done, catalogue, output, surroundings};
use shakedown_contracts as contracts;
use shakedown_contracts::REGISTRY;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::fault::{AnyFault, AnyFunction};
use shakedown_core::contract::stage::Pitfall;
use shakedown_core::value::error::{Error, nearest};
use shakedown_core::value::record::{Field, Kind};
use shakedown_core::value::text::count;
use shakedown_core::value::yaml::inline;
use shakedown_engine::report::ExitCode;
use shakedown_engine::subject::read_options;
use shakedown_lint::rules::About;

/// The contract of this name.
pub(super) fn find(id: &str) -> Result<&'static dyn AnyContract, Error> {
    REGISTRY.get(id).map_err(Error::new)
}

pub(super) fn list(contract: Option<&str>, as_json: bool) -> Done {
    let (mut to, _) = output();
    match contract {
        None if as_json => return catalogue::print(&catalogue::contracts(contracts::all())),
        Some(id) if as_json => {
            return catalogue::print(&catalogue::contracts([find(id)?].into_iter()));
        }
        None => {
            for contract in contracts::all() {
                let (id, stage) = (contract.id(), contract.stage().name());
                writeln!(to, "{id:<20} {stage:<16} {}", contract.doc().summary())?;
            }
            writeln!(to, "\nshakedown list CONTRACT says more about one.")?;
        }
        Some(id) => match rules_named(id) {
            Some(rules) => {
                for rule in rules {
                    let (stage, claim) = (rule.stage.name(), rule.doc.summary());
                    writeln!(to, "{:<34} {stage:<16} {claim}", rule.id)?;
                }
                writeln!(to, "\nshakedown explain RULE says more about one.")?;
            }
            None => write!(to, "{}", all_of(find(id)?))?,
        },
    }
    Ok(ExitCode::AllHold)
}

/// The rules of a list: `runs`.
fn rules_named(list: &str) -> Option<Vec<About>> {
    surroundings::rules().into_iter().find(|(name, _)| *name == list).map(|(_, rules)| rules)
}

pub(super) fn explain(ids: &[String]) -> Done {
    let (mut to, _) = output();
    for (index, id) in ids.iter().enumerate() {
        let between = if index > 0 { "\n" } else { "" };
        write!(to, "{between}{}", explanation(id)?)?;
    }
    Ok(ExitCode::AllHold)
}

/// What there is to say about one id.
fn explanation(id: &str) -> Result<String, Error> {
    let (contract, name) = match id.split_once('/') {
        Some((contract, name)) => (Some(find(contract)?), name),
        None => (None, id),
    };
    if contract.is_none()
        && let Some(contract) = contracts::find(id)
    {
        let rules = rules_called(id).into_iter();
        return Ok([all_of(contract)].into_iter().chain(rules).collect::<Vec<_>>().join("\n"));
    }
    let asked: Vec<&dyn AnyContract> = match contract {
        Some(contract) => vec![contract],
        None => contracts::all().collect(),
    };
    let named = asked.iter().flat_map(|contract| all_named(*contract, name));
    let mut texts = once_each(named.collect());
    if texts.is_empty() {
        texts.extend(explain_pitfall(name));
    }
    if contract.is_none() {
        texts.extend(rules_called(name));
    }
    if texts.is_empty() {
        let rules = surroundings::rules().into_iter().flat_map(|(_, rules)| rules);
        let rules = rules.map(|rule| rule.id);
        let known = asked.iter().flat_map(|contract| names(*contract)).chain(rules);
        let suggestion = nearest(name, known);
        let message = format!("nothing is named `{id}`{suggestion}");
        return Err(Error::new(message));
    }
    Ok(texts.join("\n"))
}

/// All that there is to a contract.
fn all_of(contract: &dyn AnyContract) -> String {
    let (id, doc) = (contract.id(), contract.doc());
    let mut text = format!("{id} · {} stage\n\n", contract.stage().name());
    let _ = writeln!(text, "{}", doc.body());
    let source = doc.section("Source");
    if !source.is_empty() {
        let _ = writeln!(text, "\nsource: {source}");
    }
    let inputs: Vec<String> = contract.inputs().iter().map(field_text).collect();
    let outputs: Vec<String> = contract.outputs().iter().map(field_text).collect();
    let _ = writeln!(text, "\nin:  {}\nout: {}", inputs.join(", "), outputs.join(", "));
    text.push_str("\noptions\n");
    for option in contract.option_docs() {
        let _ =
            writeln!(text, "  {:<22} {} (default {})", option.name, option.meaning, option.default);
    }
    text.push_str("\ninvariants\n");
    for invariant in contract.invariants() {
        let _ = writeln!(text, "  {:<32} {}", invariant.id, invariant.doc.claim());
    }
    text.push_str("\nfaults\n");
    for fault in contract.faults() {
        let _ = writeln!(text, "  {:<44} {}", fault.id, fault.summary);
    }
    text.push_str("\ninput classes\n");
    for class in contract.classes() {
        let _ = writeln!(text, "  {:<32} {}", class.id, class.meaning);
    }
    if !contract.example().is_empty() {
        text.push_str("\na right function\n");
        for line in contract.example().lines() {
            let _ = writeln!(text, "{}", format!("  {line}").trim_end());
        }
    }
    text
}

/// A field with what it holds: `mask (bool, 2 dimensions)`.
fn field_text(field: &Field) -> String {
    let kind = match field.kind {
        Kind::List => {
            let items: Vec<String> = field.items.iter().map(field_text).collect();
            return format!("{} (list of {})", field.name, items.join(" and "));
        }
        kind => kind.name(),
    };
    let dimensions = match field.ndim {
        Some(0) => String::new(),
        Some(ndim) => format!(", {}", count(ndim as u64, "dimension")),
        None => ", any number of dimensions".to_owned(),
    };
    let optional = if field.optional { ", optional" } else { "" };
    format!("{} ({kind}{dimensions}{optional})", field.name)
}

/// What a contract has under a name.
struct Named {
    contract: &'static str,
    name: String,
    kind: &'static str,
    text: String,
}

impl Named {
    /// What it says of no contract in particular.
    fn gist(&self) -> String {
        let lines = self.text.lines().filter(|line| !line.starts_with("catches: "));
        lines.flat_map(|line| [line, "\n"]).collect()
    }
}

/// What has a name, in words. What several contracts share, as laws, is said once.
fn once_each(mut named: Vec<Named>) -> Vec<String> {
    let mut texts = Vec::new();
    while !named.is_empty() {
        let gist = named[0].gist();
        let (same, others): (Vec<Named>, Vec<Named>) =
            named.into_iter().partition(|other| other.gist() == gist);
        named = others;
        let Named { contract, name, kind, text } = &same[0];
        texts.push(if same.len() == 1 {
            format!("{contract}/{name} · {kind}\n{text}")
        } else {
            let contracts: Vec<&str> = same.iter().map(|one| one.contract).collect();
            let contracts = contracts.join(", ");
            format!("{name} · {kind} of {} contracts\n{gist}\nof: {contracts}\n", same.len())
        });
    }
    texts
}

/// All of a contract that has the name: `singleton` is an invariant, an option and a class of
/// inputs.
fn all_named(contract: &dyn AnyContract, name: &str) -> Vec<Named> {
    let mut named = Vec::new();
    let mut add = |name: &str, kind, text| {
        named.push(Named { contract: contract.id(), name: name.to_owned(), kind, text });
    };
    if let Some(invariant) = contract.invariant(name) {
        add(name, "invariant", invariant.explained());
    }
    if let Some(fault) = contract.fault(name) {
        add(name, "fault", explain_fault(contract, fault));
    }
    for option in contract.option_docs().iter().filter(|option| option.name == name) {
        let meaning = format!("\n{}\n\ndefault: {}\n", option.meaning, option.default);
        add(name, "option", meaning);
    }
    for class in contract.classes().iter().filter(|class| class.id == name) {
        add(name, "class of inputs", format!("\n{}\n", class.meaning));
    }
    named
}

fn explain_fault(contract: &dyn AnyContract, fault: &AnyFault) -> String {
    let invariants = contract.invariants().iter();
    let catch = invariants.filter(|invariant| invariant.catches.contains(&fault.id));
    let caught: Vec<&str> = catch.map(|invariant| invariant.id).collect();
    let mut text = format!("\n{}\n\nseen: {}\n", fault.summary, fault.source);
    if fault.options != "{}" {
        let _ = writeln!(text, "shows under the options {}", fault.options);
    }
    for changed in as_if(contract, fault) {
        let _ = writeln!(text, "then it behaves as if {changed}");
    }
    if !caught.is_empty() {
        let _ = writeln!(text, "caught by: {}", caught.join(", "));
    }
    let target = format!("builtin:{}/fault/{}", contract.id(), fault.id);
    let _ = writeln!(text, "try it: target `{target}` in a manifest");
    text
}

/// What a fault takes for the options under which it shows, where that is all that it does wrong:
/// `gamma: 1.0`, once for each variant.
fn as_if(contract: &dyn AnyContract, fault: &AnyFault) -> Vec<String> {
    let Ok(declared) = read_options(contract, fault.options) else { return Vec::new() };
    let changed = |function: &AnyFunction| {
        let other = function.as_if(&*declared)?.json();
        let both = declared.json().into_iter().zip(other);
        let changed = both.filter(|(a, b)| a != b);
        let shown = changed.map(|(_, (name, value))| format!("`{name}: {}`", inline(&value)));
        Some(shown.collect::<Vec<_>>().join(" and "))
    };
    fault.variants().iter().filter_map(changed).collect()
}

/// The rules about runs, configurations and data sets that have this name.
fn rules_called(name: &str) -> Vec<String> {
    let told = |list: &str, rule: &About| {
        let (id, stage) = (rule.id, rule.stage.name());
        format!(
            "{id} · rule about {list} · {stage} stage\n\n{}\n{}",
            rule.doc.body(),
            rule.explained()
        )
    };
    let lists = surroundings::rules();
    let named = lists.iter().flat_map(|(list, rules)| {
        rules.iter().filter(|rule| rule.id == name).map(|rule| told(list, rule))
    });
    named.collect()
}

fn explain_pitfall(name: &str) -> Option<String> {
    let pitfall = Pitfall::ALL.iter().find(|pitfall| pitfall.id() == name)?;
    let mut text = format!("{name} · pitfall\n\n{}\n", pitfall.meaning());
    let mut heading = "\ninvariants that point to it\n";
    for contract in contracts::all() {
        for invariant in contract.invariants().iter().filter(|one| one.pitfall == *pitfall) {
            let _ = writeln!(text, "{heading}  {}/{}", contract.id(), invariant.id);
            heading = "";
        }
    }
    Some(text)
}

/// Every name of a contract that can be explained.
fn names(contract: &dyn AnyContract) -> Vec<&'static str> {
    let mut names = vec![contract.id()];
    names.extend(contract.invariants().iter().map(|invariant| invariant.id));
    names.extend(contract.faults().iter().map(|fault| fault.id));
    names.extend(contract.option_docs().iter().map(|option| option.name));
    names.extend(contract.classes().iter().map(|class| class.id));
    names.extend(Pitfall::ALL.iter().map(|pitfall| pitfall.id()));
    names
}
