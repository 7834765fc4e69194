//! Cases of `accumulated-loss`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, Axis, arr2};

use super::{AccumulatedLoss, AccumulatedLossCase, MicroBatch, Options, kept, oracle, tokens};
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{AWKWARD, chance, normal, one, repeating, uniform};
use shakedown_core::generate::masks;
use shakedown_core::generate::measure::Measure;
use shakedown_core::generate::parts::{self, Part};
use shakedown_core::generate::pick::Pick;
use shakedown_core::numeric::conventions::{EmptyMask, MaskedValues};
use shakedown_core::value::place::Dtype;

/// The largest token loss: one token that the model held for impossible.
const LARGEST: f64 = 1e3;

/// Finite numbers that stand under the mask.
pub(super) const POISON: [f64; 7] = [0.0, 1.0, -1.0, 0.5, -7.0, 1e3, -1e3];

pub(super) fn valid(
    case: &AccumulatedLossCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    if case.micro_batches.is_empty() {
        return Err("no micro-batch, expected 1 or more".to_owned());
    }
    for (index, part) in case.micro_batches.iter().enumerate() {
        let (losses, mask) = (part.token_losses.shape(), part.mask.shape());
        if losses != mask || part.mask.is_empty() {
            return Err(format!(
                "micro_batches[{index}]: token_losses of shape {losses:?} and a mask of {mask:?}, \
                 expected the same, of 1 or more rows and tokens"
            ));
        }
        let fields = [("token_losses", &part.token_losses)];
        masks::check(&part.mask, options.holes, &fields, options.masked_values, LARGEST)
            .map_err(|why| format!("micro_batches[{index}]: {why}"))?;
    }
    if tokens(case) == 0 && options.empty_mask == EmptyMask::Avoid {
        return Err("no token counts, and `empty_mask` is `avoid`".to_owned());
    }
    let loss = oracle::loss(case, options)[0].numbers.first().map_or(0.0, |number| number.value);
    if loss.abs() > 0.5 * dtype.max() {
        return Err(format!("a loss of {loss}, which {} cannot hold", dtype.name()));
    }
    Ok(())
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<AccumulatedLossCase> {
    let count = one(u, &[2, 3, 1, 2, 4, 2])?;
    let pattern = u.choose_index(6)?;
    let alike = chance(u, 40)?;
    let mut micro_batches: Vec<MicroBatch> = Vec::new();
    for _ in 0..count {
        if let (true, Some(first)) = (alike, micro_batches.first()) {
            micro_batches.push(first.clone());
            continue;
        }
        let shape = match u.arbitrary::<u8>()? {
            0..=9 => masks::shape(u)?,
            _ => (one(u, &[1, 1, 2, 3])?, one(u, &[1, 2, 3, 2, 4, 5])?),
        };
        let mask = match u.arbitrary::<u8>()? {
            0..=25 => Array2::from_elem(shape, false),
            _ => masks::mask(u, shape, options.holes)?,
        };
        let losses = repeating(u, shape.0 * shape.1, |u| {
            Ok(match pattern {
                0 => one(u, &AWKWARD)?,
                1 => f64::from(one(u, &[1_i8, -1, 0, 2, 3])?),
                2 => uniform(u, -1.0, 1.0)?,
                3 => normal(u)?.abs(),
                4 => one(u, &[0.0, 0.5, 1.0, LARGEST, -LARGEST])?,
                _ => 1.0,
            })
        })?;
        let mut token_losses = Array2::from_shape_vec(shape, losses).expect("n·T losses");
        for (loss, kept) in token_losses.iter_mut().zip(&mask) {
            if !*kept {
                *loss = masks::poison(u, options.masked_values, &POISON)?;
            }
        }
        micro_batches.push(MicroBatch { token_losses, mask });
    }
    let mut case = AccumulatedLossCase { micro_batches };
    if tokens(&case) == 0 && options.empty_mask == EmptyMask::Avoid {
        let first = &mut case.micro_batches[0];
        first.mask[[0, 0]] = true;
        first.token_losses[[0, 0]] = 1.0;
    }
    if valid(&case, options, dtype).is_err() {
        // A sum of extreme losses that f16 cannot hold.
        for part in &mut case.micro_batches {
            part.token_losses.mapv_inplace(|x| if x.is_finite() { x.clamp(-1.0, 1.0) } else { x });
        }
    }
    Ok(case)
}

/// A micro-batch of rows; `None` is a masked token.
fn part(rows: &[&[Option<f64>]]) -> MicroBatch {
    let shape = (rows.len(), rows[0].len());
    MicroBatch {
        token_losses: Array2::from_shape_fn(shape, |(r, c)| rows[r][c].unwrap_or(0.0)),
        mask: Array2::from_shape_fn(shape, |(r, c)| rows[r][c].is_some()),
    }
}

/// A micro-batch of one row of which every token counts.
fn row(losses: &[f64]) -> MicroBatch {
    let losses: Vec<Option<f64>> = losses.iter().map(|loss| Some(*loss)).collect();
    part(&[&losses])
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<AccumulatedLossCase> {
    let none: &[Option<f64>] = &[None];
    let empty = || part(&[none]);
    let mut cases = Vec::new();
    let mut case = |micro_batches: Vec<MicroBatch>| {
        cases.push(AccumulatedLossCase { micro_batches });
    };
    for loss in [0.0, 1.0, -1.0, 2.0] {
        case(vec![row(&[loss])]);
        case(vec![row(&[loss]), row(&[loss])]);
        case(vec![row(&[loss]), row(&[1.0])]);
        case(vec![row(&[1.0]), row(&[loss])]);
        case(vec![row(&[loss]), row(&[1.0, 1.0])]);
        case(vec![row(&[1.0, 1.0]), row(&[loss])]);
        case(vec![empty(), row(&[loss])]);
        case(vec![row(&[loss]), empty()]);
    }
    case(vec![empty()]);
    case(vec![empty(), empty()]);
    // One token and three: the mean is 0.5, the mean of means 0.
    case(vec![row(&[-1.0]), row(&[1.0, 1.0, 1.0])]);
    case(vec![row(&[1.0, 1.0, 1.0]), row(&[-1.0])]);
    case(vec![row(&[-1.0, 1.0, 1.0, 1.0])]);
    case(vec![row(&[-1.0]), row(&[1.0]), row(&[1.0]), row(&[1.0])]);
    // Rows: one and three, and rows of different length in one micro-batch.
    let long = [Some(1.0), Some(1.0)];
    let short = [Some(-1.0), None];
    case(vec![part(&[&[Some(2.0)]]), part(&[&[Some(1.0)], &[Some(1.0)], &[Some(1.0)]])]);
    case(vec![part(&[&long, &short]), row(&[1.0])]);
    case(vec![part(&[&long, &short, &[None, None]]), row(&[3.0])]);
    case(vec![part(&[&short, &[None, Some(2.0)]])]);
    case(vec![row(&[1.0]), part(&[&[Some(2.0)], none]), empty(), row(&[4.0, 0.5])]);
    // One, two and four micro-batches of the same tokens; a window that is cut short.
    case(vec![row(&[1.0, 2.0]), row(&[4.0, 8.0])]);
    case(vec![row(&[1.0, 2.0, 4.0, 8.0])]);
    case(vec![row(&[1.0]), row(&[2.0]), row(&[4.0]), row(&[8.0])]);
    case(vec![row(&[1.0]), row(&[2.0]), row(&[4.0])]);
    case(vec![row(&[0.1]), row(&[0.2, 0.3]), row(&[0.7, 0.7, 0.7])]);
    case(vec![row(&[LARGEST]), row(&[-LARGEST, 1.0])]);
    case(vec![row(&[0.1; 12]), row(&[0.1])]);
    if options.holes {
        case(vec![part(&[&[Some(1.0), None, Some(2.0)]]), row(&[4.0])]);
    }
    let bad = match options.masked_values {
        MaskedValues::Any => &[7.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY][..],
        MaskedValues::Finite => &[7.0, -1e3][..],
    };
    for bad in bad {
        let masked =
            |loss| MicroBatch { token_losses: arr2(&[[loss, *bad]]), mask: arr2(&[[true, false]]) };
        let empty = MicroBatch { token_losses: arr2(&[[*bad]]), mask: arr2(&[[false]]) };
        case(vec![masked(1.0)]);
        case(vec![masked(1.0), masked(2.0)]);
        case(vec![row(&[1.0]), empty]);
    }
    cases.retain_mut(|case| {
        shakedown_core::value::record::round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases.sort_by_cached_key(measure);
    cases
}

/// Shapes of small batches: rows and tokens of each micro-batch.
const SMALL: [&[(usize, usize)]; 12] = [
    &[(1, 2)],
    &[(2, 1)],
    &[(2, 2)],
    &[(1, 1), (1, 1)],
    &[(1, 1), (1, 2)],
    &[(1, 2), (1, 1)],
    &[(1, 1), (2, 1)],
    &[(2, 1), (1, 1)],
    &[(1, 2), (1, 2)],
    &[(1, 1), (1, 1), (1, 1)],
    &[(1, 1), (1, 1), (1, 2)],
    &[(1, 1), (1, 1), (1, 1), (1, 1)],
];

/// Small cases over a few values, from which shrinking may start.
pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<AccumulatedLossCase> {
    let mut cases = Vec::new();
    for (number, shapes) in SMALL.iter().enumerate() {
        let mut pick = Pick::seeded(number as u64);
        for _ in 0..48 {
            let part = |shape: &(usize, usize)| MicroBatch {
                token_losses: Array2::from_shape_fn(*shape, |_| *pick.one(&[0.0, 1.0, 1.0, 2.0])),
                mask: Array2::from_shape_fn(*shape, |_| pick.below(4) > 0),
            };
            let case = AccumulatedLossCase { micro_batches: shapes.iter().map(part).collect() };
            if valid(&case, options, dtype).is_ok() {
                cases.push(case);
            }
        }
    }
    cases
}

pub(super) fn measure(case: &AccumulatedLossCase) -> Measure {
    parts::measure(case, &case.micro_batches)
}

pub(super) fn simpler(case: &AccumulatedLossCase) -> Vec<AccumulatedLossCase> {
    let parts = &case.micro_batches;
    let mut lists = parts::simpler(parts);
    // A token moves to the micro-batch behind it, where both have one row.
    for index in 1..parts.len() {
        if let Some((before, after)) = handed_on(&parts[index - 1], &parts[index]) {
            let mut moved = parts.clone();
            moved[index - 1] = before;
            moved[index] = after;
            lists.push(moved);
        }
    }
    let candidates = lists.into_iter().map(|micro_batches| AccumulatedLossCase { micro_batches });
    candidates.chain(rows::simpler_values(case)).collect()
}

impl Part for MicroBatch {
    fn mask(&self) -> &Array2<bool> {
        &self.mask
    }

    fn unmasked(&self) -> Self {
        MicroBatch { mask: self.mask.mapv(|_| true), ..self.clone() }
    }

    fn taken(&self, axis: Axis, places: &[usize]) -> Self {
        taken(self, axis, places)
    }

    fn constant(&self, number: f64) -> Vec<Self> {
        let token_losses = self.token_losses.mapv(|_| number);
        vec![MicroBatch { token_losses, ..self.clone() }]
    }
}

/// Some rows or columns of a micro-batch, in that order.
pub(super) fn taken(part: &MicroBatch, axis: Axis, places: &[usize]) -> MicroBatch {
    MicroBatch {
        token_losses: part.token_losses.select(axis, places).as_standard_layout().into_owned(),
        mask: part.mask.select(axis, places).as_standard_layout().into_owned(),
    }
}

/// Two micro-batches of one row after the last token of the first went over to the second.
fn handed_on(first: &MicroBatch, second: &MicroBatch) -> Option<(MicroBatch, MicroBatch)> {
    let (length, other) = (first.mask.ncols(), second.mask.ncols());
    if first.mask.nrows() > 1 || second.mask.nrows() > 1 || length < 2 {
        return None;
    }
    let last = taken(first, Axis(1), &[length - 1]);
    let kept: Vec<usize> = (0..length - 1).collect();
    let shape = (1, other + 1);
    let longer = MicroBatch {
        token_losses: Array2::from_shape_fn(shape, |(_, column)| match column {
            0 => last.token_losses[[0, 0]],
            _ => second.token_losses[[0, column - 1]],
        }),
        mask: Array2::from_shape_fn(shape, |(_, column)| match column {
            0 => last.mask[[0, 0]],
            _ => second.mask[[0, column - 1]],
        }),
    };
    Some((taken(first, Axis(1), &kept), longer))
}

pub(super) fn classes() -> Vec<Class<AccumulatedLoss>> {
    fn differ<T: PartialEq>(case: &AccumulatedLossCase, what: impl Fn(&MicroBatch) -> T) -> bool {
        case.micro_batches.windows(2).any(|pair| what(&pair[0]) != what(&pair[1]))
    }
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "one-micro-batch",
            "K = 1",
            |c: &AccumulatedLossCase, _| c.micro_batches.len() == 1,
            always,
        ),
        class("two-micro-batches", "K = 2", |c, _| c.micro_batches.len() == 2, always),
        class("short-window", "K = 3", |c, _| c.micro_batches.len() == 3, always),
        class("four-micro-batches", "K = 4", |c, _| c.micro_batches.len() == 4, always),
        class(
            "unequal-token-counts",
            "micro-batches with different numbers of tokens",
            |c, _| differ(c, kept),
            always,
        ),
        class(
            "equal-token-counts",
            "two micro-batches or more with as many tokens each, and some",
            |c, _| c.micro_batches.len() > 1 && !differ(c, kept) && tokens(c) > 0,
            always,
        ),
        class(
            "unequal-rows",
            "micro-batches with different numbers of rows",
            |c, _| differ(c, |part| part.mask.nrows()),
            always,
        ),
        class(
            "different-widths",
            "micro-batches of different width",
            |c, _| differ(c, |part| part.mask.ncols()),
            always,
        ),
        class(
            "empty-micro-batch",
            "a micro-batch without a token, beside others",
            |c, _| tokens(c) > 0 && c.micro_batches.iter().any(|part| kept(part) == 0),
            always,
        ),
        class(
            "empty-row",
            "a row without a token in a micro-batch that has some",
            |c, _| {
                c.micro_batches.iter().any(|part| {
                    let mut rows = part.mask.rows().into_iter();
                    kept(part) > 0 && rows.any(|row| !row.iter().any(|kept| *kept))
                })
            },
            always,
        ),
        class(
            "rows-of-unequal-length",
            "a micro-batch whose rows have different numbers of tokens",
            |c, _| {
                c.micro_batches.iter().any(|part| {
                    let count = |row: usize| part.mask.row(row).iter().filter(|m| **m).count();
                    (1..part.mask.nrows()).any(|row| count(row) != count(0))
                })
            },
            always,
        ),
        class(
            "identical-micro-batches",
            "two micro-batches or more, all the same",
            |c, _| {
                let parts = &c.micro_batches;
                parts.len() > 1 && parts.windows(2).all(|pair| pair[0] == pair[1])
            },
            always,
        ),
        class(
            "constant-loss",
            "two tokens or more, all of the same loss other than 0",
            |c, _| {
                let parts = c.micro_batches.iter();
                let all = parts.flat_map(|part| part.token_losses.iter().zip(&part.mask));
                let kept: Vec<f64> = all.filter(|(_, kept)| **kept).map(|(x, _)| *x).collect();
                kept.len() > 1 && kept[0] != 0.0 && kept.iter().all(|loss| *loss == kept[0])
            },
            always,
        ),
        class(
            "masked-loss",
            "a loss other than 0 under the mask",
            |c, _| {
                let parts = c.micro_batches.iter();
                let mut all = parts.flat_map(|part| part.token_losses.iter().zip(&part.mask));
                all.any(|(loss, kept)| !kept && *loss != 0.0)
            },
            always,
        ),
        class(
            "holes",
            "a row with a gap between its tokens",
            |c, _| {
                let parts = c.micro_batches.iter();
                parts.flat_map(|part| part.mask.rows()).any(masks::has_hole)
            },
            |options, _| options.holes,
        ),
        class(
            "empty-batch",
            "no token counts",
            |c, _| tokens(c) == 0,
            |options, _| options.empty_mask != EmptyMask::Avoid,
        ),
        class(
            "extreme-loss",
            "a token loss of 1000 that counts",
            |c, _| {
                let parts = c.micro_batches.iter();
                let mut all = parts.flat_map(|part| part.token_losses.iter().zip(&part.mask));
                all.any(|(loss, kept)| *kept && loss.abs() >= LARGEST)
            },
            always,
        ),
    ]
}
