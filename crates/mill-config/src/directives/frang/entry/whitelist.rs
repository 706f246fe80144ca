//! Clients without limits: by their addresses, and by what netfilter says of their connections.

use super::arguments::{arguments, invalid};
use super::limits;
use crate::config::frang::WhitelistMarks;
use crate::directives::access;
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver, spot};
use crate::value;

/// `whitelist NETWORK…`.
pub(super) fn networks(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    arguments(resolver, statement, 1..=usize::MAX)?;
    for word in statement.args() {
        let Some((network, is_exact)) = access::network(&word.bytes) else {
            let message = format!("invalid parameter \"{}\"", word.display());
            return Err(resolver.emerg(statement, word, message));
        };
        if !is_exact {
            let message = format!("low address bits of {} are meaningless", word.display());
            resolver.warn(statement, word, message);
        }
        limits(resolver).whitelist.push(network);
    }
    Ok(())
}

/// `whitelist_mark MARK…`.
pub(super) fn marks(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    arguments(resolver, statement, 1..=MARKS_MAX)?;
    let marks = statement.args().iter().map(|word| {
        mark(&word.bytes).ok_or_else(|| {
            let mut error = invalid(resolver, statement, word);
            error.help = Some(String::from(
                "it is a mark of netfilter: a number up to 0xffffffff",
            ));
            error
        })
    });
    let marks = marks.collect::<Applied<Vec<u32>>>()?;
    let spot = spot(statement, statement.name());
    limits(resolver).whitelist_marks = Some(WhitelistMarks { marks, spot });
    Ok(())
}

/// In decimal, or with `0x` as nft shows it.
fn mark(text: &[u8]) -> Option<u32> {
    match text.strip_prefix(b"0x") {
        Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => {
            u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        }
        Some(_) => None,
        None => u32::try_from(value::number(text)?).ok(),
    }
}

/// Each connection is compared with all of them.
const MARKS_MAX: usize = 64;
