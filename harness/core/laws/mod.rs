//! Laws: invariants written once over small capability traits and shared by many contracts.

mod answers;
pub mod compare;
pub mod deterministic;
pub mod does_not_crash;
pub mod does_not_raise;
pub mod faults;
pub mod finite;
pub mod gradient;
pub mod gradient_sums_to_zero;
pub mod inputs_unchanged;
pub mod masked_poison;
pub mod masks;
pub mod no_gradient_on_unknown_prefixes;
pub mod no_gradient_outside_the_mask;
pub mod oracle;
pub mod padding;
pub mod reference_unchanged;
pub mod refuses;
pub mod row_permutation;
pub mod row_split;
pub mod rows_trained_once;
pub mod well_formed;
pub mod within_time_limit;

use crate::contract::Contract;
use crate::contract::invariant::Invariant;
use crate::value::record::{Record as _, is_float};

/// The laws that hold of every contract whatsoever, in the order in which they are checked. Only a
/// text cannot be infinite.
pub fn universal<C: Contract>() -> Vec<Invariant<C>> {
    universal_and(&[])
}

/// The same, where some of them catch faults of the contract too: the law's id, and the faults.
///
/// # Panics
/// If no such law holds of the contract.
pub fn universal_and<C: Contract>(
    more: &[(&'static str, &'static [&'static str])],
) -> Vec<Invariant<C>> {
    let mut laws = vec![
        does_not_raise::law().catching(&["raises"]),
        within_time_limit::law().catching(&["hangs"]),
        does_not_crash::law().catching(&["dies"]),
        well_formed::law().catching(&["drops-a-row"]),
        finite::law().catching(&["gives-nan"]),
        inputs_unchanged::law().catching(&["changes-its-inputs"]),
        deterministic::law().catching(&["flips"]),
    ];
    laws.retain(|law| law.id != "finite" || C::Output::fields().iter().any(is_float));
    for (id, faults) in more {
        let law = laws.iter_mut().find(|law| law.id == *id);
        let law = law.unwrap_or_else(|| panic!("the law `{id}` does not hold of {}", C::ID));
        law.catches.extend(*faults);
    }
    laws
}

/// The laws that are not about what an output says: wrong numbers break none of them.
pub const NOT_OF_OUTPUTS: [&str; 6] = [
    "does-not-raise",
    "within-time-limit",
    "does-not-crash",
    "well-formed",
    "inputs-unchanged",
    "deterministic",
];
