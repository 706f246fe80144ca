//! WebSockets of clients that speak HTTP/2 (RFC 8441), to servers that speak HTTP/1 (RFC 6455).
//!
//! The request of a stream has become `GET` with `Upgrade` where its fields became text. What HTTP/1's handshake has
//! besides, a key and its answer, is between us and the server.

use super::trace::UpstreamTrace;
use crate::local::Local;
use crate::request::Request;
use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mill_http::field::KnownField;
use mill_http::version::Version;
use mill_runtime::engine::Engine;

/// Adds a key to the text of a request's head, RFC 6455 4.1: a nonce of 16 bytes.
pub(crate) fn add_key<E: Engine>(head: &mut Vec<u8>, local: &Local<E>) {
    let (high, low) = (local.engine.random(), local.engine.random());
    let nonce = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    let Some(fields) = head.len().checked_sub(b"\r\n".len()) else {
        return;
    };
    head.truncate(fields);
    head.extend_from_slice(b"sec-websocket-key: ");
    head.extend_from_slice(STANDARD.encode(nonce).as_bytes());
    head.extend_from_slice(b"\r\n\r\n");
}

/// Whether the request is an extended CONNECT: no other one of HTTP/2 may have `Upgrade`.
pub(crate) fn is_asked_on_stream(request: &Request) -> bool {
    let head = &request.message.head;
    head.version == Version::Http2 && head.has(KnownField::Upgrade)
}

impl UpstreamTrace {
    /// Whether the client asked for another protocol: without it, what follows 101 could be anything, and the client would
    /// read it as answers. To a key of ours the server's answer must be the right one; others the client checks itself.
    pub(super) fn may_switch(&self, request: &Request) -> bool {
        let head = &request.message.head;
        match head.version {
            Version::Http11 => head.has(KnownField::Upgrade),
            Version::Http2 => is_asked_on_stream(request) && self.has_accepted(request),
            _ => false,
        }
    }

    fn has_accepted(&self, request: &Request) -> bool {
        let bytes = &request.message.bytes;
        let mut fields = request.message.head.fields.iter();
        let key = fields.find(|field| field.name.of(bytes) == b"sec-websocket-key");
        let accepted = self.field(|name| name.eq_ignore_ascii_case(b"sec-websocket-accept"));
        key.is_some_and(|key| accepted.is_some_and(|it| it == answer_to(key.value.of(bytes))))
    }
}

/// `Sec-WebSocket-Accept`, RFC 6455 4.2.2.
fn answer_to(key: &[u8]) -> Vec<u8> {
    let mut digest = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(key);
    digest.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(digest.finish()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_key_is_that_of_the_rfc() {
        let answer = answer_to(b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(answer, b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
