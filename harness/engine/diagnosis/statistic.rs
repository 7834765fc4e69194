//! What is made of numbers that are counted together: all, those of a row, of a group, of a mask.

use std::collections::BTreeMap;

use ndarray::{ArrayD, Axis};

use crate::diagnosis::axis::Along;
use shakedown_core::value::record::Value;

/// A share that sums of a few thousand numbers may be off by.
const ROUNDING: f64 = 1e-12;

/// What becomes of numbers by a statistic of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statistic {
    /// Their mean in place of each.
    Mean,
    /// Each less their mean.
    Centred,
    /// The same over their deviation, of n numbers or of n - 1.
    Standardised(u8),
    /// Each as a share of the way from the least to the largest.
    Scaled,
    /// Each over the largest.
    OverLargest,
}

/// The numbers that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// Those of a group, by the numbers of groups in a field.
    Group(&'static str),
    /// Those where a mask is true, or all; together, or those along an axis.
    Kept { mask: Option<&'static str>, along: Option<Along> },
}

impl Statistic {
    pub(crate) const ALL: [Statistic; 6] = [
        Statistic::Mean,
        Statistic::Centred,
        Statistic::Standardised(0),
        Statistic::Standardised(1),
        Statistic::Scaled,
        Statistic::OverLargest,
    ];

    pub(crate) fn told(self) -> &'static str {
        match self {
            Statistic::Mean => "its mean",
            Statistic::Centred => "less its mean",
            Statistic::Standardised(_) => "less its mean and over its deviation",
            Statistic::Scaled => "scaled from its least to its largest number",
            Statistic::OverLargest => "divided by its largest number",
        }
    }

    /// An array with this in place of the numbers that are counted; `None` where a field that says
    /// which these are is not there, or is of another shape.
    pub(crate) fn of(
        self,
        array: &ArrayD<f64>,
        over: &Over,
        other: impl Fn(&str) -> Option<Value>,
    ) -> Option<ArrayD<f64>> {
        let mut changed = array.clone();
        match over {
            Over::Group(field) => {
                let Value::Int(groups) = other(field)? else { return None };
                if groups.shape() != array.shape() {
                    return None;
                }
                let mut members: BTreeMap<i64, Vec<&mut f64>> = BTreeMap::new();
                for (x, group) in changed.iter_mut().zip(&groups) {
                    members.entry(*group).or_default().push(x);
                }
                members.into_values().for_each(|members| self.put(members));
            }
            Over::Kept { mask, along } => {
                let mask = match mask.map(other) {
                    None => ArrayD::from_elem(array.raw_dim(), true),
                    Some(Some(Value::Bool(mask))) if mask.shape() == array.shape() => mask,
                    Some(_) => return None,
                };
                match along {
                    None => self.put(kept(changed.iter_mut(), mask.iter())),
                    Some(along) => {
                        along.within(array)?;
                        let axis = Axis(along.axis);
                        for (mut lane, mask) in
                            changed.lanes_mut(axis).into_iter().zip(mask.lanes(axis))
                        {
                            self.put(kept(lane.iter_mut(), mask.iter()));
                        }
                    }
                }
            }
        }
        Some(changed)
    }

    /// Puts it in place of numbers.
    fn put(self, numbers: Vec<&mut f64>) {
        let each = || numbers.iter().map(|x| **x);
        let count = numbers.len() as f64;
        let mean = each().sum::<f64>() / count;
        let squares: f64 = each().map(|x| (x - mean).powi(2)).sum();
        let (least, largest) =
            (each().fold(f64::INFINITY, f64::min), each().fold(f64::NAN, f64::max));
        for x in numbers {
            *x = match self {
                Statistic::Mean => mean,
                Statistic::Centred => *x - mean,
                // What rounding makes of equal numbers is no deviation.
                Statistic::Standardised(_) if squares.sqrt() <= ROUNDING * mean.abs() => 0.0,
                Statistic::Standardised(ddof) => {
                    let variance = squares / (count - f64::from(ddof)).max(1.0);
                    share(*x - mean, variance.sqrt())
                }
                Statistic::Scaled => share(*x - least, largest - least),
                Statistic::OverLargest => share(*x, largest),
            };
        }
    }
}

/// Nothing is over nothing: the ε that everybody adds sees to that.
fn share(part: f64, whole: f64) -> f64 {
    if part == 0.0 { 0.0 } else { part / whole }
}

/// The numbers where a mask is true.
fn kept<'a, 'b>(
    numbers: impl Iterator<Item = &'a mut f64>,
    mask: impl Iterator<Item = &'b bool>,
) -> Vec<&'a mut f64> {
    numbers.zip(mask).filter_map(|(x, kept)| kept.then_some(x)).collect()
}

impl Over {
    pub(crate) fn told(self) -> String {
        match self {
            Over::Group(field) => format!(" within each of `{field}`"),
            Over::Kept { mask, along } => {
                let along = along.map(|along| format!(" along {}", along.told()));
                let mask = mask.map(|mask| format!(" where `{mask}` is true"));
                along.unwrap_or_default() + &mask.unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::arr2;

    use super::*;

    const ROWS: Along = Along { letter: 'T', axis: 1 };

    fn of(statistic: Statistic, over: Over, numbers: [[f64; 3]; 2]) -> Vec<f64> {
        let other = |name: &str| match name {
            "mask" => {
                let mask = arr2(&[[true, true, false], [false, true, true]]);
                Some(Value::Bool(mask.into_dyn()))
            }
            "groups" => Some(Value::Int(arr2(&[[0, 1, 1], [0, 0, 2]]).into_dyn())),
            "another-shape" => Some(Value::Bool(arr2(&[[true]]).into_dyn())),
            _ => None,
        };
        let changed = statistic.of(&arr2(&numbers).into_dyn(), &over, other);
        changed.map_or_else(Vec::new, |changed| changed.iter().copied().collect())
    }

    #[test]
    fn what_counts_together_is_all_an_axis_a_group_or_what_a_mask_keeps() {
        let mean = |over| of(Statistic::Mean, over, [[1.0, 3.0, 8.0], [0.0, 2.0, 4.0]]);
        let kept = |mask, along| mean(Over::Kept { mask, along });
        assert_eq!(kept(None, None), [3.0; 6]);
        assert_eq!(kept(None, Some(ROWS)), [4.0, 4.0, 4.0, 2.0, 2.0, 2.0]);
        assert_eq!(mean(Over::Group("groups")), [1.0, 5.5, 5.5, 1.0, 1.0, 4.0]);
        assert_eq!(kept(Some("mask"), None), [2.5, 2.5, 8.0, 0.0, 2.5, 2.5]);
        assert_eq!(kept(Some("mask"), Some(ROWS)), [2.0, 2.0, 8.0, 0.0, 3.0, 3.0]);
        assert_eq!(kept(Some("another-shape"), None), [0.0; 0]);
        assert_eq!(mean(Over::Group("missing")), [0.0; 0]);
    }

    #[test]
    fn a_statistic_is_put_in_place_of_each_number() {
        let over = Over::Kept { mask: None, along: Some(ROWS) };
        let rows = |statistic| of(statistic, over, [[1.0, 2.0, 3.0], [0.1; 3]]);
        assert_eq!(rows(Statistic::Standardised(1)), [-1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        let biased = 1.5_f64.sqrt();
        assert_eq!(rows(Statistic::Standardised(0)), [-biased, 0.0, biased, 0.0, 0.0, 0.0]);
        assert_eq!(rows(Statistic::Scaled), [0.0, 0.5, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(rows(Statistic::Centred)[..3], [-1.0, 0.0, 1.0]);
        let third = 1.0 / 3.0;
        assert_eq!(rows(Statistic::OverLargest), [third, 2.0 * third, 1.0, 1.0, 1.0, 1.0]);
    }
}
