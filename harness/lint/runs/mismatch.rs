//! How far the trainer's log-probabilities are from those of the engine that sampled.

use crate::runs::Run;
use crate::runs::statistics::Statistics;

/// A measure of it.
pub struct Measure {
    /// The metric.
    pub id: &'static str,
    /// What people call it.
    pub name: &'static str,
    /// Its value where both agree.
    pub agreed: f64,
    /// How far from that it is a warning, and an error.
    pub limits: [f64; 2],
}

const WEIGHTS: &str = "weights.mean";

const MEASURES: [Measure; 6] = [
    Measure {
        id: "mismatch.prob",
        name: "the mean difference of probabilities",
        agreed: 0.0,
        limits: [0.01, 0.05],
    },
    Measure {
        id: "mismatch.logp",
        name: "the mean difference of log-probabilities",
        agreed: 0.0,
        limits: [0.05, 0.2],
    },
    Measure {
        id: "mismatch.kl",
        name: "the KL from the engine to the trainer",
        agreed: 0.0,
        limits: [0.01, 0.1],
    },
    Measure {
        id: "mismatch.ratio",
        name: "the mean factor between probabilities",
        agreed: 1.0,
        limits: [0.05, 0.2],
    },
    Measure {
        id: "mismatch.corr",
        name: "the correlation of probabilities",
        agreed: 1.0,
        limits: [0.02, 0.1],
    },
    // Truncated weights have a mean below 1 without harm: it never is an error.
    Measure {
        id: WEIGHTS,
        name: "the mean importance weight",
        agreed: 1.0,
        limits: [0.1, f64::INFINITY],
    },
];

/// One of them, of a run.
pub struct Measured {
    /// Which.
    pub measure: &'static Measure,
    /// 1 where it is above what both would agree on, −1 where it is below.
    pub side: f64,
    /// Figures of its distance from there, towards that side.
    pub distance: Statistics,
    /// How far the logged values may be from the true ones.
    pub resolution: f64,
}

impl Measured {
    /// The value of the metric at this distance.
    pub fn value(&self, distance: f64) -> f64 {
        self.measure.agreed + self.side * distance
    }

    /// The steps from the first row to the last that is this far away.
    pub fn steps(&self, run: &Run, distance: f64) -> [i64; 2] {
        let away = |value: f64| self.side * (value - self.measure.agreed);
        run.steps_where(self.measure.id, |row| away(row.mean) >= distance).unwrap_or_default()
    }
}

/// Those with at least `n` values.
pub fn measured(run: &Run, n: usize) -> Vec<Measured> {
    let all: Vec<Measured> = MEASURES.iter().filter_map(|measure| one(run, measure, n)).collect();
    // Weights may be of whole completions, where small differences of tokens multiply, and masked
    // or truncated: they count where nothing else compares both.
    let counts = |one: &Measured| one.measure.id != WEIGHTS;
    let is_alone = !all.iter().any(counts);
    all.into_iter().filter(|one| is_alone || counts(one)).collect()
}

fn one(run: &Run, measure: &'static Measure, n: usize) -> Option<Measured> {
    let series = run.get(measure.id)?;
    let plain = Statistics::of(series).filter(|plain| plain.n() >= n)?;
    let side = if plain.last < measure.agreed { -1.0 } else { 1.0 };
    let away = plain.values.iter().map(|value| side * (value - measure.agreed)).collect();
    let distance = Statistics::of_values(away)?;
    Some(Measured { measure, side, distance, resolution: series.resolution })
}
