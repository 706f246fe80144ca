//! Heads of requests: `client_header_*`, `large_client_header_buffers`, and limits of fields.

use std::time::Duration;

use crate::config::settings::group;
use crate::directive::{Apply, Arity, Directive, HTTP_SERVER, once};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::value;

group! {
    /// Heads of requests. They are read before a location is known: until the Host field is read, the settings of the
    /// default server of the address apply.
    ClientHeaderSettings {
        /// `client_header_timeout`, for the whole head.
        timeout: Duration = Duration::from_secs(60),
        /// `client_header_buffer_size` in bytes.
        buffer_size: u64 = 1 << 10,
        /// `large_client_header_buffers`: number.
        large_buffers: u64 = 4,
        /// `large_client_header_buffers`: bytes of each; the longest request line and field.
        large_buffer_size: u64 = 8 << 10,
        /// `max_headers`: fields in a request.
        max_headers: u64 = 1000,
        /// `ignore_invalid_headers`.
        ignore_invalid: bool = true,
        /// `accept_bare_lf`: lines of a head may end in LF alone.
        accept_bare_lf: bool = false,
        /// `underscores_in_headers`.
        underscores: bool = false,
        /// `merge_slashes`.
        merge_slashes: bool = true,
    }
}

pub(crate) const DIRECTIVES: &[Directive] = &[
    once(
        "client_header_timeout",
        HTTP_SERVER,
        Arity::Exactly(1),
        "60s",
        Apply::Milliseconds(|s| &mut s.client_header.timeout),
        "Longest time for the head of a request; then 408.",
    ),
    once(
        "client_header_buffer_size",
        HTTP_SERVER,
        Arity::Exactly(1),
        "1k",
        Apply::Size(|s| &mut s.client_header.buffer_size),
        "First buffer for the head of a request.",
    ),
    once(
        "large_client_header_buffers",
        HTTP_SERVER,
        Arity::Exactly(2),
        "4 8k",
        Apply::With(large_buffers),
        "Number and size of buffers for long heads: the longest request line (414) and field (400).",
    ),
    once(
        "max_headers",
        HTTP_SERVER,
        Arity::Exactly(1),
        "1000",
        Apply::Number(|s| &mut s.client_header.max_headers),
        "Most fields in a request.",
    ),
    once(
        "ignore_invalid_headers",
        HTTP_SERVER,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.client_header.ignore_invalid),
        "Ignore fields with odd names.",
    ),
    once(
        "underscores_in_headers",
        HTTP_SERVER,
        Arity::Exactly(1),
        "off",
        Apply::Flag(|s| &mut s.client_header.underscores),
        "Let field names with underscores in.",
    ),
    once(
        "merge_slashes",
        HTTP_SERVER,
        Arity::Exactly(1),
        "on",
        Apply::Flag(|s| &mut s.client_header.merge_slashes),
        "Take several slashes in a path for one.",
    ),
];

/// Smaller buffers cannot contain a request line; nginx refuses sizes below its connection pool's, which is the same.
const LARGE_BUFFER_BYTES_MIN: u64 = 512;

fn large_buffers(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let (number, size) = (statement.arg(1), statement.arg(2));
    let count = value::number(&number.bytes).filter(|&count| count > 0);
    let count = count.ok_or_else(|| resolver.refused_at(statement, number, "invalid value"))?;
    let bytes = value::size(&size.bytes).filter(|&bytes| bytes > 0);
    let bytes = bytes.ok_or_else(|| resolver.refused_at(statement, size, "invalid value"))?;
    if bytes < LARGE_BUFFER_BYTES_MIN {
        let message = format!(
            "the \"large_client_header_buffers\" size must be at least {LARGE_BUFFER_BYTES_MIN}"
        );
        return Err(resolver.emerg(statement, size, message));
    }
    resolver.level.settings.client_header.large_buffers = Some(count);
    resolver.level.settings.client_header.large_buffer_size = Some(bytes);
    Ok(())
}
