//! What every contract must keep: its reference passes, its faults are caught, its cases are valid.

use shakedown::check::{Budget, Subject, run};
use shakedown::contract::{Contract, Options};
use shakedown::contracts::{IDS, Visit, visit};
use shakedown::fault::{Behaviour, Builtin, Fault};
use shakedown::place::Place;
use shakedown::report::{InvariantStatus, Status};

/// The places at which builtin components run.
const PLACES: [Place; 4] = [Place::CPU_F64, Place::CPU_F32, Place::CPU_BF16, Place::CPU_F16];

fn for_each_contract<V: Visit<Output = ()> + Copy>(test: V) {
    for id in IDS {
        visit(id, test).expect("IDS names known contracts");
    }
}

fn options_of<C: Contract>(fault: &Fault<C>) -> C::Options {
    let options: C::Options = shakedown::yaml::parse(fault.options).expect(fault.id);
    options.check().expect(fault.id);
    options
}

/// The invariants that a fault breaks, over all its variants and at two dtypes.
fn broken_by<C: Contract>(fault_index: usize) -> (Vec<&'static str>, Vec<&'static str>) {
    let (mut broken, mut diagnosed) = (Vec::new(), Vec::new());
    let variants = match &C::faults()[fault_index].behaviour {
        Behaviour::Gives(variants) => variants.len(),
        Behaviour::Misbehaves(_) => 1,
    };
    for place in [Place::CPU_F32, Place::CPU_F64] {
        for variant in 0..variants {
            let fault = C::faults().swap_remove(fault_index);
            let options = options_of(&fault);
            let mut subject = Subject::new(fault.id, Builtin::fault(fault, variant));
            subject.options = options;
            let report = run(&mut subject, place, &Budget::default(), &|_| ()).unwrap();
            let failed = report.invariants.iter().filter(|i| i.status == InvariantStatus::Fail);
            broken.extend(failed.map(|invariant| invariant.id));
            let first = report.findings.first().and_then(|finding| finding.diagnosis.first());
            diagnosed.extend(first.map(|diagnosis| diagnosis.fault));
        }
    }
    broken.sort_unstable();
    broken.dedup();
    diagnosed.dedup();
    (broken, diagnosed)
}

#[test]
fn every_fault_is_caught_by_the_invariants_that_claim_it() {
    #[derive(Clone, Copy)]
    struct Test;
    impl Visit for Test {
        type Output = ();
        fn visit<C: Contract>(self) {
            let mut missed = Vec::new();
            for (index, fault) in C::faults().iter().enumerate() {
                let (broken, diagnosed) = broken_by::<C>(index);
                println!("{:42} {:?}  breaks {broken:?}", fault.id, diagnosed);
                if broken.is_empty() {
                    missed.push(format!("{} is caught by nothing", fault.id));
                }
                for invariant in C::invariants() {
                    if invariant.catches.contains(&fault.id) && !broken.contains(&invariant.id) {
                        missed.push(format!("{} does not catch {}", invariant.id, fault.id));
                    }
                }
            }
            assert!(missed.is_empty(), "{}:\n{}", C::ID, missed.join("\n"));
        }
    }
    for_each_contract(Test);
}

#[test]
fn the_reference_passes_everything_at_every_place() {
    #[derive(Clone, Copy)]
    struct Test;
    impl Visit for Test {
        type Output = ();
        fn visit<C: Contract>(self) {
            let mut rng = shakedown::stream::rng(1, C::ID);
            for round in 0..200_u64 {
                use proptest::prelude::Rng;
                let mut bytes = [0; 64];
                rng.fill_bytes(&mut bytes);
                let mut u = arbitrary::Unstructured::new(&bytes);
                let options = if round == 0 {
                    C::Options::default()
                } else {
                    C::Options::draw(&mut u).unwrap()
                };
                let place = PLACES[round as usize % PLACES.len()];
                let mut subject = Subject::<C>::new("reference", Builtin::reference());
                subject.options = options.clone();
                let budget = Budget { cases: 100, seed: round, time: None };
                let report = run(&mut subject, place, &budget, &|_| ()).unwrap();
                let broken: Vec<String> = report
                    .findings
                    .iter()
                    .map(|f| format!("{}: {}\n   {}", f.invariant, f.found, f.shown))
                    .collect();
                assert!(
                    report.status == Status::Pass,
                    "{} at {place} with {options:?}\n{}",
                    C::ID,
                    broken.join("\n")
                );
            }
        }
    }
    for_each_contract(Test);
}
