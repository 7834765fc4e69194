//! The reference implementation of `batch-partition`, as a trainer would write it: the rows sorted
//! by length and dealt out in rounds, or packed first fit; and the values gathered and scattered.

use ndarray::Array1;

use super::{BatchPartitionCase, BatchPartitionOutput, Mode, Options, Oversized};

/// The rows of each part.
pub(super) type Bins = Vec<Vec<usize>>;

/// The part of each row, and what became of the values.
pub(super) fn partition(case: &BatchPartitionCase, options: &Options) -> BatchPartitionOutput {
    check(&case.lengths.to_vec(), options);
    through(case, &bins(&case.lengths.to_vec(), options))
}

/// Raises for rows of which no such parts can be made.
pub(super) fn check(lengths: &[i64], options: &Options) {
    let (rows, parts) = (lengths.len(), options.parts as usize);
    match options.mode {
        Mode::Count => {
            assert!(rows >= parts, "{rows} rows for {parts} parts");
            let even = !options.equal_size || rows.is_multiple_of(parts);
            assert!(even, "{rows} rows for {parts} parts of one size");
        }
        Mode::Capacity if options.oversized == Oversized::Refuse => {
            let longest = lengths.iter().max().copied().unwrap_or(0);
            assert!(longest <= options.capacity, "{longest} tokens exceed {}", options.capacity);
        }
        Mode::Capacity => {}
    }
}

/// The rows of each part, of rows that are not refused.
pub(super) fn bins(lengths: &[i64], options: &Options) -> Bins {
    let parts = options.parts as usize;
    match (options.mode, options.contiguous) {
        (Mode::Count, false) => dealt(lengths, parts),
        (Mode::Count, true) if options.equal_size => chunks(lengths.len(), parts),
        (Mode::Count, true) => runs(lengths, parts),
        (Mode::Capacity, contiguous) => {
            let bins = if contiguous {
                next_fit(lengths, options.capacity)
            } else {
                first_fit(lengths, options.capacity)
            };
            let multiple = options.multiple_of as usize;
            let wanted = bins.len().max(options.min_parts as usize);
            split(bins, wanted.next_multiple_of(multiple))
        }
    }
}

/// The rows, the longest first.
pub(super) fn by_length(lengths: &[i64]) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..lengths.len()).collect();
    rows.sort_by_key(|row| -lengths[*row]);
    rows
}

/// The longest rows first, in rounds of a row a part, of which the shortest part gets the longest:
/// parts never differ by more than a row, in tokens and in number.
fn dealt(lengths: &[i64], parts: usize) -> Bins {
    let mut bins: Vec<(i64, Vec<usize>)> = vec![(0, Vec::new()); parts];
    for round in by_length(lengths).chunks(parts) {
        bins.sort_by_key(|(tokens, _)| *tokens);
        for (row, (tokens, rows)) in round.iter().zip(&mut bins) {
            *tokens += lengths[*row];
            rows.push(*row);
        }
    }
    bins.into_iter().map(|(_, rows)| rows).collect()
}

/// Runs of as many rows.
pub(super) fn chunks(rows: usize, parts: usize) -> Bins {
    let each = rows / parts;
    (0..parts).map(|part| (part * each..(part + 1) * each).collect()).collect()
}

/// Runs of rows, each closed once it has its share of the tokens, or once there are only as many
/// rows left as parts.
fn runs(lengths: &[i64], parts: usize) -> Bins {
    let total: i64 = lengths.iter().sum();
    let mut bins: Bins = vec![Vec::new()];
    let mut tokens = 0;
    for (row, length) in lengths.iter().enumerate() {
        bins.last_mut().expect("there is a first part").push(row);
        tokens += length;
        let (rows_left, parts_left) = (lengths.len() - row - 1, parts - bins.len());
        if parts_left > 0 && (tokens * parts as i64 >= total || rows_left == parts_left) {
            bins.push(Vec::new());
            tokens = 0;
        }
    }
    bins
}

/// First fit, the longest rows first. A row that fits nowhere opens a part.
pub(super) fn first_fit(lengths: &[i64], capacity: i64) -> Bins {
    let mut bins: Vec<(i64, Vec<usize>)> = Vec::new();
    for row in by_length(lengths) {
        let length = lengths[row];
        match bins.iter_mut().find(|(tokens, _)| tokens + length <= capacity) {
            Some((tokens, rows)) => {
                *tokens += length;
                rows.push(row);
            }
            None => bins.push((length, vec![row])),
        }
    }
    bins.into_iter().map(|(_, rows)| rows).collect()
}

/// Runs of rows, each as long as it fits.
pub(super) fn next_fit(lengths: &[i64], capacity: i64) -> Bins {
    let mut bins: Bins = Vec::new();
    let mut tokens = 0;
    for (row, length) in lengths.iter().enumerate() {
        match bins.last_mut() {
            Some(last) if tokens + length <= capacity => {
                tokens += length;
                last.push(row);
            }
            _ => {
                tokens = *length;
                bins.push(vec![row]);
            }
        }
    }
    bins
}

/// More parts, made of those with the most rows: the last row of one becomes the part behind it.
pub(super) fn split(mut bins: Bins, wanted: usize) -> Bins {
    while bins.len() < wanted {
        let most = bins.iter().map(Vec::len).max().expect("there is a part");
        assert!(most > 1, "{wanted} parts take as many rows");
        let fullest = bins.iter().rposition(|rows| rows.len() == most).expect("one has the most");
        let last = bins[fullest].pop().expect("it has two rows or more");
        bins.insert(fullest + 1, vec![last]);
    }
    bins
}

/// The number of the part of each row.
pub(super) fn numbered(rows: usize, bins: &Bins) -> Vec<usize> {
    let mut parts = vec![0; rows];
    for (part, rows) in bins.iter().enumerate() {
        rows.iter().for_each(|row| parts[*row] = part);
    }
    parts
}

/// The answer for these parts: the values go through them in order, and back.
pub(super) fn through(case: &BatchPartitionCase, bins: &Bins) -> BatchPartitionOutput {
    let gathered: Vec<(usize, f64)> =
        bins.iter().flatten().map(|row| (*row, case.values[*row])).collect();
    let mut restored = Array1::zeros(case.values.len());
    for (row, value) in gathered {
        restored[row] = value;
    }
    let parts: BatchPartitionOutput = numbered(case.lengths.len(), bins).into();
    BatchPartitionOutput { restored: Some(restored), ..parts }
}
