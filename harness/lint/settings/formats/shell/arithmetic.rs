//! `$((..))`: whole numbers with `+ - * / % **` and parentheses.

/// Parentheses in each other beyond this are not followed.
const DEEPEST: usize = 40;

/// What an expression comes to; none where it has something else in it, or leaves the numbers.
/// `lookup` gives the value of a variable.
pub(super) fn evaluate(text: &str, lookup: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
    let mut reader = Reader { text, at: 0, lookup };
    let value = reader.sum(0)?;
    reader.skip_spaces();
    (reader.at == text.len()).then_some(value)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    lookup: &'a dyn Fn(&str) -> Option<i64>,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn takes(&mut self, mark: &str) -> bool {
        self.skip_spaces();
        let is_here = self.rest().starts_with(mark);
        self.at += if is_here { mark.len() } else { 0 };
        is_here
    }

    fn sum(&mut self, depth: usize) -> Option<i64> {
        let mut value = self.product(depth)?;
        loop {
            if self.takes("+") {
                value = value.checked_add(self.product(depth)?)?;
            } else if self.takes("-") {
                value = value.checked_sub(self.product(depth)?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self, depth: usize) -> Option<i64> {
        let mut value = self.power(depth)?;
        loop {
            if self.takes("*") {
                value = value.checked_mul(self.power(depth)?)?;
            } else if self.takes("/") {
                value = value.checked_div(self.power(depth)?)?;
            } else if self.takes("%") {
                value = value.checked_rem(self.power(depth)?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn power(&mut self, depth: usize) -> Option<i64> {
        if depth > DEEPEST {
            return None;
        }
        let base = self.atom(depth)?;
        if self.takes("**") {
            let exponent = self.power(depth + 1)?;
            return base.checked_pow(u32::try_from(exponent).ok()?);
        }
        Some(base)
    }

    fn atom(&mut self, depth: usize) -> Option<i64> {
        if depth > DEEPEST {
            return None;
        }
        if self.takes("(") {
            let value = self.sum(depth + 1)?;
            return self.takes(")").then_some(value);
        }
        if self.takes("-") {
            return self.atom(depth + 1)?.checked_neg();
        }
        if self.takes("+") {
            return self.atom(depth + 1);
        }
        let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let length = self.rest().find(is_end).unwrap_or(self.rest().len());
        let word = self.rest()[..length].to_owned();
        self.at += length;
        match word.as_bytes() {
            [] => None,
            [b'0', _, ..] => None,
            [b'0'..=b'9', ..] => word.parse().ok(),
            _ => (self.lookup)(&word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_evaluated_as_the_shell_does() {
        let lookup = |name: &str| (name == "N").then_some(8);
        for (text, value) in [
            ("1 + 2 * 3", Some(7)),
            ("(1 + 2) * 3", Some(9)),
            ("N * 2 - 1", Some(15)),
            ("-N / 3", Some(-2)),
            ("7 % 4", Some(3)),
            ("2 ** 3 ** 2", Some(512)),
            ("10 - 2 - 3", Some(5)),
            ("1 / 0", None),
            ("M", None),
            ("1 == 1", None),
            ("N > 1 ? 2 : 3", None),
            ("9223372036854775807 + 1", None),
            ("2 ** 64", None),
            ("010", None),
            ("", None),
            ("(1", None),
        ] {
            assert_eq!(evaluate(text, &lookup), value, "{text}");
        }
        assert_eq!(evaluate(&"(".repeat(10_000), &lookup), None);
        assert_eq!(evaluate(&"-".repeat(10_000), &lookup), None);
    }
}
