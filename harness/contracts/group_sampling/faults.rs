//! Known wrong behaviours of `group-sampling`: real bugs, and conventions mistaken for others.
//!
//! Most replace one step of the reference: the order, the batches, the copies, or what is returned.

use super::reference::{copied, ordered, rows, sampled};
use super::{GroupSampling, GroupSamplingCase, Layout, Options};
use shakedown_core::generate::pick::Pick;
use shakedown_core::value::place::Dtype;

type Fault = shakedown_core::contract::fault::Fault<GroupSampling>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [order(), shuffles(), copies(), passes(), last_batches(), ids()].into_iter().flatten().collect()
}

/// The prompts in another order than that of the data.
fn order() -> Vec<Fault> {
    vec![
        Fault::new("ordered-by-kind", "two kinds of prompt are treated apart, and then joined")
            .seen("slime #2237 (38d99de13): a length filter joins the two lists that it made")
            .on(&[|case, _| rearranged(case, |ids| ids.sort_by_key(|id| id % 2))]),
        Fault::new("sorted", "the ids come in rising order, whatever order they had")
            .seen("unique(), which sorts")
            .on(&[|case, _| rearranged(case, |ids| ids.sort_unstable())]),
        Fault::new("newest-first", "the prompts come from the end of the data")
            .seen("plausible: a buffer that is filled and then popped")
            .on(&[|case, _| rearranged(case, |ids| ids.reverse())]),
        Fault::new(
            "strided-by-worker",
            "every second prompt first, then the others, as two workers have them",
        )
        .seen("plausible: indices[rank::world], gathered by joining")
        .on(&[|case, _| {
            rearranged(case, |ids| {
                let of_rank = |rank| ids.iter().skip(rank).step_by(2).copied();
                let joined: Vec<i64> = of_rank(0).chain(of_rank(1)).collect();
                ids.copy_from_slice(&joined);
            })
        }]),
        Fault::new(
            "newest-first-inside-batches",
            "the prompts of each batch come in reverse order",
        )
        .seen("plausible: a buffer of one batch that is filled and then popped")
        .under("{prompts_per_batch: 3}")
        .gives(&[|case, options, _| inside_batches(case, options, |batch| batch.reverse()).into()]),
        Fault::new("sorted-inside-batches", "the ids of each batch come in rising order")
            .seen("plausible: unique() of a batch, for the prompts behind its rows")
            .under("{prompts_per_batch: 3}")
            .gives(&[|case, options, _| {
                inside_batches(case, options, |batch| batch.sort_unstable()).into()
            }]),
        Fault::new("last-batch-first", "the batches come in reverse order, each as it is")
            .seen("plausible: batches on a stack, for a queue")
            .under("{prompts_per_batch: 2}")
            .gives(&[|case, options, _| {
                let mut batches = Vec::new();
                sampled(&ordered(case, options), options, |batch| {
                    batches.push(copied(batch, options).repeat(options.passes()));
                    Vec::new()
                });
                batches.reverse();
                batches.concat().into()
            }]),
        Fault::new("shuffled-undeclared", "the prompts are permuted where no shuffle is declared")
            .seen("a data loader's shuffle=True left on")
            .as_if(&[|options| Options { shuffle: true, ..options }]),
    ]
}

/// A permutation that is none, or one of something else.
fn shuffles() -> Vec<Fault> {
    vec![
        Fault::new("shuffle-discarded", "the prompts come as the data has them")
            .seen("open-instruct #560 (d746b67eb): dataset.shuffle() without its result")
            .under("{shuffle: true, prompts_per_batch: 4}")
            .as_if(&[|options| Options { shuffle: false, ..options }]),
        Fault::new("one-seed-for-all", "the permutation is that of one seed, whatever the seed is")
            .seen("manual_seed(42) inside the sampler")
            .under("{shuffle: true}")
            .on(&[|case, _| case.seed.fill(42)]),
        Fault::new("drawn-with-replacement", "each place draws a prompt of its own")
            .seen("plausible: randint for randperm, random.choices for random.sample")
            .under("{shuffle: true}")
            .gives(&[|case, options, _| {
                let mut pick = Pick::seeded(case.seed[()] as u64);
                let prompts = case.prompts.to_vec();
                let drawn: Vec<i64> = prompts.iter().map(|_| *pick.one(&prompts)).collect();
                on(&drawn, options).into()
            }]),
        Fault::new("sorted-by-a-hash", "the order is that of a hash of id and seed")
            .seen("plausible: sorted(key=hash), for an order without a generator")
            .under("{shuffle: true}")
            .gives(&[|case, options, _| {
                let key = |id: &i64| Pick::seeded((*id ^ (case.seed[()] << 20)) as u64).bits();
                let mut prompts = case.prompts.to_vec();
                prompts.sort_by_key(key);
                on(&prompts, options).into()
            }]),
        Fault::new(
            "shuffled-inside-batches",
            "the prompts of a batch are permuted, once the batches are cut",
        )
        .seen("plausible: a shuffle in the collator")
        .under("{shuffle: true, prompts_per_batch: 4}")
        .gives(&[|case, options, _| {
            let mut pick = Pick::seeded(case.seed[()] as u64);
            let rows = sampled(&case.prompts.to_vec(), options, |batch| {
                copied(&picked(batch, &mut pick), options).repeat(options.passes())
            });
            rows.into()
        }]),
        Fault::new("shuffled-row-by-row", "the rows of a batch are permuted, copies and all")
            .seen("plausible: a data loader that shuffles what was repeated before")
            .under("{shuffle: true}")
            .gives(&[|case, options, _| {
                let mut pick = Pick::seeded(case.seed[()] as u64);
                let rows = sampled(&ordered(case, options), options, |batch| {
                    picked(&copied(batch, options), &mut pick).repeat(options.passes())
                });
                rows.into()
            }]),
        Fault::new(
            "shuffled-anew-in-each-pass",
            "a batch that comes again has its prompts in another order",
        )
        .seen("plausible: mini-batches that are shuffled for each update, and stored answers")
        .under("{shuffle: true, repeats: 2}")
        .gives(&[|case, options, _| {
            let mut pick = Pick::seeded(case.seed[()] as u64);
            let rows = sampled(&ordered(case, options), options, |batch| {
                let first = copied(batch, options);
                let others = 1..options.passes();
                let others = others.flat_map(|_| copied(&picked(batch, &mut pick), options));
                first.into_iter().chain(others).collect()
            });
            rows.into()
        }]),
    ]
}

/// Another number of copies, or copies that stand elsewhere.
fn copies() -> Vec<Fault> {
    vec![
        Fault::new("multiplied-again", "the copies are copied: G² rows of a prompt")
            .seen("verl #1181 (af15ae12f): repeated by the sampler and by the rollout")
            .gives(&[
                |case, options, _| grown(case, options, |o| o.group_size *= o.group_size).into(),
                |case, options, _| {
                    let rows = grown(case, options, |o| o.group_size *= o.group_size);
                    fitted(rows, case, options).into()
                },
            ]),
        Fault::new("one-copy-short", "G − 1 copies of a prompt, or one more of the first")
            .seen("plausible: the prompt itself counted as one of its completions")
            .under("{group_size: 3}")
            .gives(&[
                |case, options, _| {
                    grown(case, options, |o| o.group_size = (o.group_size - 1).max(1)).into()
                },
                |case, options, _| {
                    let rows = grown(case, options, |o| o.group_size = (o.group_size - 1).max(1));
                    fitted(rows, case, options).into()
                },
            ]),
        Fault::new("one-copy-more", "G + 1 copies of a prompt")
            .seen("plausible: the prompt itself is appended to its copies")
            .gives(&[
                |case, options, _| grown(case, options, |o| o.group_size += 1).into(),
                |case, options, _| {
                    fitted(grown(case, options, |o| o.group_size += 1), case, options).into()
                },
            ]),
        Fault::new("batch-one-row-short", "the first or the last row of each batch is left out")
            .seen("plausible: a slice that begins at 1, or ends one early")
            .under("{prompts_per_batch: 3}")
            .gives(&[
                |case, options, _| by_batch(case, options, |rows| rows[1..].to_vec()).into(),
                |case, options, _| {
                    by_batch(case, options, |rows| rows[..rows.len() - 1].to_vec()).into()
                },
            ]),
        Fault::new("group-size-built-in", "eight copies, whatever is declared")
            .seen("an option without effect; TRL's default num_generations")
            .as_if(&[|options| Options { group_size: 8, ..options }]),
        Fault::new("layout-mistaken", "a b a b for a a b b, or the other way round")
            .seen("verl `repeat(interleave=False)` where groups are read side by side")
            .as_if(&[|options| {
                let layout = match options.layout {
                    Layout::Interleave => Layout::Tile,
                    Layout::Tile => Layout::Interleave,
                };
                Options { layout, ..options }
            }]),
        Fault::new(
            "groups-cut-by-batches",
            "a generation batch has so many rows as it should have prompts",
        )
        .seen("TRL: batch sizes in completions for batch sizes in prompts")
        .under("{prompts_per_batch: 3, repeats: 2, drop_last: false}")
        .gives(&[|case, options, _| {
            let all = Options { prompts_per_batch: None, ..options.clone() };
            let copies = copied(&ordered(case, options), &all);
            sampled(&copies, options, |batch| batch.repeat(options.passes())).into()
        }]),
        Fault::new(
            "group-and-batch-size-exchanged",
            "as many copies as a batch has prompts, and as many prompts as copies",
        )
        .seen("plausible: positional arguments of RepeatSampler in another order")
        .under("{group_size: 4, prompts_per_batch: 2}")
        .gives(&[
            |case, options, _| exchanged(case, options).into(),
            |case, options, _| fitted(exchanged(case, options), case, options).into(),
        ]),
    ]
}

/// Batches that come too often, too rarely or at another time.
fn passes() -> Vec<Fault> {
    vec![
        Fault::new("one-pass-more", "a batch comes once more than is declared")
            .seen("trl #3231: sampler and buffer that do not count alike")
            .under("{prompts_per_batch: 2}")
            .gives(&[
                |case, options, _| grown(case, options, |o| o.repeats += 1).into(),
                |case, options, _| {
                    fitted(grown(case, options, |o| o.repeats += 1), case, options).into()
                },
            ]),
        Fault::new("one-pass-short", "a batch comes once less than is declared")
            .seen("plausible: range(1, repeats) after a first pass that is missing")
            .under("{prompts_per_batch: 2, repeats: 3}")
            .gives(&[
                |case, options, _| {
                    grown(case, options, |o| o.repeats = (o.repeats - 1).max(1)).into()
                },
                |case, options, _| {
                    let rows = grown(case, options, |o| o.repeats = (o.repeats - 1).max(1));
                    fitted(rows, case, options).into()
                },
            ]),
        Fault::new("tiled-over-all-batches", "all prompts come, then all of them again, as copies")
            .seen("plausible: `repeat` of the prompts that are left, before they are cut")
            .under("{prompts_per_batch: 2, repeats: 2}")
            .gives(&[|case, options, _| {
                let kept = sampled(&ordered(case, options), options, <[i64]>::to_vec);
                kept.repeat(options.group_size as usize * options.passes()).into()
            }]),
        Fault::new("pass-in-another-order", "a batch that comes again is reversed, or rotated")
            .seen("plausible: a buffer that is read from its end, or from where it was left")
            .under("{repeats: 2, prompts_per_batch: 3}")
            .gives(&[
                |case, options, _| passes_of(case, options, |rows, _| rows.reverse()).into(),
                |case, options, _| {
                    passes_of(case, options, |rows, pass| {
                        let by = pass % rows.len();
                        rows.rotate_left(by);
                    })
                    .into()
                },
            ]),
        Fault::new("repeats-ignored", "every batch comes once")
            .seen("an option without effect")
            .under("{repeats: 2, prompts_per_batch: 2}")
            .gives(&[
                |case, options, _| grown(case, options, |o| o.repeats = 1).into(),
                |case, options, _| {
                    fitted(grown(case, options, |o| o.repeats = 1), case, options).into()
                },
            ]),
        Fault::new(
            "prompts-repeated-for-batches",
            "a prompt comes again where its batch should: its copies, then as many more",
        )
        .seen("plausible: repeat_interleave of the batch for its repetition")
        .under("{repeats: 2}")
        .gives(&[|case, options, _| {
            let rows = sampled(&ordered(case, options), options, |batch| {
                let rows = copied(batch, options).into_iter();
                rows.flat_map(|id| std::iter::repeat_n(id, options.passes())).collect()
            });
            rows.into()
        }]),
        Fault::new(
            "epoch-repeated-for-batches",
            "all batches come before the first one comes again",
        )
        .seen("plausible: `for _ in range(repeats)` outside the loop over batches")
        .under("{repeats: 2, prompts_per_batch: 2}")
        .gives(&[|case, options, _| {
            let once = Options { repeats: 1, ..options.clone() };
            rows(case, &once).repeat(options.passes()).into()
        }]),
        Fault::new("batch-size-ignored", "all prompts are one batch")
            .seen("an option without effect")
            .under("{repeats: 2, prompts_per_batch: 2}")
            .as_if(&[|options| Options { prompts_per_batch: None, ..options }]),
        Fault::new("first-batch-again", "every step has the prompts of the first batch")
            .seen("plausible: next(iter(loader)) inside the loop over steps")
            .under("{prompts_per_batch: 2}")
            .gives(&[|case, options, _| {
                let mut first: Option<Vec<i64>> = None;
                let rows = sampled(&ordered(case, options), options, |batch| {
                    let first = first.get_or_insert_with(|| batch.to_vec());
                    copied(&first[..batch.len()], options).repeat(options.passes())
                });
                rows.into()
            }]),
    ]
}

/// What becomes of prompts that fill no batch, and of those that just do.
fn last_batches() -> Vec<Fault> {
    vec![
        Fault::new(
            "last-batch-kept",
            "a last batch that is not full comes, declared to be dropped",
        )
        .seen("an option without effect; drop_last=False is the default of torch")
        .under("{prompts_per_batch: 3}")
        .as_if(&[|options| Options { drop_last: false, ..options }]),
        Fault::new("last-batch-dropped", "a last batch that is not full is left out undeclared")
            .seen("TRL's RepeatSampler, where it is declared to keep all")
            .under("{prompts_per_batch: 3, drop_last: false}")
            .as_if(&[|options| Options { drop_last: true, ..options }]),
        Fault::new("last-batch-filled-up", "the last batch is filled with prompts that were there")
            .seen("torch's DistributedSampler, which makes all workers' shares equal")
            .under("{prompts_per_batch: 3, drop_last: false}")
            .on(&[
                |case, options| filled_up(case, options, |_, _| 0),
                |case, options| filled_up(case, options, |begins, _| begins),
                |case, options| filled_up(case, options, |_, prompts| prompts - 1),
            ]),
        Fault::new("full-last-batch-dropped", "the last batch is dropped where it is full too")
            .seen("plausible: range(0, B - B', B')")
            .under("{prompts_per_batch: 2}")
            .gives(&[|case, options, _| {
                let prompts = ordered(case, options);
                let size = options.prompts_per_batch.map_or(0, |size| size as usize);
                let full = prompts.len() > size && options.drop_last;
                let kept =
                    prompts.len() - usize::from(full && prompts.len().is_multiple_of(size.max(1)));
                on(&prompts[..kept], options).into()
            }]),
        Fault::new(
            "less-than-a-batch-kept",
            "prompts that do not fill the first batch come as a smaller one",
        )
        .seen("plausible: min(batch_size, len(dataset)) for the size of a batch")
        .under("{prompts_per_batch: 4}")
        .gives(&[|case, options, _| {
            let few = options.prompts_per_batch.is_some_and(|b| b > case.prompts.len() as i64);
            rows(case, &Options { drop_last: options.drop_last && !few, ..options.clone() }).into()
        }]),
        Fault::new(
            "last-prompt-left-out",
            "the last prompt of the data never comes; another one does, perhaps",
        )
        .seen("plausible: range(len(dataset) - 1)")
        .gives(&[
            |case, options, _| without_the_last(case, options).into(),
            |case, options, _| fitted(without_the_last(case, options), case, options).into(),
        ]),
        Fault::new("first-prompt-left-out", "the first prompt of the data never comes")
            .seen("plausible: range(1, len(dataset)), or a header that is none")
            .gives(&[
                |case, options, _| without_the_first(case, options).into(),
                |case, options, _| fitted(without_the_first(case, options), case, options).into(),
            ]),
    ]
}

/// Something else than the ids, or ids that are not held exactly.
fn ids() -> Vec<Fault> {
    vec![
        Fault::new("indices-for-ids", "rows are positions in the data, not ids")
            .seen("plausible: the sampler's indices looked up in a table of ids")
            .on(&[|case, _| case.prompts = (0..case.prompts.len() as i64).collect()]),
        Fault::new("ids-in-half-precision", "ids go through bf16, in which large ones are alike")
            .seen("plausible: a batch cast to half precision, ids and all")
            .on(&[|case, _| {
                case.prompts.mapv_inplace(|id| Dtype::Bf16.round(id as f64) as i64);
            }]),
        Fault::new("ids-cut-to-16-bits", "ids wrap around, as in int16 or int8")
            .seen("plausible: a narrow dtype for what was thought a small number")
            .on(&[
                |case, _| case.prompts.mapv_inplace(|id| i64::from(id as i16)),
                |case, _| case.prompts.mapv_inplace(|id| i64::from(id as i8)),
            ]),
        Fault::new("an-id-for-each-copy", "every row has an id of its own: groups have one member")
            .seen("plausible: verl's uid given to rows that were repeated before")
            .gives(&[|case, options, _| {
                let count = rows(case, options).len() as i64;
                (0..count).collect::<Vec<i64>>().into()
            }]),
    ]
}

/// The prompts of a case in another order.
fn rearranged(case: &mut GroupSamplingCase, change: impl FnOnce(&mut [i64])) {
    change(case.prompts.as_slice_mut().expect("the arrays of a record are in standard layout"));
}

/// Prompts behind the last ones, until they fill a batch: those from a place on, which is made of
/// where the last batch begins and how many prompts there are.
fn filled_up(case: &mut GroupSamplingCase, options: &Options, from: fn(usize, usize) -> usize) {
    let prompts = case.prompts.to_vec();
    let size = options.prompts_per_batch.map_or(1, |size| size as usize);
    let begins = (prompts.len() - 1) / size * size;
    let again = prompts[from(begins, prompts.len())..].iter().cycle();
    let filled = prompts.len().next_multiple_of(size);
    case.prompts = prompts.iter().chain(again).copied().take(filled).collect();
}

/// The rows of batches whose prompts are in another order.
fn inside_batches(case: &GroupSamplingCase, options: &Options, change: fn(&mut [i64])) -> Vec<i64> {
    sampled(&ordered(case, options), options, |batch| {
        let mut batch = batch.to_vec();
        change(&mut batch);
        copied(&batch, options).repeat(options.passes())
    })
}

/// The passes of each batch, whose rows are changed before they come again.
fn passes_of(
    case: &GroupSamplingCase,
    options: &Options,
    change: fn(&mut [i64], usize),
) -> Vec<i64> {
    sampled(&ordered(case, options), options, |batch| {
        let passes = (0..options.passes()).flat_map(|pass| {
            let mut rows = copied(batch, options);
            if pass > 0 {
                change(&mut rows, pass);
            }
            rows
        });
        passes.collect()
    })
}

/// Each batch with other rows, copies and all.
fn by_batch(
    case: &GroupSamplingCase,
    options: &Options,
    change: fn(&[i64]) -> Vec<i64>,
) -> Vec<i64> {
    sampled(&ordered(case, options), options, |batch| {
        change(&copied(batch, options)).repeat(options.passes())
    })
}

/// What is right for prompts in this order.
fn on(prompts: &[i64], options: &Options) -> Vec<i64> {
    sampled(prompts, options, |batch| copied(batch, options).repeat(options.passes()))
}

/// A batch in another order.
fn picked(batch: &[i64], pick: &mut Pick) -> Vec<i64> {
    pick.shuffled(batch.len()).into_iter().map(|at| batch[at]).collect()
}

/// What is right under other options.
fn grown(
    case: &GroupSamplingCase,
    options: &Options,
    change: impl FnOnce(&mut Options),
) -> Vec<i64> {
    let mut options = options.clone();
    change(&mut options);
    rows(case, &options)
}

/// The rows of batches as large as the groups, and of groups as large as the batches.
fn exchanged(case: &GroupSamplingCase, options: &Options) -> Vec<i64> {
    grown(case, options, |o| {
        if let Some(size) = &mut o.prompts_per_batch {
            std::mem::swap(size, &mut o.group_size);
        }
    })
}

/// As many of the rows as there should be, from the start again where they do not suffice.
fn fitted(wrong: Vec<i64>, case: &GroupSamplingCase, options: &Options) -> Vec<i64> {
    let count = rows(case, options).len();
    wrong.into_iter().cycle().take(count).collect()
}

/// The rows of all prompts but the last; one prompt is all there is.
fn without_the_last(case: &GroupSamplingCase, options: &Options) -> Vec<i64> {
    let last = case.prompts.len() - 1;
    let mut fewer = case.clone();
    fewer.prompts = case.prompts.iter().copied().take(last.max(1)).collect();
    rows(&fewer, options)
}

/// The rows of all prompts but the first; one prompt is all there is.
fn without_the_first(case: &GroupSamplingCase, options: &Options) -> Vec<i64> {
    let mut fewer = case.clone();
    let left_out = usize::from(case.prompts.len() > 1);
    fewer.prompts = case.prompts.iter().copied().skip(left_out).collect();
    rows(&fewer, options)
}
