//! What is kept is still valid: a 304 to our own question, or the answer to a HEAD says so (RFC 9111 4.3.3 to 4.3.5).

use super::keep::{Said, directives_of};
use super::{Caching, forget};
use crate::cache::{self, Kept, Purge, StoredAnswer};
use crate::local::Local;
use crate::proxy::answer::AnswerHead;
use crate::request::Request;
use mill_cache::{Arrival, Claim, FillTicket, PurgeMode};
use mill_config::config::settings::{CacheRules, PassSettings};
use mill_http::caching::freshness::Freshness;
use mill_http::caching::nginx_validity::NginxValidity;
use mill_http::caching::response_directives::ResponseDirectives;
use mill_http::caching::stored_fields::updated_fields;
use mill_http::caching::validation::{
    HeadEffect, ResponseValidators, Selection, head_effect, select_validated,
};
use mill_http::caching::vary::Vary;
use mill_http::field::Field;
use mill_http::h1::response::Framing;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::sync::Arc;

impl Caching {
    /// Whether this is a 304 that validates nothing of what it was asked about: the server is asked again without conditions
    /// (RFC 9111 4.3.4). nginx looks at no validators of a 304.
    pub(in crate::proxy) fn is_of_another(
        &self,
        answer: &AnswerHead,
        fields: &[Field],
        now: i64,
    ) -> bool {
        let is_ours =
            answer.head.status == Status::NOT_MODIFIED.0 && self.question.is_conditional();
        if !is_ours || self.rules != CacheRules::Rfc9111 || self.asked_about().next().is_none() {
            return false;
        }
        self.validated(&Said::new(answer, fields), now).is_none()
    }

    /// What the server was asked about; what is stale comes first.
    fn asked_about(&self) -> impl Iterator<Item = &Arc<Kept>> {
        let stale = self.stale.iter().map(|(kept, _)| kept);
        stale.chain(&self.others)
    }

    /// Which of what it was asked about a 304 is about (RFC 9111 4.3.4).
    fn validated(&self, said: &Said<'_>, now: i64) -> Option<&Arc<Kept>> {
        let told = validators_of(said, now);
        let known: Vec<_> = self
            .asked_about()
            .map(|kept| kept.meta().validators())
            .collect();
        let index = match select_validated(&known, &told) {
            Selection::AllSameStrongly => {
                known.iter().position(|one| one.is_same_strongly(&told))?
            }
            Selection::One(index) => index,
            Selection::None => return None,
        };
        self.asked_about().nth(index)
    }

    /// What is kept is still valid (304): it is kept on, as fresh as that says. `None` if there is nothing.
    pub(super) fn renew<E: Engine>(
        &mut self,
        said: &Said<'_>,
        settings: &PassSettings,
        request: &mut Request,
        local: &Local<E>,
    ) -> Option<Arc<Kept>> {
        if self.rules == CacheRules::Nginx {
            let kept = Arc::clone(&self.stale.as_ref()?.0);
            let stored = self.renewed_by_nginx(kept.meta(), said, settings, request, local);
            let ticket = self.ticket.take()?;
            return Some(self.refresh(ticket, &kept, stored, request, local));
        }
        let now = local.scheduler.wall_clock().seconds;
        let kept = Arc::clone(self.validated(said, now)?);
        let is_own = self
            .stale
            .as_ref()
            .is_some_and(|(stale, _)| Arc::ptr_eq(stale, &kept));
        let Some(stored) = self.renewed(kept.meta(), is_own, said, request, local) else {
            // It answers this request, which has validated it, and no other.
            forget(&self.zone, kept.key(), local);
            self.give_up_ticket();
            return Some(kept);
        };
        let ticket = self.ticket.take()?;
        let renewed = match is_own {
            true => self.refresh(ticket, &kept, stored, request, local),
            false => self.share(ticket, &kept, stored, request, local),
        };
        self.renew_others(said, request, local);
        Some(renewed)
    }

    /// RFC 9111 4.3.4: a 304 with a strong validator renews all that have the same.
    fn renew_others<E: Engine>(&self, said: &Said<'_>, request: &mut Request, local: &Local<E>) {
        let now = local.scheduler.wall_clock().seconds;
        let validators = validators_of(said, now);
        if !validators.has_strong() {
            return;
        }
        let store = self.zone.store(local);
        for _ in 0..store.limits().variants {
            let is_another = |stored: &StoredAnswer| {
                let is_older = stored.freshness.response_time < now;
                is_older && stored.validators().is_same_strongly(&validators)
            };
            let Ok(key) = store.key(&self.key) else {
                return;
            };
            let Some(kept) = store.find(key, is_another) else {
                return;
            };
            // For which requests it would be from now on, only one of them could tell.
            let stored = self.renewed(kept.meta(), true, said, request, local);
            let stored = stored.filter(|stored| stored.vary == kept.meta().vary);
            let (Some(stored), Claim::Fill(ticket)) = (stored, store.claim(key, cache::now(local)))
            else {
                return;
            };
            self.refresh(ticket, &kept, stored, request, local);
        }
    }

    /// RFC 9111 4.3.5: what a HEAD says of what is kept for GET.
    pub(super) fn heed_head<E: Engine>(
        &self,
        said: &Said<'_>,
        request: &mut Request,
        local: &Local<E>,
    ) {
        let store = match self.zone.known() {
            Some(store) if self.rules == CacheRules::Rfc9111 => store,
            _ => return,
        };
        let Ok(key) = store.key(&self.key) else {
            return;
        };
        let Some(kept) = store.find(key, |stored| stored.fits(request)) else {
            return;
        };
        if kept.meta().freshness.response_time >= self.asked_at {
            // It came after this was asked: a purge may have come between, and what is told may be older.
            return;
        }
        let now = local.scheduler.wall_clock().seconds;
        let effect = match kept.meta().head.status == Status::OK.0 {
            true => head_effect(
                &kept.meta().validators(),
                kept.content().len(),
                Status(said.head.status),
                &validators_of(said, now),
                announced_length(said),
            ),
            false if said.head.status == Status::OK.0 => HeadEffect::Invalidate,
            false => HeadEffect::None,
        };
        match effect {
            HeadEffect::None => {}
            HeadEffect::Invalidate => {
                // What the disk refuses is logged.
                let _ = self
                    .zone
                    .purge(Purge::Key(&self.key), PurgeMode::Invalidate, local);
            }
            HeadEffect::Update => {
                if let Some(stored) = self.renewed(kept.meta(), true, said, request, local)
                    && let Claim::Fill(ticket) = store.claim(key, cache::now(local))
                {
                    self.refresh(ticket, &kept, stored, request, local);
                }
            }
        }
    }

    /// Keeps the same content on under another head.
    fn refresh<E: Engine>(
        &self,
        ticket: FillTicket<StoredAnswer>,
        kept: &Arc<Kept>,
        stored: StoredAnswer,
        request: &mut Request,
        local: &Local<E>,
    ) -> Arc<Kept> {
        let tags = self.tags(stored.lines(), request, local);
        let tags: Vec<&[u8]> = tags.tags.iter().map(|tag| &**tag).collect();
        let renewed = ticket.refresh(kept, arrival(stored, &tags, local));
        self.zone.stored(&renewed, local);
        renewed
    }

    /// Keeps the same content for this request, too, under a head of its own.
    fn share<E: Engine>(
        &self,
        ticket: FillTicket<StoredAnswer>,
        kept: &Arc<Kept>,
        stored: StoredAnswer,
        request: &mut Request,
        local: &Local<E>,
    ) -> Arc<Kept> {
        let tags = self.tags(stored.lines(), request, local);
        let tags: Vec<&[u8]> = tags.tags.iter().map(|tag| &**tag).collect();
        let is_replaced = |known: &StoredAnswer| known.fits(request);
        let shared = ticket.share(kept, arrival(stored, &tags, local), is_replaced);
        self.zone.stored(&shared, local);
        shared
    }

    /// As RFC 9111 has it, for the requests that it was kept for (`is_own`) or for this one; `None` if it may not be kept on.
    fn renewed<E: Engine>(
        &self,
        old: &StoredAnswer,
        is_own: bool,
        said: &Said<'_>,
        request: &Request,
        local: &Local<E>,
    ) -> Option<StoredAnswer> {
        let now = local.scheduler.wall_clock().seconds;
        let directives = directives_of(said, request);
        let before: Vec<_> = old.lines().collect();
        let update: Vec<_> = said.lines().collect();
        let lines = updated_fields(&before, &update, &directives);
        let lines = lines.iter().copied();
        let directives = ResponseDirectives::of_fields(lines.clone());
        let status = Status(old.head.status);
        let freshness = self.rfc_freshness(status, lines.clone(), &directives, now);
        let vary = Vary::of_fields(lines.clone());
        self.rfc_may_store((&directives, false), &freshness, &vary, request)
            .ok()?;
        if is_own && vary == old.vary {
            return Some(old.renewed(lines, freshness));
        }
        Some(StoredAnswer::new(
            old.head, &old.bytes, lines, freshness, vary, request,
        ))
    }

    fn renewed_by_nginx<E: Engine>(
        &self,
        old: &StoredAnswer,
        said: &Said<'_>,
        settings: &PassSettings,
        request: &Request,
        local: &Local<E>,
    ) -> StoredAnswer {
        let now = local.scheduler.wall_clock().seconds;
        let status = Status(old.head.status);
        let validity = match self.nginx_validity_said(said, settings, now) {
            Some(validity) => Ok(validity),
            None => self.nginx_validity(status, old.lines(), settings, now),
        };
        let freshness = match validity {
            Ok(validity) => Freshness::of_nginx(status, old.lines(), &validity, now),
            Err(_) => old.freshness,
        };
        let vary = Vary::of_fields(old.lines());
        StoredAnswer::new(old.head, &old.bytes, old.lines(), freshness, vary, request)
    }

    /// What the fields of a 304 themselves say, in nginx's way.
    fn nginx_validity_said(
        &self,
        said: &Said<'_>,
        settings: &PassSettings,
        now: i64,
    ) -> Option<NginxValidity> {
        let validity = self.nginx_validity(Status(said.head.status), said.lines(), settings, now);
        validity
            .ok()
            .filter(|validity| validity.source.is_explicit())
    }
}

fn arrival<'a, E: Engine>(
    meta: StoredAnswer,
    tags: &'a [&'a [u8]],
    local: &Local<E>,
) -> Arrival<'a, StoredAnswer> {
    Arrival {
        meta,
        tags,
        length: None,
        length_max: u64::MAX,
        now: cache::now(local),
    }
}

fn validators_of<'a>(said: &'a Said<'_>, now: i64) -> ResponseValidators<'a> {
    ResponseValidators::of_fields(said.lines(), now)
}

/// What a HEAD says of the length that GET would have.
fn announced_length(said: &Said<'_>) -> Option<u64> {
    if let Framing::Length(len) = said.head.framing {
        return Some(len);
    }
    let mut lines = said.lines();
    let (_, value) = lines.find(|(name, _)| name.eq_ignore_ascii_case(b"Content-Length"))?;
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}
