//! What becomes of a server's answer: it is kept, it says that what is kept is still valid, or something stale is better.

use super::super::answer::AnswerHead;
use super::super::fault::Fault;
use super::{Caching, ZoneFill, groups, note, parts};
use crate::cache::note::Unstored;
use crate::cache::{self, Kept, StoredAnswer};
use crate::local::Local;
use crate::proxy::caching::look_up::is_any_true;
use crate::request::Request;
use mill_cache::{Arrival, ContentReader};
use mill_config::config::settings::{
    CacheRules, IgnoredFields as Ignored, NextUpstream, PassSettings,
};
use mill_http::caching::freshness::{ExchangeTimes, Freshness, LifetimeRules};
use mill_http::caching::nginx_validity::{
    ConfiguredValidity, IgnoredDirectives, IgnoredFields, NginxValidity, nginx_validity,
};
use mill_http::caching::request_directives::RequestDirectives;
use mill_http::caching::response_directives::ResponseDirectives;
use mill_http::caching::reuse::{Reuse, ReuseRules, may_reuse};
use mill_http::caching::stored_fields::StoredFields;
use mill_http::caching::storing::{
    RequestFacts, ResponseFacts, StoringRules, WhyNotStored, may_store,
};
use mill_http::caching::tags::{TagForm, Tags};
use mill_http::caching::targeted::targeted_directives;
use mill_http::caching::vary::Vary;
use mill_http::field::{Field, KnownField};
use mill_http::h1::response::ResponseHead;
use mill_http::method::Method;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::sync::Arc;

/// What becomes of it.
pub(in crate::proxy) enum Verdict {
    /// It goes to the client, and is kept if the zone takes it.
    Keep(Box<StoredAnswer>, Tags),
    /// It goes to the client.
    Pass,
    /// This one goes to the client in its place.
    Instead(Arc<Kept>),
}

/// The head of an answer.
pub(super) struct Said<'a> {
    pub(super) head: &'a ResponseHead,
    bytes: &'a [u8],
    fields: &'a [Field],
}

impl<'a> Said<'a> {
    pub(super) fn new(answer: &'a AnswerHead, fields: &'a [Field]) -> Self {
        Self {
            head: &answer.head,
            bytes: &answer.bytes,
            fields,
        }
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        let fields = self.fields.iter();
        fields.map(|field| (field.name.of(self.bytes), field.value.of(self.bytes)))
    }
}

impl Caching {
    /// Decides about an answer.
    pub(in crate::proxy) fn judge<E: Engine>(
        &mut self,
        answer: &AnswerHead,
        fields: &[Field],
        settings: &PassSettings,
        request: &mut Request,
        local: &Local<E>,
    ) -> Verdict {
        let said = Said::new(answer, fields);
        let status = answer.head.status;
        if status == Status::NOT_MODIFIED.0
            && self.question.is_conditional()
            && let Some(kept) = self.renew(&said, settings, request, local)
        {
            return Verdict::Instead(kept);
        }
        let is_named = self.settings.uses_stale_for(status);
        let kind = NextUpstream::status(status);
        if let Some(kept) = self.stale_for(kind, is_named, request, local) {
            return Verdict::Instead(kept);
        }
        if request.method == Method::Head && !self.question.as_get {
            self.heed_head(&said, request, local);
        }
        if status == Status::PARTIAL_CONTENT.0 && self.rules == CacheRules::Rfc9111 {
            return self.judge_part(&said, request, local);
        }
        let stored = match self.ticket {
            None => return Verdict::Pass,
            // It answers a condition that was not ours.
            Some(_) if status == Status::NOT_MODIFIED.0 => Err(Unstored::By(WhyNotStored::Status)),
            Some(_) if is_any_true(&self.settings.no_cache.clone(), request, local) => {
                Err(Unstored::Refused)
            }
            Some(_) => self.stored(&said, settings, request, local),
        };
        note(request, |note| {
            note.storing = Some(stored.as_ref().map(|_| ()).map_err(|why| *why));
        });
        match stored {
            Ok(stored) => {
                let tags = self.tags(stored.lines(), request, local);
                Verdict::Keep(Box::new(stored), tags)
            }
            Err(_) => {
                self.give_up_ticket();
                Verdict::Pass
            }
        }
    }

    /// Something stale that may be sent because servers have failed so.
    pub(in crate::proxy) fn stale_for_fault<E: Engine>(
        &self,
        fault: Fault,
        request: &mut Request,
        local: &Local<E>,
    ) -> Option<Arc<Kept>> {
        let kind = match fault {
            Fault::NoPeer => NextUpstream::ERROR,
            fault => fault.kind()?,
        };
        let is_named = self.settings.use_stale.contains(kind);
        self.stale_for(kind, is_named, request, local)
    }

    fn stale_for<E: Engine>(
        &self,
        kind: NextUpstream,
        is_named: bool,
        request: &mut Request,
        local: &Local<E>,
    ) -> Option<Arc<Kept>> {
        let (kept, reuse) = self.stale.as_ref()?;
        reuse.as_ref()?;
        let is_nginx = self.rules == CacheRules::Nginx;
        let is_failure = [
            NextUpstream::ERROR,
            NextUpstream::TIMEOUT,
            NextUpstream::INVALID_HEADER,
        ]
        .into_iter()
        .chain([500, 502, 503, 504].map(NextUpstream::status))
        .any(|failure| failure == kind);
        if !is_failure && !is_named {
            return None;
        }
        let rules = ReuseRules {
            ignores_request_directives: is_nginx,
            ignores_must_revalidate: is_nginx,
            uses_stale_while_revalidating: false,
            uses_stale_on_error: is_named,
        };
        let directives = RequestDirectives::of_fields(cache::field_lines(request));
        let now = local.scheduler.wall_clock().seconds;
        match may_reuse(&kept.meta().freshness, &directives, now, rules) {
            Reuse::Stale(stale) if stale.may_serve_on_error => Some(Arc::clone(kept)),
            _ => None,
        }
    }

    /// The answer as it is kept.
    fn stored<E: Engine>(
        &self,
        said: &Said<'_>,
        settings: &PassSettings,
        request: &Request,
        local: &Local<E>,
    ) -> Result<StoredAnswer, Unstored> {
        let now = local.scheduler.wall_clock().seconds;
        if self.rules == CacheRules::Nginx {
            let vary = Self::nginx_vary(said, settings);
            let status = Status(said.head.status);
            let validity = self.nginx_validity(status, said.lines(), settings, now);
            let validity = validity.map_err(Unstored::By)?;
            let freshness = Freshness::of_nginx(status, said.lines(), &validity, now);
            let lines = said.lines();
            return Ok(StoredAnswer::new(
                *said.head, said.bytes, lines, freshness, vary, request,
            ));
        }
        self.stored_by_rfc(said, false, request, local)
    }

    pub(super) fn stored_by_rfc<E: Engine>(
        &self,
        said: &Said<'_>,
        is_part: bool,
        request: &Request,
        local: &Local<E>,
    ) -> Result<StoredAnswer, Unstored> {
        let now = local.scheduler.wall_clock().seconds;
        let vary = Vary::of_fields(said.lines());
        let status = Status(said.head.status);
        let directives = directives_of(said, request);
        let freshness = self.rfc_freshness(status, said.lines(), &directives, now);
        self.rfc_may_store((&directives, is_part), &freshness, &vary, request)
            .map_err(Unstored::By)?;
        let filter = StoredFields::of_response(said.lines(), &directives);
        let lines = said.lines().filter(|(name, _)| filter.keeps(name));
        Ok(StoredAnswer::new(
            *said.head, said.bytes, lines, freshness, vary, request,
        ))
    }

    /// RFC 9111 3.
    pub(super) fn rfc_may_store(
        &self,
        (directives, is_part): (&ResponseDirectives, bool),
        freshness: &Freshness,
        vary: &Vary,
        request: &Request,
    ) -> Result<(), WhyNotStored> {
        let asked = RequestDirectives::of_fields(cache::field_lines(request));
        may_store(
            &RequestFacts {
                method: request.method,
                directives: &asked,
                has_authorization: request.message.head.has(KnownField::Authorization),
            },
            &ResponseFacts {
                directives,
                freshness,
                vary,
                is_single_range: is_part,
            },
            StoringRules {
                stores_parts: is_part,
                uses_stale: self.settings.uses_stale(),
                ignores_request_directives: false,
            },
        )
    }

    fn nginx_vary(said: &Said<'_>, settings: &PassSettings) -> Vary {
        match settings.ignore_headers.contains(Ignored::VARY) {
            true => Vary::None,
            false => Vary::of_fields(said.lines()),
        }
    }

    pub(super) fn nginx_validity<'a>(
        &self,
        status: Status,
        lines: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        settings: &PassSettings,
        now: i64,
    ) -> Result<NginxValidity, WhyNotStored> {
        let ignored = |field| settings.ignore_headers.contains(field);
        let ignored = IgnoredFields {
            x_accel_expires: ignored(Ignored::ACCEL_EXPIRES),
            expires: ignored(Ignored::EXPIRES),
            cache_control: ignored(Ignored::CACHE_CONTROL),
            set_cookie: ignored(Ignored::SET_COOKIE),
            vary: ignored(Ignored::VARY),
            directives: IgnoredDirectives {
                no_cache: ignored(Ignored::NO_CACHE),
                no_store: ignored(Ignored::NO_STORE),
                private: ignored(Ignored::PRIVATE),
                max_age: ignored(Ignored::MAX_AGE),
                s_maxage: ignored(Ignored::S_MAXAGE),
            },
        };
        nginx_validity(status, lines, ignored, &self.configured(status), now)
    }

    fn configured(&self, status: Status) -> Vec<ConfiguredValidity> {
        let time = self.settings.valid_for(status.0);
        let configured = time.map(|time| ConfiguredValidity {
            status: None,
            seconds: time.as_secs(),
        });
        configured.into_iter().collect()
    }

    pub(super) fn rfc_freshness<'a>(
        &self,
        status: Status,
        lines: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        directives: &ResponseDirectives,
        now: i64,
    ) -> Freshness {
        let times = ExchangeTimes {
            request: self.asked_at,
            response: now,
        };
        let rules = LifetimeRules {
            configured: self.settings.valid_for(status.0).map(|time| time.as_secs()),
            ..LifetimeRules::default()
        };
        Freshness::of_response(status, lines, directives, times, rules)
    }

    /// The tags by which it can be purged: what the fields of `cache_tags` have, divided by blanks unless another form is
    /// known of their name; and its groups under the RFC's rules.
    pub(super) fn tags<'a, E: Engine>(
        &self,
        lines: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
        request: &mut Request,
        local: &Local<E>,
    ) -> Tags {
        let names = &request.location.caching.tags;
        let is_named = |name: &[u8]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let mut tags = Tags::default();
        for (name, value) in lines.clone().filter(|(name, _)| is_named(name)) {
            tags.add(TagForm::of_field(name).unwrap_or(TagForm::Blanks), value);
        }
        if self.rules == CacheRules::Rfc9111 {
            groups::add(lines, request, local, &mut tags);
        }
        tags
    }

    /// Opens the answer in the zone; its content follows. `None` where the zone does not take it.
    pub(in crate::proxy) fn store<E: Engine>(
        &mut self,
        stored: StoredAnswer,
        tags: &Tags,
        len: Option<u64>,
        request: &mut Request,
        local: &Local<E>,
    ) -> Option<(ZoneFill, ContentReader)> {
        let most = request.location.caching.object_max_bytes;
        if len.is_some_and(|len| len > most) {
            note(request, |note| note.storing = Some(Err(Unstored::TooLarge)));
            self.give_up_ticket();
            return None;
        }
        let ticket = self.ticket.take()?;
        let tags: Vec<&[u8]> = tags.tags.iter().map(|tag| &**tag).collect();
        let arrival = |meta: StoredAnswer, length| Arrival {
            meta,
            tags: &tags,
            length,
            length_max: most,
            now: cache::now(local),
        };
        let started = match stored.place {
            Some(place) => {
                let new = stored.clone();
                let is_replaced = |kept: &StoredAnswer| {
                    kept.fits(request) && parts::is_replaced(kept, (place, &new))
                };
                ticket.start(arrival(stored, Some(place.range.len())), is_replaced)
            }
            None => {
                if self.rules == CacheRules::Rfc9111 {
                    self.forget_parts(local);
                }
                ticket.start(arrival(stored, len), |kept| kept.fits(request))
            }
        };
        let (fill, reader) = started;
        Some((ZoneFill::new(fill, Arc::clone(&self.zone)), reader))
    }
}

/// The directives that count: those of the first targeted field that there is (RFC 9213), else `Cache-Control`.
pub(super) fn directives_of(said: &Said<'_>, request: &Request) -> ResponseDirectives {
    let targets = &request.location.caching.targeted;
    let targets: Vec<&[u8]> = targets.iter().map(|name| &**name).collect();
    targeted_directives(said.lines(), &targets)
}
