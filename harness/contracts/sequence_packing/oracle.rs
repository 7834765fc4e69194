//! The definition of `sequence-packing`: of which pieces the rows are made, whatever their order.

use super::{FirstLabel, Options, Overlong, SequencePackingCase, Shift};

/// A segment that must be there: a document, or one of its declared pieces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    /// Its document.
    pub(super) document: usize,
    /// At which position of its document it begins.
    pub(super) begin: usize,
    /// Its ids.
    pub(super) tokens: Vec<i64>,
    /// Its labels.
    pub(super) labels: Vec<i64>,
}

/// The pieces of all documents. Where it is open where they are cut, they are one each.
pub(super) fn pieces(case: &SequencePackingCase, options: &Options) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (document, length) in case.lengths.iter().enumerate() {
        let length = *length as usize;
        let longest = options.capacity as usize;
        let (kept, step) = match options.overlong {
            Overlong::Truncate => (length.min(longest), longest),
            Overlong::Split if !options.cuts_anywhere() => (length, longest),
            _ => (length, length),
        };
        for begin in (0..kept).step_by(step) {
            let places = begin..kept.min(begin + step);
            pieces.push(Piece {
                document,
                begin,
                tokens: places.clone().map(|t| case.tokens[[document, t]]).collect(),
                labels: places
                    .clone()
                    .map(|token| label(case, options, document, token, &places))
                    .collect(),
            });
        }
    }
    pieces
}

/// The label at a token of a piece: that of the token itself or of the one behind it, where there
/// is one and it is trained.
fn label(
    case: &SequencePackingCase,
    options: &Options,
    document: usize,
    token: usize,
    piece: &std::ops::Range<usize>,
) -> i64 {
    let told = match options.shift {
        Shift::None => token,
        Shift::Next => token + 1,
    };
    let first = told == piece.start && options.first_label == FirstLabel::Ignore;
    if piece.contains(&told) && !first && case.mask[[document, told]] {
        case.tokens[[document, told]]
    } else {
        options.ignore
    }
}

/// How many tokens all rows hold together.
pub(super) fn total(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.tokens.len()).sum()
}

/// More rows than this are made by no packing: of two neighbours that hold no more than one row
/// does, the second would stand in the first.
pub(super) fn most_rows(tokens: usize, options: &Options) -> usize {
    2 * tokens.div_ceil(options.capacity as usize)
}

#[cfg(test)]
mod tests {
    use ndarray::{arr1, arr2};

    use super::super::Cut;
    use super::*;

    fn pieces_of(options: &Options) -> Vec<(usize, Vec<i64>, Vec<i64>)> {
        let case = SequencePackingCase {
            tokens: arr2(&[[5, 6, 7, 8, 9], [4, 0, 0, 0, 0]]),
            lengths: arr1(&[5, 1]),
            mask: arr2(&[[false, true, true, true, true], [true, false, false, false, false]]),
        };
        let pieces = pieces(&case, options).into_iter();
        pieces.map(|piece| (piece.begin, piece.tokens, piece.labels)).collect()
    }

    #[test]
    fn overlong_documents_are_cut_as_declared() {
        let options = Options { capacity: 3, ignore: -1, ..Options::default() };
        let truncated = Options { overlong: Overlong::Truncate, ..options.clone() };
        let expected = [(0, vec![5, 6, 7], vec![-1, 6, 7]), (0, vec![4], vec![4])];
        assert_eq!(pieces_of(&truncated), expected);
        let split = Options {
            overlong: Overlong::Split,
            first_label: FirstLabel::Ignore,
            ..options.clone()
        };
        let expected = [
            (0, vec![5, 6, 7], vec![-1, 6, 7]),
            (3, vec![8, 9], vec![-1, 9]),
            (0, vec![4], vec![-1]),
        ];
        assert_eq!(pieces_of(&split), expected);
        // Where it is open where they are cut.
        let anywhere = Options { overlong: Overlong::Split, cut: Cut::Anywhere, ..options.clone() };
        let expected = [(0, vec![5, 6, 7, 8, 9], vec![-1, 6, 7, 8, 9]), (0, vec![4], vec![4])];
        assert_eq!(pieces_of(&anywhere), expected);
    }

    #[test]
    fn a_shifted_label_is_that_of_the_next_token_and_never_of_another_document() {
        let options = Options { shift: Shift::Next, ..Options::default() };
        let expected = [(0, vec![5, 6, 7, 8, 9], vec![6, 7, 8, 9, -100]), (0, vec![4], vec![-100])];
        assert_eq!(pieces_of(&options), expected);
    }

    #[test]
    fn two_neighbours_hold_more_than_one_row_does() {
        let options = Options { capacity: 3, ..Options::default() };
        assert_eq!([6, 7, 9].map(|tokens| most_rows(tokens, &options)), [4, 6, 6]);
    }
}
