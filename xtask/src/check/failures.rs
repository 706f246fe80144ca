//! What failed in a program of tests, as one line a test.

/// Longest message that is repeated, in characters.
const LONGEST_MESSAGE: usize = 300;

/// One line for each test of `program` that failed according to its output `log`: its name, and what it said. A program
/// that names none, such as one that was killed, gives one line with `why` it counts as failed.
pub(super) fn lines(program: &str, log: &str, why: &str) -> Vec<String> {
    let named: Vec<String> = log
        .split("\n---- ")
        .skip(1)
        .filter_map(|section| section.split_once(" stdout ----\n"))
        .map(|(test, said)| format!("{program}: {test}: {}", message(test, said)))
        .collect();
    if named.is_empty() {
        return vec![format!("{program}: {why}")];
    }
    named
}

/// The place and message of the test's own panic in one line, without what was printed before it, and without the list that ends
/// the log.
fn message(test: &str, said: &str) -> String {
    let said = said.split("\nfailures:\n").next().unwrap_or(said);
    let said = said.split("\nstack backtrace:\n").next().unwrap_or(said);
    // A panic of a thread that the test has started may stand before it.
    let own = said.find(&format!("thread '{test}'"));
    let said = own.map_or(said, |at| &said[at..]);
    let panic = said.find("panicked at ").map_or(said, |at| &said[at..]);
    let words: Vec<&str> = panic.split_whitespace().collect();
    words.join(" ").chars().take(LONGEST_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failed_test_is_a_line_with_its_message() {
        let log = "running 3 tests\n\nfailures:\n\n---- a::one stdout ----\nseed 7\n\nthread '<unnamed>' panicked at src/b.rs:1:1:\nno\n\nthread 'a::one' panicked at src/a.rs:3:5:\nassertion failed:\n  left: 1\nstack backtrace:\n   0: a::b\n\n---- b::two stdout ----\nError: \"no\"\n\n\nfailures:\n    a::one\n    b::two\n\ntest result: FAILED. 1 passed; 2 failed\n";
        assert_eq!(
            lines("mill-x/it", log, "exit status: 101"),
            [
                "mill-x/it: a::one: panicked at src/a.rs:3:5: assertion failed: left: 1",
                "mill-x/it: b::two: Error: \"no\"",
            ]
        );
    }

    #[test]
    fn a_program_that_ends_without_naming_a_test_is_one_line() {
        assert_eq!(
            lines("mill-x/it", "running 3 tests\n", "signal: 9 (SIGKILL)"),
            ["mill-x/it: signal: 9 (SIGKILL)"]
        );
    }

    #[test]
    fn a_long_message_is_cut() {
        let log = format!("\n---- a stdout ----\n{}", "é".repeat(1000));
        assert_eq!(
            lines("x", &log, ""),
            [format!("x: a: {}", "é".repeat(LONGEST_MESSAGE))]
        );
    }
}
