//! Cases of `batch-partition`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::Array1;

use super::oracle::enough_rows;
use super::{BatchPartition, BatchPartitionCase, Mode, Options, Oversized};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{AWKWARD, chance, one, repeating};
use shakedown_core::generate::pick::Pick;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

/// No row is longer: its square is beyond 32 bits.
const LONGEST: i64 = 100_000;

/// Batches of eight rows a part are made for so many parts at the most.
const FEW_PARTS: i64 = 8;

/// More rows than this are not changed one by one.
const FEW: usize = 24;

pub(super) fn valid(
    case: &BatchPartitionCase,
    options: &Options,
) -> std::result::Result<(), String> {
    rows::check_axes::<BatchPartition>(case)?;
    for (row, length) in case.lengths.iter().enumerate() {
        if !(1..=LONGEST).contains(length) {
            return Err(format!("lengths[{row}] is {length}, expected 1 to {LONGEST}"));
        }
        if options.oversized == Oversized::Avoid && options.is_oversized(*length) {
            let capacity = options.capacity;
            return Err(format!("lengths[{row}] is {length}, expected at most {capacity}"));
        }
    }
    if let Some((row, value)) = case.values.indexed_iter().find(|(_, value)| !value.is_finite()) {
        return Err(format!("values[{row}] is {value}, expected a finite number"));
    }
    let rows = case.lengths.len() as i64;
    let enough = enough_rows(case, options);
    if options.mode == Mode::Capacity && rows < enough {
        return Err(format!("{rows} rows, expected {enough}: there may be as many parts"));
    }
    Ok(())
}

/// The longest row that is generated.
fn longest(options: &Options) -> i64 {
    let bound = options.mode == Mode::Capacity && options.oversized == Oversized::Avoid;
    if bound { options.capacity.min(LONGEST) } else { LONGEST }
}

/// A number of rows: as many as there are parts, a few more or fewer, and now and then a batch as
/// training has them.
fn row_count(u: &mut Unstructured<'_>, options: &Options) -> Result<i64> {
    if options.mode == Mode::Capacity {
        let rows = u.int_in_range(1..=12)?;
        let rows = if chance(u, 24)? { rows + 24 } else { rows };
        // Enough rows for any number of parts that may be asked for.
        let multiple = options.multiple_of;
        return Ok((rows.max(options.min_parts) + multiple - 1) / multiple * multiple);
    }
    let parts = options.parts;
    let rows = match u.choose_index(12)? {
        0 | 1 => parts,
        2 | 3 => parts + 1,
        4 if parts > 1 => u.int_in_range(1..=parts - 1)?,
        5 if parts <= FEW_PARTS => 8 * parts,
        6 => 2 * parts,
        _ => parts + u.int_in_range(0..=10)?,
    };
    let even = options.equal_size && !chance(u, 48)?;
    Ok(if even { (rows + parts - 1) / parts * parts } else { rows })
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<BatchPartitionCase> {
    let rows = row_count(u, options)?;
    let most = longest(options);
    let capacity = options.capacity.min(LONGEST);
    let unit = if options.mode == Mode::Capacity { capacity } else { 100 };
    let every = if options.mode == Mode::Capacity { 2 } else { options.parts.max(2) };
    let style = u.choose_index(14)?;
    let few = 1 + (unit / 4).min(11);
    let a = u.int_in_range(1..=few)?;
    let b = u.int_in_range(1..=unit)?;
    let at = u.int_in_range(0..=rows - 1)?;
    let mut pick = Pick::seeded(u.arbitrary()?);
    let lengths = (0..rows).map(|row| {
        let below = |pick: &mut Pick, limit: i64| 1 + pick.below(limit as usize) as i64;
        let length = match style {
            0 => a,
            // One long row among ones.
            1 if row == at => b.max(few),
            2 if row == at => most,
            1 | 2 => 1,
            // Rising, and falling.
            3 => 1 + row * a,
            4 => 1 + (rows - 1 - row) * a,
            // Two kinds, in turn and at random.
            5 => {
                if row % every == 0 {
                    b
                } else {
                    a
                }
            }
            6 => {
                if pick.below(2) == 0 {
                    b
                } else {
                    a
                }
            }
            7 => below(&mut pick, 4),
            8 => most - pick.below(2) as i64 * (most / 2),
            9 => most,
            // What fills a part exactly: alone, or with its neighbour.
            10 => {
                if row % 2 == 0 {
                    b
                } else {
                    unit - b
                }
            }
            11 => *pick.one(&[unit, unit / 2, unit / 2 + 1, unit - 1, 1]),
            // More than a part may hold.
            12 if options.oversized == Oversized::Alone => {
                *pick.one(&[unit + 1, 2 * unit, unit, 1, a])
            }
            13 if row == at && options.oversized != Oversized::Avoid => unit + a,
            _ => below(&mut pick, unit),
        };
        length.clamp(1, most)
    });
    let lengths: Array1<i64> = lengths.collect();
    let values = match u.choose_index(4)? {
        0 => (0..rows).map(|row| row as f64).collect(),
        1 => (0..rows).map(|row| (rows - row) as f64).collect(),
        _ => repeating(u, rows as usize, |u| one(u, &AWKWARD))?.into(),
    };
    let mut case = BatchPartitionCase { lengths, values };
    round(&mut case, dtype);
    Ok(case)
}

/// A case of these lengths, whose values tell the rows apart.
fn of(lengths: &[i64]) -> BatchPartitionCase {
    let values = (0..lengths.len()).map(|row| row as f64).collect();
    BatchPartitionCase { lengths: lengths.to_vec().into(), values }
}

/// Rows of one length.
fn ones(rows: i64) -> BatchPartitionCase {
    let values = Array1::zeros(rows as usize);
    BatchPartitionCase { lengths: Array1::from_elem(rows as usize, 1), values }
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<BatchPartitionCase> {
    // With `multiple_of` there may be no partition of one row.
    let enough = (1..).find(|rows| valid(&ones(*rows), options).is_ok());
    let mut cases = vec![ones(enough.expect("many rows are enough"))];
    let parts = if options.mode == Mode::Count { options.parts } else { 2 };
    let most = longest(options);
    let mut counts = vec![1, 2, 3, 4, 5, parts - 1, parts, parts + 1, 2 * parts, 3 * parts];
    if parts <= FEW_PARTS {
        counts.push(8 * parts);
    }
    if options.mode == Mode::Capacity {
        let all = options.min_parts.max(1) + options.multiple_of - 1;
        let all = all / options.multiple_of * options.multiple_of;
        counts.extend([all, all + options.multiple_of, 2 * all, 3 * all]);
    }
    counts.retain(|count| *count > 0);
    counts.sort_unstable();
    counts.dedup();
    let unit = options.capacity.min(LONGEST);
    for rows in counts {
        let mut with = |length: &dyn Fn(i64) -> i64| {
            let lengths: Vec<i64> = (0..rows).map(|row| length(row).clamp(1, most)).collect();
            cases.push(of(&lengths));
        };
        with(&|_| 1);
        with(&|_| 3);
        with(&|row| 1 + row);
        with(&|row| rows - row);
        with(&|row| if row == 0 { 7 } else { 1 });
        with(&|row| if row + 1 == rows { 50 } else { 1 });
        with(&|row| if row % parts == 0 { 9 } else { 2 });
        with(&|row| if row % 2 == 0 { 5 } else { 3 });
        with(&|row| if row + 1 == rows { most } else { 1 });
        with(&|_| most);
        if options.mode == Mode::Capacity {
            with(&|_| unit);
            with(&|_| unit / 2);
            with(&|_| unit / 2 + 1);
            with(&|row| if row % 2 == 0 { unit - 1 } else { 1 });
            with(&|row| if row == 0 { unit + 1 } else { 1 });
            with(&|row| if row % 2 == 0 { 2 * unit } else { unit / 2 });
        }
    }
    cases.iter_mut().for_each(|case| round(case, dtype));
    cases.retain(|case| valid(case, options).is_ok());
    cases.sort_by_cached_key(BatchPartition::measure);
    cases.dedup();
    cases
}

/// All lists of a few lengths that are made of these.
fn lists(lengths: &[i64], most: usize) -> Vec<Vec<i64>> {
    let mut lists: Vec<Vec<i64>> = vec![Vec::new()];
    let mut all = Vec::new();
    for _ in 0..most {
        lists = lists
            .iter()
            .flat_map(|list| lengths.iter().map(|length| [&list[..], &[*length]].concat()))
            .collect();
        all.extend(lists.iter().cloned());
    }
    all
}

/// All rows of a few lengths, with values of which none or one is not 0.
pub(super) fn small(options: &Options) -> Vec<BatchPartitionCase> {
    let mut all = match options.mode {
        Mode::Count => {
            let mut all = lists(&[1, 2, 3], 5);
            all.extend(lists(&[1, 2], 6));
            all.extend(lists(&[1, LONGEST], 3));
            all
        }
        Mode::Capacity => {
            let capacity = options.capacity;
            let mut lengths = vec![1, 2, 3, capacity / 2, capacity - 1, capacity, capacity + 1];
            lengths.retain(|length| *length > 0);
            lengths.sort_unstable();
            lengths.dedup();
            let mut all = lists(&lengths, if lengths.len() > 5 { 3 } else { 4 });
            all.extend(lists(&[1], 9));
            all
        }
    };
    all.sort();
    all.dedup();
    let mut cases = Vec::new();
    for lengths in all {
        let rows = lengths.len();
        let zeros = Array1::zeros(rows);
        let told = if rows <= 3 { rows } else { 0 };
        for row in 0..told {
            let mut values = zeros.clone();
            values[row] = 1.0;
            cases.push(BatchPartitionCase { lengths: lengths.clone().into(), values });
        }
        cases.push(BatchPartitionCase { lengths: lengths.into(), values: zeros });
    }
    cases
}

/// Fewer rows, shorter ones, simpler values.
pub(super) fn simpler(case: &BatchPartitionCase) -> Vec<BatchPartitionCase> {
    let rows = case.lengths.len();
    let with = |lengths: Array1<i64>| BatchPartitionCase { lengths, values: case.values.clone() };
    let take = |kept: &[usize]| rows::select::<BatchPartition, _>(case, 'N', kept);
    // Several rows at once: their number may have to be a multiple.
    let mut candidates: Vec<BatchPartitionCase> =
        (1..rows).map(|count| take(&(0..count).collect::<Vec<_>>())).collect();
    candidates.extend((1..rows).map(|from| take(&(from..rows).collect::<Vec<_>>())));
    candidates.push(with(Array1::from_elem(rows, 1)));
    for divisor in [1000, 10, 2] {
        candidates.push(with(case.lengths.mapv(|length| (length / divisor).max(1))));
    }
    candidates.push(with(case.lengths.mapv(|length| (length - 1).max(1))));
    candidates.extend(rows::simpler::<BatchPartition>(case));
    if rows <= FEW {
        for from in 0..rows {
            for to in 0..rows {
                if case.lengths[from] > case.lengths[to] {
                    let mut lengths = case.lengths.clone();
                    lengths[from] = lengths[to];
                    candidates.push(with(lengths));
                }
            }
        }
    }
    candidates
}

pub(super) fn classes() -> Vec<Class<BatchPartition>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let count: fn(&Options, Dtype) -> bool = |options, _| options.mode == Mode::Count;
    let capacity: fn(&Options, Dtype) -> bool = |options, _| options.mode == Mode::Capacity;
    let oversized: fn(&Options, Dtype) -> bool = |options, _| {
        let possible = options.capacity < LONGEST && options.oversized != Oversized::Avoid;
        options.mode == Mode::Capacity && possible
    };
    let several: fn(&Options, Dtype) -> bool =
        |options, _| options.mode == Mode::Count || longest(options) > 2;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "equal-lengths",
            "two rows or more, of one length",
            |case: &BatchPartitionCase, _: &Options| {
                case.lengths.len() > 1 && case.lengths.iter().all(|x| *x == case.lengths[0])
            },
            always,
        ),
        class(
            "unequal-lengths",
            "rows of different lengths",
            |case, _| case.lengths.iter().any(|x| *x != case.lengths[0]),
            several,
        ),
        class(
            "one-long-row",
            "one long row among rows of one token",
            |case, _| {
                let long = case.lengths.iter().filter(|length| **length > 1).count();
                case.lengths.len() > 2 && long == 1
            },
            several,
        ),
        class(
            "rising",
            "three rows or more, each longer than the one before",
            |case, _| sorted(case, |a, b| a < b),
            several,
        ),
        class(
            "falling",
            "three rows or more, each shorter than the one before",
            |case, _| sorted(case, |a, b| a > b),
            several,
        ),
        class(
            "two-kinds",
            "four rows or more of two lengths, each twice at least",
            |case, _| {
                let mut lengths = case.lengths.to_vec();
                lengths.sort_unstable();
                lengths.dedup();
                let count = |kind: i64| case.lengths.iter().filter(|x| **x == kind).count();
                lengths.len() == 2 && lengths.iter().all(|kind| count(*kind) > 1)
            },
            several,
        ),
        class(
            "as-many-rows-as-parts",
            "N = `parts`",
            |case, options| {
                options.mode == Mode::Count && case.lengths.len() as i64 == options.parts
            },
            count,
        ),
        class(
            "eight-rows-a-part",
            "N = 8·`parts`",
            |case, options| {
                options.mode == Mode::Count && case.lengths.len() as i64 == 8 * options.parts
            },
            |options, _| options.mode == Mode::Count && options.parts <= FEW_PARTS,
        ),
        class(
            "fewer-rows-than-parts",
            "N < `parts`, which is refused",
            |case, options| {
                options.mode == Mode::Count && (case.lengths.len() as i64) < options.parts
            },
            |options, _| options.mode == Mode::Count && options.parts > 1,
        ),
        class(
            "no-equal-parts",
            "N ≥ `parts` is no multiple of `parts`",
            |case, options| {
                let rows = case.lengths.len() as i64;
                let uneven = rows >= options.parts && rows % options.parts != 0;
                options.mode == Mode::Count && uneven
            },
            |options, _| options.mode == Mode::Count && options.parts > 1,
        ),
        class(
            "very-long-rows",
            "two rows of 100000 tokens, whose squares are beyond 32 bits",
            |case, _| case.lengths.iter().filter(|length| **length == LONGEST).count() > 1,
            |options, _| longest(options) == LONGEST,
        ),
        class(
            "full-row",
            "a row that fills a part exactly",
            |case, options| {
                options.mode == Mode::Capacity
                    && case.lengths.iter().any(|length| *length == options.capacity)
            },
            |options, _| options.mode == Mode::Capacity && options.capacity <= LONGEST,
        ),
        class(
            "exact-pair",
            "two neighbours that fill a part exactly",
            |case, options| {
                let lengths = case.lengths.to_vec();
                let exact = lengths.windows(2).any(|pair| pair[0] + pair[1] == options.capacity);
                exact && options.mode == Mode::Capacity
            },
            |options, _| {
                options.mode == Mode::Capacity && (2..=LONGEST).contains(&options.capacity)
            },
        ),
        class(
            "one-part-is-enough",
            "two rows or more that fit into one part",
            |case, options| {
                let fits = case.lengths.sum() <= options.capacity;
                options.mode == Mode::Capacity && case.lengths.len() > 1 && fits
            },
            |options, _| {
                options.mode == Mode::Capacity
                    && options.capacity > 1
                    && options.capacity >= options.min_parts + options.multiple_of
            },
        ),
        class(
            "oversized",
            "a row that is longer than `capacity`",
            |case, options| case.lengths.iter().any(|length| options.is_oversized(*length)),
            oversized,
        ),
        class(
            "several-parts-full",
            "more tokens than two parts hold",
            |case, options| {
                options.mode == Mode::Capacity && case.lengths.sum() > 2 * options.capacity
            },
            |options, _| options.mode == Mode::Capacity && options.capacity <= LONGEST,
        ),
        class(
            "one-row",
            "N = 1",
            |case, _| case.lengths.len() == 1,
            |options, _| {
                let one = options.min_parts == 1 && options.multiple_of == 1;
                options.mode == Mode::Count || one
            },
        ),
        class("four-rows", "N ≥ 4", |case, _| case.lengths.len() > 3, capacity),
    ]
}

/// Whether three lengths or more are in this order.
fn sorted(case: &BatchPartitionCase, before: impl Fn(i64, i64) -> bool) -> bool {
    let lengths = case.lengths.to_vec();
    lengths.len() > 2 && lengths.windows(2).all(|pair| before(pair[0], pair[1]))
}
