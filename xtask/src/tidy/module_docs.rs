//! Every Rust file begins with its documentation.

use super::{Tree, Violation};

pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let bare = tree
        .rust_files()
        .filter(|file| !file.bytes.starts_with(b"//! "));
    bare.map(|file| {
        Violation::of_line(
            &file.path,
            1,
            "begin with a `//! ` line that says what it holds",
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::violation::found;

    #[test]
    fn a_rust_file_without_a_first_line_of_documentation_is_found() {
        let complaint = "a.rs:1: begin with a `//! ` line that says what it holds";
        for (text, expected) in [
            ("//! Arithmetic.\nfn add() {}\n", None),
            ("//!\n//! Arithmetic.\n", Some(complaint)),
            ("\n//! Arithmetic.\n", Some(complaint)),
            ("/// Arithmetic.\nfn add() {}\n", Some(complaint)),
            ("#![no_std]\n//! Arithmetic.\n", Some(complaint)),
            ("", Some(complaint)),
        ] {
            assert_eq!(
                found(check, &[("a.rs", text)]).first().map(String::as_str),
                expected
            );
        }
    }

    #[test]
    fn only_rust_files_are_looked_at() {
        assert!(found(check, &[("README.md", "# Read me\n")]).is_empty());
    }
}
