//! What every contract must keep: its reference passes, its faults are caught, its cases are valid.
//!
//! One listed test for each contract and property, and two for each fault:
//! `cargo test --test contracts -- returns`. With `SHAKEDOWN_NIGHT=1` the references are checked
//! on many more cases, and faults shrunk from more seeds.

#[path = "support/night.rs"]
mod night;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use arbitrary::Unstructured;
use libtest_mimic::{Arguments, Trial};
use proptest::prelude::Rng;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use shakedown::author::{Dtype, Place, Stop};
use shakedown::contract::component::{Call, Component, Failure, Gradients, Returned};
use shakedown::contract::erased::AnyContract;
use shakedown::contract::fault::AnyFault;
use shakedown::contract::options::AnyOptions;
use shakedown::contract::stream;
use shakedown::contracts;
use shakedown::contracts::REGISTRY;
use shakedown::door::{prove, strategy::cases_of};
use shakedown::engine::check::run;
use shakedown::engine::shrink;
use shakedown::engine::subject::{Budget, Subject, read_options};
use shakedown::files::case_file::CaseFile;
use shakedown::host::builtin::Builtin;
use shakedown::numeric::terms::{Alteration, TermChange, altered, named_in};
use shakedown::report::Status;
use shakedown::value::record::{AnyRecord, Field, Kind, Shared, same_bits};

/// A contract, its types known at run time only.
type Contract = &'static dyn AnyContract;

/// The places at which builtin components run.
const PLACES: [Place; 4] = [Place::CPU_F64, Place::CPU_F32, Place::CPU_BF16, Place::CPU_F16];

fn every_invariant_claims_faults_that_there_are(contract: Contract) {
    assert_eq!(prove::wrong_claims(contract), [""; 0]);
}

/// By each invariant that claims it, in one of its variants at least.
fn is_caught_and_named(contract: Contract, fault: &'static AnyFault) {
    assert_eq!(prove::wrong_with(contract, fault), [""; 0]);
}

fn shrinks_to_one_case_from_every_seed(contract: Contract, fault: &'static AnyFault) {
    let planted = Box::new(Builtin::fault(contract, fault, 0));
    let mut subject = Subject::new(contract, fault.id, planted);
    let options = read_options(contract, fault.options).expect(fault.id);
    subject.options = Arc::clone(&options);
    // Without an oracle the first invariant that claims the fault.
    let claims = || contract.invariants().iter().find(|one| one.catches.contains(&fault.id));
    let invariant = contract.invariant("oracle").or_else(claims).expect("an invariant claims it");
    let mut breaks = |case: &Shared| {
        let outcome = subject.try_case(invariant, case, Place::CPU_F32, &mut 0).0;
        matches!(outcome, Err(Stop::Broken(_)))
    };
    let mut minima: Vec<Shared> = Vec::new();
    for seed in 0..by_day_or_night(4, 20) {
        // Random cases only: from the corners every walk would begin alike.
        let mut rng = stream::rng(seed, contract.id());
        let failing = (0..2000)
            .map(|_| stream::draw(contract, &mut rng, &*options, Dtype::F32))
            .find(|case| breaks(case));
        let Some(case) = failing else { continue };
        let fails = &mut |case: &Shared| Some(breaks(case));
        let minimal = shrink::minimise(contract, &case, &*options, Dtype::F32, fails).case;
        if !minima.iter().any(|known| same_bits(&**known, &*minimal)) {
            minima.push(minimal);
        }
    }
    assert!(minima.len() < 2, "{minima:?}");
}

/// How much is done by day, and how much in the nights.
fn by_day_or_night(day: u64, night: u64) -> u64 {
    if night::is_night() { night } else { day }
}

fn assert_reference_passes(
    contract: Contract,
    options: Arc<dyn AnyOptions>,
    place: Place,
    budget: &Budget,
) {
    let reference = Box::new(Builtin::reference(contract));
    assert_passes(contract, reference, options, place, budget);
}

fn assert_passes(
    contract: Contract,
    component: Box<dyn Component>,
    options: Arc<dyn AnyOptions>,
    place: Place,
    budget: &Budget,
) {
    let mut subject = Subject::new(contract, "reference", component);
    subject.options = options;
    let report = run(&mut subject, place, budget, &|_| ()).unwrap();
    let broken: Vec<String> = report
        .findings
        .iter()
        .map(|f| format!("{}: {}\n   {}", f.invariant, f.found, f.shown))
        .collect();
    let options = &subject.options;
    assert!(broken.is_empty(), "at {place} with {options:?}\n{}", broken.join("\n"));
    assert_eq!(report.status, Status::Pass);
}

/// Where a contract has anything else to say: texts and whole numbers are the same at every place.
fn places(contract: Contract) -> &'static [Place] {
    let mut fields = contract.inputs().into_iter().chain(contract.outputs());
    let mut outputs = contract.outputs().into_iter();
    let whole = |field: &Field| contract.whole().contains(&field.name);
    if fields.any(|field| field.kind == Kind::Text) {
        &PLACES[..1]
    } else if outputs.all(|field| field.kind != Kind::Float || whole(&field)) {
        &PLACES[1..2]
    } else {
        &PLACES
    }
}

/// Most at f32, where training is: but for rounding, places are alike.
fn the_reference_passes_thousands_of_cases_at_every_place(contract: Contract) {
    for place in places(contract).iter().copied() {
        let first = place == Place::CPU_F32 || places(contract).len() == 1;
        let cases = by_day_or_night(if first { 2_000 } else { 500 }, 20_000);
        let budget = Budget { cases, seed: 1, time: None };
        assert_reference_passes(contract, contract.default_options(), place, &budget);
    }
}

/// The reference on the tape that names its terms.
struct OnTape(Contract);

impl Component for OnTape {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        let (case, options, dtype) = (&**call.case, &**call.options, call.place.dtype);
        if self.0.refuses(case, options) {
            let [message, traceback] = ["ValueError: refused", ""].map(str::to_owned);
            return Err(Failure::Raised { message, traceback });
        }
        let output = self.0.on_tape(case, options, dtype).rounded(dtype);
        Ok(Returned { output, changed: Vec::new(), no_gradient: Vec::new() })
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Optional
    }
}

/// The names of the terms of the reference on a case.
fn terms(
    contract: Contract,
    case: &Shared,
    options: &dyn AnyOptions,
    dtype: Dtype,
) -> Vec<&'static str> {
    if contract.refuses(&**case, options) {
        return Vec::new();
    }
    named_in(|| contract.on_tape(&**case, options, dtype))
}

/// Whether it names any.
fn has_terms(contract: Contract) -> bool {
    (0..8).any(|seed| {
        let options = options(contract, seed);
        let mut cases = stream::cases(contract, Vec::new(), seed, &options, Dtype::F32).take(8);
        cases.any(|(_, case)| !terms(contract, &case, &*options, Dtype::F32).is_empty())
    })
}

fn the_reference_on_its_tape_passes_as_it_does_elsewhere(contract: Contract) {
    if !has_terms(contract) {
        return;
    }
    for seed in 0..80 {
        let place = PLACES[seed as usize % PLACES.len()];
        let options = if seed < 4 { contract.default_options() } else { options(contract, seed) };
        let budget = Budget { cases: 50, seed, time: None };
        assert_passes(contract, Box::new(OnTape(contract)), options, place, &budget);
    }
}

/// Each changes something under some options, and a reader is not asked to tell many apart.
fn every_term_of_a_reference_acts(contract: Contract) {
    let (mut known, mut acting) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..60 {
        let options = if seed == 0 { contract.default_options() } else { options(contract, seed) };
        let mut of_these = BTreeSet::new();
        let cases = stream::cases(contract, Vec::new(), seed, &options, Dtype::F64);
        for (_, case) in cases.take(24) {
            let on_tape = || contract.on_tape(&*case, &*options, Dtype::F64);
            let terms = terms(contract, &case, &*options, Dtype::F64);
            for term in terms.iter().copied() {
                let doubled = Alteration { term, change: TermChange::Times(2.0) };
                let acts = || !same_bits(&*on_tape(), &*altered(&[doubled], on_tape));
                if !acting.contains(term) && acts() {
                    acting.insert(term);
                }
            }
            of_these.extend(terms);
        }
        assert!(of_these.len() <= 6, "many terms: {of_these:?}");
        known.extend(of_these);
    }
    assert_eq!(acting, known);
}

/// Options drawn from a seed.
fn options(contract: Contract, seed: u64) -> Arc<dyn AnyOptions> {
    let mut bytes = [0; 64];
    stream::rng(seed, contract.id()).fill_bytes(&mut bytes);
    contract.draw_options(&mut Unstructured::new(&bytes)).unwrap()
}

fn the_reference_passes_under_any_options(contract: Contract) {
    for seed in 0..by_day_or_night(120, 200) {
        let place = PLACES[seed as usize % PLACES.len()];
        let cases = by_day_or_night(50, 1_000);
        let budget = Budget { cases, seed, time: None };
        assert_reference_passes(contract, options(contract, seed), place, &budget);
    }
}

/// The corners, and some random cases, under some options at each dtype.
fn some_cases(contract: Contract, mut test: impl FnMut(&Shared, &Arc<dyn AnyOptions>, Dtype)) {
    for seed in 0..24 {
        let options = if seed == 0 { contract.default_options() } else { options(contract, seed) };
        let dtype = PLACES[seed as usize % PLACES.len()].dtype;
        let corners = contract.corners(&*options, dtype).len();
        let cases = stream::cases(contract, Vec::new(), seed, &options, dtype);
        for (_, case) in cases.take(corners + 60) {
            test(&case, &options, dtype);
        }
    }
}

/// That it is of the contract, and that its numbers are of the dtype.
fn assert_valid(contract: Contract, case: &dyn AnyRecord, options: &dyn AnyOptions, dtype: Dtype) {
    assert_eq!(contract.valid(case, options, dtype), Ok(()), "{case:?} {options:?}");
    assert!(same_bits(case, &*case.rounded(dtype)), "{case:?} is not of {dtype:?}");
}

fn cases_are_valid_and_of_their_dtype(contract: Contract) {
    some_cases(contract, |case, options, dtype| assert_valid(contract, &**case, &**options, dtype));
}

/// One step from every case, and from each 32nd all the way to the smallest corner.
fn a_way_down_over_valid_cases_leads_from_every_case(contract: Contract) {
    let mut count = 0;
    some_cases(contract, |case, options, dtype| {
        count += 1;
        let smallest = contract.measure(&*contract.corners(&**options, dtype)[0]);
        let mut walked = Shared::clone(case);
        loop {
            let limit = contract.measure(&*walked);
            if limit <= smallest {
                break;
            }
            let candidates = contract.simpler(&*walked, &**options, dtype);
            let simpler = candidates.into_iter().find(|candidate| {
                contract.measure(&**candidate) < limit
                    && contract.valid(&**candidate, &**options, dtype).is_ok()
            });
            let simpler = simpler
                .unwrap_or_else(|| panic!("no way down from {walked:?}, where {case:?} leads"));
            assert_valid(contract, &*simpler, &**options, dtype);
            if count % 32 != 0 {
                break;
            }
            walked = simpler;
        }
    });
}

fn the_shrinker_asks_about_valid_and_smaller_cases_only(contract: Contract) {
    let (mut count, mut asked) = (0, 0);
    some_cases(contract, |case, options, dtype| {
        count += 1;
        if count % 16 != 0 {
            return;
        }
        let mut limit = contract.measure(&**case);
        shrink::minimise(contract, case, &**options, dtype, &mut |candidate| {
            assert_valid(contract, &**candidate, &**options, dtype);
            let measure = contract.measure(&**candidate);
            assert!(measure < limit, "{candidate:?} is not smaller");
            asked += 1;
            // As if every third one failed.
            let fails = asked % 3 == 0;
            limit = if fails { measure } else { limit.clone() };
            Some(fails)
        });
    });
    assert!(asked > 0, "it was never asked");
}

fn case_files_read_back_bit_for_bit(contract: Contract) {
    some_cases(contract, |case, options, _| {
        let file = CaseFile {
            also: Vec::new(),
            contract,
            invariant: Some(contract.invariants()[0].id.to_owned()),
            component: Some("a: b # c".to_owned()),
            recorded: Some("step: 1".to_owned()),
            place: Some(Place::CPU_F32),
            why: Some("\"quoted\"\nand more".to_owned()),
            link: None,
            diagnosis: Vec::new(),
            behaves: Some("00".to_owned()),
            stateful: false,
            reported: true,
            options: Arc::clone(options),
            case: Shared::clone(case),
        };
        let back = CaseFile::parse(&REGISTRY, &file.text()).unwrap();
        assert!(same_bits(&*back.case, &**case), "{}", file.text());
        assert_eq!(back.text(), file.text());
    });
}

fn any_bytes_give_a_valid_case_and_the_same_bytes_the_same_case(contract: Contract) {
    let constant = [0_usize, 1, 7, 64, 5000]
        .into_iter()
        .flat_map(|length| [0, 1, 0x7f, 0x80, 0xff].map(|byte| vec![byte; length]));
    for bytes in constant {
        for seed in 0..24 {
            let (options, dtype) = (options(contract, seed), PLACES[seed as usize % 4].dtype);
            let case = stream::from_bytes(contract, &bytes, &*options, dtype);
            assert_valid(contract, &*case, &*options, dtype);
            let again = stream::from_bytes(contract, &bytes, &*options, dtype);
            assert!(same_bits(&*case, &*again));
        }
    }
}

fn every_class_that_a_contract_names_is_generated(contract: Contract) {
    let mut ever = vec![false; contract.classes().len()];
    for seed in 0..60 {
        let options = if seed == 0 { contract.default_options() } else { options(contract, seed) };
        let dtype = PLACES[seed as usize % PLACES.len()].dtype;
        let corners = contract.corners(&*options, dtype).len();
        let cases: Vec<Shared> = stream::cases(contract, Vec::new(), seed, &options, dtype)
            .map(|(_, case)| case)
            .take(corners + 256)
            .collect();
        for (class, ever) in contract.classes().iter().zip(&mut ever) {
            let found = cases.iter().any(|case| class.contains(&**case, &*options));
            let promised = class.is_generated(&*options, dtype);
            assert!(found || !promised, "{} never, {options:?} {dtype:?}", class.id);
            *ever |= found;
        }
    }
    for (class, ever) in contract.classes().iter().zip(ever) {
        assert!(ever, "{} is generated under no options", class.id);
    }
}

/// The reference, its floats times a million: wrong everywhere, and alike for every case.
struct Enlarged(Contract);

impl Component for Enlarged {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        if self.0.refuses(&**call.case, &**call.options) {
            let [message, traceback] = ["ValueError: refused", ""].map(str::to_owned);
            return Err(Failure::Raised { message, traceback });
        }
        let right = self.0.reference(&**call.case, &**call.options, call.place.dtype);
        let output = right.with_floats(&mut |_, floats| floats.iter_mut().for_each(|x| *x *= 1e6));
        let output = output.rounded(call.place.dtype);
        Ok(Returned { output, changed: Vec::new(), no_gradient: Vec::new() })
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Optional
    }
}

/// Laws between outputs that say nothing of their size.
const RELATIONS: [&str; 22] = [
    "row-permutation",
    "row-split",
    "padding",
    "masked-poison",
    "relabelling",
    "rows-doubled",
    "duplicated",
    "partition",
    "order-of-micro-batches",
    "vocabulary-permutation",
    "position-local",
    "groups-independent",
    "causal",
    "linear",
    "linear-in-advantages",
    "odd",
    "even",
    "zero-sum",
    "log-prob-shift",
    "shift-invariant",
    "compact-equals-expanded",
    "gathered",
];

fn what_is_wrong_by_a_factor_breaks_no_relation_between_outputs(contract: Contract) {
    if !contract.whole().is_empty()
        || contract.invariant("oracle").is_none()
        || places(contract).len() == 1
    {
        return;
    }
    for seed in 0..6 {
        let mut subject = Subject::new(contract, "enlarged", Box::new(Enlarged(contract)));
        if seed > 0 {
            subject.options = options(contract, seed);
        }
        let budget = Budget { cases: 400, seed, time: None };
        let report = run(&mut subject, Place::CPU_F32, &budget, &|_| ()).unwrap();
        let ids: Vec<&str> = report.findings.iter().map(|one| one.invariant.as_str()).collect();
        assert!(ids.contains(&"oracle"), "{ids:?}");
        let relations = report.findings.iter().filter(|f| {
            // A mean that is added back is shifted itself; between ties the definition leaves open
            // what becomes of each.
            let other =
                [("whiten", "shift-invariant"), ("sampling-filter", "vocabulary-permutation")];
            RELATIONS.contains(&&*f.invariant) && !other.contains(&(contract.id(), &*f.invariant))
        });
        let relations: Vec<String> =
            relations.map(|f| format!("{}: {} {}", f.invariant, f.found, f.shown)).collect();
        assert!(relations.is_empty(), "{:?}\n{}", subject.options, relations.join("\n"));
    }
}

/// Options that bound something, with what they are set to, and how they are switched off: each
/// contract that has one, whatever is said of extremes.
const BOUNDS: &[(&str, &str, &[&str])] = &[
    (
        "kl-estimate",
        "{estimator: ESTIMATOR, extreme_ratios: EXTREMES}",
        &[
            "log_ratio_clamp: 0.7",
            "log_ratio_clamp: 5",
            "log_ratio_clamp: 20",
            "log_ratio_clamp: 90",
            "log_ratio_clamp: 200",
            "clamp: [-0.3, 5]",
            "clamp: [-10, 10]",
            "clamp: [-100, 100]",
        ],
    ),
    (
        "policy-loss",
        "{beta: 0.1, kl_estimator: ESTIMATOR, extreme_ratios: EXTREMES, clip_low: 1, \
         clip_high: 1e30}",
        &[
            "log_ratio_clamp: 0.7",
            "log_ratio_clamp: 20",
            "log_ratio_clamp: 90",
            "kl_log_ratio_clamp: 0.7",
            "kl_log_ratio_clamp: 20",
            "kl_log_ratio_clamp: 90",
            "kl_clamp: [-0.3, 5]",
            "kl_clamp: [-10, 10]",
            "kl_clamp: [-100, 100]",
            "dual_clip: 1.5",
            "dual_clip: 3",
            "dual_clip: 100",
            "clip_high: 0.01",
            "clip_high: 0.28",
            "clip_high: 3",
            "clip_low: 0.01",
            "clip_low: 0.9",
        ],
    ),
    ("critic-step", "{mini_batches: 2}", &["clip: 0.01", "clip: 0.2", "clip: 2"]),
    ("value-loss", "{}", &["clip: 0.001", "clip: 0.2", "clip: 10", "clip: 90", "clip: 150"]),
    (
        "sampling-filter",
        "{temperature: TEMPERATURE}",
        &[
            "top_k: 1",
            "top_k: 3",
            "top_k: 20",
            "top_k: 50",
            "top_k: 200",
            "top_p: 0.1",
            "top_p: 0.9",
            "top_p: 0.999",
            "temperature: 0.01",
            "temperature: 5",
            "min_p: 0.001",
            "min_p: 0.1",
            "min_p: 0.9",
        ],
    ),
    (
        "sampling-filter",
        "{temperature: TEMPERATURE, top_p: 0.5}",
        &["min_keep: 2", "min_keep: 5", "min_keep: 20", "min_keep: 50"],
    ),
    (
        "length-penalty",
        "{max_length: 65536, buffer: 0}",
        &["max_length: 1", "max_length: 16", "max_length: 1000", "max_length: 32768"],
    ),
    ("length-penalty", "{max_length: 64, buffer: 0}", &["buffer: 1", "buffer: 16", "buffer: 64"]),
    ("token-entropy", "{temperature: 1}", &["temperature: 0.01", "temperature: 5"]),
    ("token-log-probs", "{temperature: 1}", &["temperature: 0.01", "temperature: 5"]),
    ("preference-loss", "{kind: hinge}", &["beta: 0.01", "beta: 5"]),
    (
        "token-rewards",
        "{beta: 0.1, kl_estimator: ESTIMATOR}",
        &[
            "log_ratio_clamp: 0.7",
            "log_ratio_clamp: 5",
            "log_ratio_clamp: 20",
            "log_ratio_clamp: 90",
            "kl_clamp: [-0.3, 5]",
            "kl_clamp: [-10, 10]",
            "kl_clamp: [-100, 100]",
        ],
    ),
    (
        "token-rewards",
        "{}",
        &[
            "score_clip: [-1.5, 1.5]",
            "score_clip: [-10, 10]",
            "score_clip: [0, 100]",
            "score_clip: [-500, 500]",
        ],
    ),
    ("group-filter", "{}", &["limit: 0", "limit: 1", "limit: 2"]),
    ("group-filter", "{criterion: range}", &["limit: 0", "limit: 1", "limit: 2"]),
    (
        "importance-weights",
        "{clamp_high: null, extreme_ratios: EXTREMES}",
        &[
            "clamp_high: 1.5",
            "clamp_high: 2",
            "clamp_high: 10",
            "clamp_high: 1000",
            "clamp_low: 0.9",
            "clamp_low: 0.5",
            "clamp_low: 0.01",
            "log_ratio_clamp: 0.7",
            "log_ratio_clamp: 5",
            "log_ratio_clamp: 20",
        ],
    ),
    (
        "entropy-bonus",
        "{temperature: 1}",
        &["temperature: 0.01", "temperature: 5", "top_share: 0.05", "top_share: 0.5"],
    ),
    (
        "batch-collation",
        "{}",
        &["max_length: 1", "max_length: 3", "max_length: 8", "max_length: 16"],
    ),
    ("batch-partition", "{mode: capacity}", &["min_parts: 2", "min_parts: 3", "min_parts: 8"]),
    ("grpo-step", "{temperature: 1}", &["temperature: 0.01", "temperature: 5"]),
    (
        "grpo-step",
        "{mini_batches: 2, clip_low: 1, clip_high: 1e30}",
        &["clip_high: 0.01", "clip_high: 0.28", "clip_low: 0.01", "clip_low: 0.2", "dual_clip: 3"],
    ),
    ("turn-mask", "{}", &["max_length: 1", "max_length: 4", "max_length: 9", "max_length: 16"]),
];

/// The document of some options with one more, or with another value of one.
fn with(document: &str, option: &str) -> String {
    let (name, _) = option.split_once(':').unwrap();
    let inside = document.trim_matches(['{', '}']);
    let mut items: Vec<&str> = inside.split(", ").filter(|item| !item.is_empty()).collect();
    items.retain(|item| item.trim().split(':').next() != Some(name));
    items.push(option);
    format!("{{{}}}", items.join(", "))
}

/// Each output of the reference with the option and without it, over the corners and some random
/// cases that are made for it.
fn every_option_that_bounds_acts_on_an_early_case(contract: Contract) {
    let words: [(&str, &[&str]); 3] = [
        ("ESTIMATOR", &["k1", "k2", "k3", "abs"]),
        ("EXTREMES", &["avoid", "finite"]),
        ("TEMPERATURE", &["1", "0.1", "2"]),
    ];
    for (_, off, values) in BOUNDS.iter().filter(|(id, ..)| *id == contract.id()) {
        let mut documents = vec![(*off).to_owned()];
        for (word, values) in words {
            let of = |document: String| values.iter().map(move |v| document.replace(word, v));
            documents = documents.into_iter().flat_map(of).collect();
            documents.dedup();
        }
        for document in documents {
            let off = read_options(contract, &document).unwrap();
            for value in *values {
                let on = read_options(contract, &with(&document, value)).unwrap();
                for dtype in [Dtype::F32, Dtype::F16] {
                    let corners = contract.corners(&*on, dtype).len();
                    let cases = stream::cases(contract, Vec::new(), 1, &on, dtype);
                    let acts = cases.take(corners + 64).any(|(_, case)| {
                        let [with, without] = [&on, &off]
                            .map(|options| contract.reference(&*case, &**options, dtype));
                        !same_bits(&*with, &*without)
                    });
                    assert!(acts, "{value} does nothing under {document} at {dtype:?}");
                }
            }
        }
    }
}

/// Every option whose name says that it bounds something is among [`BOUNDS`].
fn options_that_bound_are_listed(contract: Contract) {
    for option in contract.option_docs() {
        let bounds = ["clip", "clamp", "max", "limit", "temperature", "top_", "min_"];
        // How the bounds of `clip` are meant; how far a penalty goes.
        let other = ["clip_bounds", "max"].contains(&option.name);
        let listed = BOUNDS.iter().filter(|(id, ..)| *id == contract.id());
        let listed = listed
            .flat_map(|(_, _, on)| *on)
            .any(|on| on.split_once(':').is_some_and(|(name, _)| name == option.name));
        let says = bounds.iter().any(|word| option.name.contains(word));
        assert!(!says || other || listed, "`{}` bounds something and is not tried", option.name);
    }
}

/// Classes of what used to show late: two rows or more that differ, groups of different sizes, a
/// gap in the mask, values far from 0 with a small spread.
const EARLY: [&str; 5] = ["several-rows", "uneven-groups", "holes", "far-off", "unequal-lengths"];

/// How many cases of a run are early.
const FEW: usize = 16;

fn what_used_to_show_late_is_among_the_first_cases(contract: Contract) {
    for seed in 0..24 {
        let options = if seed == 0 { contract.default_options() } else { options(contract, seed) };
        let dtype = PLACES[seed as usize % PLACES.len()].dtype;
        let cases = stream::cases(contract, Vec::new(), 1, &options, dtype);
        let cases: Vec<Shared> = cases.take(FEW).map(|(_, case)| case).collect();
        for class in contract.classes().iter().filter(|class| EARLY.contains(&class.id)) {
            let met = cases.iter().any(|case| class.contains(&**case, &*options));
            let promised = class.is_generated(&*options, dtype);
            assert!(met || !promised, "{} not in {FEW} cases: {options:?} {dtype:?}", class.id);
        }
    }
}

fn users_can_put_cases_into_proptest(contract: Contract) {
    let strategy = cases_of(contract, contract.default_options(), Dtype::F32);
    let mut runner = TestRunner::deterministic();
    let mut tree = strategy.new_tree(&mut runner).unwrap();
    // Everything fails, so the walk ends at a case without a simpler one.
    let mut steps = 0;
    while tree.simplify() {
        steps += 1;
        assert!(steps < 10_000, "the walk does not end");
    }
    let corners = contract.corners(&*contract.default_options(), Dtype::F32);
    let least = corners.iter().map(|corner| contract.measure(&**corner)).min();
    let end = tree.current();
    assert!(contract.measure(&*end) <= least.unwrap(), "{end:?}");
}

/// The properties, each of which is a test of each contract, or of each fault.
macro_rules! properties {
    (
        contracts: $( $property:ident ),+;
        faults: $( $of_fault:ident ),+;
        planted: $( $of_planted:ident ),+;
    ) => {
        fn trials(contract: Contract) -> Vec<Trial> {
            let named = |name: &str| format!("{}::{name}", contract.id());
            let mut trials = vec![$( trial(named(stringify!($property)), move || {
                $property(contract);
            }) ),+];
            for fault in contract.faults() {
                let named = |name: &str| named(&format!("{}::{name}", fault.id));
                $( trials.push(trial(named(stringify!($of_fault)), move || {
                    $of_fault(contract, fault);
                })); )+
                if !fault.variants().is_empty() {
                    $( trials.push(trial(named(stringify!($of_planted)), move || {
                        $of_planted(contract, fault);
                    })); )+
                }
            }
            trials
        }
    };
}

fn trial(name: String, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, || {
        test();
        Ok(())
    })
}

properties! {
    contracts:
        every_invariant_claims_faults_that_there_are,
        the_reference_passes_thousands_of_cases_at_every_place,
        the_reference_passes_under_any_options,
        the_reference_on_its_tape_passes_as_it_does_elsewhere,
        every_term_of_a_reference_acts,
        cases_are_valid_and_of_their_dtype,
        a_way_down_over_valid_cases_leads_from_every_case,
        the_shrinker_asks_about_valid_and_smaller_cases_only,
        case_files_read_back_bit_for_bit,
        any_bytes_give_a_valid_case_and_the_same_bytes_the_same_case,
        every_class_that_a_contract_names_is_generated,
        what_is_wrong_by_a_factor_breaks_no_relation_between_outputs,
        every_option_that_bounds_acts_on_an_early_case,
        options_that_bound_are_listed,
        what_used_to_show_late_is_among_the_first_cases,
        users_can_put_cases_into_proptest;
    faults: is_caught_and_named;
    planted: shrinks_to_one_case_from_every_seed;
}

fn main() -> ExitCode {
    let trials = contracts::all().flat_map(trials).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
