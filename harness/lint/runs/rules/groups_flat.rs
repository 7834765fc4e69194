//! Most groups teach nothing: all their completions get one reward.
//!
//! ### Fires when
//! In the last fifth of 10 rows or more, at least 0.8 (warning) or 0.95 (error) of the groups are
//! flat, or as large a share of the rows has a deviation of 0 where flat groups are not counted, or
//! advantages that are all the same where deviations are not logged either. As there may be few
//! groups, 0.8 must be exceeded by two standard errors. Only noted where the task is solved, the
//! reward stays at its highest, or it rises (from 0.95 on: still rises at the end).
//!
//! ### Not said
//! That the advantages are wrong: they are 0, as they should be.
//!
//! ### Causes
//! - the prompts are too hard: no completion of a group is right
//! - the prompts are too easy: every one is
//! - the policy gives one answer whatever is sampled
//! - the groups are too small for rewards that are all or nothing
//!
//! ### Next
//! - filter the prompts by how often they are solved, or sample until groups are mixed
//! - make the group larger, or the reward graded
//! - shakedown check --stage advantage
//!
//! ### Source
//! Dynamic sampling of DAPO (arXiv 2503.14476, section 3.2); trl#3857.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, Unjudged, insufficient};
use crate::runs::Run;
use crate::runs::ceiling;
use crate::runs::statistics::{Statistics, mean, proportion, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Advantage,
    needs: &["groups.flat"],
    explains: &["reward-flat", "gradient-vanishes"],
    contracts: &[
        ("group-advantage", &["signal", "constant-group"]),
        ("group-filter", &["constant-group", "varied-group"]),
    ],
    catches: &["too-hard", "too-easy"],
    check,
};

const FEWEST: usize = 10;
/// Whether the advantages of a row differ.
const SPREAD: &str = "signal";
const WARNING: f64 = 0.8;
const ERROR: f64 = 0.95;

fn check(run: &Run) -> Judgement {
    let (id, flat) = flat(run)?;
    let is_much = |flat: &Statistics| {
        let (share, noise) = (mean(flat.tail()), 2.0 * flat.sigma / (flat.window as f64).sqrt());
        share - noise >= WARNING || share >= ERROR
    };
    let Some(flat) = flat.widths().find(is_much) else { return Ok(vec![]) };
    let share = mean(flat.tail());
    let (severity, but) = match () {
        () if run.is_solved() => (Severity::Note, "; the task is solved"),
        () if ceiling::stays(run) => (Severity::Note, "; the reward stays at its highest"),
        () if is_nearly_solved(run) => (Severity::Note, "; the reward is close to full marks"),
        () if learns(run, share) => (Severity::Note, "; the reward rises all the same"),
        () if share >= ERROR => (Severity::Error, ""),
        () => (Severity::Warning, ""),
    };
    let [share_of, rows] = [proportion(share), flat.window.to_string()];
    let found = match id {
        "groups.flat" => format!("{share_of} of the groups got one reward in the last {rows} rows"),
        SPREAD => format!("in {share_of} of the last {rows} rows every advantage is 0"),
        _ => format!("in {share_of} of the last {rows} rows the rewards have no deviation"),
    };
    let found = format!("{found}{}{but}", of_which(run));
    let limit = if share >= ERROR { ERROR } else { WARNING };
    let since = flat.since(|mean| mean >= 0.9 * WARNING);
    let mut fired = Firing::new(severity, found);
    if let Some(group) = run.settings.number("group").filter(|group| *group <= 4.0) {
        fired = fired.because(Some("group"), format!("a group of {group} is easily all alike"));
    }
    let shown = if id == SPREAD { "advantage.max" } else { id };
    fired
        .at_steps(run.steps_from(id, since))
        .metric(shown, "mean of the last fifth", share, Some(limit))
        .into()
}

/// The shares of flat groups, and the metric that they come from: a deviation over the batch says
/// something about groups only where it is 0.
fn flat(run: &Run) -> Result<(&'static str, Statistics), Unjudged> {
    if run.get("groups.flat").is_some() {
        return Ok(("groups.flat", run.figures("groups.flat", FEWEST)?));
    }
    let std = ["reward.group_std", "reward.std"].into_iter().find(|id| run.get(id).is_some());
    let Some(id) = std else { return Ok((SPREAD, without_advantages(run)?)) };
    let series = run.need(id, FEWEST)?;
    if series.resolution > 0.0 && series.min() <= series.resolution {
        return Err(insufficient(format!("{id} is logged with too few digits to tell 0")));
    }
    let zeros = series.values().into_iter().map(|std| f64::from(u8::from(std <= 1e-9))).collect();
    let figures = Statistics::of_values(zeros).ok_or_else(|| insufficient("no finite value"))?;
    Ok((id, figures))
}

/// 1 for each row in which no advantage differs from another, 0 for the others.
fn without_advantages(run: &Run) -> Result<Statistics, Unjudged> {
    let none = || insufficient("neither flat groups nor deviations are logged");
    let series = run.get(SPREAD).ok_or_else(none)?;
    let rows = series.values().len();
    if rows < FEWEST {
        let why = format!("the spread of advantages is known of {rows} rows, {FEWEST} are needed");
        return Err(insufficient(why));
    }
    Statistics::of_values(series.values().into_iter().map(|one| 1.0 - one).collect())
        .ok_or_else(none)
}

/// Whether the reward rises to the highest tenth of what can be had.
fn is_nearly_solved(run: &Run) -> bool {
    let (marks, reward) = (run.marks(0.9), run.statistics("reward.mean"));
    marks.zip(reward).is_some_and(|(marks, reward)| reward.rises() && reward.last >= marks)
}

/// Whether what signal there is teaches: nearly none only if the reward still rises at the end.
fn learns(run: &Run, share: f64) -> bool {
    let reward = run.statistics("reward.mean");
    reward.is_some_and(|reward| if share < ERROR { reward.rises() } else { reward.still_rises() })
}

/// Which reward the flat groups got, where that is logged.
fn of_which(run: &Run) -> String {
    let at_the_end = |id: &str| run.statistics(id).map(|share| mean(share.tail()));
    match (at_the_end("groups.all_wrong"), at_the_end("groups.all_right")) {
        (Some(wrong), Some(right)) => {
            format!(", {} the lowest and {} the highest", short(wrong), short(right))
        }
        (Some(wrong), None) => format!(", {} the lowest", short(wrong)),
        (None, Some(right)) => format!(", {} the highest", short(right)),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::rules::Asked;
    use crate::runs::rules::trial1::{Metric, findings, noise, run};
    use crate::settings::Origin;

    fn severity(rows: usize, metrics: &[Metric<'_>]) -> Option<Severity> {
        findings(&run(rows, metrics), "groups-flat").first().map(|(severity, _)| *severity)
    }

    fn at(share: f64) -> impl Fn(usize) -> f64 {
        move |i| (share + 0.02 * noise(5, i)).clamp(0.0, 1.0)
    }

    #[test]
    fn advantages_tell_where_nothing_else_does() {
        use crate::runs::rules::trial;
        let of = |rows: usize, rare: usize| {
            let run = trial::run(rows, |row| {
                let top = f64::from(u8::from(row.is_multiple_of(rare)));
                let advantages = [("advantage.max", top), ("advantage.min", -top)];
                [&advantages[..], &[("reward.mean", 0.01 * top)]].concat()
            });
            trial::severities(&run, "groups-flat")
        };
        // Of 49 batches only two have an answer that is right.
        assert_eq!(of(49, 30), [Severity::Error]);
        assert_eq!(of(49, 2), []);
        assert_eq!(of(9, 30), []);
    }

    #[test]
    fn the_share_of_flat_groups_says_how_bad_it_is() {
        let of = |share: f64| severity(40, &[("groups.flat", &at(share))]);
        assert_eq!(of(0.7), None);
        assert_eq!(of(0.87), Some(Severity::Warning));
        assert_eq!(of(0.99), Some(Severity::Error));
    }

    #[test]
    fn few_groups_that_scatter_around_the_limit_say_nothing() {
        let scatters = |i: usize| if i % 2 == 1 { 0.5 } else { 1.0 } + 0.01 * noise(1, i);
        let fired = severity(30, &[("groups.flat", &|i| scatters(i) + 0.08)]);
        assert_eq!(fired, None);
    }

    #[test]
    fn more_rows_show_what_few_groups_hide() {
        let share = |i: usize| if i % 2 == 1 { 0.94 } else { 0.7 };
        assert_eq!(severity(100, &[("groups.flat", &share)]), None);
        assert_eq!(severity(5000, &[("groups.flat", &share)]), Some(Severity::Warning));
    }

    #[test]
    fn a_small_group_is_named_as_a_cause() {
        let mut small = run(40, &[("groups.flat", &at(0.9))]);
        small.settings.set("group", 2, Origin::Flag);
        let findings = small.judge(&Asked::default()).findings;
        assert_eq!(findings[0].causes[0].setting.as_deref(), Some("group"));
    }

    #[test]
    fn nine_rows_are_too_few() {
        assert_eq!(severity(9, &[("groups.flat", &|_| 1.0)]), None);
        assert_eq!(severity(10, &[("groups.flat", &|_| 1.0)]), Some(Severity::Error));
    }

    #[test]
    fn flat_groups_of_a_solved_task_are_noted() {
        let rising = |i: usize| (0.2 + 0.02 * i as f64).min(0.99) + 0.001 * noise(6, i);
        let flat = |i: usize| (0.1 + 0.02 * i as f64).min(0.97);
        let top = |_: usize| 1.0;
        let metrics: [Metric<'_>; 3] =
            [("reward.mean", &rising), ("groups.flat", &flat), ("reward.max", &top)];
        assert_eq!(severity(80, &metrics), Some(Severity::Note));
        assert_eq!(severity(80, &metrics[..2]), Some(Severity::Note));
    }

    #[test]
    fn tasks_that_are_easy_from_the_start_are_an_error() {
        let easy = |i: usize| (0.99 + 0.005 * noise(8, i)).min(1.0);
        let metrics: [Metric<'_>; 3] =
            [("reward.mean", &easy), ("groups.flat", &at(0.98)), ("reward.max", &|_| 1.0)];
        assert_eq!(severity(80, &metrics), Some(Severity::Error));
    }

    #[test]
    fn what_is_learned_from_few_groups_is_learned_all_the_same() {
        let slow = |i: usize| 0.001 * i as f64 + 0.003 * noise(9, i);
        let metrics: [Metric<'_>; 2] = [("reward.mean", &slow), ("groups.flat", &at(0.85))];
        assert_eq!(severity(100, &metrics), Some(Severity::Note));
    }

    #[test]
    fn without_counts_only_deviations_of_zero_speak() {
        assert_eq!(severity(30, &[("reward.std", &|_| 0.0)]), Some(Severity::Error));
        assert_eq!(severity(30, &[("reward.std", &|_| 0.01)]), None);
        let sparse = |i: usize| if i % 10 == 9 { 0.3 } else { 0.0 };
        assert_eq!(severity(250, &[("reward.group_std", &sparse)]), Some(Severity::Warning));
    }
}
