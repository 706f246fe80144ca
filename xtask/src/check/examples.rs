//! Which crates have examples in their documentation. Cargo would have rustdoc read every crate to find that out, which takes minutes.

use crate::tidy::tree::Tree;
use std::collections::BTreeSet;

/// The packages below `crates` whose documentation has a block of code that is not marked as text, sorted.
pub(super) fn packages(tree: &Tree) -> BTreeSet<String> {
    let of_crates = tree.rust_files().filter_map(|file| {
        let (package, path) = file.path.strip_prefix("crates/")?.split_once('/')?;
        let text = file.text().filter(|_| path.starts_with("src/"))?;
        has_example(text).then(|| package.to_owned())
    });
    of_crates.collect()
}

fn has_example(text: &str) -> bool {
    let mut is_inside = false;
    text.lines().any(|line| {
        let line = line.trim_start();
        let comment = line.strip_prefix("//!").or(line.strip_prefix("///"));
        let Some(language) = comment.and_then(|comment| comment.trim_start().strip_prefix("```"))
        else {
            return false;
        };
        is_inside = !is_inside;
        is_inside && language.trim() != "text"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_with_examples_are_found() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "//! ```text\n//! a b\n//! ```\n"),
            ("crates/b/src/lib.rs", "//! Text.\n"),
            (
                "crates/b/src/c.rs",
                "    /// ```\n    /// use b::c;\n    /// ```\n",
            ),
            ("crates/c/src/lib.rs", "/// ```no_run\n/// ```\nfn c() {}\n"),
            ("crates/d/tests/it.rs", "//! ```\n//! ```\n"),
            ("crates/e/src/lib.rs", "const E: &str = \"```\";\n"),
            ("crates/f/README.md", "```\n```\n"),
        ]);
        let found: Vec<_> = packages(&tree).into_iter().collect();
        assert_eq!(found, ["b", "c"]);
    }
}
