//! Counts of a case: what a sum may be divided by.

use shakedown_core::contract::erased::AnyContract;
use shakedown_core::value::record::{AnyRecord, ValueRef, is_named};

/// A count of a case, what is added to it, and whether the root is taken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Count {
    pub(crate) what: What,
    pub(crate) plus: i8,
    pub(crate) root: bool,
}

/// What is counted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// One, whatever the case.
    One,
    /// The places of an array along one of its axes, whose letter this is.
    Along { field: &'static str, axis: usize, letter: char },
    /// All numbers of an array.
    All { field: &'static str },
    /// The true places of a mask.
    True { field: &'static str },
    /// The rows of a mask with a true place.
    RowsWithAny { field: &'static str },
    /// The most true places of a row.
    Longest { field: &'static str },
    /// Different numbers of a field.
    Different { field: &'static str },
    /// The items of a list, told by a field that each has.
    Items { list: &'static str, field: String },
    /// The sum of one integer input.
    Value { field: &'static str },
}

impl Count {
    /// What the case of a contract has to count.
    pub(crate) fn all(contract: &dyn AnyContract, case: &dyn AnyRecord) -> Vec<Count> {
        let mut whats = vec![What::One];
        let axes = contract.axes();
        let mut letters = Vec::new();
        case.each(&mut |field, value| {
            let Some(value) = value else { return };
            if let Some((list, rest)) = field.split_once(".0.") {
                whats.push(What::Items { list: leaked(list), field: rest.to_owned() });
            }
            if field.contains('.') && !field.contains(".0.") {
                return;
            }
            let field = pattern(field);
            for axis in 0..value.shape().len() {
                let letter = axes.letter(field, axis).unwrap_or('?');
                if letter == '?' || !letters.contains(&letter) {
                    letters.push(letter);
                    whats.push(What::Along { field, axis, letter });
                }
            }
            match value {
                ValueRef::Bool(_) => {
                    let counts = [What::True { field }, What::RowsWithAny { field }];
                    whats.extend(counts);
                    whats.extend([What::Longest { field }, What::All { field }]);
                }
                ValueRef::Int(array) if array.ndim() == 0 => whats.push(What::Value { field }),
                ValueRef::Int(_) => whats.push(What::Different { field }),
                ValueRef::Float(array) if array.ndim() > 1 => whats.push(What::All { field }),
                _ => {}
            }
        });
        let mut different: Vec<What> = Vec::new();
        for what in whats {
            if !different.contains(&what) {
                different.push(what);
            }
        }
        let plus = |what: What| {
            let ways: &[(i8, bool)] = match what {
                What::One => &[(0, false), (1, false)],
                _ => &[(0, false), (-1, false), (1, false), (0, true)],
            };
            ways.iter().map(move |&(plus, root)| Count { what: what.clone(), plus, root })
        };
        different.into_iter().flat_map(plus).collect()
    }

    /// How many a case has, in all items of a list together.
    pub(crate) fn of(&self, case: &dyn AnyRecord) -> f64 {
        let mut count = 0.0;
        case.each(&mut |name, value| {
            let Some(value) = value else { return };
            let named = |field: &str| is_named(&[field], name);
            count += match &self.what {
                What::Along { field, axis, .. } if named(field) => value.shape()[*axis] as f64,
                What::All { field } if named(field) => {
                    value.shape().iter().product::<usize>() as f64
                }
                What::Items { list, field }
                    if name.starts_with(list) && name.ends_with(&format!(".{field}")) =>
                {
                    1.0
                }
                What::True { field } | What::RowsWithAny { field } | What::Longest { field }
                    if named(field) =>
                {
                    match &value {
                        ValueRef::Bool(mask) => {
                            let rows = mask.rows().into_iter();
                            let rows = rows.map(|row| row.iter().filter(|kept| **kept).count());
                            let number = match &self.what {
                                What::True { .. } => rows.sum(),
                                What::Longest { .. } => rows.max().unwrap_or(0),
                                _ => rows.filter(|tokens| *tokens > 0).count(),
                            };
                            number as f64
                        }
                        _ => 0.0,
                    }
                }
                What::Different { field } | What::Value { field } if named(field) => match &value {
                    ValueRef::Int(array) if array.ndim() == 0 => {
                        array.first().map_or(0.0, |value| *value as f64)
                    }
                    ValueRef::Int(array) => {
                        let mut known: Vec<i64> = array.iter().copied().collect();
                        known.sort_unstable();
                        known.dedup();
                        known.len() as f64
                    }
                    _ => 0.0,
                },
                _ => 0.0,
            };
        });
        if self.what == What::One {
            count = 1.0;
        }
        let count = count + f64::from(self.plus);
        if self.root { count.sqrt() } else { count }
    }

    /// This count of a case over another one; `None` where that is 0.
    pub(crate) fn over(&self, by: &Count, case: &dyn AnyRecord) -> Option<f64> {
        let by = by.of(case);
        (by != 0.0).then(|| self.of(case) / by)
    }

    /// What is counted, in words.
    pub(crate) fn told(&self) -> String {
        let what = match &self.what {
            What::One if self.plus == 0 => return "nothing".to_owned(),
            What::One => return "2".to_owned(),
            What::Along { letter: '?', field, axis } => {
                format!("the length of axis {axis} of `{field}`")
            }
            What::Along { letter, .. } => format!("the length of {letter}"),
            What::All { field } => format!("all positions of `{field}`"),
            What::True { field } => format!("the true positions of `{field}`"),
            What::RowsWithAny { field } => format!("the rows of `{field}` with any true position"),
            What::Longest { field } => format!("the most true positions of a row of `{field}`"),
            What::Different { field } => format!("the number of different `{field}`"),
            What::Items { list, .. } => format!("the number of `{list}`"),
            What::Value { field } => format!("`{field}`"),
        };
        match self.plus {
            0 if self.root => format!("the square root of {what}"),
            0 => what,
            plus if plus < 0 => format!("{what} less {}", -plus),
            plus => format!("{what} plus {plus}"),
        }
    }
}

/// The name of a field of any item: `micro_batches.*.mask`.
pub(crate) fn pattern(field: &'static str) -> &'static str {
    match field.split_once(".0.") {
        Some((list, rest)) => leaked(&format!("{list}.*.{rest}")),
        None => field,
    }
}

/// A name that lives as long as the program, once: there are a few dozen.
fn leaked(name: &str) -> &'static str {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    name
}
