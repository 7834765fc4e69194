//! Known bugs: the faults of the contract, in all their variants.

use crate::diagnosis::evidence::Evidence;
use crate::diagnosis::hypothesis::{Part, option_told};
use crate::diagnosis::score::Bench;
use shakedown_core::contract::fault::{AnyFault, AnyFunction};
use shakedown_core::value::yaml::{self, Document};

pub(super) fn parts(bench: &Bench<'_>) -> Vec<Part> {
    let evidence = bench.evidence;
    let of = |fault: &'static AnyFault| {
        let distance = apart(evidence, fault.options);
        let variants = fault.variants().iter().enumerate();
        variants.map(move |(variant, function)| {
            let as_if = told(evidence, function);
            Part::Fault { fault, variant, distance, as_if }
        })
    };
    evidence.contract.faults().iter().flat_map(of).collect()
}

/// Numbers beyond it stand for "no limit".
const UNTOLD: f64 = 1e30;

/// What is said of the options that a fault goes by, where it is the reference under other ones.
fn told(evidence: &Evidence, function: &AnyFunction) -> Option<String> {
    let others = function.as_if(&*evidence.options)?.json();
    let mut told = Vec::new();
    for (name, declared) in evidence.options.json() {
        let value = others.get(&name)?;
        // A limit that is none any more is told by what it does.
        if value.as_f64().is_some_and(|value| value.abs() > UNTOLD) {
            return None;
        }
        if *value != declared {
            told.push(option_told(&name, &yaml::inline(value), &yaml::inline(&declared)));
        }
    }
    (!told.is_empty()).then(|| told.join(" and "))
}

/// In how many options these differ from those that some YAML declares.
fn apart(evidence: &Evidence, declared: &str) -> usize {
    let declared = evidence.contract.read_options(&Document::new(declared), &[]);
    let declared = declared.expect("a fault's options are valid").json();
    let both = declared.into_iter().zip(evidence.options.json());
    both.filter(|(a, b)| a != b).count()
}
