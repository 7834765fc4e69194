//! Rows become a run: names become metrics, pieces of one step one row, and what is written again
//! after a restart replaces what stood there. One pass, in bounded memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::runs::derived::DERIVED;
use crate::runs::names::{self, Meaning};
use crate::runs::row::{Cell, Row};
use crate::runs::series::{Bucket, MOST_BUCKETS, Series};
use crate::settings::Library;

/// The names of the step, the first that is there counts.
const STEPS: [&str; 9] = [
    "step",
    "train/global_step",
    "global_step",
    "rollout/step",
    "_step",
    "Step",
    "training/global_step",
    "global_step/max_steps",
    LLAMA_FACTORY,
];

/// The step in LLaMA-Factory's `trainer_log.jsonl`, whose other names are those of everybody.
const LLAMA_FACTORY: &str = "current_steps";

/// The names of the number of steps that there are to be.
const TOTALS: [&str; 2] = ["total_steps", "max_steps"];

/// W&B's own count of what was logged: beside another step it counts something else.
const COUNTER: &str = "_step";
/// The same in a table that W&B exports.
const EXPORTED: &str = "Step";

/// A stage of fewer rows is none.
const FEWEST_ROWS: u64 = 3;

/// A log with more names or metrics than these is no log of training: the rest is left out.
const MOST_NAMES: usize = 20_000;
const MOST_METRICS: usize = 512;
/// A longer name is none.
pub(crate) const LONGEST_NAME: usize = 256;

/// Steps beyond this are not counted exactly by the numbers in which logs hold them.
const LAST_STEP: f64 = 9_007_199_254_740_992.0;

/// The place of a name among those of the step, of which one's own is the first.
fn step_at(name: &str, own_names: &HashMap<String, String>) -> Option<usize> {
    let own = || own_names.get(name).is_some_and(|id| id == "step").then_some(0);
    STEPS.iter().position(|step| *step == name).or_else(own)
}

/// Whether a name is one of the step.
pub(crate) fn is_step(name: &str, own_names: &HashMap<String, String>) -> bool {
    step_at(name, own_names).is_some()
}

/// What takes the rows of one run, in the order of its log.
pub struct Recorder {
    own_names: HashMap<String, String>,
    /// By the names of the log; `None` where nobody knows what it means.
    index: HashMap<String, Option<usize>>,
    names: Vec<Name>,
    /// Which name gives a metric: the one of smallest rank in the first row that has it.
    called: HashMap<String, usize>,
    axis: Axis,
    row: Row,
    row_at: Option<(i64, usize)>,
    rows: u64,
    width: u64,
    series: BTreeMap<String, Series>,
    restarts: Vec<i64>,
    steps: Option<[i64; 2]>,
    left_out: bool,
    /// What the open row says of the number of steps.
    total: Option<f64>,
    declared_steps: Option<f64>,
    has_ended: bool,
    tells_stages: bool,
    /// The stages that have ended.
    stages: Vec<Recorded>,
}

/// A name of the log that has a meaning.
struct Name {
    name: String,
    meaning: Meaning,
}

/// A kind of training, by what its rows log: a later one logs what those before do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// It has a loss.
    Supervised,
    /// It has rewards of two sides.
    Pairs,
    /// It has rewards or lengths of completions.
    Rollouts,
}

impl Stage {
    /// What these metrics are of; `None` where they tell nothing.
    fn of<'a>(ids: impl Iterator<Item = &'a String>) -> Option<Stage> {
        let one = |id: &String| match id.split('.').next()? {
            "reward" | "advantage" | "length" | "groups" => Some(Stage::Rollouts),
            "pref" => Some(Stage::Pairs),
            "loss" | "lr" => Some(Stage::Supervised),
            _ => None,
        };
        ids.filter_map(one).max()
    }
}

/// Which step counts.
#[derive(Default)]
struct Axis {
    /// Its place among the names of steps.
    of: Option<usize>,
    /// The names that stand beside it and count something else.
    apart: [bool; STEPS.len()],
}

impl Axis {
    /// The step that cells have; whether it is of another kind than those before.
    fn step(
        &mut self,
        cells: &[(&str, Cell)],
        own_names: &HashMap<String, String>,
    ) -> (Option<i64>, bool) {
        let mut steps = [None; STEPS.len()];
        for (name, cell) in cells {
            let at = step_at(name, own_names);
            if let Some(at) = at.filter(|_| cell.value.is_finite()) {
                steps[at] = Some(cell.value.clamp(-LAST_STEP, LAST_STEP) as i64);
            }
        }
        let Some(best) = steps.iter().position(Option::is_some) else { return (None, false) };
        let of = *self.of.get_or_insert(best);
        if steps[of].is_none() {
            // A piece of the row before, or the same steps under another name.
            return (steps[best].filter(|_| !self.apart[best]), false);
        }
        let is_new = best != of;
        self.of = Some(best);
        for (at, step) in
            steps.iter().enumerate().filter(|(at, step)| *at != best && step.is_some())
        {
            self.apart[at] |= *step != steps[best] || STEPS[at] == COUNTER;
        }
        (steps[best], is_new)
    }
}

/// A run as it was recorded.
pub struct Recorded {
    /// By the ids of their metrics.
    pub series: BTreeMap<String, Series>,
    /// Names that no metric has.
    pub unknown: BTreeSet<String>,
    /// How many rows there are.
    pub rows: u64,
    /// The first and the last step.
    pub steps: Option<[i64; 2]>,
    /// The steps to which the log went back.
    pub restarts: Vec<i64>,
    /// The library whose names they are, where one has most of them.
    pub library: Option<Library>,
    /// Whether there were more names than can be kept.
    pub left_out: bool,
    /// Whether rows have the steps of training.
    pub counts_steps: bool,
    /// How many steps there are to be, where a row says so.
    pub declared_steps: Option<f64>,
    /// Whether a row says that training has ended.
    pub has_ended: bool,
}

impl Recorder {
    /// One to which some names of a log are declared to be metrics.
    pub fn new(own_names: HashMap<String, String>) -> Recorder {
        Recorder {
            own_names,
            index: HashMap::new(),
            names: Vec::new(),
            called: HashMap::new(),
            axis: Axis::default(),
            row: Row::new(),
            row_at: None,
            rows: 0,
            width: 1,
            series: BTreeMap::new(),
            restarts: Vec::new(),
            steps: None,
            left_out: false,
            total: None,
            declared_steps: None,
            has_ended: false,
            tells_stages: false,
            stages: Vec::new(),
        }
    }

    /// The same for rows in the order in which they were written: where the steps begin again with
    /// another kind of training, another stage begins.
    pub fn in_stages(self) -> Recorder {
        Recorder { tells_stages: true, ..self }
    }

    /// Takes how many steps there are to be.
    pub fn declare(&mut self, steps: f64) {
        self.declared_steps = Some(steps).filter(|steps| *steps > 0.0).or(self.declared_steps);
    }

    /// Whether a name of the log is a metric.
    pub fn knows(&self, name: &str) -> bool {
        let seen = if name.len() > LONGEST_NAME { None } else { self.index.get(name) };
        match seen {
            Some(found) => found.is_some(),
            None if name.len() > LONGEST_NAME || is_step(name, &self.own_names) => false,
            None => self.meaning(name).is_some(),
        }
    }

    /// Takes one row of the log, or a piece of one, that stands at a line.
    pub fn row<'a>(&mut self, line: usize, cells: impl IntoIterator<Item = (&'a str, Cell)>) {
        let cells: Vec<(&str, Cell)> = cells.into_iter().collect();
        if cells.iter().any(|(name, _)| matches!(*name, "train_runtime" | "train/train_runtime")) {
            // What transformers logs when training has ended sums it up.
            self.close();
            self.has_ended = true;
            return;
        }
        let (step, is_new_axis) = self.axis.step(&cells, &self.own_names);
        let step = match (step, self.row_at) {
            (Some(step), _) => step,
            // A piece without a step belongs to the row before, unless none has one.
            (None, Some((step, _))) if self.axis.of.is_some() => step,
            (None, Some((step, _))) if self.row.is_empty() => step,
            (None, Some((step, _))) => step.saturating_add(1),
            (None, None) => 1,
        };
        if self.row_at.is_some_and(|(at, _)| at != step) {
            self.close();
        }
        if is_new_axis {
            // The steps before were of another kind: these do not go back behind them.
            self.steps = None;
        }
        self.row_at.get_or_insert((step, line));
        if let Some((_, total)) = cells.iter().find(|(name, _)| TOTALS.contains(name)) {
            self.total = Some(total.value).filter(|steps| *steps > 0.0);
        }
        for (name, cell) in cells {
            self.cell(name, cell);
        }
    }

    fn cell(&mut self, name: &str, cell: Cell) {
        let slot = match self.index.get(name) {
            Some(slot) => *slot,
            None => self.first_seen(name),
        };
        let Some(slot) = slot else { return };
        let meaning = &self.names[slot].meaning;
        match self.called.get(&meaning.id) {
            Some(other) if *other == slot => {}
            Some(other) => {
                let is_fixed = self.series.contains_key(&meaning.id);
                if is_fixed || self.names[*other].meaning.rank <= meaning.rank {
                    return;
                }
                self.called.insert(meaning.id.clone(), slot);
            }
            None => {
                self.called.insert(meaning.id.clone(), slot);
            }
        }
        let value = meaning.convert.apply(cell.value);
        let resolution = meaning.convert.resolution(cell.resolution);
        let cell = Cell { value, resolution };
        match self.row.get_mut(&meaning.id) {
            Some(there) => *there = cell,
            None => {
                self.row.insert(meaning.id.clone(), cell);
            }
        }
    }

    /// Finds out what a name means.
    fn first_seen(&mut self, name: &str) -> Option<usize> {
        if is_step(name, &self.own_names) || name.is_empty() {
            return None;
        }
        if self.index.len() >= MOST_NAMES || name.len() > LONGEST_NAME {
            self.left_out = true;
            return None;
        }
        let mut meaning = self.meaning(name);
        if meaning.is_some() && self.names.len() >= MOST_METRICS {
            self.left_out = true;
            meaning = None;
        }
        let slot = meaning.map(|meaning| {
            self.names.push(Name { name: name.to_owned(), meaning });
            self.names.len() - 1
        });
        self.index.insert(name.to_owned(), slot);
        slot
    }

    fn meaning(&self, name: &str) -> Option<Meaning> {
        if let Some(id) = self.own_names.get(name) {
            let (convert, libraries) = (names::Convert::Same, Vec::new());
            return Some(Meaning { id: id.clone(), convert, libraries, rank: 0 });
        }
        // A metric to which a name was given has no other.
        let is_free = |meaning: &Meaning| !self.own_names.values().any(|id| *id == meaning.id);
        names::meaning(name).filter(is_free).filter(|meaning| meaning.id != "step")
    }

    /// Ends the row that is open.
    fn close(&mut self) {
        let Some((step, line)) = self.row_at.take() else { return };
        let mut row = std::mem::take(&mut self.row);
        if row.is_empty() {
            return;
        }
        if self.tells_stages && self.begins_stage(&row, step) {
            self.end_stage();
        }
        if self.steps.is_some_and(|[_, last]| step <= last) && self.is_again(&row, step) {
            self.go_back(step);
        }
        self.has_ended &= self.steps.is_some_and(|[_, last]| step <= last);
        self.declared_steps = self.total.take().or(self.declared_steps);
        if self.rows / self.width >= MOST_BUCKETS {
            self.width *= 2;
            self.series.values_mut().for_each(Series::halve);
        }
        for derived in DERIVED {
            if let Some(value) = (derived.of)(&row) {
                row.insert(derived.id.to_owned(), value.into());
            }
        }
        let index = self.rows / self.width;
        for (id, cell) in row {
            let bucket = Bucket::of(index, step, line, cell.value);
            let series = match self.series.get_mut(&id) {
                Some(series) => series,
                None => {
                    let name = self.called.get(&id).map(|slot| &self.names[*slot].name);
                    let name = name.unwrap_or(&id).clone();
                    let resolution = f64::INFINITY;
                    let series = Series { name, resolution, ..Series::default() };
                    self.series.entry(id).or_insert(series)
                }
            };
            if cell.value.is_finite() {
                // One value with all its digits shows that none is rounded.
                series.resolution = series.resolution.min(cell.resolution);
            }
            series.push(bucket);
        }
        self.rows += 1;
        let [first, last] = self.steps.unwrap_or([step, step]);
        self.steps = Some([first.min(step), last.max(step)]);
    }

    /// Whether a row writes again what stands at a later step. What an evaluation in the background
    /// logs for an earlier one is no restart.
    fn is_again(&self, row: &Row, step: i64) -> bool {
        let last = |id| self.series.get(id)?.buckets.last().map(|bucket| bucket.steps[1]);
        row.keys().filter_map(last).any(|last| last >= step)
    }

    /// Whether a row is the first one of another kind of training, whose steps begin again.
    fn begins_stage(&self, row: &Row, step: i64) -> bool {
        let Some([first, last]) = self.steps.filter(|[_, last]| step <= *last) else {
            return false;
        };
        let before = Stage::of(self.series.keys());
        before.is_some()
            && Stage::of(row.keys()) > before
            && self.rows >= FEWEST_ROWS.min(last.abs_diff(first) + 1)
            && (step <= first || self.is_again(row, step))
    }

    fn end_stage(&mut self) {
        let ended = self.recorded();
        self.stages.push(ended);
        self.called.clear();
        (self.rows, self.width, self.steps, self.has_ended) = (0, 1, None, false);
        self.declared_steps = None;
    }

    /// What was recorded of the stage; nothing of it is kept.
    fn recorded(&mut self) -> Recorded {
        self.drop_task_accuracy();
        let mut series = std::mem::take(&mut self.series);
        series.retain(|_, series| !series.buckets.is_empty());
        for series in series.values_mut() {
            series.resolution = Some(series.resolution).filter(|r| r.is_finite()).unwrap_or(0.0);
        }
        let unknown = self.index.iter().filter(|(_, slot)| slot.is_none());
        let own_count = [COUNTER, EXPORTED];
        Recorded {
            unknown: unknown.map(|(name, _)| name.clone()).collect(),
            library: self.library(),
            series,
            rows: self.rows,
            steps: self.steps,
            restarts: std::mem::take(&mut self.restarts),
            left_out: self.left_out,
            counts_steps: self.axis.of.is_some_and(|of| !own_count.contains(&STEPS[of])),
            declared_steps: self.declared_steps,
            has_ended: self.has_ended,
        }
    }

    /// A restart: what follows replaces what was logged from this step on.
    fn go_back(&mut self, step: i64) {
        self.restarts.push(step);
        for series in self.series.values_mut() {
            series.forget_from(step);
        }
        let last = |series: &Series| series.buckets.last().map(|bucket| bucket.index + 1);
        let buckets = self.series.values().filter_map(last).max().unwrap_or(0);
        self.rows = self.rows.min(buckets * self.width);
        self.steps = self.steps.map(|[first, _]| [first.min(step), step]);
    }

    /// The run, when its log has ended.
    pub fn finish(mut self) -> Recorded {
        self.close();
        self.recorded()
    }

    /// The stages of the run, when its log has ended: one at least.
    pub fn finish_stages(mut self) -> Vec<Recorded> {
        self.close();
        let last = self.recorded();
        self.stages.push(last);
        self.stages
    }

    fn is_of_llama_factory(&self) -> bool {
        self.axis.of.is_some_and(|of| STEPS[of] == LLAMA_FACTORY)
    }

    /// `accuracy` is that of preferences only beside rewards of both sides: else it is anything.
    fn drop_task_accuracy(&mut self) {
        const ACCURACY: &str = "pref.accuracy";
        let is_bare = |series: &Series| matches!(&*series.name, "accuracy" | "train/accuracy");
        let is_alone = !self.series.contains_key("pref.chosen") && !self.is_of_llama_factory();
        let is_own = self.own_names.values().any(|id| id == ACCURACY);
        if self.series.get(ACCURACY).is_some_and(is_bare) && is_alone && !is_own {
            let name = self.series.remove(ACCURACY).map(|series| series.name);
            self.index.extend(name.map(|name| (name, None)));
        }
    }

    /// The library that has the most of the names, where that is one alone: `loss` is everybody's.
    fn library(&self) -> Option<Library> {
        if self.is_of_llama_factory() {
            return Some(Library::LlamaFactory);
        }
        let mut counts: HashMap<Library, usize> = HashMap::new();
        let libraries = self.names.iter().flat_map(|name| &name.meaning.libraries);
        for library in libraries.filter(|library| **library != Library::LlamaFactory) {
            *counts.entry(*library).or_default() += 1;
        }
        let most = counts.values().max().copied()?;
        let mut best = counts.into_iter().filter(|(_, count)| *count == most);
        let library = best.next().map(|(library, _)| library);
        library.filter(|_| best.next().is_none())
    }
}
