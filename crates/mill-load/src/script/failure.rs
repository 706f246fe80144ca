//! Errors of a script, in one line: file, line, message.

use crate::request::ScriptError;
use mlua::Error;

/// Turns an error of the Lua binding into a message. `file` is named if the error names no place itself.
pub(super) fn describe(error: &Error, file: &str) -> ScriptError {
    let (message, place) = message(error);
    let message = first_line(&message);
    let placed = is_placed(message) || message.starts_with(file);
    ScriptError(match place {
        _ if placed => String::from(message),
        Some(place) => format!("{place} {message}"),
        None => format!("{file}: {message}"),
    })
}

/// The message, and the calling line of the script if it was our own function that failed.
fn message(error: &Error) -> (String, Option<String>) {
    match error {
        Error::CallbackError { traceback, cause } => {
            let (message, inner) = message(cause);
            (message, inner.or_else(|| calling_line(traceback)))
        }
        Error::WithContext { context, cause } => {
            let (message, place) = message(cause);
            (format!("{context}: {message}"), place)
        }
        Error::BadArgument { cause, .. } => {
            let (message, place) = message(cause);
            (format!("bad argument: {message}"), place)
        }
        Error::FromLuaConversionError { from, to, .. } => {
            let wanted = match to.as_str() {
                "f64" | "u64" => "number",
                other => other,
            };
            (format!("{wanted} expected, got {from}"), None)
        }
        Error::RuntimeError(message) => {
            of_prelude(message).unwrap_or_else(|| (message.clone(), None))
        }
        Error::SyntaxError { message, .. } => (message.clone(), None),
        other => (other.to_string(), None),
    }
}

/// A message of our prelude, and the line of the script that called it with a wrong argument.
fn of_prelude(message: &str) -> Option<(String, Option<String>)> {
    let prelude = place(message).filter(|place| place.starts_with(PRELUDE))?;
    let rest = message.get(prelude.len()..)?.trim_start();
    Some((String::from(rest), calling_line(rest)))
}

/// A message has one line; a stack trace may follow.
fn first_line(message: &str) -> &str {
    let end = message.find("\nstack traceback:");
    message
        .get(..end.unwrap_or(message.len()))
        .unwrap_or(message)
        .trim_end()
}

/// The first line of a trace that is a script's, as `file:line:`.
fn calling_line(traceback: &str) -> Option<String> {
    let places = traceback.lines().map(str::trim_start).filter_map(place);
    let mut scripts = places.filter(|place| !INNER.iter().any(|inner| place.starts_with(inner)));
    scripts.next().map(String::from)
}

fn is_placed(message: &str) -> bool {
    place(message).is_some()
}

/// `file:line:` at the beginning of a text.
fn place(text: &str) -> Option<&str> {
    let mut end = 0;
    for part in text.split_inclusive(':') {
        let is_number = part
            .strip_suffix(':')
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
        let before = end;
        end += part.len();
        if is_number && before > 1 {
            return text.get(..end);
        }
        if part.contains(['\n', '\'']) {
            return None;
        }
    }
    None
}

/// The prefixes of places outside scripts: our prelude's, and those of the binding's own chunks.
const INNER: [&str; 2] = [PRELUDE, "__mlua_"];

/// The prefix of places in the prelude, the name of its chunk.
const PRELUDE: &str = "wrk:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_file_and_a_line() {
        for (text, expected) in [
            ("a.lua:3: oops", Some("a.lua:3:")),
            ("/b/c d.lua:12: in function 'e'", Some("/b/c d.lua:12:")),
            ("[C]: in function 'error'", None),
            ("oops", None),
            ("127:1: x", Some("127:1:")),
            ("", None),
        ] {
            assert_eq!(place(text), expected, "{text}");
        }
    }

    #[test]
    fn a_message_has_one_place_and_no_trace() {
        let check = |error: Error, expected: &str| {
            assert_eq!(describe(&error, "s.lua").0, expected);
        };
        check(
            Error::RuntimeError("s.lua:3: oops\nstack traceback:\n\t[C]: in ?".into()),
            "s.lua:3: oops",
        );
        check(Error::RuntimeError("oops".into()), "s.lua: oops");
        check(
            Error::RuntimeError(
                "wrk:9: no\nstack traceback:\n\twrk:9: in x\n\ts.lua:4: in y".into(),
            ),
            "s.lua:4: no",
        );
        let traceback =
            "stack traceback:\n\t[C]: in function 'set'\n\ts.lua:7: in function <s.lua:6>";
        check(
            Error::CallbackError {
                traceback: traceback.into(),
                cause: std::sync::Arc::new(Error::RuntimeError("no".into())),
            },
            "s.lua:7: no",
        );
    }
}
