//! A process at the other end of a way: the relay for frames and the channel for messages.

use super::message::{GIVEN, LEAVING, MAKERS_END, OPEN_PORTS, PASSED, Said, WELCOME, send_message};
use super::{Endpoint, EventSource, Message, ProcessNumber, Request, next_message};
use crate::relay::{FarEnd, Relay};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// A process at the other end of a way, and the means to exchange messages and frames with it.
#[derive(Debug)]
pub(crate) struct PeerProcess {
    pub(crate) relay: Relay,
    pub(super) channel: OwnedFd,
}

/// One end of a relay, for the process that gets it.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) far: FarEnd,
    /// It is that of the process that has made the relay.
    pub(crate) is_makers_end: bool,
}

impl PeerProcess {
    /// Answers JOIN: the requester becomes this process's peer and gets the far end of a new relay.
    pub(crate) fn admit(request: Request) -> io::Result<Self> {
        let (relay, far) = Relay::new()?;
        Self::answer(request, (relay, far), Said::of(WELCOME))
    }

    /// Answers TAKE over a relay that exists already: the device is given by a process of this identity, which has so many more ways.
    pub(crate) fn give(
        request: Request,
        relay: (Relay, FarEnd),
        ((number, identity), ways): ((ProcessNumber, u64), u32),
    ) -> io::Result<Self> {
        let said = Said {
            number,
            identity,
            detail: ways,
            ..Said::of(GIVEN)
        };
        Self::answer(request, relay, said)
    }

    fn answer(request: Request, (relay, far): (Relay, FarEnd), said: Said) -> io::Result<Self> {
        let channel = request.channel;
        let [ours, theirs] = &far.doorbells;
        let descriptors = [far.memory.as_fd(), ours.as_fd(), theirs.as_fd()];
        send_message(&channel, said, &descriptors)?;
        Ok(Self { relay, channel })
    }

    /// Sends this process's end to another one, which goes on with it.
    pub(crate) fn pass(
        self,
        to: &OwnedFd,
        (number, identity): (ProcessNumber, u64),
    ) -> io::Result<()> {
        let (far, is_makers_end) = self.relay.leave()?;
        let said = Said {
            number,
            identity,
            detail: if is_makers_end { MAKERS_END } else { 0 },
            ..Said::of(PASSED)
        };
        let [first, second] = &far.doorbells;
        let descriptors = [far.memory.as_fd(), first.as_fd(), second.as_fd()];
        let all = [
            descriptors[0],
            descriptors[1],
            descriptors[2],
            self.channel.as_fd(),
        ];
        send_message(to, said, &all)
    }

    /// Accepts the end of a relay that has arrived.
    pub(crate) fn joined(channel: OwnedFd, way: Way) -> io::Result<Self> {
        Ok(Self {
            relay: Relay::resume(way.far, way.is_makers_end)?,
            channel,
        })
    }

    /// The next message; `None` if there is none yet.
    pub(crate) fn next_message(&self) -> Option<Message> {
        next_message(&self.channel)
    }

    pub(crate) fn send_leaving(&self) {
        // If the peer is gone, the end of the channel tells it.
        let _ = send_message(&self.channel, Said::of(LEAVING), &[]);
    }

    /// Asks the owner to bring frames for ports of outgoing connections.
    pub(crate) fn send_open_ports(&self) {
        // As in `send_leaving`.
        let _ = send_message(&self.channel, Said::of(OPEN_PORTS), &[]);
    }

    pub(crate) const fn channel(&self) -> &OwnedFd {
        &self.channel
    }

    pub(crate) fn open(&self, endpoint: &Endpoint, [talk, doorbell]: [EventSource; 2]) {
        endpoint.open(talk, self.channel.as_fd());
        endpoint.open(doorbell, self.relay.doorbell_fd());
    }

    pub(crate) fn close(&self, endpoint: &Endpoint) {
        endpoint.close(self.channel.as_fd());
        endpoint.close(self.relay.doorbell_fd());
    }
}
