//! Options at values that hide mistakes: a component that reads the wrong one of two options cannot
//! be told from a right one while both are equal, nor one that forgets an option that does nothing.

use std::sync::Arc;

use crate::contract::options::AnyOptions;

/// Values of options that hide a mistake, and others that show it.
#[derive(Clone, Copy, Debug)]
pub struct Blind {
    hidden: Hidden,
    shown_under: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy, Debug)]
enum Hidden {
    /// While both options are equal.
    Equal(&'static str, &'static str),
    /// While the option has this value.
    Idle(&'static str, f64),
}

impl Blind {
    /// Two options of which one may be read for the other while they are equal, and values, as
    /// YAML, under which that shows.
    pub const fn while_equal(
        [a, b]: [&'static str; 2],
        shown_under: &'static [(&'static str, &'static str)],
    ) -> Blind {
        Blind { hidden: Hidden::Equal(a, b), shown_under }
    }

    /// An option that does nothing at a value, and a value, as YAML, at which it does.
    pub const fn at(
        option: &'static str,
        value: f64,
        shown_under: &'static [(&'static str, &'static str)],
    ) -> Blind {
        Blind { hidden: Hidden::Idle(option, value), shown_under }
    }

    /// Whether these options hide the mistake.
    pub fn hides(&self, options: &dyn AnyOptions) -> bool {
        let values = options.json();
        match self.hidden {
            Hidden::Equal(a, b) => values.get(a) == values.get(b),
            Hidden::Idle(option, value) => {
                values.get(option).and_then(serde_json::Value::as_f64) == Some(value)
            }
        }
    }

    /// The options under which the mistake shows; `None` where the others do not go with them.
    pub fn shown(&self, options: &Arc<dyn AnyOptions>) -> Option<Arc<dyn AnyOptions>> {
        let mut shown = Arc::clone(options);
        for (name, value) in self.shown_under {
            shown = shown.with(name, value).ok()?;
        }
        shown.check().is_ok().then_some(shown)
    }

    /// Whether a component takes every option that would have to change.
    pub fn is_taken(&self, reads: impl Fn(&str) -> bool) -> bool {
        self.shown_under.iter().all(|(name, _)| reads(name))
    }

    /// `clip_low: 0.1, clip_high: 0.3`.
    pub fn under(&self) -> String {
        let values: Vec<String> =
            self.shown_under.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        values.join(", ")
    }

    /// What cannot be told where a component does not take the options; nothing where an option
    /// that does nothing need not be taken either.
    pub fn warning(&self) -> Option<String> {
        let Hidden::Equal(a, b) = self.hidden else { return None };
        Some(format!(
            "`{a}` and `{b}` are equal, and the component takes no other values for them: one that \
             reads the wrong one cannot be told from a right one"
        ))
    }
}
