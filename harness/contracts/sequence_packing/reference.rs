//! The reference implementation of `sequence-packing`, as a trainer would write it: documents are
//! cut, packed best fit, the longest first, and joined with padding behind them.

use ndarray::Array2;

use super::{
    FirstLabel, Options, Overlong, SequencePackingCase, SequencePackingOutput, Shift,
    SplitPositions, Width,
};

/// A document, or a piece of one.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) tokens: Vec<i64>,
    pub(super) trained: Vec<bool>,
    pub(super) positions: Vec<i64>,
}

impl Document {
    /// Some of its tokens.
    pub(super) fn slice(&self, from: usize, to: usize) -> Document {
        Document {
            tokens: self.tokens[from..to].to_vec(),
            trained: self.trained[from..to].to_vec(),
            positions: self.positions[from..to].to_vec(),
        }
    }

    /// Its labels.
    pub(super) fn labels(&self, options: &Options) -> Vec<i64> {
        let flags = self.tokens.iter().zip(&self.trained);
        let mut labels: Vec<i64> =
            flags.map(|(id, trained)| if *trained { *id } else { options.ignore }).collect();
        if options.first_label == FirstLabel::Ignore {
            labels[0] = options.ignore;
        }
        if options.shift == Shift::Next {
            labels.remove(0);
            labels.push(options.ignore);
        }
        labels
    }
}

/// The documents of each row.
pub(super) type Bins = Vec<Vec<Document>>;

pub(super) fn pack(case: &SequencePackingCase, options: &Options) -> SequencePackingOutput {
    collate(&bins(case, options), options)
}

/// The documents of each row, cut where they have to be.
pub(super) fn bins(case: &SequencePackingCase, options: &Options) -> Bins {
    check(case, options);
    let documents = documents(case);
    if options.cuts_anywhere() {
        return wrapped(documents, options);
    }
    best_fit(documents.iter().flat_map(|document| cut(document, options)).collect(), options)
}

/// Raises where a document is longer than declared.
pub(super) fn check(case: &SequencePackingCase, options: &Options) {
    if options.overlong == Overlong::Refuse {
        let longest = case.lengths.iter().max().copied().unwrap_or(0);
        assert!(longest <= options.capacity, "{longest} tokens exceed {}", options.capacity);
    }
}

/// The documents without their padding.
pub(super) fn documents(case: &SequencePackingCase) -> Vec<Document> {
    let rows = case.tokens.rows().into_iter().zip(case.mask.rows()).zip(&case.lengths);
    rows.map(|((tokens, mask), length)| {
        let length = *length as usize;
        Document {
            tokens: tokens.iter().take(length).copied().collect(),
            trained: mask.iter().take(length).copied().collect(),
            positions: (0..length as i64).collect(),
        }
    })
    .collect()
}

/// What a document becomes that may be too long.
pub(super) fn cut(document: &Document, options: &Options) -> Vec<Document> {
    let (length, capacity) = (document.tokens.len(), options.capacity as usize);
    if length <= capacity {
        return vec![document.clone()];
    }
    match options.overlong {
        Overlong::Truncate => vec![document.slice(0, capacity)],
        _ => {
            let begins = (0..length).step_by(capacity);
            begins.map(|at| piece(document, at, length.min(at + capacity), options)).collect()
        }
    }
}

/// A piece of a document, its positions as declared.
fn piece(document: &Document, from: usize, to: usize, options: &Options) -> Document {
    let mut piece = document.slice(from, to);
    if options.split_positions == SplitPositions::Restart {
        piece.positions = (0..(to - from) as i64).collect();
    }
    piece
}

/// One document behind the other, cut wherever a row is full.
fn wrapped(documents: Vec<Document>, options: &Options) -> Bins {
    let capacity = options.capacity as usize;
    let mut bins: Bins = Vec::new();
    let mut room = 0;
    for document in documents {
        let mut from = 0;
        while from < document.tokens.len() {
            if room == 0 {
                bins.push(Vec::new());
                room = capacity;
            }
            let to = document.tokens.len().min(from + room);
            bins.last_mut().expect("one was opened").push(piece(&document, from, to, options));
            room -= to - from;
            from = to;
        }
    }
    bins
}

/// Each document, the longest first, into the row that it fills best.
pub(super) fn best_fit(mut documents: Vec<Document>, options: &Options) -> Bins {
    documents.sort_by_key(|document| std::cmp::Reverse(document.tokens.len()));
    let mut bins: Vec<(usize, Vec<Document>)> = Vec::new();
    for document in documents {
        let length = document.tokens.len();
        let fitting = bins.iter_mut().filter(|(room, _)| *room >= length);
        match fitting.min_by_key(|(room, _)| *room) {
            Some((room, bin)) => {
                *room -= length;
                bin.push(document);
            }
            None => {
                let room = (options.capacity as usize).saturating_sub(length);
                bins.push((room, vec![document]));
            }
        }
    }
    bins.into_iter().map(|(_, bin)| bin).collect()
}

/// A token of a row: id, segment, position, label.
pub(super) type Token = [i64; 4];

/// The tokens of each row.
pub(super) fn tokens(bins: &Bins, options: &Options) -> Vec<Vec<Token>> {
    let row = |documents: &Vec<Document>| -> Vec<Token> {
        let numbered = (1..).zip(documents);
        let tokens = numbered.flat_map(|(segment, document)| {
            let labels = document.labels(options);
            let ids = document.tokens.iter().zip(&document.positions).zip(labels);
            let tokens = ids.map(|((id, position), label)| [*id, segment, *position, label]);
            tokens.collect::<Vec<Token>>()
        });
        tokens.collect()
    };
    bins.iter().map(row).collect()
}

/// What stands behind the last token of a row.
pub(super) fn padding(options: &Options) -> Token {
    [options.pad, 0, 0, options.ignore]
}

/// Rows of tokens, filled up to one width.
pub(super) fn filled(
    rows: &[Vec<Token>],
    padding: Token,
    options: &Options,
) -> SequencePackingOutput {
    let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = match options.width {
        Width::Capacity => longest.max(options.capacity as usize),
        Width::Needed => longest,
    };
    let arrays: [Array2<i64>; 4] = std::array::from_fn(|output| {
        Array2::from_shape_fn((rows.len(), width), |(row, token)| {
            rows[row].get(token).unwrap_or(&padding)[output]
        })
    });
    arrays.into()
}

/// The documents of each row as arrays.
pub(super) fn collate(bins: &Bins, options: &Options) -> SequencePackingOutput {
    filled(&tokens(bins, options), padding(options), options)
}
