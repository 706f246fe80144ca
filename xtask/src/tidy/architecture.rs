//! ARCHITECTURE.md is the map of the crates: it names each of them, and none that is not there.

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

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::violation::found;

    /// What is found when the crates are mill-http and xtask, and the map says `text`.
    fn map(text: &str) -> Vec<String> {
        let http = (
            "crates/mill-http/Cargo.toml",
            "[package]\nname = \"mill-http\"\n",
        );
        let xtask = ("xtask/Cargo.toml", "[package]\nname = \"xtask\"\n");
        let fuzz = ("fuzz/Cargo.toml", "[package]\nname = \"mill-fuzz\"\n");
        found(check, &[http, xtask, fuzz, ("ARCHITECTURE.md", text)])
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
    fn a_crate_that_is_not_there_is_found_with_its_line() {
        let expected = "ARCHITECTURE.md:2: names the crate \"mill-tcp\", which is not there";
        assert_eq!(map("mill-http, xtask\nand mill-tcp."), [expected]);
    }

    #[test]
    fn a_checkout_without_a_map_is_found() {
        assert_eq!(
            found(check, &[]),
            ["ARCHITECTURE.md: write it: it is the map of the crates"]
        );
    }
}
