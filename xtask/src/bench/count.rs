//! Numbers on the command line.

/// The most that is taken for seconds and rounds: nobody waits longer on purpose.
const COUNT_MAX: u32 = 3600;

/// The number that option `name` was given.
pub(super) fn count(name: &str, text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=COUNT_MAX) => Ok(number),
        _ => Err(format!(
            "{name} wants a number from 1 to {COUNT_MAX}, not \"{text}\""
        )),
    }
}
