//! Every Rust file is part of a crate: one that no `mod` names is neither compiled nor tested.

use std::collections::BTreeSet;

use super::manifest::manifests;
use super::rust_code::code_of;
use super::{Tree, Violation};

pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut reached = BTreeSet::new();
    for root in roots(tree) {
        reach(tree, &root, true, &mut reached);
    }
    let lost = tree
        .rust_files()
        .filter(|file| !reached.contains(&file.path));
    lost.map(|file| {
        Violation::of_file(
            &file.path,
            "no crate contains it; declare it with `mod`, or remove it",
        )
    })
    .collect()
}

/// The file at the root of each library, program, test, benchmark and example.
fn roots(tree: &Tree) -> Vec<String> {
    let mut roots = Vec::new();
    for (folder, manifest) in manifests(tree) {
        if manifest.package.is_none() {
            continue;
        }
        let inner_paths = tree
            .rust_files()
            .filter_map(|file| file.path.strip_prefix(folder));
        let usual = inner_paths.filter(|inner| is_usual_root(inner));
        roots.extend(usual.map(|inner| format!("{folder}{inner}")));
        roots.extend(
            manifest
                .target_paths
                .iter()
                .map(|inner| joined(folder, inner)),
        );
    }
    roots
}

/// Whether cargo finds a target at `inner`, a path from the crate's folder, by itself.
fn is_usual_root(inner: &str) -> bool {
    if matches!(inner, "build.rs" | "src/lib.rs" | "src/main.rs") {
        return true;
    }
    let target = ["src/bin/", "tests/", "benches/", "examples/"];
    let Some(target) = target.iter().find_map(|folder| inner.strip_prefix(folder)) else {
        return false;
    };
    match target.split_once('/') {
        None => true,
        Some((_, file)) => file == "main.rs",
    }
}

/// Adds `path` and all files that its `mod` declarations name.
fn reach(tree: &Tree, path: &str, is_root: bool, reached: &mut BTreeSet<String>) {
    let Some(text) = tree.text(path) else { return };
    if !reached.insert(path.to_owned()) {
        return;
    }
    let (folder, file) = path
        .rsplit_once('/')
        .map_or(("", path), |(f, name)| (f, name));
    let folder = if folder.is_empty() {
        String::new()
    } else {
        format!("{folder}/")
    };
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let inner = if is_root || stem == "mod" {
        folder.clone()
    } else {
        format!("{folder}{stem}/")
    };
    for declaration in declarations(text) {
        if let Some(named) = &declaration.path {
            // Its own modules are beside it, as those of a `mod.rs`.
            reach(tree, &joined(&folder, named), true, reached);
            continue;
        }
        let module = format!("{inner}{}", declaration.module.join("/"));
        for candidate in [format!("{module}.rs"), format!("{module}/mod.rs")] {
            if tree.contains(&candidate) {
                reach(tree, &candidate, false, reached);
            }
        }
    }
}

/// `mod name;`, with the inline modules around it.
struct Declaration {
    module: Vec<String>,
    /// The value of `#[path = "…"]`.
    path: Option<String>,
}

fn declarations(text: &str) -> Vec<Declaration> {
    let code = code_of(text);
    let mut found = Vec::new();
    let mut enclosing: Vec<Option<String>> = Vec::new();
    let mut statement_start = 0;
    let mut tokens = tokens(&code).peekable();
    while let Some((at, token)) = tokens.next() {
        match token {
            "{" => enclosing.push(None),
            "}" => drop(enclosing.pop()),
            "mod" => {
                let Some((_, name)) = tokens.next_if(|(_, token)| is_name(token)) else {
                    continue;
                };
                match tokens.next() {
                    Some((_, ";")) => {
                        let attributes = text.get(statement_start..at).unwrap_or_default();
                        let names = enclosing.iter().flatten().cloned();
                        let module = names.chain([name.to_owned()]).collect();
                        found.push(Declaration {
                            module,
                            path: path_attribute(attributes),
                        });
                    }
                    Some((_, "{")) => enclosing.push(Some(name.to_owned())),
                    _ => {}
                }
            }
            _ => {}
        }
        if matches!(token, "{" | "}" | ";" | "mod") {
            statement_start = at;
        }
    }
    found
}

/// The names and single marks of `code`, with their offsets.
fn tokens(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = code.get(at..)?;
        let start = at + (rest.len() - rest.trim_start().len());
        let rest = code.get(start..)?;
        let first = rest.chars().next()?;
        let name_len = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let len = if name_len == 0 {
            first.len_utf8()
        } else {
            name_len
        };
        at = start + len;
        Some((start, rest.get(..len)?))
    })
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn path_attribute(attributes: &str) -> Option<String> {
    let (_, after) = attributes.rsplit_once("#[path")?;
    let value = after
        .trim_start()
        .strip_prefix('=')?
        .trim_start()
        .strip_prefix('"')?;
    Some(value.split_once('"')?.0.to_owned())
}

/// `folder` and `relative` as one path, with `..` and `.` resolved.
fn joined(folder: &str, relative: &str) -> String {
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in relative.split('/') {
        match name {
            ".." => drop(names.pop()),
            "." | "" => {}
            _ => names.push(name),
        }
    }
    names.join("/")
}

#[cfg(test)]
mod tests {
    use super::{check, joined};
    use crate::tidy::violation::found;

    const MANIFEST: (&str, &str) = ("c/Cargo.toml", "[package]\nname = \"c\"\n");

    /// Which of `files` no crate contains.
    fn lost(files: &[(&str, &str)]) -> Vec<String> {
        let all: Vec<_> = [MANIFEST].iter().chain(files).copied().collect();
        let complaint = ": no crate contains it; declare it with `mod`, or remove it";
        let found = found(check, &all);
        found
            .iter()
            .map(|line| line.strip_suffix(complaint).unwrap_or(line).to_owned())
            .collect()
    }

    #[test]
    fn a_file_that_no_mod_names_is_found() {
        assert_eq!(
            lost(&[("c/src/lib.rs", "mod a;"), ("c/src/a.rs", "")]),
            [""; 0]
        );
        assert_eq!(
            lost(&[("c/src/lib.rs", "// mod a;"), ("c/src/a.rs", "")]),
            ["c/src/a.rs"]
        );
        assert_eq!(
            lost(&[("c/src/lib.rs", "\"mod a;\""), ("c/src/a.rs", "")]),
            ["c/src/a.rs"]
        );
        assert_eq!(
            lost(&[("c/src/lib.rs", "mod ab;"), ("c/src/a.rs", "")]),
            ["c/src/a.rs"]
        );
        assert_eq!(lost(&[("stray.rs", "")]), ["stray.rs"]);
    }

    #[test]
    fn modules_are_in_the_folder_of_their_parent() {
        let root = ("c/src/lib.rs", "pub(crate) mod a;");
        let nested = [
            root,
            ("c/src/a.rs", "#[cfg(test)]\nmod tests;"),
            ("c/src/a/tests.rs", ""),
        ];
        assert_eq!(lost(&nested), [""; 0]);
        let old = [root, ("c/src/a/mod.rs", "mod b;"), ("c/src/a/b.rs", "")];
        assert_eq!(lost(&old), [""; 0]);
        let beside = [root, ("c/src/a.rs", "mod tests;"), ("c/src/tests.rs", "")];
        assert_eq!(lost(&beside), ["c/src/tests.rs"]);
    }

    #[test]
    fn a_module_written_in_place_adds_a_folder() {
        let root = "mod outer { fn f() { if a { } } mod inner; } mod after;";
        let files = [
            ("c/src/lib.rs", root),
            ("c/src/outer/inner.rs", ""),
            ("c/src/after.rs", ""),
        ];
        assert_eq!(lost(&files), [""; 0]);
        let wrong = [
            ("c/src/lib.rs", root),
            ("c/src/inner.rs", ""),
            ("c/src/after.rs", ""),
        ];
        assert_eq!(lost(&wrong), ["c/src/inner.rs"]);
    }

    #[test]
    fn a_path_attribute_is_followed() {
        let root = "#[cfg(test)]\n#[path = \"../other/b.rs\"]\nmod a;\nmod c;";
        let files = [
            ("c/src/lib.rs", root),
            ("c/other/b.rs", "mod d;"),
            ("c/other/d.rs", ""),
            ("c/src/a.rs", ""),
            ("c/src/c.rs", ""),
        ];
        assert_eq!(lost(&files), ["c/src/a.rs"]);
    }

    #[test]
    fn every_target_that_cargo_finds_is_a_root() {
        for root in [
            "c/src/main.rs",
            "c/src/bin/a.rs",
            "c/src/bin/a/main.rs",
            "c/tests/a.rs",
            "c/tests/a/main.rs",
            "c/benches/a.rs",
            "c/examples/a.rs",
            "c/build.rs",
        ] {
            assert_eq!(lost(&[(root, "")]), [""; 0], "{root}");
        }
        for other in ["c/tests/a/b.rs", "c/src/a.rs", "c/src/bin/a/b.rs", "c/a.rs"] {
            assert_eq!(lost(&[(other, "")]), [other], "{other}");
        }
    }

    #[test]
    fn a_target_with_a_path_of_its_own_is_a_root() {
        let manifest = "[package]\nname = \"fuzz\"\n[[bin]]\nname = \"a\"\npath = \"./t/a.rs\"\n";
        let files = [
            ("fuzz/Cargo.toml", manifest),
            ("fuzz/t/a.rs", ""),
            ("fuzz/t/b.rs", ""),
        ];
        assert_eq!(lost(&files), ["fuzz/t/b.rs"]);
    }

    #[test]
    fn paths_are_joined_as_a_file_system_does() {
        assert_eq!(joined("a/b/", "../c.rs"), "a/c.rs");
        assert_eq!(joined("a/", "./b.rs"), "a/b.rs");
        assert_eq!(joined("", "b.rs"), "b.rs");
    }
}
