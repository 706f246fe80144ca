//! HTTP/1 towards an upstream server: the request's spelling.
//!
//! A request is spelled anew from what was understood of it, never passed on as the bytes that came: so the server behind
//! cannot read it in another way.

use super::caching::Question;
use super::target::Target;
use super::trailers;
use crate::local::Local;
use crate::request::Request;
use crate::variables;
use mill_config::config::PassProtocol;
use mill_config::config::settings::{HttpVersion, ProxyHttpSettings};
use mill_http::escape::{EscapeSet, escape_uri};
use mill_http::field::{KnownField, ListElements, NameKind, is_token_byte};
use mill_http::h1::emit::{emit_field, emit_field_of, emit_number_field};
use mill_http::h1::response::RequestKind;
use mill_http::method::Method;
use mill_runtime::engine::Engine;
use std::sync::Arc;

/// How the request's content is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentFraming {
    /// There is none, and no `Content-Length`.
    None,
    Length(u64),
    Chunked,
}

impl ContentFraming {
    /// Bytes of content, where the length is known.
    pub(super) const fn len(self) -> u64 {
        match self {
            Self::Length(len) => len,
            Self::None | Self::Chunked => 0,
        }
    }
}

/// What a request asks of its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// No other request follows on it: RFC 9112 9.6, or 9.3 where HTTP/1.0 does not ask to keep it.
    pub(super) close: bool,
    /// Another protocol, RFC 9110 7.8.
    pub(super) upgrade: bool,
}

/// Appends the request's head.
pub(super) fn emit_request<E: Engine>(
    target: &Target,
    framing: ContentFraming,
    question: Option<&Question>,
    request: &mut Request,
    local: &Local<E>,
    out: &mut Vec<u8>,
) -> Asked {
    let location = Arc::clone(&request.location);
    let (pass, http) = (&*location.proxy, &*location.proxy_http);
    emit_request_line(target, http, question, request, local, out);
    let asked = emit_set_fields(target, http, request, local, out);
    emit_framing(framing, out);
    if http.http_version == HttpVersion::Http2 && trailers::are_asked_for(request) {
        emit_field(b"TE", b"trailers", out);
    }
    if pass.pass_request_headers {
        emit_client_fields(http, question, request, out);
    }
    if let Some(question) = question {
        question.emit_conditions(|name, value| emit_field(name, value, out));
    }
    out.extend_from_slice(b"\r\n");
    asked
}

/// What `proxy_method` says: a method, if it is one when it is evaluated. CONNECT is none: behind its answer the
/// connection would carry no HTTP.
fn method<E: Engine>(request: &mut Request, local: &Local<E>) -> Option<Vec<u8>> {
    request.location.proxy_http.method.as_ref()?;
    let location = Arc::clone(&request.location);
    let method = location.proxy_http.method.as_ref()?;
    let method = variables::evaluate(method, request, local);
    let is_method = !method.is_empty() && method.iter().all(|byte| is_token_byte(*byte));
    (is_method && method != b"CONNECT").then_some(method)
}

/// What of the method that is sent determines the answer's framing.
pub(super) fn kind<E: Engine>(request: &mut Request, local: &Local<E>) -> RequestKind {
    let replaced = method(request, local);
    RequestKind::of(replaced.map_or(request.method, |method| Method::parse(&method)))
}

fn emit_request_line<E: Engine>(
    target: &Target,
    http: &ProxyHttpSettings,
    question: Option<&Question>,
    request: &mut Request,
    local: &Local<E>,
    out: &mut Vec<u8>,
) {
    match method(request, local) {
        None if question.is_some_and(|question| question.as_get) => out.extend_from_slice(b"GET"),
        Some(method) => out.extend_from_slice(&method),
        None => out.extend_from_slice(request.method_name()),
    }
    out.push(b' ');
    emit_uri(target, request, out);
    out.extend_from_slice(if is_http11(http) {
        b" HTTP/1.1\r\n"
    } else {
        b" HTTP/1.0\r\n"
    });
}

pub(super) const fn is_http11(http: &ProxyHttpSettings) -> bool {
    !matches!(http.http_version, HttpVersion::Http10)
}

/// Whether the request goes over a stream of HTTP/2.
pub(super) fn is_http2(protocol: PassProtocol, request: &Request) -> bool {
    protocol == PassProtocol::Http && request.location.proxy_http.http_version == HttpVersion::Http2
}

/// The target as the server gets it, RFC 9112 3.2.1: as the client has sent it, if nothing replaces or has changed it.
pub(super) fn emit_uri(target: &Target, request: &Request, out: &mut Vec<u8>) {
    if let Some(uri) = target.whole_uri.as_ref().filter(|uri| !uri.is_empty()) {
        return emit_target(uri, out);
    }
    // What `rewrite … break` has made goes as it is.
    let replacement = target.pass.uri.as_deref();
    let replacement = replacement.filter(|_| request.valid_location);
    let as_sent = request.message.head.target.whole.of(&request.message.bytes);
    if replacement.is_none() && request.uri_is_as_sent && as_sent.starts_with(b"/") {
        return out.extend_from_slice(as_sent);
    }
    let replaced = replacement.map_or(0, |_| target.pass.replaced);
    out.extend_from_slice(replacement.unwrap_or_default());
    let rest = request.uri.get(replaced..).unwrap_or_default();
    let mut path = as_sent.split(|byte| *byte == b'?');
    let is_escaped = path.next().is_some_and(|path| path.contains(&b'%'));
    if is_escaped || request.internal {
        escape_uri(EscapeSet::Uri, rest, out);
    } else {
        emit_target(rest, out);
    }
    if !request.args.is_empty() {
        out.push(b'?');
        emit_target(&request.args, out);
    }
}

/// A text of the configuration in the request line: blanks and control bytes would end the target early.
fn emit_target(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        if byte <= b' ' || byte == 0x7f {
            escape_uri(EscapeSet::Uri, &[byte], out);
        } else {
            out.push(byte);
        }
    }
}

/// `proxy_set_header`, then the fields that nginx sets where it does not.
fn emit_set_fields<E: Engine>(
    target: &Target,
    http: &ProxyHttpSettings,
    request: &mut Request,
    local: &Local<E>,
    out: &mut Vec<u8>,
) -> Asked {
    let set = SetNames::of(http);
    let has_connection = set.has(b"Connection");
    let (mut is_kept, mut closes) = (is_http11(http), !has_connection);
    let mut upgrade = false;
    // How the content is framed is said by what is sent, never by the configuration.
    let named = http.set_header.iter();
    for field in named.filter(|field| !is_framing(&field.name)) {
        let start = out.len();
        out.extend_from_slice(&field.name);
        out.extend_from_slice(b": ");
        let value_start = out.len();
        variables::append(&field.value, request, local, out);
        if out.len() == value_start {
            // An empty value passes no field.
            out.truncate(start);
            continue;
        }
        make_harmless(out, value_start);
        let value = out.get(value_start..).unwrap_or_default();
        match KnownField::parse(&field.name) {
            KnownField::Connection => {
                closes |= has_option(value, b"close");
                is_kept |= has_option(value, b"keep-alive");
            }
            KnownField::Upgrade => upgrade = true,
            _ => {}
        }
        out.extend_from_slice(b"\r\n");
    }
    if !set.has(b"Host") {
        emit_field(b"Host", target.host(), out);
    }
    if !has_connection {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    Asked {
        close: closes || !is_kept,
        upgrade,
    }
}

/// Whether a value of `Connection` may name fields.
pub(super) fn names_fields(value: &[u8]) -> bool {
    value != b"keep-alive"
        && !value.eq_ignore_ascii_case(b"keep-alive")
        && !value.eq_ignore_ascii_case(b"close")
}

/// Whether a value of `Connection` has this option, RFC 9110 7.6.1.
pub(super) fn has_option(value: &[u8], option: &[u8]) -> bool {
    ListElements::of(value).any(|element| element.eq_ignore_ascii_case(option))
}

/// A value may hold what the client has sent, decoded: a line end in it would begin another field.
fn make_harmless(out: &mut [u8], start: usize) {
    for byte in out.get_mut(start..).unwrap_or_default() {
        if matches!(*byte, b'\r' | b'\n' | 0) {
            *byte = b' ';
        }
    }
}

fn emit_framing(framing: ContentFraming, out: &mut Vec<u8>) {
    match framing {
        ContentFraming::None => {}
        ContentFraming::Length(len) => emit_number_field(b"Content-Length", len, out),
        ContentFraming::Chunked => emit_field(b"Transfer-Encoding", b"chunked", out),
    }
}

/// The client's fields, but for those that are set here and those that concern one connection only, which may be named
/// by `Connection` (RFC 9110 7.6.1).
fn emit_client_fields(
    http: &ProxyHttpSettings,
    question: Option<&Question>,
    request: &Request,
    out: &mut Vec<u8>,
) {
    let message = &request.message;
    let values = message.head.fields.iter();
    let values = values.filter(|field| field.known == KnownField::Connection);
    let values = values.map(|field| field.value.of(&message.bytes));
    let names_fields = values.clone().any(names_fields);
    let set = SetNames::of(http);
    for field in &message.head.fields {
        let name = field.name.of(&message.bytes);
        let is_passed = !field.ignored
            && OF_CONNECTION & field.known.bit() == 0
            && !question.is_some_and(|question| question.hides(field.known))
            && (field.kind == NameKind::Plain || !resembles_framing(name))
            && !set.has(name);
        let is_named = || values.clone().any(|value| has_option(value, name));
        if is_passed && !(names_fields && is_named()) {
            emit_field_of(&message.bytes, field.name, field.value, out);
        }
    }
}

/// Fields that nginx sets, or leaves out, where `proxy_set_header` does not name them.
const OF_CONNECTION: u64 = KnownField::Host.bit()
    | KnownField::Connection.bit()
    | KnownField::ContentLength.bit()
    | KnownField::TransferEncoding.bit()
    | KnownField::Te.bit()
    | KnownField::Expect.bit()
    | KnownField::Upgrade.bit()
    | KnownField::KeepAlive.bit();

/// Whether a server may take the name for one that frames the content: CGI reads `_` and its like as `-`, and letters of
/// other alphabets may become those of ASCII. Only `underscores_in_headers` and `ignore_invalid_headers` let such names in.
fn resembles_framing(name: &[u8]) -> bool {
    const CONTENT_LENGTH: &[u8] = b"content-length";
    let resembles = |framing: &[u8]| {
        let mut bytes = name.iter().zip(framing);
        name.len() == framing.len()
            && bytes.all(|(byte, of_framing)| match of_framing {
                b'-' => !byte.is_ascii_alphanumeric(),
                letter => byte.eq_ignore_ascii_case(letter),
            })
    };
    name.len() >= CONTENT_LENGTH.len()
        && (!name.is_ascii() || resembles(CONTENT_LENGTH) || resembles(b"transfer-encoding"))
}

fn is_framing(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"Content-Length") || name.eq_ignore_ascii_case(b"Transfer-Encoding")
}

/// The names of `proxy_set_header`. Most others have another length.
struct SetNames<'a> {
    http: &'a ProxyHttpSettings,
    lengths: u64,
}

impl<'a> SetNames<'a> {
    fn of(http: &'a ProxyHttpSettings) -> Self {
        let lengths = http.set_header.iter().map(|field| length_bit(&field.name));
        Self {
            lengths: lengths.fold(0, |all, bit| all | bit),
            http,
        }
    }

    fn has(&self, name: &[u8]) -> bool {
        let mut names = self.http.set_header.iter();
        let first = |name: &[u8]| name.first().map(u8::to_ascii_lowercase);
        self.lengths & length_bit(name) != 0
            && names.any(|field| {
                first(&field.name) == first(name) && field.name.eq_ignore_ascii_case(name)
            })
    }
}

/// A bit for the length of a name; the last one is for all that are longer.
const fn length_bit(name: &[u8]) -> u64 {
    1 << if name.len() < 63 { name.len() } else { 63 }
}
