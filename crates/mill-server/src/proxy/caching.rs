//! `…_cache`: a request is answered with what is kept, or its answer is kept.
//!
//! The way: `look_up` (the zone and the key; an answer that is kept, `serve`; or what a server is to be asked, and
//! by which request) → the tries of `proxy`, whose answer is looked at in `keep` (not modified, a fault that something stale is
//! better than, or a new answer) → `fill`, which brings the content into the zone, from where the client reads it.
//! `update` asks for what is stale behind the back of a client, `purge` removes.

/// What brings content into a zone.
mod fill;

/// What a change makes useless.
pub(super) mod invalidate;

/// Answers that become useless together.
mod groups;

/// What becomes of a server's answer.
mod keep;

/// A part is kept.
mod keep_part;

/// What is kept for a request.
mod look_up;

/// Fields that keys leave out.
mod overriding;

/// Removing.
mod purge;

/// Parts of answers.
pub(crate) mod parts;

/// What is kept is still valid.
mod renew;

/// The answer made of what is kept.
mod serve;

/// Asking without a client.
mod update;

/// Waiting for the answer to another request.
mod waiting;

pub(super) use fill::{Filling, ZoneFill};
pub(super) use keep::Verdict;
pub(super) use look_up::{LookedUp, look_up};
pub(super) use serve::offer_ranges;
pub(super) use update::NoClient;

use super::target::Target;
use crate::answer::Answer;
use crate::cache::note::{CacheNote, CacheOutcome};
use crate::cache::{CacheZone, Kept, Purge, StoredAnswer};
use crate::local::{AnswerOf, Local};
use crate::request::Request;
use mill_cache::{FillTicket, PurgeMode};
use mill_config::config::settings::{CacheRules, CacheSettings};
use mill_http::caching::reuse::StaleReuse;
use mill_http::field::KnownField;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::rc::Rc;
use std::sync::Arc;

/// A request that goes to a server although its location has a cache.
#[derive(Debug)]
pub(super) struct Caching {
    zone: Arc<CacheZone>,
    settings: Arc<CacheSettings>,
    rules: CacheRules,
    key: Rc<[u8]>,
    /// The right to keep the answer; without it the answer is only passed on.
    ticket: Option<FillTicket<StoredAnswer>>,
    /// What is kept and stale, and what it may still be used for.
    stale: Option<(Arc<Kept>, Option<StaleReuse>)>,
    /// What else the server is asked about: it is kept for other requests.
    others: Vec<Arc<Kept>>,
    /// Unix seconds when the server was asked.
    asked_at: i64,
    /// What the server is asked.
    pub(super) question: Question,
}

/// How the question to a server differs from what the client has asked, so that its answer can be kept.
#[derive(Debug, Default)]
pub(super) struct Question {
    /// GET in the place of HEAD.
    pub(super) as_get: bool,
    /// Conditions and ranges are the client's: the server is asked for all.
    pub(super) is_whole: bool,
    /// Is what we have still valid? (RFC 9110 13.1.2, 13.1.3)
    pub(super) etag: Option<Box<[u8]>>,
    pub(super) last_modified: Option<Box<[u8]>>,
}

impl Question {
    /// Whether the client's field of this kind is left out.
    pub(super) const fn hides(&self, known: KnownField) -> bool {
        self.is_whole && CONDITIONS & known.bit() != 0
    }

    /// Passes the fields on that ask whether what we have is still valid.
    pub(super) fn emit_conditions(&self, mut emit: impl FnMut(&[u8], &[u8])) {
        if let Some(etag) = &self.etag {
            emit(b"If-None-Match", etag);
        }
        if let Some(date) = &self.last_modified {
            emit(b"If-Modified-Since", date);
        }
    }

    /// Asks for all, whatever we have.
    pub(super) fn forget_conditions(&mut self) {
        self.etag = None;
        self.last_modified = None;
    }

    /// Whether 304 would be an answer to us.
    pub(super) const fn is_conditional(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }
}

impl Caching {
    /// What was said to be kept is not: it is no answer to a client.
    pub(super) fn keep_nothing(&mut self, request: &mut Request) {
        note(request, |note| note.storing = None);
        self.give_up_ticket();
    }

    /// Another one keeps this answer, or none.
    fn give_up_ticket(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            ticket.not_stored();
        }
    }
}

/// Takes all that is kept for a key away: the answers, and what is kept beside them.
pub(super) fn forget<E: Engine>(zone: &CacheZone, key: &[u8], local: &Local<E>) {
    // What the disk refuses is logged.
    let _ = zone.purge(Purge::Key(key), PurgeMode::Remove, local);
}

/// nginx: fields that are not passed on where there is a cache.
const CONDITIONS: u64 = KnownField::IfMatch.bit()
    | KnownField::IfModifiedSince.bit()
    | KnownField::IfNoneMatch.bit()
    | KnownField::IfRange.bit()
    | KnownField::IfUnmodifiedSince.bit()
    | KnownField::Range.bit();

/// Notes what became of a request.
fn note(request: &mut Request, change: impl FnOnce(&mut CacheNote)) {
    if let Some(note) = &mut request.cached {
        change(note);
    }
}

/// Answers with what a server has said to be still valid, as it is kept on.
pub(super) fn serve_renewed<E: Engine>(
    kept: &Arc<Kept>,
    target: &Target,
    request: &mut Request,
    local: &Local<E>,
) -> AnswerOf<E> {
    note(request, |note| {
        note.outcome = CacheOutcome::Revalidated;
        note.found = Some(Arc::clone(kept));
    });
    // It is whole, or the server would not have been asked about it: it can be read.
    serve::answer(kept, target, request, local).unwrap_or(Answer::Status(Status::BAD_GATEWAY))
}

/// Answers with something stale, for servers have failed. `None` where its content cannot be read any more: then the failure
/// itself is the answer.
pub(super) fn serve_stale<E: Engine>(
    kept: &Arc<Kept>,
    target: &Target,
    request: &mut Request,
    local: &Local<E>,
) -> Option<AnswerOf<E>> {
    let before = request.cached.as_ref().map(|note| note.outcome);
    set_outcome(request, CacheOutcome::Stale);
    let answer = serve::answer(kept, target, request, local);
    if let (None, Some(before)) = (&answer, before) {
        set_outcome(request, before);
    }
    answer
}

fn set_outcome(request: &mut Request, outcome: CacheOutcome) {
    note(request, |note| note.outcome = outcome);
}
