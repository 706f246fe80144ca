//! Opening connections (RFC 9293 3.10.1).

use crate::fast_open_peers::{Answer, Offer};
use crate::flow::{Flow, unmapped};
use crate::flow_table::Target;
use crate::host::Host;
use crate::host::listening::config_of_each;
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use crate::socket::{ConnectError, SocketId, SocketOptions};
use core::net::{IpAddr, SocketAddr};
use mill_tcp::arrived::Events;
use mill_tcp::connection::{Connection, Opening};
use mill_wire::seq::SeqNumber;
use mill_wire::tcp_option::TcpOptions;

impl<Q: SendQueue> Host<Q> {
    /// Opens a connection. `source` may have port 0, and the unspecified address. IPv4 addresses that are mapped into
    /// IPv6 (RFC 4291 2.5.5.2) mean the IPv4 addresses.
    pub fn connect(
        &mut self,
        target: SocketAddr,
        source: Option<SocketAddr>,
        nodelay: bool,
        token: u64,
    ) -> Result<SocketId, ConnectError> {
        self.connect_steered(target, source, nodelay, token, |_| true)
    }

    /// As [`Host::connect`], from a port whose flow `steer` accepts: one whose packets come to this host's queue of
    /// the device.
    pub fn connect_steered(
        &mut self,
        target: SocketAddr,
        source: Option<SocketAddr>,
        nodelay: bool,
        token: u64,
        steer: impl FnMut(&Flow) -> bool,
    ) -> Result<SocketId, ConnectError> {
        let options = SocketOptions::default();
        self.connect_with(target, source, nodelay, options, token, steer)
    }

    /// As [`Host::connect_steered`], with options of its own.
    pub fn connect_with(
        &mut self,
        target: SocketAddr,
        source: Option<SocketAddr>,
        nodelay: bool,
        options: SocketOptions,
        token: u64,
        steer: impl FnMut(&Flow) -> bool,
    ) -> Result<SocketId, ConnectError> {
        let target = unmapped(target);
        let local = self.source_for(target, source.map(unmapped))?;
        if self.slots.count() >= self.limits.connections_max {
            return Err(ConnectError::TooMany);
        }
        let flow = self.choose_flow(local, target, steer)?;
        let hash = self.flows.hash(&flow);
        self.begin_anew(&flow);
        let mut iss = self.secrets.iss(&flow, self.now);
        if let Some(Target::TimeWait(number)) = self.find(&flow, hash) {
            iss = self.take_over(&flow, (number, hash), iss);
        }
        let config = self.config_for(options);
        let opening = Opening {
            iss,
            ts_offset: self.secrets.timestamp_offset(&flow),
            mss: self.mss_to(flow.remote, config),
        };
        let mut connection =
            Connection::connect(&opening, &mut self.tcp_context.env(config, self.now));
        connection.set_nodelay(nodelay);
        let offer = self.offer_to(&flow, options);
        if let Some(offer) = offer {
            let env = &mut self.tcp_context.env(config, self.now);
            connection.ask_fast_open(offer.cookie, offer.mss.saturating_sub(SYN_BYTES), env);
        }
        let index = self.slots.insert(connection, flow);
        self.flows.insert_connection(&flow, hash, index);
        self.counters.active_opens += 1;
        self.slots.want_transmit(index);
        self.arm(index);
        let slot = self.slots.at_mut(index).ok_or(ConnectError::TooMany)?;
        slot.token = token;
        slot.config = config;
        if offer.is_some() {
            slot.flags.set(SlotFlags::FAST_OPEN_ASKED);
        }
        Ok(slot.id(index))
    }

    /// Bytes that the SYN of a connection to `target` would carry at most if it were opened now with these options; 0
    /// if no cookie is known. What is queued beyond them leaves when the handshake is complete.
    pub fn fast_open_room(
        &mut self,
        target: SocketAddr,
        source: Option<SocketAddr>,
        options: SocketOptions,
    ) -> u16 {
        let target = unmapped(target);
        let Ok(local) = self.source_for(target, source.map(unmapped)) else {
            return 0;
        };
        let offer = self.offer_to(&Flow::new(local, target), options);
        let config = self.config_for(options);
        let mss = self.mss_to(target.ip(), config);
        offer.map_or(0, |offer| offer.mss.min(mss).saturating_sub(SYN_BYTES))
    }

    /// What the SYN of a flow may carry, if it is to be opened with Fast Open.
    fn offer_to(&self, flow: &Flow, options: SocketOptions) -> Option<Offer> {
        let known = self
            .fast_open_peers
            .offer((flow.local, flow.remote), self.now);
        let is_left_alone = known.cookie.is_none();
        let has_cookie = known
            .cookie
            .is_some_and(|cookie| !cookie.as_slice().is_empty());
        if options.fast_open_without_cookie && !is_left_alone && !has_cookie {
            return Some(Offer {
                cookie: None,
                mss: if known.mss > 0 { known.mss } else { u16::MAX },
            });
        }
        let mss = if has_cookie { known.mss } else { 0 };
        options.fast_open.then_some(Offer { mss, ..known })
    }

    /// The handshake of a connection that was opened with Fast Open is complete.
    pub(crate) fn learn_fast_open(&mut self, index: u32, options: &TcpOptions, events: Events) {
        let Some(slot) = self.slots.at_mut(index) else {
            return;
        };
        slot.flags.clear(SlotFlags::FAST_OPEN_ASKED);
        let ends = (slot.flow.local, slot.flow.remote);
        let answer = Answer {
            cookie: options.fast_open,
            mss: options.mss.unwrap_or(MSS_DEFAULT),
            is_text_taken: slot.connection.is_syn_text_taken(),
        };
        if events.has_any(Events::SYN_TEXT_LOST) && answer.cookie.is_none() {
            self.counters.fast_opens_lost += 1;
            self.fast_open_peers.lost(ends, self.now);
        } else {
            self.counters.fast_opens_out += u64::from(answer.is_text_taken);
            self.fast_open_peers.heard(ends, answer, self.now);
        }
    }

    /// The number of the host's configuration with these options.
    pub(super) fn config_for(&mut self, options: SocketOptions) -> u16 {
        if options == SocketOptions::default() {
            return 0;
        }
        let config = config_of_each(self.tcp_context.config(0).clone(), options);
        self.tcp_context.number_of(config)
    }

    /// Our end: the address and port asked for, as far as they are.
    fn source_for(
        &mut self,
        target: SocketAddr,
        source: Option<SocketAddr>,
    ) -> Result<SocketAddr, ConnectError> {
        if self.is_own(target.ip()) || is_no_target(target) {
            return Err(ConnectError::NoRoute);
        }
        let (asked, port) = match source {
            Some(source) => (Some(source.ip()), source.port()),
            None => (None, 0),
        };
        let address = match asked.filter(|address| !address.is_unspecified()) {
            Some(address) if !self.is_own(address) => return Err(ConnectError::NoPort),
            Some(address) if address.is_ipv4() != target.is_ipv4() => {
                return Err(ConnectError::NoRoute);
            }
            Some(address) if self.next_hops.routes.next_hop(target.ip()).is_some() => address,
            Some(_) => return Err(ConnectError::NoRoute),
            None => {
                let source = self.next_hops.source_for(target.ip());
                source.ok_or(ConnectError::NoRoute)?
            }
        };
        Ok(SocketAddr::new(address, port))
    }

    fn choose_flow(
        &mut self,
        local: SocketAddr,
        target: SocketAddr,
        mut steer: impl FnMut(&Flow) -> bool,
    ) -> Result<Flow, ConnectError> {
        let flow = Flow::new(local, target);
        if local.port() != 0 {
            return if self.is_vacant(&flow, true) {
                Ok(flow)
            } else {
                Err(ConnectError::InUse)
            };
        }
        let key = self.secrets.port;
        // A port in TIME-WAIT is taken over only when there is no other.
        for may_take_over in [false, true] {
            let vacated = self.flows.vacated();
            let search = self
                .ports
                .search(&flow, key, may_take_over, vacated, self.now);
            let Some(mut search) = search else {
                continue;
            };
            while let Some(local_port) = self.ports.next(&mut search) {
                let flow = Flow { local_port, ..flow };
                if !self.listeners.has_port(local_port)
                    && steer(&flow)
                    && self.is_vacant(&flow, may_take_over)
                {
                    return Ok(flow);
                }
            }
        }
        Err(ConnectError::NoPort)
    }

    fn is_vacant(&self, flow: &Flow, may_take_over: bool) -> bool {
        match self.find(flow, self.flows.hash(flow)) {
            None => true,
            Some(Target::TimeWait(number)) => may_take_over && self.may_take_over(number),
            Some(_) => false,
        }
    }

    /// RFC 6191 2, for our own opens: with timestamps the peer can tell the new connection's segments from old ones,
    /// once the clock has moved on by a second.
    fn may_take_over(&self, number: u32) -> bool {
        let Some(entry) = self.flows.time_wait().at(number) else {
            return false;
        };
        let config = self.tcp_context.config(0);
        if !config.time_wait_reuse {
            return false;
        }
        let lasts = config.msl * 2;
        let left = entry.time_wait.ends_at.since(self.now.tick());
        let left_ms = u128::from(left.unsigned_abs());
        entry.time_wait.timestamps && left_ms + TAKE_OVER_AFTER_MS <= lasts.as_millis()
    }

    /// Forgets the entry in TIME-WAIT; the number to begin with lies beyond all that it used (RFC 9293 3.4.3).
    fn take_over(&mut self, flow: &Flow, (number, hash): (u32, u64), iss: SeqNumber) -> SeqNumber {
        let entry = self.flows.time_wait().at(number);
        let used = entry.map(|entry| entry.time_wait.snd_nxt);
        self.flows.remove_time_wait(flow, number, hash);
        self.counters.time_waits_reopened += 1;
        beyond(iss, used)
    }
}

/// An initial sequence number beyond those that an earlier connection of the flow used, its window included.
pub(crate) fn beyond(iss: SeqNumber, used: Option<SeqNumber>) -> SeqNumber {
    match used {
        Some(used) if !iss.is_after(used + u32::from(u16::MAX)) => used + u32::from(u16::MAX) + 2,
        _ => iss,
    }
}

fn is_no_target(target: SocketAddr) -> bool {
    let address = target.ip();
    target.port() == 0
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_loopback()
        || matches!(address, IpAddr::V4(address) if address.is_broadcast())
}

/// Room for the options of a SYN.
const SYN_BYTES: u16 = 40;

/// Of a server that announces none (RFC 9293 3.7.1).
const MSS_DEFAULT: u16 = 536;

/// As `tcp_tw_reuse` of Linux.
const TAKE_OVER_AFTER_MS: u128 = 1000;
