//! Records whose arrays share named axes: taking part of them, measuring and shrinking them.
//!
//! A contract that says which axes each of its arrays has gets its shrinker from here: the
//! smallest case is the one with the fewest cells, then the fewest masked tokens, distinct values
//! and digits, with what is complex at the end.

use std::collections::BTreeMap;

use ndarray::{ArrayD, Axis, IxDyn};

use crate::generate::measure::{Measure, complexity, simpler_numbers};
use crate::generate::pick::Pick;
use crate::generate::texts;
use crate::value::record::{AnyRecord, Field, Kind, Record, Value, ValueRef};

/// Named axes that the arrays of records share.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    /// The axes of each array of the inputs and outputs, a letter each: `("mask", "NT")`. An array
    /// with fewer dimensions than letters has the first of them.
    of: &'static [(&'static str, &'static str)],
    /// The axis of the rows.
    row: char,
    /// The axes that may be of length 0.
    may_be_empty: &'static [char],
}

/// The fields of a record in their order.
pub type Fields = Vec<(&'static str, Option<Value>)>;

/// More numbers than this are only cut and replaced as a whole, not one by one.
const FEW_NUMBERS: usize = 96;

/// More distinct numbers than this are not replaced by each other.
const FEW_VALUES: usize = 16;

impl Axes {
    /// The axes of each array, a letter each; those of the rows are called N, and none may be of
    /// length 0.
    pub const fn new(of: &'static [(&'static str, &'static str)]) -> Self {
        Axes { of, row: 'N', may_be_empty: &[] }
    }

    /// The same, with rows of another name.
    pub const fn rows(self, row: char) -> Self {
        Axes { row, ..self }
    }

    /// The same, some of which may be of length 0.
    pub const fn may_be_empty(self, may_be_empty: &'static [char]) -> Self {
        Axes { may_be_empty, ..self }
    }

    /// The shape of each required output. The gradient of an input is none of them.
    ///
    /// # Panics
    /// If an output has dimensions but no axes here.
    pub fn shapes(
        &self,
        case: &dyn AnyRecord,
        outputs: &[Field],
    ) -> Vec<(&'static str, Vec<usize>)> {
        let shape = |field: &Field| {
            if field.ndim == Some(0) {
                return (field.name, Vec::new());
            }
            let axes = self.of_field(field.name);
            let axes = axes.unwrap_or_else(|| panic!("no axes are declared for `{}`", field.name));
            (field.name, axes.chars().map(|axis| self.length(case, axis)).collect())
        };
        outputs.iter().filter(|field| !field.optional).map(shape).collect()
    }

    /// The letter of the rows.
    pub fn row(&self) -> char {
        self.row
    }

    /// The axes of a field.
    fn of_field(&self, field: &str) -> Option<&'static str> {
        self.of.iter().find(|(name, _)| *name == field).map(|(_, axes)| *axes)
    }

    /// The letters of the axes of a field, where they are declared.
    pub fn dimensions(&self, field: &Field) -> Option<Vec<char>> {
        let letters = self.of_field(field.name)?.chars();
        Some(letters.take(field.ndim.unwrap_or(usize::MAX)).collect())
    }

    /// The letter of an axis of a field.
    pub fn letter(&self, field: &str, axis: usize) -> Option<char> {
        self.of_field(field)?.chars().nth(axis)
    }

    /// Where an axis of this letter stands in a field.
    pub fn position(&self, field: &str, axis: char) -> Option<Axis> {
        self.of_field(field)?.chars().position(|letter| letter == axis).map(Axis)
    }

    /// The length of an axis of a case.
    ///
    /// # Panics
    /// If no input has it.
    pub fn length(&self, case: &dyn AnyRecord, axis: char) -> usize {
        let found = self.find_length(case, axis);
        found.unwrap_or_else(|| panic!("no input has the axis {axis}: {case:?}"))
    }

    /// The same; `None` where no input has it.
    pub fn find_length(&self, case: &dyn AnyRecord, axis: char) -> Option<usize> {
        let mut found = None;
        case.each(&mut |name, value| {
            if let (None, Some(Axis(position)), Some(value)) =
                (found, self.position(name, axis), value)
            {
                found = value.shape().get(position).copied();
            }
        });
        found
    }

    /// Whether the arrays of a case agree in their axes, each of length 1 at least where it may
    /// not be empty.
    ///
    /// # Errors
    /// Which do not.
    pub fn check(&self, case: &dyn AnyRecord) -> Result<(), String> {
        let mut known: Vec<(char, usize, &str)> = Vec::new();
        let mut wrong = None;
        case.each(&mut |name, value| {
            let (Some(axes), Some(value), None) = (self.of_field(name), value, &wrong) else {
                return;
            };
            for (axis, length) in axes.chars().zip(value.shape()) {
                match known.iter().find(|(letter, ..)| *letter == axis) {
                    _ if *length == 0 && !self.may_be_empty.contains(&axis) => {
                        wrong = Some(format!("`{name}` has no {axis}, expected 1 or more"));
                    }
                    Some((_, other, field)) if other != length => {
                        let message =
                            format!("{axis} is {length} in `{name}` and {other} in `{field}`");
                        wrong = Some(message);
                    }
                    Some(_) => continue,
                    None => {
                        known.push((axis, *length, name));
                        continue;
                    }
                }
                return;
            }
        });
        wrong.map_or(Ok(()), Err)
    }

    /// The fields of a record with some places of an axis only, in that order.
    pub fn select(&self, record: &dyn AnyRecord, axis: char, kept: &[usize]) -> Fields {
        let mut fields = Fields::new();
        record.each(&mut |name, value| {
            let value = value.map(|value| match self.position(name, axis) {
                Some(axis) => selected(&value, axis, kept),
                None => value.to_value(),
            });
            fields.push((name, value));
        });
        fields
    }

    /// The letters of the axes that some of these inputs have, rows first.
    pub fn letters(&self, inputs: &[Field]) -> Vec<char> {
        let of_inputs = self.of.iter().filter(|(name, _)| {
            let is_input = |field: &Field| field.name == *name;
            inputs.iter().any(is_input)
        });
        let mut letters = vec![self.row];
        for letter in of_inputs.flat_map(|(_, axes)| axes.chars()) {
            if !letters.contains(&letter) {
                letters.push(letter);
            }
        }
        letters
    }

    /// Cells, the length of each axis, masked tokens, distinct numbers, their complexity, and how
    /// early the complex ones stand.
    pub fn measure(&self, case: &dyn AnyRecord, inputs: &[Field]) -> Measure {
        let letters = self.letters(inputs).into_iter();
        let lengths: Vec<u64> = letters.map(|axis| self.length(case, axis) as u64).collect();
        let mut parts = vec![lengths.iter().product()];
        parts.extend(lengths);
        parts.extend(costs(case));
        Measure(parts)
    }

    /// Simpler cases, the boldest first. They may be invalid, and a few are not simpler: whoever
    /// walks to them looks at both.
    pub fn simpler(&self, case: &dyn AnyRecord, inputs: &[Field]) -> Vec<Fields> {
        let fields = case.values();
        let mut candidates = Vec::new();
        self.cut(case, inputs, &mut candidates);
        self.whole_fields(&fields, &mut candidates);
        candidates.extend(simpler_values(case));
        if few(&fields) {
            pairs(&fields, &mut candidates);
            self.exchanged(case, inputs, &mut candidates);
        }
        candidates
    }

    /// Simpler cases with fewer rows, with rows exchanged, or with a word of several texts
    /// replaced: for contracts of texts alone, which change one text at a time by themselves.
    pub fn fewer_rows_or_words(&self, case: &dyn AnyRecord, inputs: &[Field]) -> Vec<Fields> {
        let mut candidates = Vec::new();
        self.cut(case, inputs, &mut candidates);
        replaced_words(&case.values(), &mut candidates);
        self.exchanged(case, inputs, &mut candidates);
        candidates
    }

    /// Fewer places along each axis: none where that may be, one, two neighbours, a half, all but
    /// one.
    fn cut(&self, case: &dyn AnyRecord, inputs: &[Field], candidates: &mut Vec<Fields>) {
        for axis in self.letters(inputs) {
            let length = self.length(case, axis);
            let mut keep = |kept: Vec<usize>| candidates.push(self.select(case, axis, &kept));
            if length > 0 && self.may_be_empty.contains(&axis) {
                keep(Vec::new());
            }
            if length > 1 {
                (0..length).for_each(|at| keep(vec![at]));
            }
            if length > 2 {
                (1..length).for_each(|at| keep(vec![at - 1, at]));
                keep((0..length / 2).collect());
                keep((length / 2..length).collect());
                (0..length).for_each(|left_out| {
                    keep((0..length).filter(|at| *at != left_out).collect());
                });
            }
        }
        self.cut_together(case, inputs, candidates);
    }

    /// The same places of two axes of one length: what fails where rows are as many as columns
    /// fails after one of each is gone.
    fn cut_together(&self, case: &dyn AnyRecord, inputs: &[Field], candidates: &mut Vec<Fields>) {
        let letters = self.letters(inputs);
        for (at, first) in letters.iter().enumerate() {
            for second in &letters[at + 1..] {
                let length = self.length(case, *first);
                if length < 3 || self.length(case, *second) != length {
                    continue;
                }
                let mut keep = |kept: &[usize]| {
                    let mut fields = self.select(case, *first, kept);
                    for (name, value) in &mut fields {
                        if let (Some(value), Some(axis)) = (value, self.position(name, *second)) {
                            *value = value.select(axis, kept);
                        }
                    }
                    candidates.push(fields);
                };
                (1..length).for_each(|at| keep(&[at - 1, at]));
                keep(&(0..length / 2).collect::<Vec<_>>());
                keep(&(length / 2..length).collect::<Vec<_>>());
                (0..length).for_each(|left_out| {
                    keep(&(0..length).filter(|at| *at != left_out).collect::<Vec<_>>());
                });
            }
        }
    }

    /// A field of one value everywhere, or equal to another field of the same axes.
    fn whole_fields(&self, fields: &Fields, candidates: &mut Vec<Fields>) {
        for (index, (name, value)) in fields.iter().enumerate() {
            match value {
                Some(Value::Float(array)) => {
                    for constant in [0.0, 1.0, -1.0] {
                        candidates.push(with(
                            fields,
                            index,
                            Value::Float(array.mapv(|_| constant)),
                        ));
                    }
                    let finite = array.mapv(|x| if x.is_finite() { x } else { 0.0 });
                    candidates.push(with(fields, index, Value::Float(finite)));
                    for decimals in 0..3 {
                        let scale = 10_f64.powi(decimals);
                        let rounded = array.mapv(|x| (x * scale).round() / scale);
                        candidates.push(with(fields, index, Value::Float(rounded)));
                    }
                    for (other, (other_name, twin)) in fields.iter().enumerate() {
                        let same_axes = self.of_field(name) == self.of_field(other_name);
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

    /// Neighbours along an axis exchanged.
    fn exchanged(&self, case: &dyn AnyRecord, inputs: &[Field], candidates: &mut Vec<Fields>) {
        for axis in self.letters(inputs) {
            let length = self.length(case, axis);
            for at in 1..length {
                let mut order: Vec<usize> = (0..length).collect();
                order.swap(at - 1, at);
                candidates.push(self.select(case, axis, &order));
            }
        }
    }

    /// Small cases over a few values for each float field, from which shrinking may start: so that
    /// the minimum does not depend on the case that was found. A field without values of its own
    /// takes 0, 1 and -1; flags and integers take 0 and 1. They may be invalid.
    pub fn small(&self, values: &[(&str, &[f64])], inputs: &[Field]) -> Vec<Fields> {
        let letters = self.letters(inputs);
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
            let fields: Vec<(&'static str, Kind, Vec<usize>)> = inputs
                .iter()
                .filter_map(|field| {
                    let axes = self.of_field(field.name)?;
                    let position = |axis| letters.iter().position(|letter| *letter == axis);
                    let lengths = axes.chars().filter_map(|axis| Some(shape[position(axis)?]));
                    Some((field.name, field.kind, lengths.collect()))
                })
                .collect();
            let seed = shape.iter().fold(1, |seed, length| 8 * seed + *length as u64);
            let mut pick = Pick::seeded(seed);
            for _ in 0..SMALL_OF_A_SHAPE {
                let small = fields.iter().map(|(name, kind, lengths)| {
                    let own = values.iter().find(|(known, _)| known == name);
                    let values = own.map_or(&[0.0, 1.0, -1.0][..], |(_, values)| values);
                    (*name, Some(small_value(*kind, lengths, values, &mut pick)))
                });
                cases.push(small.collect());
            }
        }
        cases
    }
}

/// A small value of a shape.
fn small_value(kind: Kind, lengths: &[usize], values: &[f64], pick: &mut Pick) -> Value {
    let lengths = IxDyn(lengths);
    match kind {
        Kind::Float => Value::Float(ArrayD::from_shape_fn(lengths, |_| *pick.one(values))),
        Kind::Int => Value::Int(ArrayD::from_shape_fn(lengths, |_| pick.below(2) as i64)),
        Kind::Bool => Value::Bool(ArrayD::from_shape_fn(lengths, |_| pick.below(4) > 0)),
        Kind::List => unreachable!("a list has no axes"),
        Kind::Text => unreachable!("texts make small cases of their own"),
    }
}

impl Value {
    /// Some places along an axis, where it has that many.
    fn select(&self, axis: Axis, kept: &[usize]) -> Value {
        if axis.index() >= self.shape().len() {
            return self.clone();
        }
        match self {
            Value::Float(array) => Value::Float(array.select(axis, kept)),
            Value::Int(array) => Value::Int(array.select(axis, kept)),
            Value::Bool(array) => Value::Bool(array.select(axis, kept)),
            Value::Text(array) => Value::Text(array.select(axis, kept)),
        }
    }
}

/// Some places of one array along an axis.
fn selected(value: &ValueRef<'_>, axis: Axis, kept: &[usize]) -> Value {
    if axis.index() >= value.shape().len() {
        return value.to_value();
    }
    match value {
        ValueRef::Float(array) => Value::Float(array.select(axis, kept)),
        ValueRef::Int(array) => Value::Int(array.select(axis, kept)),
        ValueRef::Bool(array) => Value::Bool(array.select(axis, kept)),
        ValueRef::Text(array) => Value::Text(array.select(axis, kept).mapv(Some)),
        ValueRef::TextOrNull(array) => Value::Text(array.select(axis, kept)),
    }
}

/// A record made of its fields.
///
/// # Panics
/// If they are not its fields.
pub fn from_fields<R: Record>(mut fields: Fields) -> R {
    let get = &mut |name: &'static str| {
        fields.iter_mut().find(|(known, _)| *known == name).and_then(|(_, value)| value.take())
    };
    R::from_values(get).unwrap_or_else(|(name, why)| panic!("{name}: {why}"))
}

/// Masked tokens, distinct numbers, their complexity, and how early the complex ones stand.
pub fn costs(case: &dyn AnyRecord) -> [u64; 4] {
    let (mut masked, mut numbers, mut early) = (0, 0, 0);
    let mut distinct: Vec<u64> = Vec::new();
    case.each(&mut |_, value| {
        let costs: Vec<u64> = match value {
            None => return,
            Some(ValueRef::Float(array)) => {
                distinct.extend(array.iter().map(|x| x.to_bits()));
                array.iter().map(|x| complexity(*x)).collect()
            }
            Some(ValueRef::Int(array)) => array.iter().map(|x| complexity(*x as f64)).collect(),
            Some(ValueRef::Bool(array)) => {
                masked += array.iter().filter(|kept| !**kept).count() as u64;
                array.iter().map(|kept| u64::from(!*kept)).collect()
            }
            Some(of_texts) => {
                let mut costs = Vec::new();
                of_texts.for_texts(|text| costs.push(text.map_or(1, texts::complexity)));
                costs
            }
        };
        numbers += costs.iter().sum::<u64>();
        let last = costs.len().saturating_sub(1);
        early += costs.iter().enumerate().map(|(at, cost)| cost * (last - at) as u64).sum::<u64>();
    });
    distinct.sort_unstable();
    distinct.dedup();
    [masked, distinct.len() as u64, numbers, early]
}

/// Simpler values at the same places, of any record: with axes or without, lists too.
pub fn simpler_values(case: &dyn AnyRecord) -> Vec<Fields> {
    let fields = case.values();
    let mut candidates = Vec::new();
    replaced_values(&fields, &mut candidates);
    replaced_words(&fields, &mut candidates);
    simpler_texts(&fields, &mut candidates);
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

/// The record with one field changed.
fn with(fields: &Fields, field: usize, value: Value) -> Fields {
    let mut fields = fields.clone();
    fields[field].1 = Some(value);
    fields
}

/// Every number of one value replaced by another value of the case, or by a simple one.
fn replaced_values(fields: &Fields, candidates: &mut Vec<Fields>) {
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
            candidates.push(changed);
        }
    }
}

/// A word or number that stands in several places replaced by a short one in all of them.
fn replaced_words(fields: &Fields, candidates: &mut Vec<Fields>) {
    let texts: Vec<String> = present(fields)
        .filter_map(Value::texts)
        .flat_map(|array| array.iter().flatten().cloned().collect::<Vec<_>>())
        .collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for text in &texts {
        for part in texts::segments(text) {
            *counts.entry(&text[part]).or_default() += 1;
        }
    }
    let repeated = counts.iter().filter(|(_, count)| **count > 1).map(|(word, _)| *word);
    for word in repeated.take(FEW_VALUES) {
        for plain in ["", "a", "b", "1", "2"] {
            if texts::complexity(plain) >= texts::complexity(word) {
                continue;
            }
            let mut changed = fields.clone();
            for (_, value) in &mut changed {
                if let Some(Value::Text(array)) = value {
                    array.iter_mut().flatten().for_each(|text| *text = text.replace(word, plain));
                }
            }
            candidates.push(changed);
        }
    }
}

/// One text simpler.
fn simpler_texts(fields: &Fields, candidates: &mut Vec<Fields>) {
    for (index, (_, value)) in fields.iter().enumerate() {
        let Some(Value::Text(array)) = value else { continue };
        for (at, text) in array.indexed_iter() {
            for simpler in text.iter().flat_map(|text| texts::simpler(text)) {
                let mut array = array.clone();
                array[&at] = Some(simpler);
                candidates.push(with(fields, index, Value::Text(array)));
            }
        }
    }
}

/// One flag set, one integer smaller.
fn flags_and_integers(fields: &Fields, candidates: &mut Vec<Fields>) {
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
fn numbers(fields: &Fields, candidates: &mut Vec<Fields>) {
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
fn pairs(fields: &Fields, candidates: &mut Vec<Fields>) {
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
                candidates.push(fields);
            };
            moved(None);
            b.indexed_iter().filter(|(_, b)| **b != 0.0).for_each(|(at, _)| moved(Some(&at)));
        }
    }
}

/// Two numbers of one field exchanged.
fn reordered(fields: &Fields, candidates: &mut Vec<Fields>) {
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
