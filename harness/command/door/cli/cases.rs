//! `shakedown cases`: the cases on which components of a contract are checked.

use serde_json::{Value as Json, json};

use super::explain::find;
use super::{CasesArguments, Done, output};
use shakedown_core::contract::stream;
use shakedown_core::value::error::Error;
use shakedown_core::value::record::Shared;
use shakedown_core::value::text::one_line;
use shakedown_engine::files::batch;
use shakedown_engine::report::ExitCode;
use shakedown_engine::report::json::json as case_json;

pub(super) fn run(arguments: &CasesArguments) -> Done {
    let CasesArguments { cases: drawn, seed, place, json: as_json, .. } = arguments;
    let contract = find(&arguments.contract)?;
    let mut options = contract.default_options();
    for text in &arguments.option {
        let within = |error: Error| error.within("--option");
        let batch::Choice { name, value } = batch::choice(contract, text).map_err(within)?;
        options = options.with(&name, &value).map_err(within)?;
    }
    let out_of_range = |(name, why): (&str, String)| Error::new(format!("--option: {name}: {why}"));
    options.check().map_err(out_of_range)?;

    let stream = stream::cases(contract, Vec::new(), *seed, &options, place.dtype);
    let corners = stream.fixed();
    let count = usize::try_from(corners + drawn).unwrap_or(usize::MAX);
    let cases: Vec<Shared> = stream.take(count).map(|(_, case)| case).collect();
    let (mut to, _) = output();
    if *as_json {
        let mut simplest_first: Vec<usize> = (0..cases.len()).collect();
        simplest_first.sort_by_cached_key(|index| contract.measure(&*cases[*index]));
        let json = json!({
            "schema": "shakedown/cases/1",
            "contract": contract.id(),
            "options": options.json(),
            "place": place,
            "seed": seed,
            "corners": corners,
            "cases": cases.iter().map(|case| case_json(&**case)).collect::<Json>(),
            "simplest_first": simplest_first,
        });
        writeln!(to, "{json}")?;
        return Ok(ExitCode::AllHold);
    }
    for case in cases {
        writeln!(to, "{}", one_line(&*case))?;
    }
    Ok(ExitCode::AllHold)
}
