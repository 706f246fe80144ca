//! `keepalive`.

use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::value;

pub(super) fn keepalive(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let connections = value::number(&word.bytes).and_then(|number| u32::try_from(number).ok());
    let connections = connections.ok_or_else(|| {
        let message = format!(
            "invalid value \"{}\" in \"keepalive\" directive",
            word.display()
        );
        resolver.emerg(statement, word, message)
    })?;
    if let Some(word) = statement.args().get(1) {
        if word.bytes != b"local" {
            let message = format!("invalid parameter \"{}\"", word.display());
            return Err(resolver.emerg(statement, word, message));
        }
        resolver.upstream.keepalive.local = true;
    }
    resolver.upstream.keepalive.connections = Some(connections);
    Ok(())
}
