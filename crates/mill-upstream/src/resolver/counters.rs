//! What a resolver has asked and heard, for all workers together.

use super::error::ResolveError;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shared by the workers' resolvers of one `status_zone`; touched once a question, never for a name that is cached.
#[derive(Debug, Default)]
pub struct ResolverCounters {
    names: AtomicU64,
    services: AtomicU64,
    noerror: AtomicU64,
    formerr: AtomicU64,
    servfail: AtomicU64,
    nxdomain: AtomicU64,
    notimp: AtomicU64,
    refused: AtomicU64,
    timedout: AtomicU64,
    unknown: AtomicU64,
    mismatched: AtomicU64,
    truncated: AtomicU64,
    busy: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolverCounts {
    /// Names whose addresses were asked for.
    pub names: u64,
    /// Names whose SRV records were asked for.
    pub services: u64,
    /// Answers, by response code.
    pub noerror: u64,
    pub formerr: u64,
    pub servfail: u64,
    pub nxdomain: u64,
    pub notimp: u64,
    pub refused: u64,
    /// Requests that waited in vain.
    pub timedout: u64,
    /// Answers with another response code.
    pub unknown: u64,
    /// Messages that answer another question, or none, from the server's address: forged, late or broken.
    pub mismatched: u64,
    /// Answers that were asked for again over TCP.
    pub truncated: u64,
    /// Requests refused because of a limit.
    pub busy: u64,
}

/// One event to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    Name,
    Service,
    Answer,
    Failure(ResolveError),
    UnknownCode,
    Mismatch,
    Truncated,
}

impl ResolverCounters {
    pub(super) fn count(&self, event: Counted) {
        let counter = match event {
            Counted::Name => &self.names,
            Counted::Service => &self.services,
            Counted::Answer => &self.noerror,
            Counted::UnknownCode => &self.unknown,
            Counted::Mismatch => &self.mismatched,
            Counted::Truncated => &self.truncated,
            Counted::Failure(error) => match error {
                ResolveError::FormatError => &self.formerr,
                ResolveError::ServerFailure => &self.servfail,
                ResolveError::NotFound => &self.nxdomain,
                ResolveError::NotImplemented => &self.notimp,
                ResolveError::Refused => &self.refused,
                ResolveError::TimedOut => &self.timedout,
                ResolveError::Busy => &self.busy,
            },
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts from zero again.
    pub fn reset(&self) {
        let Self {
            names,
            services,
            noerror,
            formerr,
            servfail,
            nxdomain,
            notimp,
            refused,
            timedout,
            unknown,
            mismatched,
            truncated,
            busy,
        } = self;
        let all = [
            names, services, noerror, formerr, servfail, nxdomain, notimp, refused, timedout,
            unknown, mismatched, truncated, busy,
        ];
        all.iter()
            .for_each(|counter| counter.store(0, Ordering::Relaxed));
    }

    pub fn counts(&self) -> ResolverCounts {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ResolverCounts {
            names: value(&self.names),
            services: value(&self.services),
            noerror: value(&self.noerror),
            formerr: value(&self.formerr),
            servfail: value(&self.servfail),
            nxdomain: value(&self.nxdomain),
            notimp: value(&self.notimp),
            refused: value(&self.refused),
            timedout: value(&self.timedout),
            unknown: value(&self.unknown),
            mismatched: value(&self.mismatched),
            truncated: value(&self.truncated),
            busy: value(&self.busy),
        }
    }
}
