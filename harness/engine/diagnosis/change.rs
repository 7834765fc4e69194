//! Changes of one input or output: what stands in a hypothesis in place of the right values.

use ndarray::{ArrayD, ArrayView1, Axis, Slice};

use crate::diagnosis::axis::{Along, End};
use crate::diagnosis::statistic::{Over, Statistic};
use crate::diagnosis::text::Text;
use shakedown_core::numeric::function::Function;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::Value;
use shakedown_core::value::text::number;

/// A change of one array, in a hypothesis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// Every number is this one.
    Set(f64),
    /// Every number times this one.
    Times(f64),
    /// Every number plus this one.
    Plus(f64),
    /// Every number through a function.
    Through(Function),
    /// What is made of numbers that are counted together.
    Counted(Statistic, Over),
    /// Every number and that of another field at the same place.
    With(Operation, &'static str),
    /// Every number over how many places of its row are true in a mask.
    OverLength(&'static str),
    /// The same, times.
    TimesLength(&'static str),
    /// The first place of an axis in place of all of them, or the last.
    Repeated(Along, End),
    /// Moved along an axis, what leaves at one end comes in at the other.
    Rolled(Along, isize),
    /// Moved along an axis, zeros or false coming in.
    Shifted(Along, isize),
    /// 0 or false at the first place of an axis, or at the last.
    Cleared(Along, End),
    /// In the opposite order along an axis.
    Reversed(Along),
    /// Summed up along an axis from its begin, or from its end.
    Accumulated(Along, End),
    /// Softmax along an axis.
    Softmax(Along),
    /// Rounded to a format.
    Stored(Dtype),
    /// Another field in its place.
    Instead(&'static str),
    /// A mask with every place, or none.
    All(bool),
    /// A mask turned round.
    Not,
    /// A mask without gaps between its first and last place.
    Filled,
    /// A mask without the first or the last place of each row.
    Without(End),
    /// A mask with the place before the first one of each row, or after the last one.
    Beyond(End),
    /// Numbers of groups, all the same.
    Merged,
    /// Numbers of groups by position, so many rows each as the first group has.
    Blocks,
    /// Numbers of groups modulo the number of groups.
    Modulo,
    /// Texts, each through a function.
    Texts(Text),
}

/// What is made of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Plus,
    Less,
    Times,
    Over,
}

impl Change {
    /// What is said of it: "as if the input `x` were …".
    pub(crate) fn told(&self) -> String {
        match self {
            Change::Set(value) => number(*value),
            Change::Times(-1.0) => "negated".to_owned(),
            Change::Times(factor) => format!("{} times what it is", number(*factor)),
            Change::Plus(term) if *term < 0.0 => format!("{} less than it is", number(-*term)),
            Change::Plus(term) => format!("{} more than it is", number(*term)),
            Change::Through(function) => function.told(),
            Change::Counted(statistic, over) => statistic.told().to_owned() + &over.told(),
            Change::With(operation, other) => format!("{} `{other}`", operation.told()),
            Change::OverLength(mask) => {
                format!("divided by the true positions of its row of `{mask}`")
            }
            Change::TimesLength(mask) => {
                format!("multiplied by the true positions of its row of `{mask}`")
            }
            Change::Repeated(along, end) => {
                format!("that of the {} place along {} everywhere", end.told(), along.told())
            }
            Change::Rolled(along, by) => format!("rolled by {by} along {}", along.told()),
            Change::Shifted(along, by) => format!("shifted by {by} along {}", along.told()),
            Change::Cleared(along, end) => {
                format!("nothing at the {} place along {}", end.told(), along.told())
            }
            Change::Reversed(along) => format!("reversed along {}", along.told()),
            Change::Accumulated(along, end) => {
                format!("summed up along {} from the {} place on", along.told(), end.told())
            }
            Change::Softmax(along) => format!("its softmax over {}", along.told()),
            Change::Stored(dtype) => format!("rounded to {}", dtype.name()),
            Change::Instead(other) => format!("`{other}`"),
            Change::All(true) => "true everywhere".to_owned(),
            Change::All(false) => "false everywhere".to_owned(),
            Change::Not => "inverted".to_owned(),
            Change::Filled => "without holes".to_owned(),
            Change::Without(end) => format!("without the {} token of each row", end.told()),
            Change::Beyond(End::First) => "with one token more before each row".to_owned(),
            Change::Beyond(End::Last) => "with one token more after each row".to_owned(),
            Change::Merged => "all of one group".to_owned(),
            Change::Blocks => "of equal blocks of adjacent rows".to_owned(),
            Change::Modulo => "the row modulo the number of groups".to_owned(),
            Change::Texts(text) => text.told(),
        }
    }

    /// Whether it says where something is otherwise, so that even one wrong number, at many places,
    /// is like nothing else.
    pub(crate) fn says_where(&self) -> bool {
        use Change::{Beyond, Cleared, Filled, Repeated, Reversed, Rolled, Shifted, Without};
        matches!(
            self,
            Filled
                | Without(_)
                | Beyond(_)
                | Cleared(..)
                | Repeated(..)
                | Rolled(..)
                | Shifted(..)
                | Reversed(_)
        )
    }

    /// Whether it is made with other numbers of the field, or with other fields.
    pub(crate) fn is_beside(&self) -> bool {
        use Change::{Counted, OverLength, TimesLength, With};
        matches!(self, Counted(..) | With(..) | OverLength(_) | TimesLength(_))
    }

    /// The changed value; `None` where the change says nothing about such a value, or another one
    /// that it needs is not there.
    pub(crate) fn of(&self, value: &Value, other: impl Fn(&str) -> Option<Value>) -> Option<Value> {
        if let Change::Instead(name) = self {
            let other = other(name)?;
            let fits = other.kind() == value.kind() && other.shape() == value.shape();
            return fits.then_some(other);
        }
        match value {
            Value::Float(array) => match self {
                Change::Counted(statistic, over) => statistic.of(array, over, other),
                Change::OverLength(mask) => lengths(&other(mask)?, array).map(|n| array / &n),
                Change::TimesLength(mask) => lengths(&other(mask)?, array).map(|n| array * &n),
                Change::With(operation, name) => match other(name)? {
                    Value::Float(other) if other.shape() == array.shape() => {
                        let each = array.iter().zip(&other);
                        let each = each.map(|(x, y)| operation.of(*x, *y)).collect();
                        ArrayD::from_shape_vec(array.raw_dim(), each).ok()
                    }
                    _ => None,
                },
                _ => self.of_floats(array),
            }
            .map(Value::Float),
            Value::Bool(array) => self.of_mask(array).map(Value::Bool),
            Value::Int(array) => self.of_groups(array).map(Value::Int),
            Value::Text(array) => match self {
                Change::Texts(text) => {
                    Some(Value::Text(array.mapv(|one| one.and_then(|one| text.of(&one)))))
                }
                Change::Rolled(along, by) => moved(array, *along, *by, None).map(Value::Text),
                Change::Reversed(along) => reversed(array, *along).map(Value::Text),
                _ => None,
            },
        }
    }

    fn of_floats(&self, array: &ArrayD<f64>) -> Option<ArrayD<f64>> {
        Some(match self {
            Change::Set(value) => array.mapv(|_| *value),
            Change::Times(factor) => array * *factor,
            Change::Plus(term) => array + *term,
            Change::Through(function) => array.mapv(|x| function.of(x)),
            Change::Repeated(along, end) => repeated(array, *along, *end)?,
            Change::Rolled(along, by) => moved(array, *along, *by, None)?,
            Change::Shifted(along, by) => moved(array, *along, *by, Some(0.0))?,
            Change::Reversed(along) => reversed(array, *along)?,
            Change::Cleared(along, end) => cleared(array, *along, *end)?,
            Change::Filled | Change::Without(_) | Change::Beyond(_) => {
                let is_mask = array.iter().all(|x| [0.0, 1.0].contains(x));
                let mask = is_mask.then(|| array.mapv(|x| x != 0.0))?;
                self.of_mask(&mask)?.mapv(f64::from)
            }
            Change::Accumulated(along, end) => {
                let mut sums = along.within(array)?.clone();
                for mut lane in sums.lanes_mut(Axis(along.axis)) {
                    let mut sum = 0.0;
                    let add = |x: &mut f64| {
                        sum += *x;
                        *x = sum;
                    };
                    match end {
                        End::First => lane.iter_mut().for_each(add),
                        End::Last => lane.iter_mut().rev().for_each(add),
                    }
                }
                sums
            }
            Change::Softmax(along) => {
                let mut shares = along.within(array)?.clone();
                for mut lane in shares.lanes_mut(Axis(along.axis)) {
                    let largest = lane.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    lane.mapv_inplace(|x| (x - largest).exp());
                    let sum = lane.sum();
                    lane.mapv_inplace(|x| x / sum);
                }
                shares
            }
            Change::Stored(dtype) => array.mapv(|x| dtype.round(x)),
            _ => return None,
        })
    }

    fn of_mask(&self, mask: &ArrayD<bool>) -> Option<ArrayD<bool>> {
        Some(match self {
            Change::All(value) => mask.mapv(|_| *value),
            Change::Not => mask.mapv(|kept| !kept),
            Change::Rolled(along, by) => moved(mask, *along, *by, None)?,
            Change::Shifted(along, by) => moved(mask, *along, *by, Some(false))?,
            Change::Reversed(along) => reversed(mask, *along)?,
            Change::Repeated(along, end) => repeated(mask, *along, *end)?,
            Change::Cleared(along, end) => cleared(mask, *along, *end)?,
            Change::Filled | Change::Without(_) | Change::Beyond(_) => {
                let mut changed = mask.clone();
                let last = mask.ndim().checked_sub(1)?;
                for mut row in changed.lanes_mut(Axis(last)) {
                    let first = row.iter().position(|kept| *kept);
                    let last = row.iter().rposition(|kept| *kept);
                    match (self, first, last) {
                        (Change::Filled, Some(first), Some(last)) => {
                            row.slice_mut(ndarray::s![first..=last]).fill(true);
                        }
                        (Change::Without(End::First), Some(first), _) => row[first] = false,
                        (Change::Without(End::Last), _, Some(last)) => row[last] = false,
                        (Change::Beyond(End::First), Some(first), _) if first > 0 => {
                            row[first - 1] = true;
                        }
                        (Change::Beyond(End::Last), _, Some(last)) if last + 1 < row.len() => {
                            row[last + 1] = true;
                        }
                        _ => {}
                    }
                }
                changed
            }
            _ => return None,
        })
    }

    fn of_groups(&self, groups: &ArrayD<i64>) -> Option<ArrayD<i64>> {
        let mut known: Vec<i64> = groups.iter().copied().collect();
        known.sort_unstable();
        known.dedup();
        let by_row = |of: &dyn Fn(i64) -> i64| {
            let mut row = 0;
            groups.mapv(|_| {
                row += 1;
                of(row - 1)
            })
        };
        Some(match self {
            Change::Merged => groups.mapv(|_| 0),
            Change::Blocks => {
                let first = groups.first()?;
                let size = groups.iter().filter(|group| *group == first).count() as i64;
                by_row(&|row| row / size)
            }
            Change::Modulo => by_row(&|row| row % known.len().max(1) as i64),
            Change::Plus(term) => groups.mapv(|x| x + *term as i64),
            Change::Set(value) => groups.mapv(|_| *value as i64),
            Change::Rolled(along, by) => moved(groups, *along, *by, None)?,
            Change::Shifted(along, by) => moved(groups, *along, *by, Some(0))?,
            Change::Reversed(along) => reversed(groups, *along)?,
            Change::Repeated(along, end) => repeated(groups, *along, *end)?,
            _ => return None,
        })
    }
}

impl Operation {
    pub(crate) const ALL: [Operation; 4] =
        [Operation::Plus, Operation::Less, Operation::Times, Operation::Over];

    fn told(self) -> &'static str {
        match self {
            Operation::Plus => "what it is plus",
            Operation::Less => "what it is less",
            Operation::Times => "what it is times",
            Operation::Over => "what it is over",
        }
    }

    fn of(self, x: f64, y: f64) -> f64 {
        match self {
            Operation::Plus => x + y,
            Operation::Less => x - y,
            Operation::Times => x * y,
            Operation::Over => x / y,
        }
    }
}

/// How many places of a mask are true in each row, laid out for an array: 1 where none is.
fn lengths(mask: &Value, array: &ArrayD<f64>) -> Option<ArrayD<f64>> {
    let Value::Bool(mask) = mask else { return None };
    let length = |row: ArrayView1<'_, bool>| row.iter().filter(|kept| **kept).count().max(1) as f64;
    let mut lengths = mask.map_axis(Axis(mask.ndim().checked_sub(1)?), length);
    if lengths.ndim() < array.ndim() {
        lengths.insert_axis_inplace(Axis(lengths.ndim()));
    }
    lengths.broadcast(array.raw_dim()).map(|lengths| lengths.to_owned())
}

fn reversed<T: Clone>(array: &ArrayD<T>, along: Along) -> Option<ArrayD<T>> {
    let mut reversed = along.within(array)?.clone();
    reversed.invert_axis(Axis(along.axis));
    Some(reversed.as_standard_layout().into_owned())
}

fn repeated<T: Clone>(array: &ArrayD<T>, along: Along, end: End) -> Option<ArrayD<T>> {
    let at = along.at(end, array)?;
    let one = array.slice_axis(Axis(along.axis), Slice::from(at..=at));
    one.broadcast(array.raw_dim()).map(|all| all.to_owned())
}

fn cleared<T: Clone + Default>(array: &ArrayD<T>, along: Along, end: End) -> Option<ArrayD<T>> {
    let mut cleared = array.clone();
    cleared.index_axis_mut(Axis(along.axis), along.at(end, array)?).fill(T::default());
    Some(cleared)
}

/// What stands `by` places before each, along an axis; `fill` where nothing does, else what stands
/// at the other end.
fn moved<T: Clone>(
    array: &ArrayD<T>,
    along: Along,
    by: isize,
    fill: Option<T>,
) -> Option<ArrayD<T>> {
    let axis = Axis(along.axis);
    let length = along.within(array)?.len_of(axis) as isize;
    let mut moved = array.clone();
    for (at, mut to) in moved.axis_iter_mut(axis).enumerate() {
        let from = at as isize - by;
        match &fill {
            Some(fill) if !(0..length).contains(&from) => to.fill(fill.clone()),
            _ => to.assign(&array.index_axis(axis, from.rem_euclid(length) as usize)),
        }
    }
    Some(moved)
}
