//! Gold answers of a data set, given to the reward functions of a manifest.

use std::sync::Arc;

use ndarray::Array1;

use shakedown_contracts::reward_function::{
    Judges, Options, RewardFunctionCase, RewardFunctionOutput,
};
use shakedown_core::contract::component::Call;
use shakedown_core::value::error::Error;
use shakedown_core::value::record::Shared;
use shakedown_engine::files::manifest::{Declared, Manifest};
use shakedown_lint::datasets::{Dataset, Gold, Scored};

/// So many rows are scored.
const ROWS: usize = 64;

/// Fills in what the rules about rewards need, from the reward functions that judge answers.
///
/// # Errors
/// There is none, or it does not load.
pub(super) fn ask_rewards(data: &mut Dataset, manifest: &Manifest) -> Result<(), Error> {
    let judges_answers = |declared: &&Declared| {
        declared.contract.id() == "reward-function"
            && declared.options.typed::<Options>().judges == Judges::Correctness
    };
    let rewards: Vec<&Declared> = manifest.components.iter().filter(judges_answers).collect();
    if rewards.is_empty() {
        let why = "expected a component of the contract `reward-function` that judges correctness";
        return Err(Error::new(why).at(manifest.path()));
    }
    let gold = data.gold(ROWS)?;
    let mut scored = Vec::new();
    for declared in rewards {
        let options = declared.options.typed::<Options>();
        data.tags.get_or_insert_default().extend(options.marks());
        match scores(manifest, declared, &gold) {
            Ok(scores) => scored.extend(scores),
            Err(why) => data.warnings.push(format!("`{}` scored nothing: {why}", declared.name)),
        }
    }
    data.scored = Some(scored);
    Ok(())
}

/// What a reward function gives for each gold answer in its template, and for no text at all.
fn scores(manifest: &Manifest, declared: &Declared, gold: &[Gold]) -> Result<Vec<Scored>, Error> {
    let options = declared.options.typed::<Options>();
    let mut component = manifest.component(declared);
    let place = component.home();
    if let Some(why) = component.prepare(place)? {
        return Err(Error::new(why));
    }
    let texts = |text: &dyn Fn(&Gold) -> String| Array1::from_iter(gold.iter().map(text));
    let mut call = |completion: &dyn Fn(&Gold) -> String| -> Result<Array1<f64>, Error> {
        let case: Shared = Arc::new(RewardFunctionCase {
            prompts: texts(&|row| row.prompt.clone()),
            completions: texts(completion),
            answers: texts(&|row| row.answer.clone()),
        });
        let call = Call { case: &case, options: &declared.options, place, gradient: false };
        let returned = component.call(&call).map_err(|failure| Error::new(failure.to_string()))?;
        Ok(returned.output.typed::<RewardFunctionOutput>().rewards.clone())
    };
    let right = call(&|row| options.completion(&row.answer))?;
    let empty = call(&|_| String::new())?;
    let all = gold.iter().zip(right).zip(empty);
    Ok(all.map(|((row, gold), empty)| Scored { row: row.row, gold, empty }).collect())
}
