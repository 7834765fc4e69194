//! Hypotheses: what a component may do in place of what the definition says, as data.

use std::sync::Arc;

use crate::diagnosis::change::Change;
use crate::diagnosis::count::{Count, What};
use crate::diagnosis::evidence::{Evidence, ExpectedCells, Given, Observed, cells, given};
use crate::diagnosis::reading::Reading;
use crate::diagnosis::relation::Relation;
use crate::host::function::guarded;
use shakedown_core::contract::component::Returned;
use shakedown_core::contract::fault::{AnyFault, AnyFunction};
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::probe::first_output;
use shakedown_core::numeric::terms::{self, Alteration, TermChange};
use shakedown_core::numeric::tolerance::{Expected, ExpectedTexts};
use shakedown_core::value::record::{AnyRecord, Shared, Value, is_named};
use shakedown_core::value::text::number;

/// A wrong implementation that is made of the reference, or of a fault, by changes.
#[derive(Clone)]
pub(crate) struct Hypothesis {
    /// All of them are there at once.
    pub(crate) parts: Vec<Part>,
    /// The outputs that it gives; all others are right. None where it gives all of them.
    pub(crate) only: Option<Vec<&'static str>>,
    /// The options that it goes by.
    options: Arc<dyn AnyOptions>,
}

/// Every output of numbers, in the place of a field.
pub(crate) const EVERY: &str = "*";

/// One thing that is otherwise.
#[derive(Clone)]
pub(crate) enum Part {
    /// A fault of the contract, and in how many options these differ from those that it is
    /// declared to show under; what is said of the options that it goes by, where it is that.
    Fault { fault: &'static AnyFault, variant: usize, distance: usize, as_if: Option<String> },
    /// Another value of an option, as YAML.
    Option { name: &'static str, value: String, declared: String },
    /// Another input.
    Input { field: &'static str, change: Change },
    /// Another mask where values are summed, and the right one where they are counted.
    Summed { field: &'static str, change: Change },
    /// Another output.
    Output { field: &'static str, change: Change },
    /// A sum that is divided by the wrong count.
    Divided { field: &'static str, by: Count, instead_of: Count },
    /// Another relation between an answer and a gold answer.
    Compared(Relation),
    /// A term of the reference that is scaled, missing or detached.
    Term { term: &'static str, change: TermChange },
    /// A term of the reference that is divided by the wrong count.
    TermDivided { term: &'static str, by: Count, instead_of: Count },
    /// Another reading of texts.
    Read(Reading),
}

impl Part {
    /// The term of the reference that is otherwise.
    fn term(&self) -> Option<&'static str> {
        match self {
            Part::Term { term, .. } | Part::TermDivided { term, .. } => Some(term),
            _ => None,
        }
    }

    /// The input or output that something is done to.
    pub(crate) fn field(&self) -> Option<&'static str> {
        match self {
            Part::Input { field, .. } | Part::Output { field, .. } => Some(field),
            _ => None,
        }
    }

    /// Whether it is told by itself alone: beside something else there is always one that fits.
    pub(crate) fn stands_alone(&self) -> bool {
        match self {
            Part::Term { change: TermChange::Through(_), .. } => true,
            Part::Input { change, .. } | Part::Output { change, .. } => change.is_beside(),
            _ => false,
        }
    }

    /// The option of which it is another number.
    pub(crate) fn number_of(&self) -> Option<&'static str> {
        match self {
            Part::Option { name, value, .. } if value.parse::<f64>().is_ok() => Some(name),
            _ => None,
        }
    }

    /// What it is: the fault's id, or what is otherwise.
    pub(crate) fn id(&self) -> String {
        match self {
            Part::Fault { fault, .. } => fault.id.to_owned(),
            Part::Option { name, value, .. } => format!("{name}: {value}"),
            Part::Input { field, change } | Part::Output { field, change } => {
                format!("{field}: {}", change.told())
            }
            Part::Summed { field, change } => format!("{field} in sums: {}", change.told()),
            Part::Divided { field, by, .. } => format!("{field}: divided by {}", by.told()),
            Part::Compared(relation) => format!("right that {}", relation.told()),
            Part::Term { term, change } => format!("{term}: {}", changed(*change)),
            Part::TermDivided { term, by, .. } => format!("{term}: divided by {}", by.told()),
            Part::Read(reading) => reading.told(),
        }
    }
}

impl Hypothesis {
    /// One part by itself; `None` where the options do not go together.
    pub(crate) fn of(evidence: &Evidence, part: Part) -> Option<Hypothesis> {
        Hypothesis::of_all(evidence, vec![part])
    }

    /// Some parts; `None` where they do not go together.
    pub(crate) fn of_all(evidence: &Evidence, parts: Vec<Part>) -> Option<Hypothesis> {
        let options = Arc::clone(&evidence.options);
        let none = Hypothesis { parts: Vec::new(), only: None, options };
        parts.into_iter().try_fold(none, |some, part| some.and(part))
    }

    /// With one part more; `None` where it does not go with the others.
    pub(crate) fn and(&self, part: Part) -> Option<Hypothesis> {
        let mut both = self.clone();
        match &part {
            // A fault is what it does in place of the reference, whose terms it need not have.
            Part::Fault { .. } | Part::Compared(_) if self.gives_by_itself() || self.alters() => {
                return None;
            }
            Part::Term { term, .. } | Part::TermDivided { term, .. } => {
                let again = |part: &Part| part.term() == Some(*term);
                if self.gives_by_itself() || self.parts.iter().any(again) {
                    return None;
                }
            }
            Part::Read(reading) => {
                let same = |other: &&Reading| other.step() == reading.step();
                let reads_only = self.fault().is_none() && self.relation().is_none();
                if !reads_only || self.alters() || self.readings().iter().any(same) {
                    return None;
                }
            }
            Part::Option { name, value, .. } => {
                let again =
                    |part: &Part| matches!(part, Part::Option { name: other, .. } if other == name);
                if self.parts.iter().any(again) {
                    return None;
                }
                both.options = both.options.with(name, value).ok()?;
                both.options.check().ok()?;
            }
            Part::Input { field, .. }
            | Part::Summed { field, .. }
            | Part::Output { field, .. }
            | Part::Divided { field, .. } => {
                let again = |part: &Part| match part {
                    Part::Input { field: other, .. }
                    | Part::Summed { field: other, .. }
                    | Part::Output { field: other, .. }
                    | Part::Divided { field: other, .. } => other == field,
                    _ => false,
                };
                if self.parts.iter().any(again) {
                    return None;
                }
            }
            Part::Fault { .. } | Part::Compared(_) => {}
        }
        both.parts.push(part);
        Some(both)
    }

    /// The same for some outputs only.
    pub(crate) fn only(&self, fields: Vec<&'static str>) -> Hypothesis {
        Hypothesis { only: Some(fields), ..self.clone() }
    }

    /// The same for all outputs.
    pub(crate) fn everywhere(&self) -> Hypothesis {
        Hypothesis { only: None, ..self.clone() }
    }

    /// The fault among its parts.
    pub(crate) fn fault(&self) -> Option<(&'static AnyFault, usize)> {
        self.parts.iter().find_map(|part| match part {
            Part::Fault { fault, variant, .. } => Some((*fault, *variant)),
            _ => None,
        })
    }

    /// The relation among its parts.
    fn relation(&self) -> Option<Relation> {
        self.parts.iter().find_map(|part| match part {
            Part::Compared(relation) => Some(*relation),
            _ => None,
        })
    }

    /// The readings among its parts.
    fn readings(&self) -> Vec<&Reading> {
        let read = self.parts.iter().filter_map(|part| match part {
            Part::Read(reading) => Some(reading),
            _ => None,
        });
        read.collect()
    }

    /// Whether one of its parts gives an output without the reference.
    fn gives_by_itself(&self) -> bool {
        self.fault().is_some() || self.relation().is_some() || !self.readings().is_empty()
    }

    /// Whether terms of the reference are otherwise.
    fn alters(&self) -> bool {
        self.parts.iter().any(|part| part.term().is_some())
    }

    /// The terms of the reference that are otherwise for a case; `None` where one is divided by 0.
    fn alterations(&self, case: &dyn AnyRecord) -> Option<Vec<Alteration>> {
        let mut alterations = Vec::new();
        for part in &self.parts {
            alterations.push(match part {
                Part::Term { term, change } => Alteration { term, change: *change },
                Part::TermDivided { term, by, instead_of } => {
                    let change = TermChange::Times(instead_of.over(by, case)?);
                    Alteration { term, change }
                }
                _ => continue,
            });
        }
        Some(alterations)
    }

    /// The options and terms of which it tells another number.
    pub(crate) fn numbers_told(&self) -> Vec<String> {
        let is_number = |value: &str| value.parse::<f64>().is_ok();
        let of = |part: &Part| match part {
            Part::Option { name, value, .. } if is_number(value) => vec![(*name).to_owned()],
            Part::Term { term, change: TermChange::Times(_) } => vec![(*term).to_owned()],
            Part::Fault { as_if: Some(told), .. } => {
                let named = told.split(" and `").map(|one| one.trim_start_matches('`'));
                let named = named.filter_map(|one| one.split_once("` were "));
                let numbers =
                    named.filter(|(_, value)| value.split(' ').next().is_some_and(is_number));
                numbers.map(|(name, _)| name.to_owned()).collect()
            }
            _ => Vec::new(),
        };
        self.parts.iter().flat_map(of).collect()
    }

    /// How much it assumes: of hypotheses that explain as much, the one that assumes least is told.
    pub(crate) fn assumes(&self) -> usize {
        let of = |part: &Part| match part {
            // Beside something else, what a fault does is told better by what it changes.
            Part::Fault { .. } if self.parts.len() > 1 => 21,
            Part::Fault { distance, .. } => 10 + (*distance).min(9),
            Part::Option { .. } => 20,
            Part::Compared(relation) => 22 + relation.removes(),
            Part::Term { .. } => 26,
            Part::TermDivided { .. } => 28,
            Part::Read(reading) => 22 + reading.assumes(),
            Part::Input { change: Change::With(..), .. } => 34,
            Part::Input { .. } => 30,
            Part::Summed { .. } => 31,
            Part::Divided { .. } => 32,
            Part::Output { change: Change::With(..), .. } => 39,
            Part::Output { .. } => 35,
        };
        let parts: usize = self.parts.iter().map(of).sum();
        parts + 30 * (self.parts.len() - 1) + if self.only.is_some() { 5 } else { 0 }
    }

    /// A name: those of its parts.
    pub(crate) fn id(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(Part::id).collect();
        let only = self.only.as_ref().map(|fields| format!(" in {}", fields.join(", ")));
        parts.join(" and ") + &only.unwrap_or_default()
    }

    /// What it says is wrong, in a sentence that stands after "as if": a summary of a fault stands
    /// behind it.
    pub(crate) fn told(&self) -> String {
        let of = |part: &Part| match part {
            Part::Fault { as_if: Some(told), .. } => told.clone(),
            Part::Fault { fault, .. } => format!("it had the bug `{}`", fault.id),
            Part::Option { name, value, declared } => option_told(name, value, declared),
            Part::Input { field, change } => format!("the input `{field}` were {}", change.told()),
            Part::Summed { field, change } => {
                let told = change.told();
                format!("the input `{field}` were {told} in sums, and as it is in their counts")
            }
            Part::Output { field: EVERY, change } => {
                format!("every output were {}", change.told())
            }
            Part::Output { field, change } => {
                format!("the output `{field}` were {}", change.told())
            }
            Part::Divided { field, by, instead_of } => {
                let [by, instead_of] = [by, instead_of].map(Count::told);
                format!("`{field}` were divided by {by} instead of {instead_of}")
            }
            Part::TermDivided { term, by, instead_of } => {
                let [by, instead_of] = [by, instead_of].map(Count::told);
                format!("the term `{term}` were divided by {by} instead of {instead_of}")
            }
            Part::Compared(relation) => {
                format!("an answer were right that {}", relation.told())
            }
            Part::Term { term, change: TermChange::Detached } => {
                format!(
                    "the term `{term}` were detached (the value is right, its gradient is lost)"
                )
            }
            Part::Term { term, change } => format!("the term `{term}` were {}", changed(*change)),
            Part::Read(reading) => reading.told(),
        };
        let parts: Vec<String> = self.parts.iter().map(of).collect();
        let names = |fields: &Vec<&str>| {
            let fields: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
            format!(" in {} only", fields.join(" and "))
        };
        parts.join(", and ") + &self.only.as_ref().map(names).unwrap_or_default()
    }

    /// What it gives for a case; `None` where it says nothing about it.
    pub(crate) fn output(&self, evidence: &Evidence, case: &Shared) -> Option<Shared> {
        let contract = evidence.contract;
        let dtype = evidence.place.dtype;
        let mut changed = Shared::clone(case);
        for part in &self.parts {
            if let Part::Input { field, change } | Part::Summed { field, change } = part {
                let values = changed_values(&changed, field, change, case)?;
                changed = contract.case(&mut from(values)).ok()?;
            }
        }
        let gives = || match (self.fault(), self.relation()) {
            (Some((fault, variant)), _) => {
                let function: &AnyFunction = &fault.variants()[variant];
                Some(function.output(&*changed, &*self.options, dtype))
            }
            (None, Some(relation)) => {
                let same = |answer: &str, gold: &str| relation.holds(answer, gold);
                contract.compared(&*changed, &*self.options, &same)
            }
            (None, None) if self.alters() => {
                let alterations = self.alterations(&**case)?;
                let reference = || contract.on_tape(&*changed, &*self.options, dtype);
                Some(terms::altered(&alterations, reference))
            }
            (None, None) => match &self.readings()[..] {
                [] => Some(contract.reference(&*changed, &*self.options, dtype)),
                readings => Reading::output(readings, contract, &changed, &*self.options),
            },
        };
        let mut output = contract.stored(&*guarded(gives).ok()??, dtype);
        for part in &self.parts {
            match part {
                Part::Output { field, change } => {
                    let values = changed_values(&output, field, change, case)?;
                    output = contract.output(&mut from(values)).ok()?;
                }
                Part::Summed { field, .. } => {
                    let kept = Count { what: What::True { field }, plus: 0, root: false };
                    let [summed, counted] = [&changed, case].map(|case| kept.of(&**case));
                    if counted == 0.0 {
                        return None;
                    }
                    output = output.with_floats(&mut |_, floats| {
                        floats.iter_mut().for_each(|x| *x *= summed / counted);
                    });
                }
                Part::Divided { field, by, instead_of } => {
                    let quotient = instead_of.over(by, &**case)?;
                    output = output.with_floats(&mut |name, floats| {
                        if name == *field || name.starts_with("grad_") {
                            floats.iter_mut().for_each(|x| *x *= quotient);
                        }
                    });
                }
                _ => {}
            }
        }
        Some(output)
    }

    /// The same, cell by cell. Where it says nothing, everything is right.
    pub(crate) fn cells(&self, evidence: &Evidence, observed: &Observed) -> Vec<Given> {
        self.cells_of(evidence, &observed.settled, &observed.expected)
    }

    /// The same, of any case.
    pub(crate) fn cells_of(
        &self,
        evidence: &Evidence,
        case: &Shared,
        expected: &ExpectedCells,
    ) -> Vec<Given> {
        let right = || cells(expected).map(|cell| cell.right()).collect();
        let Some(output) = self.output(evidence, case) else { return right() };
        let output = evidence.compared(case, &output);
        let of_another = is_of_another(evidence, case, expected, &*output);
        let output = Returned { output, changed: Vec::new(), no_gradient: Vec::new() };
        let Some(mut given) = given(&output, expected) else {
            // Whole numbers of another shape are like nothing that is of the right one.
            return match evidence.forms(&expected.numbers, &output) {
                Some(_) => cells(expected).map(|_| Given::Text(None)).collect(),
                None => right(),
            };
        };
        let says_nothing = |field: &&str| {
            self.only.as_ref().is_some_and(|only| !only.contains(field))
                || (of_another && field.starts_with("grad_"))
        };
        for ((one, cell), field) in given.iter_mut().zip(cells(expected)).zip(fields(expected)) {
            if says_nothing(&field) {
                *one = cell.right();
            }
        }
        given
    }
}

/// What is said of a term that is otherwise.
fn changed(change: TermChange) -> String {
    match change {
        TermChange::Times(0.0) => "missing".to_owned(),
        TermChange::Times(-1.0) => "negated".to_owned(),
        TermChange::Times(factor) => format!("{} times what it is", number(factor)),
        TermChange::Through(function) => function.told(),
        TermChange::Detached => "detached".to_owned(),
    }
}

/// What is said of another value of an option.
pub(crate) fn option_told(name: &str, value: &str, declared: &str) -> String {
    format!("`{name}` were {value} (declared: {declared})")
}

/// Whether the gradient that is expected is not that of this output: where any output will do, it
/// is that of the first one given.
fn is_of_another(
    evidence: &Evidence,
    case: &Shared,
    expected: &ExpectedCells,
    output: &dyn AnyRecord,
) -> bool {
    let Evidence { contract, options, .. } = evidence;
    let mut fields = expected.numbers.iter().map(|one| one.field);
    let given = fields.clone().find(|field| !field.starts_with("grad_"));
    fields.any(|field| field.starts_with("grad_"))
        && contract.required(&**case, &**options).is_empty()
        && first_output(*contract, &**case, &**options, output) != given
}

/// The field of each cell.
pub(crate) fn fields(expected: &ExpectedCells) -> impl Iterator<Item = &'static str> {
    let numbers = expected.numbers.iter();
    let numbers = numbers.flat_map(|Expected { field, numbers, .. }| vec![*field; numbers.len()]);
    let texts = expected.texts.iter();
    let texts = texts.flat_map(|ExpectedTexts { field, texts }| vec![*field; texts.len()]);
    numbers.chain(texts).chain(expected.forms.iter().map(|(field, _)| *field))
}

type Named = Vec<(&'static str, Option<Value>)>;

fn from(values: Named) -> impl FnMut(&'static str) -> Option<Value> {
    let mut values = values;
    move |name| values.iter_mut().find(|(other, _)| *other == name)?.1.take()
}

/// The values of a record with one field changed, that of every item where it is of a list's; other
/// fields that a change needs are of the record, or of the case.
fn changed_values(record: &Shared, field: &str, change: &Change, case: &Shared) -> Option<Named> {
    let values = record.values();
    let other = |name: &str| {
        let of = |values: &Named| values.iter().find(|(other, _)| *other == name)?.1.clone();
        of(&values).or_else(|| of(&case.values()))
    };
    let mut any = false;
    let changed = values.iter().map(|(name, value)| {
        let is_meant = match value {
            Some(Value::Float(_)) if field == EVERY => true,
            _ => is_named(&[field], name),
        };
        if !is_meant {
            return Some((*name, value.clone()));
        }
        let Some(value) = value else { return Some((*name, None)) };
        any = true;
        Some((*name, Some(change.of(value, other)?)))
    });
    let changed: Option<Named> = changed.collect();
    changed.filter(|_| any)
}
