//! What every contract must keep: its reference passes, its faults are caught, its cases are valid.
//!
//! One listed test for each contract and property: `cargo test --test contracts -- returns`.

use proptest::prelude::Rng;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use shakedown::contract::Contract;
use shakedown::contract::fault::{Behaviour, Fault};
use shakedown::contract::options::Options;
use shakedown::contract::probe::Stop;
use shakedown::contracts::{IDS, Visit, visit};
use shakedown::engine::check::run;
use shakedown::engine::subject::{Budget, Subject};
use shakedown::engine::{shrink, stream};
use shakedown::files::case_file::CaseFile;
use shakedown::host::builtin::Builtin;
use shakedown::report::{InvariantStatus, Status};
use shakedown::value::place::{Dtype, Place};
use shakedown::value::record::round;
use shakedown::value::record::{Kind, Record, same_bits};

/// The places at which builtin components run.
const PLACES: [Place; 4] = [Place::CPU_F64, Place::CPU_F32, Place::CPU_BF16, Place::CPU_F16];

fn options_of<C: Contract>(fault: &Fault<C>) -> C::Options {
    let options: C::Options = shakedown::value::yaml::parse(fault.options).expect(fault.id);
    options.check().expect(fault.id);
    options
}

/// What checking one fault, in all its variants and at two dtypes, came to.
#[derive(Default)]
struct Caught {
    /// The invariants that it breaks.
    broken: Vec<String>,
    /// The faults that it is taken for.
    diagnosed: Vec<String>,
}

fn catch<C: Contract>(index: usize) -> Caught {
    let mut caught = Caught::default();
    let variants = match &C::faults()[index].behaviour {
        Behaviour::Gives(variants) => variants.len(),
        Behaviour::Misbehaves(_) => 1,
    };
    for place in [Place::CPU_F32, Place::CPU_F64] {
        for variant in 0..variants {
            let fault = C::faults().swap_remove(index);
            let options = options_of(&fault);
            let mut subject = Subject::new(fault.id, Builtin::fault(fault, variant));
            subject.options = options;
            let report = run(&mut subject, place, &Budget::default(), &|_| ()).unwrap();
            let failed = report.invariants.iter().filter(|i| i.status == InvariantStatus::Fail);
            caught.broken.extend(failed.map(|invariant| invariant.id.clone()));
            let diagnoses = report.findings.iter().flat_map(|finding| &finding.diagnosis);
            caught.diagnosed.extend(diagnoses.map(|diagnosis| diagnosis.fault.clone()));
        }
    }
    caught
}

fn every_fault_is_caught_by_the_invariants_that_claim_it_and_named<C: Contract>() {
    let mut missed = Vec::new();
    let faults = C::faults();
    for invariant in C::invariants() {
        if invariant.catches.is_empty() {
            missed.push(format!("{} claims to catch nothing", invariant.id));
        }
        let unknown = |id: &&&str| !faults.iter().any(|fault| fault.id == **id);
        if let Some(id) = invariant.catches.iter().find(unknown) {
            missed.push(format!("{} claims the unknown fault {id}", invariant.id));
        }
    }
    for (index, fault) in faults.iter().enumerate() {
        let Caught { broken, diagnosed } = catch::<C>(index);
        if broken.is_empty() {
            missed.push(format!("{} is caught by nothing", fault.id));
        }
        let named = diagnosed.iter().any(|id| id == fault.id);
        if matches!(fault.behaviour, Behaviour::Gives(_)) && !named {
            missed.push(format!("{} is taken for {diagnosed:?}", fault.id));
        }
        for invariant in C::invariants() {
            let breaks = broken.iter().any(|id| id == invariant.id);
            if invariant.catches.contains(&fault.id) && !breaks {
                missed.push(format!("{} does not catch {}", invariant.id, fault.id));
            }
        }
    }
    assert!(missed.is_empty(), "{}:\n{}", C::ID, missed.join("\n"));
}

fn assert_reference_passes<C: Contract>(options: C::Options, place: Place, budget: &Budget) {
    let mut subject = Subject::<C>::new("reference", Builtin::reference());
    subject.options = options.clone();
    let report = run(&mut subject, place, budget, &|_| ()).unwrap();
    let broken: Vec<String> = report
        .findings
        .iter()
        .map(|f| format!("{}: {}\n   {}", f.invariant, f.found, f.shown))
        .collect();
    let id = C::ID;
    assert!(broken.is_empty(), "{id} at {place} with {options:?}\n{}", broken.join("\n"));
    assert_eq!(report.status, Status::Pass);
}

/// Where a contract has anything else to say: a text is the same at every place.
fn places<C: Contract>() -> &'static [Place] {
    let mut fields = C::Case::fields().into_iter().chain(C::Output::fields());
    let texts = fields.any(|field| field.kind == Kind::Text);
    if texts { &PLACES[..1] } else { &PLACES }
}

fn the_reference_passes_20_000_cases_at_every_place<C: Contract>() {
    for place in places::<C>().iter().copied() {
        let budget = Budget { cases: 20_000, seed: 1, time: None };
        assert_reference_passes::<C>(C::Options::default(), place, &budget);
    }
}

/// Options drawn from a seed.
fn options<C: Contract>(seed: u64) -> C::Options {
    let mut bytes = [0; 64];
    stream::rng(seed, C::ID).fill_bytes(&mut bytes);
    C::Options::draw(&mut arbitrary::Unstructured::new(&bytes)).unwrap()
}

fn the_reference_passes_under_any_options<C: Contract>() {
    for seed in 0..200 {
        let place = PLACES[seed as usize % PLACES.len()];
        let budget = Budget { cases: 100, seed, time: None };
        assert_reference_passes::<C>(options::<C>(seed), place, &budget);
    }
}

/// The corners, and some random cases, under some options at each dtype.
fn some_cases<C: Contract>(mut test: impl FnMut(&C::Case, &C::Options, Dtype)) {
    for seed in 0..24 {
        let options = if seed == 0 { C::Options::default() } else { options::<C>(seed) };
        let dtype = PLACES[seed as usize % PLACES.len()].dtype;
        let corners = C::corners(&options, dtype).len();
        let cases = stream::cases::<C>(Vec::new(), seed, &options, dtype);
        for (_, case) in cases.take(corners + 60) {
            test(&case, &options, dtype);
        }
    }
}

fn cases_are_valid_and_simpler_ones_are_valid_too_and_smaller<C: Contract>() {
    some_cases::<C>(|case, options, dtype| {
        assert_eq!(C::valid(case, options, dtype), Ok(()), "{case:?}");
        let mut rounded = case.clone();
        round(&mut rounded, dtype);
        assert!(same_bits(case, &rounded), "{case:?} is not of {dtype:?}");
        let candidates = shrink::rounded_simpler::<C>(case, options, dtype);
        let usable = candidates.iter().filter(|c| C::valid(c, options, dtype).is_ok());
        let smaller = usable.filter(|c| C::measure(c) < C::measure(case)).count();
        let smallest = C::measure(&C::corners(options, dtype)[0]);
        assert!(smaller > 0 || C::measure(case) <= smallest, "no way down from {case:?}");
    });
}

fn case_files_read_back_bit_for_bit<C: Contract>() {
    some_cases::<C>(|case, options, _| {
        let file = CaseFile::<C> {
            invariant: Some(C::invariants()[0].id.to_owned()),
            component: Some("a: b # c".to_owned()),
            place: Some(Place::CPU_F32),
            why: Some("\"quoted\"\nand more".to_owned()),
            link: None,
            diagnosis: Vec::new(),
            options: options.clone(),
            case: case.clone(),
        };
        let back = CaseFile::<C>::parse(&file.text()).unwrap();
        assert!(same_bits(&back.case, case), "{}", file.text());
        assert_eq!(back.text(), file.text());
    });
}

fn any_bytes_give_a_valid_case_and_the_same_bytes_the_same_case<C: Contract>() {
    let constant = [0_usize, 1, 7, 64, 5000]
        .into_iter()
        .flat_map(|length| [0, 1, 0x7f, 0x80, 0xff].map(|byte| vec![byte; length]));
    for bytes in constant {
        for seed in 0..24 {
            let (options, dtype) = (options::<C>(seed), PLACES[seed as usize % 4].dtype);
            let case = stream::from_bytes::<C>(&bytes, &options, dtype);
            assert_eq!(C::valid(&case, &options, dtype), Ok(()), "{case:?} {options:?}");
            let again = stream::from_bytes::<C>(&bytes, &options, dtype);
            assert!(same_bits(&case, &again));
        }
    }
}

fn every_class_that_a_contract_names_is_generated<C: Contract>() {
    let mut ever = vec![false; C::classes().len()];
    for seed in 0..60 {
        let options = if seed == 0 { C::Options::default() } else { options::<C>(seed) };
        let dtype = PLACES[seed as usize % PLACES.len()].dtype;
        let corners = C::corners(&options, dtype).len();
        let cases: Vec<C::Case> = stream::cases::<C>(Vec::new(), seed, &options, dtype)
            .map(|(_, case)| case)
            .take(corners + 256)
            .collect();
        for (class, ever) in C::classes().iter().zip(&mut ever) {
            let found = cases.iter().any(|case| (class.contains)(case, &options));
            let promised = (class.generated)(&options, dtype);
            assert!(found || !promised, "{} never, {options:?} {dtype:?}", class.id);
            *ever |= found;
        }
    }
    for (class, ever) in C::classes().iter().zip(ever) {
        assert!(ever, "{} is generated under no options", class.id);
    }
}

fn every_fault_shrinks_to_one_case_from_twenty_seeds<C: Contract>() {
    let oracle = C::invariants().into_iter().find(|i| i.id == "oracle");
    let mut several = Vec::new();
    for (index, fault) in C::faults().iter().enumerate() {
        if !matches!(fault.behaviour, Behaviour::Gives(_)) {
            continue;
        }
        let fault = || C::faults().swap_remove(index);
        let mut subject = Subject::new("fault", Builtin::fault(fault(), 0));
        subject.options = options_of(&fault());
        let options = subject.options.clone();
        // Without an oracle the first invariant that claims the fault.
        let claims = || C::invariants().into_iter().find(|i| i.catches.contains(&fault().id));
        let Some(invariant) = oracle.or_else(claims) else {
            several.push(format!("{} is claimed by no invariant", fault().id));
            continue;
        };
        let mut breaks = |case: &C::Case| {
            let outcome = subject.try_case(&invariant, case, Place::CPU_F32, &mut 0).0;
            matches!(outcome, Err(Stop::Broken(_)))
        };
        let mut minima: Vec<C::Case> = Vec::new();
        for seed in 0..20 {
            // Random cases only: from the corners every walk would begin alike.
            let mut rng = stream::rng(seed, C::ID);
            let failing = (0..2000)
                .map(|_| stream::draw::<C>(&mut rng, &options, Dtype::F32))
                .find(|case| breaks(case));
            let Some(case) = failing else { continue };
            let minimal = shrink::minimise::<C>(&case, &options, Dtype::F32, |c| Some(breaks(c)));
            if !minima.iter().any(|known| same_bits(known, &minimal.case)) {
                minima.push(minimal.case);
            }
        }
        if minima.len() > 1 {
            several.push(format!("{}: {minima:?}", fault().id));
        }
    }
    assert!(several.is_empty(), "{}", several.join("\n"));
}

fn users_can_put_cases_into_proptest<C: Contract>() {
    use proptest::strategy::{Strategy, ValueTree};
    let strategy = shakedown::cases::<C>(C::Options::default(), Dtype::F32);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut tree = strategy.new_tree(&mut runner).unwrap();
    // Everything fails, so the walk ends at a case without a simpler one.
    let mut steps = 0;
    while tree.simplify() {
        steps += 1;
        assert!(steps < 10_000, "the walk does not end");
    }
    let least = C::corners(&C::Options::default(), Dtype::F32).iter().map(C::measure).min();
    assert!(C::measure(&tree.current()) <= least.unwrap(), "{:?}", tree.current());
}

/// The properties, each of which is a test of each contract.
macro_rules! properties {
    ($( $property:ident ),+ $(,)?) => {
        struct Trials;

        impl Visit for Trials {
            type Output = Vec<Trial>;

            fn visit<C: Contract>(self) -> Vec<Trial> {
                vec![$( Trial::test(format!("{}::{}", C::ID, stringify!($property)), || {
                    $property::<C>();
                    Ok(())
                }) ),+]
            }
        }
    };
}

properties! {
    every_fault_is_caught_by_the_invariants_that_claim_it_and_named,
    the_reference_passes_20_000_cases_at_every_place,
    the_reference_passes_under_any_options,
    cases_are_valid_and_simpler_ones_are_valid_too_and_smaller,
    case_files_read_back_bit_for_bit,
    any_bytes_give_a_valid_case_and_the_same_bytes_the_same_case,
    every_class_that_a_contract_names_is_generated,
    every_fault_shrinks_to_one_case_from_twenty_seeds,
    users_can_put_cases_into_proptest,
}

fn main() -> ExitCode {
    let trials = IDS.iter().flat_map(|id| visit(id, Trials).expect("IDS names known contracts"));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
