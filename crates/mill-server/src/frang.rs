//! `frang`: limits against attacks, with the meaning of Tempesta FW's `frang_limits`.
//!
//! A client is an IP address. Its connections and requests are counted in one account for all worker threads, which each of
//! its connections holds, so that a request costs one lock that is almost never contended, and no look-up. Blocked
//! addresses are refused before anything else is looked at: here when a connection is accepted, and by engines that have a
//! stack of their own before there is one.
//!
//! ```text
//! connection.rs        a connection begins: admission.rs; a request begins: `Connection::count_request`
//! h2/arrival.rs        the same for requests on streams
//! request.rs           the head, once its server and location are known: head.rs
//! hot.rs               the same for requests with kept answers
//! exchange/h1.rs, h2   pieces of content and their sum
//! delivery.rs          statuses of answers: `http_resp_code_block`
//! ```
//!
//! The error: an event counts in the eighth of its time frame in which its worker's turn began, or, if another worker has
//! counted in a later one, in that. A client whose account was given to another one (`clients` is too small) begins anew.

/// What one client has done.
pub(crate) mod account;
/// Whether a connection may begin.
pub(crate) mod admission;
/// Addresses that are refused.
pub mod blocks;
/// Which bytes a head may have.
mod bytes;
/// All clients.
pub(crate) mod clients;
/// Content while it arrives.
pub(crate) mod content;
/// Engines that drop what blocked addresses send.
pub(crate) mod following;
/// What a head may look like.
pub(crate) mod head;
/// Limits of kinds of clients.
pub(crate) mod kinds;
/// The limits by their names.
pub mod limit;
/// Forms of several parts.
mod multipart;
/// What becomes of a request that breaks a limit.
pub(crate) mod refusal;
/// Counts of the last time frame.
pub(crate) mod window;

use blocks::Blocks;
use clients::Clients;
use kinds::Kinds;
use mill_config::config::frang::{BlockTime, FingerprintLimit, FrangLimits};
use mill_config::config::{Config, Network};
use mill_runtime::time::{Duration, Instant};
use std::net::IpAddr;
use std::sync::Arc;

/// The limits of a configuration, with what was counted.
#[derive(Debug)]
pub struct Frang {
    pub limits: FrangLimits,
    pub(crate) clients: Arc<Clients>,
    pub(crate) tls_kinds: Arc<Kinds>,
    pub(crate) http_kinds: Arc<Kinds>,
    pub blocks: Arc<Blocks>,
}

impl Frang {
    /// The limits of `config`, if it has any. What `previous` has counted goes on.
    pub(crate) fn following(previous: Option<&Arc<Self>>, config: &Config) -> Option<Arc<Self>> {
        let limits = &config.http.as_ref()?.frang;
        if !limits.is_on {
            return None;
        }
        let clients = previous
            .filter(|previous| previous.limits.clients == limits.clients)
            .map(|previous| Arc::clone(&previous.clients));
        let kinds = |wanted: &[FingerprintLimit], of: fn(&Self) -> &Arc<Kinds>| {
            let known = previous.map(|previous| of(previous));
            let same = known.filter(|known| known.has_limits(wanted));
            same.map_or_else(|| Arc::new(Kinds::new(wanted)), Arc::clone)
        };
        let tls_kinds = kinds(&limits.tls_fingerprints, |frang| &frang.tls_kinds);
        let http_kinds = kinds(&limits.http_fingerprints, |frang| &frang.http_kinds);
        let blocks = previous.map(|previous| Arc::clone(&previous.blocks));
        let blocks = blocks.unwrap_or_default();
        blocks.set_most(limits.blocks);
        Some(Arc::new(Self {
            limits: limits.clone(),
            clients: clients.unwrap_or_else(|| Arc::new(Clients::new(limits.clients))),
            tls_kinds,
            http_kinds,
            blocks,
        }))
    }

    /// Clients that have an account, and those whose place was given to others.
    pub fn client_counts(&self) -> (u64, u64) {
        (self.clients.count(), self.clients.evicted())
    }

    /// Whether the client has no limits.
    pub(crate) fn is_whitelisted(&self, client: IpAddr) -> bool {
        let mut networks = self.limits.whitelist.iter();
        networks.any(|network: &Network| network.contains(Some(client)))
    }

    /// Blocks the client if `ip_block` says so; whether and for how long that is.
    pub(crate) fn block(
        &self,
        client: IpAddr,
        limit: limit::FrangLimit,
        now: Instant,
    ) -> Option<BlockTime> {
        let time = self.limits.ip_block?;
        self.block_for(client, time, limit.name(), now);
        Some(time)
    }

    /// Blocks the client for so long.
    pub(crate) fn block_for(
        &self,
        client: IpAddr,
        time: BlockTime,
        why: &'static str,
        now: Instant,
    ) {
        let until = match time {
            BlockTime::Seconds(seconds) => now + Duration::from_secs(seconds.into()),
            BlockTime::Unlimited => Instant::FAR,
        };
        self.blocks.insert(client, why, now, until);
        if let Some(known) = self.clients.find(client) {
            known.block_until(Some(until));
        }
    }

    /// Ends the block of an address; whether there was one.
    pub(crate) fn unblock(&self, client: IpAddr, now: Instant) -> bool {
        if let Some(known) = self.clients.find(client) {
            known.block_until(None);
        }
        self.blocks.remove(client, now)
    }
}
