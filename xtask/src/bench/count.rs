//! Numbers on the command line.

/// The largest number of seconds and rounds: more is a mistake.
const COUNT_MAX: u32 = 3600;

/// The number given to option `name`.
pub(super) fn count(name: &str, text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=COUNT_MAX) => Ok(number),
        _ => Err(format!(
            "{name} wants a number from 1 to {COUNT_MAX}, not \"{text}\""
        )),
    }
}
