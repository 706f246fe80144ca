//! Whether a connection may begin, and what it counts for.

use super::Frang;
use super::account::{Client, Denied};
use super::kinds::Event;
use super::limit::{Exceeded, FrangLimit};
use crate::connection::Connection;
use crate::fingerprint;
use crate::listener_context::ListenerContext;
use crate::local::Local;
use crate::request::arrival::ip;
use crate::request::real_ip;
use mill_config::config::LogLevel;
use mill_config::config::frang::{BlockTime, FrangAction};
use mill_runtime::engine::Engine;
use mill_runtime::stream::{Stream, StreamOption};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// What limits mean for a connection.
#[derive(Debug)]
pub(crate) enum Admission {
    /// It has none of its own.
    Free,
    /// It has a mark of `whitelist_mark`: neither have its requests.
    Marked,
    /// Its peer is a proxy that `set_real_ip_from` trusts: a request counts for the client which that tells.
    Proxy,
    /// It counts for this client.
    Client(Arc<Client>),
    /// It is closed at once.
    Refused(Refusal),
}

/// Why it is closed at once.
#[derive(Debug)]
pub(crate) enum Refusal {
    Blocked,
    Exceeded(Exceeded, Option<BlockTime>),
}

/// Counts a new connection. Costs a look-up of its peer if there are limits of clients, else a comparison; with
/// `whitelist_mark`, a system call besides.
pub(crate) fn admit<E: Engine>(
    stream: &E::Stream,
    listener: &ListenerContext,
    local: &Local<E>,
) -> Admission {
    let Some(frang) = listener.frang() else {
        return Admission::Free;
    };
    if frang.has_whitelisted_mark::<E>(stream) {
        return Admission::Marked;
    }
    let Some(peer) = ip(&stream.peer()) else {
        return Admission::Proxy;
    };
    let now = local.scheduler.now();
    if listener.trusts(peer) {
        return Admission::Proxy;
    }
    if frang.is_whitelisted(peer) {
        return Admission::Free;
    }
    if frang.blocks.contains(peer, now) {
        local.counters.borrow_mut().frang_blocked_connections += 1;
        return Admission::Refused(Refusal::Blocked);
    }
    if !frang.counts_clients() {
        return Admission::Free;
    }
    let client = frang.clients.enter(peer);
    let is_tls = listener.may_have_tls();
    match client.connect(&frang.limits, now, is_tls) {
        Ok(()) => Admission::Client(client),
        Err(exceeded) => {
            exceeded.limit.count(&mut local.counters.borrow_mut());
            let blocked = frang.block(peer, exceeded.limit, now);
            Admission::Refused(Refusal::Exceeded(exceeded, blocked))
        }
    }
}

impl Frang {
    /// Whether the packet filter has marked the connection as one without limits.
    fn has_whitelisted_mark<E: Engine>(&self, stream: &E::Stream) -> bool {
        let marked = self.limits.whitelist_marks.as_ref();
        marked.is_some_and(|marked| {
            let mark = stream.mark();
            mark.is_some_and(|mark| marked.marks.contains(&mark))
        })
    }

    /// Whether connections hold an account.
    pub(super) const fn counts_clients(&self) -> bool {
        let limits = &self.limits;
        limits.counts_connections()
            || limits.requests.is_limited()
            || limits.head_pieces > 0
            || limits.limits_kinds()
            || limits.ip_block.is_some()
    }
}

impl<E: Engine> Connection<E> {
    /// Logs why it is refused; it is reset where its clients are dropped.
    pub(crate) fn refuse(&self, refusal: &Refusal) {
        match refusal {
            Refusal::Blocked => {
                let line = "the client is blocked, its connection is closed";
                self.log_error(LogLevel::Info, format_args!("{line}"));
            }
            Refusal::Exceeded(exceeded, blocked) => self.tell_exceeded(exceeded, *blocked),
        }
        self.reset_on_close();
    }

    /// Whether each request goes the whole way, where its kind and its bytes are looked at.
    pub(crate) fn looks_at_all(&self) -> bool {
        let frang = self.listener.borrow_frang();
        frang
            .as_ref()
            .is_some_and(|frang| frang.limits.looks_at_all())
    }

    /// Counts the request that begins, for the connection's client; what becomes of it if it is one too many.
    #[inline]
    pub(crate) fn count_request(&self) -> Option<FrangAction> {
        let client = self.client.as_ref()?;
        let frang = self.listener.borrow_frang();
        let frang = frang.as_ref()?;
        let denied = client
            .request(&frang.limits, self.local.scheduler.now())
            .err()?;
        Some(self.deny(frang, client.address, denied))
    }

    #[cold]
    fn deny(&self, frang: &Frang, client: IpAddr, denied: Denied) -> FrangAction {
        match denied {
            Denied::Blocked => {
                self.local.counters.borrow_mut().frang_blocked_connections += 1;
                self.reset_on_close();
                FrangAction::Drop
            }
            Denied::Exceeded(exceeded) => self.exceed(frang, client, &exceeded),
        }
    }

    /// Counts the handshake that is complete; whether it is one too many.
    pub(crate) fn count_handshake(&self) -> bool {
        if self.is_kind_over() {
            return true;
        }
        let is_resumed = self
            .stream()
            .tls_facts()
            .is_none_or(|facts| facts.is_resumed);
        let (Some(client), Some(frang), false) = (&self.client, self.listener.frang(), is_resumed)
        else {
            return false;
        };
        let now = self.local.scheduler.now();
        let Err(exceeded) = client.handshake(&frang.limits, now) else {
            return false;
        };
        self.exceed(&frang, client.address, &exceeded);
        self.reset_on_close();
        true
    }

    /// Counts the handshake for its fingerprint; whether it is one too many.
    fn is_kind_over(&self) -> bool {
        let (Some(client), Some(frang), Some(facts)) = (
            &self.client,
            self.listener.frang(),
            self.stream().tls_facts(),
        ) else {
            return false;
        };
        if frang.limits.tls_fingerprints.is_empty() {
            return false;
        }
        let fingerprint = fingerprint::of_handshake(&facts);
        let now = self.local.scheduler.now();
        let limit = FrangLimit::TlsFingerprint;
        let counted = frang
            .tls_kinds
            .count(limit, fingerprint, Event::Connection, now);
        let Err(exceeded) = counted else {
            return false;
        };
        self.exceed(&frang, client.address, &exceeded);
        self.reset_on_close();
        true
    }

    /// Counts that it ends before its handshake.
    #[cold]
    pub(crate) fn count_broken_handshake(&self) {
        let (Some(client), Some(frang)) = (&self.client, self.listener.frang()) else {
            return;
        };
        let now = self.local.scheduler.now();
        if let Err(exceeded) = client.break_off(&frang.limits, now) {
            self.exceed(&frang, client.address, &exceeded);
        }
    }

    /// What becomes of the client: one that is blocked gets no answer.
    fn exceed(&self, frang: &Frang, client: IpAddr, exceeded: &Exceeded) -> FrangAction {
        exceeded.limit.count(&mut self.local.counters.borrow_mut());
        let now = self.local.scheduler.now();
        let blocked = frang.block(client, exceeded.limit, now);
        self.tell_exceeded(exceeded, blocked);
        let action = match blocked {
            Some(_) => FrangAction::Drop,
            None => frang.limits.action,
        };
        if action == FrangAction::Drop {
            self.reset_on_close();
        }
        action
    }

    fn tell_exceeded(&self, exceeded: &Exceeded, blocked: Option<BlockTime>) {
        let level = self.listener.frang().map(|frang| frang.limits.log_level);
        if exceeded.is_told
            && let Some(level) = level
        {
            let blocked = Blocked(blocked);
            self.log_error(level, format_args!("{exceeded}{blocked}"));
        }
    }

    /// Whether a head that has come in so many pieces has too many.
    pub(crate) fn exceeded_pieces(&self, pieces: u64) -> Option<Exceeded> {
        let client = self.client.as_ref()?;
        let most = u64::from(self.listener.frang()?.limits.head_pieces);
        let limit = FrangLimit::HeadPieces;
        (most > 0 && pieces > most).then(|| Exceeded {
            limit,
            value: pieces,
            most,
            is_told: client.is_told(limit, self.local.scheduler.now()),
        })
    }

    pub(crate) fn reset_on_close(&self) {
        // A stream without the option is closed by FIN.
        let _ = self.stream().set(StreamOption::ResetOnClose);
    }
}

/// What a line says of a block that follows.
pub(super) struct Blocked(pub(super) Option<BlockTime>);

impl fmt::Display for Blocked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some(BlockTime::Seconds(seconds)) => {
                write!(formatter, "; it is blocked for {seconds} s")
            }
            Some(BlockTime::Unlimited) => formatter.write_str("; it is blocked"),
        }
    }
}

/// Whether the peer is a proxy that tells its clients.
pub(crate) fn is_trusted(peer: IpAddr, from: &[mill_config::config::Network]) -> bool {
    let peer = mill_runtime::address::Address::Ip((peer, 0).into());
    real_ip::is_trusted(&peer, from)
}
