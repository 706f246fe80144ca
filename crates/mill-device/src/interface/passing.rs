//! The interface goes from one process to another while both serve: a part of the link that few have.

use super::{Grace, InterfaceLink, InterfaceTrouble, Passage};
use crate::apart::{ApartLink, Parts};
use crate::network::LinkState;
use crate::queues::Queues;
use crate::relay::{Note, Relay};
use crate::steering::Table;
use crate::succession::{Door, Neighbor, Request, Seat, Wish, Word};
use crate::wanted::Wanted;
use mill_stack::link::{Link, Offload, Received};
use mill_sys::epoll::Watcher;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Who else could have the interface, or is behind us.
pub(super) struct Succession {
    seat: Seat,
    open: OpenQueue,
    behind: Option<Neighbor>,
    /// Who asks for the interface.
    asks: Option<Request>,
    /// Who is behind us knows that we serve nobody any more.
    has_said_leaving: bool,
}

/// Opens queue and table as somebody else has left them.
pub(crate) type OpenQueue = Box<dyn Fn(&LinkState) -> io::Result<(Queues, Table)> + Send>;

impl InterfaceLink {
    /// Has other processes be able to take the interface over.
    #[must_use]
    pub(crate) fn seated(mut self, seat: Seat, open: OpenQueue) -> Self {
        seat.open(Door::Surroundings, self.follower.as_fd());
        self.succession = Some(Box::new(Succession {
            seat,
            open,
            behind: None,
            asks: None,
            has_said_leaving: false,
        }));
        self
    }

    /// Whether another process asks for the interface.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        let succession = self.succession.as_ref();
        succession.is_some_and(|succession| succession.asks.is_some())
    }

    /// Has frames end the waits of whoever has the watcher, if it may have to change what is watched. `None` if it took it.
    pub(crate) fn set_watcher(&mut self, watcher: Watcher) -> Option<Watcher> {
        let Some(succession) = &mut self.succession else {
            return Some(watcher);
        };
        succession.seat.set_watcher(watcher);
        succession.seat.watch(self.queues.as_fd());
        None
    }

    /// Gives the interface to who asks for it; the link goes on behind him. No frame is held, and none is being written.
    pub(crate) fn give(mut self) -> Result<Box<ApartLink>, Box<Self>> {
        let Some(mut succession) = self.succession.take() else {
            return Err(Box::new(self));
        };
        let Some(request) = succession.asks.take() else {
            self.succession = Some(succession);
            return Err(Box::new(self));
        };
        let Ok((relay, far)) = Relay::new() else {
            // He hears that nothing came of it, and asks again.
            self.succession = Some(succession);
            return Err(Box::new(self));
        };
        let Self {
            mut queues,
            table,
            follower,
            heard,
            told,
            wanted,
            ..
        } = self;
        queues.leave();
        succession.seat.leave(queues.as_fd());
        drop((queues, table));
        // Only now, when nothing of ours touches the rings any more. First the word: who finds the device free without it
        // would think that we are gone.
        let before = Neighbor::say_admitted(request, relay, far);
        succession.seat.unlock();
        let Succession {
            seat, open, behind, ..
        } = *succession;
        let parts = Parts {
            seat,
            open,
            follower,
            told,
            wanted,
            behind,
            heard,
            has_failed: false,
        };
        // If he is gone by now the device is nobody's, and ours again in a moment.
        Ok(Box::new(ApartLink::new(parts, before.ok())))
    }

    /// Takes the interface, which is ours now, as whoever had it has left it.
    pub(crate) fn take(mut parts: Parts) -> Result<Box<Self>, Box<ApartLink>> {
        let opened = (parts.open)(&parts.follower.network().link);
        let (queues, table) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                (parts.told)(InterfaceTrouble::NotTaken(error.to_string()));
                if let Some(behind) = parts.behind.take() {
                    behind.close(&parts.seat);
                }
                parts.seat.unlock();
                parts.has_failed = true;
                return Err(Box::new(ApartLink::new(parts, None)));
            }
        };
        parts.seat.watch(queues.as_fd());
        let Parts {
            seat,
            open,
            follower,
            told,
            wanted,
            behind,
            heard,
            has_failed: _,
        } = parts;
        let addresses = follower.network().addresses.clone();
        let mut link = Self {
            queues,
            flows: table.flow_hash(),
            worker: 0,
            colleagues: None,
            follower,
            grace: Grace::inherited(&wanted.services, &table),
            taken: BTreeSet::new(),
            table,
            heard,
            turns_left: 0,
            passage: Passage::Open,
            told,
            wanted: Wanted::default(),
            succession: None,
        };
        for service in wanted.services {
            link.wanted.serve(service, true);
            link.table.serve(service, true);
        }
        if let Some(ports) = wanted.ports {
            link.open_ports(ports);
        }
        link.steer(&addresses);
        let state = link.follower.network().link.clone();
        link.tell_passage(&state);
        if behind.is_none() {
            link.table.forget_kept();
        }
        link.succession = Some(Box::new(Succession {
            seat,
            open,
            behind,
            asks: None,
            has_said_leaving: false,
        }));
        Ok(Box::new(link))
    }
}

impl Succession {
    /// Sends what who is behind us sends.
    #[inline]
    pub(super) fn carry(&mut self, queues: &mut Queues) {
        if let Some(behind) = &mut self.behind
            && behind.relay.waiting().is_some()
        {
            carry(behind, queues);
        }
        if let Some(behind) = &mut self.behind {
            behind.relay.publish();
        }
    }

    pub(super) fn hand_over(&mut self, received: &Received, frame: &[u8]) -> bool {
        let Some(behind) = &mut self.behind else {
            return false;
        };
        let note = Note::arrived(received.checksum, received.merged);
        // Without room it is lost, as it might be on its way.
        behind.relay.put(&note, frame);
        true
    }

    /// Looks who is at the doors.
    pub(super) fn look(&mut self, queues: &mut Queues, table: &Table, wanted: &Wanted) {
        let knocks = self.seat.look();
        while knocks.at(Door::Requests)
            && self.asks.is_none()
            && let Some(request) = self.seat.request()
        {
            match request.wish {
                Wish::Take => self.asks = Some(request),
                Wish::Join => self.on_join(request),
            }
        }
        if let Some(behind) = &mut self.behind {
            let is_over = knocks.at(Door::Behind) && matches!(behind.word(), Some(Word::End));
            if is_over || behind.relay.is_broken() {
                // What it has sent last.
                carry(behind, queues);
                behind.close(&self.seat);
                self.behind = None;
                table.forget_kept();
            }
        }
        if let Some(behind) = &self.behind
            && wanted.is_serving() == self.has_said_leaving
        {
            self.has_said_leaving = !self.has_said_leaving;
            if self.has_said_leaving {
                behind.say_leaving();
            }
        }
    }
}

impl Succession {
    fn on_join(&mut self, request: Request) {
        match &self.behind {
            Some(behind) => behind.pass_on(&request),
            // Who has asked may be gone.
            None => {
                if let Ok(behind) = Neighbor::admit(request) {
                    behind.open(&self.seat, [Door::Behind, Door::BellBehind]);
                    self.behind = Some(behind);
                }
            }
        }
    }
}

#[cold]
fn carry(behind: &mut Neighbor, queues: &mut Queues) {
    let relay = &mut behind.relay;
    while let Some(len) = relay.waiting() {
        if len > queues.frame_len_max() {
            relay.take(&mut []);
            continue;
        }
        let Some(room) = queues.reserve(len) else {
            // Nobody else wakes us when there is room.
            relay.ring_own_bell();
            break;
        };
        // What is left to the device can't be left to this one.
        if let Some(note) = relay.take(room.get_mut(..len).unwrap_or_default())
            && note.offload == Offload::default()
        {
            queues.transmit(len, Offload::default());
        }
    }
    relay.release();
}

impl AsFd for Succession {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.seat.as_fd()
    }
}
