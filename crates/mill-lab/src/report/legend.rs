//! What the small print in a table's cells means: only what occurs is explained.

use crate::findings::{Cell, Findings};
use std::collections::BTreeSet;

/// (what it looks like, what it means), in the order in which cells hold them.
pub(super) fn legend(findings: &Findings) -> Vec<(String, String)> {
    let cells = || {
        findings
            .tables
            .iter()
            .flat_map(|grid| grid.rows.iter().flatten())
    };
    let mut out = Vec::new();
    let example = |of: fn(&Cell) -> Option<&String>| cells().find_map(of).cloned();
    if let Some(spread) = example(|cell| cell.spread.as_ref()) {
        out.push((
            spread,
            String::from(
                "Half the width of the interval of the figure above it, over fresh server processes: 95 % or more of six and more, of fewer their range.",
            ),
        ));
    }
    if let Some(published) = example(|cell| cell.published.as_ref()) {
        out.push((
            published,
            String::from(
                "Our figure divided by the one printed in the document, which was measured on other machines. \
                 It tells how far apart the machines are, and nothing about the software.",
            ),
        ));
    }
    let marks: BTreeSet<&str> = cells()
        .filter_map(|cell| cell.mark.as_deref())
        .flat_map(|mark| mark.split("; "))
        .collect();
    let mut meanings: Vec<(Vec<&str>, &'static str)> = Vec::new();
    for mark in marks {
        let Some(meaning) = meaning(mark) else {
            continue;
        };
        match meanings.iter_mut().find(|(_, known)| *known == meaning) {
            Some((marks, _)) => marks.push(mark),
            None => meanings.push((vec![mark], meaning)),
        }
    }
    for (mut marks, meaning) in meanings {
        // A handful shows what is meant; systems may have reasons by the dozen.
        if marks.len() > MARKS_MAX {
            marks.truncate(MARKS_MAX);
            marks.push("…");
        }
        out.push((marks.join(", "), meaning.to_owned()));
    }
    out
}

/// Marks of one meaning that are named.
const MARKS_MAX: usize = 4;

/// The explanation of a part of a mark, by the first words that it contains; one that is self-explanatory has none.
fn meaning(mark: &str) -> Option<&'static str> {
    let mut lines = MEANINGS.lines().filter_map(|line| line.split_once(": "));
    lines
        .find(|(words, _)| mark.contains(words))
        .map(|(_, meaning)| meaning)
}

/// Words of a mark, those of `Side` first, and what they mean.
const MEANINGS: &str = "\
server-bound: The server used up its CPUs and the client did not: the figure is the server's.
client-bound: The client used up its CPUs first: the server could do more than this figure.
both sides busy: Both sides used up their CPUs: the figure is of the pair, not of the server alone.
link-bound: The link was full: the figure is the link's, and all servers that fill it look the same.
port-bound: The client had no free ports left: the figure is the address's.
backlog-bound: Listen queues overflowed while CPUs were idle: the figure is the queue's.
server polls: The server's CPUs were busy and the client's were not; but a stack of its own looks for packets while it waits, so that this does not prove the figure to be its most.
not saturated: Neither CPUs nor the link were busy: latency, a lock, or the rate that was asked for set the figure.
foreign CPU: Other programs, or the hypervisor, took CPU time from a side that did not use up its CPUs itself: the figure is of what was left. Repeat it on a quiet machine.
limit not known: Whose work the CPUs did was not measured: the limit may be any process.
invalid: Too many requests failed for the figure to mean anything.
core: This machine has fewer CPUs than the point needs; it was not run.
not built yet: Millstream can't do this yet; the column keeps its place.
not on this machine: What the column needs is not installed or not plugged in here; it was not run.
out of scope: Millstream will not run this; the column keeps the document's layout.
disturbed: Others took more CPU time than the recipe allows, and no try was left undisturbed: the figure is of what was left.
undecided: The median of the pairs' ratios and the quotient of the medians point different ways: there is no direction to speak of.
failed: The trial should have worked; the reasons are under Warnings or in its folder.
missing: The run ended before this point.
";

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn only_what_occurs_is_explained() {
        let words: Vec<String> = legend(&example::cookbook())
            .into_iter()
            .map(|(word, _)| word)
            .collect();
        assert!(words.contains(&String::from("client-bound")), "{words:?}");
        assert!(words.contains(&String::from("not built yet")), "{words:?}");
        assert!(!words.contains(&String::from("link-bound")), "{words:?}");
        assert!(
            words.contains(&String::from("needs 4 cores, needs 8 cores")),
            "{words:?}"
        );
        let mut bare = example::cookbook();
        bare.tables.clear();
        assert_eq!(legend(&bare), []);
    }

    #[test]
    fn every_side_has_a_meaning() {
        use crate::limit::Side::*;
        for side in [
            Server, Client, Both, Link, Ports, Backlog, Polling, Nothing, Foreign, Unknown, Invalid,
        ] {
            assert!(meaning(side.word()).is_some(), "{side:?}");
        }
        assert_eq!(meaning("stolen"), None);
    }
}
