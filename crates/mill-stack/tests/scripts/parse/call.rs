//! A call and its result: `read(4, 1000) = 500`.

use crate::script::Call;

pub(super) fn parse(text: &str) -> Result<Call, String> {
    let shape = || "neither a segment (< or >) nor a call: name(arguments) = result".to_owned();
    let (call, result) = text.rsplit_once('=').ok_or_else(shape)?;
    let (name, arguments) = call.trim().split_once('(').ok_or_else(shape)?;
    let arguments = arguments.strip_suffix(')').ok_or_else(shape)?;
    let arguments: Vec<String> = arguments
        .split(',')
        .map(|argument| argument.trim().to_owned())
        .filter(|argument| !argument.is_empty())
        .collect();
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) || result.trim().is_empty() {
        return Err(shape());
    }
    Ok(Call {
        name: name.to_owned(),
        arguments,
        result: result.trim().to_owned(),
    })
}
