//! `stream`: blocks, how connections begin, and where they are passed to.

mod block;
mod listen;
mod pass;

use std::time::Duration;

use crate::Text;
use crate::config::settings::{Amount, PassBind, group};
use crate::config::{StreamHandler, Template};
use crate::directive::{
    Apply, Arity, Directive, MAIN, STREAM, STREAM_LEVELS, STREAM_SERVER, many, once,
};
use crate::directives::pass::target::PassTargetDraft;
use crate::directives::pass::value;
use crate::resolve::draft::Origin;

group! {
    /// What only servers of `stream` have.
    StreamSettings {
        /// `proxy_connect_timeout`.
        connect_timeout: Duration = Duration::from_secs(60),
        /// `proxy_timeout`: between two bytes, of either side.
        timeout: Duration = Duration::from_secs(600),
        /// `proxy_buffer_size`, of each direction.
        buffer_size: u64 = 16 * 1024,
        /// `proxy_upload_rate`: bytes a second from the client; 0 is no limit.
        upload_rate: Amount = Amount::Fixed(0),
        /// `proxy_download_rate`: bytes a second from the server.
        download_rate: Amount = Amount::Fixed(0),
        /// `proxy_half_close`: the end of one direction does not end the other.
        half_close: bool = false,
        /// `proxy_next_upstream`: another server is tried where one cannot be reached.
        next_upstream: bool = true,
        /// `proxy_next_upstream_tries`; 0 is no limit.
        next_upstream_tries: u64 = 0,
        /// `proxy_next_upstream_timeout`; 0 is no limit.
        next_upstream_timeout: Duration = Duration::ZERO,
        /// `proxy_bind`.
        bind: Option<PassBind> = None,
        /// `proxy_socket_keepalive`.
        socket_keepalive: bool = false,
        /// `proxy_protocol`: servers get a header of the PROXY protocol.
        proxy_protocol: bool = false,
        /// `proxy_ssl`: connections to servers are under TLS.
        proxy_ssl: bool = false,
        /// `proxy_protocol_timeout`: until the header of the PROXY protocol is whole.
        proxy_header_timeout: Duration = Duration::from_secs(30),
        /// `ssl_handshake_timeout`.
        handshake_timeout: Duration = Duration::from_secs(60),
        /// `ssl_alpn`: protocols that clients are offered, the best first; none: all are agreed to silently.
        alpn: Vec<Text> = Vec::new(),
        /// `ssl_preread`: the ClientHello is looked at, and passed on.
        preread: bool = false,
        /// `preread_buffer_size`.
        preread_buffer_size: u64 = 16 * 1024,
        /// `preread_timeout`.
        preread_timeout: Duration = Duration::from_secs(30),
    }
}

/// What only servers of `stream` have, before inheritance.
#[derive(Default)]
pub(crate) struct StreamServerDraft {
    pub(crate) handler: Option<HandlerDraft>,
    pub(crate) assignments: Vec<(usize, Template)>,
    /// Where the block begins.
    pub(crate) origin: Option<Origin>,
}

/// What becomes of a connection, before its group is complete.
pub(crate) enum HandlerDraft {
    Pass(PassTargetDraft),
    Ready(StreamHandler),
}

/// A directive of one argument for `stream` and its servers.
macro_rules! one {
    ($name:expr, $default:expr, $apply:expr, $doc:expr) => {
        once(
            $name,
            STREAM_LEVELS,
            Arity::Exactly(1),
            $default,
            $apply,
            $doc,
        )
    };
}

pub(crate) const BLOCKS: &[Directive] = &[
    many(
        "stream",
        MAIN,
        Arity::Exactly(0),
        Apply::Block(block::stream),
        "Everything that passes connections on as they are, whatever protocol they speak.",
    ),
    many(
        "server",
        STREAM,
        Arity::Exactly(0),
        Apply::Block(block::server),
        "A server of connections: one for each address.",
    ),
    many(
        "listen",
        STREAM_SERVER,
        Arity::AtLeast(1),
        Apply::With(listen::listen),
        "Address and port, or unix:path, that the server listens on, and options of the socket.",
    ),
    once(
        "return",
        STREAM_SERVER,
        Arity::Exactly(1),
        "",
        Apply::With(block::text),
        "Sends this text to the client, and closes.",
    ),
    many(
        "set",
        STREAM_SERVER,
        Arity::Exactly(2),
        Apply::With(block::set),
        "Assigns to a variable, once the first bytes of a connection have been looked at.",
    ),
];

pub(crate) const PASSING: &[Directive] = &[
    once(
        "proxy_pass",
        STREAM_SERVER,
        Arity::Exactly(1),
        "",
        Apply::With(pass::proxy_pass),
        "Passes connections on: to a group of servers, or to an address with its port; both may come from variables.",
    ),
    one!(
        "proxy_connect_timeout",
        "60s",
        Apply::Milliseconds(|s| &mut s.stream.connect_timeout),
        "Longest time until a server accepts a connection, its handshake of TLS included."
    ),
    one!(
        "proxy_timeout",
        "10m",
        Apply::Milliseconds(|s| &mut s.stream.timeout),
        "Longest time without a byte from or to either side."
    ),
    one!(
        "proxy_buffer_size",
        "16k",
        Apply::Size(|s| &mut s.stream.buffer_size),
        "Bytes that are read at once, and that may wait for either side."
    ),
    one!(
        "proxy_upload_rate",
        "0",
        Apply::With(|r, s| {
            r.level.settings.stream.upload_rate = Some(value::amount(r, s)?);
            Ok(())
        }),
        "Bytes a second that are read from a client. 0 is no limit."
    ),
    one!(
        "proxy_download_rate",
        "0",
        Apply::With(|r, s| {
            r.level.settings.stream.download_rate = Some(value::amount(r, s)?);
            Ok(())
        }),
        "Bytes a second that are read from a server. 0 is no limit."
    ),
    one!(
        "proxy_half_close",
        "off",
        Apply::Flag(|s| &mut s.stream.half_close),
        "A side that has ended its direction may still receive; if off, the end of one direction ends both."
    ),
    one!(
        "proxy_next_upstream",
        "on",
        Apply::Flag(|s| &mut s.stream.next_upstream),
        "Another server is tried when one cannot be reached."
    ),
    one!(
        "proxy_next_upstream_tries",
        "0",
        Apply::Number(|s| &mut s.stream.next_upstream_tries),
        "Most servers that are tried. 0 is no limit."
    ),
    one!(
        "proxy_next_upstream_timeout",
        "0",
        Apply::Milliseconds(|s| &mut s.stream.next_upstream_timeout),
        "Longest time in which other servers are tried. 0 is no limit."
    ),
    once(
        "proxy_bind",
        STREAM_LEVELS,
        Arity::Between(1, 2),
        "off",
        Apply::With(|r, s| {
            r.level.settings.stream.bind = Some(value::bind(r, s)?);
            Ok(())
        }),
        "Local address of connections to servers, with transparent even that of the client.",
    ),
    one!(
        "proxy_socket_keepalive",
        "off",
        Apply::Flag(|s| &mut s.stream.socket_keepalive),
        "SO_KEEPALIVE on connections to servers."
    ),
    one!(
        "proxy_protocol",
        "off",
        Apply::Flag(|s| &mut s.stream.proxy_protocol),
        "Servers get a header of the PROXY protocol, version 1."
    ),
    one!(
        "proxy_ssl",
        "off",
        Apply::Flag(|s| &mut s.stream.proxy_ssl),
        "Connections to servers are under TLS."
    ),
];

pub(crate) const BEGINNING: &[Directive] = &[
    one!(
        "proxy_protocol_timeout",
        "30s",
        Apply::Milliseconds(|s| &mut s.stream.proxy_header_timeout),
        "Longest time until the header of the PROXY protocol is whole."
    ),
    one!(
        "ssl_handshake_timeout",
        "60s",
        Apply::Milliseconds(|s| &mut s.stream.handshake_timeout),
        "Longest handshake of TLS with a client."
    ),
    once(
        "ssl_alpn",
        STREAM_LEVELS,
        Arity::AtLeast(1),
        "",
        Apply::With(block::alpn),
        "Protocols that clients are offered by ALPN; one that offers others is refused.",
    ),
    one!(
        "ssl_preread",
        "off",
        Apply::Flag(|s| &mut s.stream.preread),
        "The ClientHello is read for $ssl_preread_server_name and its like, and passed on as it is."
    ),
    one!(
        "preread_buffer_size",
        "16k",
        Apply::Size(|s| &mut s.stream.preread_buffer_size),
        "Most bytes that are looked at before they are passed on."
    ),
    one!(
        "preread_timeout",
        "30s",
        Apply::Milliseconds(|s| &mut s.stream.preread_timeout),
        "Longest time until these have come."
    ),
];
