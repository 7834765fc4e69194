//! Findings: from the first case that broke an invariant to the smallest one, on disk.

use std::path::Path;

use include_dir::{Dir, include_dir};
use serde_json::Value as Json;

use crate::case_file::{CaseFile, found_folder, regressions_folder};
use crate::check::{Broken, Subject};
use crate::contract::Contract;
use crate::error::Error;
use crate::invariant::{Invariant, Stop};
use crate::patience::Patience;
use crate::place::{Dtype, Place};
use crate::record::{Branch, Record, Tree, Value, one_line, tree};
use crate::report::{Classes, Diagnosis, Finding, json_float};
use crate::shrink::minimise;
use crate::text::shortened;
use crate::tolerance::{Number, Wanted};
use crate::yaml;

/// Candidates tried for one finding at the most.
const CANDIDATES: u64 = 3000;

/// A finding on its smallest case.
pub(crate) struct Shrunk<C: Contract> {
    pub(crate) invariant: Invariant<C>,
    pub(crate) case: C::Case,
    pub(crate) found: String,
    pub(crate) at_case: u64,
    pub(crate) tried: u64,
}

/// Makes a case that breaks an invariant as small as it gets.
pub(crate) fn shrink<C: Contract>(
    subject: &mut Subject<C>,
    invariant: Invariant<C>,
    broken: Broken<C>,
    place: Place,
    calls: &mut u64,
) -> Shrunk<C> {
    shrink_among(subject, invariant, broken, place, calls, |_, _| true)
}

/// The same, among the cases that `wanted` takes: a bug that is known must not be where the way to
/// a smaller case of another one ends.
pub(crate) fn shrink_among<C: Contract>(
    subject: &mut Subject<C>,
    invariant: Invariant<C>,
    broken: Broken<C>,
    place: Place,
    calls: &mut u64,
    mut wanted: impl FnMut(&mut Subject<C>, &C::Case) -> bool,
) -> Shrunk<C> {
    let options = subject.options.clone();
    let Broken { case, mut found, at_case } = broken;
    let mut tried = 0;
    let mut patience = Patience::default();
    let minimal = minimise::<C>(&case, &options, place.dtype, |candidate| {
        if tried == CANDIDATES || patience.is_over() {
            return None;
        }
        tried += 1;
        let (outcome, failed) = subject.try_case(&invariant, candidate, place, calls);
        failed.iter().for_each(|(_, failure)| patience.spend(failure));
        match outcome {
            Err(Stop::Broken(message)) if wanted(subject, candidate) => {
                found = message;
                Some(true)
            }
            _ => Some(false),
        }
    });
    Shrunk { invariant, case: minimal.case, found, at_case, tried }
}

/// Writes the case of a finding into `found` and makes its entry in the report.
///
/// # Errors
/// The case file cannot be written.
pub(crate) fn write<C: Contract>(
    subject: &mut Subject<C>,
    shrunk: Shrunk<C>,
    place: Place,
    classes: Classes,
    diagnosis: Vec<Diagnosis>,
    calls: &mut u64,
) -> Result<Finding, Error> {
    let Shrunk { invariant, case, found, at_case, tried } = shrunk;
    let file = CaseFile::<C> {
        invariant: Some(invariant.id.to_owned()),
        component: Some(subject.name.clone()),
        place: Some(place),
        why: Some(found.lines().next().unwrap_or("").to_owned()),
        link: None,
        diagnosis: diagnosis.iter().map(|diagnosis| diagnosis.fault.clone()).collect(),
        options: subject.options.clone(),
        case,
    };
    let case_file = match &subject.corpora {
        None => None,
        // A batch that could not be made smaller: what cannot be read again is not kept.
        Some(_) if file.text().len() as u64 > yaml::LARGEST_FILE_BYTES => None,
        Some(corpora) => {
            let path = found_folder(corpora, C::ID).join(file.name());
            file.write(&path)?;
            Some(path.display().to_string())
        }
    };
    *calls += 1;
    let returned = subject.call(&file.case, place, invariant.needs_gradient);
    let output = returned.ok().map(|returned| returned.output);
    let given = output.as_ref().map(|output| format!("  →  {}", one_line(output)));
    let shown = one_line(&file.case) + &given.unwrap_or_default();
    let replay = match (&case_file, &subject.manifest) {
        (Some(path), Some(manifest)) => {
            format!("shakedown replay {path} --manifest {}", manifest.display())
        }
        _ => "run this test again".to_owned(),
    };
    Ok(Finding {
        invariant: invariant.id.to_owned(),
        pitfall: invariant.pitfall,
        claim: invariant.doc.claim(),
        found,
        cases_to_failure: at_case,
        shrink_calls: tried,
        case: json(&file.case),
        output: output.as_ref().map(json),
        expected: expected_json::<C>(&file.case, &subject.options, place.dtype),
        shown: shortened(shown),
        case_file,
        replay,
        classes,
        diagnosis,
    })
}

/// A record as a JSON object.
pub(crate) fn json<R: Record>(record: &R) -> Json {
    branch_json(tree(record))
}

fn branch_json(branch: Branch) -> Json {
    let fields = branch.into_iter().map(|(name, tree)| {
        let json = match tree {
            Tree::Value(Value::Float(array)) => nested_json(array.view(), &|x| json_float(*x)),
            Tree::Value(Value::Int(array)) => nested_json(array.view(), &|x| (*x).into()),
            Tree::Value(Value::Bool(array)) => nested_json(array.view(), &|x| (*x).into()),
            Tree::Value(Value::Text(array)) => nested_json(array.view(), &|x| x.clone().into()),
            Tree::List(items) => items.into_iter().map(branch_json).collect(),
        };
        (name.to_owned(), json)
    });
    Json::Object(fields.collect())
}

/// What the definition gives for a case, by field.
fn expected_json<C: Contract>(case: &C::Case, options: &C::Options, dtype: Dtype) -> Json {
    let mut fields = serde_json::Map::new();
    if C::refuses(case, options) {
        return fields.into();
    }
    let open = || Json::Object(serde_json::Map::new());
    let number = |number: &Number| match number.scale.is_infinite() {
        true => open(),
        false => json_float(number.value),
    };
    let mut numbers = C::oracle(case, options, dtype);
    if C::wants_gradient(options) {
        numbers.extend(C::oracle_gradient(case, options, dtype));
    }
    for expected in numbers {
        fields.insert(expected.field.to_owned(), nested_json(expected.numbers.view(), &number));
    }
    for expected in C::oracle_texts(case, options) {
        let text = |wanted: &Wanted| match wanted {
            Wanted::Open => open(),
            wanted => wanted.shown().into(),
        };
        fields.insert(expected.field.to_owned(), expected.texts.iter().map(text).collect());
    }
    fields.into()
}

fn nested_json<T>(array: ndarray::ArrayViewD<'_, T>, element: &dyn Fn(&T) -> Json) -> Json {
    match array.ndim() {
        0 => element(array.first().expect("an array of dimension 0 has one element")),
        _ => array.outer_iter().map(|part| nested_json(part, element)).collect(),
    }
}

/// shakedown's own regressions, which every component of their contract is checked on.
static OWN: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/corpora");

/// The regressions of a contract: shakedown's own, then those in the corpora folder.
///
/// # Errors
/// One of them cannot be read.
pub(crate) fn regressions<C: Contract>(corpora: Option<&Path>) -> Result<Vec<CaseFile<C>>, Error> {
    Ok(named_regressions(corpora)?.into_iter().map(|(_, file)| file).collect())
}

/// The same, each with the name of its file.
///
/// # Errors
/// One of them cannot be read.
pub(crate) fn named_regressions<C: Contract>(
    corpora: Option<&Path>,
) -> Result<Vec<(String, CaseFile<C>)>, Error> {
    let stem = |path: &Path| path.file_stem().map_or_else(String::new, |s| s.display().to_string());
    let mut cases = Vec::new();
    let own = OWN.get_dir(regressions_folder(Path::new(""), C::ID));
    for file in own.into_iter().flat_map(Dir::files) {
        let text = file.contents_utf8().unwrap_or("");
        let case = CaseFile::parse(text).map_err(|error| error.at(file.path()))?;
        cases.push((stem(file.path()), case));
    }
    let Some(corpora) = corpora else { return Ok(cases) };
    for path in yaml_files(&regressions_folder(corpora, C::ID)) {
        cases.push((stem(&path), CaseFile::read(&path)?));
    }
    Ok(cases)
}

/// The YAML files of a folder by name, none where there is no folder.
pub(crate) fn yaml_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    paths.sort();
    paths
}
