//! The forms that arguments in a `frang` block have.

use crate::diagnostic::Diagnostic;
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver};
use crate::value;

pub(super) fn arguments(
    resolver: &Resolver<'_>,
    statement: &Statement,
    range: std::ops::RangeInclusive<usize>,
) -> Applied {
    if range.contains(&statement.args().len()) {
        return Ok(());
    }
    let name = statement.name();
    let message = format!(
        "invalid number of arguments in \"{}\" directive",
        name.display()
    );
    Err(resolver.emerg(statement, name, message))
}

pub(super) fn invalid(
    resolver: &Resolver<'_>,
    statement: &Statement,
    word: &Word,
) -> Box<Diagnostic> {
    resolver.refused_at(statement, word, "invalid value")
}

/// A number up to C's INT_MAX, as Tempesta FW takes it; 0 is no limit.
pub(super) fn number(resolver: &Resolver<'_>, statement: &Statement) -> Applied<u32> {
    arguments(resolver, statement, 1..=1)?;
    small(resolver, statement, statement.arg(1), NUMBER_MAX)
}

pub(super) fn small(
    resolver: &Resolver<'_>,
    statement: &Statement,
    word: &Word,
    most: u64,
) -> Applied<u32> {
    let number = value::number(&word.bytes).filter(|&number| number <= most);
    let number = number.and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| invalid(resolver, statement, word))
}

/// Size of a table: at least one place.
pub(super) fn places(resolver: &Resolver<'_>, statement: &Statement) -> Applied<u32> {
    let places = number(resolver, statement)?;
    if !(1..=PLACES_MAX).contains(&places) {
        let mut error = invalid(resolver, statement, statement.arg(1));
        error.help = Some(format!("it is from 1 to {PLACES_MAX}"));
        return Err(error);
    }
    Ok(places)
}

/// A rate, and its time frame in seconds if that is not one.
pub(super) fn rate(resolver: &Resolver<'_>, statement: &Statement) -> Applied<(u32, u16)> {
    arguments(resolver, statement, 1..=2)?;
    let rate = small(resolver, statement, statement.arg(1), u64::from(u32::MAX))?;
    let frame_s = match statement.args().get(1) {
        None => 1,
        Some(word) => seconds(resolver, statement, word)?,
    };
    Ok((rate, frame_s))
}

/// A time frame: whole seconds.
pub(super) fn seconds(resolver: &Resolver<'_>, statement: &Statement, word: &Word) -> Applied<u16> {
    let time = value::seconds(&word.bytes).map(|time| time.as_secs());
    let time = time.and_then(|time| u16::try_from(time).ok());
    time.filter(|&time| time > 0)
        .ok_or_else(|| invalid(resolver, statement, word))
}

/// `on` or `off`, also as Tempesta FW writes it.
pub(super) fn switch(resolver: &Resolver<'_>, statement: &Statement) -> Applied<bool> {
    arguments(resolver, statement, 1..=1)?;
    let choices = [
        ("on", true),
        ("off", false),
        ("true", true),
        ("false", false),
    ];
    resolver.choice(statement, statement.arg(1), &choices)
}

/// C's INT_MAX: the largest number that Tempesta FW takes for most limits.
const NUMBER_MAX: u64 = i32::MAX as u64;

/// The largest tables: a client takes about 300 bytes.
const PLACES_MAX: u32 = 16 << 20;
