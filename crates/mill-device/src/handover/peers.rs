//! The processes that stand by, as the owner has them: each at the end of a way.

use super::directory::{Holder, ProcessTag};
use super::{Endpoint, EventSource, Message, PeerProcess, ProcessNumber, Request};
use crate::relay::{Note, Relay, RelayCounters};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    peers: BTreeMap<ProcessTag, Peer>,
    /// The one that had the device before, or that has come last.
    latest: Option<ProcessTag>,
    /// Whose frames are sent first in the next turn.
    turn: usize,
}

#[derive(Debug)]
struct Peer {
    number: ProcessNumber,
    identity: u64,
    process: PeerProcess,
}

impl Peers {
    pub(crate) fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    /// Whether there is a way to the process that asks.
    pub(crate) fn have(&self, request: &Request) -> bool {
        let tag = ProcessTag::of(request.identity);
        self.peers.contains_key(&tag)
    }

    pub(crate) fn len(&self) -> usize {
        self.peers.len()
    }

    /// Adds a process; a former way to it ends.
    pub(crate) fn add(
        &mut self,
        endpoint: &Endpoint,
        (number, identity): (ProcessNumber, u64),
        process: PeerProcess,
    ) {
        endpoint.note_change();
        process.open(endpoint, [EventSource::Peer, EventSource::PeerDoorbell]);
        let tag = ProcessTag::of(identity);
        let peer = Peer {
            number,
            identity,
            process,
        };
        if let Some(former) = self.peers.insert(tag, peer) {
            former.process.close(endpoint);
        }
        self.latest = Some(tag);
    }

    fn remove(&mut self, endpoint: &Endpoint, tag: ProcessTag) -> Option<Relay> {
        endpoint.note_change();
        let peer = self.peers.remove(&tag)?;
        peer.process.close(endpoint);
        Some(peer.process.relay).filter(|relay| !relay.is_broken())
    }

    /// Ends all ways.
    pub(crate) fn clear(&mut self, endpoint: &Endpoint) {
        for peer in core::mem::take(&mut self.peers).into_values() {
            peer.process.close(endpoint);
        }
    }

    /// Passes all ways to the process that gets the device, by its channel, but for its own. A way that can't be passed ends, and
    /// its process asks for another one.
    pub(crate) fn pass_all(&mut self, endpoint: &Endpoint, to: &OwnedFd) {
        for peer in core::mem::take(&mut self.peers).into_values() {
            peer.process.close(endpoint);
            let _ = peer.process.pass(to, (peer.number, peer.identity));
        }
    }

    /// The process that asks for the device has a way of its own no more.
    pub(crate) fn forget(&mut self, endpoint: &Endpoint, heir: &Request) {
        let tag = ProcessTag::of(heir.identity);
        if let Some(peer) = self.peers.remove(&tag) {
            peer.process.close(endpoint);
        }
    }

    /// What has passed on all ways; `None` without any.
    pub(crate) fn relayed(&self) -> Option<RelayCounters> {
        let mut counted = self
            .peers
            .values()
            .map(|peer| peer.process.relay.counters());
        let first = counted.next()?;
        Some(counted.fold(first, RelayCounters::plus))
    }

    /// Tells all that the owner serves no port any more.
    pub(crate) fn send_leaving(&self) {
        for peer in self.peers.values() {
            peer.process.send_leaving();
        }
    }

    /// Gives a frame to a process; `false` if there is no way to it. Without room the frame is dropped, as on a full link.
    pub(crate) fn put(&mut self, tag: ProcessTag, note: &Note, frame: &[u8]) -> bool {
        let Some(peer) = self.peers.get_mut(&tag) else {
            return false;
        };
        peer.process.relay.put(note, frame);
        true
    }

    /// Gives a frame to all; `false` without any.
    pub(crate) fn put_to_all(&mut self, note: &Note, frame: &[u8]) -> bool {
        for peer in self.peers.values_mut() {
            peer.process.relay.put(note, frame);
        }
        !self.is_empty()
    }

    /// The one that had the device before, if there is still a way to it.
    pub(crate) fn former(&self) -> Option<ProcessTag> {
        self.latest.filter(|tag| self.peers.contains_key(tag))
    }

    /// Whether any of them has sent frames.
    pub(crate) fn have_sent(&mut self) -> bool {
        let mut peers = self.peers.values_mut();
        peers.any(|peer| peer.process.relay.waiting().is_some())
    }

    /// Calls `send` with the length of each frame that they have sent, until it returns `false` because it can't take one yet; whether
    /// one is left. Another process is first each time.
    pub(crate) fn carry(&mut self, mut send: impl FnMut(&mut Relay, usize) -> bool) -> bool {
        let count = self.peers.len().max(1);
        self.turn = (self.turn + 1) % count;
        let mut is_left = false;
        let (turn, peers) = (self.turn, &mut self.peers);
        for skips in [true, false] {
            let range = if skips { turn..count } else { 0..turn };
            for peer in peers.values_mut().skip(range.start).take(range.len()) {
                is_left |= peer.process.relay.carry(&mut send);
                if is_left {
                    return true;
                }
            }
        }
        is_left
    }

    /// Makes what was given to them visible.
    pub(crate) fn publish(&mut self) {
        for peer in self.peers.values_mut() {
            peer.process.relay.publish();
        }
    }

    /// Reads what they say: whether one of them opens connections, and those that have ended.
    pub(crate) fn read(&mut self) -> (bool, Vec<ProcessTag>) {
        let (mut opens_ports, mut ended) = (false, Vec::new());
        for (tag, peer) in &self.peers {
            while let Some(message) = peer.process.next_message() {
                match message {
                    Message::OpenPorts => opens_ports = true,
                    Message::End => {
                        ended.push(*tag);
                        break;
                    }
                    _ => {}
                }
            }
        }
        (opens_ports, ended)
    }

    /// Those whose relays hold invalid data.
    pub(crate) fn broken(&self) -> Vec<ProcessTag> {
        let peers = self.peers.iter();
        let broken = peers.filter(|(_, peer)| peer.process.relay.is_broken());
        broken.map(|(tag, _)| *tag).collect()
    }

    /// Ends the ways to these; their relays, but for those that hold invalid data.
    pub(crate) fn drop_all(
        &mut self,
        endpoint: &Endpoint,
        tags: &[ProcessTag],
    ) -> Vec<(ProcessTag, Relay)> {
        let relays = tags
            .iter()
            .filter_map(|tag| Some((*tag, self.remove(endpoint, *tag)?)));
        relays.collect()
    }
}

impl Holder {
    /// The process that a new connection of the flow, or a segment of it, is for.
    pub(crate) fn process(self, is_opening: bool) -> Option<ProcessTag> {
        match self {
            Self::Process { tag, is_waiting } if !(is_opening && is_waiting) => Some(tag),
            _ => None,
        }
    }
}
