//! The texts of `--help`, made from the table.

use super::table::{Entry, entries};
use std::fmt::Write;

/// The most used options, on one screen of 80 columns.
pub(crate) fn screen() -> String {
    let mut text = format!("{USAGE}\n");
    for entry in entries().filter(|entry| entry.often) {
        line(&mut text, &entry, SCREEN_COLUMN);
    }
    text.push_str(
        "\n  --help-all shows all options; docs/load.md explains them and every figure.\n",
    );
    text
}

/// Every option.
pub(crate) fn everything() -> String {
    let mut text = String::from(USAGE);
    let mut heading = "";
    for entry in entries().filter(|entry| !entry.heading.is_empty()) {
        if entry.heading != heading {
            heading = entry.heading;
            let _ = writeln!(text, "\n{heading}:");
        }
        line(&mut text, &entry, ALL_COLUMN);
    }
    text.push_str(STATUSES);
    text
}

/// An option and its help from `column` on; a long usage gets a line of its own, a long help several.
fn line(text: &mut String, entry: &Entry, column: usize) {
    let indent = if entry.short().is_some() {
        "  "
    } else {
        "      "
    };
    let mut current = format!("{indent}{}", entry.usage);
    if current.len() + 2 > column {
        let _ = writeln!(text, "{current}");
        current.clear();
    }
    let mut is_fresh = true;
    let _ = write!(current, "{:1$}", "", column.saturating_sub(current.len()));
    for word in entry.help.split(' ') {
        let is_full = current.chars().count() + 1 + word.chars().count() > COLUMNS;
        if is_full {
            let _ = writeln!(text, "{}", current.trim_end());
            current = " ".repeat(column);
            is_fresh = true;
        }
        if !is_fresh {
            current.push(' ');
        }
        current.push_str(word);
        is_fresh = false;
    }
    let _ = writeln!(text, "{}", current.trim_end());
}

const USAGE: &str = "\
Usage: millstream load [OPTIONS] URL
       millstream load [OPTIONS] 3=URL 1=URL    targets of one server, weighted
       millstream load merge FILE FILE...       several --json files as one
       millstream load respond [ADDRESS:PORT]   a server to try this on

Without --rate a connection asks again once it was answered (closed loop): what
can the server do? With --rate requests come at their own times (open loop):
how long do users wait?
";

const STATUSES: &str = "
Exit status:
  0 done, and everything asked for held     2 a requirement did not hold
  1 it could not be done                    3 the verdict is \"invalid\"
";

/// A terminal's width.
const COLUMNS: usize = 80;

/// Where the help begins.
const SCREEN_COLUMN: usize = 27;
const ALL_COLUMN: usize = 34;
