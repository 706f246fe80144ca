//! Values: numbers with their bases, ranges, sizes, switches, addresses, statuses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::lexer::Term;
use crate::resolve::Applied;

/// The port of an address without one.
const PORT_DEFAULT: u16 = 80;

/// A number within bounds, both included.
pub(super) fn number(term: &Term, least: u64, most: u64) -> Applied<u64> {
    let Some(value) = parse_number(&term.bytes) else {
        return Err(term.error(format!("invalid number \"{}\"", term.display())));
    };
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    let message = format!("value {value} is out of range, {least} to {most}");
    Err(term.error(message))
}

/// A number as Tempesta FW reads it: decimal also with zeros before it, `0x…`, or `0b…`.
pub(super) fn parse_number(text: &[u8]) -> Option<u64> {
    let (digits, base) = match text {
        [b'0', b'x' | b'X', digits @ ..] => (digits, 16),
        [b'0', b'b' | b'B', digits @ ..] => (digits, 2),
        digits => (digits, 10),
    };
    let digits = std::str::from_utf8(digits).ok()?;
    // from_str_radix would take a sign.
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_plain.then(|| u64::from_str_radix(digits, base).ok())?
}

/// A size in bytes with the suffixes K, M, G, T; within bounds, and a multiple of a unit.
pub(super) fn size(term: &Term, unit: u64, least: u64, most: u64) -> Applied<u64> {
    let text = term.bytes.as_slice();
    let (digits, shift) = match text.split_last() {
        Some((b'k' | b'K', digits)) => (digits, 10),
        Some((b'm' | b'M', digits)) => (digits, 20),
        Some((b'g' | b'G', digits)) => (digits, 30),
        Some((b't' | b'T', digits)) => (digits, 40),
        _ => (text, 0),
    };
    let value = parse_number(digits).and_then(|value| value.checked_mul(1 << shift));
    let Some(value) = value else {
        return Err(term.error(format!("invalid size \"{}\"", term.display())));
    };
    if value % unit != 0 {
        let message = format!("size \"{}\" is not a multiple of {unit}", term.display());
        return Err(term.error(message));
    }
    if !(least..=most).contains(&value) {
        let message = format!(
            "size \"{}\" is out of range, {least} to {most}",
            term.display()
        );
        return Err(term.error(message));
    }
    Ok(value)
}

/// A switch; without a value it is on.
pub(super) fn switch(values: &[Term]) -> Applied<bool> {
    let Some(term) = values.first() else {
        return Ok(true);
    };
    let is = |words: [&str; 6]| words.iter().any(|word| term.is(word));
    if is(["1", "y", "on", "yes", "true", "enable"]) {
        return Ok(true);
    }
    if is(["0", "n", "off", "no", "false", "disable"]) {
        return Ok(false);
    }
    let mut error = term.error(format!("invalid value \"{}\"", term.display()));
    error.help = Some(String::from(
        "it is one of on, yes, true, enable, 1, and off, no, false, disable, 0",
    ));
    Err(error)
}

/// `IP`, `IP:PORT`, `[IPv6]` or `[IPv6]:PORT`.
pub(super) fn address(term: &Term) -> Applied<SocketAddr> {
    let text = String::from_utf8_lossy(&term.bytes);
    parse_address(&text).ok_or_else(|| {
        let mut error = term.error(format!("invalid address \"{text}\""));
        error.help = Some(String::from(
            "it is IP or IP:PORT, an IPv6 address in brackets; names of hosts are not allowed",
        ));
        error
    })
}

fn parse_address(text: &str) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Some(SocketAddr::new(IpAddr::V4(address), PORT_DEFAULT));
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let address: Ipv6Addr = inner.parse().ok()?;
    Some(SocketAddr::new(IpAddr::V6(address), PORT_DEFAULT))
}

/// `PORT` of any IPv4 address, or an address.
pub(super) fn listen(term: &Term) -> Applied<SocketAddr> {
    match parse_number(&term.bytes) {
        Some(_) => {
            let port = number(term, 0, u64::from(u16::MAX))?;
            let port = u16::try_from(port).unwrap_or_default();
            Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port))
        }
        None => address(term),
    }
}

/// `IP` or `IP/BITS`, brackets around IPv6 allowed; as `geo` writes it.
pub(super) fn network(term: &Term) -> Applied<String> {
    let text = String::from_utf8_lossy(&term.bytes);
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text.as_ref(), None),
    };
    let bare = address.strip_prefix('[').and_then(|a| a.strip_suffix(']'));
    let parsed: Option<IpAddr> = bare.unwrap_or(address).parse().ok();
    let most = parsed.map(|address| if address.is_ipv4() { 32 } else { 128 });
    let fits = match (bits.map(str::parse::<u8>), most) {
        (None, Some(_)) => true,
        (Some(Ok(bits)), Some(most)) => bits <= most,
        _ => false,
    };
    match parsed {
        Some(address) if fits => Ok(match bits {
            Some(bits) => format!("{address}/{bits}"),
            None => address.to_string(),
        }),
        _ => Err(term.error(format!("invalid address or prefix \"{text}\""))),
    }
}

/// A status, or a class such as `5*`: the first and the last status.
pub(super) fn statuses(term: &Term) -> Applied<(u16, u16)> {
    let digit = |byte: u8| u16::from(byte - b'0');
    match *term.bytes.as_slice() {
        [class @ b'1'..=b'5', b'*'] => Ok((digit(class) * 100, digit(class) * 100 + 99)),
        [a @ b'1'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            let status = digit(a) * 100 + digit(b) * 10 + digit(c);
            Ok((status, status))
        }
        _ => Err(term.error(format!("invalid status \"{}\"", term.display()))),
    }
}

/// A byte or a range of bytes, `0x2f` or `48-57`.
pub(super) fn byte_range(term: &Term) -> Applied<(u8, u8)> {
    let text = term.bytes.as_slice();
    let byte = |text: &[u8]| parse_number(text).and_then(|value| u8::try_from(value).ok());
    let dash = text.iter().position(|&byte| byte == b'-');
    let range = match dash {
        None => byte(text).map(|only| (only, only)),
        Some(at) => {
            let first = text.get(..at).and_then(byte);
            let last = text.get(at + 1..).and_then(byte);
            first.zip(last).filter(|(first, last)| first < last)
        }
    };
    range.ok_or_else(|| term.error(format!("invalid range of bytes \"{}\"", term.display())))
}
