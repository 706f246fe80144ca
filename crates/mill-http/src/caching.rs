//! The rules of HTTP caching as functions of what was said and when: RFC 9111 and what belongs to it, for a shared cache,
//! and nginx's own rules beside.
//!
//! Field lines come in as pairs of name and value. Times are Unix seconds, durations are seconds. Nothing here stores a
//! response; it says whether one may be stored, how long it is fresh, and what may be done with it.

/// The syntax of `Cache-Control`.
pub mod directive;
/// What a request asks of caches.
pub mod request_directives;
/// What a response asks of caches.
pub mod response_directives;
/// Structured fields.
mod structured;
/// Directives for caches of one kind.
pub mod targeted;

/// Age and lifetime.
pub mod freshness;
/// How long nginx would keep a response.
pub mod nginx_validity;
/// Parts of a representation.
pub mod partial;
/// Which fields of a response are stored, and which a validation replaces.
pub mod stored_fields;
/// Which responses may be stored.
pub mod storing;
/// Names under which responses are purged.
pub mod tags;
/// For which requests a stored response was made.
pub mod vary;

/// The member of `Cache-Status` that this cache adds.
pub mod cache_status;
/// What a request that changes something makes of stored responses.
pub mod invalidation;
/// Whether a stored response may be used.
pub mod reuse;
/// References to resources of the same origin.
pub mod uri_reference;
/// What to ask about stored responses, and which of them an answer concerns.
pub mod validation;
