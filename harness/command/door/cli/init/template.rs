//! Templates: files in which `@NAME@` is replaced.

/// The template with every `@NAME@` replaced by its text. A line that is only a `@NAME@` without
/// text goes.
///
/// # Panics
/// If a name is not in the template, or one of the template was not given: a bug of `init`.
pub(super) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = template.to_owned();
    for (name, value) in values {
        let mark = format!("@{name}@");
        assert!(text.contains(&mark), "the template has no {mark}");
        if value.is_empty() {
            text = text.replace(&format!("{mark}\n"), "");
        }
        text = text.replace(&mark, value);
    }
    text
}

/// The text, each of its lines after the first `by` spaces further in.
pub(super) fn indent(text: &str, by: usize) -> String {
    text.trim_end().replace('\n', &format!("\n{}", " ".repeat(by)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_text_goes() {
        assert_eq!(fill("a\n@B@\nc @D@\n", &[("B", ""), ("D", "e")]), "a\nc e\n");
    }

    #[test]
    #[should_panic(expected = "the template has no @B@")]
    fn a_name_that_is_not_there_is_a_bug() {
        fill("a", &[("B", "")]);
    }
}
