//! The policy: a table of logits for each prompt, previous token and number of thoughts.

use super::random::Random;

/// How many tokens there are.
pub(super) const TOKENS: usize = 12;
/// How many prompts there are.
pub(super) const PROMPTS: usize = 8;
/// How many thoughts are told apart.
const THOUGHTS: usize = 4;
/// How many situations there are: the start counts as a token.
pub(super) const ROWS: usize = PROMPTS * (TOKENS + 1) * THOUGHTS;

/// Ends a completion.
pub(super) const END: usize = 0;
/// Announces an answer.
pub(super) const MARK: usize = 1;
/// The first of the answers.
pub(super) const ANSWERS: usize = 2;
/// The first of the thoughts; what is before, from `ANSWERS` on, are answers.
pub(super) const THINKING: usize = 6;

/// What the policy sees when it chooses a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// The prompt.
    pub(super) prompt: usize,
    /// The token before; `TOKENS` at the start.
    pub(super) before: usize,
    /// How many thoughts there were.
    pub(super) thoughts: usize,
}

impl Situation {
    /// The start of a completion.
    pub(super) fn start(prompt: usize) -> Situation {
        Situation { prompt, before: TOKENS, thoughts: 0 }
    }

    /// The one after a token.
    pub(super) fn after(self, token: usize) -> Situation {
        let thoughts = self.thoughts + usize::from(token >= THINKING);
        Situation { before: token, thoughts, ..self }
    }

    /// Its row of the table.
    pub(super) fn row(self) -> usize {
        let thoughts = self.thoughts.min(THOUGHTS - 1);
        (self.prompt * (TOKENS + 1) + self.before) * THOUGHTS + thoughts
    }

    /// Every situation.
    pub(super) fn all() -> impl Iterator<Item = Situation> {
        (0..PROMPTS).flat_map(|prompt| {
            (0..=TOKENS).flat_map(move |before| {
                (0..THOUGHTS).map(move |thoughts| Situation { prompt, before, thoughts })
            })
        })
    }
}

/// The rows of the same situation after other prompts.
pub(super) fn elsewhere(row: usize) -> impl Iterator<Item = usize> {
    let per_prompt = ROWS / PROMPTS;
    let same = (0..PROMPTS).map(move |prompt| prompt * per_prompt + row % per_prompt);
    same.filter(move |other| *other != row)
}

/// Logits, probabilities and entropy of one row.
#[derive(Clone, Copy, Debug)]
struct Entry {
    logits: [f64; TOKENS],
    log: [f64; TOKENS],
    p: [f64; TOKENS],
    entropy: f64,
    is_fresh: bool,
    /// How often its logits were changed, and how often those were that were last taken.
    changes: [u32; 2],
}

/// A table policy.
#[derive(Clone, Debug)]
pub(super) struct Table(Vec<Entry>);

impl Table {
    /// One with these logits.
    pub(super) fn new(logits: impl Fn(Situation) -> [f64; TOKENS]) -> Table {
        let entry = |situation| Entry {
            logits: logits(situation),
            log: [0.0; TOKENS],
            p: [0.0; TOKENS],
            entropy: 0.0,
            is_fresh: false,
            changes: [1, 0],
        };
        Table(Situation::all().map(entry).collect())
    }

    /// The same with noise on its logits.
    pub(super) fn perturbed(&self, deviation: f64, random: &mut Random) -> Table {
        let mut table = self.clone();
        for entry in &mut table.0 {
            entry.logits.iter_mut().for_each(|logit| *logit += deviation * random.normal());
            entry.is_fresh = false;
        }
        table
    }

    /// Takes the logits of another one, always the same, changed for an engine.
    pub(super) fn take(&mut self, from: &Table, change: impl Fn(usize, f64) -> f64) {
        for (entry, other) in self.0.iter_mut().zip(&from.0) {
            if entry.changes[1] == other.changes[0] {
                continue;
            }
            entry.logits = other.logits;
            let all = entry.logits.iter_mut().enumerate();
            all.for_each(|(token, logit)| *logit = change(token, *logit));
            (entry.changes[1], entry.is_fresh) = (other.changes[0], false);
        }
    }

    fn entry(&mut self, row: usize) -> &Entry {
        let entry = &mut self.0[row];
        if !entry.is_fresh {
            entry.refresh();
        }
        entry
    }

    /// The log-probabilities of a row.
    pub(super) fn log(&mut self, row: usize) -> &[f64; TOKENS] {
        &self.entry(row).log
    }

    /// The probabilities of a row, its log-probabilities and its entropy.
    pub(super) fn row(&mut self, row: usize) -> (&[f64; TOKENS], &[f64; TOKENS], f64) {
        let entry = self.entry(row);
        (&entry.p, &entry.log, entry.entropy)
    }

    /// A token of a row. Where nothing is a number, the last one.
    pub(super) fn sample(&mut self, row: usize, random: &mut Random) -> usize {
        let mut left = random.unit();
        for (token, p) in self.entry(row).p.iter().enumerate() {
            left -= p;
            if left < 0.0 {
                return token;
            }
        }
        TOKENS - 1
    }

    /// Adds to the logits of a row.
    pub(super) fn add(&mut self, row: usize, step: &[f64; TOKENS], scale: f64) {
        let entry = &mut self.0[row];
        entry.logits.iter_mut().zip(step).for_each(|(logit, step)| *logit += scale * step);
        entry.changes[0] += 1;
        entry.is_fresh = false;
    }
}

impl Entry {
    fn refresh(&mut self) {
        let largest = self.logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for (p, logit) in self.p.iter_mut().zip(&self.logits) {
            *p = (logit - largest).exp();
            sum += *p;
        }
        let log_sum = sum.ln() + largest;
        self.entropy = 0.0;
        for token in 0..TOKENS {
            self.p[token] /= sum;
            self.log[token] = self.logits[token] - log_sum;
            if self.p[token] != 0.0 {
                self.entropy -= self.p[token] * self.log[token];
            }
        }
        self.is_fresh = true;
    }
}

/// A gradient with respect to the logits: what each token of a row is wanted more by, and what the
/// entropy of a row is wanted more by.
pub(super) struct Gradient {
    wanted: Vec<[f64; TOKENS]>,
    total: Vec<f64>,
    entropy: Vec<f64>,
    rows: Vec<usize>,
}

impl Default for Gradient {
    fn default() -> Gradient {
        Gradient {
            wanted: vec![[0.0; TOKENS]; ROWS],
            total: vec![0.0; ROWS],
            entropy: vec![0.0; ROWS],
            rows: Vec::new(),
        }
    }
}

impl Gradient {
    /// Adds `weight` times the gradient of a token's log-probability, and `entropy` times that of
    /// the entropy where it was chosen.
    pub(super) fn want(&mut self, row: usize, token: usize, weight: f64, entropy: f64) {
        if self.total[row] == 0.0 && self.entropy[row] == 0.0 {
            self.rows.push(row);
        }
        self.wanted[row][token] += weight;
        self.total[row] += weight;
        self.entropy[row] += entropy;
    }

    /// The gradient itself, row by row; this one is empty afterwards.
    pub(super) fn drain(&mut self, table: &mut Table) -> Vec<(usize, [f64; TOKENS])> {
        self.rows.sort_unstable();
        self.rows.dedup();
        let mut all = Vec::with_capacity(self.rows.len());
        for row in self.rows.drain(..) {
            let (p, log, of_row) = table.row(row);
            let (total, entropy) = (self.total[row], self.entropy[row]);
            let mut gradient = std::mem::replace(&mut self.wanted[row], [0.0; TOKENS]);
            for token in 0..TOKENS {
                let spread = if p[token] == 0.0 { 0.0 } else { p[token] * (log[token] + of_row) };
                gradient[token] -= total * p[token] + entropy * spread;
            }
            (self.total[row], self.entropy[row]) = (0.0, 0.0);
            all.push((row, gradient));
        }
        all
    }
}

/// The norm of a gradient.
pub(super) fn norm(gradient: &[(usize, [f64; TOKENS])]) -> f64 {
    gradient.iter().flat_map(|(_, row)| row).map(|x| x * x).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::new(|_| [0.0; TOKENS]).perturbed(1.0, &mut Random::new(1, 1))
    }

    /// What the gradient of the tests is of: two tokens of one row, and the entropy of another.
    fn wanted(table: &mut Table) -> f64 {
        2.0 * table.log(3)[5] - 0.5 * table.log(3)[1] + 0.7 * table.row(9).2
    }

    #[test]
    fn a_gradient_is_the_derivative() {
        let mut table = table();
        let mut gradient = Gradient::default();
        gradient.want(3, 5, 2.0, 0.0);
        gradient.want(3, 1, -0.5, 0.0);
        gradient.want(9, 0, 0.0, 0.7);
        for (row, of_row) in gradient.drain(&mut table) {
            for (token, derivative) in of_row.into_iter().enumerate() {
                let mut step = [0.0; TOKENS];
                step[token] = 1e-5;
                let [mut more, mut less] = [table.clone(), table.clone()];
                more.add(row, &step, 1.0);
                less.add(row, &step, -1.0);
                let measured = (wanted(&mut more) - wanted(&mut less)) / 2e-5;
                assert!((measured - derivative).abs() < 1e-6, "{row} {token}: {measured}");
            }
        }
    }

    #[test]
    fn tokens_are_sampled_as_often_as_their_probabilities_say() {
        let (mut table, mut random) = (table(), Random::new(2, 2));
        let mut counts = [0.0; TOKENS];
        for _ in 0..20_000 {
            counts[table.sample(7, &mut random)] += 1.0 / 20_000.0;
        }
        let (p, _, _) = table.row(7);
        assert!(counts.iter().zip(p).all(|(count, p)| (count - p).abs() < 0.02));
    }

    #[test]
    fn situations_have_rows_of_their_own() {
        let rows: std::collections::BTreeSet<usize> =
            Situation::all().map(Situation::row).collect();
        assert_eq!(rows, (0..ROWS).collect());
    }
}
