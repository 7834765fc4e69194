//! Conventions about masks that several contracts share, and masks as real batches have them.

use crate::value::choice::choice;

choice! {
    /// What the generator may put under the mask.
    pub enum MaskedValues {
        /// Any finite number.
        Finite = "finite",
        /// NaN and infinities too.
        Any = "any",
    }
}

choice! {
    /// What stands at masked positions of an output.
    pub enum MaskedOutput {
        /// 0.
        Zero = "zero",
        /// Anything.
        Any = "any",
    }
}

choice! {
    /// What a reduction over no token gives, or over fewer than a deviation needs.
    pub enum EmptyMask {
        /// 0, with gradients of 0.
        Zero = "zero",
        /// NaN.
        Nan = "nan",
        /// It raises.
        Refuse = "refuse",
        /// Never generated.
        Avoid = "avoid",
    }
}

choice! {
    /// Whether a row without a token counts in the number of rows.
    pub enum EmptyRows {
        /// It does not.
        Skip = "skip",
        /// It does.
        Count = "count",
    }
}

choice! {
    /// What a masked token is to a recursion over time.
    pub enum MaskedTokens {
        /// No transition: the recursion carries over it.
        Skip = "skip",
        /// A step with reward and value 0: time passes.
        Zero = "zero",
    }
}
