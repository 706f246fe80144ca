//! What stands in a `frang` block: the names of Tempesta FW's `frang_limits`, and a few of our own.

/// The forms of arguments.
mod arguments;

/// Clients without limits.
mod whitelist;

use std::sync::Arc;

use crate::Text;
use crate::config::LogLevel;
use crate::config::byte_set::{AllowedBytes, BytePart, ByteSet};
use crate::config::frang::{
    BlockTime, FingerprintLimit, FrangAction, FrangLimits, FrangMethods, KNOWN_METHODS, StatusLimit,
};
use crate::directive::Contexts;
use crate::directives::frang;
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::{suggest, value};
use arguments::{arguments, invalid, number, places, rate, seconds, small, switch};

/// A name, where it may stand, and what it does.
struct Entry {
    name: &'static str,
    /// It says something of clients, so it stands in `frang` of `http` alone.
    is_of_clients: bool,
    apply: fn(&mut Resolver<'_>, &Statement) -> Applied,
}

/// One of the limits of clients.
const fn client(name: &'static str, apply: fn(&mut Resolver<'_>, &Statement) -> Applied) -> Entry {
    Entry {
        name,
        is_of_clients: true,
        apply,
    }
}

/// One of the checks of requests.
const fn request(name: &'static str, apply: fn(&mut Resolver<'_>, &Statement) -> Applied) -> Entry {
    Entry {
        name,
        is_of_clients: false,
        apply,
    }
}

const ENTRIES: &[Entry] = &[
    client("ip_block", ip_block),
    client("request_rate", |r, s| {
        let (rate, frame_s) = rate(r, s)?;
        let requests = &mut limits(r).requests;
        (requests.rate, requests.frame_s) = (rate, frame_s);
        Ok(())
    }),
    client("request_burst", |r, s| {
        limits(r).requests.burst = number(r, s)?;
        Ok(())
    }),
    client("tcp_connection_rate", |r, s| {
        let (rate, frame_s) = rate(r, s)?;
        let connections = &mut limits(r).connections;
        (connections.rate, connections.frame_s) = (rate, frame_s);
        Ok(())
    }),
    client("tcp_connection_burst", |r, s| {
        limits(r).connections.burst = number(r, s)?;
        Ok(())
    }),
    client("concurrent_tcp_connections", |r, s| {
        limits(r).connections_max = number(r, s)?;
        Ok(())
    }),
    client("tls_connection_rate", |r, s| {
        limits(r).handshakes.rate = number(r, s)?;
        Ok(())
    }),
    client("tls_connection_burst", |r, s| {
        limits(r).handshakes.burst = number(r, s)?;
        Ok(())
    }),
    client("tls_incomplete_connection_rate", |r, s| {
        limits(r).incomplete_handshakes = number(r, s)?;
        Ok(())
    }),
    client("http_hdr_len", |r, s| {
        limits(r).field_bytes = number(r, s)?;
        Ok(())
    }),
    client("http_header_cnt", |r, s| {
        limits(r).fields = number(r, s)?;
        Ok(())
    }),
    client("http_header_chunk_cnt", |r, s| {
        limits(r).head_pieces = number(r, s)?;
        Ok(())
    }),
    client("http_body_chunk_cnt", |r, s| {
        limits(r).content_pieces = number(r, s)?;
        Ok(())
    }),
    client("action", |r, s| {
        let actions = [("reply", FrangAction::Reply), ("drop", FrangAction::Drop)];
        arguments(r, s, 1..=1)?;
        limits(r).action = r.choice(s, s.arg(1), &actions)?;
        Ok(())
    }),
    client("error_action", |r, s| {
        let actions = [("reply", FrangAction::Reply), ("drop", FrangAction::Drop)];
        arguments(r, s, 1..=1)?;
        limits(r).error_action = r.choice(s, s.arg(1), &actions)?;
        Ok(())
    }),
    client("http_uri_brange", |r, s| allowed(r, s, BytePart::Uri)),
    client("http_token_brange", |r, s| allowed(r, s, BytePart::Token)),
    client("http_qetoken_brange", |r, s| {
        allowed(r, s, BytePart::QuotedToken)
    }),
    client("http_nctl_brange", |r, s| {
        allowed(r, s, BytePart::NoControl)
    }),
    client("http_ctext_vchar_brange", |r, s| {
        allowed(r, s, BytePart::Text)
    }),
    client("http_xff_brange", |r, s| {
        allowed(r, s, BytePart::ForwardedFor)
    }),
    client("http_cookie_brange", |r, s| allowed(r, s, BytePart::Cookie)),
    client("http_etag_brange", |r, s| {
        allowed(r, s, BytePart::EntityTag)
    }),
    client("log_level", |r, s| {
        let levels = [
            ("info", LogLevel::Info),
            ("notice", LogLevel::Notice),
            ("warn", LogLevel::Warn),
            ("error", LogLevel::Error),
        ];
        arguments(r, s, 1..=1)?;
        limits(r).log_level = r.choice(s, s.arg(1), &levels)?;
        Ok(())
    }),
    client("clients", |r, s| {
        limits(r).clients = places(r, s)?;
        Ok(())
    }),
    client("blocks", |r, s| {
        limits(r).blocks = places(r, s)?;
        Ok(())
    }),
    client("whitelist", whitelist::networks),
    client("whitelist_mark", whitelist::marks),
    client("tls_fingerprint", |r, s| {
        let limit = fingerprint(r, s, |limits| &limits.tls_fingerprints)?;
        limits(r).tls_fingerprints.push(limit);
        Ok(())
    }),
    client("http_fingerprint", |r, s| {
        let limit = fingerprint(r, s, |limits| &limits.http_fingerprints)?;
        limits(r).http_fingerprints.push(limit);
        Ok(())
    }),
    request("http_methods", http_methods),
    request("http_uri_len", |r, s| {
        settings(r).uri_bytes = Some(u64::from(number(r, s)?));
        Ok(())
    }),
    request("http_body_len", |r, s| {
        arguments(r, s, 1..=1)?;
        let bytes = r.read(s, value::offset)?;
        settings(r).content_bytes = Some(bytes);
        Ok(())
    }),
    request("http_strict_host_checking", |r, s| {
        settings(r).strict_host = Some(switch(r, s)?);
        Ok(())
    }),
    request("http_ct_required", |r, s| {
        settings(r).needs_content_type = Some(switch(r, s)?);
        Ok(())
    }),
    request("http_ct_vals", |r, s| {
        arguments(r, s, 1..=usize::MAX)?;
        let values = match s.args() {
            [word] if word.bytes == b"all" => &[],
            values => values,
        };
        let values = values.iter().map(|word| Text::from(&*word.bytes));
        settings(r).content_types = Some(values.collect());
        Ok(())
    }),
    request("http_allow_empty_body_content_type", |r, s| {
        settings(r).allows_type_without_content = Some(switch(r, s)?);
        Ok(())
    }),
    request("http_post_validate", |r, s| {
        settings(r).validates_post = Some(switch(r, s)?);
        Ok(())
    }),
    request("http_method_override_allowed", |r, s| {
        settings(r).allows_method_override = Some(switch(r, s)?);
        Ok(())
    }),
    request("http_trailer_split_allowed", |r, s| {
        // Trailers of requests are read and dropped: no field of theirs reaches anything that has those of the head.
        switch(r, s).map(|_| ())
    }),
    request("http_resp_code_block", status_limit),
];

/// One statement of the block.
pub(super) fn apply(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let name = statement.name();
    let known = ENTRIES
        .iter()
        .find(|entry| entry.name.as_bytes() == name.bytes);
    let Some(entry) = known else {
        let message = format!("unknown directive \"{}\"", name.display());
        let mut error = resolver.emerg(statement, name, message);
        let nearest = suggest::nearest(&name.bytes, ENTRIES.iter().map(|entry| entry.name));
        error.help = nearest.map(|nearest| format!("did you mean \"{nearest}\"?"));
        return Err(error);
    };
    if entry.is_of_clients && resolver.context != Contexts::HTTP {
        let mut error = resolver.refused(statement, "is not allowed here");
        error.help = Some(String::from(
            "it is about clients, not about single requests: it may stand in \"frang\" of http",
        ));
        return Err(error);
    }
    let repeats = matches!(entry.name, "tls_fingerprint" | "http_fingerprint");
    if !repeats && !resolver.level.note_use(entry.name) {
        return Err(resolver.refused(statement, "is duplicate"));
    }
    (entry.apply)(resolver, statement)
}

/// The limits of clients; the block stands in `http`.
fn limits<'r>(resolver: &'r mut Resolver<'_>) -> &'r mut FrangLimits {
    &mut resolver.http.get_or_insert_default().frang
}

/// The checks of requests of the level that has the block.
fn settings<'r>(resolver: &'r mut Resolver<'_>) -> &'r mut frang::Draft {
    &mut resolver.level.settings.frang
}

/// Bytes and ranges of them that a part of a head may have: `0x2f 97-122`.
fn allowed(resolver: &mut Resolver<'_>, statement: &Statement, part: BytePart) -> Applied {
    arguments(resolver, statement, 1..=usize::MAX)?;
    let mut set = ByteSet::default();
    for word in statement.args() {
        let (first, last) =
            byte_range(&word.bytes).ok_or_else(|| invalid(resolver, statement, word))?;
        let mut never = part.never().iter();
        if let Some(byte) = never.find(|byte| (first..=last).contains(*byte)) {
            let mut error = invalid(resolver, statement, word);
            let name = part.name();
            error.help = Some(format!("{name} never has the byte 0x{byte:02x}"));
            return Err(error);
        }
        set.add(first, last);
    }
    limits(resolver).bytes.push(AllowedBytes { part, set });
    Ok(())
}

/// A byte, or the first and the last of a range, in decimal or with `0x`.
fn byte_range(text: &[u8]) -> Option<(u8, u8)> {
    let byte = |text: &[u8]| {
        let text = std::str::from_utf8(text).ok()?;
        match text.strip_prefix("0x") {
            Some(digits) if !digits.starts_with('+') => u8::from_str_radix(digits, 16).ok(),
            _ => u8::try_from(value::number(text.as_bytes())?).ok(),
        }
    };
    let Some(dash) = text.iter().position(|&byte| byte == b'-') else {
        return byte(text).map(|only| (only, only));
    };
    let range = byte(text.get(..dash)?).zip(byte(text.get(dash + 1..)?));
    range.filter(|(first, last)| first < last)
}

fn ip_block(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    arguments(resolver, statement, 1..=1)?;
    let word = statement.arg(1);
    let block = match word.bytes.to_ascii_lowercase().as_slice() {
        b"off" => None,
        b"on" => Some(BlockTime::Unlimited),
        text => {
            let time = value::seconds(text).map(|time| time.as_secs());
            let time = time.and_then(|time| u32::try_from(time).ok());
            let Some(time) = time else {
                let mut error = invalid(resolver, statement, word);
                error.help = Some(String::from(
                    "it is \"off\", a time such as 10m, or \"on\", which has no end",
                ));
                return Err(error);
            };
            Some(match time {
                0 => BlockTime::Unlimited,
                time => BlockTime::Seconds(time),
            })
        }
    };
    limits(resolver).ip_block = block;
    Ok(())
}

/// `tls_fingerprint HASH CONNECTIONS REQUESTS`, each hash once.
fn fingerprint(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    known: fn(&FrangLimits) -> &Vec<FingerprintLimit>,
) -> Applied<FingerprintLimit> {
    arguments(resolver, statement, 3..=3)?;
    let word = statement.arg(1);
    let text = std::str::from_utf8(&word.bytes).unwrap_or_default();
    let is_hash =
        (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hash = u64::from_str_radix(text, 16).ok().filter(|_| is_hash);
    let Some(fingerprint) = hash else {
        let mut error = invalid(resolver, statement, word);
        error.help = Some(String::from(
            "it has up to 16 hexadecimal digits, as the variable shows it",
        ));
        return Err(error);
    };
    if known(limits(resolver))
        .iter()
        .any(|known| known.fingerprint == fingerprint)
    {
        let message = format!("duplicate fingerprint \"{text}\"");
        return Err(resolver.emerg(statement, word, message));
    }
    let rate = |number: usize| {
        let word = statement.arg(number);
        let rate = small(resolver, statement, word, u64::from(u16::MAX))?;
        u16::try_from(rate).map_err(|_| invalid(resolver, statement, word))
    };
    Ok(FingerprintLimit {
        fingerprint,
        connections: rate(2)?,
        requests: rate(3)?,
    })
}

fn http_methods(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    arguments(resolver, statement, 1..=usize::MAX)?;
    let mut methods = FrangMethods::default();
    if let [word] = statement.args()
        && word.bytes.eq_ignore_ascii_case(b"all")
    {
        settings(resolver).methods = Some(None);
        return Ok(());
    }
    for word in statement.args() {
        let name = word.bytes.to_ascii_uppercase();
        if name == b"UNKNOWN" {
            methods.unknown = true;
        } else if KNOWN_METHODS.iter().any(|known| known.as_bytes() == name) {
            methods.named.push(Text::from(&*name));
        } else {
            let message = format!("invalid method \"{}\"", word.display());
            let mut error = resolver.emerg(statement, word, message);
            let known = KNOWN_METHODS.map(str::to_ascii_lowercase).join(", ");
            error.help = Some(format!("one of: {known}, unknown; or \"all\" alone"));
            return Err(error);
        }
    }
    settings(resolver).methods = Some(Some(methods));
    Ok(())
}

/// `http_resp_code_block STATUS… COUNT SECONDS`.
fn status_limit(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    if let [word] = statement.args()
        && word.bytes == b"off"
    {
        settings(resolver).statuses = Some(None);
        return Ok(());
    }
    arguments(resolver, statement, 3..=usize::MAX)?;
    let [codes @ .., count, time] = statement.args() else {
        return Ok(());
    };
    let most = small(resolver, statement, count, u64::from(u16::MAX))?;
    let most = u16::try_from(most).ok().filter(|&most| most > 0);
    let most = most.ok_or_else(|| invalid(resolver, statement, count))?;
    let frame_s = seconds(resolver, statement, time)?;
    let statuses = codes.iter().map(|word| {
        let range = status_range(&word.bytes);
        range.ok_or_else(|| invalid(resolver, statement, word))
    });
    let statuses = statuses.collect::<Applied<Vec<_>>>()?;
    let http = resolver.http.get_or_insert_default();
    let index = http.status_limits;
    http.status_limits += 1;
    settings(resolver).statuses = Some(Some(Arc::new(StatusLimit {
        statuses,
        most,
        frame_s,
        index,
    })));
    Ok(())
}

/// `403`, or `4*`.
fn status_range(text: &[u8]) -> Option<(u16, u16)> {
    if let [class @ b'1'..=b'5', b'*'] = *text {
        let first = u16::from(class - b'0') * 100;
        return Some((first, first + 99));
    }
    let status = value::number(text).filter(|status| (100..=599).contains(status))?;
    let status = u16::try_from(status).ok()?;
    Some((status, status))
}
