//! A forward pass over packed rows: documents stand one behind the other, and no token is padding.

use shakedown::contracts::sequence_packing::{Options, Overlong, Width};
use tch::{Kind, Tensor};

use crate::sequence_packing::sequence_packing;

/// What a model sees of packed rows, each `[B, L]`.
#[derive(Debug)]
pub struct Rows {
    /// The tokens, 0 at padding.
    pub tokens: Tensor,
    /// Their positions in their documents.
    pub positions: Tensor,
    /// 1, 2, … for the documents of a row, 0 at padding; attention stays within one.
    pub segments: Tensor,
}

/// The logits that a model gives on packed rows, put back where the tokens stood; differentiable.
///
/// # Shapes
/// `N` completions of `T` tokens: tokens and mask `[N, T]`; the model gives `[B, L, V]` for its
/// rows, and the result is `[N, T, V]`, 0 behind the last token of a completion.
///
/// # Units
/// Those of the model.
///
/// # Errors
/// Panics if a completion is longer than `capacity`.
///
/// # Source
/// The padding-free batches of TRL and slime.
pub fn packed_logits(
    tokens: &Tensor,
    mask: &Tensor,
    capacity: i64,
    model: &dyn Fn(&Rows) -> Tensor,
) -> Tensor {
    let [rows, width] = tokens.size()[..] else { panic!("tokens are [N, T]") };
    let columns = Tensor::arange(width, (Kind::Int64, tokens.device()));
    let lengths = columns.where_scalarother(mask, 0).amax([1], false) + 1;
    // What is packed is where each token stood.
    let places = Tensor::arange(rows * width, (Kind::Int64, tokens.device())).view([rows, width]);
    let options = Options {
        capacity,
        width: Width::Needed,
        overlong: Overlong::Refuse,
        ..Options::default()
    };
    let packed = sequence_packing(&places, &lengths, mask, &options);
    let is_token = packed.segments.gt(0).flatten(0, -1);
    let logits = model(&Rows {
        tokens: tokens.take(&packed.packed) * packed.segments.gt(0),
        positions: packed.positions,
        segments: packed.segments,
    });
    let given = logits.flatten(0, 1).index_select(0, &is_token.nonzero().squeeze_dim(1));
    let stood = packed.packed.flatten(0, -1).masked_select(&is_token);
    let vocabulary = given.size()[1];
    let nothing = given.new_zeros([rows * width, vocabulary], (given.kind(), given.device()));
    nothing.index_copy(0, &stood, &given).view([rows, width, vocabulary])
}
