//! `queue`.

use std::time::Duration;

use crate::config::UpstreamQueue;
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::value;

/// Longest wait where nothing is written.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn queue(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let number = value::number(&word.bytes).and_then(|number| u32::try_from(number).ok());
    let number = number.filter(|&number| number > 0).ok_or_else(|| {
        let message = format!(
            "invalid value \"{}\" in \"queue\" directive",
            word.display()
        );
        resolver.emerg(statement, word, message)
    })?;
    let timeout = match statement.args().get(1) {
        None => DEFAULT_TIMEOUT,
        Some(word) => {
            let time = word.bytes.strip_prefix(b"timeout=");
            time.and_then(value::milliseconds).ok_or_else(|| {
                let message = format!("invalid parameter \"{}\"", word.display());
                resolver.emerg(statement, word, message)
            })?
        }
    };
    resolver.upstream.queue = Some(UpstreamQueue { number, timeout });
    Ok(())
}
