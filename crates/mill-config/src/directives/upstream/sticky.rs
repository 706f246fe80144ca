//! `sticky`.

use std::time::Duration;

use super::zone::{Purpose, ZONE_BYTES_MIN, declare};
use crate::config::Variable;
use crate::config::sticky::{Sticky, StickyCookie, StickyExpires, StickyLearn};
use crate::diagnostic::Diagnostic;
use crate::directives::challenge::is_attribute;
use crate::lexer::{Statement, Word};
use crate::resolve::{Applied, Resolver};
use crate::{Text, value};

pub(super) fn sticky(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    if resolver.upstream.sticky.is_some() {
        return Err(resolver.refused(statement, "is duplicate"));
    }
    let kind = statement.arg(1);
    let sticky = match kind.bytes.as_slice() {
        b"cookie" => Sticky::Cookie(cookie(resolver, statement)?),
        b"route" => Sticky::Route(route(resolver, statement)?),
        b"learn" => Sticky::Learn(learn(resolver, statement)?),
        _ => return Err(unknown(resolver, statement, kind)),
    };
    resolver.upstream.sticky = Some(sticky);
    Ok(())
}

fn cookie(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<StickyCookie> {
    let name = statement.arg(2);
    if name.bytes.is_empty() {
        return Err(resolver.refused(statement, "empty cookie name"));
    }
    let mut cookie = StickyCookie {
        name: Text::from(name.bytes.as_slice()),
        domain: None,
        path: None,
        expires: None,
        httponly: false,
        secure: false,
        samesite: None,
        attributes: Text::default(),
    };
    for word in statement.args().iter().skip(2) {
        cookie_parameter(resolver, statement, word, &mut cookie)?;
    }
    Ok(cookie)
}

fn cookie_parameter(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    word: &Word,
    cookie: &mut StickyCookie,
) -> Applied {
    let (name, text) = parameter(word);
    let shown = String::from_utf8_lossy(name.strip_suffix(b"=").unwrap_or(name)).into_owned();
    let is_duplicate = match name {
        b"domain=" => cookie.domain.is_some(),
        b"path=" => cookie.path.is_some(),
        b"expires=" => cookie.expires.is_some(),
        b"httponly" => std::mem::replace(&mut cookie.httponly, true),
        b"secure" => std::mem::replace(&mut cookie.secure, true),
        b"samesite=" => cookie.samesite.is_some(),
        b"attribute=" => false,
        _ => return Err(unknown(resolver, statement, word)),
    };
    let refused = |what: String| Err(resolver.refused_at(statement, word, &what));
    if is_duplicate {
        return refused(format!("parameter \"{shown}\" is duplicate"));
    }
    if text.is_empty() && matches!(name, b"domain=" | b"path=") {
        return refused(format!("no value for \"{shown}\""));
    }
    match name {
        b"domain=" => cookie.domain = Some(resolver.template(text, statement, word)?),
        b"path=" => cookie.path = Some(Text::from(text)),
        b"expires=" => {
            let time = value::seconds(text).map(StickyExpires::After);
            cookie.expires = time.or((text == b"max").then_some(StickyExpires::Max));
            if cookie.expires.is_none() {
                return refused(String::from("invalid \"expires\" parameter value"));
            }
        }
        b"samesite=" => {
            let value = resolver.template(text, statement, word)?;
            let is_known = |text: &[u8]| {
                let known: [&[u8]; 3] = [b"strict", b"lax", b"none"];
                known.iter().any(|known| known.eq_ignore_ascii_case(text))
            };
            if value.as_literal().is_some_and(|text| !is_known(text)) {
                let what = "invalid \"samesite\" parameter value";
                return Err(resolver.refused_at(statement, word, what));
            }
            cookie.samesite = Some(value);
        }
        b"attribute=" if is_attribute(text) => {
            let known = cookie.attributes.as_bytes();
            cookie.attributes = Text::from([known, b"; ", text].concat());
        }
        b"attribute=" => {
            return refused(String::from("invalid \"attribute\" parameter value"));
        }
        _ => {}
    }
    Ok(())
}

fn route(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<Vec<Variable>> {
    let words = statement.args().iter().skip(1);
    let variables = words.map(|word| match word.bytes.strip_prefix(b"$") {
        Some(name) => Ok(resolver.variable(name, statement, word)),
        None => {
            let message = format!("invalid variable name \"{}\"", word.display());
            Err(resolver.emerg(statement, word, message))
        }
    });
    variables.collect()
}

/// How long a session is remembered where nothing is written.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

fn learn(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<StickyLearn> {
    let mut zone = None;
    let mut timeout = None;
    let (mut create, mut lookup) = (Vec::new(), Vec::new());
    let mut after_head = false;
    for word in statement.args().iter().skip(1) {
        let refused = |what: &str| resolver.refused_at(statement, word, what);
        match parameter(word) {
            (b"zone=", _) if zone.is_some() => return Err(refused("duplicate zone")),
            (b"zone=", text) => zone = Some(learn_zone(text).map_err(refused)?),
            (b"timeout=", _) if timeout.is_some() => return Err(refused("duplicate timeout")),
            (b"timeout=", text) => {
                let time = value::milliseconds(text).filter(|time| !time.is_zero());
                timeout = Some(time.ok_or_else(|| refused("invalid timeout"))?);
            }
            (b"create=", [b'$', name @ ..]) => {
                create.push(resolver.variable(name, statement, word));
            }
            (b"lookup=", [b'$', name @ ..]) => {
                lookup.push(resolver.variable(name, statement, word));
            }
            (b"create=", _) => {
                return Err(refused("missing variable in the \"create\" parameter"));
            }
            (b"lookup=", _) => {
                return Err(refused("missing variable in the \"lookup\" parameter"));
            }
            (b"header", _) => after_head = true,
            (b"sync", _) => resolver.warn(statement, word, SYNC_IS_LOCAL),
            _ => return Err(unknown(resolver, statement, word)),
        }
    }
    let missing =
        |what: &str| resolver.refused(statement, &format!("\"{what}\" parameter is not specified"));
    if lookup.is_empty() {
        return Err(missing("lookup"));
    }
    if create.is_empty() {
        return Err(missing("create"));
    }
    let (zone, zone_bytes) = zone.ok_or_else(|| missing("zone"))?;
    let name = statement.name();
    let size = Some(zone_bytes);
    if !declare(resolver, statement, name, &zone, size, Purpose::Sessions)? {
        let shown = zone.display();
        let message = format!("sticky zone \"{shown}\" is already used in another upstream");
        return Err(resolver.emerg(statement, name, message));
    }
    Ok(StickyLearn {
        create,
        lookup,
        zone,
        zone_bytes,
        timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
        after_head,
    })
}

/// `NAME:SIZE`.
fn learn_zone(text: &[u8]) -> Result<(Text, u64), &'static str> {
    let at = text.iter().position(|&byte| byte == b':');
    let (name, size) = at
        .and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?)))
        .ok_or("zone size is not specified")?;
    if name.is_empty() {
        return Err("zone name is not specified");
    }
    let size = value::size(size).ok_or("invalid zone size")?;
    if size < ZONE_BYTES_MIN {
        return Err("zone is too small");
    }
    Ok((Text::from(name), size))
}

/// The name of a parameter with its `=`, and its value.
fn parameter(word: &Word) -> (&[u8], &[u8]) {
    match word.bytes.iter().position(|&byte| byte == b'=') {
        Some(at) => word.bytes.split_at(at + 1),
        None => (word.bytes.as_slice(), &[]),
    }
}

/// What `sync` asks for beyond that needs `zone_sync` among several machines.
const SYNC_IS_LOCAL: &str = "\"sync\" has no effect: all workers share the sessions, and other servers are not told of them";

fn unknown(resolver: &Resolver<'_>, statement: &Statement, word: &Word) -> Box<Diagnostic> {
    let message = format!("unknown parameter \"{}\"", word.display());
    resolver.emerg(statement, word, message)
}
