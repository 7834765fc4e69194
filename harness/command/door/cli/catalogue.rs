//! `shakedown list --json`, `shakedown list --manifest` and `shakedown schema`: what is known, for
//! programs.

use std::path::Path;

use serde_json::{Value as Json, json};

use super::{Done, output};
use shakedown_contracts::REGISTRY;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::value::place::Place;
use shakedown_core::value::record::{Field, Kind};
use shakedown_engine::files::manifest::Manifest;
use shakedown_engine::files::schema;
use shakedown_engine::report::ExitCode;

/// Prints a value as JSON.
pub(super) fn print(json: &Json) -> Done {
    writeln!(output().0, "{json:#}")?;
    Ok(ExitCode::AllHold)
}

pub(super) fn schema() -> Done {
    print(&schema::manifest(&REGISTRY))
}

/// The components of a manifest, each with its contract and the places where it is checked.
pub(super) fn components(manifest: &Path, as_json: bool) -> Done {
    let manifest = Manifest::read(&REGISTRY, manifest)?;
    let asked = Place::from_env()?;
    let components = manifest.components.iter().map(|declared| {
        let (name, contract) = (&declared.name, declared.contract.id());
        (name, contract, declared.places(asked.as_deref()), manifest.location(declared).line)
    });
    if as_json {
        let components: Json = components
            .map(|(name, contract, places, line)| {
                json!({"name": name, "contract": contract, "places": places, "line": line})
            })
            .collect();
        return print(&json!({"schema": "shakedown/manifest/1", "components": components}));
    }
    let (mut to, _) = output();
    for (name, contract, places, _) in components {
        let places: Vec<String> = places.iter().map(Place::to_string).collect();
        writeln!(to, "{name:<32} {contract:<20} {}", places.join(", "))?;
    }
    Ok(ExitCode::AllHold)
}

/// All that there is to some contracts.
pub(super) fn contracts<'a>(contracts: impl Iterator<Item = &'a dyn AnyContract>) -> Json {
    json!({
        "schema": "shakedown/catalogue/1",
        "version": env!("CARGO_PKG_VERSION"),
        "contracts": contracts.map(contract).collect::<Json>(),
    })
}

fn contract(contract: &dyn AnyContract) -> Json {
    let defaults = contract.default_options().json();
    let fields = |fields: Vec<Field>| -> Json {
        fields.iter().map(|field| self::field(Some(contract), field)).collect()
    };
    let options = contract.option_docs().into_iter().map(|option| {
        let default = &defaults[option.name];
        let (name, meaning, schema) = (option.name, option.meaning, option.schema);
        json!({"name": name, "meaning": meaning, "default": default, "schema": schema})
    });
    let invariants = contract.invariants().iter().map(|invariant| {
        json!({"id": invariant.id, "claim": invariant.doc.claim(), "catches": invariant.catches})
    });
    let faults = contract
        .faults()
        .iter()
        .map(|fault| json!({"id": fault.id, "summary": fault.summary, "source": fault.source}));
    let classes = contract.classes().iter();
    let classes = classes.map(|class| json!({"id": class.id, "meaning": class.meaning}));
    let [inputs, outputs] = contract.record_docs().map(shapes);
    json!({
        "id": contract.id(),
        "stage": contract.stage().name(),
        "documentation": contract.doc().body(),
        "source": contract.doc().section("Source"),
        "shapes": {"inputs": inputs, "outputs": outputs},
        "inputs": fields(contract.inputs()),
        "outputs": fields(contract.outputs()),
        "options": options.collect::<Json>(),
        "invariants": invariants.collect::<Json>(),
        "faults": faults.collect::<Json>(),
        "classes": classes.collect::<Json>(),
    })
}

/// A field of a contract, or of the items of a list, of which no axes are declared.
fn field(contract: Option<&dyn AnyContract>, field: &Field) -> Json {
    let dimensions = match field.ndim {
        Some(0) => Some(Vec::new()),
        _ => contract.and_then(|contract| contract.axes().dimensions(field)),
    };
    let mut json = json!({
        "name": field.name,
        "meaning": field.meaning,
        "kind": field.kind.name(),
        "ndim": field.ndim,
        "dimensions": dimensions,
        "optional": field.optional,
    });
    if field.kind == Kind::List {
        json["items"] = field.items.iter().map(|item| self::field(None, item)).collect();
    }
    json
}

/// What the documentation of a record says under `# Shapes`.
fn shapes(doc: &str) -> String {
    let lines = doc.lines().map(str::trim).skip_while(|line| *line != "# Shapes").skip(1);
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("# ")).collect();
    lines.join(" ").trim().to_owned()
}
