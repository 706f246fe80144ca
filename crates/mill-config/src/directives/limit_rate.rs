//! How fast an answer is sent: `limit_rate`.

use crate::config::Template;
use crate::config::settings::group;
use crate::directive::{ANY_LEVEL_AND_IF, Apply, Arity, Directive, once};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver, templates};
use crate::value;

group! {
    /// How fast an answer is sent.
    LimitRateSettings {
        /// `limit_rate` in bytes per second; 0 is no limit.
        rate: Amount = Amount::Fixed(0),
        /// `limit_rate_after` in bytes.
        after: Amount = Amount::Fixed(0),
    }
}

/// A number, or text that is evaluated per request and then read as a size.
#[derive(Debug, Clone)]
pub enum Amount {
    /// Known at start.
    Fixed(u64),
    /// Evaluate, then `value::size`; nothing or an error is 0.
    Evaluated(Template),
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "limit_rate",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        "0",
        Apply::With(|r, s| {
            r.level.settings.limit_rate.rate = Some(amount(r, s)?);
            Ok(())
        }),
        "Bytes per second of one answer. 0 is no limit.",
    ),
    once(
        "limit_rate_after",
        ANY_LEVEL_AND_IF,
        Arity::Exactly(1),
        "0",
        Apply::With(|r, s| {
            r.level.settings.limit_rate.after = Some(amount(r, s)?);
            Ok(())
        }),
        "Bytes of an answer before limit_rate holds.",
    ),
];

fn amount(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<Amount> {
    let word = statement.arg(1);
    if templates::has_variables(&word.bytes) {
        return Ok(Amount::Evaluated(resolver.template(
            &word.bytes,
            statement,
            word,
        )?));
    }
    Ok(Amount::Fixed(resolver.read(statement, value::size)?))
}
