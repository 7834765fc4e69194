//! A case with what came of it, as a table of fields where that can be read.

use maud::{Markup, html};
use serde_json::Value;

use super::about::About;
use shakedown_core::value::text::{number, quoted, rounded, unquoted};
use shakedown_engine::report::Finding;

/// Larger tables are harder to read than the case in one line.
const ROWS: usize = 40;
const COLUMNS: usize = 24;
const CHARACTERS: usize = 160;

/// One vector, text or number under its name.
struct Row {
    name: String,
    is_text: bool,
    cells: Cells,
}

enum Cells {
    One(String),
    Many(Vec<String>),
}

/// How numbers are written.
type Format = fn(f64) -> String;

/// The inputs, what the component gives, and what the definition gives.
pub(super) fn table(finding: &Finding, about: &About) -> Option<Markup> {
    let nothing = Value::Null;
    let groups: [(&str, &str, &Value, Format); 3] = [
        ("given", "input", &finding.case, number),
        ("output", "component", finding.output.as_ref().unwrap_or(&nothing), number),
        ("expected", "expected", &finding.expected, rounded),
    ];
    let groups = groups.map(|(class, title, record, format)| {
        let mut rows = Vec::new();
        for (field, value) in record.as_object().into_iter().flatten() {
            // What is expected of a field that the component did not give says nothing.
            let gives = |output: &Value| output.get(field).is_some();
            if class == "expected" && !finding.output.as_ref().is_none_or(gives) {
                continue;
            }
            flatten(field, value, about.is_text(field), about, format, &mut rows);
        }
        if class == "output" && finding.output.is_none() {
            let cells = Cells::One("no answer".to_owned());
            rows.push(Row { name: String::new(), is_text: false, cells });
        }
        (class, title, rows)
    });
    let rows = || groups.iter().flat_map(|(.., rows)| rows);
    let columns = rows().map(Row::width).max()?;
    let short = rows().flat_map(Row::cells).all(|cell| cell.chars().count() <= CHARACTERS);
    if rows().count() > ROWS || columns > COLUMNS || !short {
        return None;
    }
    let indexed = rows().any(|row| matches!(&row.cells, Cells::Many(cells) if cells.len() > 1));
    Some(html! {
        div class="wide" role="region" aria-label="The smallest case, field by field" tabindex="0" {
            table class={ "case" @if indexed { " indexed" } } {
                @if indexed {
                    thead {
                        tr {
                            td {}
                            @for column in 0..columns { th scope="col" { (column) } }
                        }
                    }
                }
                @for (class, title, rows) in &groups {
                    @if !rows.is_empty() {
                        tbody class=(class) {
                            @for row in rows { (row.show(class, title, columns)) }
                        }
                    }
                }
            }
        }
    })
}

impl Row {
    fn cells(&self) -> &[String] {
        match &self.cells {
            Cells::One(cell) => std::slice::from_ref(cell),
            Cells::Many(cells) => cells,
        }
    }

    fn width(&self) -> usize {
        self.cells().len().max(1)
    }

    fn show(&self, class: &str, title: &str, columns: usize) -> Markup {
        let kind = if self.is_text { "text" } else { "number" };
        html! {
            tr {
                th scope="row" {
                    @if class != "given" { span class="who" { (title) " " } }
                    (unquoted(&self.name))
                }
                @match &self.cells {
                    Cells::One(cell) if self.is_text => {
                        td class=(kind) colspan=(columns) { (cell) }
                    }
                    Cells::Many(cells) if cells.is_empty() => {
                        td class="none" colspan=(columns) { "empty" }
                    }
                    _ => {
                        @for cell in self.cells() { td class=(kind) { (cell) } }
                        @for _ in self.width()..columns { td {} }
                    }
                }
            }
        }
    }
}

/// Rows of a value: one for each innermost vector.
fn flatten(
    name: &str,
    value: &Value,
    is_text: bool,
    about: &About,
    format: Format,
    rows: &mut Vec<Row>,
) {
    let is_nested = |value: &Value| match value {
        Value::Array(_) => true,
        Value::Object(fields) => !fields.is_empty(),
        _ => false,
    };
    let shown = |value: &Value| cell(value, is_text, format);
    match value {
        Value::Array(items) if items.iter().any(is_nested) => {
            for (index, item) in items.iter().enumerate() {
                flatten(&format!("{name}[{index}]"), item, is_text, about, format, rows);
            }
        }
        Value::Array(items) => {
            let cells = Cells::Many(items.iter().map(shown).collect());
            rows.push(Row { name: name.to_owned(), is_text, cells });
        }
        Value::Object(fields) if !fields.is_empty() => {
            for (field, value) in fields {
                let name = format!("{name}.{field}");
                flatten(&name, value, about.is_text(field), about, format, rows);
            }
        }
        value => {
            let cells = Cells::One(shown(value));
            rows.push(Row { name: name.to_owned(), is_text, cells });
        }
    }
}

/// One number, truth value or text. An empty object stands for what the contract leaves open.
fn cell(value: &Value, is_text: bool, format: Format) -> String {
    match value {
        Value::Object(_) => "any".to_owned(),
        Value::Bool(is) => u8::from(*is).to_string(),
        Value::String(text) if is_text => quoted(text),
        Value::String(text) => unquoted(text),
        Value::Number(whole) if !whole.is_f64() => whole.to_string(),
        value => value.as_f64().map_or_else(|| value.to_string(), format),
    }
}
