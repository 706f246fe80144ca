//! Comments, documents and names of tests speak of things, and things are "it", "which" and "that".
//!
//! Only the worst is found here: pronouns of people. Text of other programs, in strings, is not looked at.

use super::rust_code::code_of;
use super::{Tree, Violation};

/// Pronouns that fit people only. "whose" fits things too.
const OF_PEOPLE: [&str; 17] = [
    "who",
    "whom",
    "whoever",
    "whomever",
    "he",
    "she",
    "him",
    "his",
    "himself",
    "nobody",
    "somebody",
    "anybody",
    "everybody",
    "someone",
    "anyone",
    "everyone",
    "herself",
];

pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in tree.texts() {
        let prose = match path.rsplit_once('.') {
            Some((_, "rs")) => rust_prose(text),
            Some((_, "md")) => document_prose(text),
            _ => continue,
        };
        for (number, line) in prose {
            for word in line.split(|c: char| !c.is_ascii_alphabetic()) {
                if OF_PEOPLE.contains(&word.to_ascii_lowercase().as_str()) {
                    let message = format!("\"{word}\" is for people: say what it is, or \"which\"");
                    found.push(Violation::of_line(path, number, message));
                }
            }
        }
    }
    found
}

/// Comments, and the names of functions, of which most are tests' sentences; lines counted from 1.
fn rust_prose(text: &str) -> Vec<(usize, String)> {
    let code = code_of(text);
    let lines = text.lines().zip(code.lines()).enumerate();
    let prose = lines.filter_map(|(index, (line, code))| {
        let name = code.split_once("fn ").map(|(_, rest)| rest);
        let name = name.and_then(|rest| rest.split(['(', '<']).next());
        let comment = line.get(code.trim_end().len()..).unwrap_or_default();
        let comment = comment.find("//").and_then(|at| comment.get(at..));
        let prose = format!(
            "{} {}",
            name.unwrap_or_default(),
            quoteless(comment.unwrap_or_default())
        );
        (prose.len() > 1).then_some((index + 1, prose))
    });
    prose.collect()
}

/// The text outside of fenced blocks.
fn document_prose(text: &str) -> Vec<(usize, String)> {
    let mut is_fenced = false;
    let lines = text.lines().enumerate();
    let prose = lines.filter_map(|(index, line)| {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            return None;
        }
        (!is_fenced).then(|| (index + 1, quoteless(line)))
    });
    prose.collect()
}

/// A line without what stands between backticks or quotation marks: those are others' words.
fn quoteless(line: &str) -> String {
    let outside =
        |text: &str, mark: char| text.split(mark).step_by(2).collect::<Vec<_>>().join(" ");
    outside(&outside(line, '`'), '"')
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::violation::found;

    /// Whether the text breaks the rule.
    fn fails(path: &str, text: &str) -> bool {
        !found(check, &[(path, text)]).is_empty()
    }

    #[test]
    fn comments_names_of_functions_and_documents_are_looked_at() {
        for (path, text) in [
            ("a.rs", "/// The process who has it."),
            ("a.rs", "let a = 1; // Nobody reads it."),
            ("a.rs", "fn a_peer_is_told_that_he_is_late() {}"),
            ("a.md", "The worker whom it asks."),
        ] {
            assert!(fails(path, text), "{text}");
        }
    }

    #[test]
    fn code_strings_quotations_and_fences_are_not() {
        for (path, text) in [
            ("a.rs", "/// The process which has it, and whose it is."),
            ("a.rs", "let text = \"who is there\"; let he = 1;"),
            ("a.rs", "/// The command `who`, and \"he\" in a quotation."),
            ("a.md", "```\nwho\n```\n"),
            ("a.sh", "# who"),
        ] {
            assert!(!fails(path, text), "{text}");
        }
    }

    #[test]
    fn the_line_and_the_word_are_named() {
        assert_eq!(
            found(check, &[("a.md", "One.\nWho?\n")]),
            ["a.md:2: \"Who\" is for people: say what it is, or \"which\""]
        );
    }
}
