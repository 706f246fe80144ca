//! One server at one address, as all workers see it.

use self::load::Load;
use crate::md5;
use mill_config::Text;
use mill_config::config::upstream::{UpstreamAddress, UpstreamServer};
use mill_runtime::address::Address;
use mill_runtime::time::Instant;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// What all workers count of a peer.
pub mod load;

/// One of a group's servers. A server whose name has several addresses is several peers, as in nginx. With other settings
/// it is another peer, which may share what is counted ([`Self::with_settings`]).
#[derive(Debug)]
pub struct Peer {
    /// Unique in its group, and the same one through reloads.
    pub id: u32,
    /// `address:port`, or a path behind `unix:`: `$upstream_addr`.
    pub name: Text,
    pub address: UpstreamAddress,
    pub settings: UpstreamServer,
    /// The settings that it began with; they tell which server of the configuration it comes from.
    pub(crate) configured: Arc<UpstreamServer>,
    /// MD5 of `name`.
    name_digest: Text,
    load: Arc<Load>,
}

impl Peer {
    pub fn new(address: UpstreamAddress, settings: &UpstreamServer) -> Self {
        let name = address.to_string();
        Self {
            id: 0,
            name_digest: Text::from(md5::hexadecimal(name.as_bytes()).as_bytes()),
            name: Text::from(name.as_bytes()),
            address,
            settings: settings.clone(),
            configured: Arc::new(settings.clone()),
            load: Arc::default(),
        }
    }

    /// The same peer as another configuration has it: connections, failures, health and counters are the same ones.
    #[must_use]
    pub fn with_settings(&self, settings: &UpstreamServer) -> Self {
        Self {
            id: self.id,
            name: self.name.clone(),
            name_digest: self.name_digest.clone(),
            address: self.address.clone(),
            settings: settings.clone(),
            configured: Arc::new(settings.clone()),
            load: Arc::clone(&self.load),
        }
    }

    /// The same peer with other settings than it is configured with.
    #[must_use]
    pub fn changed(&self, settings: &UpstreamServer) -> Self {
        Self {
            configured: Arc::clone(&self.configured),
            ..self.with_settings(settings)
        }
    }

    /// With this number in its group.
    #[must_use]
    pub(crate) fn numbered(self, id: u32) -> Self {
        Self { id, ..self }
    }

    /// The address to connect to; allocates for a UNIX-domain socket.
    pub fn address(&self) -> Address {
        match &self.address {
            UpstreamAddress::Ip(address) => Address::Ip(*address),
            UpstreamAddress::Unix(path) => Address::Unix(Rc::from(path.as_bytes())),
        }
    }

    /// What names it in sessions: its `route=`, or as in nginx the MD5 of its address. It is the same one in all workers and
    /// after a restart.
    pub fn session_id(&self) -> &Text {
        self.settings.route.as_ref().unwrap_or(&self.name_digest)
    }

    /// What is counted of it.
    pub fn load(&self) -> &Load {
        &self.load
    }

    /// Whether both are one peer, maybe with different settings.
    pub fn shares_load_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.load, &other.load)
    }

    /// Requests and tunnels that use it now.
    pub fn active(&self) -> u32 {
        self.load.active()
    }

    /// Whether requests are sent to it now; it may be busy all the same.
    pub fn state(&self, now: Instant) -> PeerState {
        match self.load.health() {
            _ if self.settings.down => PeerState::Down,
            Health::Checking => PeerState::Checking,
            Health::Unhealthy => PeerState::Unhealthy,
            Health::Healthy if self.settings.drain => PeerState::Draining,
            Health::Healthy if self.load.is_unavailable(&self.settings, now) => {
                PeerState::Unavailable
            }
            Health::Healthy => PeerState::Up,
        }
    }

    /// Whether `max_conns` allows one more request.
    pub(crate) fn has_room(&self) -> bool {
        self.settings.max_conns == 0 || self.active() < self.settings.max_conns
    }

    /// Whether any request may be sent to it now.
    pub(crate) fn is_available(&self, now: Instant) -> bool {
        self.state(now) == PeerState::Up && self.has_room()
    }

    /// The weight in 1000ths, less than the configured one during a slow start; at least 1.
    pub(crate) fn weight(&self, now: Instant) -> u64 {
        self.ramped(self.settings.weight, now).max(1)
    }

    /// The weight in 1000ths after failures and during a slow start; may be 0.
    pub(crate) fn effective_weight(&self, now: Instant) -> u64 {
        let weight = self.settings.weight;
        self.ramped(weight.saturating_sub(self.load.penalty()), now)
    }

    fn ramped(&self, weight: u32, now: Instant) -> u64 {
        let full = u64::from(weight) * WEIGHT_UNITS;
        let ramp = self.settings.slow_start.as_nanos();
        let recovered = self.load.recovered_at().filter(|_| ramp != 0);
        let elapsed = recovered.map_or(ramp, |recovered| now.since(recovered).as_nanos());
        if elapsed >= ramp {
            return full;
        }
        u64::try_from(u128::from(full) * elapsed / ramp).unwrap_or(full)
    }
}

/// Parts of a weight of 1, so that the weight of a slow start grows in small steps.
const WEIGHT_UNITS: u64 = 1000;

/// Whether requests are sent to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    Up,
    /// Only requests of sessions that are bound to it.
    Draining,
    /// By configuration.
    Down,
    /// Too many attempts failed.
    Unavailable,
    /// Not before its first health check has passed.
    Checking,
    /// Health checks fail.
    Unhealthy,
}

impl fmt::Display for PeerState {
    /// The names of the API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Draining => "draining",
            Self::Down => "down",
            Self::Unavailable => "unavail",
            Self::Checking => "checking",
            Self::Unhealthy => "unhealthy",
        })
    }
}

/// What health checks say of a peer; healthy without any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    #[default]
    Healthy,
    /// `mandatory`: no result yet.
    Checking,
    Unhealthy,
}
