//! Changes of one input or output: what stands in a hypothesis in place of the right values.

use ndarray::{ArrayD, Axis, Slice};

use crate::diagnosis::text::Text;
use crate::value::place::Dtype;
use crate::value::record::Value;
use crate::value::text::number;

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
    /// Every number, but none below the first or above the second.
    Limited(f64, f64),
    /// The mean of all numbers in place of each.
    Mean,
    /// Every number less the mean of all.
    Centred,
    /// The same over their deviation, of n numbers or of n - 1.
    Standardised(u8),
    /// The first place of an axis in place of all of them, or the last.
    Repeated(Along, End),
    /// Moved along an axis, what leaves at one end comes in at the other.
    Rolled(Along, isize),
    /// Moved along an axis, zeros or false coming in.
    Shifted(Along, isize),
    /// 0 at the first place of an axis, or at the last.
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
    /// A mask without its first or its last place.
    Without(End),
    /// Numbers of groups, all the same.
    Merged,
    /// Numbers of groups by position, so many rows each as the first group has.
    Blocks,
    /// Numbers of groups modulo the number of groups.
    Modulo,
    /// Texts, each through a function.
    Texts(Text),
}

/// An axis of an array: its letter, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Along {
    pub(crate) letter: char,
    pub(crate) axis: usize,
}

impl Along {
    fn told(&self) -> String {
        match self.letter {
            '?' => format!("axis {}", self.axis),
            letter => letter.to_string(),
        }
    }
}

/// An end of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    First,
    Last,
}

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Absolute,
    Square,
    Root,
    Reciprocal,
    Exponential,
    Logarithm,
    Logistic,
    Tangent,
    Complement,
    Integer,
    Sign,
    Positive,
    Negative,
    Unit,
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
            Change::Through(function) => function.told().to_owned(),
            Change::Limited(f64::NEG_INFINITY, most) => format!("{} at the most", number(*most)),
            Change::Limited(least, f64::INFINITY) => format!("{} at the least", number(*least)),
            Change::Limited(least, most) => {
                format!("limited to {} to {}", number(*least), number(*most))
            }
            Change::Mean => "its mean everywhere".to_owned(),
            Change::Centred => "less the mean of all".to_owned(),
            Change::Standardised(_) => "less the mean of all, over their deviation".to_owned(),
            Change::Repeated(along, end) => {
                format!("that of the {} place along {} everywhere", end.told(), along.told())
            }
            Change::Rolled(along, by) => format!("rolled by {by} along {}", along.told()),
            Change::Shifted(along, by) => format!("shifted by {by} along {}", along.told()),
            Change::Cleared(along, end) => {
                format!("0 at the {} place along {}", end.told(), along.told())
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
            Change::Merged => "all of one group".to_owned(),
            Change::Blocks => "of equal blocks of adjacent rows".to_owned(),
            Change::Modulo => "the row modulo the number of groups".to_owned(),
            Change::Texts(text) => text.told(),
        }
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
            Value::Float(array) => self.of_floats(array).map(Value::Float),
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
        let count = array.len() as f64;
        Some(match self {
            Change::Set(value) => array.mapv(|_| *value),
            Change::Times(factor) => array * *factor,
            Change::Plus(term) => array + *term,
            Change::Through(function) => array.mapv(|x| function.of(x)),
            // NaN stays, as in every library.
            Change::Limited(least, most) => array.mapv(|x| x.clamp(*least, *most)),
            Change::Mean => {
                let mean = array.sum() / count;
                array.mapv(|_| mean)
            }
            Change::Centred | Change::Standardised(_) => {
                let mean = array.sum() / count;
                let centred = array - mean;
                let Change::Standardised(ddof) = self else { return Some(centred) };
                let squares = centred.mapv(|x| x * x).sum();
                // Nothing is over nothing: the ε that everybody adds sees to that.
                let deviation = (squares / (count - f64::from(*ddof)).max(1.0)).sqrt();
                centred.mapv(|x| if x == 0.0 { 0.0 } else { x / deviation })
            }
            Change::Repeated(along, end) => repeated(array, *along, *end)?,
            Change::Rolled(along, by) => moved(array, *along, *by, None)?,
            Change::Shifted(along, by) => moved(array, *along, *by, Some(0.0))?,
            Change::Reversed(along) => reversed(array, *along)?,
            Change::Cleared(along, end) => {
                let mut cleared = along.within(array)?.clone();
                let last = cleared.len_of(Axis(along.axis)) - 1;
                let at = if *end == End::First { 0 } else { last };
                cleared.index_axis_mut(Axis(along.axis), at).fill(0.0);
                cleared
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
            Change::Filled | Change::Without(_) => {
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
                        (Change::Without(_), _, Some(last)) => row[last] = false,
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
            _ => return None,
        })
    }
}

impl Along {
    /// The array, where it has the axis and anything along it.
    fn within<T>(self, array: &ArrayD<T>) -> Option<&ArrayD<T>> {
        (self.axis < array.ndim() && array.len_of(Axis(self.axis)) > 0).then_some(array)
    }
}

impl End {
    fn told(self) -> &'static str {
        match self {
            End::First => "first",
            End::Last => "last",
        }
    }
}

impl Function {
    pub(crate) const ALL: [Function; 14] = [
        Function::Absolute,
        Function::Square,
        Function::Root,
        Function::Reciprocal,
        Function::Exponential,
        Function::Logarithm,
        Function::Logistic,
        Function::Tangent,
        Function::Complement,
        Function::Integer,
        Function::Sign,
        Function::Positive,
        Function::Negative,
        Function::Unit,
    ];

    fn told(self) -> &'static str {
        match self {
            Function::Absolute => "its absolute value",
            Function::Square => "its square",
            Function::Root => "its square root",
            Function::Reciprocal => "its reciprocal",
            Function::Exponential => "its exponential",
            Function::Logarithm => "its logarithm",
            Function::Logistic => "its sigmoid",
            Function::Tangent => "its hyperbolic tangent",
            Function::Complement => "1 minus what it is",
            Function::Integer => "cut to an integer",
            Function::Sign => "its sign",
            Function::Positive => "0 where it is negative",
            Function::Negative => "0 where it is positive",
            Function::Unit => "limited to 0 to 1",
        }
    }

    fn of(self, x: f64) -> f64 {
        match self {
            Function::Absolute => x.abs(),
            Function::Square => x * x,
            Function::Root => x.sqrt(),
            Function::Reciprocal => 1.0 / x,
            Function::Exponential => x.exp(),
            Function::Logarithm => x.ln(),
            Function::Logistic => 1.0 / (1.0 + (-x).exp()),
            Function::Tangent => x.tanh(),
            Function::Complement => 1.0 - x,
            Function::Integer => x.trunc(),
            Function::Sign if x == 0.0 => 0.0,
            Function::Sign => x.signum(),
            Function::Positive => x.max(0.0),
            Function::Negative => x.min(0.0),
            Function::Unit => x.clamp(0.0, 1.0),
        }
    }
}

fn reversed<T: Clone>(array: &ArrayD<T>, along: Along) -> Option<ArrayD<T>> {
    let mut reversed = along.within(array)?.clone();
    reversed.invert_axis(Axis(along.axis));
    Some(reversed.as_standard_layout().into_owned())
}

fn repeated(array: &ArrayD<f64>, along: Along, end: End) -> Option<ArrayD<f64>> {
    let axis = Axis(along.axis);
    let length = along.within(array)?.len_of(axis);
    let at = if end == End::First { 0 } else { length - 1 };
    let one = array.slice_axis(axis, Slice::from(at..=at));
    one.broadcast(array.raw_dim()).map(|all| all.to_owned())
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
