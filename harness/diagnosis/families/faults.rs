//! Known bugs: the faults of the contract, in all their variants.

use crate::contract::fault::AnyFault;
use crate::diagnosis::evidence::Evidence;
use crate::diagnosis::hypothesis::Part;
use crate::diagnosis::score::Bench;
use crate::value::yaml::Document;

pub(super) fn parts(bench: &Bench<'_>) -> Vec<Part> {
    let evidence = bench.evidence;
    let of = |fault: &'static AnyFault| {
        let distance = apart(evidence, fault.options);
        let variants = 0..fault.variants().len();
        variants.map(move |variant| Part::Fault { fault, variant, distance })
    };
    evidence.contract.faults().iter().flat_map(of).collect()
}

/// In how many options these differ from those that some YAML declares.
fn apart(evidence: &Evidence, declared: &str) -> usize {
    let declared = evidence.contract.read_options(&Document::new(declared), &[]);
    let declared = declared.expect("a fault's options are valid").json();
    let both = declared.into_iter().zip(evidence.options.json());
    both.filter(|(a, b)| a != b).count()
}
