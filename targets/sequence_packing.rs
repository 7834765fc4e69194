//! `sequence-packing` on tensors: documents cut, packed best fit, joined and filled up.

use shakedown::author::Component;
use shakedown::contracts::sequence_packing as contract;
use shakedown::contracts::sequence_packing::{
    FirstLabel, Options, Overlong, SequencePackingOutput, Shift, SplitPositions, Width,
};
use shakedown_tch::tch;
use tch::{Kind, Tensor};

/// The function below as a component.
pub fn component(options: Options) -> impl Component<contract::SequencePacking> {
    tch::<contract::SequencePacking>(move |case| {
        let Packed { packed, segments, positions, labels } =
            sequence_packing(&case.tokens, &case.lengths, &case.mask, &options);
        SequencePackingOutput { packed, segments, positions: Some(positions), labels: Some(labels) }
    })
}

/// Rows of documents.
#[derive(Debug)]
pub struct Packed {
    /// `[B, L]`: the ids.
    pub packed: Tensor,
    /// `[B, L]`: 1, 2, … for the documents of a row, 0 at padding.
    pub segments: Tensor,
    /// `[B, L]`: the positions in the documents.
    pub positions: Tensor,
    /// `[B, L]`: the labels.
    pub labels: Tensor,
}

/// A document, or a piece of one: views of its tokens.
struct Document {
    tokens: Tensor,
    labels: Tensor,
    positions: Tensor,
}

/// Packs documents into rows of `capacity` tokens.
///
/// # Shapes
/// `N` documents of at most `T` tokens: tokens and mask `[N, T]`, lengths `[N]`; the results
/// `[B, L]`.
///
/// # Units
/// Lengths and the capacity are tokens.
///
/// # Panics
/// If a document is longer than the capacity, with `overlong: refuse`.
///
/// # Source
/// TRL `pack_dataset` (`bfd`, `bfd_split`, `wrapped`) and its padding-free collator.
pub fn sequence_packing(
    tokens: &Tensor,
    lengths: &Tensor,
    mask: &Tensor,
    options: &Options,
) -> Packed {
    let capacity = options.capacity;
    let labels = tokens.where_self(mask, &tokens.full_like(options.ignore));
    let wrapped = options.overlong == Overlong::Split && options.cut == contract::Cut::Anywhere;
    let lengths: Vec<i64> =
        Vec::try_from(lengths.to_kind(Kind::Int64)).expect("lengths have one axis");
    let mut rows: Vec<(i64, Vec<Document>)> = Vec::new();
    let mut pieces = Vec::new();
    for (document, length) in (0..).zip(lengths) {
        let fits = length <= capacity || options.overlong != Overlong::Refuse;
        assert!(fits, "{length} tokens exceed {capacity}");
        let kept = match options.overlong {
            Overlong::Truncate => length.min(capacity),
            _ => length,
        };
        let (ids, labels) = (tokens.get(document), labels.get(document));
        let mut from = 0;
        while from < kept {
            // What is left of the last row, where documents go on in the next one.
            let room = match rows.last() {
                Some((room, _)) if wrapped && *room > 0 => *room,
                _ => capacity,
            };
            let to = kept.min(from + room);
            let begin = if options.split_positions == SplitPositions::Any { from } else { 0 };
            let piece = Document {
                tokens: ids.slice(0, from, to, 1),
                labels: labels.slice(0, from, to, 1),
                positions: Tensor::arange_start(
                    begin,
                    begin + to - from,
                    (Kind::Int64, tokens.device()),
                ),
            };
            if wrapped {
                put(&mut rows, piece, capacity);
            } else {
                pieces.push(piece);
            }
            from = to;
        }
    }
    pieces.sort_by_key(|piece| std::cmp::Reverse(piece.tokens.size()[0]));
    pieces.into_iter().for_each(|piece| put(&mut rows, piece, capacity));
    joined(&rows, options)
}

/// Puts a document into the row that it fills best; a new one, where it fits into none.
fn put(rows: &mut Vec<(i64, Vec<Document>)>, document: Document, capacity: i64) {
    let length = document.tokens.size()[0];
    let fitting = rows.iter_mut().filter(|(room, _)| *room >= length);
    match fitting.min_by_key(|(room, _)| *room) {
        Some((room, documents)) => {
            *room -= length;
            documents.push(document);
        }
        None => rows.push((capacity - length, vec![document])),
    }
}

/// Rows as tensors, filled up to one width.
fn joined(rows: &[(i64, Vec<Document>)], options: &Options) -> Packed {
    let longest = rows.iter().map(|(room, _)| options.capacity - room).max().unwrap_or(0);
    let width = if options.width == Width::Needed { longest } else { options.capacity };
    let stacked = |of: &dyn Fn(i64, &Document) -> Tensor, fill: i64| {
        let rows = rows.iter().map(|(_, documents)| {
            let parts: Vec<Tensor> = (1..).zip(documents).map(|(n, one)| of(n, one)).collect();
            let row = Tensor::cat(&parts, 0);
            let padding = Tensor::full([width - row.size()[0]], fill, (row.kind(), row.device()));
            Tensor::cat(&[row, padding], 0)
        });
        Tensor::stack(&rows.collect::<Vec<_>>(), 0)
    };
    Packed {
        packed: stacked(&|_, one| one.tokens.shallow_clone(), options.pad),
        segments: stacked(&|segment, one| one.tokens.full_like(segment), 0),
        positions: stacked(&|_, one| one.positions.shallow_clone(), 0),
        labels: stacked(&|_, one| labelled(&one.labels, options), options.ignore),
    }
}

/// The labels of a document: the first one taken out, and moved to the token before.
fn labelled(labels: &Tensor, options: &Options) -> Tensor {
    let none = labels.slice(0, 0, 1, 1).full_like(options.ignore);
    let rest = labels.slice(0, 1, None, 1);
    match (options.shift, options.first_label) {
        (Shift::Next, _) => Tensor::cat(&[rest, none], 0),
        (Shift::None, FirstLabel::Ignore) => Tensor::cat(&[none, rest], 0),
        (Shift::None, FirstLabel::Keep) => labels.shallow_clone(),
    }
}
