//! HTTP/2 to clients: `http2_…`.

use crate::config::settings::group;
use crate::directive::{
    ANY_LEVEL, Apply, Arity, Contexts, Directive, HTTP, HTTP_SERVER, Value, once,
};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::value;

group! {
    /// HTTP/2. Those of a connection are the default server's of its address.
    Http2Settings {
        /// `http2`.
        enabled: bool = false,
        /// `http2_max_concurrent_streams`.
        max_concurrent_streams: u64 = 128,
        /// `http2_body_preread_size`: bytes of a request's content that may come before it is asked for.
        body_preread_size: u64 = 64 << 10,
        /// `http2_chunk_size`: bytes of a DATA frame.
        chunk_size: u64 = 16 << 10,
        /// `http2_extended_connect`.
        extended_connect: bool = true,
    }
}

/// A directive that nginx has given up for another one.
const fn obsolete(name: &'static str, contexts: Contexts, reason: &'static str) -> Directive {
    Directive {
        name,
        contexts,
        arity: Arity::Exactly(1),
        default: None,
        doc: "Of HTTP/2.",
        repeats: false,
        apply: Apply::WithoutEffect(Value::Text, reason),
        unread: None,
    }
}

/// The largest window (RFC 9113 6.9.1).
const WINDOW_BYTES_MAX: u64 = (1 << 31) - 1;

fn size(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied<u64> {
    let word = statement.arg(1);
    let bytes = value::size(&word.bytes);
    bytes.ok_or_else(|| resolver.refused_at(statement, word, "invalid value"))
}

const BUFFERS: &str = "it is obsolete: use \"large_client_header_buffers\"";
const TIMEOUT: &str = "it is obsolete: use \"keepalive_timeout\" and \"client_header_timeout\"";
const PUSH: &str = "nothing is pushed, which browsers have given up; see \"early_hints\"";

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "http2",
        HTTP_SERVER,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.http2.enabled),
        "HTTP/2 beside HTTP/1: where the client agrees on it under TLS, or begins so in clear.",
    ),
    once(
        "http2_max_concurrent_streams",
        HTTP_SERVER,
        Arity::Exactly(1),
        "128",
        Apply::Number(|s| &mut s.http2.max_concurrent_streams),
        "Requests of a connection that are handled at once.",
    ),
    once(
        "http2_body_preread_size",
        HTTP_SERVER,
        Arity::Exactly(1),
        "64k",
        Apply::With(|resolver, statement| {
            let bytes = size(resolver, statement)?;
            if bytes > WINDOW_BYTES_MAX {
                let message = format!("the maximum body preread buffer size is {WINDOW_BYTES_MAX}");
                return Err(resolver.emerg(statement, statement.arg(1), message));
            }
            resolver.level.settings.http2.body_preread_size = Some(bytes);
            Ok(())
        }),
        "Content of a request that may come before it is asked for; then the window grows with the reader.",
    ),
    once(
        "http2_chunk_size",
        ANY_LEVEL,
        Arity::Exactly(1),
        "16k",
        Apply::With(|resolver, statement| {
            let bytes = size(resolver, statement)?;
            if bytes == 0 {
                let message = "the http2 chunk size cannot be zero";
                return Err(resolver.emerg(statement, statement.arg(1), message));
            }
            resolver.level.settings.http2.chunk_size = Some(bytes);
            Ok(())
        }),
        "Content in one frame, at most what the client accepts.",
    ),
    once(
        "http2_extended_connect",
        HTTP_SERVER,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.http2.extended_connect),
        "Whether clients may open WebSockets on streams (RFC 8441); they pass as upgrades of HTTP/1 to servers behind.",
    ),
    obsolete(
        "http2_recv_buffer_size",
        HTTP,
        "frames are read in the connection's receive buffer",
    ),
    obsolete(
        "http2_max_requests",
        HTTP_SERVER,
        "it is obsolete: use \"keepalive_requests\"",
    ),
    obsolete("http2_max_field_size", HTTP_SERVER, BUFFERS),
    obsolete("http2_max_header_size", HTTP_SERVER, BUFFERS),
    obsolete("http2_idle_timeout", HTTP_SERVER, TIMEOUT),
    obsolete("http2_recv_timeout", HTTP_SERVER, TIMEOUT),
    obsolete("http2_pool_size", HTTP_SERVER, "there are no such pools"),
    obsolete(
        "http2_streams_index_size",
        HTTP_SERVER,
        "there is no such index",
    ),
    obsolete("http2_max_concurrent_pushes", HTTP_SERVER, PUSH),
    obsolete("http2_push", ANY_LEVEL, PUSH),
    obsolete("http2_push_preload", ANY_LEVEL, PUSH),
];
