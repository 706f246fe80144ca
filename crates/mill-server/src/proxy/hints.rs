//! 103 (Early Hints, RFC 8297) of a server on its way to the client: `early_hints`.

use super::http;
use crate::local::Local;
use crate::request::Request;
use crate::response::{FieldLine, FieldText};
use crate::variables;
use mill_config::config::pass::PassProtocol;
use mill_config::config::settings::PassSettings;
use mill_http::field::{Field, KnownField};
use mill_http::version::Version;
use mill_runtime::engine::Engine;
use std::sync::Arc;

/// Whether the client gets them: one of the texts of `early_hints` is neither empty nor 0.
pub(super) fn are_passed<E: Engine>(
    protocol: PassProtocol,
    request: &mut Request,
    local: &Local<E>,
) -> bool {
    if request.location.headers.early_hints.is_empty()
        || protocol != PassProtocol::Http
        || request.message.head.version == Version::Http10
    {
        return false;
    }
    let headers = Arc::clone(&request.location.headers);
    headers.early_hints.iter().any(|condition| {
        let value = variables::evaluate(condition, request, local);
        !value.is_empty() && value != b"0"
    })
}

/// The fields that the client gets of a head's: neither those of the connection nor hidden ones.
pub(super) fn lines(fields: &[Field], bytes: &[u8], settings: &PassSettings) -> Vec<FieldLine> {
    let lists = fields
        .iter()
        .filter(|field| field.known == KnownField::Connection);
    let lists: Vec<&[u8]> = lists.map(|field| field.value.of(bytes)).collect();
    let is_passed = |field: &&Field| {
        let name = field.name.of(bytes);
        !is_of_connection(field.known)
            && !lists.iter().any(|list| http::has_option(list, name))
            && !settings.hides(PassProtocol::Http, name)
    };
    let line = |field: &Field| FieldLine {
        name: FieldText::copy(field.name.of(bytes)),
        value: FieldText::copy(field.value.of(bytes)),
    };
    fields.iter().filter(is_passed).map(line).collect()
}

/// Whether a field says how the message is framed, or concerns one connection only.
pub(super) const fn is_of_connection(known: KnownField) -> bool {
    matches!(
        known,
        KnownField::Connection
            | KnownField::KeepAlive
            | KnownField::ContentLength
            | KnownField::TransferEncoding
            | KnownField::Upgrade
    )
}
