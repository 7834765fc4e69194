//! Known wrong behaviours of `turn-mask`: real bugs, and conventions mistaken for others.

use super::oracle::{Kind, Token, left, text};
use super::{
    ASSISTANT, Options, SYSTEM, Shift, TOOL, Train, Turn, TurnMask, TurnMaskCase, TurnMaskOutput,
    USER, reference,
};

type Fault = shakedown_core::contract::fault::Fault<TurnMask>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [turns(), marks(), searching(), lacking(), lengths(), labels(), declared()];
    themes.into_iter().flatten().collect()
}

/// The wrong turns.
fn turns() -> Vec<Fault> {
    vec![
        Fault::new(
            "pairing-assumes-the-order",
            "marks of users and assistants are paired in their order: all but what is between them",
        )
        .seen("trl #1185 (4ae35afdd)")
        .gives(&[|case, options, _| {
            let places = |role: i64| -> Vec<usize> {
                let of = case.turns.iter().enumerate().filter(|(_, turn)| turn.who() == role);
                of.map(|(at, _)| at).collect()
            };
            let (users, answers) = (places(USER), places(ASSISTANT));
            let mut trained = vec![!answers.is_empty(); case.turns.len()];
            for (pair, (user, answer)) in users.iter().zip(&answers).enumerate() {
                let from = if pair == 0 { 0 } else { *user };
                (from..*answer).for_each(|turn| trained[turn] = false);
            }
            turns_of(case, options, |turn| trained[turn])
        }]),
        Fault::new(
            "end-at-zero-is-falsy",
            "an answer that ends at index 0 has no end, and goes on to the end of the text",
        )
        .seen("transformers #47325, #47326: end + 1 if end else len(ids)")
        .under("{bos: [], start: [], role_ids: [], end: []}")
        .gives(&[|case, options, _| {
            let text = left(case, options);
            let first = text.iter().take(2).filter(|token| token.turn == text[0].turn).count();
            let falsy = first == 1 && text[0].trained;
            flagged(case, options, |_, token| token.trained || falsy)
        }]),
        Fault::new("system-trained", "the system's turn is trained too")
            .seen("plausible: every turn, the system's with them")
            .under("{train: all}")
            .gives(&[|case, options, _| {
                let trained = options.trained(&case.turns);
                turns_of(case, options, |turn| trained[turn] || case.turns[turn].who() == SYSTEM)
            }]),
        Fault::new("tools-untrained", "what tools return is not trained, though declared")
            .seen("plausible: users and assistants for every turn but the system's")
            .under("{train: all}")
            .gives(&[|case, options, _| {
                let trained = options.trained(&case.turns);
                turns_of(case, options, |turn| trained[turn] && case.turns[turn].who() != TOOL)
            }]),
        Fault::new("all-behind-the-first-answer", "whatever follows an answer is trained with it")
            .seen("plausible: labels[: start of the answer] = ignore, without an end")
            .gives(&[|case, options, _| {
                let text = left(case, options);
                let first = text.iter().position(|token| token.trained);
                flagged(case, options, |at, _| first.is_some_and(|first| at >= first))
            }]),
        Fault::new("all-where-nobody-answers", "without an answer every turn is trained")
            .seen("plausible: a mask of zeros taken for no mask")
            .gives(&[|case, options, _| {
                let trained = options.trained(&case.turns);
                let none = !trained.contains(&true);
                turns_of(case, options, |turn| none || trained[turn])
            }]),
        Fault::new("every-second-turn", "every second turn is trained, whosever it is")
            .seen("plausible: turns[1::2] for those of the assistant")
            .gives(&[|case, options, _| turns_of(case, options, |turn| turn % 2 == 1)]),
        Fault::new("one-token-too-few", "the text is cut to one token less than `max_length`")
            .seen("plausible: room for an end that is not added")
            .under("{max_length: 9}")
            .as_if(&[|options| Options {
                max_length: options.max_length.map(|most| (most - 1).max(1)),
                ..options
            }]),
        Fault::new("last-answer-if-it-ends", "an answer is trained only where it is the last turn")
            .seen("plausible: turns[-1].role == assistant")
            .under("{train: last-assistant}")
            .gives(&[|case, options, _| {
                let trained = options.trained(&case.turns);
                let last = case.turns.len() - 1;
                turns_of(case, options, |turn| trained[turn] && turn == last)
            }]),
        Fault::new("tools-trained", "what tools return is trained as answers are")
            .seen("Search-R1, verl: loss on retrieved text without a mask of its own")
            .gives(&[|case, options, _| {
                let trained = options.trained(&case.turns);
                turns_of(case, options, |turn| trained[turn] || case.turns[turn].who() == TOOL)
            }]),
        Fault::new("users-trained", "what users say is trained, and not the answers to it")
            .seen("plausible: role ids that count from 1 on one side")
            .gives(&[|case, options, _| {
                turns_of(case, options, |turn| case.turns[turn].who() == USER)
            }]),
        Fault::new("only-the-first-answer", "the first turn of the assistant alone is trained")
            .seen("plausible: a search that stops at the first response template")
            .gives(&[|case, options, _| {
                let first = case.turns.iter().position(|turn| turn.who() == ASSISTANT);
                turns_of(case, options, |turn| first == Some(turn))
            }]),
        Fault::new("answer-to-a-tool-untrained", "an answer behind a tool's turn is not trained")
            .seen("plausible: an answer is what follows a user")
            .gives(&[|case, options, _| {
                let trained = options.trained(&case.turns);
                turns_of(case, options, |turn| {
                    let behind = turn > 0 && case.turns[turn - 1].who() == TOOL;
                    trained[turn] && !behind
                })
            }]),
        Fault::new(
            "answer-without-a-user-untrained",
            "an answer counts only behind a turn of a user",
        )
        .seen("plausible: pairs of a user's turn and its answer")
        .gives(&[|case, options, _| {
            let trained = options.trained(&case.turns);
            turns_of(case, options, |turn| {
                trained[turn] && turn > 0 && case.turns[turn - 1].who() == USER
            })
        }]),
        Fault::new("second-answer-in-a-row-untrained", "of two answers in a row one is trained")
            .seen("plausible: a state that a second answer switches off again")
            .gives(&[|case, options, _| {
                let trained = options.trained(&case.turns);
                let mut counts = Vec::new();
                for (turn, trained) in trained.into_iter().enumerate() {
                    let again = turn > 0 && case.turns[turn - 1].who() == case.turns[turn].who();
                    counts.push(trained && !(again && counts[turn - 1]));
                }
                turns_of(case, options, |turn| counts[turn])
            }]),
        Fault::new(
            "everything-but-prompts",
            "whatever stands in no other turn is trained, `bos` too",
        )
        .seen("plausible: labels = ids, then the users' turns are taken out")
        .gives(&[|case, options, _| {
            flagged(case, options, |_, token| token.trained || token.kind == Kind::Bos)
        }]),
    ]
}

/// Marks that are trained, or not, and should not be, or should.
fn marks() -> Vec<Fault> {
    vec![
        Fault::new("bos-trained", "the first ids of a text are trained with a first answer")
            .seen("plausible: an answer begins where the text does")
            .gives(&[|case, options, _| {
                let first = options.trained(&case.turns)[0];
                flagged(case, options, |_, token| {
                    token.trained || (token.kind == Kind::Bos && first)
                })
            }]),
        Fault::new("role-id-trained", "the id of the role is trained, and `start` is not")
            .seen("plausible: a response template that is one token too short")
            .gives(&[|case, options, _| {
                let trained = options.trained(&case.turns);
                let text = left(case, options);
                flagged(case, options, |at, token| {
                    let last = token.kind == Kind::Header
                        && text.get(at + 1).is_none_or(|next| next.kind != Kind::Header);
                    token.trained || (last && trained[token.turn] && !options.role_ids.is_empty())
                })
            }]),
        Fault::new(
            "start-trained",
            "`start` is trained before an answer, and the role's id is not",
        )
        .seen("plausible: a span that begins with the turn, less the role")
        .gives(&[|case, options, _| {
            let trained = options.trained(&case.turns);
            let text = left(case, options);
            flagged(case, options, |at, token| {
                let last = text.get(at + 1).is_none_or(|next| next.kind != Kind::Header);
                let of_start = token.kind == Kind::Header && !last;
                token.trained || (of_start && trained[token.turn])
            })
        }]),
        Fault::new("last-end-untrained", "the end of the last turn is not trained")
            .seen("plausible: the mask of an unfinished answer, for all last ones")
            .gives(&[|case, options, _| {
                flagged(case, options, |_, token| {
                    let last = token.turn + 1 == case.turns.len();
                    token.trained && !(last && token.kind == Kind::End)
                })
            }]),
        Fault::new("every-end-trained", "the end of every turn is trained, whosever it is")
            .seen("plausible: labels[ids == end] = end, so that the model learns to stop")
            .gives(&[|case, options, _| {
                flagged(case, options, |_, token| token.trained || token.kind == Kind::End)
            }]),
        Fault::new("end-of-the-turn-before", "the end before an answer is trained for its own")
            .seen("plausible: a mark between turns that is counted to the wrong side")
            .gives(&[|case, options, _| {
                let trained = options.trained(&case.turns);
                flagged(case, options, |_, token| match token.kind {
                    Kind::End => trained.get(token.turn + 1) == Some(&true) && options.train_end,
                    _ => token.trained,
                })
            }]),
        Fault::new(
            "bos-before-each-turn",
            "every turn is rendered as a text of its own, with `bos`",
        )
        .seen("plausible: apply_chat_template for each message, and the results put together")
        .gives(&[|case, options, _| {
            let mut parts = Vec::new();
            for token in text(case, options) {
                let begins = parts.last().is_none_or(|last: &Token| last.turn != token.turn);
                if begins && token.turn > 0 {
                    let bos =
                        |id: &i64| Token { id: *id, kind: Kind::Bos, trained: false, ..token };
                    parts.extend(options.bos.iter().map(bos));
                }
                parts.push(token);
            }
            rendered(parts, options)
        }]),
        Fault::new("roles-exchanged", "users and assistants have each other's id")
            .seen("plausible: role ids in the order assistant, user")
            .gives(&[|case, options, _| {
                let mut options = options.clone();
                if !options.role_ids.is_empty() {
                    options.role_ids.swap(USER as usize, ASSISTANT as usize);
                }
                reference::render(case, &options)
            }]),
    ]
}

/// Masks that are found in the text, and not made with it.
fn searching() -> Vec<Fault> {
    vec![
        Fault::new(
            "retokenised",
            "the mask is that of a text in which equal neighbours are one token",
        )
        .seen("Search-R1 #20, #21; slime #330 (db0dcf53f): decoded, edited and encoded again")
        .gives(&[|case, options, _| {
            let mut flags: Vec<bool> = Vec::new();
            let mut last: Option<Token> = None;
            for token in left(case, options) {
                let content = |token: &Token| token.kind == Kind::Content;
                let merged = last.is_some_and(|last| {
                    content(&last)
                        && content(&token)
                        && (last.id, last.turn) == (token.id, token.turn)
                });
                if !merged {
                    flags.push(token.trained);
                }
                last = Some(token);
            }
            flagged(case, options, |at, _| flags.get(at) == Some(&true))
        }]),
        Fault::new("neighbours-joined", "equal neighbours in the content are one token")
            .seen("Search-R1 #20, #21; slime #330 (db0dcf53f): ids that do not survive a decode")
            .on(&[|case, _| {
                for turn in &mut case.turns {
                    let mut tokens = turn.tokens.to_vec();
                    tokens.dedup();
                    *turn = Turn::of(turn.who(), &tokens);
                }
            }]),
        Fault::new(
            "until-the-first-end-id",
            "the first end in the content of an answer ends what is trained of it",
        )
        .seen("plausible: the span of an answer is searched for, from its header to the next end")
        .gives(&[|case, options, _| {
            let text = left(case, options);
            flagged(case, options, |at, token| {
                let content = |of: &Token| of.kind == Kind::Content && of.turn == token.turn;
                let first = text.iter().position(content).unwrap_or(at);
                let length = options.end.len();
                let end = (first..at).find(|from| {
                    let ids = text.get(*from..from + length);
                    length > 0
                        && ids.is_some_and(|ids| {
                            let same = ids.iter().zip(&options.end).all(|(of, id)| of.id == *id);
                            same && ids.iter().all(content)
                        })
                });
                token.trained && end.is_none_or(|from| at < from + length)
            })
        }]),
        Fault::new(
            "marks-searched-for",
            "whatever begins like a turn is one, also inside the content of another",
        )
        .seen("plausible: slime and TRL masks by templates, on text that users write")
        .gives(&[|case, options, _| {
            let header = options.header(ASSISTANT);
            let text = left(case, options);
            let mut inside = false;
            let mut flags = Vec::new();
            for (at, token) in text.iter().enumerate() {
                let ids = |of: &[i64]| {
                    let begun = (at + 1).checked_sub(of.len());
                    begun.is_some_and(|from| {
                        !of.is_empty()
                            && text[from..=at].iter().zip(of).all(|(of, id)| of.id == *id)
                    })
                };
                let begins = at > 0 && text[at - 1].turn != token.turn;
                if begins {
                    inside = false;
                }
                flags.push(token.trained || (inside && token.kind == Kind::Content));
                if token.kind == Kind::Content {
                    inside = (inside || ids(&header)) && !ids(&options.end);
                }
            }
            flagged(case, options, |at, _| flags[at])
        }]),
        Fault::new(
            "marks-in-content-untrained",
            "an id of a mark is not trained, wherever it stands",
        )
        .seen("plausible: a mask of special tokens, to be safe")
        .gives(&[|case, options, _| {
            flagged(case, options, |_, token| {
                let word = token.kind != Kind::Content || !options.is_mark(token.id);
                token.trained && word
            })
        }]),
    ]
}

/// Texts that lack something.
fn lacking() -> Vec<Fault> {
    vec![
        Fault::new("bos-left-out", "the text begins with its first turn")
            .seen("plausible: add_special_tokens=False for the whole text, not for its parts")
            .gives(&[|case, options, _| {
                without(case, options, |token, _| token.kind == Kind::Bos)
            }]),
        Fault::new("system-left-out", "the system's turn is not rendered")
            .seen("plausible: a template that knows users and assistants only")
            .gives(&[|case, options, _| {
                without(case, options, |token, _| {
                    token.kind != Kind::Bos && case.turns[token.turn].who() == SYSTEM
                })
            }]),
        Fault::new("neighbours-merged", "turns of one role in a row are rendered as one")
            .seen("plausible: templates that want users and assistants in turn")
            .gives(&[|case, options, _| {
                let alike = |one: usize, other: usize| {
                    case.turns.get(other).is_some_and(|turn| turn.who() == case.turns[one].who())
                };
                without(case, options, |token, _| match token.kind {
                    Kind::Header => token.turn > 0 && alike(token.turn, token.turn - 1),
                    Kind::End => alike(token.turn, token.turn + 1),
                    _ => false,
                })
            }]),
        Fault::new("last-end-left-out", "the last turn has no end")
            .seen("plausible: marks between turns, for marks behind each")
            .gives(&[|case, options, _| {
                without(case, options, |token, _| {
                    token.kind == Kind::End && token.turn + 1 == case.turns.len()
                })
            }]),
        Fault::new("ends-left-out", "no turn has an end")
            .seen("plausible: a template without marks behind its turns")
            .gives(&[|case, options, _| {
                without(case, options, |token, _| token.kind == Kind::End)
            }]),
        Fault::new("id-zero-left-out", "content of the id 0 is taken for padding, and dropped")
            .seen("plausible: `[id for id in ids if id]`")
            .gives(&[|case, options, _| {
                without(case, options, |token, _| token.kind == Kind::Content && token.id == 0)
            }]),
        Fault::new("end-cut-short", "of several ids of the end only the first is there")
            .seen("plausible: end[0], as most tokenizers have one id for it")
            .under("{end: [11, 12]}")
            .gives(&[|case, options, _| {
                without(case, options, |token, before| {
                    token.kind == Kind::End && before.is_some_and(|last| last.kind == Kind::End)
                })
            }]),
    ]
}

/// Texts and masks of the wrong length.
fn lengths() -> Vec<Fault> {
    vec![
        Fault::new(
            "cut-answer-untrained",
            "an answer whose end is behind the limit has none, and is not trained",
        )
        .seen("transformers #34494")
        .under("{max_length: 9}")
        .gives(&[|case, options, _| {
            let text = text(case, options);
            let most = options.left(text.len());
            let cut = |turn: usize| text[most..].iter().any(|token| token.turn == turn);
            flagged(case, options, |_, token| token.trained && !cut(token.turn))
        }]),
        Fault::new(
            "first-and-last-only",
            "the first message is the prompt, the last the answer; what is between is lost",
        )
        .seen("slime 882433bb9")
        .on(&[|case, _| {
            if case.turns.len() > 2 {
                case.turns.drain(1..case.turns.len() - 1);
            }
        }]),
        Fault::new(
            "mask-not-extended",
            "what tools return is added to the ids and not to the mask, which is filled up or not",
        )
        .seen("slime #1445 (096089d37), verl #2543 (96b730bbe)")
        .gives(&[
            |case, options, _| {
                let flags = without_tools(case, options);
                flagged(case, options, |at, _| flags.get(at) == Some(&true))
            },
            |case, options, _| {
                let mut output = reference::render(case, options);
                let flags = without_tools(case, options);
                let flags = flags.into_iter().skip(options.shifted()).map(f64::from);
                output.mask = Some(flags.collect());
                output
            },
        ]),
        Fault::new("empty-turns-dropped", "a turn without content is not rendered")
            .seen("plausible: if not message: continue")
            .gives(&[|case, options, _| {
                let empty = |token: &Token| {
                    token.kind != Kind::Bos && case.turns[token.turn].tokens.is_empty()
                };
                let mut parts = text(case, options);
                if !parts.iter().all(empty) {
                    parts.retain(|token| !empty(token));
                }
                rendered(parts, options)
            }]),
        Fault::new("limit-ignored", "the text is not cut")
            .seen("an option without effect")
            .under("{max_length: 9}")
            .as_if(&[|options| Options { max_length: None, ..options }]),
        Fault::new("last-tokens-kept", "the last tokens stay, where the first ones should")
            .seen("plausible: truncation_side of another tokenizer")
            .under("{max_length: 9}")
            .gives(&[|case, options, _| {
                let parts = text(case, options);
                let over = parts.len() - options.left(parts.len());
                rendered(parts[over..].to_vec(), options)
            }]),
        Fault::new("cut-at-the-mask-alone", "the first tokens stay, and the last flags")
            .seen("plausible: ids and mask cut in two places, which do not agree")
            .under("{max_length: 9}")
            .gives(&[|case, options, _| {
                let all = text(case, options);
                let over = all.len() - options.left(all.len());
                flagged(case, options, |at, _| all[at + over].trained)
            }]),
        Fault::new("mask-inverted", "what is not trained is, and the reverse")
            .seen("plausible: 1 where the loss is masked, for 1 where it counts")
            .gives(&[|case, options, _| flagged(case, options, |_, token| !token.trained)]),
        Fault::new("cut-texts-untrained", "a text that is longer than the limit trains nothing")
            .seen("plausible: what does not fit is masked as a whole")
            .under("{max_length: 9}")
            .gives(&[|case, options, _| {
                let length = text(case, options).len();
                let whole = options.left(length) == length;
                flagged(case, options, |_, token| token.trained && whole)
            }]),
        Fault::new("bos-beyond-the-limit", "the ids before the first turn do not count in a limit")
            .seen("plausible: `bos` is added to what was cut already")
            .under("{max_length: 9}")
            .as_if(&[|options| {
                let bos = options.bos.len() as i64;
                Options { max_length: options.max_length.map(|most| most + bos), ..options }
            }]),
        Fault::new("mask-one-late", "every flag is that of the token before")
            .seen("plausible: a mask shifted for labels, used for tokens")
            .gives(&[|case, options, _| {
                let text = left(case, options);
                flagged(case, options, |at, _| at > 0 && text[at - 1].trained)
            }]),
        Fault::new("mask-one-early", "every flag is that of the next token")
            .seen("plausible: a mask of what a column predicts, used for its token")
            .gives(&[|case, options, _| {
                let text = left(case, options);
                flagged(case, options, |at, _| text.get(at + 1).is_some_and(|next| next.trained))
            }]),
        Fault::new("last-entry-lost", "the shifted mask lacks its last entry, not its first")
            .seen("plausible: mask[:-1] for mask[1:]")
            .under("{shift: next}")
            .gives(&[|case, options, _| {
                let none = Options { shift: Shift::None, ..options.clone() };
                let mut output = reference::render(case, &none);
                for list in [&mut output.mask, &mut output.labels].into_iter().flatten() {
                    let kept = list.len().saturating_sub(options.shifted());
                    *list = list.iter().take(kept).copied().collect();
                }
                output
            }]),
        Fault::new("first-token-untrained", "the first token of each answer is not trained")
            .seen("plausible: a span that begins behind its first token")
            .gives(&[|case, options, _| {
                let text = left(case, options);
                flagged(case, options, |at, token| {
                    let first = at == 0
                        || (text[at - 1].kind, text[at - 1].turn) != (token.kind, token.turn);
                    token.trained && !(first && token.kind == Kind::Content)
                })
            }]),
        Fault::new(
            "last-token-untrained",
            "the last token of each answer's content is not trained",
        )
        .seen("plausible: a span that ends before its last token")
        .gives(&[|case, options, _| {
            let text = text(case, options);
            flagged(case, options, |at, token| {
                let next = text.get(at + 1).map(|next| (next.kind, next.turn));
                let last = next != Some((token.kind, token.turn));
                token.trained && !(last && token.kind == Kind::Content)
            })
        }]),
    ]
}

/// Labels that are not those of the mask.
fn labels() -> Vec<Fault> {
    vec![
        Fault::new("labels-of-all-tokens", "every token has a label, trained or not")
            .seen("plausible: labels = ids.clone(), and the mask is for the metrics alone")
            .gives(&[|case, options, _| {
                let output = reference::render(case, options);
                let labels = output
                    .tokens
                    .as_ref()
                    .map(|tokens| tokens.iter().skip(options.shifted()).copied().collect());
                TurnMaskOutput { labels, ..output }
            }]),
        Fault::new("zero-for-no-label", "0 stands for no label: ids times the mask")
            .seen("plausible: ids * mask for where(mask, ids, ignore)")
            .as_if(&[|options| Options { ignore: 0, ..options }]),
        Fault::new("ignore-hard-coded", "-100 stands for no label, whatever is declared")
            .seen("an option without effect; torch's default of ignore_index")
            .under("{ignore: -1}")
            .as_if(&[|options| Options { ignore: -100, ..options }]),
        Fault::new("labels-one-early", "labels are those of the next token, the mask is not")
            .seen("labels that are shifted where the loss shifts them again")
            .gives(&[|case, options, _| {
                let output = reference::render(case, options);
                let labels = output.labels.as_ref().map(|labels| {
                    let mut moved: Vec<f64> = labels.iter().skip(1).copied().collect();
                    moved.resize(labels.len(), options.ignore as f64);
                    moved.into_iter().collect()
                });
                TurnMaskOutput { labels, ..output }
            }]),
        Fault::new("id-zero-untrained", "the id 0 has no label, and is not trained or is")
            .seen("plausible: ids * mask or ignore; a mask that is found by ids > 0")
            .gives(&[
                |case, options, _| {
                    flagged(case, options, |_, token| token.trained && token.id != 0)
                },
                |case, options, _| {
                    let mut output = reference::render(case, options);
                    let labels = output.labels.as_mut();
                    labels
                        .into_iter()
                        .flatten()
                        .filter(|label| **label == 0.0)
                        .for_each(|label| *label = options.ignore as f64);
                    output
                },
            ]),
        Fault::new("ids-in-sixteen-bits", "ids beyond 65535 wrap around")
            .seen("plausible: uint16 token files, for vocabularies of twice the size")
            .on(&[|case, _| {
                for turn in &mut case.turns {
                    turn.tokens.mapv_inplace(|id| id & 0xffff);
                }
            }]),
    ]
}

/// Another convention than the one that is declared.
fn declared() -> Vec<Fault> {
    vec![
        Fault::new("headers-trained", "`start` and the role of an answer are trained")
            .seen("plausible: a response template that is not part of the prompt")
            .as_if(&[|options| Options { train_header: true, ..options }]),
        Fault::new("headers-untrained", "headers are not trained, where they are declared to be")
            .seen("an option without effect")
            .under("{train_header: true}")
            .as_if(&[|options| Options { train_header: false, ..options }]),
        Fault::new("ends-untrained", "the end of an answer is not trained")
            .seen("torchtune #949, where it is not what was declared")
            .as_if(&[|options| Options { train_end: false, ..options }]),
        Fault::new(
            "ends-trained",
            "the end of an answer is trained, where it is declared not to be",
        )
        .seen("torchtune #949, where it is not what was declared")
        .under("{train_end: false}")
        .as_if(&[|options| Options { train_end: true, ..options }]),
        Fault::new("only-the-last-answer", "the last turn of the assistant alone is trained")
            .seen("torchtune masking_strategy train_on_last for train_on_assistant")
            .as_if(&[|options| Options { train: Train::LastAssistant, ..options }]),
        Fault::new("every-turn-trained", "every turn but the system's is trained")
            .seen("torchtune train_on_input where it is not declared")
            .as_if(&[|options| Options { train: Train::All, ..options }]),
        Fault::new("all-answers-for-the-last", "all turns of the assistant, not the last alone")
            .seen("an option without effect")
            .under("{train: last-assistant}")
            .as_if(&[|options| Options { train: Train::Assistant, ..options }]),
        Fault::new("last-turn-for-the-last-answer", "the last turn is trained, whosever it is")
            .seen("NeMo-RL only_unmask_final, on conversations that a user ends")
            .under("{train: last-assistant}")
            .as_if(&[|options| Options { train: Train::Last, ..options }]),
        Fault::new(
            "last-answer-for-the-last-turn",
            "the last answer, where the last turn is meant",
        )
        .seen("plausible: the other way round")
        .under("{train: last}")
        .as_if(&[|options| Options { train: Train::LastAssistant, ..options }]),
    ]
}

/// The outputs of tokens, which the limit cuts.
fn rendered(mut parts: Vec<Token>, options: &Options) -> TurnMaskOutput {
    parts.truncate(options.left(parts.len()));
    let ids: Vec<i64> = parts.iter().map(|token| token.id).collect();
    let mask: Vec<bool> = parts.iter().map(|token| token.trained).collect();
    reference::output(&ids, &mask, options)
}

/// The outputs of the right tokens with other flags, which follow from a token and its place.
fn flagged(
    case: &TurnMaskCase,
    options: &Options,
    flag: impl Fn(usize, &Token) -> bool,
) -> TurnMaskOutput {
    let mut parts = left(case, options);
    let flags: Vec<bool> = parts.iter().enumerate().map(|(at, token)| flag(at, token)).collect();
    parts.iter_mut().zip(flags).for_each(|(token, flag)| token.trained = flag);
    rendered(parts, options)
}

/// The outputs of a text that lacks some tokens, which follow from each and the one before it.
fn without(
    case: &TurnMaskCase,
    options: &Options,
    lacks: impl Fn(&Token, Option<&Token>) -> bool,
) -> TurnMaskOutput {
    let all = text(case, options);
    let before = |at: usize| at.checked_sub(1).map(|at| &all[at]);
    let left = all.iter().enumerate().filter(|(at, token)| !lacks(token, before(*at)));
    rendered(left.map(|(_, token)| *token).collect(), options)
}

/// The outputs of other trained turns.
fn turns_of(
    case: &TurnMaskCase,
    options: &Options,
    trained: impl Fn(usize) -> bool,
) -> TurnMaskOutput {
    flagged(case, options, |_, token| match token.kind {
        Kind::Bos => false,
        Kind::Header => trained(token.turn) && options.train_header,
        Kind::Content => trained(token.turn),
        Kind::End => trained(token.turn) && options.train_end,
    })
}

/// The flags of a text without the content of tools.
fn without_tools(case: &TurnMaskCase, options: &Options) -> Vec<bool> {
    let tool = |token: &Token| token.kind == Kind::Content && case.turns[token.turn].who() == TOOL;
    left(case, options).iter().filter(|token| !tool(token)).map(|token| token.trained).collect()
}
