//! A run, as rules see it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::report::Location;
use crate::rules::{Unjudged, insufficient};
use crate::runs::derived;
use crate::runs::recorder::Recorded;
use crate::runs::series::{self, Series};
use crate::runs::statistics::{Statistics, mean, median, quantile};
use crate::settings::{Library, Settings};

const SHAPED: &str = "the reward is the one that has the KL penalty in it: no other is logged";
const LEFT_OUT: &str = "the log has more names than a log of training: some are left out";

/// A run, as rules see it.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// What people call it: its path, or its name in a file of several.
    pub name: String,
    /// The files that it was read from.
    pub files: Vec<PathBuf>,
    /// How they are written: `JSON lines`.
    pub format: String,
    /// The library whose names its metrics have, where that is known.
    pub library: Option<Library>,
    /// How many rows it has.
    pub rows: u64,
    /// The first and the last step.
    pub steps: Option<[i64; 2]>,
    /// The steps to which the log went back.
    pub restarts: Vec<i64>,
    /// Whether its rows have the steps of training, not only numbers of their own.
    pub counts_steps: bool,
    /// How many steps there are to be, where the log says so.
    pub declared_steps: Option<f64>,
    /// Whether the log says that training has ended.
    pub has_ended: bool,
    /// By the ids of their metrics: `reward.mean`.
    pub series: BTreeMap<String, Series>,
    /// Names that no metric has.
    pub unknown: BTreeSet<String>,
    /// What it was started with, as far as that is known.
    pub settings: Settings,
    /// The files beside its log that say with what it was started.
    pub config_files: Vec<PathBuf>,
    /// What the log itself says of that, where it does.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// What went wrong while it was read.
    pub warnings: Vec<String>,
    /// Whether lines of its file are lines of text, at which a finding can point.
    pub has_lines: bool,
}

impl Run {
    /// A run as it was recorded.
    pub fn new(name: String, files: Vec<PathBuf>, format: &str, recorded: Recorded) -> Run {
        let Recorded { series, unknown, rows, steps, restarts, library, left_out, .. } = recorded;
        let Recorded { counts_steps, declared_steps, has_ended, .. } = recorded;
        let format = format.to_owned();
        let mut series = derived::while_something_is_finite(series);
        let mut warnings = Vec::from_iter(left_out.then(|| LEFT_OUT.to_owned()));
        if !series.contains_key("reward.mean")
            && let Some(shaped) = series.get("reward.shaped").cloned()
        {
            warnings.push(SHAPED.to_owned());
            series.insert("reward.mean".to_owned(), shaped);
        }
        Run {
            name,
            files,
            format,
            library,
            rows,
            steps,
            restarts,
            counts_steps,
            declared_steps,
            has_ended,
            series,
            unknown,
            warnings,
            ..Run::default()
        }
    }

    /// A metric, where the run has a finite value of it.
    pub fn get(&self, id: &str) -> Option<&Series> {
        self.series.get(id).filter(|series| series.points() > 0)
    }

    /// A metric with at least `n` finite values.
    ///
    /// # Errors
    /// The run does not log it, or too little of it.
    pub fn need(&self, id: &str, n: usize) -> Result<&Series, Unjudged> {
        let series = self.get(id).ok_or_else(|| insufficient(format!("{id} is not logged")))?;
        match series.points() {
            points if points < n as u64 => {
                Err(insufficient(format!("{id} has {points} values, {n} are needed")))
            }
            _ => Ok(series),
        }
    }

    /// The figures of a metric with at least `n` finite values.
    ///
    /// # Errors
    /// The run does not log it, or too little of it.
    pub fn figures(&self, id: &str, n: usize) -> Result<Statistics, Unjudged> {
        let series = self.need(id, n)?;
        Statistics::of(series).ok_or_else(|| insufficient(format!("{id} has no finite value")))
    }

    /// The figures of a metric, where it is logged.
    pub fn statistics(&self, id: &str) -> Option<Statistics> {
        Statistics::of(self.get(id)?)
    }

    /// The metrics of several names: `reward.part.`.
    pub fn starting(&self, prefix: &str) -> impl Iterator<Item = (&str, &Series)> {
        let all = self.series.iter().filter(move |(id, _)| id.starts_with(prefix));
        all.filter(|(_, series)| series.points() > 0).map(|(id, series)| (id.as_str(), series))
    }

    /// S, the scale of the rewards: the median of `reward.std`; else a quarter of the median
    /// spread; else what lies between the 5th and the 95th percentile. What is 0 is no scale.
    pub fn reward_scale(&self) -> Option<f64> {
        let std = || Some(median(&self.get("reward.std")?.values()));
        let spread = || Some(median(&self.reward_spreads()?) / 4.0);
        let reach = || {
            let rewards = self.get("reward.mean")?.values();
            Some(quantile(&rewards, 0.95) - quantile(&rewards, 0.05))
        };
        let is_scale = |scale: &f64| *scale > 0.0;
        std().filter(is_scale).or_else(|| spread().filter(is_scale)).or_else(reach).filter(is_scale)
    }

    /// Of each row that has both, by how much the highest reward is above the lowest.
    fn reward_spreads(&self) -> Option<Vec<f64>> {
        let lowest: BTreeMap<u64, f64> =
            self.get("reward.min")?.finite().map(|one| (one.index, one.mean)).collect();
        let highest = self.get("reward.max")?.finite();
        Some(highest.filter_map(|one| Some(one.mean - lowest.get(&one.index)?)).collect())
    }

    /// The reward that is this share of the way from the smallest to the largest one. The largest
    /// is what the setting `reward_max` says, or what a batch once had; `None` where it is unknown.
    /// The smallest is the lowest of a usual batch: a single one may be far below.
    pub fn marks(&self, share: f64) -> Option<f64> {
        let seen = || self.get("reward.max").map(Series::max);
        let top = self.settings.number("reward_max").or_else(seen)?;
        let usual = match (self.get("reward.min"), self.get("reward.std")) {
            (Some(lowest), _) => quantile(&lowest.values(), 0.25),
            // Rewards reach about two deviations to either side.
            (None, Some(std)) => top - 4.0 * median(&std.values()),
            (None, None) => top,
        };
        let bottom = self.get("reward.mean")?.min().min(usual);
        (top > bottom).then_some(bottom + share * (top - bottom))
    }

    /// Whether the task is all but solved by training: the reward ends within 5 % of the largest
    /// one, and began below. Where that is unknown: nine groups in ten are flat at the end, the
    /// reward rises and ends in the highest tenth of what it was, and completions to different
    /// prompts no longer differ in reward either.
    pub fn is_solved(&self) -> bool {
        let Some(reward) = self.statistics("reward.mean") else { return false };
        if let Some(full) = self.marks(0.95) {
            return reward.first < full && full <= reward.last;
        }
        let most = reward.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = reward.values.iter().copied().fold(f64::INFINITY, f64::min);
        let flat = self.statistics("groups.flat").is_some_and(|flat| mean(flat.tail()) >= 0.9);
        let alike = self.statistics("reward.std").is_none_or(|std| {
            let usual = quantile(&std.values, 0.9);
            median(std.tail()) <= 0.5 * usual
        });
        // As with `marks`, but the deviation goes to 0 as a task is solved.
        let std = self.get("reward.std").map_or(0.0, |std| quantile(&std.values(), 0.9));
        let began_below = reward.first < most - 0.05 * (most - least).max(4.0 * std);
        let ends_high = reward.last >= most - 0.1 * (most - least);
        flat && alike && reward.rises() && began_below && ends_high
    }

    /// The steps from the first to the last bucket that is meant.
    pub fn steps_where(
        &self,
        id: &str,
        is_meant: impl Fn(&series::Bucket) -> bool,
    ) -> Option<[i64; 2]> {
        let mut meant = self.series.get(id)?.buckets.iter().filter(|bucket| is_meant(bucket));
        let first = meant.next()?;
        Some([first.steps[0], meant.next_back().unwrap_or(first).steps[1]])
    }

    /// The steps from the finite value of a metric that has this number, counted from 0, to its
    /// last one; from the first step of the run where it is the first value: what is always so
    /// begins no later than the run, even where a row is without it.
    pub fn steps_from(&self, id: &str, index: usize) -> [i64; 2] {
        let [start, end] = self.steps.unwrap_or_default();
        let mut finite = self.series.get(id).into_iter().flat_map(Series::finite);
        let from = finite.nth(index);
        let last = finite.next_back().or(from).map_or(end, |bucket| bucket.steps[1]);
        let first = from.filter(|_| index > 0).map_or(start, |bucket| bucket.steps[0]);
        [first, last]
    }

    /// The line of the log where a metric has a step, if it is a text.
    pub fn location(&self, id: &str, step: i64) -> Option<Location> {
        let file = self.files.first().filter(|_| self.has_lines)?;
        let buckets = &self.series.get(id)?.buckets;
        let bucket = buckets.iter().find(|bucket| bucket.steps[1] >= step)?;
        Some(Location::new(file, bucket.line))
    }
}
