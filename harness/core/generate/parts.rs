//! Lists of parts, each with rows, columns and a mask of its own (micro-batches, shards): how
//! complex such a list is, and simpler ones.

use ndarray::{Array2, Axis};

use crate::generate::axes;
use crate::generate::measure::Measure;
use crate::value::record::AnyRecord;

/// One of a list: arrays `[n, T]` under a mask.
pub trait Part: AnyRecord + Clone {
    /// Which tokens count.
    fn mask(&self) -> &Array2<bool>;
    /// The same where every token counts.
    fn unmasked(&self) -> Self;
    /// Some rows or columns, in that order.
    fn taken(&self, axis: Axis, places: &[usize]) -> Self;
    /// The same with one number all over an array, once for each of its arrays of numbers.
    fn constant(&self, number: f64) -> Vec<Self>;
}

/// Tokens, parts, rows, then what the values of the whole case cost, and how early the long parts
/// and the complex numbers stand.
pub fn measure<P: Part>(case: &dyn AnyRecord, parts: &[P]) -> Measure {
    let cells: usize = parts.iter().map(|part| part.mask().len()).sum();
    let rows: usize = parts.iter().map(|part| part.mask().nrows()).sum();
    let ahead = |cost: &dyn Fn(&P) -> u64| -> u64 {
        parts.iter().rev().enumerate().map(|(ahead, part)| ahead as u64 * cost(part)).sum()
    };
    let mut measure = vec![cells as u64, parts.len() as u64, rows as u64];
    measure.extend(axes::costs(case));
    measure.push(ahead(&|part| part.mask().len() as u64));
    measure.push(ahead(&|part| axes::costs(part)[2]));
    Measure(measure)
}

/// Fewer parts, smaller ones, simpler numbers and another order, the boldest first.
pub fn simpler<P: Part>(parts: &[P]) -> Vec<Vec<P>> {
    let mut candidates = Vec::new();
    let mut push = |parts| candidates.push(parts);
    if parts.len() > 1 {
        parts.iter().for_each(|part| push(vec![part.clone()]));
        parts.windows(2).for_each(|pair| push(pair.to_vec()));
    }
    for (index, part) in parts.iter().enumerate() {
        let with = |part: P| {
            let mut parts = parts.to_vec();
            parts[index] = part;
            parts
        };
        if parts.len() > 1 {
            let mut fewer = parts.to_vec();
            fewer.remove(index);
            push(fewer);
        }
        for axis in [Axis(0), Axis(1)] {
            let length = part.mask().len_of(axis);
            for place in (0..length).filter(|_| length > 1) {
                push(with(part.taken(axis, &[place])));
                let rest: Vec<usize> = (0..length).filter(|other| *other != place).collect();
                push(with(part.taken(axis, &rest)));
            }
            for place in 1..length {
                let mut order: Vec<usize> = (0..length).collect();
                order.swap(place - 1, place);
                push(with(part.taken(axis, &order)));
            }
        }
        for number in [0.0, 1.0, -1.0] {
            part.constant(number).into_iter().for_each(|part| push(with(part)));
        }
        push(with(part.unmasked()));
        if index > 0 {
            let mut exchanged = parts.to_vec();
            exchanged.swap(index - 1, index);
            push(exchanged);
        }
    }
    candidates
}
