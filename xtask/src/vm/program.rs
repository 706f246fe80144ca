//! The program of the tests, with the binary that it starts.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds both; returns the path of the first.
pub(super) fn build(root: &Path) -> io::Result<PathBuf> {
    let words = "test --quiet --locked --package millstream --test cards --no-run --message-format=json-render-diagnostics";
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(words.split(' '))
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.lines().filter_map(executable).next_back();
    match (output.status.success(), found) {
        (true, Some(path)) => Ok(PathBuf::from(path)),
        _ => Err(io::Error::other("the tests do not build")),
    }
}

/// The path in a message of cargo about the tests; a binary that is no test has none.
fn executable(message: &str) -> Option<&str> {
    let is_tests = message.contains(r#""name":"cards""#);
    let (_, rest) = message.split_once(r#""executable":""#)?;
    is_tests.then(|| rest.split_once('"').map(|(path, _)| path))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_the_messages() {
        let check = |message: &str, expected| assert_eq!(executable(message), expected);
        check(
            r#"{"target":{"name":"cards"},"executable":"/t/cards-1","fresh":true}"#,
            Some("/t/cards-1"),
        );
        check(
            r#"{"target":{"name":"cards"},"executable":null,"fresh":true}"#,
            None,
        );
        check(
            r#"{"target":{"name":"millstream"},"executable":"/t/millstream"}"#,
            None,
        );
    }
}
