//! `limit_req`: how many requests of a key there are in a second. One beyond the rate waits, without holding more than its
//! memory; one beyond `burst` is refused.

use crate::answer::Answer;
use crate::exchange::Exchange;
use crate::hot::limits::is_of_connection;
use crate::limits::Limited;
use crate::limits::requests::{Counting, Excess, Looked, Place};
use crate::limits::status::RequestStatus;
use crate::limits::{LimitedRequests, Thousandths};
use crate::local::{FileOf, Local, PhaseOf};
use crate::log::Text;
use crate::request::{Phase, Request};
use crate::variables;
use mill_config::config::settings::LimitReqSettings;
use mill_config::config::{LogLevel, RequestLimit, Template};
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::time::{Duration, Instant};
use std::fmt;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Poll;

/// Counts the request by all limits of its location; it goes on at once, or later, or is refused.
pub(super) async fn check<X: Exchange>(
    exchange: &X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> PhaseOf<X::Engine> {
    let settings = &request.location.limit_req;
    let known = request.limited.as_ref();
    if settings.limits.is_empty() || known.is_some_and(|note| note.requests.is_some()) {
        return ControlFlow::Continue(());
    }
    let settings = Arc::clone(settings);
    let counted = count(request, &settings, local);
    let status = match (counted, settings.dry_run) {
        (Counted::Without, _) => return ControlFlow::Continue(()),
        (Counted::By(Excess { delay_ms: 0, .. }), _) => RequestStatus::Passed,
        (Counted::By(_), false) => RequestStatus::Delayed,
        (Counted::By(_), true) => RequestStatus::DelayedDryRun,
        (Counted::Refused, false) => RequestStatus::Rejected,
        (Counted::Refused, true) => RequestStatus::RejectedDryRun,
    };
    let note = request.limited.get_or_insert_default();
    note.requests = Some(status);
    note.counted_by = Some(Arc::clone(&settings));
    match (status, counted) {
        (RequestStatus::Delayed, Counted::By(excess)) => {
            local.counters.borrow_mut().limit_req_delayed += 1;
            let time = Duration::from_millis(excess.delay_ms);
            wait(time, exchange, request, local).await
        }
        (RequestStatus::Rejected, _) => {
            local.counters.borrow_mut().limit_req_rejected += 1;
            ControlFlow::Break(Answer::Status(Status(settings.status)))
        }
        _ => ControlFlow::Continue(()),
    }
}

/// What the limits make of a request.
#[derive(Clone, Copy, Debug)]
enum Counted {
    /// It has no key.
    Without,
    /// The limit that has it wait longest.
    By(Excess),
    Refused,
}

fn count<E: Engine>(
    request: &mut Request,
    settings: &LimitReqSettings,
    local: &Local<E>,
) -> Counted {
    let site = Arc::clone(&request.site);
    let mut counts = Counts {
        settings,
        zones: &site.limits.requests,
        now_ms: now_ms(local.scheduler.now()),
        pending: Vec::new(),
        last: None,
    };
    let mut subject = LimitedRequest { request, local };
    for (index, limit) in settings.limits.iter().enumerate() {
        if let ControlFlow::Break(is_refused) = counts.look_up(index, limit, &mut subject, local) {
            return match is_refused {
                true => Counted::Refused,
                false => counts.finish(&subject),
            };
        }
    }
    counts.finish(&subject)
}

/// The limits of a request, while they are examined.
struct Counts<'c> {
    settings: &'c LimitReqSettings,
    zones: &'c [LimitedRequests],
    now_ms: u64,
    /// The indices of limits whose keys were found.
    pending: Vec<(usize, Place)>,
    /// What the last limit has counted.
    last: Option<(usize, Excess)>,
}

impl<'c> Counts<'c> {
    /// Examines one limit. Breaks with whether the request is refused: no limit behind it is examined.
    fn look_up<E: Engine>(
        &mut self,
        index: usize,
        limit: &'c RequestLimit,
        subject: &mut LimitedRequest<'_, E>,
        local: &Local<E>,
    ) -> ControlFlow<bool> {
        let Some(zone) = self.zones.get(limit.zone) else {
            return ControlFlow::Continue(());
        };
        let key = subject.evaluate(&zone.config.key);
        if key.is_empty() {
            return ControlFlow::Continue(());
        }
        if key.len() > KEY_BYTES_MAX {
            let (name, key) = (Text(&zone.config.key_text), Text(&key));
            let line =
                format_args!("the value of the \"{name}\" key is more than 65535 bytes: \"{key}\"");
            subject.log(LogLevel::Error, line);
            return ControlFlow::Continue(());
        }
        let is_last = index + 1 == self.settings.limits.len();
        let counting = self.counting(limit, zone);
        match zone.table.look_up(&key, &counting, is_last, local) {
            Looked::Pending(place) => {
                self.pending.push((index, place));
                return ControlFlow::Continue(());
            }
            Looked::Counted(excess) => {
                self.last = Some((index, excess));
                return ControlFlow::Break(false);
            }
            Looked::Refused { excess } => {
                let (name, excess) = (Text(&zone.config.name), Thousandths(excess));
                let how = self.how();
                subject.log(
                    self.settings.log_level,
                    format_args!("limiting requests{how}, excess: {excess} by zone \"{name}\""),
                );
            }
            Looked::Full => {
                let name = Text(&zone.config.name);
                let line = format_args!("could not allocate node in limit_req zone \"{name}\"");
                subject.log(LogLevel::Alert, line);
            }
        }
        for (index, place) in self.pending.drain(..) {
            if let Some(zone) = zone_of(self.settings, self.zones, index) {
                zone.table.release(place);
            }
        }
        ControlFlow::Break(true)
    }

    /// No limit refuses the request: it is counted by those whose keys were found, and what has it wait longest is logged.
    fn finish<E: Engine>(mut self, subject: &LimitedRequest<'_, E>) -> Counted {
        let mut longest = self.last;
        // From the last one to the first, as nginx does: of equal delays the later limit is told.
        while let Some((index, place)) = self.pending.pop() {
            let limit = self.settings.limits.get(index);
            let zone = zone_of(self.settings, self.zones, index);
            if let (Some(limit), Some(zone)) = (limit, zone) {
                let excess = zone.table.count(place, &self.counting(limit, zone));
                if longest.is_none_or(|(_, longest)| excess.delay_ms > longest.delay_ms) {
                    longest = Some((index, excess));
                }
            }
        }
        let Some((index, excess)) = longest else {
            return Counted::Without;
        };
        if excess.delay_ms > 0
            && let Some(zone) = zone_of(self.settings, self.zones, index)
        {
            let (name, how) = (Text(&zone.config.name), self.how());
            let thousandths = Thousandths(excess.thousandths);
            subject.log(
                self.settings.delay_level(),
                format_args!("delaying request{how}, excess: {thousandths}, by zone \"{name}\""),
            );
        }
        Counted::By(excess)
    }

    const fn counting<'l>(&self, limit: &'l RequestLimit, zone: &LimitedRequests) -> Counting<'l> {
        Counting {
            limit,
            rate: zone.config.rate,
            now_ms: self.now_ms,
            dry_run: self.settings.dry_run,
        }
    }

    const fn how(&self) -> &'static str {
        if self.settings.dry_run {
            ", dry run"
        } else {
            ""
        }
    }
}

fn zone_of<'z>(
    settings: &LimitReqSettings,
    zones: &'z [LimitedRequests],
    index: usize,
) -> Option<&'z LimitedRequests> {
    zones.get(settings.limits.get(index)?.zone)
}

/// Waits, unless the client leaves meanwhile.
async fn wait<X: Exchange>(
    time: Duration,
    exchange: &X,
    request: &mut Request,
    local: &Local<X::Engine>,
) -> Phase<FileOf<X::Engine>> {
    let deadline = local.scheduler.now() + time;
    let has_left = poll_fn(|_| {
        if exchange.is_abandoned() {
            return Poll::Ready(true);
        }
        let is_over = local.scheduler.poll_deadline(deadline);
        is_over.map(|_| false)
    });
    if !has_left.await {
        return ControlFlow::Continue(());
    }
    local.counters.borrow_mut().connections_reset += 1;
    let line = format_args!("client prematurely closed connection");
    local.log_error(Some(request), LogLevel::Info, line);
    request.sent.status = Status::CLIENT_CLOSED_REQUEST.0;
    ControlFlow::Break(Answer::Close)
}

/// A request, for limits of both kinds.
pub(super) struct LimitedRequest<'r, E: Engine> {
    pub(super) request: &'r mut Request,
    pub(super) local: &'r Local<E>,
}

impl<E: Engine> Limited for LimitedRequest<'_, E> {
    /// Only a key that a hot answer has anew each time does not keep the answer from being one.
    fn evaluate(&mut self, key: &Template) -> Vec<u8> {
        let is_pure = self.request.pure && is_of_connection(key, self.request);
        let value = variables::evaluate(key, self.request, self.local);
        self.request.pure = is_pure;
        value
    }

    fn log(&self, level: LogLevel, line: fmt::Arguments<'_>) {
        self.local.log_error(Some(self.request), level, line);
    }
}

/// The time of tables.
pub(crate) const fn now_ms(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000
}

/// Longest key (nginx).
const KEY_BYTES_MAX: usize = 65_535;
