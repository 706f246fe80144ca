//! The pages that are generated from tables in the code: `cargo xtask docs` writes them, and a test fails when one of
//! them is stale.

/// The options of `--stack`.
mod stack_options;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use mill_config::directive::{Arity, Directive, Status};
use mill_config::directives;

/// Writes every generated page below `root`.
pub(crate) fn run(root: &Path) -> ExitCode {
    let pages = [
        (DIRECTIVES_PAGE, directives_page()),
        (stack_options::PAGE, stack_options::page()),
    ];
    for (path, page) in pages {
        if let Err(error) = fs::write(root.join(path), page) {
            eprintln!("docs: cannot write {path}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The page of all directives, from the root of the checkout.
const DIRECTIVES_PAGE: &str = "docs/directives.md";

const INTRODUCTION: &str = "\
# Directives

Made from mill-config's tables by `cargo xtask docs`; edit those, not this page.

Names, contexts and defaults are those of nginx 1.22.1 unless COMPLIANCE.md says otherwise. A dash
means that there is no default, or that it depends on the build and the machine. *if* stands for
`if` in a location. A directive that is in no table here is refused as unknown, with the nearest
name that is known.
";

fn directives_page() -> String {
    let mut supported = Vec::new();
    let mut without_effect = Vec::new();
    let mut not_yet: Vec<(&str, Vec<&str>)> = Vec::new();
    for directive in directives::all() {
        match directive.status() {
            Status::Supported => supported.push(supported_row(directive)),
            Status::AcceptedWithoutEffect(reason) => {
                without_effect.push(without_effect_row(directive, reason));
            }
            Status::NotYet(module) => match not_yet.iter_mut().find(|(name, _)| *name == module) {
                Some((_, names)) => names.push(directive.name),
                None => not_yet.push((module, vec![directive.name])),
            },
        }
    }
    let mut page = String::from(INTRODUCTION);
    section(
        &mut page,
        "Supported",
        "They do what they do in nginx, but for those that are Millstream's own.",
        "directive | contexts | arguments | default | what it does",
        &supported,
    );
    section(
        &mut page,
        "Accepted without effect",
        "Their values are checked and change nothing. A notice says so, unless what they ask for is always so.",
        "directive | contexts | arguments | default | why it has nothing to do",
        &without_effect,
    );
    let not_yet: Vec<String> = not_yet
        .into_iter()
        .map(|(module, mut names)| {
            names.sort_unstable();
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("{module} | {}", names.join(" "))
        })
        .collect();
    section(
        &mut page,
        "Not yet",
        "nginx knows them; Millstream refuses them, saying so.",
        "part of nginx | directives",
        &not_yet,
    );
    page
}

/// A heading with how many rows follow, a sentence, and a table.
fn section(page: &mut String, title: &str, sentence: &str, columns: &str, rows: &[String]) {
    let dashes = vec!["---"; columns.split(" | ").count()].join(" | ");
    // Writing to a String cannot fail.
    let _ = write!(
        page,
        "\n## {title}\n\n{sentence}\n\n| {columns} |\n| {dashes} |\n"
    );
    for row in rows {
        let _ = writeln!(page, "| {row} |");
    }
}

fn supported_row(directive: &Directive) -> String {
    format!("{} | {}", form(directive), cell(directive.doc))
}

fn without_effect_row(directive: &Directive, reason: &str) -> String {
    format!("{} | {}", form(directive), cell(reason))
}

/// The part of a directive's description that its table holds.
fn form(directive: &Directive) -> String {
    let contexts: Vec<&str> = directive.contexts.names().collect();
    let default = match directive.default {
        Some(default) => format!("`{}`", cell(default)),
        None => "–".to_owned(),
    };
    let block = if directive.is_block() { ", block" } else { "" };
    format!(
        "`{}` | {} | {}{block} | {default}",
        directive.name,
        contexts.join(", ").replace("if in location", "if"),
        arguments(directive.arity),
    )
}

fn arguments(arity: Arity) -> String {
    match arity {
        Arity::Exactly(0) => "none".to_owned(),
        Arity::Exactly(count) => count.to_string(),
        Arity::Between(least, most) => format!("{least}–{most}"),
        Arity::AtLeast(least) => format!("{least} or more"),
    }
}

/// Text escaped for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use mill_config::directive::Arity;

    use super::{DIRECTIVES_PAGE, arguments, cell, directives_page};

    #[test]
    fn the_page_of_directives_is_generated_from_the_tables() {
        let page = fs::read_to_string(crate::root().join(DIRECTIVES_PAGE)).unwrap_or_default();
        assert!(
            page == directives_page(),
            "{DIRECTIVES_PAGE} is stale: run `cargo xtask docs` and commit the page"
        );
    }

    #[test]
    fn each_kind_of_directive_has_its_row() {
        let page = directives_page();
        for row in [
            "| `sendfile` | http, server, location, if | 1 | `off` | ",
            "| `server` | http | none, block | – | ",
            "| `server` | upstream, upstream in stream | 1 or more | – | ",
            "| `server` | stream | none, block | – | ",
            "| `types_hash_max_size` | http, server, location | 1 | `1024` | ",
        ] {
            assert!(page.contains(row), "no {row}");
        }
        assert!(page.contains("`proxy_pass`"));
    }

    #[test]
    fn numbers_of_arguments_are_shown_in_short_form() {
        for (arity, shown) in [
            (Arity::Exactly(0), "none"),
            (Arity::Exactly(2), "2"),
            (Arity::Between(1, 2), "1–2"),
            (Arity::AtLeast(1), "1 or more"),
        ] {
            assert_eq!(arguments(arity), shown);
        }
        assert_eq!(cell("on | off"), "on \\| off");
    }
}
