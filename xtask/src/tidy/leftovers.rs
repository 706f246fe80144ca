//! No leftovers: what is to be done later has the number of an issue, or is done now; a merge is whole.

use super::{Tree, Violation};

// Written in two halves, so that this file passes its own rule.
const LATER: &str = concat!("TO", "DO");
const MEND: &str = concat!("FIX", "ME");

/// What git writes around the two sides of a conflict, each at the beginning of a line.
const SIDES: [&str; 2] = [concat!("<<<<", "<<< "), concat!(">>>>", ">>> ")];

pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in tree.texts() {
        for (index, line) in text.lines().enumerate() {
            if words(line, MEND).next().is_some() {
                let message = format!("{MEND}: mend it before the merge");
                found.push(Violation::of_line(path, index + 1, message));
            }
            if SIDES.iter().any(|side| line.starts_with(side)) {
                let message = String::from("a conflict of a merge: keep one side");
                found.push(Violation::of_line(path, index + 1, message));
            }
            if words(line, LATER).any(|rest| !begins_with_issue(rest)) {
                let message = format!("{LATER} without an issue: write {LATER}(#number), or do it");
                found.push(Violation::of_line(path, index + 1, message));
            }
        }
    }
    found
}

/// The text after each place where `word` is in `line` as a word of its own.
fn words<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(word).filter_map(move |(at, _)| {
        let (before, rest) = (line.get(..at)?, line.get(at + word.len()..)?);
        let own = !before.ends_with(is_word) && !rest.starts_with(is_word);
        own.then_some(rest)
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn begins_with_issue(rest: &str) -> bool {
    let number = rest
        .strip_prefix("(#")
        .and_then(|rest| rest.split_once(')'));
    number
        .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::{LATER, MEND, SIDES, check};
    use crate::tidy::violation::found;

    #[test]
    fn the_marker_to_mend_fails_everywhere() {
        for line in ["// FIX: it", "// FIX(#12): it", "let a = 1; // FIX"] {
            let text = format!("\n{}\n", line.replace("FIX", MEND));
            let expected = format!("a.sh:2: {MEND}: mend it before the merge");
            assert_eq!(found(check, &[("a.sh", &text)]), [expected], "{line}");
        }
    }

    #[test]
    fn the_marker_for_later_needs_the_number_of_an_issue() {
        for (line, fails) in [
            ("// DO(#12): it", false),
            ("// DO(#12) and DO(#13)", false),
            ("// DO(#12) and DO: that", true),
            ("// DO: it", true),
            ("// DO(me): it", true),
            ("// DO(#): it", true),
            ("// DO(#12: it", true),
        ] {
            let text = line.replace("DO", LATER);
            assert_eq!(
                !found(check, &[("a.rs", &text)]).is_empty(),
                fails,
                "{line}"
            );
        }
    }

    #[test]
    fn both_sides_of_a_conflict_are_found_at_the_beginning_of_a_line() {
        let [ours, theirs] = SIDES;
        let text = format!("{ours}HEAD\na\n=======\nb\n{theirs}1234 (area: change)\n");
        let expected =
            ["a.md:1", "a.md:5"].map(|at| format!("{at}: a conflict of a merge: keep one side"));
        assert_eq!(found(check, &[("a.md", &text)]), expected);
        let quoted = format!("git writes {ours}HEAD\n");
        assert!(found(check, &[("a.md", &quoted)]).is_empty());
    }

    #[test]
    fn a_marker_inside_another_word_is_none() {
        let text = format!("MAS{LATER}N {LATER}S _{MEND} {MEND}_ todo fixme");
        assert!(found(check, &[("a.md", &text)]).is_empty());
    }
}
