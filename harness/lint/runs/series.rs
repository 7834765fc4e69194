//! Series: the values of one metric over the rows of a run, in a bounded number of buckets.

/// A series keeps no more buckets than this; when it is full, neighbours merge.
pub(crate) const MOST_BUCKETS: u64 = 8192;

/// What neighbouring rows hold of a metric; of one row where a run is short.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// The number of the bucket among those of the run.
    pub index: u64,
    /// The first and the last step that it covers.
    pub steps: [i64; 2],
    /// The line or record of the log at which it begins, counted from 1.
    pub line: usize,
    /// How many finite values are in it.
    pub count: u32,
    /// How many values are not finite.
    pub nonfinite: u32,
    /// The mean of the finite values; NaN where there are none.
    pub mean: f64,
    /// The smallest of them.
    pub min: f64,
    /// The largest of them.
    pub max: f64,
}

impl Bucket {
    /// One value.
    pub fn of(index: u64, step: i64, line: usize, value: f64) -> Bucket {
        let finite = value.is_finite();
        let seen = if finite { value } else { f64::NAN };
        Bucket {
            index,
            steps: [step, step],
            line,
            count: finite.into(),
            nonfinite: (!finite).into(),
            mean: seen,
            min: seen,
            max: seen,
        }
    }

    /// Two neighbours as one, which has the place of the first.
    fn join(self, next: Bucket) -> Bucket {
        let count = self.count + next.count;
        let mean = match (self.count, next.count) {
            (_, 0) => self.mean,
            (0, _) => next.mean,
            (a, b) => {
                let (a, b, all) = (f64::from(a), f64::from(b), f64::from(count));
                let mean = (self.mean * a + next.mean * b) / all;
                // The sum of huge numbers may have no end where their mean has one.
                if mean.is_finite() { mean } else { self.mean * (a / all) + next.mean * (b / all) }
            }
        };
        Bucket {
            steps: [self.steps[0].min(next.steps[0]), self.steps[1].max(next.steps[1])],
            count,
            nonfinite: self.nonfinite + next.nonfinite,
            mean,
            min: self.min.min(next.min),
            max: self.max.max(next.max),
            ..self
        }
    }
}

/// The values of one metric, in the order of the rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What the log calls it.
    pub name: String,
    /// How far a value may be from what was logged: half of the last digit where it is a text
    /// with at most four decimals, else 0.
    pub resolution: f64,
    /// The buckets that hold a value, in order.
    pub buckets: Vec<Bucket>,
}

impl Series {
    /// Adds a value; its row is the last one.
    pub(crate) fn push(&mut self, bucket: Bucket) {
        match self.buckets.last_mut() {
            Some(last) if last.index == bucket.index => *last = last.join(bucket),
            _ => self.buckets.push(bucket),
        }
    }

    /// Halves the number of buckets.
    pub(crate) fn halve(&mut self) {
        let mut merged: Vec<Bucket> = Vec::with_capacity(self.buckets.len() / 2 + 1);
        for mut bucket in self.buckets.drain(..) {
            bucket.index /= 2;
            match merged.last_mut() {
                Some(last) if last.index == bucket.index => *last = last.join(bucket),
                _ => merged.push(bucket),
            }
        }
        self.buckets = merged;
    }

    /// Forgets what was logged at a step and after it.
    pub(crate) fn forget_from(&mut self, step: i64) {
        let kept = self.buckets.partition_point(|bucket| bucket.steps[1] < step);
        self.buckets.truncate(kept);
    }

    /// How many finite values there are.
    pub fn points(&self) -> u64 {
        self.buckets.iter().map(|bucket| u64::from(bucket.count)).sum()
    }

    /// How many values are not finite.
    pub fn nonfinite(&self) -> u64 {
        self.buckets.iter().map(|bucket| u64::from(bucket.nonfinite)).sum()
    }

    /// The buckets with a finite value.
    pub fn finite(&self) -> impl DoubleEndedIterator<Item = &Bucket> {
        self.buckets.iter().filter(|bucket| bucket.count > 0)
    }

    /// The means of the buckets: the values themselves, where a run is short.
    pub fn values(&self) -> Vec<f64> {
        self.finite().map(|bucket| bucket.mean).collect()
    }

    /// The smallest value; NaN where there is none.
    pub fn min(&self) -> f64 {
        self.finite().map(|bucket| bucket.min).fold(f64::NAN, f64::min)
    }

    /// The largest value; NaN where there is none.
    pub fn max(&self) -> f64 {
        self.finite().map(|bucket| bucket.max).fold(f64::NAN, f64::max)
    }

    /// Whether all values are the same up to rounding: largest − smallest ≤ 1e-9 (1 + |first|).
    pub fn is_constant(&self) -> bool {
        let first = self.finite().next().map_or(0.0, |bucket| bucket.mean);
        self.max() - self.min() <= 1e-9 * (1.0 + first.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_of_huge_numbers_have_a_finite_mean() {
        let bucket = |value| Bucket::of(0, 1, 1, value);
        let joined = bucket(f64::MAX).join(bucket(f64::MAX)).join(bucket(f64::NAN));
        assert_eq!((joined.mean, joined.count, joined.nonfinite), (f64::MAX, 2, 1));
    }
}
