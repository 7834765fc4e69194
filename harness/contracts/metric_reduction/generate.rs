//! Cases of `metric-reduction`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, Axis, arr2};

use super::{
    MetricReduction, MetricReductionCase, Options, Shard, Unit, Unscored, count, kept, sets,
};
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{AWKWARD, chance, normal, one, repeating, uniform};
use shakedown_core::generate::masks;
use shakedown_core::generate::measure::Measure;
use shakedown_core::generate::parts::{self, Part};
use shakedown_core::generate::pick::Pick;
use shakedown_core::numeric::conventions::{EmptyMask, MaskedValues};
use shakedown_core::value::place::Dtype;

/// The largest value: the length of an answer in tokens, far from 0 beside its spread.
const LARGEST: f64 = 5e3;

/// The larger of the means that are far from 0 beside a spread of 2.
const FAR_OFF: f64 = 4e3;

/// Finite numbers that stand under the mask.
pub(super) const POISON: [f64; 7] = [0.0, 1.0, -1.0, 0.5, -7.0, 1e3, -1e3];

pub(super) fn valid(
    case: &MetricReductionCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    if case.shards.is_empty() {
        return Err("no shard, expected 1 or more".to_owned());
    }
    let mut magnitude = 0.0;
    for (index, part) in case.shards.iter().enumerate() {
        let shapes = [part.values.shape(), part.targets.shape(), part.mask.shape()];
        if shapes[0] != shapes[2] || shapes[1] != shapes[2] || part.mask.is_empty() {
            let [values, targets, mask] = shapes;
            return Err(format!(
                "shards[{index}]: values of shape {values:?}, targets of {targets:?} and a mask \
                 of {mask:?}, expected the same, of 1 or more rows and tokens"
            ));
        }
        let unscored = |value: f64| options.unscored != Unscored::Avoid && value.is_nan();
        let mut values = part.values.clone();
        values.zip_mut_with(&part.mask, |value, kept| {
            *value = if *kept && unscored(*value) { 0.0 } else { *value };
        });
        let fields = [("values", &values), ("targets", &part.targets)];
        masks::check(&part.mask, options.holes, &fields, options.masked_values, LARGEST)
            .map_err(|why| format!("shards[{index}]: {why}"))?;
        let both = values.iter().zip(&part.targets).zip(&part.mask);
        magnitude +=
            both.filter(|(_, kept)| **kept).map(|((v, t), _)| v.abs().max(t.abs())).sum::<f64>();
    }
    if options.empty_mask == EmptyMask::Avoid && count(case, options) == 0 {
        return Err("no number at all, and `empty_mask` is `avoid`".to_owned());
    }
    if magnitude > 0.5 * dtype.max() {
        return Err(format!("numbers that add up to {magnitude}, too many for {}", dtype.name()));
    }
    Ok(())
}

/// What values are drawn from.
#[derive(Clone, Copy)]
enum Pattern {
    Awkward,
    Integers,
    Uniform,
    Normal,
    Outcomes,
    Extreme,
    /// One number.
    Constant(f64),
    /// Around a mean far from 0, with a spread of 2.
    Around(f64),
}

impl Pattern {
    fn drawn(u: &mut Unstructured<'_>, dtype: Dtype) -> Result<Pattern> {
        let far = if dtype == Dtype::Bf16 { 100.0 } else { FAR_OFF };
        Ok(match u.choose_index(10)? {
            0 => Pattern::Awkward,
            1 => Pattern::Integers,
            2 => Pattern::Uniform,
            3 | 4 => Pattern::Normal,
            5 => Pattern::Outcomes,
            6 => Pattern::Extreme,
            7 => Pattern::Constant(one(u, &AWKWARD)?),
            8 => Pattern::Around(100.0),
            _ => Pattern::Around(far),
        })
    }

    fn number(self, u: &mut Unstructured<'_>) -> Result<f64> {
        Ok(match self {
            Pattern::Awkward => one(u, &AWKWARD)?,
            Pattern::Integers => f64::from(one(u, &[1_i8, -1, 0, 2, 3, 5])?),
            Pattern::Uniform => uniform(u, -1.0, 1.0)?,
            Pattern::Normal => normal(u)?,
            Pattern::Outcomes => one(u, &[0.0, 1.0])?,
            Pattern::Extreme => one(u, &[0.0, 0.5, 1.0, 1e3, -1e3])?,
            Pattern::Constant(number) => number,
            Pattern::Around(mean) => mean + uniform(u, -2.0, 2.0)?,
        })
    }

    fn numbers(self, u: &mut Unstructured<'_>, shape: (usize, usize)) -> Result<Array2<f64>> {
        let numbers = repeating(u, shape.0 * shape.1, |u| self.number(u))?;
        Ok(Array2::from_shape_vec(shape, numbers).expect("n·T numbers"))
    }
}

/// How targets follow from values.
#[derive(Clone, Copy)]
enum Targets {
    /// They are the values.
    Same,
    /// All values are off by as much.
    Offset,
    /// The values, and noise.
    Noisy,
    /// Numbers of their own.
    Other(Pattern),
}

impl Targets {
    fn drawn(u: &mut Unstructured<'_>, dtype: Dtype) -> Result<Targets> {
        Ok(match u.choose_index(6)? {
            0 => Targets::Same,
            1 => Targets::Offset,
            2 => Targets::Noisy,
            3 => Targets::Other(Pattern::Constant(one(u, &[3.0, 0.0, 0.5, 0.1])?)),
            _ => Targets::Other(Pattern::drawn(u, dtype)?),
        })
    }

    fn of(self, u: &mut Unstructured<'_>, values: &Array2<f64>) -> Result<Array2<f64>> {
        Ok(match self {
            Targets::Same => values.clone(),
            Targets::Offset => values + 1.0,
            Targets::Noisy => values + &Pattern::Uniform.numbers(u, values.dim())?,
            Targets::Other(pattern) => pattern.numbers(u, values.dim())?,
        })
    }
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<MetricReductionCase> {
    let shards = one(u, &[2, 3, 1, 2, 4, 2])?;
    let (pattern, targets) = (Pattern::drawn(u, dtype)?, Targets::drawn(u, dtype)?);
    let unscored = match options.unscored {
        Unscored::Avoid => 0,
        Unscored::Skip | Unscored::Zero => one(u, &[60, 0, 160, 255])?,
    };
    let mut case = MetricReductionCase { shards: Vec::new() };
    for _ in 0..shards {
        let shape = match u.arbitrary::<u8>()? {
            0..=9 => masks::shape(u)?,
            _ => (one(u, &[1, 1, 2, 3])?, one(u, &[1, 2, 3, 2, 4, 5])?),
        };
        let mask = match u.arbitrary::<u8>()? {
            0..=25 => Array2::from_elem(shape, false),
            _ => masks::mask(u, shape, options.holes)?,
        };
        let mut values = pattern.numbers(u, shape)?;
        let mut targets = targets.of(u, &values)?;
        for ((value, target), kept) in values.iter_mut().zip(&mut targets).zip(&mask) {
            if !*kept {
                *value = masks::poison(u, options.masked_values, &POISON)?;
                *target = masks::poison(u, options.masked_values, &POISON)?;
            } else if unscored > 0 && chance(u, unscored)? {
                *value = f64::NAN;
            }
        }
        case.shards.push(Shard { values, targets, mask });
    }
    if count(&case, options) == 0 && options.empty_mask == EmptyMask::Avoid {
        let first = &mut case.shards[0];
        first.mask[[0, 0]] = true;
        (first.values[[0, 0]], first.targets[[0, 0]]) = (1.0, 1.0);
        if masks::has_hole(first.mask.row(0)) && !options.holes {
            first.mask.row_mut(0).fill(true);
            first.values.row_mut(0).fill(1.0);
            first.targets.row_mut(0).fill(1.0);
        }
    }
    shakedown_core::value::record::round(&mut case, dtype);
    if valid(&case, options, dtype).is_err() {
        // A sum that f16 cannot hold.
        for part in &mut case.shards {
            for floats in [&mut part.values, &mut part.targets] {
                floats.mapv_inplace(|x| if x.is_finite() { x.clamp(-1.0, 1.0) } else { x });
            }
        }
    }
    Ok(case)
}

/// A shard of rows of values and targets; `None` is a masked token.
fn part(rows: &[&[Option<[f64; 2]>]]) -> Shard {
    let shape = (rows.len(), rows[0].len());
    let of = |which: usize| {
        Array2::from_shape_fn(shape, |(r, c)| rows[r][c].map_or(0.0, |token| token[which]))
    };
    Shard {
        values: of(0),
        targets: of(1),
        mask: Array2::from_shape_fn(shape, |(r, c)| rows[r][c].is_some()),
    }
}

/// A shard of one row of which every token counts.
fn row(tokens: &[[f64; 2]]) -> Shard {
    let tokens: Vec<Option<[f64; 2]>> = tokens.iter().map(|token| Some(*token)).collect();
    part(&[&tokens])
}

/// The same, of values whose targets are others in another order.
fn values(values: &[f64]) -> Shard {
    let tokens = values.iter().enumerate();
    row(&tokens.map(|(at, value)| [*value, (at % 3) as f64]).collect::<Vec<_>>())
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<MetricReductionCase> {
    let empty = || part(&[&[None]]);
    let mut cases = Vec::new();
    let mut case = |shards: Vec<Shard>| cases.push(MetricReductionCase { shards });
    for value in [0.0, 1.0, -1.0, 2.0] {
        case(vec![values(&[value])]);
        case(vec![values(&[value]), values(&[value])]);
        case(vec![values(&[value]), values(&[1.0])]);
        case(vec![values(&[value]), values(&[1.0, 1.0])]);
        case(vec![values(&[1.0, 1.0]), values(&[value])]);
        case(vec![row(&[[value, 0.0], [1.0, 1.0]])]);
        case(vec![row(&[[value, 1.0], [0.0, 1.0]])]);
        case(vec![empty(), values(&[value])]);
        case(vec![values(&[value]), empty()]);
        case(vec![row(&[[value, 0.0]]), row(&[[0.0, 1.0]])]);
        case(vec![part(&[&[Some([value, 0.0]), None]]), row(&[[1.0, 1.0]])]);
    }
    case(vec![empty()]);
    case(vec![empty(), empty()]);
    let on = |value: f64, target: f64| Some([value, target]);
    let long = [on(1.0, 0.0), on(1.0, 1.0), on(4.0, 2.0)];
    let short = [on(4.0, 1.0), None, None];
    let tall: [&[Option<[f64; 2]>]; 3] = [&[on(1.0, 0.0)], &[on(2.0, 1.0)], &[on(6.0, 0.0)]];
    case(vec![values(&[-1.0]), values(&[1.0, 1.0, 1.0])]);
    case(vec![part(&[&[on(2.0, 0.0)]]), part(&tall)]);
    case(vec![part(&[&long, &short])]);
    case(vec![part(&[&long, &short]), values(&[1.0])]);
    case(vec![part(&[&long, &short, &[None, None, None]]), values(&[3.0])]);
    case(vec![part(&[&short, &[None, on(2.0, 0.0), None]])]);
    case(vec![values(&[1.0]), part(&[&[on(2.0, 3.0)], &[None]]), empty(), values(&[4.0, 0.5])]);
    // One, two and four shards of the same tokens.
    case(vec![values(&[1.0, 2.0]), values(&[4.0, 8.0])]);
    case(vec![values(&[1.0, 2.0, 4.0, 8.0])]);
    case(vec![values(&[1.0]), values(&[2.0]), values(&[4.0]), values(&[8.0])]);
    case(vec![values(&[0.1]), values(&[0.2, 0.3]), values(&[0.7, 0.7, 0.7])]);
    // Constants, of which a rounded mean is another number.
    for constant in [1.0, 0.1, 10.0 / 3.0, -0.7] {
        case(vec![values(&[constant; 3])]);
        case(vec![values(&[constant; 5]), values(&[constant; 2])]);
    }
    // Means far from 0 beside their spread.
    for mean in [100.0, FAR_OFF] {
        case(vec![values(&[mean - 2.0, mean, mean + 2.0])]);
        case(vec![values(&[mean - 2.0]), values(&[mean + 2.0, mean])]);
        case(vec![part(&[&[on(mean, 0.0), on(mean + 2.0, 1.0)], &[on(mean - 2.0, 3.0), None]])]);
    }
    // The simplest two numbers whose squares in f32 keep nothing of how far they are apart.
    case(vec![row(&[[1939.0, 1939.0], [2158.0, 1939.0]])]);
    // Targets that are the values, that are all off by 1, and that nothing explains.
    case(vec![row(&[[1.0, 1.0], [2.0, 2.0]]), row(&[[4.0, 4.0]])]);
    case(vec![row(&[[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]])]);
    case(vec![row(&[[1.0, 3.0], [2.0, 1.0]]), row(&[[4.0, 0.0]])]);
    case(vec![row(&[[1.0, 0.1], [2.0, 0.1], [4.0, 0.1]])]);
    case(vec![values(&[0.1; 12]), values(&[0.1])]);
    if options.holes {
        case(vec![part(&[&[on(1.0, 0.0), None, on(2.0, 1.0)]]), values(&[4.0])]);
    }
    if options.unscored != Unscored::Avoid {
        let nan = f64::NAN;
        case(vec![values(&[nan])]);
        case(vec![values(&[1.0, nan])]);
        case(vec![values(&[nan, 1.0])]);
        case(vec![values(&[1.0]), values(&[nan])]);
        case(vec![values(&[nan]), values(&[1.0, 2.0])]);
        case(vec![values(&[1.0, nan, 3.0]), values(&[2.0])]);
        case(vec![part(&[&[on(2.0, 1.0), on(nan, 0.0)], &[on(nan, 0.0), on(nan, 2.0)]])]);
    }
    let bad = match options.masked_values {
        MaskedValues::Any => &[7.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY][..],
        MaskedValues::Finite => &[7.0, -1e3][..],
    };
    for bad in bad {
        let masked = |value: f64, target: f64| Shard {
            values: arr2(&[[value, *bad]]),
            targets: arr2(&[[target, *bad]]),
            mask: arr2(&[[true, false]]),
        };
        let (values, targets) = (arr2(&[[*bad]]), arr2(&[[*bad]]));
        let empty = Shard { values, targets, mask: arr2(&[[false]]) };
        case(vec![masked(1.0, 0.0)]);
        case(vec![masked(1.0, 0.0), masked(2.0, 1.0)]);
        case(vec![self::values(&[1.0]), empty]);
    }
    cases.retain_mut(|case| {
        shakedown_core::value::record::round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases.sort_by_cached_key(measure);
    cases
}

/// Shapes of small batches: rows and tokens of each shard.
const SMALL: [&[(usize, usize)]; 13] = [
    &[(1, 2)],
    &[(2, 1)],
    &[(2, 2)],
    &[(1, 3)],
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
pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<MetricReductionCase> {
    let mut cases = Vec::new();
    let unscored = options.unscored != Unscored::Avoid;
    for (number, shapes) in SMALL.iter().enumerate() {
        let mut pick = Pick::seeded(number as u64);
        for _ in 0..48 {
            let part = |shape: &(usize, usize)| Shard {
                values: Array2::from_shape_fn(*shape, |_| match pick.below(5) {
                    0 if unscored => f64::NAN,
                    _ => *pick.one(&[0.0, 1.0, 1.0, 2.0]),
                }),
                targets: Array2::from_shape_fn(*shape, |_| *pick.one(&[0.0, 0.0, 1.0])),
                mask: Array2::from_shape_fn(*shape, |_| pick.below(4) > 0),
            };
            let case = MetricReductionCase { shards: shapes.iter().map(part).collect() };
            if valid(&case, options, dtype).is_ok() {
                cases.push(case);
            }
        }
    }
    cases
}

pub(super) fn measure(case: &MetricReductionCase) -> Measure {
    parts::measure(case, &case.shards)
}

pub(super) fn simpler(case: &MetricReductionCase) -> Vec<MetricReductionCase> {
    let lists = parts::simpler(&case.shards).into_iter();
    let candidates = lists.map(|shards| MetricReductionCase { shards });
    candidates.chain(rows::simpler_values(case)).collect()
}

impl Part for Shard {
    fn mask(&self) -> &Array2<bool> {
        &self.mask
    }

    fn unmasked(&self) -> Self {
        Shard { mask: self.mask.mapv(|_| true), ..self.clone() }
    }

    fn taken(&self, axis: Axis, places: &[usize]) -> Self {
        taken(self, axis, places)
    }

    fn constant(&self, number: f64) -> Vec<Self> {
        let values = self.values.mapv(|_| number);
        let targets = self.targets.mapv(|_| number);
        vec![Shard { values, ..self.clone() }, Shard { targets, ..self.clone() }]
    }
}

/// Some rows or columns of a shard, in that order.
pub(super) fn taken(part: &Shard, axis: Axis, places: &[usize]) -> Shard {
    Shard {
        values: part.values.select(axis, places).as_standard_layout().into_owned(),
        targets: part.targets.select(axis, places).as_standard_layout().into_owned(),
        mask: part.mask.select(axis, places).as_standard_layout().into_owned(),
    }
}

/// The values and targets of all tokens that count.
fn tokens(case: &MetricReductionCase, options: &Options) -> Vec<[f64; 2]> {
    let by_token = Options { unit: Unit::Token, ..options.clone() };
    case.shards.iter().flat_map(|part| sets(part, &by_token)).flatten().collect()
}

/// Whether these are two numbers or more that are all the same, and not 0.
fn is_constant(numbers: impl Iterator<Item = f64>) -> bool {
    let numbers: Vec<f64> = numbers.collect();
    numbers.len() > 1 && numbers[0] != 0.0 && numbers.iter().all(|x| *x == numbers[0])
}

/// Whether values around a mean like this have a spread of 4 at the most, and some.
fn is_around(case: &MetricReductionCase, options: &Options, mean: f64) -> bool {
    let values: Vec<f64> = tokens(case, options).iter().map(|token| token[0]).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (mean - 3.0..=mean + 3.0).contains(&least) && most > least && most - least <= 4.0
}

pub(super) fn classes() -> Vec<Class<MetricReduction>> {
    fn differ<T: PartialEq>(case: &MetricReductionCase, what: impl Fn(&Shard) -> T) -> bool {
        case.shards.windows(2).any(|pair| what(&pair[0]) != what(&pair[1]))
    }
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class("one-shard", "K = 1", |c: &MetricReductionCase, _| c.shards.len() == 1, always),
        class("two-shards", "K = 2", |c, _| c.shards.len() == 2, always),
        class("three-shards", "K = 3", |c, _| c.shards.len() == 3, always),
        class("four-shards", "K = 4", |c, _| c.shards.len() == 4, always),
        class(
            "unequal-lengths",
            "shards with different numbers of tokens",
            |c, _| differ(c, kept),
            always,
        ),
        class(
            "several-rows",
            "two rows or more with a token each, with different values",
            |c, _| {
                let rows = c
                    .shards
                    .iter()
                    .flat_map(|part| part.values.rows().into_iter().zip(part.mask.rows()));
                let firsts = rows.filter_map(|(values, mask)| {
                    let first = mask.iter().position(|kept| *kept)?;
                    Some(values[first])
                });
                let firsts: Vec<f64> = firsts.collect();
                firsts.iter().any(|first| *first != firsts[0])
            },
            always,
        ),
        class(
            "different-widths",
            "shards of different width",
            |c, _| differ(c, |part| part.mask.ncols()),
            always,
        ),
        class(
            "empty-shard",
            "a shard without a token, beside others",
            |c, _| {
                let mut parts = c.shards.iter();
                parts.clone().any(|part| kept(part) > 0) && parts.any(|part| kept(part) == 0)
            },
            always,
        ),
        class(
            "empty-row",
            "a row without a token in a shard that has some",
            |c, _| {
                c.shards.iter().any(|part| {
                    let mut rows = part.mask.rows().into_iter();
                    kept(part) > 0 && rows.any(|row| !row.iter().any(|kept| *kept))
                })
            },
            always,
        ),
        class(
            "rows-of-unequal-length",
            "a shard whose rows have different numbers of tokens",
            |c, _| {
                c.shards.iter().any(|part| {
                    let count = |row: usize| part.mask.row(row).iter().filter(|m| **m).count();
                    (1..part.mask.nrows()).any(|row| count(row) != count(0))
                })
            },
            always,
        ),
        class(
            "nothing",
            "no number at all",
            |c, options| count(c, options) == 0,
            |options, _| options.empty_mask != EmptyMask::Avoid,
        ),
        class("one-number", "one number in all", |c, options| count(c, options) == 1, always),
        class(
            "constant-values",
            "two tokens or more, all of one value other than 0",
            |c, options| is_constant(tokens(c, options).iter().map(|token| token[0])),
            always,
        ),
        class(
            "constant-targets",
            "two tokens or more, all with one target other than 0",
            |c, options| is_constant(tokens(c, options).iter().map(|token| token[1])),
            always,
        ),
        class(
            "targets-are-the-values",
            "two tokens or more, each with its target as its value, and not all the same",
            |c, options| {
                let tokens = tokens(c, options);
                let same = tokens.iter().all(|[value, target]| value == target);
                same && tokens.iter().any(|token| *token != tokens[0])
            },
            always,
        ),
        class(
            "far-off",
            "values around 100 with a spread of 4 at the most",
            |c, options| is_around(c, options, 100.0),
            always,
        ),
        class(
            "farther-off",
            "values around 4000 with a spread of 4 at the most",
            |c, options| is_around(c, options, FAR_OFF),
            |_, dtype| dtype != Dtype::Bf16,
        ),
        class(
            "unscored",
            "a value that is NaN and counts",
            |c, _| {
                let mut all = c.shards.iter().flat_map(|part| part.values.iter().zip(&part.mask));
                all.any(|(value, kept)| *kept && value.is_nan())
            },
            |options, _| options.unscored != Unscored::Avoid,
        ),
        class(
            "unscored-row",
            "a row of which no token could be scored, beside some that could",
            |c, _| {
                let mut rows = c
                    .shards
                    .iter()
                    .flat_map(|part| part.values.rows().into_iter().zip(part.mask.rows()));
                let unscored = rows.any(|(values, mask)| {
                    let mut all = values.into_iter().zip(mask);
                    mask.iter().any(|kept| *kept) && all.all(|(x, kept)| !kept || x.is_nan())
                });
                let number = |value: f64| !value.is_nan();
                let mut all = c.shards.iter().flat_map(|part| part.values.iter().zip(&part.mask));
                unscored && all.any(|(value, kept)| *kept && number(*value))
            },
            |options, _| options.unscored != Unscored::Avoid,
        ),
        class(
            "masked-value",
            "a value other than 0 under the mask",
            |c, _| {
                let mut all = c.shards.iter().flat_map(|part| part.values.iter().zip(&part.mask));
                all.any(|(value, kept)| !kept && *value != 0.0)
            },
            always,
        ),
        class(
            "holes",
            "a row with a gap between its tokens",
            |c, _| c.shards.iter().flat_map(|part| part.mask.rows()).any(masks::has_hole),
            |options, _| options.holes,
        ),
    ]
}
