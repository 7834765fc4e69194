//! What the contract of a component says: the report names its parts by their ids only.

use shakedown_contracts as contracts;
use shakedown_core::contract::doc::Doc;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::value::record::{Field, Kind};

/// What a contract says; nothing where the contract is not known here.
#[derive(Default)]
pub(super) struct About {
    summary: String,
    invariants: Vec<(&'static str, Doc)>,
    classes: Vec<(&'static str, &'static str)>,
    texts: Vec<&'static str>,
}

impl About {
    pub(super) fn contract(id: &str) -> About {
        contracts::find(id).map(About::of).unwrap_or_default()
    }

    fn of(contract: &dyn AnyContract) -> About {
        let mut texts = Vec::new();
        texts_among(&contract.inputs(), &mut texts);
        texts_among(&contract.outputs(), &mut texts);
        About {
            summary: contract.doc().summary(),
            invariants: contract.invariants().iter().map(|one| (one.id, one.doc)).collect(),
            classes: contract.classes().iter().map(|class| (class.id, class.meaning)).collect(),
            texts,
        }
    }

    /// What the contract is about, in a sentence.
    pub(super) fn summary(&self) -> &str {
        &self.summary
    }

    /// The documentation of an invariant.
    pub(super) fn invariant(&self, id: &str) -> Option<Doc> {
        self.invariants.iter().find(|(known, _)| *known == id).map(|(_, doc)| *doc)
    }

    /// What belongs to an input class.
    pub(super) fn class(&self, id: &str) -> &'static str {
        self.classes.iter().find(|(known, _)| *known == id).map_or("", |(_, meaning)| meaning)
    }

    /// Whether the values of a field are texts.
    pub(super) fn is_text(&self, field: &str) -> bool {
        self.texts.contains(&field)
    }
}

fn texts_among(fields: &[Field], texts: &mut Vec<&'static str>) {
    for field in fields {
        if field.kind == Kind::Text {
            texts.push(field.name);
        }
        texts_among(&field.items, texts);
    }
}
