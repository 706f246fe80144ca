//! Groups (RFC 9875): answers of one origin that become useless together. They are tags, in which the origin stands before the
//! group's name; no tag of `cache_tags` is one of them.

use super::look_up::Looking;
use crate::cache::Purge;
use crate::local::Local;
use crate::request::Request;
use crate::variables;
use mill_cache::PurgeMode;
use mill_config::config::Variable;
use mill_http::caching::tags::{TagForm, Tags};
use mill_http::field::KnownField;
use mill_runtime::engine::Engine;

/// Where tags of groups begin. No field has this byte.
const MARK: &[u8] = b"\0group ";

/// The origin of the request's target, as it stands in tags: a scheme and an authority, without regard to case.
pub(super) fn origin<E: Engine>(request: &mut Request, local: &Local<E>) -> Vec<u8> {
    let scheme = variables::value(&Variable::Scheme, request, local);
    let mut origin = scheme.map_or_else(Vec::new, |scheme| scheme.into_owned());
    origin.extend_from_slice(b"://");
    let message = &request.message;
    if let Some(host) = message.head.value(KnownField::Host) {
        origin.extend_from_slice(host.of(&message.bytes));
    }
    origin.make_ascii_lowercase();
    origin
}

fn tag(origin: &[u8], group: &[u8]) -> Box<[u8]> {
    [MARK, origin, b" ", group].concat().into()
}

/// Adds the groups of an answer with these field lines.
pub(super) fn add<'a, E: Engine>(
    lines: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    request: &mut Request,
    local: &Local<E>,
    tags: &mut Tags,
) {
    let mut groups = Tags::default();
    for (_, value) in lines.filter(|(name, _)| name.eq_ignore_ascii_case(b"Cache-Groups")) {
        groups.add(TagForm::Strings, value);
    }
    if groups.tags.is_empty() {
        return;
    }
    let origin = origin(request, local);
    let groups = groups.tags.iter();
    tags.tags.extend(groups.map(|group| tag(&origin, group)));
}

/// Removes all of the groups that an answer with these field lines names (RFC 9875 3), and all that share a group with what is kept
/// in memory for the same key, which becomes invalid (RFC 9875 2.2).
pub(super) fn invalidate<'a, E: Engine>(
    looking: &Looking,
    origin: &[u8],
    lines: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    local: &Local<E>,
) {
    let zone = &looking.zone;
    let store = zone.store(local);
    let named = Tags::invalidated(lines);
    let mut tags: Vec<Box<[u8]>> = named.tags.iter().map(|group| tag(origin, group)).collect();
    if let Ok(key) = store.key(&looking.key)
        && let Some(kept) = store.find(key, |_| true)
    {
        let groups = kept.tags().filter(|tag| tag.starts_with(MARK));
        tags.extend(groups.map(Box::from));
    }
    for tag in tags {
        // What the disk refuses is logged.
        let _ = zone.purge(Purge::Tag(&tag), PurgeMode::Remove, local);
    }
}
