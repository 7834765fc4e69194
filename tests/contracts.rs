//! What every contract must keep: its reference passes, its faults are caught, its cases are valid.
//!
//! One listed test for each contract and property, and two for each fault:
//! `cargo test --test contracts -- returns`. With `SHAKEDOWN_NIGHT=1` the references are checked
//! on as many cases at every place as by day at one.

use std::process::ExitCode;
use std::sync::Arc;

use arbitrary::Unstructured;
use libtest_mimic::{Arguments, Trial};
use proptest::prelude::Rng;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use shakedown::author::{Dtype, Place, Stop};
use shakedown::contract::erased::AnyContract;
use shakedown::contract::fault::AnyFault;
use shakedown::contract::options::AnyOptions;
use shakedown::contracts;
use shakedown::door::{prove, strategy::cases_of};
use shakedown::engine::check::run;
use shakedown::engine::subject::{Budget, Subject, read_options};
use shakedown::engine::{shrink, stream};
use shakedown::files::case_file::CaseFile;
use shakedown::host::builtin::Builtin;
use shakedown::report::Status;
use shakedown::value::record::{AnyRecord, Kind, Shared, same_bits};

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

fn shrinks_to_one_case_from_twenty_seeds(contract: Contract, fault: &'static AnyFault) {
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
    for seed in 0..20 {
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

fn assert_reference_passes(
    contract: Contract,
    options: Arc<dyn AnyOptions>,
    place: Place,
    budget: &Budget,
) {
    let reference = Box::new(Builtin::reference(contract));
    let mut subject = Subject::new(contract, "reference", reference);
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

/// Where a contract has anything else to say: a text is the same at every place.
fn places(contract: Contract) -> &'static [Place] {
    let mut fields = contract.inputs().into_iter().chain(contract.outputs());
    let texts = fields.any(|field| field.kind == Kind::Text);
    if texts { &PLACES[..1] } else { &PLACES }
}

/// 20,000 cases at f32, where training is, and 2,000 elsewhere: but for rounding, places are alike.
fn the_reference_passes_thousands_of_cases_at_every_place(contract: Contract) {
    let night = std::env::var_os("SHAKEDOWN_NIGHT").is_some_and(|set| set == "1");
    for place in places(contract).iter().copied() {
        let first = place == Place::CPU_F32 || places(contract).len() == 1;
        let cases = if first || night { 20_000 } else { 2_000 };
        let budget = Budget { cases, seed: 1, time: None };
        assert_reference_passes(contract, contract.default_options(), place, &budget);
    }
}

/// Options drawn from a seed.
fn options(contract: Contract, seed: u64) -> Arc<dyn AnyOptions> {
    let mut bytes = [0; 64];
    stream::rng(seed, contract.id()).fill_bytes(&mut bytes);
    contract.draw_options(&mut Unstructured::new(&bytes)).unwrap()
}

fn the_reference_passes_under_any_options(contract: Contract) {
    for seed in 0..200 {
        let place = PLACES[seed as usize % PLACES.len()];
        let budget = Budget { cases: 100, seed, time: None };
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
            reported: true,
            options: Arc::clone(options),
            case: Shared::clone(case),
            outdated: None,
        };
        let back = CaseFile::parse(&file.text()).unwrap();
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
        cases_are_valid_and_of_their_dtype,
        a_way_down_over_valid_cases_leads_from_every_case,
        the_shrinker_asks_about_valid_and_smaller_cases_only,
        case_files_read_back_bit_for_bit,
        any_bytes_give_a_valid_case_and_the_same_bytes_the_same_case,
        every_class_that_a_contract_names_is_generated,
        users_can_put_cases_into_proptest;
    faults: is_caught_and_named;
    planted: shrinks_to_one_case_from_twenty_seeds;
}

fn main() -> ExitCode {
    let trials = contracts::all().flat_map(trials).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
