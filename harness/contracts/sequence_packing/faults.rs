//! The faults of `sequence-packing`: real bugs, and conventions mistaken for others.

use ndarray::Array2;

use super::reference::{self, Bins, Document, Token};
use super::{
    Cut, FirstLabel, Options, Overlong, SequencePacking, SequencePackingCase,
    SequencePackingOutput, Shift, Width,
};

type Fault = shakedown_core::contract::fault::Fault<SequencePacking>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [documents(), overlong(), boundaries(), places(), masks(), shifts(), rows()];
    themes.into_iter().flatten().collect()
}

/// Rows of four tokens.
const NARROW: &str = "{capacity: 4}";

/// Long documents are cut into pieces.
const SPLIT: &str = "{capacity: 3, overlong: split}";

/// Documents that are not there once, or not token for token.
fn documents() -> Vec<Fault> {
    vec![
        Fault::new("separator-inserted", "an end token stands behind every document")
            .seen("plausible: the separator of pre-training recipes, added after the packing")
            .gives(&[|case, options, _| {
                laid_out(case, options, |tokens| {
                    let mut row = Vec::new();
                    for (at, token) in tokens.iter().enumerate() {
                        row.push(*token);
                        let ends = tokens.get(at + 1).is_none_or(|next| next[1] != token[1]);
                        if ends {
                            row.push([2, token[1], token[2] + 1, options.ignore]);
                        }
                    }
                    row
                })
            }]),
        Fault::new("equal-documents-once", "a document that was there already is left out")
            .seen("plausible: a set of documents, against duplicates")
            .gives(&[|case, options, _| {
                let mut once: Vec<Document> = Vec::new();
                for document in reference::documents(case) {
                    if once.iter().all(|other| other.tokens != document.tokens) {
                        once.push(document);
                    }
                }
                reference::check(case, options);
                let cut = once.iter().flat_map(|one| reference::cut(one, options)).collect();
                reference::collate(&reference::best_fit(cut, options), options)
            }]),
        Fault::new("last-row-dropped", "the row that is not full in the end is left out")
            .seen("plausible: `drop_last`, or a buffer that is never flushed")
            .under(NARROW)
            .gives(&[|case, options, _| {
                packed(case, options, |bins| {
                    if bins.len() > 1 {
                        bins.pop();
                    }
                })
            }]),
        Fault::new("row-dropped-when-full", "a row that is exactly full is not yielded")
            .seen("plausible: `if room > 0` around the line that appends the row")
            .under(NARROW)
            .gives(&[|case, options, _| {
                packed(case, options, |bins| {
                    let full = |bin: &Vec<Document>| tokens(bin) == options.capacity as usize;
                    if bins.iter().any(|bin| !full(bin)) {
                        bins.retain(|bin| !full(bin));
                    }
                })
            }]),
        Fault::new("last-document-dropped", "the last document of a row is left out")
            .seen("plausible: slices between cumulative lengths, of which the last is missing")
            .gives(&[|case, options, _| {
                packed(case, options, |bins| {
                    for bin in bins.iter_mut().filter(|bin| bin.len() > 1) {
                        bin.pop();
                    }
                })
            }]),
        Fault::new(
            "a-document-twice",
            "the document that opens a row stands in the one before too, in place of the last",
        )
        .seen("plausible: it is added before it is found not to fit, and not taken back")
        .under(NARROW)
        .gives(&[|case, options, _| {
            packed(case, options, |bins| {
                for row in 1..bins.len() {
                    let first = bins[row][0].clone();
                    let before = &mut bins[row - 1];
                    let last = before.pop().expect("a row has a document");
                    let fits = tokens(before) + first.tokens.len() <= options.capacity as usize;
                    before.push(if fits { first } else { last });
                }
            })
        }]),
        Fault::new("padding-packed-too", "documents are packed with the padding of their batch")
            .seen("plausible: rows of the padded tensor, not their first `lengths` tokens")
            .gives(&[|case, options, _| {
                let mut case = case.clone();
                let width = case.tokens.ncols() as i64;
                case.lengths.fill(width.min(options.capacity));
                reference::pack(&case, options)
            }]),
        Fault::new("pads-dropped-inside", "ids equal to the pad are left out, wherever they stand")
            .seen("plausible: tokens[tokens != pad] for tokens[:length]")
            .gives(&[|case, options, _| {
                packed(case, options, |bins| {
                    for document in bins.iter_mut().flatten() {
                        let kept: Vec<usize> = (0..document.tokens.len())
                            .filter(|at| document.tokens[*at] != options.pad)
                            .collect();
                        if !kept.is_empty() {
                            let of = |at: &usize| document.tokens[*at];
                            let trained = |at: &usize| document.trained[*at];
                            *document = Document {
                                tokens: kept.iter().map(of).collect(),
                                trained: kept.iter().map(trained).collect(),
                                positions: (0..kept.len() as i64).collect(),
                            };
                        }
                    }
                })
            }]),
        Fault::new("one-token-short", "the last token of each document is left out")
            .seen("plausible: tokens[:-1] of a language model's inputs, and no labels beside them")
            .gives(&[|case, options, _| {
                packed(case, options, |bins| {
                    for document in bins.iter_mut().flatten() {
                        let length = document.tokens.len();
                        if length > 1 {
                            *document = document.slice(0, length - 1);
                        }
                    }
                })
            }]),
    ]
}

/// Documents that are longer than a row.
fn overlong() -> Vec<Fault> {
    const TRUNCATE: &str = "{capacity: 3, overlong: truncate}";
    vec![
        Fault::new("split-pieces-lost", "a document that was cut into pieces is left out")
            .seen("ms-swift #9771 (47635172e)")
            .under(SPLIT)
            .gives(&[|case, options, _| {
                let documents = reference::documents(case);
                let short =
                    |document: &Document| (document.tokens.len() as i64) <= options.capacity;
                let kept = documents.iter().filter(|one| short(one)).cloned();
                let mut kept: Vec<Document> = kept.collect();
                if kept.is_empty() {
                    kept.extend(reference::cut(&documents[0], options).into_iter().take(1));
                }
                reference::collate(&reference::best_fit(kept, options), options)
            }]),
        Fault::new("truncated-on-the-left", "the last tokens of a long document are kept")
            .seen("plausible: truncation_side of a tokenizer for generation")
            .under(TRUNCATE)
            .gives(&[|case, options, _| {
                pieces(case, options, |document| {
                    let length = document.tokens.len();
                    let from = length.saturating_sub(options.capacity as usize);
                    let mut kept = document.slice(from, length);
                    kept.positions = (0..kept.tokens.len() as i64).collect();
                    vec![kept]
                })
            }]),
        Fault::new(
            "truncated-one-short",
            "a long document is cut at one token less than a row holds",
        )
        .seen("plausible: room for an end token that is never added")
        .under(TRUNCATE)
        .gives(&[|case, options, _| {
            pieces(case, options, |document| {
                let longest = options.capacity as usize;
                let length = document.tokens.len();
                let kept = if length > longest { longest.max(2) - 1 } else { length };
                vec![document.slice(0, kept)]
            })
        }]),
        Fault::new("rest-dropped", "the last piece of a document is left out where it is not full")
            .seen("plausible: length // capacity pieces, as in the `group_texts` of examples")
            .under(SPLIT)
            .gives(&[|case, options, _| {
                pieces(case, options, |document| {
                    let mut pieces = reference::cut(document, options);
                    let short = |piece: &Document| piece.tokens.len() < options.capacity as usize;
                    if pieces.len() > 1 && pieces.last().is_some_and(short) {
                        pieces.pop();
                    }
                    pieces
                })
            }]),
        Fault::new("truncated-though-split", "only the first piece of a long document is kept")
            .seen("an option without effect: TRL's `bfd` and `bfd_split` taken for each other")
            .under(SPLIT)
            .as_if(&[|options| Options { overlong: Overlong::Truncate, ..options }]),
        Fault::new("split-though-truncated", "what is cut off becomes a document of its own")
            .seen("an option without effect: TRL's `bfd` and `bfd_split` taken for each other")
            .under(TRUNCATE)
            .as_if(&[|options| Options {
                overlong: Overlong::Split,
                cut: Cut::Capacity,
                ..options
            }]),
        Fault::new("cut-anywhere", "documents are cut wherever a row is full, also short ones")
            .seen("TRL's `wrapped`, where `bfd_split` is declared")
            .under(SPLIT)
            .as_if(&[|options| Options { cut: Cut::Anywhere, ..options }]),
        Fault::new(
            "longest-document-packed-uncut",
            "a long document is a row of its own, as long as it is",
        )
        .seen("plausible: an option without effect, and rows filled up to the longest")
        .under(SPLIT)
        .gives(&[|case, options, _| pieces(case, options, |document| vec![document.clone()])]),
        Fault::new(
            "overlong-overwritten",
            "a document that is too long is cut off, and the last token of each is an end",
        )
        .seen("plausible: tokens[:capacity] with tokens[-1] = eos, where an error is declared")
        .under("{capacity: 4, overlong: refuse}")
        .gives(&[|case, options, _| {
            let options = Options { overlong: Overlong::Truncate, ..options.clone() };
            let mut bins = reference::bins(case, &options);
            for document in bins.iter_mut().flatten() {
                if let Some(last) = document.tokens.last_mut() {
                    *last = 2;
                }
            }
            reference::collate(&bins, &options)
        }]),
        Fault::new("full-document-refused", "a document that fills a row is taken for too long")
            .seen("plausible: `assert length < capacity`")
            .under(NARROW)
            .gives(&[|case, options, _| {
                let longest = case.lengths.iter().max().copied().unwrap_or(0);
                assert!(longest < options.capacity, "{longest} tokens are too many");
                reference::pack(case, options)
            }]),
        Fault::new("one-token-documents-refused", "a document of one token is an error")
            .seen("plausible: squeeze() of what is indexed afterwards")
            .gives(&[|case, options, _| {
                let shortest = case.lengths.iter().min().copied().unwrap_or(0);
                assert!(shortest > 1, "iteration over a 0-d tensor");
                reference::pack(case, options)
            }]),
    ]
}

/// Segments that do not tell where a document begins.
fn boundaries() -> Vec<Fault> {
    vec![
        Fault::new("boundary-only-at-zero", "a segment begins where a position is 0")
            .seen("prime-rl #2392 (7d7bd9233)")
            .under("{capacity: 4, overlong: split, split_positions: any}")
            .gives(&[|case, options, _| {
                laid_out(case, options, |tokens| {
                    let mut segment = 0;
                    let numbered = tokens.iter().map(|[id, _, position, label]| {
                        segment += i64::from(*position == 0);
                        [*id, segment, *position, *label]
                    });
                    numbered.collect()
                })
            }]),
        Fault::new("one-segment-for-the-row", "every token of a row is in segment 1")
            .seen("plausible: the attention mask of the padding, returned for the documents")
            .gives(&[|case, options, _| numbered(case, options, |segment, _| segment.min(1))]),
        Fault::new("segments-from-zero", "segments are 0, 1, …, and padding is -1")
            .seen("plausible: enumerate(), where 0 is declared to be padding")
            .gives(&[|case, options, _| numbered(case, options, |segment, _| segment - 1)]),
        Fault::new(
            "padding-is-a-segment",
            "the padding of a row has the number after its last one",
        )
        .seen("plausible: a cumulated sum of boundaries, the last of which is the row's end")
        .gives(&[|case, options, _| {
            let mut output = reference::pack(case, options);
            for mut row in output.segments.rows_mut() {
                let last = row.iter().copied().fold(0.0, f64::max);
                row.iter_mut().filter(|one| **one == 0.0).for_each(|one| *one = last + 1.0);
            }
            output
        }]),
        Fault::new("segments-counted-on", "the first segment of a row follows the last one before")
            .seen("plausible: document ids of the data set, not of the row")
            .under(NARROW)
            .gives(&[|case, options, _| {
                let bins = reference::bins(case, options);
                let mut output = reference::collate(&bins, options);
                let mut before = 0.0;
                for (bin, mut row) in bins.iter().zip(output.segments.rows_mut()) {
                    row.iter_mut().filter(|one| **one > 0.0).for_each(|one| *one += before);
                    before += bin.len() as f64;
                }
                output
            }]),
        Fault::new(
            "one-token-documents-joined",
            "a document of one token belongs to the one before it",
        )
        .seen("plausible: a boundary is where a position falls, and from 0 to 0 it does not")
        .gives(&[|case, options, _| {
            laid_out(case, options, |tokens| {
                let mut segment = 1;
                let mut before: Option<Token> = None;
                let numbered = tokens.iter().map(|token| {
                    segment += i64::from(before.is_some_and(|before| token[2] < before[2]));
                    before = Some(*token);
                    [token[0], segment, token[2], token[3]]
                });
                numbered.collect()
            })
        }]),
        Fault::new("segment-per-parity", "segments are 1, 2, 1, 2, …")
            .seen("plausible: two colours are enough to tell neighbours apart")
            .gives(&[|case, options, _| {
                numbered(case, options, |segment, _| if segment > 0 { 2 - segment % 2 } else { 0 })
            }]),
        Fault::new("boundary-one-late", "the first token of a document belongs to the one before")
            .seen("plausible: cumulative lengths that count an offset of one twice")
            .gives(&[|case, options, _| {
                laid_out(case, options, |tokens| {
                    let mut moved = tokens.to_vec();
                    for at in 1..tokens.len() {
                        moved[at][1] = tokens[at - 1][1];
                    }
                    moved
                })
            }]),
        Fault::new(
            "pieces-in-one-segment",
            "what still fits into a row joins the segment before it",
        )
        .seen("plausible: pieces put together again where they stand in a row, by document")
        .under("{capacity: 4, overlong: split}")
        .gives(&[|case, options, _| {
            // The packer fills each row with one document's pieces before the next's.
            let mut rows: Bins = Vec::new();
            let mut room = 0;
            for document in reference::documents(case) {
                for piece in reference::cut(&document, options) {
                    let length = piece.tokens.len();
                    match rows.last_mut() {
                        Some(row) if length <= room => {
                            room -= length;
                            let last = row.last_mut().expect("a row has a document");
                            last.tokens.extend(piece.tokens);
                            last.trained.extend(piece.trained);
                            let length = last.tokens.len() as i64;
                            last.positions = (0..length).collect();
                        }
                        _ => {
                            room = options.capacity as usize - length;
                            rows.push(vec![piece]);
                        }
                    }
                }
            }
            reference::collate(&rows, options)
        }]),
    ]
}

/// Positions that are not those in the document.
fn places() -> Vec<Fault> {
    vec![
        Fault::new("positions-of-the-first-row", "every row has the positions of the first one")
            .seen("unsloth #1066, #3699, #4100; transformers #22161")
            .under(NARROW)
            .gives(&[|case, options, _| {
                let mut output = reference::pack(case, options);
                if let Some(positions) = &mut output.positions {
                    let first = positions.row(0).to_owned();
                    positions.rows_mut().into_iter().for_each(|mut row| row.assign(&first));
                }
                output
            }]),
        Fault::new("positions-run-on", "positions count through the row, over all documents")
            .seen("plausible: arange(width), as without packing")
            .gives(&[|case, options, _| placed(case, options, |_, at| at as i64)]),
        Fault::new("positions-from-one", "positions of a document begin at 1")
            .seen("plausible: cumsum of the mask, without the - 1")
            .gives(&[|case, options, _| placed(case, options, |token, _| token[2] + 1)]),
        Fault::new(
            "positions-of-the-document",
            "a piece begins where it stands in its document, though positions restart",
        )
        .seen("an option without effect")
        .under(SPLIT)
        .as_if(&[|options| Options { split_positions: super::SplitPositions::Any, ..options }]),
        Fault::new("one-position-for-a-segment", "every token has the position of its segment")
            .seen("plausible: segment ids handed to the model for positions")
            .gives(&[|case, options, _| placed(case, options, |token, _| token[1] - 1)]),
    ]
}

/// Labels of the wrong tokens.
fn masks() -> Vec<Fault> {
    vec![
        Fault::new(
            "mask-starts-one-early",
            "from the second document of a row on, masks begin one token too early",
        )
        .seen("OpenRLHF #781 (7a56f00f)")
        .gives(&[|case, options, _| {
            packed(case, options, |bins| {
                for bin in bins.iter_mut() {
                    for document in bin.iter_mut().skip(1) {
                        document.trained.rotate_left(1);
                    }
                }
            })
        }]),
        Fault::new("mask-ignored", "every token is trained, prompts too")
            .seen("plausible: labels = tokens.clone(); axolotl #1603 loses masks in its collator")
            .gives(&[|case, options, _| {
                retrained(case, options, |document| document.trained.fill(true))
            }]),
        Fault::new("mask-turned-round", "the tokens that are not trained are")
            .seen("plausible: the mask says what to ignore")
            .gives(&[|case, options, _| {
                retrained(case, options, |document| {
                    document.trained.iter_mut().for_each(|trained| *trained = !*trained);
                })
            }]),
        Fault::new("mask-of-the-first-document", "each document is masked as the first of its row")
            .seen("plausible: one prompt length for the row")
            .gives(&[|case, options, _| {
                packed(case, options, |bins| {
                    for bin in bins.iter_mut() {
                        let first = bin[0].trained.clone();
                        for document in bin.iter_mut().skip(1) {
                            for (trained, first) in document.trained.iter_mut().zip(&first) {
                                *trained = *first;
                            }
                        }
                    }
                })
            }]),
        Fault::new(
            "masks-left-in-the-order-of-the-input",
            "documents are sorted by length, their masks are not",
        )
        .seen("plausible: one of two lists sorted; verl #1943 leaves outputs in sorted order")
        .gives(&[|case, options, _| {
            let masks: Vec<Vec<bool>> =
                case.mask.rows().into_iter().map(|row| row.to_vec()).collect();
            let mut documents = reference::documents(case);
            documents.sort_by_key(|document| std::cmp::Reverse(document.tokens.len()));
            for (document, mask) in documents.iter_mut().zip(masks) {
                let length = document.tokens.len();
                document.trained = mask.into_iter().take(length).collect();
            }
            reference::check(case, options);
            let cut = documents.iter().flat_map(|document| reference::cut(document, options));
            reference::collate(&reference::best_fit(cut.collect(), options), options)
        }]),
        Fault::new(
            "pad-ids-not-trained",
            "ids equal to the pad have no label, wherever they stand",
        )
        .seen("transformers DataCollatorForLanguageModeling: labels[labels == pad] = -100")
        .gives(&[|case, options, _| {
            retrained(case, options, |document| {
                for (id, trained) in document.tokens.iter().zip(&mut document.trained) {
                    *trained &= *id != options.pad;
                }
            })
        }]),
        Fault::new("ignore-hard-coded", "nothing is predicted where a label is -100")
            .seen("an option without effect")
            .under("{ignore: -1}")
            .as_if(&[|options| Options { ignore: -100, ..options }]),
        Fault::new(
            "only-what-follows-the-prompt",
            "every token behind the first trained one is trained",
        )
        .seen("plausible: one prompt length for a conversation of several turns")
        .gives(&[|case, options, _| {
            retrained(case, options, |document| {
                let first = document.trained.iter().position(|trained| *trained);
                if let Some(first) = first {
                    document.trained[first..].fill(true);
                }
            })
        }]),
        Fault::new("last-label-lost", "the last token of a document has no label")
            .seen("plausible: the end token taken for padding, as one id is both")
            .gives(&[|case, options, _| {
                retrained(case, options, |document| {
                    if let Some(last) = document.trained.last_mut() {
                        *last = false;
                    }
                })
            }]),
    ]
}

/// Labels that are shifted otherwise than declared.
fn shifts() -> Vec<Fault> {
    const NEXT: &str = "{shift: next}";
    vec![
        Fault::new(
            "label-across-documents",
            "the last token of a document predicts the next one's",
        )
        .seen("torchtune #2613 (b18312c7d)")
        .under(NEXT)
        .gives(&[|case, options, _| {
            let plain = Options { shift: Shift::None, ..options.clone() };
            laid_out_as(case, options, &plain, |tokens| {
                let mut shifted = tokens.to_vec();
                for (at, token) in shifted.iter_mut().enumerate() {
                    token[3] = tokens.get(at + 1).map_or(options.ignore, |next| next[3]);
                }
                shifted
            })
        }]),
        Fault::new("shift-ignored", "a label is that of the token itself, not of the next one")
            .seen("an option without effect")
            .under(NEXT)
            .as_if(&[|options| Options { shift: Shift::None, ..options }]),
        Fault::new("shifted-twice", "a label is that of the token after the next one")
            .seen("plausible: shifted by the collator, and by the loss; slime and torchtune had it")
            .under(NEXT)
            .gives(&[|case, options, _| {
                laid_out(case, options, |tokens| {
                    let mut shifted = tokens.to_vec();
                    for (at, token) in shifted.iter_mut().enumerate() {
                        let next = tokens.get(at + 1).filter(|next| next[1] == token[1]);
                        token[3] = next.map_or(options.ignore, |next| next[3]);
                    }
                    shifted
                })
            }]),
        Fault::new("shifted-the-other-way", "a label is that of the token before")
            .seen("plausible: roll(1) for roll(-1)")
            .under(NEXT)
            .gives(&[|case, options, _| {
                let plain = Options { shift: Shift::None, ..options.clone() };
                laid_out_as(case, options, &plain, |tokens| {
                    let mut shifted = tokens.to_vec();
                    for (at, token) in shifted.iter_mut().enumerate() {
                        let before = at.checked_sub(1).map(|before| tokens[before]);
                        let before = before.filter(|before| before[1] == token[1]);
                        token[3] = before.map_or(options.ignore, |before| before[3]);
                    }
                    shifted
                })
            }]),
        Fault::new("first-label-kept", "the first token of a segment has its label")
            .seen("an option without effect")
            .under("{first_label: ignore}")
            .as_if(&[|options| Options { first_label: FirstLabel::Keep, ..options }]),
        Fault::new("first-label-lost", "the first token of a segment has no label")
            .seen("TRL's padding-free collator, where all labels are declared")
            .as_if(&[|options| Options { first_label: FirstLabel::Ignore, ..options }]),
    ]
}

/// Rows of another width, with other padding, or too many of them.
fn rows() -> Vec<Fault> {
    vec![
        Fault::new("row-of-padding", "behind a row that is exactly full stands one of padding")
            .seen("AReaL #1104 (be621da55)")
            .under(NARROW)
            .gives(&[|case, options, _| {
                packed_rows(case, options, |rows| {
                    let full = |row: &Vec<Token>| row.len() == options.capacity as usize;
                    let more = rows.iter().filter(|row| full(row)).count();
                    rows.extend(vec![Vec::new(); more]);
                })
            }]),
        Fault::new("labels-in-the-padding", "the label at padding is 0")
            .seen("plausible: torch.zeros for the labels; axolotl #1603")
            .gives(&[|case, options, _| {
                let padding = [options.pad, 0, 0, 0];
                filled(case, options, padding)
            }]),
        Fault::new("ids-under-the-padding", "the last id of a row is repeated to its end")
            .seen("plausible: numpy.pad(mode=\"edge\")")
            .gives(&[|case, options, _| {
                let mut output = reference::pack(case, options);
                for (mut ids, segments) in
                    output.packed.rows_mut().into_iter().zip(output.segments.rows())
                {
                    for at in 1..ids.len() {
                        if segments[at] == 0.0 {
                            ids[at] = ids[at - 1];
                        }
                    }
                }
                output
            }]),
        Fault::new("pad-hard-coded", "padding has the id 0, whatever is declared")
            .seen("an option without effect")
            .under("{pad: 1}")
            .gives(&[|case, options, _| filled(case, options, [0, 0, 0, options.ignore])]),
        Fault::new("padded-on-the-left", "padding stands in front of the documents")
            .seen("plausible: padding_side of a tokenizer for generation")
            .gives(&[|case, options, _| {
                let output = reference::pack(case, options);
                let shifts: Vec<usize> = output
                    .segments
                    .rows()
                    .into_iter()
                    .map(|row| row.iter().filter(|one| **one == 0.0).count())
                    .collect();
                let turn = |array: &Array2<f64>| {
                    let width = array.ncols();
                    Array2::from_shape_fn(array.dim(), |(row, token)| {
                        array[[row, (token + width - shifts[row]) % width]]
                    })
                };
                SequencePackingOutput {
                    packed: turn(&output.packed),
                    segments: turn(&output.segments),
                    positions: output.positions.as_ref().map(turn),
                    labels: output.labels.as_ref().map(turn),
                }
            }]),
        Fault::new("padded-between-documents", "each document is filled up to an even number")
            .seen("plausible: pad_to_multiple_of for each document, not for the row")
            .under("{capacity: 16}")
            .gives(&[|case, options, _| {
                laid_out(case, options, |tokens| {
                    let mut row: Vec<Token> = Vec::new();
                    for (at, token) in tokens.iter().enumerate() {
                        let begins = at > 0 && tokens[at - 1][1] != token[1];
                        if begins && row.len() % 2 == 1 && row.len() + 1 < 16 {
                            row.push(reference::padding(options));
                        }
                        row.push(*token);
                    }
                    row
                })
            }]),
        Fault::new("width-needed", "rows are as wide as the longest, not as the capacity")
            .seen("an option without effect")
            .as_if(&[|options| Options { width: Width::Needed, ..options }]),
        Fault::new("width-of-two-rows", "rows are twice as wide as declared")
            .seen("plausible: prompts and completions have their own lengths, and both count")
            .gives(&[|case, options, _| {
                let wide = Options { capacity: 2 * options.capacity, ..options.clone() };
                reference::pack(case, &wide)
            }]),
        Fault::new("width-a-multiple-of-eight", "rows are filled up to a multiple of eight")
            .seen("plausible: pad_to_multiple_of = 8, where the capacity is none")
            .under("{capacity: 12}")
            .gives(&[|case, options, _| {
                let rows = reference::tokens(&reference::bins(case, options), options);
                let width = (options.capacity as usize).next_multiple_of(8);
                let wide = Options { capacity: width as i64, ..options.clone() };
                reference::filled(&rows, reference::padding(options), &wide)
            }]),
        Fault::new("one-document-a-row", "every document has a row of its own")
            .seen("an option without effect: packing that is not on")
            .gives(&[|case, options, _| {
                packed(case, options, |bins| {
                    *bins = bins.drain(..).flatten().map(|one| vec![one]).collect();
                })
            }]),
        Fault::new(
            "room-for-the-longest",
            "a row takes a document only while the longest of all would fit too",
        )
        .seen("plausible: room is kept for the maximum, as for a key-value cache")
        .gives(&[|case, options, _| {
            reference::check(case, options);
            let cut = reference::documents(case);
            let cut: Vec<Document> =
                cut.iter().flat_map(|document| reference::cut(document, options)).collect();
            let longest = cut.iter().map(|document| document.tokens.len()).max().unwrap_or(1);
            let each = (options.capacity as usize / longest).max(1);
            let bins: Bins = cut.chunks(each).map(<[Document]>::to_vec).collect();
            reference::collate(&bins, options)
        }]),
    ]
}

/// How many tokens a row has.
fn tokens(bin: &[Document]) -> usize {
    bin.iter().map(|document| document.tokens.len()).sum()
}

/// The answer with other documents in its rows.
fn packed(
    case: &SequencePackingCase,
    options: &Options,
    change: impl Fn(&mut Bins),
) -> SequencePackingOutput {
    let mut bins = reference::bins(case, options);
    change(&mut bins);
    reference::collate(&bins, options)
}

/// The answer with each document changed.
fn retrained(
    case: &SequencePackingCase,
    options: &Options,
    change: impl Fn(&mut Document),
) -> SequencePackingOutput {
    packed(case, options, |bins| bins.iter_mut().flatten().for_each(&change))
}

/// The answer with documents that are cut otherwise.
fn pieces(
    case: &SequencePackingCase,
    options: &Options,
    cut: impl Fn(&Document) -> Vec<Document>,
) -> SequencePackingOutput {
    reference::check(case, options);
    let pieces = reference::documents(case).iter().flat_map(cut).collect();
    reference::collate(&reference::best_fit(pieces, options), options)
}

/// The answer with other rows of tokens.
fn packed_rows(
    case: &SequencePackingCase,
    options: &Options,
    change: impl Fn(&mut Vec<Vec<Token>>),
) -> SequencePackingOutput {
    let mut rows = reference::tokens(&reference::bins(case, options), options);
    change(&mut rows);
    reference::filled(&rows, reference::padding(options), options)
}

/// The answer with the tokens of each row changed.
fn laid_out(
    case: &SequencePackingCase,
    options: &Options,
    change: impl Fn(&[Token]) -> Vec<Token>,
) -> SequencePackingOutput {
    laid_out_as(case, options, options, change)
}

/// The same, made of the tokens under other options.
fn laid_out_as(
    case: &SequencePackingCase,
    options: &Options,
    other: &Options,
    change: impl Fn(&[Token]) -> Vec<Token>,
) -> SequencePackingOutput {
    let rows = reference::tokens(&reference::bins(case, options), other);
    let rows: Vec<Vec<Token>> = rows.iter().map(|row| change(row)).collect();
    reference::filled(&rows, reference::padding(options), options)
}

/// The answer with other numbers of segments, padding too.
fn numbered(
    case: &SequencePackingCase,
    options: &Options,
    number: impl Fn(i64, usize) -> i64,
) -> SequencePackingOutput {
    let mut output = reference::pack(case, options);
    for ((_, token), segment) in output.segments.indexed_iter_mut() {
        *segment = number(*segment as i64, token) as f64;
    }
    output
}

/// The answer with other positions: they take the token, and where it stands in its row.
fn placed(
    case: &SequencePackingCase,
    options: &Options,
    position: impl Fn(&Token, usize) -> i64,
) -> SequencePackingOutput {
    laid_out(case, options, |tokens| {
        let mut placed = tokens.to_vec();
        for (at, token) in placed.iter_mut().enumerate() {
            token[2] = position(&tokens[at], at);
        }
        placed
    })
}

/// The answer with other padding.
fn filled(case: &SequencePackingCase, options: &Options, padding: Token) -> SequencePackingOutput {
    let rows = reference::tokens(&reference::bins(case, options), options);
    reference::filled(&rows, padding, options)
}
