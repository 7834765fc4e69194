//! A suite as a user writes one: one listed test for each component, invariant and place.

use std::process::ExitCode;

use shakedown::Suite;
use shakedown::contracts::group_advantage::{GroupAdvantage, GroupAdvantageCase, Options, Scale};
use shakedown::value::place::Place;

/// Dr. GRPO: rewards less the mean of their group.
fn centred(case: &GroupAdvantageCase) -> Vec<f64> {
    let mean = |group: i64| {
        let rows = case.groups.iter().zip(&case.rewards).filter(|(other, _)| **other == group);
        let (count, sum) = rows.fold((0.0, 0.0), |(count, sum), (_, r)| (count + 1.0, sum + r));
        sum / count
    };
    case.rewards.iter().zip(&case.groups).map(|(reward, group)| reward - mean(*group)).collect()
}

fn main() -> ExitCode {
    let dr_grpo = shakedown::check::<GroupAdvantage>(centred)
        .named("dr-grpo")
        .options(Options { scale: Scale::None, ..Options::default() })
        .places([Place::CPU_F64])
        .skip("odd", "to show a test that is listed as ignored")
        .without_corpora();
    Suite::new().with(dr_grpo).manifest("targets/builtin.yaml").run()
}
