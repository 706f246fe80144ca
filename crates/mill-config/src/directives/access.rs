//! `allow`, `deny`, `satisfy`, `limit_except`, `internal`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::settings::group;
use crate::config::{AccessRule, LocationName, MethodSet, Network};
use crate::directive::{
    ALL_LEVELS, ANY_LEVEL, Apply, Arity, Contexts, Directive, LOCATION, many, once,
};
use crate::lexer::Statement;
use crate::resolve::draft::LocationDraft;
use crate::resolve::{Applied, Resolver};
use crate::value;

const LEVELS_AND_METHODS: Contexts = ALL_LEVELS.and(Contexts::LIMIT_EXCEPT);

group! {
    /// Which clients are admitted.
    AccessSettings {
        /// `allow` and `deny`, the first match decides.
        rules: Vec<AccessRule> = Vec::new(),
        /// `satisfy`.
        satisfy: Satisfy = Satisfy::All,
        /// `internal`: only internal redirects are admitted, others get 404.
        internal: bool = false,
    }
}

/// `satisfy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Satisfy {
    /// All access checks must admit.
    All,
    /// One is enough.
    Any,
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "allow",
        LEVELS_AND_METHODS,
        Arity::Exactly(1),
        Apply::With(|r, s| rule(r, s, true)),
        "Lets clients in: an address, a network, unix: or all. The first rule that fits decides.",
    ),
    many(
        "deny",
        LEVELS_AND_METHODS,
        Arity::Exactly(1),
        Apply::With(|r, s| rule(r, s, false)),
        "Keeps clients out: an address, a network, unix: or all. The first rule that fits decides.",
    ),
    once(
        "satisfy",
        ANY_LEVEL,
        Arity::Exactly(1),
        "all",
        Apply::With(|r, s| {
            let choices = [("all", Satisfy::All), ("any", Satisfy::Any)];
            r.level.settings.access.satisfy = Some(r.choice(s, s.arg(1), &choices)?);
            Ok(())
        }),
        "Whether all checks of access must let in, or one is enough.",
    ),
    once(
        "internal",
        LOCATION,
        Arity::Exactly(0),
        "",
        Apply::With(|r, _| {
            r.level.settings.access.internal = Some(true);
            Ok(())
        }),
        "Only internal redirects reach this location; clients get 404.",
    ),
    once(
        "limit_except",
        LOCATION,
        Arity::AtLeast(1),
        "",
        Apply::Block(limit_except),
        "Settings for all methods but those named.",
    ),
];

fn rule(resolver: &mut Resolver<'_>, statement: &Statement, allow: bool) -> Applied {
    let word = statement.arg(1);
    let Some((network, exact)) = network(&word.bytes) else {
        let message = format!("invalid parameter \"{}\"", word.display());
        return Err(resolver.emerg(statement, word, message));
    };
    if !exact {
        let message = format!("low address bits of {} are meaningless", word.display());
        resolver.warn(statement, word, message);
    }
    let rules = resolver.level.settings.access.rules.get_or_insert_default();
    rules.push(AccessRule { allow, network });
    Ok(())
}

/// A network from its text, and whether its host bits are zero.
pub(crate) fn network(text: &[u8]) -> Option<(Network, bool)> {
    match text {
        b"all" => return Some((Network::All, true)),
        b"unix:" => return Some((Network::Unix, true)),
        _ => {}
    }
    let mut halves = text.splitn(2, |&byte| byte == b'/');
    let address: IpAddr = std::str::from_utf8(halves.next()?).ok()?.parse().ok()?;
    let width = if address.is_ipv4() { 32_u8 } else { 128 };
    let bits = match halves.next() {
        None => width,
        // nginx accepts 0 to the full width.
        Some(bits) => u8::try_from(value::number(bits)?)
            .ok()
            .filter(|&bits| bits <= width)?,
    };
    let network = match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    };
    Some((Network::Cidr(network, bits), network == address))
}

fn limit_except(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let mut methods = MethodSet::default();
    for word in statement.args() {
        let bit = MethodSet::bit(&word.bytes.to_ascii_uppercase()).ok_or_else(|| {
            let message = format!("invalid method \"{}\"", word.display());
            resolver.emerg(statement, word, message)
        })?;
        methods.0 |= bit;
    }
    if methods.contains(b"GET") {
        methods.0 |= MethodSet::bit(b"HEAD").unwrap_or(0);
    }
    let inner = LocationDraft {
        name: Some(LocationName::Condition),
        ..Default::default()
    };
    let outer = std::mem::replace(&mut resolver.level, inner);
    let parsed = resolver.block(statement, Contexts::LIMIT_EXCEPT);
    let inner = std::mem::replace(&mut resolver.level, outer);
    resolver.level.limit_except = Some((methods, Box::new(inner)));
    parsed
}
