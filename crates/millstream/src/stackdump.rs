//! `millstream stackdump`, or the binary called as `onload_stackdump`: programs on our stack.

use crate::help;
use mill_keeper::accelerated::search;
use mill_keeper::stackdump::{self, Asked};
use std::process::ExitCode;

pub(crate) fn run(words: &[Vec<u8>]) -> ExitCode {
    let words = words
        .iter()
        .map(|word| String::from_utf8_lossy(word).into_owned());
    let words: Vec<String> = words.collect();
    let dump = match stackdump::parse(&words) {
        Ok(Asked::Help) => {
            help::print(stackdump::HELP);
            return ExitCode::SUCCESS;
        }
        Ok(Asked::Dump(dump)) => dump,
        Err(what) => {
            help::complain(&format!("onload_stackdump: {what}\n"));
            return ExitCode::from(USAGE_CODE);
        }
    };
    let found = search::all_begun();
    let missing = dump.missing(&found);
    for process in &missing {
        help::complain(&format!(
            "onload_stackdump: process {process} has no stack, or belongs to another user\n"
        ));
    }
    help::print(&dump.text(&found));
    ExitCode::from(u8::from(!missing.is_empty()))
}

/// As of other commands with a wrong command line.
const USAGE_CODE: u8 = 2;
