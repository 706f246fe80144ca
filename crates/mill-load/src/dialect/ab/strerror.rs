//! Errors of the system as C programs word them.

use std::io;

/// The system's text of an error, without Rust's suffix.
pub(super) fn text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error ") {
        Some((words, _)) => String::from(words),
        None => text,
    }
}

/// The system's text of an error number.
pub(super) fn of_code(code: i32) -> String {
    text(&io::Error::from_raw_os_error(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_worded_as_the_system_words_them() {
        assert_eq!(of_code(111), "Connection refused");
        assert_eq!(of_code(104), "Connection reset by peer");
        assert_eq!(text(&io::Error::other("odd")), "odd");
    }
}
