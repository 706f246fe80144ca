//! No crate hands out another crate's items as its own: a user of them has an edge to where they are, which `edges` sees.

use super::rust_code::code_of;
use super::{Tree, Violation};

pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let sources = tree.texts().filter(|(path, _)| path.contains("/src/"));
    let sources = sources.filter(|(path, _)| path.ends_with(".rs"));
    let lines = sources.flat_map(|(path, text)| {
        let code = code_of(text);
        let exports = code.lines().enumerate().filter(|(_, line)| {
            let line = line.trim_start();
            let path = line.strip_prefix("pub use ").unwrap_or_default();
            path.trim_start_matches("::").starts_with("mill_")
        });
        let numbers: Vec<usize> = exports.map(|(index, _)| index + 1).collect();
        numbers.into_iter().map(move |number| (path, number))
    });
    let message = "a re-export evades the edges: let the users have an edge to the crate itself";
    lines
        .map(|(path, number)| Violation::of_line(path, number, message))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::violation::found;

    #[test]
    fn items_of_other_crates_are_not_exported_again() {
        let check = |line: &str, fails: bool| {
            let text = format!("\n{line}\n");
            let found = found(check, &[("crates/mill-a/src/lib.rs", &text)]);
            assert_eq!(!found.is_empty(), fails, "{line}: {found:?}");
        };
        check("pub use mill_tcp as tcp;", true);
        check("    pub use ::mill_tcp::{rto, window};", true);
        check("use mill_tcp::rto;", false);
        check("pub(crate) use mill_tcp::rto;", false);
        check("pub use rto::Rto;", false);
        check("// pub use mill_tcp as tcp;", false);
        check("pub type Engine = mill_bypass::BypassEngine;", false);
    }
}
