//! The faults of `batch-partition`: real bugs, and conventions mistaken for others.

use ndarray::Array1;

use super::reference::{self, Bins};
use super::{BatchPartition, BatchPartitionCase, BatchPartitionOutput, Options};

type Fault = shakedown_core::contract::fault::Fault<BatchPartition>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [numbers(), sizes(), packing(), how_many(), refusals(), order(), ways_back()];
    themes.into_iter().flatten().collect()
}

/// Parts that are not numbered 0, 1, … as declared.
fn numbers() -> Vec<Fault> {
    vec![
        Fault::new("ceil-chunks", "chunks of ⌈N/k⌉ rows, of which the last parts get none")
            .seen("verl #6786, #6869")
            .under("{parts: 3}")
            .gives(&[|case, options, _| {
                wrong(case, options, |lengths| {
                    let parts = options.parts as usize;
                    let size = lengths.len().div_ceil(parts);
                    let rows: Vec<usize> = (0..lengths.len()).collect();
                    rows.chunks(size).map(<[usize]>::to_vec).collect()
                })
            }]),
        Fault::new("one-part-for-all", "every row is in part 0")
            .seen("plausible: heapq on a list that is no heap, so that one part stays the smallest")
            .gives(&[|case, options, _| {
                wrong(case, options, |lengths| vec![(0..lengths.len()).collect()])
            }]),
        Fault::new("one-part-short", "the last part is merged into the first")
            .seen("plausible: row % (parts - 1)")
            .gives(&[|case, options, _| {
                changed(case, options, |bins| {
                    let last = bins.pop().expect("there is a part");
                    match bins.first_mut() {
                        Some(first) => first.extend(last),
                        None => bins.push(last),
                    }
                })
            }]),
        Fault::new("one-part-more", "the part with the most rows gives one to a part more")
            .seen("plausible: the driver counted among the workers")
            .gives(&[|case, options, _| {
                changed(case, options, |bins| {
                    let wanted = (bins.len() + 1).min(case.lengths.len());
                    *bins = reference::split(bins.clone(), wanted);
                })
            }]),
        Fault::new("numbered-from-one", "parts are 1, 2, …")
            .seen("plausible: segment ids, of which 0 is padding")
            .gives(&[|case, options, _| changed(case, options, |bins| bins.insert(0, Vec::new()))]),
        Fault::new("numbered-by-the-first-row", "a part is called by its first row")
            .seen("plausible: the index of a row taken for the index of its part")
            .gives(&[|case, options, _| {
                let right = reference::partition(case, options);
                let first = |row: usize| {
                    let parts = &right.parts;
                    (0..=row).find(|other| parts[*other] == parts[row]).unwrap_or(row)
                };
                let parts: Vec<usize> = (0..case.lengths.len()).map(first).collect();
                BatchPartitionOutput { restored: right.restored, ..parts.into() }
            }]),
        Fault::new("remainder-in-no-part", "N mod k rows at the end are in part -1")
            .seen("plausible: chunks of ⌊N/k⌋ rows, the rest left out as `drop_last` does")
            .gives(&[|case, options, _| {
                let mut output = reference::partition(case, options);
                let rows = case.lengths.len();
                let rest = rows % options.parts as usize;
                output.parts.iter_mut().skip(rows - rest).for_each(|part| *part = -1.0);
                output
            }]),
        Fault::new("halves-for-parts", "the number of a part is not rounded: 0, 0.5, 1, …")
            .seen("plausible: i * k / N with a true division")
            .gives(&[|case, options, _| {
                let mut output = reference::partition(case, options);
                let (rows, parts) = (case.lengths.len() as f64, options.parts as f64);
                output.parts = (0..case.lengths.len()).map(|i| i as f64 * parts / rows).collect();
                output
            }]),
        Fault::new("oversized-row-in-no-part", "rows longer than the capacity are in part -1")
            .seen("OpenRLHF and verl filter overlong prompts: the filter, where none is declared")
            .under("{mode: capacity, capacity: 4, oversized: alone}")
            .gives(&[|case, options, _| {
                let mut output = reference::partition(case, options);
                for (part, length) in output.parts.iter_mut().zip(&case.lengths) {
                    *part = if options.is_oversized(*length) { -1.0 } else { *part };
                }
                output
            }]),
    ]
}

/// A number of parts that are not balanced, or not of the declared size.
fn sizes() -> Vec<Fault> {
    vec![
        Fault::new("dealt-in-turn", "row i goes to part i mod k, whatever its length")
            .seen("plausible: DistributedSampler's order, taken for balance")
            .gives(&[|case, options, _| {
                accepted(case, |lengths| dealt(0..lengths.len(), options))
            }]),
        Fault::new(
            "parts-in-sorted-order",
            "rows are sorted and dealt, and their parts returned in sorted order",
        )
        .seen("plausible; verl #1943 leaves outputs in sorted order")
        .gives(&[
            |case, options, _| sorted_order(case, options),
            |case, options, _| {
                let mut falling = case.clone();
                falling.lengths = reference::by_length(&case.lengths.to_vec())
                    .into_iter()
                    .rev()
                    .map(|row| case.lengths[row])
                    .collect();
                reference::partition(&falling, options)
            },
        ]),
        Fault::new("as-many-rows-a-part", "runs of as many rows, whatever their lengths")
            .seen("plausible: numpy.array_split, where parts of as many tokens are declared")
            .gives(&[|case, options, _| {
                accepted(case, |lengths| even(lengths.len(), options.parts as usize))
            }]),
        Fault::new("squares-in-32-bits", "lengths are squared in 32 bits, and wrap around")
            .seen("plausible: the cost of attention; 100000² is beyond 2³¹")
            .gives(&[|case, options, _| {
                wrong(case, options, |lengths| {
                    let costs = lengths.iter().map(|length| {
                        let length = *length as i32;
                        i64::from(length.wrapping_mul(length))
                    });
                    greedy(&costs.collect::<Vec<_>>(), options.parts as usize)
                })
            }]),
        Fault::new(
            "longest-to-the-fullest",
            "each part gets a row, and the fullest one gets all others",
        )
        .seen("plausible: a heap that gives the largest first, as Karmarkar-Karp needs it")
        .gives(&[|case, options, _| {
            wrong(case, options, |lengths| {
                let order = reference::by_length(lengths);
                let (first, rest) = order.split_at(options.parts as usize);
                let mut bins: Bins = first.iter().map(|row| vec![*row]).collect();
                bins[0].extend(rest);
                bins
            })
        }]),
        Fault::new("balanced-by-values", "the results are balanced, not the lengths")
            .seen("plausible: the wrong column handed to the partitioner")
            .gives(&[|case, options, _| {
                wrong(case, options, |_| {
                    let costs = case.values.iter().map(|value| *value as i64);
                    greedy(&costs.collect::<Vec<_>>(), options.parts as usize)
                })
            }]),
        Fault::new("rest-to-the-last-part", "runs of ⌊N/k⌋ rows, and the last one gets the rest")
            .seen("plausible: N // k rows a worker, of which the last one takes what is left")
            .under("{parts: 3}")
            .gives(&[|case, options, _| {
                wrong(case, options, |lengths| {
                    let parts = options.parts as usize;
                    let mut bins = reference::chunks(lengths.len(), parts);
                    let rest = lengths.len() / parts * parts..lengths.len();
                    bins[parts - 1].extend(rest);
                    bins
                })
            }]),
        Fault::new("equal-size-ignored", "parts of as many tokens, not of as many rows")
            .seen("an option without effect")
            .under("{equal_size: true}")
            .gives(&[|case, options, _| {
                accepted(case, |lengths| greedy(lengths, options.parts as usize))
            }]),
        Fault::new("one-row-moved", "the smallest part gets one row of the largest in the end")
            .seen("plausible: a pass that mends the balance, and not the number of rows")
            .under("{equal_size: true}")
            .gives(&[|case, options, _| {
                changed(case, options, |bins| {
                    let tokens =
                        |rows: &Vec<usize>| rows.iter().map(|row| case.lengths[*row]).sum::<i64>();
                    bins.sort_by_key(tokens);
                    let last = bins.len() - 1;
                    if last > 0 && bins[last].len() > 1 {
                        let row = bins[last].pop().expect("it has two");
                        bins[0].push(row);
                    }
                })
            }]),
    ]
}

/// Parts that hold more than they may, or too little.
fn packing() -> Vec<Fault> {
    const SMALL: &str = "{mode: capacity, capacity: 4}";
    const RUNS: &str = "{mode: capacity, capacity: 4, contiguous: true}";
    vec![
        Fault::new(
            "bins-in-sorted-order",
            "rows are sorted and packed, and their parts returned in sorted order",
        )
        .seen("plausible; verl #1943 leaves outputs in sorted order")
        .under(SMALL)
        .gives(&[|case, options, _| sorted_order(case, options)]),
        Fault::new(
            "as-many-parts-as-fit-on-average",
            "⌈tokens / capacity⌉ balanced parts, which are never compared with the capacity",
        )
        .seen("verl rearrange_micro_batches, whose `max_token_len` is a target and no bound")
        .under(SMALL)
        .gives(&[|case, options, _| {
            wrong(case, options, |lengths| {
                let tokens: i64 = lengths.iter().sum();
                let parts = (tokens as usize).div_ceil(options.capacity as usize);
                greedy(lengths, parts.min(lengths.len()))
            })
        }]),
        Fault::new("closed-after-it-overflows", "a part is closed once it holds more than it may")
            .seen("plausible: `if tokens > capacity` after the row was added")
            .under("{mode: capacity, capacity: 4, contiguous: true, oversized: refuse}")
            .gives(&[|case, options, _| {
                accepted(case, |lengths| runs(lengths, |tokens, _| tokens >= options.capacity))
            }]),
        Fault::new(
            "opening-row-not-counted",
            "the row that opens a part does not count among its tokens",
        )
        .seen("plausible: the sum is set to 0, and not to the length of the row at hand")
        .under(RUNS)
        .gives(&[|case, options, _| {
            wrong(case, options, |lengths| {
                let (mut bins, mut tokens): (Bins, i64) = (Vec::new(), 0);
                for (row, length) in lengths.iter().enumerate() {
                    match bins.last_mut() {
                        Some(bin) if tokens + length <= options.capacity => {
                            bin.push(row);
                            tokens += length;
                        }
                        _ => {
                            bins.push(vec![row]);
                            tokens = 0;
                        }
                    }
                }
                bins
            })
        }]),
        Fault::new("rows-counted-for-tokens", "a part holds so many rows, not so many tokens")
            .seen("plausible: micro_batch_size and max_tokens behind one option")
            .under(SMALL)
            .gives(&[|case, options, _| {
                wrong(case, options, |lengths| {
                    let rows: Vec<usize> = (0..lengths.len()).collect();
                    rows.chunks(options.capacity as usize).map(<[usize]>::to_vec).collect()
                })
            }]),
        Fault::new(
            "oversized-row-in-company",
            "a row that is too long is put into the part with the fewest tokens",
        )
        .seen("plausible: `min` over the parts, where none has room")
        .under("{mode: capacity, capacity: 4, oversized: alone}")
        .gives(&[|case, options, _| {
            changed(case, options, |bins| {
                let long = |rows: &Vec<usize>| options.is_oversized(case.lengths[rows[0]]);
                let (alone, mut packed): (Bins, Bins) = bins.drain(..).partition(long);
                for rows in alone {
                    match packed.last_mut() {
                        Some(last) => last.extend(rows),
                        None => packed.push(rows),
                    }
                }
                *bins = packed;
            })
        }]),
        Fault::new(
            "multiple-rounded-down",
            "parts are merged until their number is a multiple, where it should grow",
        )
        .seen("plausible: parts // multiple * multiple")
        .under("{mode: capacity, capacity: 4, multiple_of: 2}")
        .gives(&[|case, options, _| {
            wrong(case, options, |lengths| {
                let mut bins = reference::first_fit(lengths, options.capacity);
                let multiple = options.multiple_of as usize;
                while bins.len() > multiple && !bins.len().is_multiple_of(multiple) {
                    let last = bins.pop().expect("there are several");
                    bins[0].extend(last);
                }
                let wanted = bins.len().next_multiple_of(multiple);
                reference::split(bins, wanted)
            })
        }]),
        Fault::new("last-two-parts-merged", "what is left goes into the last part, full or not")
            .seen("plausible: a small last batch, which is put to the one before")
            .under(SMALL)
            .gives(&[|case, options, _| {
                changed(case, options, |bins| {
                    if bins.len() > 1 {
                        let last = bins.pop().expect("there are two");
                        bins.last_mut().expect("there is one more").extend(last);
                    }
                })
            }]),
        Fault::new("half-full", "each row counts as half a part at least")
            .seen("plausible: room is kept for a row of the mean length, or rounded up to a block")
            .under(SMALL)
            .gives(&[|case, options, _| {
                wrong(case, options, |lengths| {
                    let half = options.capacity.div_euclid(2) + 1;
                    let costs: Vec<i64> = lengths.iter().map(|length| *length.max(&half)).collect();
                    reference::first_fit(&costs, options.capacity)
                })
            }]),
        Fault::new("a-part-for-each-row", "every row is a part of its own")
            .seen("plausible: a micro-batch of one row, the default that nobody changed")
            .under(SMALL)
            .gives(&[|case, options, _| {
                wrong(case, options, |lengths| (0..lengths.len()).map(|row| vec![row]).collect())
            }]),
        Fault::new(
            "longest-row-counted-for-each",
            "each row counts as much as the longest of the batch",
        )
        .seen("plausible: the padded width of the batch, not that of the part")
        .under(SMALL)
        .gives(&[|case, options, _| {
            wrong(case, options, |lengths| {
                let longest = lengths.iter().max().copied().unwrap_or(1);
                reference::next_fit(&vec![longest; lengths.len()], options.capacity)
            })
        }]),
    ]
}

/// Another number of parts than `min_parts` and `multiple_of` ask for.
fn how_many() -> Vec<Fault> {
    vec![
        Fault::new("min-parts-ignored", "there are as few parts as fit")
            .seen("an option without effect")
            .under("{mode: capacity, min_parts: 3}")
            .as_if(&[|options| Options { min_parts: 1, ..options }]),
        Fault::new("multiple-ignored", "the number of parts is no multiple")
            .seen("an option without effect")
            .under("{mode: capacity, multiple_of: 2}")
            .as_if(&[|options| Options { multiple_of: 1, ..options }]),
        Fault::new(
            "multiple-before-the-least",
            "the number of parts is rounded up first, and raised to the least afterwards",
        )
        .seen("plausible: max(min_parts, round_up(parts))")
        .under("{mode: capacity, min_parts: 3, multiple_of: 2}")
        .gives(&[|case, options, _| {
            wrong(case, options, |lengths| {
                let bins = reference::first_fit(lengths, options.capacity);
                let rounded = bins.len().next_multiple_of(options.multiple_of as usize);
                reference::split(bins, rounded.max(options.min_parts as usize))
            })
        }]),
        Fault::new(
            "multiple-never-reached",
            "the number of parts grows by the multiple from an odd start, and nothing fits",
        )
        .seen("AReaL a51fec442")
        .under("{mode: capacity, multiple_of: 2}")
        .gives(&[|case, options, _| {
            let packed = reference::first_fit(&case.lengths.to_vec(), options.capacity);
            let least = packed.len().max(options.min_parts as usize);
            let reached = least.is_multiple_of(options.multiple_of as usize);
            assert!(reached, "no number of parts up to {} fits", case.lengths.len());
            reference::partition(case, options)
        }]),
        Fault::new(
            "packed-into-empty-parts",
            "parts are made up to the number first, and packed full one after the other",
        )
        .seen("plausible: fill the first part up, then the next, and leave the last ones empty")
        .under("{parts: 3}")
        .gives(&[|case, options, _| {
            wrong(case, options, |lengths| {
                let total: i64 = lengths.iter().sum();
                let longest = lengths.iter().max().copied().unwrap_or(0);
                reference::next_fit(lengths, total / options.parts + longest)
            })
        }]),
    ]
}

/// Rows that are taken for others of which there is no partition.
fn refusals() -> Vec<Fault> {
    vec![
        Fault::new("full-row-refused", "a row that fills a part exactly is taken for too long")
            .seen("plausible: `assert length < capacity`")
            .under("{mode: capacity, capacity: 4}")
            .gives(&[|case, options, _| {
                let longest = case.lengths.iter().max().copied().unwrap_or(0);
                assert!(longest < options.capacity, "a row of {longest} tokens is too long");
                reference::partition(case, options)
            }]),
        Fault::new("refuses-a-remainder", "N must be a multiple of k, also where sizes may differ")
            .seen("plausible: the check of `equal_size`, made always")
            .gives(&[|case, options, _| {
                let rows = case.lengths.len();
                let even = rows.is_multiple_of(options.parts as usize);
                assert!(even, "{rows} rows for {} parts", options.parts);
                reference::partition(case, options)
            }]),
    ]
}

/// Parts that are no runs of rows.
fn order() -> Vec<Fault> {
    vec![
        Fault::new("contiguous-ignored", "rows are sorted by length, and dealt out")
            .seen("an option without effect")
            .under("{contiguous: true}")
            .as_if(&[|options| Options { contiguous: false, ..options }]),
        Fault::new("runs-in-falling-order", "the first run is the last part")
            .seen("plausible: parts are popped from the end of a list")
            .under("{contiguous: true}")
            .gives(&[|case, options, _| changed(case, options, |bins| bins.reverse())]),
        Fault::new("first-row-goes-round", "runs begin at the second row, the first one is last")
            .seen("plausible: slices with offsets one too large, whose last one wraps around")
            .under("{contiguous: true}")
            .gives(&[|case, options, _| {
                let mut output = reference::partition(case, options);
                let mut parts = output.parts.to_vec();
                parts.rotate_right(1);
                output.parts = parts.into();
                output
            }]),
    ]
}

/// Values that come back in another order.
fn ways_back() -> Vec<Fault> {
    vec![
        Fault::new("left-in-the-order-of-the-parts", "the values are never put back")
            .seen("verl #1943 (b4aa2dce8), #1440")
            .gives(&[|case, options, _| {
                restored(case, options, |order, _| gather(&case.values, order))
            }]),
        Fault::new("restored-twice", "the inverse permutation is applied twice")
            .seen("plausible: put back by the caller, and by what it calls")
            .under("{parts: 3}")
            .gives(&[|case, options, _| {
                restored(case, options, |_, inverse| gather(&case.values, inverse))
            }]),
        Fault::new("order-for-its-inverse", "the values are gathered by the same order again")
            .seen("plausible: x[order][order] for x[order][argsort(order)]")
            .under("{parts: 3}")
            .gives(&[|case, options, _| {
                restored(case, options, |order, _| gather(&gather(&case.values, order), order))
            }]),
        Fault::new("only-the-first-part-restored", "values of other parts come back as 0")
            .seen("plausible: a return inside the loop over parts")
            .gives(&[|case, options, _| {
                let right = reference::partition(case, options);
                let parts = &right.parts;
                let kept = case.values.indexed_iter();
                let kept = kept.map(|(row, value)| if parts[row] == 0.0 { *value } else { 0.0 });
                BatchPartitionOutput { restored: Some(kept.collect()), ..right.clone() }
            }]),
        Fault::new(
            "restored-from-sorted-rows",
            "the values are put back as if the parts held the rows in rising order",
        )
        .seen("plausible: indices are sorted inside each part on the way back only")
        .gives(&[|case, options, _| {
            restored(case, options, |order, _| {
                let bins = reference::bins(&case.lengths.to_vec(), options);
                let mut rising = bins;
                rising.iter_mut().for_each(|rows| rows.sort_unstable());
                let rising: Vec<usize> = rising.into_iter().flatten().collect();
                let mut values = Array1::zeros(order.len());
                for (from, to) in order.iter().zip(rising) {
                    values[to] = case.values[*from];
                }
                values
            })
        }]),
    ]
}

/// The answer with other parts, also for what is to be refused.
fn accepted(case: &BatchPartitionCase, bins: impl Fn(&[i64]) -> Bins) -> BatchPartitionOutput {
    reference::through(case, &bins(&case.lengths.to_vec()))
}

/// The answer with other parts. What is refused is so all the same.
fn wrong(
    case: &BatchPartitionCase,
    options: &Options,
    bins: impl Fn(&[i64]) -> Bins,
) -> BatchPartitionOutput {
    let lengths = case.lengths.to_vec();
    reference::check(&lengths, options);
    reference::through(case, &bins(&lengths))
}

/// The answer with the right parts, changed.
fn changed(
    case: &BatchPartitionCase,
    options: &Options,
    change: impl Fn(&mut Bins),
) -> BatchPartitionOutput {
    wrong(case, options, |lengths| {
        let mut bins = reference::bins(lengths, options);
        change(&mut bins);
        bins
    })
}

/// The parts of the sorted rows, given to the rows in the order in which they came.
fn sorted_order(case: &BatchPartitionCase, options: &Options) -> BatchPartitionOutput {
    let mut sorted = case.clone();
    let order = reference::by_length(&case.lengths.to_vec());
    sorted.lengths = order.into_iter().map(|row| case.lengths[row]).collect();
    let parts = reference::partition(&sorted, options).parts;
    parts.into()
}

/// The right parts, and values that come back by another way: it takes the order of the rows in
/// the parts, and its inverse.
fn restored(
    case: &BatchPartitionCase,
    options: &Options,
    back: impl Fn(&[usize], &[usize]) -> Array1<f64>,
) -> BatchPartitionOutput {
    let right = reference::partition(case, options);
    let order = reference::bins(&case.lengths.to_vec(), options).concat();
    let mut inverse = vec![0; order.len()];
    for (place, row) in order.iter().enumerate() {
        inverse[*row] = place;
    }
    BatchPartitionOutput { restored: Some(back(&order, &inverse)), ..right }
}

fn gather(values: &Array1<f64>, order: &[usize]) -> Array1<f64> {
    order.iter().map(|row| values[*row]).collect()
}

/// Rows dealt out one at a time.
fn dealt(rows: impl Iterator<Item = usize>, options: &Options) -> Bins {
    let mut bins: Bins = vec![Vec::new(); options.parts as usize];
    for (place, row) in rows.enumerate() {
        bins[place % options.parts as usize].push(row);
    }
    bins
}

/// Each row, the longest first, to the part with the least.
fn greedy(costs: &[i64], parts: usize) -> Bins {
    let mut bins: Vec<(i64, Vec<usize>)> = vec![(0, Vec::new()); parts];
    for row in reference::by_length(costs) {
        let least = bins.iter_mut().min_by_key(|(cost, _)| *cost).expect("there is a part");
        least.0 += costs[row];
        least.1.push(row);
    }
    bins.into_iter().map(|(_, rows)| rows).collect()
}

/// Runs of rows of which the first ones are one row longer, where there is a rest.
fn even(rows: usize, parts: usize) -> Bins {
    let (each, more) = (rows / parts, rows % parts);
    let mut from = 0;
    (0..parts)
        .map(|part| {
            let to = from + each + usize::from(part < more);
            let run = (from..to).collect();
            from = to;
            run
        })
        .collect()
}

/// Runs of rows, each of which ends behind the row that closes it.
fn runs(lengths: &[i64], closes: impl Fn(i64, i64) -> bool) -> Bins {
    let (mut bins, mut tokens): (Bins, i64) = (vec![Vec::new()], 0);
    for (row, length) in lengths.iter().enumerate() {
        bins.last_mut().expect("there is a first run").push(row);
        tokens += length;
        if closes(tokens, *length) && row + 1 < lengths.len() {
            bins.push(Vec::new());
            tokens = 0;
        }
    }
    bins
}
