//! The definition of `turn-mask`: what each token of the rendered conversation is.

use ndarray::Array1;

use super::{Options, TurnMaskCase};
use shakedown_core::numeric::tolerance::{Expected, Number};

/// What a token of the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Of the ids before the first turn.
    Bos,
    /// Of `start`, or the role's id.
    Header,
    /// Of the content.
    Content,
    /// Of `end`.
    End,
}

/// A token of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) id: i64,
    pub(super) kind: Kind,
    /// The number of its turn; 0 before the first one.
    pub(super) turn: usize,
    pub(super) trained: bool,
}

/// All tokens of the text, of which `max_length` leaves the first ones.
pub(super) fn text(case: &TurnMaskCase, options: &Options) -> Vec<Token> {
    let trained = options.trained(&case.turns);
    let mut text = Vec::new();
    let bos = |id: &i64| Token { id: *id, kind: Kind::Bos, turn: 0, trained: false };
    text.extend(options.bos.iter().map(bos));
    for (turn, of) in case.turns.iter().enumerate() {
        let trained = trained[turn];
        let token = |id: i64, kind, trained| Token { id, kind, turn, trained };
        let header = options.header(of.who()).into_iter();
        text.extend(header.map(|id| token(id, Kind::Header, trained && options.train_header)));
        text.extend(of.tokens.iter().map(|id| token(*id, Kind::Content, trained)));
        let end = options.end.iter();
        text.extend(end.map(|id| token(*id, Kind::End, trained && options.train_end)));
    }
    text
}

/// The tokens that are left.
pub(super) fn left(case: &TurnMaskCase, options: &Options) -> Vec<Token> {
    let mut text = text(case, options);
    text.truncate(options.left(text.len()));
    text
}

/// What the definition gives: nothing is computed, so nothing is rounded.
pub(super) fn expected(case: &TurnMaskCase, options: &Options) -> Vec<Expected> {
    let text = left(case, options);
    let field = |field, from: usize, number: &dyn Fn(&Token) -> i64| {
        let numbers = text.iter().skip(from).map(|token| Number::new(number(token) as f64, 0.0));
        let numbers = Array1::from_iter(numbers).into_dyn();
        Expected { field, numbers, terms: 1 }
    };
    let later = options.shifted();
    vec![
        field("tokens", 0, &|token| token.id),
        field("mask", later, &|token| i64::from(token.trained)),
        field("labels", later, &|token| if token.trained { token.id } else { options.ignore }),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::{Shift, Train, Turn};
    use super::*;

    /// System 30, user 31 32, assistant 33 34, user 35, assistant 36.
    fn of(options: &Options, field: &str) -> Vec<i64> {
        let turns: [(i64, &[i64]); 5] =
            [(0, &[30]), (1, &[31, 32]), (2, &[33, 34]), (1, &[35]), (2, &[36])];
        let turns = turns.iter().map(|(role, tokens)| Turn::of(*role, tokens)).collect();
        let expected = expected(&TurnMaskCase { turns }, options);
        let expected = expected.into_iter().find(|expected| expected.field == field).unwrap();
        expected.numbers.iter().map(|number| number.value as i64).collect()
    }

    fn plain() -> Options {
        let none = Vec::new;
        let (bos, start, end, role_ids) = (none(), none(), none(), none());
        Options { bos, start, end, role_ids, ..Options::default() }
    }

    #[test]
    fn a_conversation_is_rendered_with_its_marks() {
        let expected = [
            1, 10, 20, 30, 11, 10, 21, 31, 32, 11, 10, 22, 33, 34, 11, 10, 21, 35, 11, 10, 22, 36,
            11,
        ];
        assert_eq!(of(&Options::default(), "tokens"), expected);
        assert_eq!(of(&plain(), "tokens"), [30, 31, 32, 33, 34, 35, 36]);
    }

    #[test]
    fn the_turns_that_are_declared_are_trained() {
        let mask = |train| of(&Options { train, ..plain() }, "mask");
        assert_eq!(mask(Train::Assistant), [0, 0, 0, 1, 1, 0, 1]);
        assert_eq!(mask(Train::LastAssistant), [0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(mask(Train::Last), [0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(mask(Train::All), [0, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn a_limit_cuts_everything_and_a_shift_the_first_entry() {
        let options = Options { max_length: Some(4), shift: Shift::Next, ..plain() };
        assert_eq!(of(&options, "tokens"), [30, 31, 32, 33]);
        assert_eq!(of(&options, "mask"), [0, 0, 1]);
        assert_eq!(of(&options, "labels"), [-100, -100, 33]);
    }

    #[test]
    fn header_and_end_are_trained_as_declared() {
        let sum = |train_header, train_end| {
            let options = Options { train_header, train_end, ..Options::default() };
            of(&options, "mask").iter().sum::<i64>()
        };
        assert_eq!([sum(false, true), sum(false, false), sum(true, false)], [5, 3, 7]);
    }
}
