//! `shakedown list` and `shakedown explain`: the catalogue.

use std::fmt::Write as _;

use super::{Done, output};
use crate::contract::Contract;
use crate::contract::options::Options;
use crate::contract::stage::Pitfall;
use crate::contracts;
use crate::contracts::Visit;
use crate::value::error::{Error, nearest};
use crate::contract::fault::Fault;
use crate::contract::doc::Doc;
use crate::value::record::{Field, Kind, Record as _};
use crate::report::ExitCode;
use crate::value::text::count;

pub(super) fn list(contract: Option<&str>) -> Done {
    let (mut to, _) = output();
    match contract {
        None => {
            for id in contracts::IDS {
                write!(to, "{}", contracts::visit(id, Line).expect("the name is known"))?;
            }
            writeln!(to, "\nshakedown list CONTRACT says more about one.")?;
        }
        Some(id) => {
            let text = contracts::visit(id, Catalogue)
                .ok_or_else(|| Error::new(contracts::unknown(id)))?;
            write!(to, "{text}")?;
        }
    }
    Ok(ExitCode::AllHold)
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
        Some((contract, name)) => (Some(contract), name),
        None => (None, id),
    };
    if contract.is_none() && contracts::IDS.contains(&id) {
        return Ok(contracts::visit(id, Catalogue).expect("the name is known"));
    }
    if let Some(contract) = contract.filter(|contract| !contracts::IDS.contains(contract)) {
        return Err(Error::new(contracts::unknown(contract)));
    }
    let asked: Vec<&str> =
        contracts::IDS.iter().copied().filter(|id| contract.is_none_or(|one| one == *id)).collect();
    let mut texts: Vec<String> = Vec::new();
    for id in &asked {
        texts.extend(contracts::visit(id, Explain { name }).expect("the name is known"));
    }
    if texts.is_empty() {
        texts.extend(explain_pitfall(name));
    }
    if texts.is_empty() {
        let known: Vec<&str> = asked
            .iter()
            .flat_map(|id| contracts::visit(id, Names).expect("the name is known"))
            .collect();
        let suggestion = nearest(name, known);
        let message = format!("nothing is named `{id}`{suggestion}");
        return Err(Error::new(message));
    }
    Ok(texts.join("\n"))
}

/// One contract in one line.
struct Line;

impl Visit for Line {
    type Output = String;

    fn visit<C: Contract>(self) -> String {
        let summary = Doc(C::DOC).summary();
        format!("{:<20} {:<16} {summary}\n", C::ID, C::STAGE.name())
    }
}

/// All that there is to a contract.
struct Catalogue;

impl Visit for Catalogue {
    type Output = String;

    fn visit<C: Contract>(self) -> String {
        let mut text = format!("{} · {} stage\n\n", C::ID, C::STAGE.name());
        let _ = writeln!(text, "{}", Doc(C::DOC).body());
        let source = Doc(C::DOC).section("Source");
        if !source.is_empty() {
            let _ = writeln!(text, "\nsource: {source}");
        }
        let inputs: Vec<String> = C::Case::fields().iter().map(field_text).collect();
        let outputs: Vec<String> = C::Output::fields().iter().map(field_text).collect();
        let _ = writeln!(text, "\nin:  {}\nout: {}", inputs.join(", "), outputs.join(", "));
        text.push_str("\noptions\n");
        for option in C::Options::docs() {
            let _ = writeln!(
                text,
                "  {:<22} {} (default {})",
                option.name, option.meaning, option.default
            );
        }
        text.push_str("\ninvariants\n");
        for invariant in C::invariants() {
            let _ = writeln!(text, "  {:<32} {}", invariant.id, invariant.doc.claim());
        }
        text.push_str("\nfaults\n");
        for fault in C::faults() {
            let _ = writeln!(text, "  {:<44} {}", fault.id, fault.summary);
        }
        text.push_str("\ninput classes\n");
        for class in C::classes() {
            let _ = writeln!(text, "  {:<32} {}", class.id, class.meaning);
        }
        text
    }
}

/// A field with what it holds: `mask (bool, 2 dimensions)`.
fn field_text(field: &Field) -> String {
    let kind = match field.kind {
        Kind::List => {
            let items: Vec<String> = field.items.iter().map(field_text).collect();
            return format!("{} (list of {})", field.name, items.join(" and "));
        }
        kind => format!("{kind:?}").to_lowercase(),
    };
    let dimensions = match field.ndim {
        Some(0) => String::new(),
        Some(ndim) => format!(", {}", count(ndim as u64, "dimension")),
        None => ", any number of dimensions".to_owned(),
    };
    let optional = if field.optional { ", optional" } else { "" };
    format!("{} ({kind}{dimensions}{optional})", field.name)
}

struct Explain<'a> {
    name: &'a str,
}

impl Visit for Explain<'_> {
    type Output = Vec<String>;

    /// All that has the name: `singleton` is an invariant, an option and a class of inputs.
    fn visit<C: Contract>(self) -> Vec<String> {
        let name = self.name;
        let head = |kind: &str| format!("{}/{name} · {kind}\n", C::ID);
        let mut texts = Vec::new();
        for invariant in C::invariants().iter().filter(|invariant| invariant.id == name) {
            texts.push(head("invariant") + &invariant.explained());
        }
        for fault in C::faults().iter().filter(|fault| fault.id == name) {
            texts.push(head("fault") + &explain_fault(fault));
        }
        for option in C::Options::docs().iter().filter(|option| option.name == name) {
            let meaning = format!("\n{}\n\ndefault: {}\n", option.meaning, option.default);
            texts.push(head("option") + &meaning);
        }
        for class in C::classes().iter().filter(|class| class.id == name) {
            texts.push(head("class of inputs") + &format!("\n{}\n", class.meaning));
        }
        texts
    }
}

fn explain_fault<C: Contract>(fault: &Fault<C>) -> String {
    let invariants = C::invariants();
    let catch = invariants.iter().filter(|invariant| invariant.catches.contains(&fault.id));
    let caught: Vec<&str> = catch.map(|invariant| invariant.id).collect();
    let mut text = format!("\n{}\n\nseen: {}\n", fault.summary, fault.source);
    if fault.options != "{}" {
        let _ = writeln!(text, "shows under the options {}", fault.options);
    }
    if !caught.is_empty() {
        let _ = writeln!(text, "caught by: {}", caught.join(", "));
    }
    let target = format!("builtin:{}/fault/{}", C::ID, fault.id);
    let _ = writeln!(text, "try it: target `{target}` in a manifest");
    text
}

fn explain_pitfall(name: &str) -> Option<String> {
    let pitfall = Pitfall::ALL.iter().find(|pitfall| pitfall.id() == name)?;
    let mut text = format!("{name} · pitfall\n\n{}\n", pitfall.meaning());
    let mut heading = "\ninvariants that point to it\n";
    for id in contracts::IDS {
        let names = contracts::visit(id, PointingTo(*pitfall)).expect("the name is known");
        for name in names {
            let _ = writeln!(text, "{heading}  {id}/{name}");
            heading = "";
        }
    }
    Some(text)
}

struct PointingTo(Pitfall);

impl Visit for PointingTo {
    type Output = Vec<&'static str>;

    fn visit<C: Contract>(self) -> Self::Output {
        let all = C::invariants().into_iter();
        all.filter(|invariant| invariant.pitfall == self.0).map(|invariant| invariant.id).collect()
    }
}

/// Every name that can be explained.
struct Names;

impl Visit for Names {
    type Output = Vec<&'static str>;

    fn visit<C: Contract>(self) -> Self::Output {
        let mut names = vec![C::ID];
        names.extend(C::invariants().iter().map(|invariant| invariant.id));
        names.extend(C::faults().iter().map(|fault| fault.id));
        names.extend(C::Options::docs().iter().map(|option| option.name));
        names.extend(C::classes().iter().map(|class| class.id));
        names.extend(Pitfall::ALL.iter().map(|pitfall| pitfall.id()));
        names
    }
}
