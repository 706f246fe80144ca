//! The methods that choose a server.

use crate::config::{Balancing, RandomChoice, ResponseTime};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver};

pub(super) fn hash(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let word = statement.arg(1);
    let key = resolver.template(&word.bytes, statement, word)?;
    let consistent = match statement.args().get(1) {
        None => false,
        Some(word) if word.bytes == b"consistent" => true,
        Some(word) => return Err(invalid(resolver, statement, word)),
    };
    choose(resolver, statement, Balancing::Hash { key, consistent });
    Ok(())
}

pub(super) fn ip_hash(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    choose(resolver, statement, Balancing::IpHash);
    Ok(())
}

pub(super) fn least_conn(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    choose(resolver, statement, Balancing::LeastConn);
    Ok(())
}

const TIMES: [(&str, ResponseTime); 2] = [
    ("header", ResponseTime::Header),
    ("last_byte", ResponseTime::LastByte),
];

pub(super) fn least_time(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let inflight = match statement.args().get(1) {
        None => false,
        Some(word) if word.bytes == b"inflight" => true,
        Some(word) => return Err(invalid(resolver, statement, word)),
    };
    let time = resolver.choice(statement, statement.arg(1), &TIMES)?;
    choose(resolver, statement, Balancing::LeastTime { time, inflight });
    Ok(())
}

pub(super) fn random(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let words: Vec<&[u8]> = statement.args().iter().map(|word| &*word.bytes).collect();
    let choice = match words.as_slice() {
        [] => RandomChoice::One,
        [b"two"] | [b"two", b"least_conn"] => RandomChoice::TwoLeastConn,
        [b"two", b"least_time" | b"least_time=header"] => {
            RandomChoice::TwoLeastTime(ResponseTime::Header)
        }
        [b"two", b"least_time=last_byte"] => RandomChoice::TwoLeastTime(ResponseTime::LastByte),
        [b"two", ..] => return Err(invalid(resolver, statement, statement.arg(2))),
        _ => return Err(invalid(resolver, statement, statement.arg(1))),
    };
    choose(resolver, statement, Balancing::Random(choice));
    Ok(())
}

/// The last method holds.
fn choose(resolver: &mut Resolver<'_>, statement: &Statement, method: Balancing) {
    if resolver.upstream.balancing.replace(method).is_some() {
        resolver.warn(
            statement,
            statement.name(),
            "load balancing method redefined",
        );
    }
}

fn invalid(resolver: &Resolver<'_>, statement: &Statement, word: &Word) -> Box<Diagnostic> {
    let message = format!("invalid parameter \"{}\"", word.display());
    resolver.emerg(statement, word, message)
}
