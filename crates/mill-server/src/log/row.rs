//! Columns of a row as Tempesta FW's logger has them (logger/access_log_plugin), in ClickHouse's TabSeparated.

use super::access::{Figures, emit_own};
use crate::local::Local;
use crate::request::Request;
use crate::variables;
use mill_config::config::Variable;
use mill_runtime::engine::Engine;
use std::io::Write;
use std::net::IpAddr;

/// Appends the column of a variable.
pub(super) fn emit<E: Engine>(
    variable: &Variable,
    request: &mut Request,
    local: &Local<E>,
    line: &mut Vec<u8>,
) {
    if *variable == Variable::RequestTime {
        let taken = local.scheduler.now().since(request.started);
        return emit_number(u64::try_from(taken.as_millis()).unwrap_or(u64::MAX), line);
    }
    if emit_own(variable, &Figures::of(request), local, line) {
        return;
    }
    let value = variables::value(variable, request, local);
    let value = value.as_deref().unwrap_or_default();
    match variable {
        Variable::RemoteAddr => emit_address(value, line),
        Variable::RequestMethod => emit_number(method(value), line),
        Variable::ServerProtocol => emit_number(version(value), line),
        Variable::TlsFingerprint | Variable::HttpFingerprint => {
            emit_number(hexadecimal(value), line);
        }
        _ => emit_text(value, line),
    }
}

/// Appends a text: what would end a column or a row is escaped.
pub(super) fn emit_text(value: &[u8], line: &mut Vec<u8>) {
    for &byte in value {
        match byte {
            b'\t' => line.extend_from_slice(b"\\t"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\\' => line.extend_from_slice(b"\\\\"),
            _ => line.push(byte),
        }
    }
}

/// An address of IPv6: one of IPv4 as what it is there (RFC 4291 2.5.5.2), none for what has no address.
fn emit_address(value: &[u8], line: &mut Vec<u8>) {
    let text = std::str::from_utf8(value).ok();
    match text.and_then(|text| text.parse().ok()) {
        Some(IpAddr::V4(_)) => {
            line.extend_from_slice(b"::ffff:");
            line.extend_from_slice(value);
        }
        Some(IpAddr::V6(_)) => line.extend_from_slice(value),
        None => line.extend_from_slice(b"::"),
    }
}

fn emit_number(number: u64, line: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = write!(line, "{number}");
}

/// The numbers of fw/http.h: their order is that of this list, from 1.
fn method(name: &[u8]) -> u64 {
    const NAMES: [&[u8]; 16] = [
        b"COPY",
        b"DELETE",
        b"GET",
        b"HEAD",
        b"LOCK",
        b"MKCOL",
        b"MOVE",
        b"OPTIONS",
        b"PATCH",
        b"POST",
        b"PROPFIND",
        b"PROPPATCH",
        b"PUT",
        b"TRACE",
        b"UNLOCK",
        b"PURGE",
    ];
    const UNKNOWN: u64 = 17;
    if name.is_empty() {
        return 0;
    }
    let place = NAMES.iter().position(|known| *known == name);
    place.map_or(UNKNOWN, |place| place as u64 + 1)
}

/// The numbers of fw/http.h.
fn version(protocol: &[u8]) -> u64 {
    match protocol {
        b"HTTP/0.9" => 1,
        b"HTTP/1.0" => 2,
        b"HTTP/1.1" => 3,
        b"HTTP/2.0" => 4,
        _ => 0,
    }
}

fn hexadecimal(digits: &[u8]) -> u64 {
    let digits = std::str::from_utf8(digits).ok();
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(emit: impl FnOnce(&mut Vec<u8>), expected: &str) {
        let mut line = Vec::new();
        emit(&mut line);
        assert_eq!(String::from_utf8_lossy(&line), expected);
    }

    #[test]
    fn columns_are_those_of_tempesta_fws_logger() {
        check(|line| emit_address(b"192.0.2.1", line), "::ffff:192.0.2.1");
        check(|line| emit_address(b"2001:db8::1", line), "2001:db8::1");
        check(|line| emit_address(b"unix:", line), "::");
        check(|line| emit_text(b"a\tb\\c\nd\r", line), "a\\tb\\\\c\\nd\r");
        for (name, number) in [("", 0), ("COPY", 1), ("GET", 3), ("PURGE", 16), ("get", 17)] {
            assert_eq!(method(name.as_bytes()), number, "{name}");
        }
        for (name, number) in [("HTTP/1.1", 3), ("HTTP/2.0", 4), ("HTTP/3.0", 0)] {
            assert_eq!(version(name.as_bytes()), number, "{name}");
        }
        assert_eq!(hexadecimal(b"ffffffffffffffff"), u64::MAX);
        assert_eq!(hexadecimal(b""), 0);
    }
}
