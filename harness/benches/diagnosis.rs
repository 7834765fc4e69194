//! How often a bug is named rightly: composed bugs, of which the truth is known, in families.
//!
//! `cargo bench --bench diagnosis [-- CONTRACT… FAMILY…]` prints, for each family, how many
//! were found, named rightly (exactly, in a region, partly), by another name that gives the same
//! on all that was compared (`other=`), by a wrong one, and by none, how many findings a bug
//! makes, how large its smallest case is and how long the diagnosis takes. `-v` lists the bugs.
//!
//! Altered terms are made as the hypotheses make them: their rate says how often one is chosen
//! among all others, not how many bugs of trainers are one.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use arbitrary::Unstructured;
use proptest::prelude::Rng as _;
use shakedown::author::{Call, Component, Place};
use shakedown::contract::component::{Failure, Gradients, Returned};
use shakedown::contract::erased::AnyContract;
use shakedown::contract::fault::AnyFault;
use shakedown::contract::options::AnyOptions;
use shakedown::contract::stream;
use shakedown::contracts;
use shakedown::engine::check::run;
use shakedown::engine::subject::{Budget, Subject, read_options};
use shakedown::numeric::function::Function;
use shakedown::numeric::terms::{Alteration, TermChange, altered, named_in};
use shakedown::report::{ComponentReport, Finding, Strength};
use shakedown::value::record::{Shared, ValueRef, same_bits};

/// A wrong component made of known parts.
struct Composed {
    contract: &'static dyn AnyContract,
    declared: Arc<dyn AnyOptions>,
    wrong: Wrong,
}

#[derive(Clone)]
enum Wrong {
    /// The reference under other options.
    Options(Arc<dyn AnyOptions>),
    /// A fault, under other options of its own.
    Fault(&'static AnyFault, usize, Arc<dyn AnyOptions>),
    /// The outputs of something wrong, times a factor.
    Scaled(Box<Wrong>, f64),
    /// Something wrong in the cases whose first axis is longer than this, else nothing.
    Longer(usize, Box<Wrong>),
    /// One thing in those cases, another one in the others.
    Either(usize, Box<Wrong>, Box<Wrong>),
    /// A term of the reference is otherwise.
    Term(Alteration),
}

impl Wrong {
    fn of(&self, contract: &dyn AnyContract, call: &Call<'_>) -> Shared {
        let (case, dtype) = (&**call.case, call.place.dtype);
        let long = |least: usize| {
            let mut longest = 0;
            case.each(&mut |_, value| {
                longest = longest
                    .max(value.and_then(|value| value.shape().first().copied()).unwrap_or(0));
            });
            longest > least
        };
        match self {
            Wrong::Options(options) => contract.reference(case, &**options, dtype),
            Wrong::Fault(fault, variant, options) => {
                fault.variants()[*variant].output(case, &**options, dtype)
            }
            Wrong::Scaled(wrong, factor) => {
                wrong.of(contract, call).with_floats(&mut |_, floats| {
                    floats.iter_mut().for_each(|x| *x *= factor);
                })
            }
            Wrong::Longer(least, wrong) if long(*least) => wrong.of(contract, call),
            Wrong::Longer(..) => contract.reference(case, &**call.options, dtype),
            Wrong::Either(least, wrong, _) if long(*least) => wrong.of(contract, call),
            Wrong::Either(_, _, wrong) => wrong.of(contract, call),
            Wrong::Term(alteration) => {
                altered(&[*alteration], || contract.on_tape(case, &**call.options, dtype))
            }
        }
    }
}

impl Component for Composed {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        let given = || self.wrong.of(self.contract, call).rounded(call.place.dtype);
        // A fault may raise, as may the reference where the options refuse a case.
        let output = catch_unwind(AssertUnwindSafe(given)).map_err(|_| Failure::Raised {
            message: "panicked".to_owned(),
            traceback: String::new(),
        })?;
        Ok(Returned { output, changed: Vec::new(), no_gradient: Vec::new() })
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Optional
    }
}

/// A composed bug and the words of which a right name has some.
struct Bug {
    family: &'static str,
    what: String,
    names: Vec<Vec<String>>,
    component: Composed,
}

/// Cases of the contract, the same in every run.
fn cases(contract: &'static dyn AnyContract, options: &Arc<dyn AnyOptions>) -> Vec<Shared> {
    let stream = stream::cases(contract, Vec::new(), 7, options, Place::CPU_F32.dtype);
    stream
        .map(|(_, case)| case)
        .filter(|case| !contract.refuses(&**case, &**options))
        .take(150)
        .collect()
}

/// On how many cases something gives other outputs than the reference.
fn shows(
    contract: &'static dyn AnyContract,
    options: &Arc<dyn AnyOptions>,
    wrong: &Wrong,
) -> usize {
    let right = Wrong::Options(Arc::clone(options));
    let differs = |case: &&Shared| differs(contract, case, options, [wrong, &right], CLEARLY);
    cases(contract, options).iter().filter(differs).count()
}

/// Shares by which numbers differ: clearly, and more than by rounding.
const CLEARLY: f64 = 0.02;
const AT_ALL: f64 = 1e-3;

/// Whether two components give other outputs for a case.
fn differs(
    contract: &'static dyn AnyContract,
    case: &Shared,
    options: &Arc<dyn AnyOptions>,
    both: [&Wrong; 2],
    share: f64,
) -> bool {
    let place = Place::CPU_F32;
    let call = Call { case, options, place, gradient: false };
    let asked = || {
        let [a, b] = both.map(|one| one.of(contract, &call).rounded(place.dtype));
        far(&a, &b, share)
    };
    catch_unwind(AssertUnwindSafe(asked)).unwrap_or(true)
}

/// Whether two outputs are further apart than any rounding.
fn far(a: &Shared, b: &Shared, share: f64) -> bool {
    if same_bits(&**a, &**b) {
        return false;
    }
    let (a, b) = (a.fields(), b.fields());
    a.iter().zip(&b).any(|((_, a), (_, b))| match (a, b) {
        (Some(ValueRef::Float(a)), Some(ValueRef::Float(b))) => {
            a.shape() != b.shape() || a.iter().zip(b).any(|(a, b)| apart(*a, *b, share))
        }
        (Some(a), Some(b)) => !a.same_bits(b),
        (a, b) => a.is_some() != b.is_some(),
    })
}

/// The number that a name must have, in the words of the reports, or the word.
fn option_names(contract: &dyn AnyContract, name: &str, value: &str) -> Vec<String> {
    let mut names = vec![format!("`{name}` were {value}"), format!("{name}: {value}")];
    // A known bug that is this option.
    for fault in contract.faults() {
        let is = fault.variants().iter().any(|variant| {
            let default = contract.default_options();
            variant
                .as_if(&*default)
                .is_some_and(|other| other.json().get(name) != default.json().get(name))
        });
        if is {
            names.push(fault.id.to_owned());
        }
    }
    names
}

/// Another value for each option that has an effect, none of a grid.
fn other_options(
    contract: &'static dyn AnyContract,
) -> Vec<(String, Arc<dyn AnyOptions>, Vec<String>)> {
    let declared = contract.default_options();
    let mut found = Vec::new();
    for doc in contract.option_docs() {
        let now = declared.json().get(doc.name).cloned().unwrap_or_default();
        let mut values: Vec<String> = Vec::new();
        match now.as_f64() {
            Some(now) => {
                values.extend(
                    [now * 1.7, now * 0.6, now + 0.23]
                        .map(|x| format!("{}", (x * 1e6).round() / 1e6)),
                );
            }
            None => values.extend(doc.meaning.split('`').skip(1).step_by(2).map(str::to_owned)),
        }
        for value in values {
            let Ok(other) = declared.with(doc.name, &value) else { continue };
            if other.check().is_err() || *other == *declared {
                continue;
            }
            let names = option_names(contract, doc.name, &value);
            found.push((format!("{}: {value}", doc.name), other, names));
        }
    }
    found
}

/// What may become of a term.
const CHANGES: [TermChange; 6] = [
    TermChange::Times(0.0),
    TermChange::Times(0.3),
    TermChange::Detached,
    TermChange::Times(-1.0),
    TermChange::Times(2.0),
    TermChange::Through(Function::Tangent),
];

/// The words of the reports.
fn term_told(Alteration { term, change }: Alteration) -> String {
    let change = match change {
        TermChange::Times(0.0) => "missing".to_owned(),
        TermChange::Times(-1.0) => "negated".to_owned(),
        TermChange::Times(factor) => format!("{factor} times what it is"),
        TermChange::Through(function) => function.told(),
        TermChange::Detached => "detached".to_owned(),
    };
    format!("{term}: {change} | the term `{term}` were {change}")
}

/// Every term that the reference names under some options, with all that may become of it.
fn alterations(
    contract: &'static dyn AnyContract,
    options: &Arc<dyn AnyOptions>,
) -> Vec<Alteration> {
    let mut terms: Vec<&'static str> = Vec::new();
    for case in cases(contract, options) {
        for term in named_in(|| contract.on_tape(&*case, &**options, Place::CPU_F32.dtype)) {
            if !terms.contains(&term) {
                terms.push(term);
            }
        }
    }
    let changed = |term| CHANGES.map(|change| Alteration { term, change });
    terms.into_iter().flat_map(changed).collect()
}

/// The names of all that gives what an altered term gives on nearly all cases: faults, numbers of
/// options, other terms.
fn term_names(
    contract: &'static dyn AnyContract,
    options: &Arc<dyn AnyOptions>,
    alteration: Alteration,
    all: &[Alteration],
) -> Vec<String> {
    let wrong = Wrong::Term(alteration);
    let cases = cases(contract, options);
    let is_same = |other: &Wrong| {
        let differs = |case: &&Shared| differs(contract, case, options, [&wrong, other], AT_ALL);
        cases.iter().filter(differs).take(cases.len() / 20 + 1).count() <= cases.len() / 20
    };
    let mut names: Vec<String> = Vec::new();
    let mut add = |told: String| names.extend(told.split(" | ").map(str::to_owned));
    add(term_told(alteration));
    let others = all.iter().filter(|other| **other != alteration);
    others.filter(|other| is_same(&Wrong::Term(**other))).for_each(|other| add(term_told(*other)));
    for fault in contract.faults() {
        let variants = 0..fault.variants().len();
        let same = |variant| is_same(&Wrong::Fault(fault, variant, Arc::clone(options)));
        if variants.into_iter().any(same) {
            add(fault.id.to_owned());
        }
    }
    for (name, now) in options.json() {
        let TermChange::Times(factor) = alteration.change else { continue };
        let number = now.as_f64().map(|now| format!("{}", (now * factor * 1e9).round() / 1e9));
        for value in number.into_iter().chain(["false", "true"].map(str::to_owned)) {
            let Ok(other) = options.with(&name, &value) else { continue };
            if other.check().is_ok() && is_same(&Wrong::Options(other)) {
                add(format!("`{name}` were {value} | {name}: {value}"));
            }
        }
    }
    names
}

fn bugs(contract: &'static dyn AnyContract) -> Vec<Bug> {
    let mut bugs: Vec<Bug> = Vec::new();
    let mut add = |family,
                   what: String,
                   names: Vec<Vec<String>>,
                   declared: &Arc<dyn AnyOptions>,
                   wrong: Wrong| {
        let shown = shows(contract, declared, &wrong);
        if shown >= 6 {
            let declared = Arc::clone(declared);
            let component = Composed { contract, declared, wrong };
            bugs.push(Bug { family, what, names, component });
        }
    };
    let declared = contract.default_options();
    let others = other_options(contract);
    for (what, other, names) in &others {
        add(
            "option",
            what.clone(),
            vec![names.clone()],
            &declared,
            Wrong::Options(Arc::clone(other)),
        );
    }
    let mut rng = stream::rng(11, contract.id());
    for drawn in 0..4 {
        let mut bytes = [0; 256];
        stream::rng(drawn, contract.id()).fill_bytes(&mut bytes);
        let options = contract.draw_options(&mut Unstructured::new(&bytes));
        let options = if drawn == 0 { Arc::clone(&declared) } else { options.expect("options") };
        let all = alterations(contract, &options);
        for (index, one) in all.iter().enumerate() {
            // Under the default options the first three changes, under others one of them in turn.
            let (term, change) = (index / CHANGES.len(), index % CHANGES.len());
            let in_turn = (term + drawn as usize) % CHANGES.len();
            if (drawn == 0 && change < 3) || (drawn > 0 && change == in_turn) {
                let names = vec![term_names(contract, &options, *one, &all)];
                add("term", names[0][0].clone(), names, &options, Wrong::Term(*one));
            }
        }
    }
    let faults: Vec<&'static AnyFault> =
        contract.faults().iter().filter(|fault| !fault.variants().is_empty()).collect();
    let id = |fault: &AnyFault| vec![fault.id.to_owned()];
    for (index, fault) in faults.iter().enumerate() {
        let own = read_options(contract, fault.options).expect("a fault's options");
        let variant = index % fault.variants().len();
        let wrong = || Box::new(Wrong::Fault(fault, variant, Arc::clone(&own)));
        match index % 4 {
            0 => {
                let mut bytes = [0; 256];
                rng.fill_bytes(&mut bytes);
                let drawn = contract.draw_options(&mut Unstructured::new(&bytes));
                if let Ok(drawn) = drawn {
                    let wrong = Wrong::Fault(fault, variant, Arc::clone(&drawn));
                    add(
                        "fault, other options",
                        fault.id.to_owned(),
                        vec![id(fault)],
                        &drawn,
                        wrong,
                    );
                }
            }
            // A mask is no number.
            1 if contract.whole().is_empty() => add(
                "fault, scaled",
                format!("{} × 1.3", fault.id),
                vec![id(fault)],
                &own,
                Wrong::Scaled(wrong(), 1.3),
            ),
            2 => add(
                "fault in a region",
                fault.id.to_owned(),
                vec![id(fault)],
                &own,
                Wrong::Longer(2, wrong()),
            ),
            _ => {
                let other = faults[(index + 5) % faults.len()];
                let same = read_options(contract, other.options).is_ok_and(|other| *other == *own);
                let second = Box::new(Wrong::Fault(other, 0, Arc::clone(&own)));
                // Where the one is, and where the other is, both must show.
                let none = || Box::new(Wrong::Options(Arc::clone(&own)));
                let first_alone = Wrong::Either(2, wrong(), none());
                let second_alone = Wrong::Either(2, none(), second.clone());
                let both_show = || {
                    let each = [first_alone, second_alone];
                    each.iter().all(|one| shows(contract, &own, one) >= 6)
                };
                if same && other.id != fault.id && both_show() {
                    let what = format!("{} or {}", fault.id, other.id);
                    add(
                        "two faults",
                        what,
                        vec![id(fault), id(other)],
                        &own,
                        Wrong::Either(2, wrong(), second),
                    );
                }
                for (what, option, names) in others.iter().take(1) {
                    let wrong = Wrong::Fault(fault, variant, Arc::clone(option));
                    let what = format!("{} and {what}", fault.id);
                    add("fault and option", what, vec![id(fault), names.clone()], &declared, wrong);
                }
            }
        }
    }
    bugs
}

#[derive(Default)]
struct Tally {
    bugs: u64,
    found: u64,
    exactly: u64,
    region: u64,
    partly: u64,
    half: u64,
    other_exactly: u64,
    other: u64,
    unnamed: u64,
    findings: u64,
    sizes: Vec<usize>,
    slowest_ms: u64,
    diagnosis_ms: u64,
}

impl Tally {
    fn add(&mut self, bug: &Bug, report: &ComponentReport) -> String {
        self.bugs += 1;
        if report.findings.is_empty() {
            return "not found".to_owned();
        }
        self.found += 1;
        self.findings += report.bugs().len() as u64;
        self.sizes.push(numbers(&report.findings[0].case));
        self.diagnosis_ms += report.times.diagnosis_ms;
        self.slowest_ms = self.slowest_ms.max(report.times.diagnosis_ms);
        let diagnoses: Vec<_> =
            report.bugs().into_iter().flat_map(|bug| bug.head.diagnosis.clone()).collect();
        let said: Vec<String> = diagnoses
            .iter()
            .map(|one| format!("{} | {} | {}", one.fault, one.told, one.alike.join(" | ")))
            .collect();
        let has = |names: &Vec<String>| {
            names.iter().any(|name| said.iter().any(|said| said.contains(name)))
        };
        let right = bug.names.iter().filter(|names| has(names)).count();
        let best = diagnoses.first();
        let strength = best.map(|one| one.strength);
        let counter = match (right, strength) {
            (_, None) => &mut self.unnamed,
            (0, Some(Strength::Exactly)) => &mut self.other_exactly,
            (0, _) => &mut self.other,
            // Exactly like one of two: the other one changes nothing there.
            (_, Some(Strength::Exactly)) => &mut self.exactly,
            (some, _) if some < bug.names.len() => &mut self.half,
            (_, Some(Strength::Region)) => &mut self.region,
            (_, Some(Strength::Partly)) => &mut self.partly,
        };
        *counter += 1;
        match best {
            Some(best) => {
                format!("{right} of {} {:?}: {}", bug.names.len(), best.strength, said.join(" || "))
            }
            None => "unnamed".to_owned(),
        }
    }
}

fn numbers(case: &serde_json::Value) -> usize {
    match case {
        serde_json::Value::Array(items) => items.iter().map(numbers).sum(),
        serde_json::Value::Object(fields) => fields.values().map(numbers).sum(),
        _ => 1,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|one| one != "--bench").collect();
    let verbose = arguments.iter().any(|one| one == "-v");
    let wanted = |of_contract: bool| {
        let words = arguments.iter().filter(|one| !one.starts_with('-'));
        words.filter(|one| contracts::find(one).is_some() == of_contract).collect::<Vec<_>>()
    };
    let (wanted, families) = (wanted(true), wanted(false));
    std::panic::set_hook(Box::new(|_| ()));
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let begun = Instant::now();
    for contract in contracts::all() {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| *wanted == contract.id()) {
            continue;
        }
        for bug in bugs(contract) {
            if !families.is_empty() && !families.iter().any(|family| *family == bug.family) {
                continue;
            }
            let wrong = bug.component.wrong.clone();
            let options = Arc::clone(&bug.component.declared);
            let component = Composed { contract, declared: Arc::clone(&options), wrong };
            let mut subject = Subject::new(contract, &*bug.what, Box::new(component));
            subject.options = options;
            let report = run(&mut subject, Place::CPU_F32, &Budget::default(), &|_| ())
                .expect("a builtin component");
            let said = tallies.entry(bug.family).or_default().add(&bug, &report);
            if verbose {
                println!(
                    "{} · {} · {} [{} ms]\n    {said}",
                    contract.id(),
                    bug.family,
                    bug.what,
                    report.times.diagnosis_ms
                );
                for one in report.bugs().into_iter().skip(1) {
                    let Finding { invariant, found, diagnosis, .. } = one.head;
                    let name = diagnosis.first().map_or("unnamed", |first| &first.fault);
                    println!(
                        "    and {invariant} ({name}): {}",
                        found.lines().next().unwrap_or("")
                    );
                }
            }
        }
    }
    println!(
        "{:<22} {:>5} {:>5} {:>7} {:>6} {:>6} {:>5} {:>6} {:>5} {:>7} {:>9} {:>6} {:>10}",
        "family",
        "bugs",
        "found",
        "exactly",
        "region",
        "partly",
        "half",
        "other=",
        "other",
        "unnamed",
        "findings",
        "size",
        "diagnosis"
    );
    let mut all = Tally::default();
    for (family, mut tally) in tallies {
        line(family, &mut tally);
        all.bugs += tally.bugs;
        all.found += tally.found;
        all.exactly += tally.exactly;
        all.region += tally.region;
        all.partly += tally.partly;
        all.half += tally.half;
        all.other_exactly += tally.other_exactly;
        all.other += tally.other;
        all.unnamed += tally.unnamed;
        all.findings += tally.findings;
        all.sizes.append(&mut tally.sizes);
        all.diagnosis_ms += tally.diagnosis_ms;
        all.slowest_ms = all.slowest_ms.max(tally.slowest_ms);
    }
    line("all", &mut all);
    let share = |count: u64| 100.0 * count as f64 / all.found.max(1) as f64;
    let right = all.exactly + all.region + all.partly;
    println!(
        "named rightly {:.1} %, by what gives the same {:.1} %, half {:.1} %, wrongly {:.1} %; \
         in {:.0} s",
        share(right),
        share(all.other_exactly),
        share(all.half),
        share(all.other),
        begun.elapsed().as_secs_f64()
    );
}

fn line(family: &str, tally: &mut Tally) {
    tally.sizes.sort_unstable();
    let median = tally.sizes.get(tally.sizes.len() / 2).copied().unwrap_or(0);
    let largest = tally.sizes.last().copied().unwrap_or(0);
    let found = tally.found.max(1);
    let size = format!("{median}/{largest}");
    println!(
        "{family:<22} {:>5} {:>5} {:>7} {:>6} {:>6} {:>5} {:>6} {:>5} {:>7} {:>9.2} {size:>7} \
         {:>4}/{:<5} ms",
        tally.bugs,
        tally.found,
        tally.exactly,
        tally.region,
        tally.partly,
        tally.half,
        tally.other_exactly,
        tally.other,
        tally.unnamed,
        tally.findings as f64 / found as f64,
        tally.diagnosis_ms / found,
        tally.slowest_ms,
    );
}

fn apart(a: f64, b: f64, share: f64) -> bool {
    let distance = (a - b).abs();
    !(a == b || a.is_nan() && b.is_nan() || distance <= share * (1.0 + a.abs() + b.abs()))
}
