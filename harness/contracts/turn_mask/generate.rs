//! Cases of `turn-mask`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};

use super::oracle::{Kind, Token, left, text};
use super::{
    ASSISTANT, LARGEST_ID, Options, ROLES, SYSTEM, TOOL, Turn, TurnMask, TurnMaskCase, USER,
};
use shakedown_core::contract::class::Class;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::generate::measure::{Measure, complexity};
use shakedown_core::value::place::Dtype;

/// The largest id that is drawn: vocabularies of today.
const VOCABULARY: i64 = 200_000;

/// A text of more tokens than this is not drawn to reach a limit.
const LONG: i64 = 40;

pub(super) fn valid(case: &TurnMaskCase, options: &Options) -> std::result::Result<(), String> {
    if case.turns.is_empty() {
        return Err("no turn, expected 1 or more".to_owned());
    }
    for (at, turn) in case.turns.iter().enumerate() {
        let role = turn.who();
        if !(0..ROLES as i64).contains(&role) {
            return Err(format!("turns[{at}].role is {role}, expected 0 to 3"));
        }
        if let Some(id) = turn.tokens.iter().find(|id| !(0..=LARGEST_ID).contains(*id)) {
            return Err(format!("turns[{at}].tokens has {id}, expected 0 to {LARGEST_ID}"));
        }
    }
    if text(case, options).is_empty() {
        return Err("the text has no token, expected 1 or more".to_owned());
    }
    Ok(())
}

/// The smallest ids that are part of no mark, in order.
pub(super) fn words(options: &Options) -> impl Iterator<Item = i64> {
    (30..).filter(|id| !options.is_mark(*id))
}

/// Ids of marks, all of them that there are.
pub(super) fn marks(options: &Options) -> Vec<i64> {
    [&options.bos, &options.start, &options.end, &options.role_ids]
        .into_iter()
        .flatten()
        .copied()
        .collect()
}

pub(super) fn draw(u: &mut Unstructured<'_>, options: &Options) -> Result<TurnMaskCase> {
    let conversations: [&[i64]; 18] = [
        &[USER, ASSISTANT],
        &[SYSTEM, USER, ASSISTANT],
        &[USER, ASSISTANT, USER, ASSISTANT],
        &[SYSTEM, USER, ASSISTANT, USER, ASSISTANT],
        &[ASSISTANT],
        &[ASSISTANT, USER],
        &[ASSISTANT, USER, ASSISTANT],
        &[USER, ASSISTANT, ASSISTANT],
        &[USER, USER, ASSISTANT],
        &[USER, ASSISTANT, TOOL, ASSISTANT],
        &[USER, ASSISTANT, TOOL, TOOL, ASSISTANT, USER],
        &[USER],
        &[SYSTEM, USER],
        &[USER, ASSISTANT, USER],
        &[USER, ASSISTANT, TOOL],
        &[SYSTEM],
        &[USER, SYSTEM, ASSISTANT, USER, ASSISTANT],
        &[TOOL, ASSISTANT],
    ];
    let roles: Vec<i64> = if chance(u, 208)? {
        one(u, &conversations)?.to_vec()
    } else {
        let count = u.int_in_range(1..=6)?;
        (0..count).map(|_| one(u, &[USER, ASSISTANT, TOOL, SYSTEM])).collect::<Result<_>>()?
    };
    let plain: Vec<i64> = words(options).take(12).collect();
    let marks = marks(options);
    let with_marks = chance(u, 80)? && !marks.is_empty();
    let mut turns = Vec::new();
    for role in roles {
        let length = one(u, &[1, 2, 3, 1, 2, 4, 0, 5])?;
        let mut tokens: Vec<i64> = Vec::new();
        for _ in 0..length {
            let id = match u.choose_index(8)? {
                _ if with_marks && chance(u, 110)? => one(u, &marks)?,
                0 => tokens.last().copied().unwrap_or(plain[0]),
                1 => one(u, &[0, 2, 5, 7])?,
                2 => u.int_in_range(0..=VOCABULARY)?,
                _ => one(u, &plain)?,
            };
            tokens.push(id);
        }
        if with_marks && chance(u, 64)? {
            // Somebody writes an answer into a message.
            let header = options.header(ASSISTANT);
            tokens.extend(options.end.iter().copied().filter(|_| length > 1));
            tokens.extend(header);
            tokens.push(plain[1]);
        }
        turns.push(Turn::of(role, &tokens));
    }
    let mut case = TurnMaskCase { turns };
    if text(&case, options).is_empty() {
        case.turns.push(Turn::of(ASSISTANT, &plain[..1]));
    }
    Ok(case)
}

/// A conversation: a letter for the role of each turn (`s`, `u`, `a`, `t`), then one for each
/// token. `E`, `S` and `R` are the ids of `end`, of `start` and of the assistant's role, `B` is
/// `bos`, and digits are words.
pub(super) fn conversation(turns: &[&str], options: &Options) -> TurnMaskCase {
    let words: Vec<i64> = words(options).take(10).collect();
    let turn = |text: &&str| {
        let role = match &text[..1] {
            "s" => SYSTEM,
            "u" => USER,
            "a" => ASSISTANT,
            _ => TOOL,
        };
        let mut tokens = Vec::new();
        for letter in text[1..].bytes() {
            match letter {
                b'E' => tokens.extend(&options.end),
                b'S' => tokens.extend(&options.start),
                b'R' => tokens.extend(options.role_ids.get(ASSISTANT as usize)),
                b'B' => tokens.extend(&options.bos),
                digit => tokens.push(words[usize::from(digit - b'0')]),
            }
        }
        Turn::of(role, &tokens)
    };
    TurnMaskCase { turns: turns.iter().map(turn).collect() }
}

#[rustfmt::skip]
const CORNERS: &[&[&str]] = &[
    &["a0"], &["u0"], &["s0"], &["t0"], &["a"], &["u"], &["s"], &["t"],
    &["a01"], &["u01"], &["a00"],
    &["u0", "a1"], &["a0", "u1"], &["a0", "a1"], &["u0", "u1"], &["s0", "a1"], &["s0", "u1"],
    &["t0", "a1"], &["a0", "t1"], &["u", "a0"], &["u0", "a"], &["a", "u0"], &["a", "a0"],
    &["u00", "a1"], &["u0", "a11"], &["a11", "u2", "a3"],
    &["u0", "a12"], &["u01", "a2"], &["a0", "u12"], &["a01", "u2"],
    &["u0", "a1", "u2"], &["u0", "a1", "t2"], &["u0", "a1", "a2"], &["a0", "u1", "a2"],
    &["u0", "u1", "a2"], &["s0", "u1", "a2"], &["u0", "s1", "a2"], &["u0", "t1", "a2"],
    &["u0", "a1", "u2", "a3"], &["a0", "u1", "a2", "u3"], &["u0", "a1", "t2", "a3"],
    &["s0", "u12", "a34", "u5", "a6"], &["s0", "u1", "a2", "t3", "t4", "a5", "u6"],
    &["u0", "a", "u1", "a2"], &["u00", "a1", "t22", "a33"],
    &["u0", "a1E2"], &["u0", "aE"], &["u0E1", "a2"], &["uSR0", "a1"], &["u0ESR1", "a2"],
    &["u0", "a1ESR2"], &["u0ESR1E", "a2", "u3"], &["t0SR1", "a2"], &["uB", "aB"],
    &["u0R1", "a2"], &["u0", "a1R2"], &["a0E1", "u2"], &["s0SR1", "u2"],
    &["u0", "a1S2"], &["aS0", "u1"],
    &["u0123", "a4567", "u89", "a0123", "t4567", "a89"],
];

pub(super) fn corners(options: &Options) -> Vec<TurnMaskCase> {
    let mut cases: Vec<TurnMaskCase> = Vec::new();
    let mut push = |case: TurnMaskCase| {
        if valid(&case, options).is_ok() && !cases.contains(&case) {
            cases.push(case);
        }
    };
    for role in 0..ROLES as i64 {
        push(TurnMaskCase { turns: vec![Turn::of(role, &[])] });
        push(TurnMaskCase { turns: vec![Turn::of(role, &[0])] });
    }
    for turns in CORNERS {
        push(conversation(turns, options));
    }
    push(TurnMaskCase {
        turns: vec![Turn::of(USER, &[0]), Turn::of(ASSISTANT, &[VOCABULARY - 1])],
    });
    if let Some(most) = options.max_length.filter(|most| *most <= LONG).map(|most| most as usize) {
        let behind: Vec<i64> = vec![words(options).next().unwrap_or(0); most];
        push(TurnMaskCase { turns: vec![Turn::of(USER, &behind), Turn::of(ASSISTANT, &[0, 0])] });
        // An answer that ends at the limit, one that is cut, and one that begins behind it.
        for (roles, count) in [(&[ASSISTANT][..], 1), (&[USER, ASSISTANT], 2)] {
            let marks = |turns: &[i64]| -> usize {
                let headers: usize = turns.iter().map(|role| options.header(*role).len()).sum();
                options.bos.len() + headers + turns.len() * options.end.len()
            };
            for total in [most.saturating_sub(1), most, most + 1, most + 2, most + 5] {
                let content = total.saturating_sub(marks(roles));
                let own = content / count;
                let words: Vec<i64> = words(options).take(8).collect();
                let tokens = |length: usize| -> Vec<i64> {
                    (0..length).map(|at| words[at % words.len()]).collect()
                };
                let mut turns: Vec<Turn> =
                    roles[..count - 1].iter().map(|role| Turn::of(*role, &tokens(own))).collect();
                let last = content - own * (count - 1);
                turns.push(Turn::of(roles[count - 1], &tokens(last)));
                push(TurnMaskCase { turns: turns.clone() });
                turns.push(Turn::of(USER, &tokens(2)));
                push(TurnMaskCase { turns });
            }
        }
    }
    cases.sort_by_cached_key(measure);
    cases
}

/// Short conversations of all roles, from which shrinking may start.
pub(super) fn small(options: &Options) -> Vec<TurnMaskCase> {
    let mut contents: Vec<Vec<i64>> = vec![vec![], vec![0], vec![1], vec![0, 0], vec![0, 1]];
    let marks = [&options.end[..], &options.start, &options.bos, &options.header(ASSISTANT)];
    for mark in marks.into_iter().filter(|mark| !mark.is_empty()) {
        contents.push(mark.to_vec());
        contents.push([mark, &[0]].concat());
        contents.push([&[0], mark].concat());
    }
    contents.dedup();
    let one: Vec<Turn> = (0..ROLES as i64)
        .flat_map(|role| contents.iter().map(move |tokens| Turn::of(role, tokens)))
        .collect();
    let mut cases: Vec<TurnMaskCase> =
        one.iter().map(|turn| TurnMaskCase { turns: vec![turn.clone()] }).collect();
    for first in &one {
        for second in one.iter().filter(|turn| turn.tokens.len() < 2) {
            cases.push(TurnMaskCase { turns: vec![first.clone(), second.clone()] });
        }
    }
    let short = |length: usize| {
        (0..ROLES as i64).map(move |role| Turn::of(role, &[0, 0][..length])).collect::<Vec<Turn>>()
    };
    for [a, b, c] in [[0, 0, 0], [1, 1, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]] {
        for first in short(a) {
            for second in short(b) {
                for third in short(c) {
                    let turns = vec![first.clone(), second.clone(), third];
                    cases.push(TurnMaskCase { turns });
                }
            }
        }
    }
    let large = |role| TurnMaskCase { turns: vec![Turn::of(role, &[1 << 16])] };
    cases.extend((0..ROLES as i64).map(large));
    cases.retain(|case| valid(case, options).is_ok());
    cases
}

/// Tokens and turns, turns, roles that are not the assistant's, then what the values cost, and how
/// early long turns and other roles stand.
pub(super) fn measure(case: &TurnMaskCase) -> Measure {
    let turns = &case.turns;
    let tokens: usize = turns.iter().map(|turn| turn.tokens.len()).sum();
    let role =
        |turn: &Turn| (turn.who() - ASSISTANT).unsigned_abs() * 2 + u64::from(turn.who() > 2);
    let cost = |turn: &Turn| turn.tokens.iter().map(|id| complexity(*id as f64)).sum::<u64>();
    let ahead = |cost: &dyn Fn(&Turn) -> u64| -> u64 {
        turns.iter().rev().enumerate().map(|(ahead, turn)| ahead as u64 * cost(turn)).sum()
    };
    let inside = turns.iter().map(|turn| {
        let costs = turn.tokens.iter().rev().enumerate();
        costs.map(|(ahead, id)| ahead as u64 * complexity(*id as f64)).sum::<u64>()
    });
    Measure(vec![
        (tokens + turns.len()) as u64,
        turns.len() as u64,
        turns.iter().map(role).sum(),
        turns.iter().map(cost).sum(),
        ahead(&|turn| turn.tokens.len() as u64),
        ahead(&role),
        ahead(&cost),
        inside.sum(),
    ])
}

/// Fewer turns, fewer tokens, other roles, turns exchanged, simpler ids.
pub(super) fn simpler(case: &TurnMaskCase, options: &Options) -> Vec<TurnMaskCase> {
    let turns = &case.turns;
    let mut candidates = Vec::new();
    let mut push = |turns: Vec<Turn>| candidates.push(TurnMaskCase { turns });
    if turns.len() > 1 {
        turns.iter().for_each(|turn| push(vec![turn.clone()]));
        turns.windows(2).for_each(|pair| push(pair.to_vec()));
    }
    if turns.len() > 3 {
        turns.windows(3).for_each(|three| push(three.to_vec()));
    }
    let plain: Vec<i64> = [0, 1, 2, 1 << 16].into_iter().chain(marks(options)).collect();
    for at in 0..turns.len() {
        let mut with = |turn: Turn| {
            let mut changed = turns.clone();
            changed[at] = turn;
            push(changed);
        };
        let (role, tokens) = (turns[at].who(), turns[at].tokens.to_vec());
        for other in [ASSISTANT, USER, SYSTEM, TOOL] {
            with(Turn::of(other, &tokens));
        }
        with(Turn::of(role, &[]));
        with(Turn::of(role, &[0]));
        with(Turn::of(role, &vec![0; tokens.len()]));
        for place in 0..tokens.len() {
            let mut fewer = tokens.clone();
            fewer.remove(place);
            with(Turn::of(role, &fewer));
            for id in plain.iter().copied().chain([tokens[place] / 2]) {
                if complexity(id as f64) < complexity(tokens[place] as f64) {
                    let mut simpler = tokens.clone();
                    simpler[place] = id;
                    with(Turn::of(role, &simpler));
                }
            }
            if place > 0 {
                let mut exchanged = tokens.clone();
                exchanged.swap(place - 1, place);
                with(Turn::of(role, &exchanged));
            }
        }
    }
    for at in 0..turns.len() {
        if turns.len() > 1 {
            let mut fewer = turns.clone();
            fewer.remove(at);
            push(fewer);
        }
        if at > 0 {
            let mut exchanged = turns.clone();
            exchanged.swap(at - 1, at);
            push(exchanged.clone());
            let mut contents = turns.clone();
            contents[at].tokens = turns[at - 1].tokens.clone();
            contents[at - 1].tokens = turns[at].tokens.clone();
            push(contents);
            if let Some(last) = turns[at - 1].tokens.last() {
                // A token moves to the turn behind it.
                let before = turns[at - 1].tokens.to_vec();
                let mut handed_on = turns.clone();
                handed_on[at - 1] = Turn::of(turns[at - 1].who(), &before[..before.len() - 1]);
                let after = [&[*last], &turns[at].tokens.to_vec()[..]].concat();
                handed_on[at] = Turn::of(turns[at].who(), &after);
                push(handed_on);
            }
        }
    }
    candidates
}

/// What a person looks at first.
pub(super) fn samples(options: &Options) -> Vec<TurnMaskCase> {
    let samples: [&[&str]; 5] = [
        &["u01", "a23"],
        &["s0", "u1", "a23", "u4", "a5"],
        &["a0", "u1"],
        &["u0", "a1", "t2", "a3"],
        &["u0E1", "a2E3"],
    ];
    samples.iter().map(|turns| conversation(turns, options)).collect()
}

pub(super) fn classes() -> Vec<Class<TurnMask>> {
    fn who(case: &TurnMaskCase) -> Vec<i64> {
        case.turns.iter().map(Turn::who).collect()
    }
    /// Whether the first token behind the limit is such a one, and the text goes on there.
    fn cut(case: &TurnMaskCase, options: &Options, is: impl Fn(&[Token], &Token) -> bool) -> bool {
        let (all, left) = (text(case, options), left(case, options));
        all.get(left.len()).is_some_and(|next| is(&left, next))
    }
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let limited: fn(&Options, Dtype) -> bool = |options, _| {
        let most = options.max_length.unwrap_or(i64::MAX);
        let before = options.bos.len() + options.header(ASSISTANT).len();
        (before as i64 + 1..=LONG).contains(&most)
    };
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "no-assistant",
            "no turn of the assistant",
            |case: &TurnMaskCase, _: &Options| !who(case).contains(&ASSISTANT),
            always,
        ),
        class(
            "assistant-first",
            "two turns or more, the first one the assistant's",
            |case, _| case.turns.len() > 1 && who(case)[0] == ASSISTANT,
            always,
        ),
        class(
            "two-in-a-row",
            "two turns of one role, one behind the other",
            |case, _| who(case).windows(2).any(|pair| pair[0] == pair[1]),
            always,
        ),
        class(
            "tool-between",
            "a turn of a tool between two of the assistant",
            |case, _| {
                let found = |pair: &[i64]| pair == [ASSISTANT, TOOL, ASSISTANT];
                who(case).windows(3).any(found)
            },
            always,
        ),
        class(
            "user-last",
            "a conversation with an answer, the last turn the user's",
            |case, _| who(case).contains(&ASSISTANT) && who(case).last() == Some(&USER),
            always,
        ),
        class("one-turn", "one turn", |case, _| case.turns.len() == 1, always),
        class(
            "several-answers",
            "two turns of the assistant or more",
            |case, _| who(case).iter().filter(|role| **role == ASSISTANT).count() > 1,
            always,
        ),
        class(
            "system-first",
            "two turns or more, the first one the system's",
            |case, _| case.turns.len() > 1 && who(case)[0] == SYSTEM,
            always,
        ),
        class(
            "empty-content",
            "a turn without content",
            |case, _| case.turns.iter().any(|turn| turn.tokens.is_empty()),
            always,
        ),
        class(
            "end-in-content",
            "a content with the id that ends a turn, and something behind it",
            |case, options| {
                case.turns.iter().any(|turn| {
                    let tokens = turn.tokens.to_vec();
                    let found = tokens.windows(options.end.len().max(1));
                    let mut found = found.enumerate().filter(|(_, ids)| *ids == &options.end[..]);
                    found.any(|(at, _)| at + options.end.len() < tokens.len())
                })
            },
            |options, _| !options.end.is_empty(),
        ),
        class(
            "header-in-content",
            "a content with the ids that begin a turn of the assistant",
            |case, options| {
                let header = options.header(ASSISTANT);
                !header.is_empty()
                    && case.turns.iter().any(|turn| {
                        turn.tokens.to_vec().windows(header.len()).any(|ids| ids == header)
                    })
            },
            |options, _| !options.header(ASSISTANT).is_empty(),
        ),
        class(
            "equal-neighbours",
            "a content with an id twice in a row",
            |case, _| {
                let twice =
                    |turn: &Turn| turn.tokens.to_vec().windows(2).any(|two| two[0] == two[1]);
                case.turns.iter().any(twice)
            },
            always,
        ),
        class(
            "cut-inside-an-answer",
            "a limit inside the content of an answer",
            |case, options| {
                cut(case, options, |left, next| {
                    let of_answer = case.turns[next.turn].who() == ASSISTANT;
                    let begun = left
                        .last()
                        .is_some_and(|last| last.kind == Kind::Content && last.turn == next.turn);
                    of_answer && begun && next.kind == Kind::Content
                })
            },
            limited,
        ),
        class(
            "cut-at-the-end-of-an-answer",
            "a limit behind the last token of an answer, and a turn behind it",
            |case, options| {
                cut(case, options, |left, next| {
                    left.last().is_some_and(|last| {
                        last.kind != Kind::Bos
                            && case.turns[last.turn].who() == ASSISTANT
                            && next.turn != last.turn
                    })
                })
            },
            |options, dtype| {
                let most = options.max_length.unwrap_or(i64::MAX);
                let before = options.bos.len() + options.header(ASSISTANT).len();
                let before = before + options.end.len();
                (before as i64 + 1..=LONG).contains(&most) && dtype.max() > 0.0
            },
        ),
        class(
            "cut-before-the-first-answer",
            "a limit before the first token of an answer's content",
            |case, options| {
                let trained = |token: &Token| {
                    token.kind == Kind::Content && case.turns[token.turn].who() == ASSISTANT
                };
                !left(case, options).iter().any(trained) && text(case, options).iter().any(trained)
            },
            |options, _| options.max_length.is_some_and(|most| most <= LONG),
        ),
        class(
            "answer-of-one-token-first",
            "a first turn of the assistant, of one token, and nothing before it",
            |case, options| {
                let first = &case.turns[0];
                let bare = options.bos.is_empty() && options.header(ASSISTANT).is_empty();
                bare && first.who() == ASSISTANT && first.tokens.len() == 1 && case.turns.len() > 1
            },
            |options, _| options.bos.is_empty() && options.header(ASSISTANT).is_empty(),
        ),
        class(
            "large-ids",
            "an id of 65536 or more",
            |case, _| case.turns.iter().any(|turn| turn.tokens.iter().any(|id| id >> 16 > 0)),
            always,
        ),
    ]
}
