//! Cases of `preference-loss`: random draws, corners and classes.

use arbitrary::{Result, Unstructured};
use ndarray::Array1;

use super::{Kind, Options, PreferenceLoss, PreferenceLossCase, oracle};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{AWKWARD, chance, normal, one, uniform};
use shakedown_core::value::place::Dtype;

/// The largest magnitude of a log-probability: a completion of a thousand unlikely tokens.
const LARGEST: f64 = 1e4;

/// At most this many pairs of a case are drawn.
const DRAWN: usize = 16;

/// The four numbers of a pair: policy chosen and rejected, reference chosen and rejected.
type Pair = [f64; 4];

pub(super) fn valid(
    case: &PreferenceLossCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<PreferenceLoss>(case)?;
    let fields = [&case.policy_chosen, &case.policy_rejected, &case.ref_chosen, &case.ref_rejected];
    if let Some(x) = fields.into_iter().flatten().find(|x| x.is_nan() || x.abs() > LARGEST) {
        return Err(format!("the log-probability {x} is not within ±{LARGEST}"));
    }
    for expected in oracle::outputs(case, options, dtype)
        .into_iter()
        .chain(oracle::gradient(case, options, dtype))
    {
        let field = expected.field;
        let holds = |value: f64| value.is_nan() || value.abs() <= 0.5 * dtype.max();
        if let Some(number) = expected.numbers.iter().find(|number| !holds(number.value)) {
            return Err(format!("the exact {field} is {}, too large for the dtype", number.value));
        }
    }
    Ok(())
}

/// The case of some pairs.
fn of_pairs(pairs: &[Pair]) -> PreferenceLossCase {
    let field = |at: usize| pairs.iter().map(|pair| pair[at]).collect::<Array1<f64>>();
    PreferenceLossCase {
        policy_chosen: field(0),
        policy_rejected: field(1),
        ref_chosen: field(2),
        ref_rejected: field(3),
    }
}

/// A pair of this margin: log-probabilities of at most 0, the reference indifferent.
fn of_margin(margin: f64) -> Pair {
    if margin > 0.0 { [0.0, -margin, 0.0, 0.0] } else { [margin, 0.0, 0.0, 0.0] }
}

/// Margins on which real bugs showed: around 0, the hinge and the minimum of ipo, and far out.
fn margins(options: &Options) -> Vec<f64> {
    let beta = options.beta;
    let mut margins = vec![0.0, 1.0, 2.0, 0.5, 5.0, 30.0, 200.0, 1e3, 1e4];
    margins.extend([1.0 / beta, 0.5 / beta, options.margin / beta, 1.0 / beta + 1.0, 100.0 / beta]);
    margins.retain(|margin| *margin <= LARGEST);
    margins.iter().flat_map(|margin| [*margin, 0.0 - margin]).collect()
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<PreferenceLossCase> {
    let small = [1_usize, 2, 3, 2, 1, 4];
    let count = if chance(u, 220)? { one(u, &small)? } else { one(u, &[5, 8, 16, 32])? };
    let pattern = u.choose_index(7)?;
    let margins = margins(options);
    let mut pairs = Vec::with_capacity(count);
    for _ in 0..count.min(DRAWN) {
        let mut pair = match pattern {
            0 => of_margin(one(u, &margins)?),
            1 => {
                // Sums over the tokens of a completion, and a policy near its reference.
                let [chosen, rejected] = [uniform(u, -300.0, -10.0)?, uniform(u, -300.0, -10.0)?];
                [chosen + normal(u)?, rejected + normal(u)?, chosen, rejected]
            }
            2 => {
                let mut number = || Ok(-one(u, &AWKWARD)?.abs());
                [number()?, number()?, number()?, number()?]
            }
            3 => {
                let [chosen, rejected] = [uniform(u, -20.0, 0.0)?, uniform(u, -20.0, 0.0)?];
                [chosen, rejected, chosen, rejected]
            }
            4 => {
                // Averages over tokens.
                let mut number = || uniform(u, -4.0, 0.0);
                [number()?, number()?, number()?, number()?]
            }
            5 => {
                let mut number = || one(u, &[0.0, -1.0, -1e3, -LARGEST]);
                [number()?, number()?, number()?, number()?]
            }
            _ => {
                let mut number = || Ok(0.0 - f64::from(one(u, &[0_u8, 1, 2, 3, 5, 10, 20])?));
                [number()?, number()?, number()?, number()?]
            }
        };
        pair.iter_mut().for_each(|x| *x = dtype.round(*x));
        let fits = valid(&of_pairs(&[pair]), options, dtype).is_ok();
        pairs.push(if fits { pair } else { [0.0; 4] });
    }
    // Large cases repeat them, so that they do not take more bytes than a fuzzer can steer.
    let drawn = pairs.len();
    let pairs: Vec<Pair> = (0..count).map(|at| pairs[(at + at / drawn) % drawn]).collect();
    Ok(of_pairs(&pairs))
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<PreferenceLossCase> {
    let mut cases: Vec<PreferenceLossCase> =
        margins(options).into_iter().map(|margin| of_pairs(&[of_margin(margin)])).collect();
    let one_of_each = [
        [-1.0, 0.0, 0.0, 0.0],
        [0.0, -1.0, 0.0, 0.0],
        [0.0, 0.0, -1.0, 0.0],
        [0.0, 0.0, 0.0, -1.0],
    ];
    cases.extend(one_of_each.map(|pair| of_pairs(&[pair])));
    for pairs in [
        &[[-1.0; 4]][..],
        &[[-1.0, -2.0, -1.0, -2.0]],
        &[[-1.0, -2.0, -2.0, -1.0]],
        &[[-10.0, -20.0, -12.0, -18.0]],
        &[[-0.1, -0.7, -0.3, -0.2]],
        &[[-100.3, -64.1, -100.0, -64.0]],
        &[[-LARGEST, 0.0, 0.0, -LARGEST]],
        &[[0.0, -LARGEST, -LARGEST, 0.0]],
        &[[0.0; 4], [-1.0, 0.0, 0.0, 0.0]],
        &[[0.0, -1.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]],
        &[[-1.0, -2.0, -1.0, -2.0], [-2.0, -1.0, -2.0, -1.0]],
        &[[-1.0, -2.0, -3.0, -4.0], [-4.0, -1.0, -2.0, -3.0], [-0.5, -3.0, -1.0, -2.0]],
        &[[0.0, -30.0, 0.0, 0.0], [-30.0, 0.0, 0.0, 0.0], [-1.0, -1.0, -1.0, -1.0]],
    ] {
        cases.push(of_pairs(pairs));
    }
    let many: Vec<Pair> = (0..12)
        .map(|at| [1, 5, 7, 11].map(|step| -0.5 * f64::from((step * at + step) % 13)))
        .collect();
    cases.push(of_pairs(&many));
    cases.retain_mut(|case| {
        shakedown_core::value::record::round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases.sort_by_cached_key(PreferenceLoss::measure);
    cases.dedup_by(|a, b| shakedown_core::value::record::same_bits(a, b));
    cases
}

pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<PreferenceLossCase> {
    let values = [0.0, 0.0, -1.0];
    let fields = ["policy_chosen", "policy_rejected", "ref_chosen", "ref_rejected"];
    rows::small::<PreferenceLoss>(&fields.map(|field| (field, &values[..])), options, dtype)
}

/// Whether βΔ - γ of some pair is such.
fn any(case: &PreferenceLossCase, options: &Options, is: impl Fn(f64) -> bool) -> bool {
    oracle::logits(case, options).into_iter().any(is)
}

/// Whether the reference prefers one side of some pair.
fn reference_differs(case: &PreferenceLossCase) -> bool {
    case.ref_chosen.iter().zip(&case.ref_rejected).any(|(chosen, rejected)| chosen != rejected)
}

pub(super) fn classes() -> Vec<Class<PreferenceLoss>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "policy-is-reference",
            "the policy is the reference in every pair",
            |c: &PreferenceLossCase, _| {
                c.policy_chosen == c.ref_chosen && c.policy_rejected == c.ref_rejected
            },
            always,
        ),
        class(
            "reference-prefers",
            "a pair of which the reference prefers one side",
            |c, _| reference_differs(c),
            always,
        ),
        class("right-way", "βΔ exceeds γ", |c, o| any(c, o, |z| z > 0.0), always),
        class("wrong-way", "βΔ is below γ", |c, o| any(c, o, |z| z < 0.0), always),
        class(
            "past-the-hinge",
            "a pair that no longer counts for hinge",
            |c, o| any(c, o, |z| z > 1.0),
            |options, _| options.kind == Kind::Hinge,
        ),
        class(
            "saturated",
            "a sigmoid beyond what exp holds in f32",
            |c, o| any(c, o, |z| z.abs() > 88.73),
            |options, dtype| dtype != Dtype::F16 || options.kind != Kind::Ipo,
        ),
        class(
            "margin-of-10000",
            "a margin of at least 9900 either way",
            |c, o| any(c, &Options { beta: 1.0, margin: 0.0, ..o.clone() }, |z| z.abs() >= 9900.0),
            |options, dtype| dtype != Dtype::F16 || options.kind != Kind::Ipo,
        ),
        class("one-pair", "P = 1", |c, _| c.policy_chosen.len() == 1, always),
        class("several-pairs", "P ≥ 2", |c, _| c.policy_chosen.len() > 1, always),
        class("many-pairs", "P ≥ 12", |c, _| c.policy_chosen.len() >= 12, always),
    ]
}
