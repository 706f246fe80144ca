//! The rules of the workspace that the compiler does not check: `cargo xtask tidy`, and a test.
//!
//! A rule is a function from the `Tree` of files to the violations it finds, in a file of its
//! own with tests of both sides. A new rule gets a file, a line below and a line in `RULES`.

/// The parts of a Cargo.toml that the rules look at.
mod manifest;
/// Rust source with comments and literals blanked out.
mod rust_code;
/// The files of a checkout, in memory.
pub(crate) mod tree;
/// A breach of a rule, with its file and line.
mod violation;

/// ARCHITECTURE.md and the crates name each other.
mod architecture;
/// No large files.
mod blobs;
/// COMPLIANCE.md names only what exists.
mod compliance;
/// Which crates of the workspace may use which.
mod edges;
/// `no_std` and `forbid(unsafe_code)`.
mod fences;
/// No file with a name that fits any content.
mod file_names;
/// No path into a home folder.
mod home_paths;
/// Things are not people.
mod language;
/// No leftovers without an issue.
mod leftovers;
/// Every Rust file begins with its documentation.
mod module_docs;
/// Every Rust file is part of a crate.
mod reachable;
/// No crate hands out another one's items.
mod reexports;

use std::path::Path;
use std::process::ExitCode;

use tree::Tree;
use violation::Violation;

type Rule = fn(&Tree) -> Vec<Violation>;

const RULES: [Rule; 12] = [
    edges::check,
    reexports::check,
    fences::check,
    module_docs::check,
    reachable::check,
    leftovers::check,
    file_names::check,
    blobs::check,
    home_paths::check,
    architecture::check,
    compliance::check,
    language::check,
];

/// Reads the checkout at `root`, applies every rule, and prints what it finds.
pub(crate) fn run(root: &Path) -> ExitCode {
    let tree = match Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: cannot read {}: {error}", root.display());
            return ExitCode::FAILURE;
        }
    };
    let violations = violations(&tree);
    for violation in &violations {
        eprintln!("{violation}");
    }
    if violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn violations(tree: &Tree) -> Vec<Violation> {
    RULES.iter().flat_map(|rule| rule(tree)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Tree, violations};

    #[test]
    fn this_checkout_is_tidy() {
        let tree = Tree::read(crate::root()).expect("the checkout can be read");
        let found: Vec<String> = violations(&tree).iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "\n{}", found.join("\n"));
    }
}
