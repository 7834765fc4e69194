//! Records whose arrays share named axes: taking part of them, measuring and shrinking them.
//!
//! A contract that says which axes each of its arrays has gets its shrinker from here: the
//! smallest case is the one with the fewest cells, then the fewest masked tokens, distinct values
//! and digits, with what is complex at the end.

use std::collections::BTreeMap;

use ndarray::{ArrayD, Axis, IxDyn};

use crate::contract::Contract;
use crate::pick::Pick;
use crate::place::Dtype;
use crate::record::{Kind, Record, Value};
use crate::shrink::{Measure, complexity, simpler_numbers};
use crate::strings;

/// Contracts whose arrays share named axes.
pub trait Grid: Contract {
    /// The axes of each array of the inputs and outputs, a letter each: `("mask", "NT")`. An array
    /// with fewer dimensions than letters has the first of them.
    const AXES: &'static [(&'static str, &'static str)];

    /// The axis of the rows.
    const ROW: char = 'N';

    /// The axes that may be of length 0.
    const MAY_BE_EMPTY: &'static [char] = &[];
}

/// The fields of a record in their order.
type Fields = Vec<(&'static str, Option<Value>)>;

/// More numbers than this are only cut and replaced as a whole, not one by one.
const FEW_NUMBERS: usize = 96;

/// More distinct numbers than this are not replaced by each other.
const FEW_VALUES: usize = 16;

/// The axes of a field.
fn axes<C: Grid>(field: &str) -> Option<&'static str> {
    C::AXES.iter().find(|(name, _)| *name == field).map(|(_, axes)| *axes)
}

/// Where an axis of this letter stands in a field.
pub fn axis_of<C: Grid>(field: &str, axis: char) -> Option<Axis> {
    axes::<C>(field)?.chars().position(|letter| letter == axis).map(Axis)
}

/// The length of an axis of a case.
///
/// # Panics
/// If no input has it.
pub fn length<C: Grid>(case: &C::Case, axis: char) -> usize {
    let found = case.values().into_iter().find_map(|(name, value)| {
        let Axis(place) = axis_of::<C>(name, axis)?;
        value?.shape().get(place).copied()
    });
    found.unwrap_or_else(|| panic!("no input of {} has the axis {axis}", C::ID))
}

/// Whether the arrays of a case agree in their axes, each of length 1 at least where it may not be
/// empty.
///
/// # Errors
/// Which do not.
pub fn check_axes<C: Grid>(case: &C::Case) -> Result<(), String> {
    let mut known: Vec<(char, usize, &str)> = Vec::new();
    for (name, value) in case.values() {
        let (Some(axes), Some(value)) = (axes::<C>(name), value) else { continue };
        for (axis, length) in axes.chars().zip(value.shape()) {
            match known.iter().find(|(letter, ..)| *letter == axis) {
                _ if *length == 0 && !C::MAY_BE_EMPTY.contains(&axis) => {
                    return Err(format!("`{name}` has no {axis}, expected 1 or more"));
                }
                Some((_, other, field)) if other != length => {
                    return Err(format!("{axis} is {length} in `{name}` and {other} in `{field}`"));
                }
                Some(_) => {}
                None => known.push((axis, *length, name)),
            }
        }
    }
    Ok(())
}

/// A record of the contract with some places of an axis only, in that order.
pub fn select<C: Grid, R: Record>(record: &R, axis: char, kept: &[usize]) -> R {
    let mut fields = record.values();
    for (name, value) in &mut fields {
        if let (Some(axis), Some(value)) = (axis_of::<C>(name, axis), value) {
            *value = selected(value, axis, kept);
        }
    }
    from_fields(&fields)
}

/// Some places of one array along an axis.
fn selected(value: &Value, axis: Axis, kept: &[usize]) -> Value {
    if axis.index() >= value.shape().len() {
        return value.clone();
    }
    match value {
        Value::Float(array) => Value::Float(array.select(axis, kept)),
        Value::Int(array) => Value::Int(array.select(axis, kept)),
        Value::Bool(array) => Value::Bool(array.select(axis, kept)),
        Value::Text(array) => Value::Text(array.select(axis, kept)),
    }
}

/// A record made of its fields.
fn from_fields<R: Record>(fields: &Fields) -> R {
    let get = &mut |name: &'static str| {
        fields.iter().find(|(known, _)| *known == name).and_then(|(_, value)| value.clone())
    };
    R::from_values(get).unwrap_or_else(|(name, why)| panic!("{name}: {why}"))
}

/// The letters of a contract's input axes, rows first.
pub(crate) fn letters<C: Grid>() -> Vec<char> {
    let mut letters = vec![C::ROW];
    let inputs = C::Case::fields();
    for (name, axes) in C::AXES {
        if inputs.iter().any(|field| field.name == *name) {
            letters.extend(axes.chars());
        }
    }
    let mut seen = Vec::new();
    letters.retain(|letter| {
        !seen.contains(letter) && {
            seen.push(*letter);
            true
        }
    });
    letters
}

/// Cells, the length of each axis, masked tokens, distinct numbers, their complexity, and how
/// early the complex ones stand.
pub fn measure<C: Grid>(case: &C::Case) -> Measure {
    let lengths: Vec<u64> =
        letters::<C>().into_iter().map(|axis| length::<C>(case, axis) as u64).collect();
    let mut parts = vec![lengths.iter().product()];
    parts.extend(lengths);
    parts.extend(costs(case));
    Measure(parts)
}

/// Masked tokens, distinct numbers, their complexity, and how early the complex ones stand.
pub fn costs<R: Record>(case: &R) -> [u64; 4] {
    let (mut masked, mut numbers, mut early) = (0, 0, 0);
    let mut distinct: Vec<u64> = Vec::new();
    for (_, value) in case.values() {
        let costs: Vec<u64> = match value {
            None => continue,
            Some(Value::Float(array)) => {
                distinct.extend(array.iter().map(|x| x.to_bits()));
                array.iter().map(|x| complexity(*x)).collect()
            }
            Some(Value::Int(array)) => array.iter().map(|x| complexity(*x as f64)).collect(),
            Some(Value::Bool(array)) => {
                masked += array.iter().filter(|kept| !**kept).count() as u64;
                array.iter().map(|kept| u64::from(!*kept)).collect()
            }
            Some(Value::Text(array)) => {
                array.iter().map(|text| text.as_deref().map_or(1, strings::complexity)).collect()
            }
        };
        numbers += costs.iter().sum::<u64>();
        let last = costs.len().saturating_sub(1);
        early += costs.iter().enumerate().map(|(at, cost)| cost * (last - at) as u64).sum::<u64>();
    }
    distinct.sort_unstable();
    distinct.dedup();
    [masked, distinct.len() as u64, numbers, early]
}

/// Candidates for a simpler case, the boldest first. Some may be invalid, or not of smaller
/// [`measure`]: the shrinker takes only those that are valid and smaller.
pub fn simpler<C: Grid>(case: &C::Case) -> Vec<C::Case> {
    let fields = case.values();
    let mut candidates = Vec::new();
    cut::<C>(case, &mut candidates);
    whole_fields::<C>(&fields, &mut candidates);
    candidates.extend(simpler_values(case));
    if few(&fields) {
        pairs::<C>(&fields, &mut candidates);
        exchanged::<C>(case, &mut candidates);
    }
    candidates
}

/// Simpler cases with fewer rows, with rows exchanged, or with a word of several texts replaced:
/// for contracts of texts alone, which change one text at a time by themselves.
pub fn fewer_rows_or_words<C: Grid>(case: &C::Case) -> Vec<C::Case> {
    let mut candidates = Vec::new();
    cut::<C>(case, &mut candidates);
    replaced_words(&case.values(), &mut candidates);
    exchanged::<C>(case, &mut candidates);
    candidates
}

/// Simpler values at the same places, of any record: with axes or without, lists too.
pub fn simpler_values<R: Record>(case: &R) -> Vec<R> {
    let fields = case.values();
    let mut candidates = Vec::new();
    replaced_values(&fields, &mut candidates);
    replaced_words(&fields, &mut candidates);
    texts(&fields, &mut candidates);
    if few(&fields) {
        flags_and_integers(&fields, &mut candidates);
        numbers(&fields, &mut candidates);
        reordered(&fields, &mut candidates);
    }
    candidates
}

/// Whether there are few enough numbers to change them one by one.
fn few(fields: &Fields) -> bool {
    let sizes = present(fields).map(|value| value.shape().iter().product::<usize>());
    sizes.sum::<usize>() <= FEW_NUMBERS
}

/// The values that are there.
fn present(fields: &Fields) -> impl Iterator<Item = &Value> {
    fields.iter().filter_map(|(_, value)| value.as_ref())
}

/// Fewer places along each axis: none where that may be, one, two neighbours, a half, all but one.
fn cut<C: Grid>(case: &C::Case, candidates: &mut Vec<C::Case>) {
    for axis in letters::<C>() {
        let length = length::<C>(case, axis);
        let mut keep = |kept: Vec<usize>| candidates.push(select::<C, _>(case, axis, &kept));
        if length > 0 && C::MAY_BE_EMPTY.contains(&axis) {
            keep(Vec::new());
        }
        if length > 1 {
            (0..length).for_each(|place| keep(vec![place]));
        }
        if length > 2 {
            (1..length).for_each(|place| keep(vec![place - 1, place]));
            keep((0..length / 2).collect());
            keep((length / 2..length).collect());
            (0..length).for_each(|left_out| {
                keep((0..length).filter(|place| *place != left_out).collect());
            });
        }
    }
}

/// The record with one field changed.
fn with<R: Record>(fields: &Fields, field: usize, value: Value) -> R {
    let mut fields = fields.clone();
    fields[field].1 = Some(value);
    from_fields(&fields)
}

/// A field of one value everywhere, or equal to another field of the same axes.
fn whole_fields<C: Grid>(fields: &Fields, candidates: &mut Vec<C::Case>) {
    for (index, (name, value)) in fields.iter().enumerate() {
        match value {
            Some(Value::Float(array)) => {
                for constant in [0.0, 1.0, -1.0] {
                    candidates.push(with(fields, index, Value::Float(array.mapv(|_| constant))));
                }
                let finite = array.mapv(|x| if x.is_finite() { x } else { 0.0 });
                candidates.push(with(fields, index, Value::Float(finite)));
                for decimals in 0..3 {
                    let scale = 10_f64.powi(decimals);
                    let rounded = array.mapv(|x| (x * scale).round() / scale);
                    candidates.push(with(fields, index, Value::Float(rounded)));
                }
                for (other, (other_name, twin)) in fields.iter().enumerate() {
                    let same_axes = axes::<C>(name) == axes::<C>(other_name);
                    if let Some(Value::Float(twin)) = twin
                        && (other != index && same_axes && twin.shape() == array.shape())
                    {
                        candidates.push(with(fields, index, Value::Float(twin.clone())));
                    }
                }
            }
            Some(Value::Int(array)) => {
                candidates.push(with(fields, index, Value::Int(array.mapv(|_| 0))));
            }
            Some(Value::Bool(array)) => {
                candidates.push(with(fields, index, Value::Bool(array.mapv(|_| true))));
            }
            Some(Value::Text(_)) | None => {}
        }
    }
}

/// Every number of one value replaced by another value of the case, or by a simple one.
fn replaced_values<R: Record>(fields: &Fields, candidates: &mut Vec<R>) {
    let mut values: Vec<f64> = present(fields)
        .filter_map(Value::floats)
        .flat_map(|array| array.iter().copied().collect::<Vec<_>>())
        .collect();
    values.sort_by(f64::total_cmp);
    values.dedup_by_key(|x| x.to_bits());
    if values.len() > FEW_VALUES {
        return;
    }
    for from in &values {
        let others = values.iter().copied().filter(|to| to.to_bits() != from.to_bits());
        for to in simpler_numbers(*from).into_iter().chain(others) {
            let mut changed = fields.clone();
            for (_, value) in &mut changed {
                if let Some(Value::Float(array)) = value {
                    array.mapv_inplace(|x| if x.to_bits() == from.to_bits() { to } else { x });
                }
            }
            candidates.push(from_fields(&changed));
        }
    }
}

/// A word or number that stands in several places replaced by a short one in all of them.
fn replaced_words<R: Record>(fields: &Fields, candidates: &mut Vec<R>) {
    let texts: Vec<String> = present(fields)
        .filter_map(Value::texts)
        .flat_map(|array| array.iter().flatten().cloned().collect::<Vec<_>>())
        .collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for text in &texts {
        for part in strings::segments(text) {
            *counts.entry(&text[part]).or_default() += 1;
        }
    }
    let repeated = counts.iter().filter(|(_, count)| **count > 1).map(|(word, _)| *word);
    for word in repeated.take(FEW_VALUES) {
        for plain in ["", "a", "b", "1", "2"] {
            if strings::complexity(plain) >= strings::complexity(word) {
                continue;
            }
            let mut changed = fields.clone();
            for (_, value) in &mut changed {
                if let Some(Value::Text(array)) = value {
                    array.iter_mut().flatten().for_each(|text| *text = text.replace(word, plain));
                }
            }
            candidates.push(from_fields(&changed));
        }
    }
}

/// One text simpler.
fn texts<R: Record>(fields: &Fields, candidates: &mut Vec<R>) {
    for (index, (_, value)) in fields.iter().enumerate() {
        let Some(Value::Text(array)) = value else { continue };
        for (at, text) in array.indexed_iter() {
            for simpler in text.iter().flat_map(|text| strings::simpler(text)) {
                let mut array = array.clone();
                array[&at] = Some(simpler);
                candidates.push(with(fields, index, Value::Text(array)));
            }
        }
    }
}

/// One flag set, one integer smaller.
fn flags_and_integers<R: Record>(fields: &Fields, candidates: &mut Vec<R>) {
    for (index, (_, value)) in fields.iter().enumerate() {
        match value {
            Some(Value::Bool(array)) => {
                for (at, kept) in array.indexed_iter() {
                    if !*kept {
                        let mut array = array.clone();
                        array[&at] = true;
                        candidates.push(with(fields, index, Value::Bool(array)));
                    }
                }
            }
            Some(Value::Int(array)) => {
                for (at, x) in array.indexed_iter() {
                    for smaller in [0, 1, -1, x / 2, x - x.signum()] {
                        if complexity(smaller as f64) < complexity(*x as f64) {
                            let mut array = array.clone();
                            array[&at] = smaller;
                            candidates.push(with(fields, index, Value::Int(array)));
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// One number simpler.
fn numbers<R: Record>(fields: &Fields, candidates: &mut Vec<R>) {
    for (index, (_, value)) in fields.iter().enumerate() {
        let Some(Value::Float(array)) = value else { continue };
        for (at, x) in array.indexed_iter() {
            for simpler in simpler_numbers(*x) {
                let mut array = array.clone();
                array[&at] = simpler;
                candidates.push(with(fields, index, Value::Float(array)));
            }
        }
    }
}

/// Two arrays of the same axes moved together: one becomes 0 and the other their difference, at
/// one place or at all.
fn pairs<C: Grid>(fields: &Fields, candidates: &mut Vec<C::Case>) {
    let floats: Vec<(usize, &ArrayD<f64>)> = fields
        .iter()
        .enumerate()
        .filter_map(|(index, (_, value))| match value {
            Some(Value::Float(array)) => Some((index, array)),
            _ => None,
        })
        .collect();
    for (first, a) in &floats {
        for (second, b) in &floats {
            if first == second || a.shape() != b.shape() {
                continue;
            }
            let mut moved = |at: Option<&IxDyn>| {
                let (mut a, mut b) = ((*a).clone(), (*b).clone());
                for ((place, a), b) in a.indexed_iter_mut().zip(b.iter_mut()) {
                    if at.is_none_or(|at| *at == place) {
                        (*a, *b) = (*a - *b, 0.0);
                    }
                }
                let mut fields = fields.clone();
                fields[*first].1 = Some(Value::Float(a));
                fields[*second].1 = Some(Value::Float(b));
                candidates.push(from_fields(&fields));
            };
            moved(None);
            b.indexed_iter().filter(|(_, b)| **b != 0.0).for_each(|(at, _)| moved(Some(&at)));
        }
    }
}

/// Neighbours along an axis exchanged.
fn exchanged<C: Grid>(case: &C::Case, candidates: &mut Vec<C::Case>) {
    for axis in letters::<C>() {
        let length = length::<C>(case, axis);
        for place in 1..length {
            let mut order: Vec<usize> = (0..length).collect();
            order.swap(place - 1, place);
            candidates.push(select::<C, _>(case, axis, &order));
        }
    }
}

/// Two numbers of one field exchanged.
fn reordered<R: Record>(fields: &Fields, candidates: &mut Vec<R>) {
    for (index, (_, value)) in fields.iter().enumerate() {
        match value {
            Some(Value::Float(array)) => {
                for swapped in swaps(array, |x| complexity(*x)) {
                    candidates.push(with(fields, index, Value::Float(swapped)));
                }
            }
            Some(Value::Bool(array)) => {
                for swapped in swaps(array, |kept| u64::from(!*kept)) {
                    candidates.push(with(fields, index, Value::Bool(swapped)));
                }
            }
            _ => {}
        }
    }
}

/// The array with two elements exchanged, wherever that brings the more complex one later.
fn swaps<T: Clone>(array: &ArrayD<T>, cost: impl Fn(&T) -> u64) -> Vec<ArrayD<T>> {
    let places: Vec<IxDyn> = array.indexed_iter().map(|(at, _)| at).collect();
    let mut swapped = Vec::new();
    for (from, first) in places.iter().enumerate() {
        for second in &places[from + 1..] {
            if cost(&array[second]) < cost(&array[first]) {
                let mut array = array.clone();
                array.swap(first, second);
                swapped.push(array);
            }
        }
    }
    swapped
}

/// How many small cases of one shape are made at most.
const SMALL_OF_A_SHAPE: usize = 96;

/// Small cases over a few values for each float field, from which shrinking may start: so that
/// the minimum does not depend on the case that was found. A field without values of its own
/// takes 0, 1 and -1; flags and integers take 0 and 1.
pub fn small<C: Grid>(
    values: &[(&str, &[f64])],
    options: &C::Options,
    dtype: Dtype,
) -> Vec<C::Case> {
    let letters = letters::<C>();
    let mut shapes: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in &letters {
        shapes = shapes
            .into_iter()
            .flat_map(|shape| (1..=3).map(move |length| [&shape[..], &[length]].concat()))
            .collect();
    }
    shapes.retain(|shape| shape.iter().product::<usize>() <= 4);
    let mut cases = Vec::new();
    for shape in shapes {
        let fields: Vec<(&'static str, Kind, Vec<usize>)> = C::Case::fields()
            .into_iter()
            .filter_map(|field| {
                let (_, axes) = C::AXES.iter().find(|(name, _)| *name == field.name)?;
                let place = |axis| letters.iter().position(|letter| *letter == axis);
                let lengths = axes.chars().filter_map(|axis| Some(shape[place(axis)?]));
                let lengths: Vec<usize> = lengths.collect();
                Some((field.name, field.kind, lengths))
            })
            .collect();
        let mut pick = Pick::seeded(shape.iter().fold(1, |seed, length| 8 * seed + *length as u64));
        for _ in 0..SMALL_OF_A_SHAPE {
            let fields: Fields = fields
                .iter()
                .map(|(name, kind, lengths)| {
                    let own = values.iter().find(|(known, _)| known == name);
                    let values = own.map_or(&[0.0, 1.0, -1.0][..], |(_, values)| values);
                    let lengths = IxDyn(lengths);
                    let value = match kind {
                        Kind::Float => {
                            Value::Float(ArrayD::from_shape_fn(lengths, |_| *pick.one(values)))
                        }
                        Kind::Int => {
                            Value::Int(ArrayD::from_shape_fn(lengths, |_| pick.below(2) as i64))
                        }
                        Kind::Bool => {
                            Value::Bool(ArrayD::from_shape_fn(lengths, |_| pick.below(4) > 0))
                        }
                        Kind::List => unreachable!("a list has no axes"),
                        Kind::Text => unreachable!("texts make small cases of their own"),
                    };
                    (*name, Some(value))
                })
                .collect();
            let mut case: C::Case = from_fields(&fields);
            crate::contract::round(&mut case, dtype);
            if C::valid(&case, options, dtype).is_ok() {
                cases.push(case);
            }
        }
    }
    cases
}
