//! COMPLIANCE.md names files and tests as evidence: they must exist.

use super::{Tree, Violation};

const CLAIMS: &str = "COMPLIANCE.md";

pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, line) in tree.text(CLAIMS).unwrap_or_default().lines().enumerate() {
        for name in quoted(line).filter(|name| is_of_a_crate(name)) {
            if let Err(message) = is_there(tree, name) {
                found.push(Violation::of_line(CLAIMS, index + 1, message));
            }
        }
    }
    found
}

/// The text between backquotes in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// `mill-http/range.rs`, with or without `::test`.
fn is_of_a_crate(name: &str) -> bool {
    let (package, rest) = name.split_once('/').unwrap_or_default();
    let known = package.starts_with("mill-") || package == "millstream" || package == "xtask";
    known && !rest.is_empty()
}

fn is_there(tree: &Tree, name: &str) -> Result<(), String> {
    let (path, test) = match name.split_once("::") {
        Some((path, test)) => (path, Some(test)),
        None => (name, None),
    };
    let (package, rest) = path.split_once('/').unwrap_or_default();
    let places = [
        format!("crates/{package}/src/{rest}"),
        format!("crates/{package}/{rest}"),
        format!("{package}/src/{rest}"),
    ];
    let Some(text) = places.iter().find_map(|place| tree.text(place)) else {
        return Err(format!("names the file {path}, which is not there"));
    };
    match test {
        // A test of all engines takes the testbed as its type parameter.
        Some(test)
            if !["(", "<"]
                .iter()
                .any(|after| text.contains(&format!("fn {test}{after}"))) =>
        {
            Err(format!("names the test {test}, which is not in {path}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::violation::found;

    /// The violations in a document with this text, beside two files of mill-http.
    fn claims(text: &str) -> Vec<String> {
        let code = (
            "crates/mill-http/src/h1/parse.rs",
            "fn a_head_is_parsed() {} pub fn all_do<T: Testbed>() {}",
        );
        let test = ("crates/mill-http/tests/corpus.rs", "fn heads_hold() {}");
        found(check, &[("COMPLIANCE.md", text), code, test])
    }

    #[test]
    fn files_and_tests_that_exist_may_be_named() {
        for text in [
            "| x | `mill-http/h1/parse.rs` | `mill-http/h1/parse.rs::a_head_is_parsed` |",
            "`mill-http/h1/parse.rs::all_do`",
            "`mill-http/tests/corpus.rs::heads_hold`",
            "`a/b` and `*/*` and `mill-http` are no files of ours",
        ] {
            assert!(claims(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_file_or_test_that_does_not_exist_is_found_with_its_line() {
        for (text, expected) in [
            (
                "\n`mill-http/range.rs`",
                "COMPLIANCE.md:2: names the file mill-http/range.rs, which is not there",
            ),
            (
                "`mill-http/h1/parse.rs::a_head`",
                "COMPLIANCE.md:1: names the test a_head, which is not in mill-http/h1/parse.rs",
            ),
        ] {
            assert_eq!(claims(text), [expected]);
        }
    }
}
