//! The head of a request: RFC 9113 8.2 and 8.3, checked whole, since a server behind may read it as HTTP/1.
//!
//! The fields become the text of an HTTP/1 head with version 2.0 (`GET /x HTTP/2.0`), which `h1::parse` reads by the same
//! rules as any other: what is malformed there is refused there. What could be read in two ways as text, such as a line end
//! in a value or a space in a method, never gets that far.

use crate::field::is_token_byte;
use crate::span::Span;
use alloc::vec::Vec;

/// Takes the fields of one block, in order, and makes the text of them.
#[derive(Debug)]
pub(super) struct RequestText<'a> {
    memory: &'a mut Memory,
    /// Bytes of the text that are kept.
    bytes_max: usize,
    /// Our SETTINGS allow extended CONNECT.
    has_extended_connect: bool,
    method: Option<Span>,
    scheme: Option<Span>,
    path: Option<Span>,
    authority: Option<Span>,
    protocol: Option<Span>,
    has_line: bool,
    has_host: bool,
    is_too_large: bool,
    fault: Option<Malformed>,
}

/// Memory of a head, used again for the next one.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) text: Vec<u8>,
    pseudo: Vec<u8>,
    cookie: Vec<u8>,
}

/// What RFC 9113 8.1.1 calls malformed: the stream is reset with PROTOCOL_ERROR. The words are for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// What a head says beside its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadFacts {
    /// It was longer than may be; the text is cut.
    pub is_too_large: bool,
    /// Extended CONNECT with `:protocol websocket`; the text says `GET` and `upgrade: websocket`.
    pub is_websocket: bool,
}

impl<'a> RequestText<'a> {
    pub(super) fn new(
        memory: &'a mut Memory,
        bytes_max: usize,
        has_extended_connect: bool,
    ) -> Self {
        memory.text.clear();
        memory.pseudo.clear();
        memory.cookie.clear();
        Self {
            memory,
            bytes_max,
            has_extended_connect,
            method: None,
            scheme: None,
            path: None,
            authority: None,
            protocol: None,
            has_line: false,
            has_host: false,
            is_too_large: false,
            fault: None,
        }
    }

    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.fault.is_some() || self.is_too_large {
            return;
        }
        let used = self.memory.text.len() + self.memory.pseudo.len() + self.memory.cookie.len();
        if used + name.len() + value.len() + LINE_BYTES > self.bytes_max {
            self.is_too_large = true;
            return;
        }
        let result = match name {
            [b':', name @ ..] => self.pseudo(name, value),
            _ => self.regular(name, value),
        };
        if let Err(fault) = result {
            self.fault = Some(fault);
        }
    }

    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
        if self.has_line {
            return Err(Malformed("a pseudo-field behind others"));
        }
        let (place, is_valid) = match name {
            b"method" => (&mut self.method, is_token(value)),
            b"scheme" => (&mut self.scheme, is_scheme(value)),
            b"path" => (&mut self.path, is_target(value)),
            b"authority" => (&mut self.authority, value.iter().all(is_visible)),
            b"protocol" if self.has_extended_connect => (&mut self.protocol, is_token(value)),
            _ => return Err(Malformed("an unknown pseudo-field")),
        };
        if !is_valid {
            return Err(Malformed("an invalid pseudo-field"));
        }
        if place.is_some() {
            return Err(Malformed("a repeated pseudo-field"));
        }
        let start = self.memory.pseudo.len();
        *place = Some(Span::between(start, start + value.len()));
        self.memory.pseudo.extend_from_slice(value);
        Ok(())
    }

    fn regular(&mut self, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
        check_field(name, value)?;
        self.request_line()?;
        match name {
            b"host" => return self.host(value),
            b"content-length" if self.is_websocket() => {
                return Err(Malformed("a length of what a tunnel carries"));
            }
            // RFC 8441 5: HTTP/1's handshake is not part of this one; the server behind gets a key of ours.
            b"sec-websocket-key" if self.is_websocket() => return Ok(()),
            b"cookie" => {
                // RFC 9113 8.2.3: a client may send each pair alone.
                let cookie = &mut self.memory.cookie;
                if !cookie.is_empty() {
                    cookie.extend_from_slice(b"; ");
                }
                cookie.extend_from_slice(value);
                return Ok(());
            }
            _ => {}
        }
        self.line(name, value);
        Ok(())
    }

    fn host(&mut self, value: &[u8]) -> Result<(), Malformed> {
        let pseudo = &self.memory.pseudo;
        let is_other = match self.authority.map(|span| span.of(pseudo)) {
            Some(authority) => {
                let scheme = self.scheme.map(|span| span.of(pseudo));
                let known = without_default_port(authority, scheme);
                !known.eq_ignore_ascii_case(without_default_port(value, scheme))
            }
            None => self.has_host,
        };
        // RFC 9113 8.3.1. A second `host`, or another name than `:authority`: two readers could choose different ones.
        if is_other {
            return Err(Malformed("a host beside another one"));
        }
        if self.authority.is_some() {
            return Ok(());
        }
        self.has_host = true;
        self.line(b"host", value);
        Ok(())
    }

    /// The request line, when the last pseudo-field has passed.
    fn request_line(&mut self) -> Result<(), Malformed> {
        if self.has_line {
            return Ok(());
        }
        self.has_line = true;
        let pseudo = &self.memory.pseudo;
        let Some(method) = self.method.map(|method| method.of(pseudo)) else {
            return Err(Malformed("no method"));
        };
        let is_websocket = self.is_websocket();
        let is_connect = method == b"CONNECT";
        if self.protocol.is_some() && !(is_connect && is_websocket) {
            return Err(Malformed("an unknown protocol for CONNECT"));
        }
        let target = match (is_connect && !is_websocket, self.scheme, self.path) {
            (true, None, None) => self.authority,
            (false, Some(_), path) => path,
            _ => None,
        };
        let target = target.ok_or(Malformed("a missing or superfluous pseudo-field"))?;
        let text = &mut self.memory.text;
        text.extend_from_slice(if is_websocket { b"GET" } else { method });
        text.push(b' ');
        text.extend_from_slice(target.of(pseudo));
        text.extend_from_slice(b" HTTP/2.0\r\n");
        if let Some(authority) = self.authority.filter(|authority| !authority.is_empty()) {
            self.has_host = true;
            text.extend_from_slice(b"host: ");
            text.extend_from_slice(authority.of(pseudo));
            text.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    fn is_websocket(&self) -> bool {
        let protocol = self.protocol.map(|span| span.of(&self.memory.pseudo));
        protocol.is_some_and(|protocol| protocol.eq_ignore_ascii_case(b"websocket"))
    }

    fn line(&mut self, name: &[u8], value: &[u8]) {
        let text = &mut self.memory.text;
        text.extend_from_slice(name);
        text.extend_from_slice(b": ");
        text.extend_from_slice(value);
        text.extend_from_slice(b"\r\n");
    }

    /// Completes the text.
    pub(super) fn finish(mut self) -> Result<HeadFacts, Malformed> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        self.request_line()?;
        let is_websocket = self.is_websocket();
        if is_websocket {
            self.line(b"connection", b"upgrade");
            self.line(b"upgrade", b"websocket");
        }
        if !self.memory.cookie.is_empty() {
            let cookie = core::mem::take(&mut self.memory.cookie);
            self.line(b"cookie", &cookie);
            self.memory.cookie = cookie;
        }
        self.memory.text.extend_from_slice(b"\r\n");
        Ok(HeadFacts {
            is_too_large: self.is_too_large,
            is_websocket,
        })
    }
}

/// Checks the fields behind content, and that a peer does not let us check more of them than a head may have: a byte of a
/// block can stand for a whole field.
#[derive(Debug)]
pub(super) struct TrailerCheck {
    bytes_left: usize,
    result: Result<(), Malformed>,
}

impl TrailerCheck {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self {
            bytes_left: bytes_max,
            result: Ok(()),
        }
    }

    /// Whether the field, and all before it, may be there.
    pub(super) fn takes(&mut self, name: &[u8], value: &[u8]) -> bool {
        if self.result.is_ok() {
            let bytes = name.len() + value.len() + LINE_BYTES;
            self.result = match self.bytes_left.checked_sub(bytes) {
                Some(left) => {
                    self.bytes_left = left;
                    check_field(name, value)
                }
                None => Err(Malformed("too large trailers")),
            };
        }
        self.result.is_ok()
    }

    pub(super) const fn finish(self) -> Result<(), Malformed> {
        self.result
    }
}

/// Whether a field of a head or of trailers is one that may be there (RFC 9113 8.1, 8.2).
pub(super) fn check_field(name: &[u8], value: &[u8]) -> Result<(), Malformed> {
    if name.first() == Some(&b':') {
        return Err(Malformed("a pseudo-field in trailers"));
    }
    if !is_token(name) || name.iter().any(u8::is_ascii_uppercase) {
        return Err(Malformed("an invalid field name"));
    }
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let breaks_lines = |byte: &u8| matches!(byte, 0 | b'\r' | b'\n');
    if value.iter().any(breaks_lines) || blank(value.first()) || blank(value.last()) {
        return Err(Malformed("an invalid field value"));
    }
    match name {
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
            Err(Malformed("a field of the connection"))
        }
        b"te" if !value.eq_ignore_ascii_case(b"trailers") => {
            Err(Malformed("TE other than trailers"))
        }
        _ => Ok(()),
    }
}

/// RFC 3986 6.2.3: a port that the scheme has anyway, or an empty one, says nothing.
fn without_default_port<'a>(authority: &'a [u8], scheme: Option<&[u8]>) -> &'a [u8] {
    let port: &[u8] = match scheme {
        Some(b"https") => b":443",
        Some(b"http") => b":80",
        _ => b":",
    };
    let rest = authority.strip_suffix(port);
    rest.or_else(|| authority.strip_suffix(b":"))
        .unwrap_or(authority)
}

fn is_visible(byte: &u8) -> bool {
    *byte > b' ' && *byte != 0x7f
}

fn is_token(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|byte| is_token_byte(*byte))
}

fn is_scheme(value: &[u8]) -> bool {
    let rest = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    value.first().is_some_and(u8::is_ascii_alphabetic) && value.iter().all(rest)
}

/// Path and query, or `*`; no byte that ends a target in a request line.
fn is_target(value: &[u8]) -> bool {
    matches!(value, [b'/', ..] | b"*") && value.iter().all(is_visible)
}

/// What a line of the text has beside its name and value.
const LINE_BYTES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn made(fields: &str) -> Result<String, Malformed> {
        made_by(fields, true)
    }

    fn made_by(fields: &str, has_extended_connect: bool) -> Result<String, Malformed> {
        let mut memory = Memory::default();
        let mut text = RequestText::new(&mut memory, 1000, has_extended_connect);
        for field in fields.split('|') {
            let (name, value) = field.rsplit_once('=').unwrap();
            text.field(name.as_bytes(), value.as_bytes());
        }
        text.finish()?;
        Ok(String::from_utf8(memory.text).unwrap())
    }

    const GET: &str = ":method=GET|:scheme=https|:path=/a?b|:authority=h:1";

    #[test]
    fn fields_become_the_text_of_a_head() {
        let check = |fields: &str, expected: &str| {
            assert_eq!(made(fields).unwrap(), expected, "{fields}");
        };
        check(GET, "GET /a?b HTTP/2.0\r\nhost: h:1\r\n\r\n");
        check(
            ":path=/|:method=POST|:scheme=http|host=x|cookie=a|accept=b|cookie=c",
            "POST / HTTP/2.0\r\nhost: x\r\naccept: b\r\ncookie: a; c\r\n\r\n",
        );
        check(
            &alloc::format!("{GET}|host=H:1|te=trailers"),
            "GET /a?b HTTP/2.0\r\nhost: h:1\r\nte: trailers\r\n\r\n",
        );
        check(
            ":method=CONNECT|:authority=a:443",
            "CONNECT a:443 HTTP/2.0\r\nhost: a:443\r\n\r\n",
        );
        check(
            ":method=CONNECT|:protocol=websocket|:scheme=https|:path=/w|:authority=a|x=y",
            "GET /w HTTP/2.0\r\nhost: a\r\nx: y\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        );
        check(
            ":method=CONNECT|:protocol=websocket|:scheme=https|:path=/w|:authority=a|sec-websocket-key=k",
            "GET /w HTTP/2.0\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        );
        check(
            ":method=OPTIONS|:scheme=http|:path=*|:authority=",
            "OPTIONS * HTTP/2.0\r\n\r\n",
        );
        // One host in two spellings.
        for (authority, host) in [("h", "h:443"), ("h:443", "H"), ("h:", "h"), ("h:1", "h:1")] {
            check(
                &alloc::format!(
                    ":method=GET|:scheme=https|:path=/|:authority={authority}|host={host}"
                ),
                &alloc::format!("GET / HTTP/2.0\r\nhost: {authority}\r\n\r\n"),
            );
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_malformed() {
        for fields in [
            ":method=GET|:scheme=http",
            ":method=GET|:path=/",
            ":scheme=http|:path=/",
            ":method=GET|:method=GET|:scheme=http|:path=/",
            ":method=GET|:scheme=http|:path=",
            ":method=GET|:scheme=http|:path=a",
            ":method=GET|:scheme=http|:path=/ HTTP/1.1",
            ":method=GET|:scheme=http|:path=/\r\nx: y",
            ":method=GET /|:scheme=http|:path=/",
            ":method=GET|:scheme=ht tp|:path=/",
            ":method=GET|:scheme=http|:path=/|:unknown=a",
            ":method=GET|:scheme=http|:path=/|:authority=a b",
            ":method=GET|:scheme=http|:path=/|:authority=|:authority=b",
            ":method=GET|:scheme=http|:path=/|:protocol=websocket",
            ":method=CONNECT|:scheme=http|:path=/|:authority=a",
            ":method=CONNECT|:protocol=tcp|:scheme=http|:path=/|:authority=a",
            ":method=GET|:scheme=http|a=b|:path=/",
            ":method=GET|:scheme=http|:path=/|a=b|:authority=a",
            ":method=GET|:scheme=http|:scheme=http|:path=/",
            ":method=GET|:scheme=http|:path=/|:path=/",
            ":method=|:scheme=http|:path=/",
            ":method=GET|:scheme=|:path=/",
            ":method=GET|:scheme=http://x|:path=/",
            ":method=GET|:scheme=http|:path=http://a/",
            ":method=GET|:scheme=http|:path=?a",
            ":method=GET|:scheme=http|:path=/\0",
            ":method=GET|:scheme=http|:path=/\x7f",
            ":method=GET|:scheme=http|:path=/|:authority=a\r\nx: y",
            ":method=GET|:scheme=http|:path=/|host=a|host=b",
            ":method=GET|:scheme=http|:path=/|host=a|host=a",
            ":method=GET|:scheme=http|:path=/|:authority=|host=a",
            ":method=GET|:scheme=http|:path=/|:authority=a:443|host=a",
            ":method=GET|:scheme=http|:path=/|:authority=a|host=a:8080",
            ":method=CONNECT|:path=/",
            ":method=CONNECT",
            ":method=CONNECT|:scheme=https|:authority=a",
            ":method=CONNECT|:protocol=websocket|:authority=a",
            ":method=CONNECT|:protocol=websocket|:scheme=https|:path=/w|:authority=a|content-length=1",
        ] {
            assert!(made(fields).is_err(), "{fields:?}");
        }
        let websocket = ":method=CONNECT|:protocol=websocket|:scheme=https|:path=/w|:authority=a";
        assert!(made_by(websocket, true).is_ok());
        assert!(made_by(websocket, false).is_err(), "not announced");
        for field in [
            "Upper=a",
            "=a",
            "a b=c",
            "a:b=c",
            "a=b\r\nc",
            "a=b\n",
            "a=\0",
            "a= b",
            "a=b ",
            "a=b\t",
            "a= ",
            "connection=close",
            "connection=",
            "upgrade=x",
            "keep-alive=1",
            "transfer-encoding=chunked",
            "proxy-connection=a",
            "te=gzip",
            "te=trailers, gzip",
            "TE=trailers",
            "content-length\t=1",
            "\u{e9}=a",
            "host=other",
            ":status=200",
        ] {
            let fields = alloc::format!("{GET}|{field}");
            assert!(made(&fields).is_err(), "{field:?}");
        }
    }

    #[test]
    fn a_head_that_is_too_large_is_cut() {
        let mut memory = Memory::default();
        let mut text = RequestText::new(&mut memory, 100, false);
        for (name, value) in [(":method", "GET"), (":scheme", "http"), (":path", "/a")] {
            text.field(name.as_bytes(), value.as_bytes());
        }
        for _ in 0..1000 {
            text.field(b"name", b"twenty bytes of value");
        }
        assert!(text.finish().unwrap().is_too_large);
        assert!(memory.text.len() <= 104);
    }
}
