//! What shared laws do, on `returns`.

use ndarray::{arr1, arr2};

use crate::returns::{Options, Returns, ReturnsCase};
use shakedown_core::contract::outcome::difference;
use shakedown_core::contract::rows::Masked as _;
use shakedown_core::generate::pick::Pick;
use shakedown_core::laws::universal;
use shakedown_core::numeric::conventions::MaskedValues;

#[test]
fn a_contract_of_floats_has_every_universal_law() {
    let laws: Vec<&str> = universal::<Returns>().iter().map(|law| law.id).collect();
    let expected = [
        "does-not-raise",
        "within-time-limit",
        "does-not-crash",
        "well-formed",
        "finite",
        "inputs-unchanged",
        "deterministic",
    ];
    assert_eq!(laws, expected);
}

#[test]
fn numbers_differ_that_are_further_apart_than_allowed_and_two_nan_do_not() {
    let found = |left: f64, right: f64, allowed: f64| {
        let [left, right, allowed] = [left, right, allowed].map(|x| arr1(&[0.0, x]).into_dyn());
        difference(&left, &right, &allowed).map(|found| found.index)
    };
    assert_eq!(found(1.0, 2.0, 0.5).as_deref(), Some("[1]"));
    assert_eq!(found(1.0, 2.0, 1.0), None);
    assert_eq!(found(f64::NAN, f64::NAN, 0.0), None);
    assert!(found(f64::NAN, 1.0, 0.5).is_some() && found(1.0, f64::NAN, 0.5).is_some());
    assert_eq!(found(f64::NAN, 1.0, f64::INFINITY), None);
}

/// Rewards with other numbers under the mask, from many seeds.
fn poisoned(masked_values: MaskedValues) -> Vec<f64> {
    let (rewards, mask) = (arr2(&[[1.0, 2.0]]), arr2(&[[true, false]]));
    let case = ReturnsCase { rewards, mask };
    let options = Options { masked_values, ..Options::default() };
    let poisoned = |seed| Returns::poisoned(&case, &options, &mut Pick::seeded(seed)).rewards;
    let poisoned = (0..600).map(poisoned).inspect(|rewards| assert_eq!(rewards[[0, 0]], 1.0));
    poisoned.map(|rewards| rewards[[0, 1]]).collect()
}

#[test]
fn anything_stands_under_a_mask_where_it_may_and_only_there() {
    let finite = poisoned(MaskedValues::Finite);
    assert!(finite.iter().all(|x| x.is_finite()) && finite.iter().any(|x| *x == -7.0));
    let any = poisoned(MaskedValues::Any);
    assert!(any.iter().any(|x| x.is_nan()) && any.contains(&f64::INFINITY));
    // A third of the cases is without them, as they hide everything else, and half of the rest.
    let finite = any.iter().filter(|x| x.is_finite()).count();
    assert!((360..440).contains(&finite), "{finite} of 600");
}

#[test]
fn padding_adds_columns_that_do_not_count() {
    let (rewards, mask) = (arr2(&[[1.0, 2.0]]), arr2(&[[true, true]]));
    let padded = Returns::padded(&ReturnsCase { rewards, mask }, 2);
    assert_eq!(padded.mask, arr2(&[[true, true, false, false]]));
    assert_eq!(padded.rewards, arr2(&[[1.0, 2.0, 2.0, 2.0]]));
}
