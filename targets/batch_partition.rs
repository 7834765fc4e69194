//! `batch-partition` on tensors: rows dealt out by length, or packed into as few parts as fit.

use shakedown::author::Component;
use shakedown::contracts::batch_partition as contract;
use shakedown::contracts::batch_partition::{BatchPartitionOutput, Mode, Options, Oversized};
use shakedown_tch::tch;
use tch::{Kind, Tensor};

/// The functions below as a component.
pub fn component(options: Options) -> impl Component<contract::BatchPartition> {
    tch::<contract::BatchPartition>(move |case| {
        let partition = batch_partition(&case.lengths, &options);
        BatchPartitionOutput {
            parts: parts(&case.lengths, &partition),
            restored: Some(restored(&case.values, &partition)),
        }
    })
}

/// The rows of each part.
pub type Partition = Vec<Vec<i64>>;

/// Which rows go to which part.
///
/// # Shapes
/// `N` rows: lengths `[N]`; the indices of the rows of each part.
///
/// # Units
/// Tokens.
///
/// # Panics
/// If there are fewer rows than parts, no parts of one size, or with `oversized: refuse` a row that
/// fits into none.
///
/// # Source
/// verl and OpenRLHF `seqlen_balancing.py` (`count`); slime `first_fit_pack` and NeMo-RL's packers
/// (`capacity`).
pub fn batch_partition(lengths: &Tensor, options: &Options) -> Partition {
    let tokens = numbers(lengths);
    if options.mode == Mode::Count {
        let (rows, parts) = (tokens.len() as i64, options.parts);
        assert!(rows >= parts, "{rows} rows for {parts} parts");
        assert!(!options.equal_size || rows % parts == 0, "{rows} rows, {parts} parts of one size");
        return match options.contiguous {
            true => slices(&tokens, options),
            false => dealt(&tokens, &numbers(&lengths.argsort(0, true)), parts as usize),
        };
    }
    let fits = tokens.iter().all(|length| *length <= options.capacity);
    assert!(fits || options.oversized != Oversized::Refuse, "a row is longer than a part");
    let rows: Vec<i64> = (0..tokens.len() as i64).collect();
    let packed = match options.contiguous {
        true => packed(&tokens, &rows, options.capacity, true),
        false => packed(&tokens, &numbers(&lengths.argsort(0, true)), options.capacity, false),
    };
    let wanted = packed.len().max(options.min_parts as usize);
    split(packed, wanted.next_multiple_of(options.multiple_of as usize))
}

/// The number of each row's part.
///
/// # Shapes
/// Lengths `[N]`, the result `[N]`.
pub fn parts(lengths: &Tensor, partition: &Partition) -> Tensor {
    let mut parts = vec![0; lengths.size()[0] as usize];
    for (part, rows) in partition.iter().enumerate() {
        rows.iter().for_each(|row| parts[*row as usize] = part as i64);
    }
    Tensor::from_slice(&parts).to_device(lengths.device())
}

/// Values that are handed out part by part, and put back into the order of the rows.
///
/// # Shapes
/// Values `[N]`, the result `[N]`.
pub fn restored(values: &Tensor, partition: &Partition) -> Tensor {
    let order = Tensor::from_slice(&partition.concat()).to_device(values.device());
    let gathered = values.index_select(0, &order);
    gathered.index_select(0, &order.argsort(0, false))
}

fn numbers(tensor: &Tensor) -> Vec<i64> {
    Vec::try_from(tensor.to_kind(Kind::Int64)).expect("it has one axis")
}

/// In rounds of a row a part: the part with the least so far gets the longest.
fn dealt(tokens: &[i64], longest_first: &[i64], parts: usize) -> Partition {
    let mut dealt: Vec<(i64, Vec<i64>)> = vec![(0, Vec::new()); parts];
    for round in longest_first.chunks(parts) {
        dealt.sort_by_key(|(sum, _)| *sum);
        for (row, (sum, rows)) in round.iter().zip(&mut dealt) {
            *sum += tokens[*row as usize];
            rows.push(*row);
        }
    }
    dealt.into_iter().map(|(_, rows)| rows).collect()
}

/// Runs of rows: of one size, or each closed once it has its share.
fn slices(tokens: &[i64], options: &Options) -> Partition {
    let (count, total) = (options.parts as usize, tokens.iter().sum::<i64>());
    let (mut slices, mut sum): (Partition, i64) = (vec![Vec::new()], 0);
    for (row, length) in tokens.iter().enumerate() {
        slices.last_mut().expect("there is one").push(row as i64);
        sum += length;
        let (rows_left, parts_left) = (tokens.len() - row - 1, count - slices.len());
        let closed = match options.equal_size {
            true => (row + 1) * count % tokens.len() == 0,
            false => sum * count as i64 >= total || rows_left == parts_left,
        };
        if closed && parts_left > 0 {
            slices.push(Vec::new());
            sum = 0;
        }
    }
    slices
}

/// First fit in this order; where only the last part takes rows, runs.
fn packed(tokens: &[i64], order: &[i64], capacity: i64, only_last: bool) -> Partition {
    let mut packed: Vec<(i64, Vec<i64>)> = Vec::new();
    for row in order {
        let length = tokens[*row as usize];
        let from = if only_last { packed.len().saturating_sub(1) } else { 0 };
        match packed[from..].iter_mut().find(|(sum, _)| sum + length <= capacity) {
            Some((sum, rows)) => {
                *sum += length;
                rows.push(*row);
            }
            None => packed.push((length, vec![*row])),
        }
    }
    packed.into_iter().map(|(_, rows)| rows).collect()
}

/// More parts, cut off the ends of those with the most rows.
fn split(mut parts: Partition, wanted: usize) -> Partition {
    while parts.len() < wanted {
        let most = (0..parts.len()).max_by_key(|part| parts[*part].len()).expect("there is one");
        assert!(parts[most].len() > 1, "{wanted} parts take as many rows");
        let last = parts[most].pop().expect("it has two rows or more");
        parts.insert(most + 1, vec![last]);
    }
    parts
}
