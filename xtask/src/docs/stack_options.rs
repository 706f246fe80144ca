//! The page of the options of `--stack`.

use mill_device::specification::options::{self, StackOption};
use mill_device::specification::profile::{PROFILES, Profile};

/// From the root of the checkout.
pub(super) const PAGE: &str = "docs/stack-options.md";

const INTRODUCTION: &str = "\
# Options of the stack

Made from mill-device's table by `cargo xtask docs`; edit that, not this page. How they are used is in
[stack.md](stack.md).

";

const PROFILES_INTRODUCTION: &str = "\
## Profiles

`profile=NAME` stands for the options behind the name. It may stand several times and anywhere; what is said singly goes
before it, and a later profile before an earlier one. `profile=FILE`, with a slash in the name, reads lines of
options, as `initial-window=4`, with `#` before comments; relative to the file that names it, or to the directory of the
configuration. Onload's words and settings are compared in [onload.md](onload.md).

| profile | for | options |
| --- | --- | --- |
";

pub(super) fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    for group in options::GROUPS {
        page.push_str(&format!(
            "## {}\n\n| option | devices | values | without it | what it does |\n| --- | --- | --- | --- | --- |\n",
            group.title
        ));
        for option in group.options {
            page.push_str(&row(option));
        }
        page.push('\n');
    }
    page.push_str(PROFILES_INTRODUCTION);
    for profile in PROFILES {
        let Profile {
            name,
            about,
            options,
        } = profile;
        // Lines can break behind commas.
        let options = options.replace(',', ", ");
        page.push_str(&format!("| `{name}` | {about} | `{options}` |\n"));
    }
    page
}

fn row(option: &StackOption) -> String {
    let values = super::cell(&option.value.form());
    let (name, default, about) = (option.name, option.default, option.about);
    let devices = match option.devices.to_string() {
        names if names.is_empty() => String::from("all"),
        names => names,
    };
    format!("| `{name}=` | {devices} | {values} | {default} | {about} |\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_device::specification::Specification;
    use std::fs;

    #[test]
    fn the_page_of_the_stacks_options_is_generated_from_the_table() {
        let written = fs::read_to_string(crate::root().join(PAGE)).unwrap_or_default();
        assert!(
            written == page(),
            "{PAGE} is stale: run `cargo xtask docs` and commit the page"
        );
    }

    /// The text between backticks.
    fn quoted(text: &str) -> impl Iterator<Item = &str> {
        text.lines()
            .flat_map(|line| line.split('`').skip(1).step_by(2))
    }

    #[test]
    fn what_the_page_of_onloads_settings_names_exists() {
        let written = fs::read_to_string(crate::root().join("docs/onload.md")).unwrap();
        let tables = written.lines().filter(|line| line.starts_with('|'));
        let tables: String = tables.map(|line| format!("{line}\n")).collect();
        let mut seen = Vec::new();
        for word in quoted(&tables) {
            let Some((name, value)) = word.split_once('=') else {
                continue;
            };
            // Of nginx's `listen`, and an example of a variable's value.
            if name == "backlog" || name.starts_with("EF_") {
                continue;
            }
            let is_option = options::all().any(|option| option.name == name);
            let is_profile = PROFILES.iter().any(|profile| profile.name == value);
            let is_file = value.starts_with('/');
            assert!(
                is_option || (name == "profile" && (is_profile || is_file)),
                "{word}"
            );
            if !value.is_empty() && is_option {
                let text = format!("af_xdp:eth0,{word}");
                let read = Specification::parse(&text);
                assert!(read.is_ok(), "{word}: {read:?}");
            }
            seen.push(value);
        }
        for profile in PROFILES {
            assert!(seen.contains(&profile.name), "{}", profile.name);
        }
    }

    #[test]
    fn every_setting_of_the_cookbook_has_its_line() {
        let written = fs::read_to_string(crate::root().join("docs/onload.md")).unwrap();
        let rows = |line: &&str| line.starts_with("| `EF_") && line.split(" | ").count() == 4;
        let mut names: Vec<_> = written
            .lines()
            .filter(rows)
            .filter_map(|line| quoted(line).next())
            .collect();
        assert_eq!(names.len(), 38);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 38, "one stands twice");
    }
}
