//! The page of what `--stack` can be told.

use mill_device::specification::options::OPTIONS;
use std::fmt::Write;

/// From the root of the checkout.
pub(super) const PAGE: &str = "docs/stack-options.md";

const INTRODUCTION: &str = "\
# Options of the stack

Made from mill-device's table by `cargo xtask docs`; edit that, not this page. How they are used is in
[stack.md](stack.md).

";

pub(super) fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str("| option | devices | values | without it | what it does |\n| --- | --- | --- | --- | --- |\n");
    for option in OPTIONS {
        let values = super::cell(&option.value.form());
        let (name, default, about) = (option.name, option.default, option.about);
        let devices = match option.devices.to_string() {
            names if names.is_empty() => String::from("all"),
            names => names,
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| `{name}=` | {devices} | {values} | {default} | {about} |"
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_page_of_the_stacks_options_is_what_the_table_says() {
        let written = fs::read_to_string(crate::root().join(PAGE)).unwrap_or_default();
        assert!(
            written == page(),
            "{PAGE} is stale: run `cargo xtask docs` and commit the page"
        );
    }
}
