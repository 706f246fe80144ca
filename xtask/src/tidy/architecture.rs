//! ARCHITECTURE.md is the map of the crates: it names each of them, and no crate or file that does not exist.

use std::collections::BTreeSet;

use super::manifest::manifests;
use super::{Tree, Violation};

const MAP: &str = "ARCHITECTURE.md";

pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let crates: BTreeSet<String> = manifests(tree)
        .filter(|(folder, _)| folder.starts_with("crates/") || *folder == "xtask/")
        .filter_map(|(_, manifest)| manifest.package)
        .collect();
    let Some(text) = tree.text(MAP) else {
        return vec![Violation::of_file(
            MAP,
            "write it: it is the map of the crates",
        )];
    };
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let unknown = words(line).filter(|word| is_crate_name(word) && !crates.contains(*word));
        found.extend(unknown.map(|word| {
            let message = format!("names the crate \"{word}\", which is not there");
            Violation::of_line(MAP, index + 1, message)
        }));
        let missing = files_of(line).filter(|path| !tree.contains(path));
        found.extend(missing.map(|path| {
            let message = format!("names {path}, which is not there");
            Violation::of_line(MAP, index + 1, message)
        }));
    }
    let named: BTreeSet<&str> = text.lines().flat_map(words).collect();
    let missing = crates.iter().filter(|name| !named.contains(name.as_str()));
    found.extend(missing.map(|name| {
        Violation::of_file(
            MAP,
            format!("does not name the crate \"{name}\"; say what it holds"),
        )
    }));
    found
}

/// Every crate of ours but the binary and the automation is called `mill-something`.
fn is_crate_name(word: &str) -> bool {
    word.strip_prefix("mill-")
        .is_some_and(|rest| !rest.is_empty())
}

/// The files that a line names: `mill-http/h1/parse.rs` anywhere, and the first one of a walk's line, `mill-http   h1/parse.rs`.
fn files_of(line: &str) -> impl Iterator<Item = String> {
    let mut columns = line.split_whitespace();
    let walk = columns
        .next()
        .zip(columns.next())
        .filter(|(name, _)| is_crate_name(name));
    let step = walk.map(|(name, file)| format!("{name}/{}", file.trim_end_matches(',')));
    let named = line.split(|c: char| c.is_whitespace() || "`(),;".contains(c));
    let paths = named
        .map(String::from)
        .chain(step)
        .filter(|path| path.ends_with(".rs") && path.split('/').next().is_some_and(is_crate_name));
    paths.filter_map(|path| {
        let (name, file) = path.split_once('/')?;
        Some(format!("crates/{name}/src/{file}"))
    })
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::violation::found;

    /// The violations when the crates are mill-http and xtask, and the map is `text`.
    fn map(text: &str) -> Vec<String> {
        let http = (
            "crates/mill-http/Cargo.toml",
            "[package]\nname = \"mill-http\"\n",
        );
        let xtask = ("xtask/Cargo.toml", "[package]\nname = \"xtask\"\n");
        let fuzz = ("fuzz/Cargo.toml", "[package]\nname = \"mill-fuzz\"\n");
        let parse = ("crates/mill-http/src/h1/parse.rs", "");
        found(
            check,
            &[http, parse, xtask, fuzz, ("ARCHITECTURE.md", text)],
        )
    }

    #[test]
    fn a_map_that_names_each_crate_is_fine() {
        assert!(
            map("`mill-http` parses (see mill-http/h1/parse.rs);\nxtask automates.\n").is_empty()
        );
    }

    #[test]
    fn a_crate_that_the_map_does_not_name_is_found() {
        let expected = "ARCHITECTURE.md: does not name the crate \"xtask\"; say what it holds";
        assert_eq!(map("mill-http and xtasks"), [expected]);
    }

    #[test]
    fn a_crate_that_does_not_exist_is_found_with_its_line() {
        let expected = "ARCHITECTURE.md:2: names the crate \"mill-tcp\", which is not there";
        assert_eq!(map("mill-http, xtask\nand mill-tcp."), [expected]);
    }

    #[test]
    fn a_file_that_does_not_exist_is_found_in_text_and_in_a_walk() {
        for (line, file) in [
            ("mill-http, xtask: see `mill-http/h1/parse.rs`", None),
            ("mill-http   h1/parse.rs, head.rs   xtask", None),
            (
                "mill-http, xtask: see `mill-http/h1/pars.rs`",
                Some("h1/pars.rs"),
            ),
            ("mill-http   h1/emit.rs   xtask", Some("h1/emit.rs")),
        ] {
            let expected = file.map(|file| {
                format!("ARCHITECTURE.md:1: names crates/mill-http/src/{file}, which is not there")
            });
            assert_eq!(
                map(line),
                expected.into_iter().collect::<Vec<_>>(),
                "{line}"
            );
        }
    }

    #[test]
    fn a_checkout_without_a_map_is_found() {
        assert_eq!(
            found(check, &[]),
            ["ARCHITECTURE.md: write it: it is the map of the crates"]
        );
    }
}
