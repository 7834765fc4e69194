//! How much every oracle lets pass: a bound that becomes wider, and a number that is no longer
//! expected, show up as a snapshot.
//!
//! That references pass says that no bound is too narrow. This says that none is too wide without
//! somebody having seen it: for the corners and the regressions of each contract, under its
//! defaults, under each other word that an option takes, and under the options of each fault;
//! last, for cases under options that are both drawn. Only these change with what is drawn.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arbitrary::Unstructured;
use proptest::prelude::Rng;
use shakedown::author::{Dtype, Tolerance};
use shakedown::contract::erased::AnyContract;
use shakedown::contract::options::AnyOptions;
use shakedown::contract::stream;
use shakedown::contracts;
use shakedown::engine::subject::read_options;
use shakedown::files::case_file::CaseFile;
use shakedown::files::corpora::regressions_folder;
use shakedown::numeric::tolerance::{Expected, ExpectedTexts, Wanted};
use shakedown::value::record::Shared;

use crate::snapshot::assert_snapshot;

type Contract = &'static dyn AnyContract;

/// Where training is; half formats add their own storage only.
const DTYPE: Dtype = Dtype::F32;

/// The options under which oracles are looked at, in words: the defaults, each other word and flag
/// of each option, and what the faults declare.
fn documents(contract: Contract) -> Vec<String> {
    let mut documents = vec!["{}".to_owned()];
    for option in contract.option_docs() {
        let words = option.schema["oneOf"].as_array().into_iter().flatten();
        let mut words: Vec<String> =
            words.filter_map(|word| Some(word["const"].as_str()?.to_owned())).collect();
        if option.schema["type"] == "boolean" {
            words = ["false", "true"].map(str::to_owned).to_vec();
        }
        words.retain(|word| *word != option.default);
        documents.extend(words.iter().map(|word| format!("{{{}: {word}}}", option.name)));
    }
    for fault in contract.faults() {
        if !documents.iter().any(|known| known == fault.options) {
            documents.push(fault.options.to_owned());
        }
    }
    documents
}

/// What is said of the numbers of one field, over all cases.
#[derive(Default)]
struct Allowed {
    numbers: usize,
    /// Of which anything passes.
    open: usize,
    /// The logarithms of the bounds of the others.
    bounds: Vec<f64>,
}

impl Allowed {
    fn add(&mut self, tolerance: Tolerance, expected: &Expected) {
        for number in &expected.numbers {
            let bound = tolerance.bound(*number, expected.terms);
            self.numbers += 1;
            self.open += usize::from(number.scale.is_infinite());
            if bound.is_finite() {
                self.bounds.push(bound.ln());
            }
        }
    }

    fn said(&self, field: &str) -> String {
        let mean = (self.bounds.iter().sum::<f64>() / self.bounds.len() as f64).exp();
        let most = self.bounds.iter().copied().fold(f64::NEG_INFINITY, f64::max).exp();
        let Allowed { numbers, open, .. } = self;
        let bounds = match self.bounds.is_empty() {
            true => String::new(),
            false => format!(", ± {mean:.5e} in the mean, {most:.3e} at most"),
        };
        format!("{field}: {numbers}, {open} open{bounds}")
    }
}

/// What is said of the texts of one field.
fn said_of_texts(expected: &[ExpectedTexts]) -> Option<String> {
    let field = expected.first()?.field;
    let texts: Vec<&Wanted> = expected.iter().flat_map(|one| &one.texts).collect();
    let open = texts.iter().filter(|text| text.is_open()).count();
    let pieces = texts.iter().filter(|text| matches!(text, Wanted::Pieces(_))).count();
    let choices = texts.iter().map(|text| match text {
        Wanted::OneOf(texts) => texts.len(),
        _ => 0,
    });
    let choices: usize = choices.sum();
    let texts = texts.len();
    Some(format!("{field}: {texts} texts, {open} open, {pieces} in pieces, {choices} choices"))
}

/// What an oracle allows on some cases: a line for each field and gradient.
fn allowances(contract: Contract, cases: &[(Arc<dyn AnyOptions>, Shared)]) -> Vec<String> {
    let mut fields: Vec<(&str, Allowed)> = Vec::new();
    let mut texts = Vec::new();
    let mut refused = 0;
    for (options, case) in cases {
        if contract.refuses(&**case, &**options) {
            refused += 1;
            continue;
        }
        let mut all = contract.oracle(&**case, &**options, DTYPE);
        all.extend(contract.oracle_gradient(&**case, &**options, DTYPE));
        for expected in &all {
            let whole = contract.whole().contains(&expected.field);
            let at_f32 = Tolerance { dtype: DTYPE, factor: 1.0 };
            let tolerance = if whole { Tolerance::WHOLE } else { at_f32 };
            let known = fields.iter().position(|(name, _)| *name == expected.field);
            let at = known.unwrap_or_else(|| {
                fields.push((expected.field, Allowed::default()));
                fields.len() - 1
            });
            fields[at].1.add(tolerance, expected);
        }
        texts.extend(contract.oracle_texts(&**case, &**options));
    }
    let mut said: Vec<String> = fields.iter().map(|(name, allowed)| allowed.said(name)).collect();
    said.extend(said_of_texts(&texts));
    if refused > 0 {
        said.push(format!("{refused} of {} cases refused", cases.len()));
    }
    said
}

/// All that the oracle of a contract allows, to be read by people.
fn text(contract: Contract) -> String {
    let mut text = String::new();
    let mut under_the_defaults = Vec::new();
    for document in documents(contract) {
        let options = read_options(contract, &document).expect(&document);
        if options.check().is_err() {
            continue;
        }
        let valid = |case: &Shared| contract.valid(&**case, &*options, DTYPE).is_ok();
        let corners = contract.corners(&*options, DTYPE).into_iter().filter(valid);
        let cases: Vec<_> = corners.map(|case| (Arc::clone(&options), case)).collect();
        let said = allowances(contract, &cases);
        if said == under_the_defaults {
            writeln!(text, "{document} as by default").unwrap();
            continue;
        }
        writeln!(text, "{document}").unwrap();
        said.iter().for_each(|line| writeln!(text, "  {line}").unwrap());
        if under_the_defaults.is_empty() {
            under_the_defaults = said;
        }
    }
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora");
    let kept = std::fs::read_dir(regressions_folder(&corpora, contract.id())).unwrap();
    let mut kept: Vec<PathBuf> = kept.map(|entry| entry.unwrap().path()).collect();
    kept.sort();
    let kept: Vec<_> = kept
        .iter()
        .map(|path| CaseFile::read_of(contract, path).unwrap())
        .map(|file| (file.options, file.case.rounded(DTYPE)))
        .filter(|(options, case)| contract.valid(&**case, &**options, DTYPE).is_ok())
        .collect();
    for (name, cases) in [("regressions", kept), ("drawn", drawn(contract))] {
        writeln!(text, "{name}").unwrap();
        for line in allowances(contract, &cases) {
            writeln!(text, "  {line}").unwrap();
        }
    }
    text
}

/// Cases by chance, under options by chance.
fn drawn(contract: Contract) -> Vec<(Arc<dyn AnyOptions>, Shared)> {
    let mut cases = Vec::new();
    for seed in 0..60 {
        let mut rng = stream::rng(seed, contract.id());
        let mut bytes = [0; 64];
        rng.fill_bytes(&mut bytes);
        let options = contract.draw_options(&mut Unstructured::new(&bytes)).unwrap();
        for _ in 0..20 {
            let case = stream::draw(contract, &mut rng, &*options, DTYPE);
            cases.push((Arc::clone(&options), case));
        }
    }
    cases
}

#[test]
fn no_oracle_allows_more_than_it_did() {
    for contract in contracts::all() {
        let text = text(contract);
        // Contracts without an oracle have nothing to say.
        if text.contains(':') && text.contains(" open") {
            assert_snapshot("allowances", contract.id(), &text);
        }
    }
}
