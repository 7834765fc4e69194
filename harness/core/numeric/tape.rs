//! A tape: numbers that remember how they were made, so that faults and references get their
//! gradients as code in a training repository gets them.
//!
//! Every operation rounds to the arithmetic of the tape. A mistake in a formula then has the
//! gradient that follows from the mistake, and one in the graph (a number detached, or not) is
//! written as it was in the real code.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::rc::Rc;

use ndarray::{Array, Dimension};

use crate::numeric::terms::{Scope, TermChange};
use crate::value::place::Dtype;

/// The operations so far: for each number up to two parents and the derivatives by them.
pub struct Tape {
    arithmetic: Dtype,
    nodes: RefCell<Vec<[(u32, f64); 2]>>,
    /// What becomes of terms, where a diagnosis asks.
    scope: Option<Rc<Scope>>,
}

/// No parent.
const NOBODY: (u32, f64) = (u32::MAX, 0.0);

/// A number on a tape.
#[derive(Clone, Copy)]
pub struct Var<'t> {
    tape: &'t Tape,
    node: u32,
    /// The number itself.
    pub value: f64,
}

impl Tape {
    /// An empty tape that computes as the dtype does: half formats in f32.
    pub fn new(dtype: Dtype) -> Tape {
        let scope = Scope::current();
        Tape { arithmetic: dtype.arithmetic(), nodes: RefCell::default(), scope }
    }

    fn push(&self, value: f64, parents: [(u32, f64); 2]) -> Var<'_> {
        let mut nodes = self.nodes.borrow_mut();
        let node = u32::try_from(nodes.len()).expect("a case makes few numbers");
        nodes.push(parents);
        Var { tape: self, node, value: self.arithmetic.round(value) }
    }

    /// A number that depends on nothing.
    pub fn constant(&self, value: f64) -> Var<'_> {
        self.push(value, [NOBODY; 2])
    }

    /// An array of numbers, of which gradients may be taken.
    pub fn leaf<D: Dimension>(&self, values: &Array<f64, D>) -> Array<Var<'_>, D> {
        values.map(|value| self.constant(*value))
    }

    /// The sum of some numbers, 0 of none.
    pub fn sum<'t>(&'t self, numbers: impl IntoIterator<Item = Var<'t>>) -> Var<'t> {
        numbers.into_iter().reduce(|a, b| a + b).unwrap_or_else(|| self.constant(0.0))
    }

    /// The gradient of `of` by each element of a leaf.
    pub fn gradient<D: Dimension>(&self, of: Var<'_>, leaf: &Array<Var<'_>, D>) -> Array<f64, D> {
        let nodes = self.nodes.borrow();
        let mut adjoints: Vec<Option<f64>> = vec![None; nodes.len()];
        adjoints[of.node as usize] = Some(1.0);
        for node in (0..=of.node as usize).rev() {
            // As in autograd an adjoint of 0 is passed on too: 0 · ∞ is NaN.
            let Some(adjoint) = adjoints[node] else { continue };
            for (parent, derivative) in nodes[node] {
                if let Some(sum) = adjoints.get_mut(parent as usize) {
                    *sum = Some(sum.unwrap_or(0.0) + adjoint * derivative);
                }
            }
        }
        leaf.map(|var| self.arithmetic.round(adjoints[var.node as usize].unwrap_or(0.0)))
    }
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tape({} numbers)", self.nodes.borrow().len())
    }
}

impl fmt::Debug for Var<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value)
    }
}

impl<'t> Var<'t> {
    fn one(self, value: f64, derivative: f64) -> Var<'t> {
        self.tape.push(value, [(self.node, derivative), NOBODY])
    }

    fn two(self, other: Var<'t>, value: f64, own: f64, others: f64) -> Var<'t> {
        self.tape.push(value, [(self.node, own), (other.node, others)])
    }

    /// The same number, with no memory of how it was made.
    pub fn detach(self) -> Var<'t> {
        self.tape.constant(self.value)
    }

    /// The same number under a name from the field, `KL penalty`: what a diagnosis may change. See
    /// [`terms`](crate::numeric::terms).
    pub fn term(self, name: &'static str) -> Var<'t> {
        match self.tape.scope.as_ref().and_then(|scope| scope.change_of(name)) {
            None => self,
            // 0·∞ would be NaN, and what is missing is not.
            Some(TermChange::Times(0.0)) => self.tape.constant(0.0),
            Some(TermChange::Times(factor)) => self * factor,
            Some(TermChange::Through(function)) => {
                let value = self.tape.arithmetic.round(function.of(self.value));
                self.one(value, function.slope(self.value))
            }
            Some(TermChange::Detached) => self.detach(),
        }
    }

    /// The exponential.
    pub fn exp(self) -> Var<'t> {
        let value = self.tape.arithmetic.round(self.value.exp());
        self.one(value, value)
    }

    /// The natural logarithm.
    pub fn ln(self) -> Var<'t> {
        self.one(self.value.ln(), 1.0 / self.value)
    }

    /// The square root.
    pub fn sqrt(self) -> Var<'t> {
        let root = self.value.sqrt();
        self.one(root, 0.5 / root)
    }

    /// The magnitude; its derivative at 0 is 0.
    pub fn abs(self) -> Var<'t> {
        let sign = if self.value == 0.0 { 0.0 } else { self.value.signum() };
        self.one(self.value.abs(), sign)
    }

    /// The larger one; equal ones share the derivative.
    pub fn max(self, other: Var<'t>) -> Var<'t> {
        let own = f64::from(self.value >= other.value);
        let others = f64::from(other.value >= self.value);
        let value = if self.value >= other.value { self.value } else { other.value };
        self.two(other, value, own / (own + others).max(1.0), others / (own + others).max(1.0))
    }

    /// The smaller one; equal ones share the derivative.
    pub fn min(self, other: Var<'t>) -> Var<'t> {
        -(-self).max(-other)
    }

    /// Kept between two bounds; the derivative is 0 beyond them.
    pub fn clamp(self, lo: f64, hi: f64) -> Var<'t> {
        let inside = (lo..=hi).contains(&self.value);
        let value = if self.value < lo {
            lo
        } else if self.value > hi {
            hi
        } else {
            self.value
        };
        self.one(value, f64::from(inside))
    }
}

impl<'t> Neg for Var<'t> {
    type Output = Var<'t>;

    fn neg(self) -> Var<'t> {
        self.one(-self.value, -1.0)
    }
}

impl<'t> Add for Var<'t> {
    type Output = Var<'t>;

    fn add(self, other: Var<'t>) -> Var<'t> {
        self.two(other, self.value + other.value, 1.0, 1.0)
    }
}

impl<'t> Sub for Var<'t> {
    type Output = Var<'t>;

    fn sub(self, other: Var<'t>) -> Var<'t> {
        self.two(other, self.value - other.value, 1.0, -1.0)
    }
}

impl<'t> Mul for Var<'t> {
    type Output = Var<'t>;

    fn mul(self, other: Var<'t>) -> Var<'t> {
        self.two(other, self.value * other.value, other.value, self.value)
    }
}

impl<'t> Div for Var<'t> {
    type Output = Var<'t>;

    fn div(self, other: Var<'t>) -> Var<'t> {
        let value = self.value / other.value;
        self.two(other, value, 1.0 / other.value, -value / other.value)
    }
}

impl<'t> Add<f64> for Var<'t> {
    type Output = Var<'t>;

    fn add(self, other: f64) -> Var<'t> {
        self.one(self.value + other, 1.0)
    }
}

impl<'t> Sub<f64> for Var<'t> {
    type Output = Var<'t>;

    fn sub(self, other: f64) -> Var<'t> {
        self.one(self.value - other, 1.0)
    }
}

impl<'t> Mul<f64> for Var<'t> {
    type Output = Var<'t>;

    fn mul(self, other: f64) -> Var<'t> {
        self.one(self.value * other, other)
    }
}

impl<'t> Div<f64> for Var<'t> {
    type Output = Var<'t>;

    fn div(self, other: f64) -> Var<'t> {
        self.one(self.value / other, 1.0 / other)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::arr1;

    use super::*;

    #[test]
    fn gradients_are_those_of_central_differences() {
        fn f<'t>(x: Var<'t>, y: Var<'t>) -> Var<'t> {
            let ratio = (x - y).exp() / (x * x + 1.0);
            (ratio * y.abs()).max(x) + (ratio + 2.0).ln() + (y * y).sqrt().min(x * 3.0) - -y
        }
        let at = |x: f64, y: f64| {
            let tape = Tape::new(Dtype::F64);
            let leaf = tape.leaf(&arr1(&[x, y]));
            let result = f(leaf[0], leaf[1]);
            (result.value, tape.gradient(result, &leaf))
        };
        for (x, y) in [(0.3, -1.2), (1.5, 0.4), (-0.7, 2.0)] {
            let step = 1e-6;
            let (_, gradient) = at(x, y);
            let by_x = (at(x + step, y).0 - at(x - step, y).0) / (2.0 * step);
            let by_y = (at(x, y + step).0 - at(x, y - step).0) / (2.0 * step);
            assert!((gradient[0] - by_x).abs() < 1e-6, "{gradient} {by_x}");
            assert!((gradient[1] - by_y).abs() < 1e-6, "{gradient} {by_y}");
        }
    }

    #[test]
    fn a_detached_number_has_no_gradient_and_clamped_ones_stop() {
        let tape = Tape::new(Dtype::F32);
        let leaf = tape.leaf(&arr1(&[2.0, 3.0]));
        let result = leaf[0].detach() * leaf[0] + leaf[1].clamp(0.0, 1.0);
        assert_eq!(result.value, 5.0);
        assert_eq!(tape.gradient(result, &leaf), arr1(&[2.0, 0.0]));
    }

    #[test]
    fn the_arithmetic_is_that_of_the_dtype() {
        let tape = Tape::new(Dtype::Bf16);
        assert_eq!((tape.constant(1.0) + 1e-9).value, 1.0);
        assert!(tape.constant(100.0).exp().value.is_infinite());
    }
}
