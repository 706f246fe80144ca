//! What is kept for a request, and else which request asks a server.

/// How a server is asked.
mod asking;

/// The zone and the key.
mod beginning;

/// What is to be done with what is kept.
mod judgement;

use super::super::target::Target;
use super::waiting::{Waited, answer_collapsed};
use super::{Caching, parts, purge, serve, update};
use crate::answer::Answer;
use crate::cache::note::{CacheNote, CacheOutcome};
use crate::cache::{self, CacheZone, Kept, StoredAnswer};
use crate::exchange::Exchange;
use crate::local::{AnswerOf, Local};
use crate::proxy::fault::CLIENT_CLOSED_REQUEST;
use crate::request::Request;
use crate::variables;
use judgement::Judgement;
use mill_cache::{Claim, FillTicket};
use mill_config::config::Template;
use mill_config::config::settings::{CacheRules, CacheSettings};
use mill_http::caching::request_directives::RequestDirectives;
use mill_http::caching::reuse::{ForwardReason, StaleReuse};
use mill_http::field::KnownField;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// The result of a look-up.
pub(in crate::proxy) enum LookedUp<E: Engine> {
    /// The location has no cache for such requests.
    Uncached,
    Answered(AnswerOf<E>),
    /// A server is to be asked.
    Ask(Box<Caching>),
}

/// Answers the request from its location's cache, or says how a server is to be asked.
pub(in crate::proxy) async fn look_up<X: Exchange>(
    target: &Target,
    exchange: &mut X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> LookedUp<X::Engine> {
    let Some(mut looking) = Looking::begin(target, request, local) else {
        return LookedUp::Uncached;
    };
    if let Some(answer) = purge::answer(&looking, request, local) {
        return LookedUp::Answered(answer);
    }
    if !looking.settings.takes_method(request.method_name()) {
        return LookedUp::Uncached;
    }
    let (zone, key) = (Arc::clone(&looking.zone), Rc::clone(&looking.key));
    request.cached = Some(Box::new(CacheNote::new(zone, key)));
    let settings = Arc::clone(&looking.settings);
    if is_any_true(&settings.bypass, request, local) {
        return looking.bypass(request, local);
    }
    match looking.find(target, exchange, request, local).await {
        Some(answer) => LookedUp::Answered(answer),
        None => LookedUp::Ask(looking.into_caching(request, local)),
    }
}

/// A look-up under way.
pub(super) struct Looking {
    pub(super) zone: Arc<CacheZone>,
    pub(super) settings: Arc<CacheSettings>,
    pub(super) rules: CacheRules,
    pub(super) key: Rc<[u8]>,
    directives: RequestDirectives,
    ticket: Option<FillTicket<StoredAnswer>>,
    stale: Option<(Arc<Kept>, Option<StaleReuse>)>,
    /// Nothing is kept, and the range that is asked for begins too far behind: it is passed on, and its answer not kept.
    passes_range: bool,
    /// The zone's folder was looked into, or has nothing.
    is_disk_tried: bool,
    /// Something is kept, and nothing of it is for requests with such fields (`Vary`).
    has_others: bool,
}

/// What one look has found.
enum Looked<E: Engine> {
    Answered(AnswerOf<E>),
    /// A server is asked, by this request.
    Decided,
    /// A server is asked, by one request of those that look for the same.
    Missing,
    /// The zone's folder may have it.
    OnDisk,
}

impl Looking {
    fn follows_rfc(&self) -> bool {
        self.rules == CacheRules::Rfc9111
    }

    /// `no-cache` of the request, where it counts.
    fn wants_validation(&self) -> bool {
        self.follows_rfc() && self.directives.no_cache
    }

    /// `…_cache_max_range_offset`.
    fn is_far_range(&self, request: &Request) -> bool {
        let message = &request.message;
        let range = message.head.value(KnownField::Range);
        let Some(range) = range.map(|range| range.of(&message.bytes)) else {
            return false;
        };
        let first = range.strip_prefix(b"bytes=").and_then(|ranges| {
            let digits = ranges.split(|byte| !byte.is_ascii_digit()).next()?;
            std::str::from_utf8(digits).ok()?.parse::<u64>().ok()
        });
        first.is_some_and(|first| first >= self.settings.max_range_offset)
    }

    /// The answer comes from a server, whatever is kept, and takes its place.
    fn bypass<E: Engine>(mut self, request: &mut Request, local: &Local<E>) -> LookedUp<E> {
        super::note(request, |note| {
            note.outcome = CacheOutcome::Bypass;
            note.forwarded = Some(ForwardReason::Bypass);
        });
        if let Claim::Fill(ticket) = self.claim(local) {
            self.ticket = Some(ticket);
        }
        LookedUp::Ask(self.into_caching(request, local))
    }

    fn claim<E: Engine>(&self, local: &Local<E>) -> Claim<StoredAnswer> {
        let store = self.zone.store(local);
        match store.key(&self.key) {
            Ok(key) => store.claim(key, cache::now(local)),
            Err(_) => Claim::Pass,
        }
    }

    fn kept<E: Engine>(&mut self, request: &mut Request, local: &Local<E>) -> Option<Arc<Kept>> {
        let store = self.zone.store(local);
        let key = store.key(&self.key).ok()?;
        // A purge by another worker that comes behind this makes what is kept ready of the answer look old.
        let generation = store.generation();
        let is_any = Cell::new(false);
        let kept = store.look_up(key, cache::now(local), |stored| {
            is_any.set(true);
            stored.fits(request)
        });
        let Some(kept) = kept else {
            self.has_others = is_any.get();
            return None;
        };
        super::note(request, |note| {
            note.found = Some(Arc::clone(&kept));
            note.generation = generation;
        });
        Some(kept)
    }

    /// An answer that is kept, perhaps after waiting for it; `None` where a server is to be asked.
    async fn find<X: Exchange>(
        &mut self,
        target: &Target,
        exchange: &mut X,
        request: &mut Request,
        local: &Local<X::Engine>,
    ) -> Option<AnswerOf<X::Engine>> {
        let waits = self.settings.lock || self.follows_rfc();
        let begun = local.scheduler.now();
        let mut unused = None;
        loop {
            let mut is_on_disk = false;
            match self.look(target, request, local) {
                Looked::Answered(answer) => return Some(answer),
                Looked::Decided => return None,
                Looked::Missing => {}
                Looked::OnDisk => is_on_disk = true,
            }
            let claim = match unused.take() {
                Some(ticket) => Claim::Fill(ticket),
                None => self.claim(local),
            };
            let waiting = match claim {
                Claim::Fill(ticket) if is_on_disk => {
                    unused = self.restore(ticket, request, local).await;
                    continue;
                }
                Claim::Fill(ticket) => {
                    self.ticket = Some(ticket);
                    return None;
                }
                Claim::Wait(waiting) if waits || is_on_disk => waiting,
                Claim::Pass if is_on_disk => {
                    self.is_disk_tried = true;
                    continue;
                }
                Claim::Wait(_) | Claim::Pass => return None,
            };
            let is_asked_before = waiting.since() < cache::at(request.started);
            match self.wait(waiting, begun, exchange, local).await {
                // RFC 9111 5.2.1.4: it validates nothing for a request that has come later.
                Waited::Stored(_) if is_asked_before && self.wants_validation() => {}
                Waited::Stored(kept) if kept.is_current() && kept.meta().fits(request) => {
                    let answer = answer_collapsed(&kept, target, request, local);
                    if answer.is_some() {
                        return answer;
                    }
                }
                Waited::Stored(kept) if kept.is_current() => return None,
                // It was not for long: purged, or too large.
                Waited::Stored(_) | Waited::Again => {}
                Waited::Alone => return None,
                Waited::ClientGone => {
                    request.sent.status = CLIENT_CLOSED_REQUEST.0;
                    return Some(Answer::Close);
                }
            }
        }
    }

    /// Looks at what is kept, once.
    fn look<E: Engine>(
        &mut self,
        target: &Target,
        request: &mut Request,
        local: &Local<E>,
    ) -> Looked<E> {
        self.stale = None;
        let Some(kept) = self.kept(request, local) else {
            if self.may_be_on_disk(local) {
                return Looked::OnDisk;
            }
            return self.miss(target, request, local);
        };
        match self.judge(&kept, local) {
            Judgement::Now(outcome) => {
                super::set_outcome(request, outcome);
                match serve::answer(&kept, target, request, local) {
                    Some(answer) => Looked::Answered(answer),
                    None => self.miss(target, request, local),
                }
            }
            Judgement::Unavailable => Looked::Answered(unavailable(request)),
            Judgement::WhileUpdating(reuse) => self
                .serve_while_updating(&kept, reuse, target, request, local)
                .map_or(Looked::Decided, Looked::Answered),
            Judgement::Ask(reason, reuse) => {
                super::note(request, |note| {
                    note.outcome = CacheOutcome::Expired;
                    note.forwarded = Some(reason);
                });
                self.stale = Some((kept, reuse));
                Looked::Missing
            }
        }
    }

    fn may_be_on_disk<E: Engine>(&self, local: &Local<E>) -> bool {
        let disk = self.zone.disk(local).filter(|_| !self.is_disk_tried);
        disk.is_some_and(|disk| disk.may_have(&self.key))
    }

    /// Reads what fits from the zone's folder into memory, once; the ticket is for asking a server if there is nothing.
    async fn restore<E: Engine>(
        &mut self,
        ticket: FillTicket<StoredAnswer>,
        request: &Request,
        local: &Local<E>,
    ) -> Option<FillTicket<StoredAnswer>> {
        self.is_disk_tried = true;
        match self.zone.disk(local) {
            Some(disk) => {
                let zone = self.zone.store(local);
                disk.restore(ticket, zone, request, local).await
            }
            None => Some(ticket),
        }
    }

    fn miss<E: Engine>(
        &mut self,
        target: &Target,
        request: &mut Request,
        local: &Local<E>,
    ) -> Looked<E> {
        let mut reason = match self.has_others {
            true => ForwardReason::VaryMiss,
            false => ForwardReason::UriMiss,
        };
        if self.follows_rfc() {
            match parts::answer(self, target, request, local) {
                parts::Found::Answered(answer) => return Looked::Answered(answer),
                parts::Found::Incomplete => reason = ForwardReason::Partial,
                parts::Found::Nothing => {}
            }
        }
        super::note(request, |note| {
            note.outcome = CacheOutcome::Miss;
            note.forwarded = Some(reason);
        });
        if self.follows_rfc() && self.directives.only_if_cached {
            return Looked::Answered(unavailable(request));
        }
        self.passes_range = self.is_far_range(request);
        let is_kept = !self.passes_range && self.zone.uses.reach(&self.key, self.settings.min_uses);
        match is_kept {
            true => Looked::Missing,
            false => Looked::Decided,
        }
    }

    /// Something stale, while one request asks for its successor. `None`: this is the one.
    fn serve_while_updating<E: Engine>(
        &mut self,
        kept: &Arc<Kept>,
        reuse: StaleReuse,
        target: &Target,
        request: &mut Request,
        local: &Local<E>,
    ) -> Option<AnswerOf<E>> {
        let ticket = match self.claim(local) {
            Claim::Fill(ticket) => ticket,
            Claim::Wait(_) | Claim::Pass => {
                super::set_outcome(request, CacheOutcome::Updating);
                return serve::answer(kept, target, request, local);
            }
        };
        self.stale = Some((Arc::clone(kept), Some(reuse)));
        self.ticket = Some(ticket);
        if self.settings.background_update || self.follows_rfc() {
            update::start(self, request, local);
            super::set_outcome(request, CacheOutcome::Stale);
            return serve::answer(kept, target, request, local);
        }
        super::note(request, |note| {
            note.outcome = CacheOutcome::Expired;
            note.forwarded = Some(ForwardReason::Stale);
        });
        None
    }
}

/// RFC 9111 5.2.1.7.
fn unavailable<File>(request: &mut Request) -> Answer<File> {
    super::note(request, |note| note.is_unavailable = true);
    Answer::Status(Status::GATEWAY_TIMEOUT)
}

/// Whether one of the conditions is neither empty nor `0`.
pub(super) fn is_any_true<E: Engine>(
    conditions: &[Template],
    request: &mut Request,
    local: &Local<E>,
) -> bool {
    conditions.iter().any(|condition| {
        let value = variables::evaluate(condition, request, local);
        !matches!(value.as_slice(), b"" | b"0")
    })
}
