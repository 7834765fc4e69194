//! Functions of one number that stand by mistake around an input, a term or a result.

use crate::value::text::number;

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "`told` says what each is")]
pub enum Function {
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
    Nearest,
    Sign,
    Positive,
    Negative,
    /// No number below the first, or above the second; either may be infinite.
    Limited(f64, f64),
}

impl Function {
    /// Those without a number of their own, and the limits 0 and 1.
    pub const ALL: [Function; 15] = [
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
        Function::Nearest,
        Function::Sign,
        Function::Positive,
        Function::Negative,
        Function::Limited(0.0, 1.0),
    ];

    /// Limits of this size: on both sides, above, below.
    pub fn limits(limit: f64) -> [Function; 3] {
        let (least, most) = (f64::NEG_INFINITY, f64::INFINITY);
        [(-limit, limit), (least, limit), (-limit, most)]
            .map(|(least, most)| Function::Limited(least, most))
    }

    /// What is said of it: "as if the input `x` were …".
    pub fn told(self) -> String {
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
            Function::Nearest => "rounded to an integer",
            Function::Sign => "its sign",
            Function::Positive => "0 where it is negative",
            Function::Negative => "0 where it is positive",
            Function::Limited(f64::NEG_INFINITY, most) => {
                return format!("{} at the most", number(most));
            }
            Function::Limited(least, f64::INFINITY) => {
                return format!("{} at the least", number(least));
            }
            Function::Limited(least, most) => {
                return format!("limited to {} to {}", number(least), number(most));
            }
        }
        .to_owned()
    }

    /// Of a number. NaN stays, as in every library.
    pub fn of(self, x: f64) -> f64 {
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
            // Halves to the even one, as numpy and torch do.
            Function::Nearest => x.round_ties_even(),
            Function::Sign if x == 0.0 => 0.0,
            Function::Sign => x.signum(),
            Function::Positive => Function::Limited(0.0, f64::INFINITY).of(x),
            Function::Negative => Function::Limited(f64::NEG_INFINITY, 0.0).of(x),
            Function::Limited(least, most) => x.clamp(least, most),
        }
    }

    /// Its slope at a number, as autograd has it: 0 beyond a limit and for whole numbers.
    pub fn slope(self, x: f64) -> f64 {
        match self {
            Function::Absolute => Function::Sign.of(x),
            Function::Square => 2.0 * x,
            Function::Root => 0.5 / x.sqrt(),
            Function::Reciprocal => -1.0 / (x * x),
            Function::Exponential => x.exp(),
            Function::Logarithm => 1.0 / x,
            Function::Logistic => self.of(x) * self.of(-x),
            Function::Tangent => 1.0 - x.tanh().powi(2),
            Function::Complement => -1.0,
            Function::Integer | Function::Nearest | Function::Sign => 0.0,
            Function::Positive => f64::from(x > 0.0),
            Function::Negative => f64::from(x < 0.0),
            Function::Limited(least, most) => f64::from(least <= x && x <= most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_what_the_function_rises_by() {
        let limits = [Function::Limited(-1.0, 0.5), Function::Limited(f64::NEG_INFINITY, 2.0)];
        for function in Function::ALL.into_iter().chain(limits) {
            // Between the points at which some of them break off.
            for x in [0.3, 0.7, 1.2, 3.1] {
                let h = 1e-6;
                let rise = (function.of(x + h) - function.of(x - h)) / (2.0 * h);
                let slope = function.slope(x);
                assert!((rise - slope).abs() < 1e-6 * (1.0 + slope.abs()), "{function:?} at {x}");
            }
        }
        assert_eq!(Function::Absolute.slope(-2.0), -1.0);
        assert_eq!([Function::Positive, Function::Negative].map(|one| one.slope(-2.0)), [0.0, 1.0]);
    }
}
