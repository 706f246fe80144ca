//! Attributes that make the compiler enforce a boundary must be present: `no_std` in the pure crates, and
//! `forbid(unsafe_code)` outside the crates with `unsafe`.

use super::manifest::manifests;
use super::rust_code::squeezed;
use super::{Tree, Violation};

/// Crates that must not do I/O, read a clock or draw random numbers.
const NO_STD: [&str; 6] = [
    "mill-wire",
    "mill-tcp",
    "mill-stack",
    "mill-bypass",
    "mill-http",
    "mill-runtime",
];

/// The crates with `unsafe`: system calls, and the C interface of a plug-in.
const UNSAFE_HOMES: [&str; 3] = ["mill-sys", "mill-packetdrill", "mill-preload"];

pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (folder, manifest) in manifests(tree) {
        let Some(package) = manifest.package else {
            continue;
        };
        let roots = tree.rust_files().filter(|file| is_root(&file.path, folder));
        for (file, text) in roots.filter_map(|file| Some((file, file.text()?))) {
            let code = squeezed(text);
            if !UNSAFE_HOMES.contains(&package.as_str())
                && !code.contains("#![forbid(unsafe_code)]")
            {
                let message = "say #![forbid(unsafe_code)]; `unsafe` lives in mill-sys";
                found.push(Violation::of_file(&file.path, message));
            }
            if NO_STD.contains(&package.as_str()) {
                found.extend(breach_of_no_std(&file.path, &code));
            }
        }
    }
    found
}

/// Whether `path` is the root of a library or a program of the crate in `folder`.
fn is_root(path: &str, folder: &str) -> bool {
    let Some(inner) = path
        .strip_prefix(folder)
        .and_then(|path| path.strip_prefix("src/"))
    else {
        return false;
    };
    match inner.strip_prefix("bin/") {
        Some(program) => !program.contains('/') || program.ends_with("/main.rs"),
        None => matches!(inner, "lib.rs" | "main.rs"),
    }
}

fn breach_of_no_std(path: &str, code: &str) -> Option<Violation> {
    if !code.contains("#![no_std]") {
        return Some(Violation::of_file(
            path,
            "say #![no_std]; this crate does no I/O",
        ));
    }
    let outside_tests = code.replace("#[cfg(test)]externcratestd;", "");
    let message = "`extern crate std` is for tests: write #[cfg(test)] above it";
    outside_tests
        .contains("externcratestd;")
        .then(|| Violation::of_file(path, message))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::violation::found;

    const UNFORBIDDEN: &str = "say #![forbid(unsafe_code)]; `unsafe` lives in mill-sys";

    /// The violations when `package` has the file `inner` with this text.
    fn fence(package: &str, inner: &str, text: &str) -> Vec<String> {
        let manifest = format!("[package]\nname = \"{package}\"\n");
        found(
            check,
            &[("c/Cargo.toml", &manifest), (&format!("c/{inner}"), text)],
        )
    }

    #[test]
    fn every_root_outside_mill_sys_forbids_unsafe() {
        for root in [
            "src/lib.rs",
            "src/main.rs",
            "src/bin/a.rs",
            "src/bin/a/main.rs",
        ] {
            assert!(fence("mill-config", root, "//! A.\n#![forbid(unsafe_code)]\n").is_empty());
            let bare = format!("c/{root}: {UNFORBIDDEN}");
            assert_eq!(
                fence("mill-config", root, "//! #![forbid(unsafe_code)]\n"),
                [bare]
            );
            assert!(fence("mill-sys", root, "//! A.\n").is_empty());
        }
    }

    #[test]
    fn other_files_need_not_repeat_it() {
        for file in ["src/lexer.rs", "src/bin/a/b.rs", "tests/serve.rs"] {
            assert!(fence("mill-config", file, "//! A.\n").is_empty(), "{file}");
        }
    }

    #[test]
    fn the_pure_crates_are_no_std() {
        let with = "#![no_std]\n#![forbid(unsafe_code)]\nextern crate alloc;\n";
        let without = "#![forbid(unsafe_code)]\n";
        for package in ["mill-http", "mill-runtime"] {
            assert!(fence(package, "src/lib.rs", with).is_empty());
            assert_eq!(
                fence(package, "src/lib.rs", without),
                ["c/src/lib.rs: say #![no_std]; this crate does no I/O"]
            );
        }
        assert!(fence("mill-config", "src/lib.rs", without).is_empty());
    }

    #[test]
    fn std_enters_a_pure_crate_in_tests_only() {
        let fenced = "#![no_std]\n#![forbid(unsafe_code)]\n";
        let in_tests = format!("{fenced}#[cfg(test)]\nextern crate std;\n");
        assert!(fence("mill-http", "src/lib.rs", &in_tests).is_empty());
        let open = format!("{fenced}extern crate std;\n");
        assert_eq!(
            fence("mill-http", "src/lib.rs", &open),
            ["c/src/lib.rs: `extern crate std` is for tests: write #[cfg(test)] above it"]
        );
    }
}
