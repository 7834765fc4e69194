//! Snapshots in the top-level folder `snapshots`, one subfolder for each kind.

/// Compares a text with `snapshots/FOLDER/NAME.snap`.
#[track_caller]
pub(crate) fn assert_snapshot(folder: &str, name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("../../snapshots/{folder}"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
