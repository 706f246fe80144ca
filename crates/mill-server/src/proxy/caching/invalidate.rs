//! A request that changes something makes what is kept of its target useless: RFC 9111 4.4. nginx keeps it until it is
//! stale, so this is done where `cache_rules rfc9111` asks for it.

use super::super::target::Target;
use super::look_up::Looking;
use super::{forget, groups};
use crate::local::Local;
use crate::request::Request;
use crate::variables;
use mill_config::config::Variable;
use mill_config::config::settings::CacheRules;
use mill_http::caching::invalidation::{invalidated_targets, invalidates};
use mill_http::caching::uri_reference::BaseUri;
use mill_http::field::{Field, KnownField};
use mill_http::status::Status;
use mill_runtime::engine::Engine;

/// Removes what is kept of the request's target, and of those of the same origin that an answer with this status names.
pub(in crate::proxy) fn by_answer<E: Engine>(
    target: &Target,
    (status, fields, bytes): (u16, &[Field], &[u8]),
    request: &mut Request,
    local: &Local<E>,
) {
    let is_asked_for = request.location.caching.rules == CacheRules::Rfc9111;
    if !is_asked_for || !invalidates(request.method, Status(status)) {
        return;
    }
    let mut locations = fields.iter();
    let location = locations.find(|field| field.known == KnownField::Location);
    let location = location.map(|field| field.value.of(bytes));
    let own = target_of(request);
    let scheme = variables::value(&Variable::Scheme, request, local).map(|text| text.into_owned());
    let (path, query) = match own.iter().position(|byte| *byte == b'?') {
        Some(at) => (own.get(..at).unwrap_or_default(), own.get(at + 1..)),
        None => (own.as_slice(), None),
    };
    let authority = host(request);
    let base = BaseUri {
        scheme: scheme.as_deref().unwrap_or_default(),
        authority: &authority,
        path,
        query,
    };
    let mut targets = invalidated_targets(&base, location, content_location(fields, bytes));
    targets.push(own.clone());
    let origin = groups::origin(request, local);
    if let Some(mut own) = request.for_target(&own, local) {
        if let Some(looking) = Looking::begin(target, &mut own, local) {
            let lines = fields.iter();
            let lines = lines.map(|field| (field.name.of(bytes), field.value.of(bytes)));
            groups::invalidate(&looking, &origin, lines, local);
        }
        local.put_request(own);
    }
    for changed in targets {
        remove(&changed, target, request, local);
    }
}

fn remove<E: Engine>(changed: &[u8], target: &Target, request: &Request, local: &Local<E>) {
    let Some(mut other) = request.for_target(changed, local) else {
        return;
    };
    if let Some(looking) = Looking::begin(target, &mut other, local) {
        forget(&looking.zone, &looking.key, local);
    }
    local.put_request(other);
}

fn target_of(request: &Request) -> Vec<u8> {
    let message = &request.message;
    message.head.target.whole.of(&message.bytes).to_vec()
}

fn host(request: &Request) -> Vec<u8> {
    let message = &request.message;
    let host = message.head.value(KnownField::Host);
    host.map_or_else(Vec::new, |host| host.of(&message.bytes).to_vec())
}

fn content_location<'a>(fields: &[Field], bytes: &'a [u8]) -> Option<&'a [u8]> {
    let mut fields = fields.iter();
    let field = fields.find(|field| is_content_location(field, bytes))?;
    Some(field.value.of(bytes))
}

fn is_content_location(field: &Field, bytes: &[u8]) -> bool {
    let name = field.name.of(bytes);
    field.known == KnownField::Other && name.eq_ignore_ascii_case(b"Content-Location")
}
