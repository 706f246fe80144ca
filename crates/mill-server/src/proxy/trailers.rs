//! What follows the chunks of a server's answer: `proxy_pass_trailers`.

use super::{hints, http};
use crate::request::Request;
use crate::response::{FieldLine, FieldText};
use mill_config::config::pass::PassProtocol;
use mill_config::config::settings::PassSettings;
use mill_http::field::{KnownField, is_token_byte};
use mill_http::version::Version;

/// Whether trailers are read, for the client and for `$upstream_trailer_…`.
pub(super) fn are_kept(protocol: PassProtocol, settings: &PassSettings) -> bool {
    settings.pass_trailers && protocol == PassProtocol::Http
}

/// Whether the client takes trailers (RFC 9110 6.5.1): in HTTP/2 they need no other framing.
pub(super) fn are_wanted(request: &Request) -> bool {
    match request.message.head.version {
        Version::Http2 => true,
        Version::Http11 => are_asked_for(request),
        Version::Http10 => false,
    }
}

/// Whether the client says so.
pub(super) fn are_asked_for(request: &Request) -> bool {
    let message = &request.message;
    let mut fields = message.head.fields.iter();
    fields.any(|field| {
        let value = field.value.of(&message.bytes);
        field.known == KnownField::Te && http::has_option(value, b"trailers")
    })
}

/// The trailers in these bytes, which the coding's rules hold for already, that the client gets: not hidden ones, nor
/// those whose name is none, nor those that a recipient could take for the framing or the way of the message (RFC 9110 6.5.1).
pub(super) fn lines(bytes: &[u8], settings: &PassSettings) -> Vec<FieldLine> {
    let lines = fields(bytes).filter_map(|(name, value)| {
        let known = KnownField::parse(name);
        let is_passed = name.iter().all(|byte| is_token_byte(*byte))
            && !hints::is_of_connection(known)
            && !matches!(known, KnownField::Host | KnownField::Te)
            && !name.eq_ignore_ascii_case(b"Trailer")
            && !settings.hides(PassProtocol::Http, name);
        is_passed.then(|| FieldLine {
            name: FieldText::copy(name),
            value: FieldText::copy(value),
        })
    });
    lines.collect()
}

/// Names and values.
pub(super) fn fields(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((line.get(..colon)?, line.get(colon + 1..)?.trim_ascii()))
    })
}
