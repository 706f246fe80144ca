//! The interface goes from one process to another while both serve: a part of the link that few have.

use super::{Grace, InterfaceLink, InterfaceTrouble, Passage, TellTrouble};
use crate::apart::{ApartLink, Parts};
use crate::network::LinkState;
use crate::queues::Queues;
use crate::relay::{Note, Relay, RelayCounters};
use crate::steering::Table;
use crate::succession::{Door, Neighbor, Request, Seat, Wish, Word};
use crate::wanted::Wanted;
use mill_stack::link::{Link, Offload, Received};
use mill_sys::epoll::Watcher;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Who else could have the interface, or is behind us.
pub(super) struct Succession {
    seat: Seat,
    open: OpenQueue,
    behind: Option<Neighbor>,
    /// Who asks for the interface.
    asks: Option<Request>,
    /// Who is behind us knows that we serve nobody any more.
    has_said_leaving: bool,
    /// What he sends waits for room at the interface.
    has_left: bool,
    /// Another process has served before us and is gone: what it served stays served until the timer tells.
    expects_others: bool,
    /// Others were behind that process. They find us within milliseconds; until they have, or the timer tells, a segment
    /// that nothing stands for may be theirs, and is not answered with a reset.
    may_be_of_others: bool,
}

/// Opens queue and table as somebody else has left them.
pub(crate) type OpenQueue = Box<dyn Fn(&LinkState) -> io::Result<(Queues, Table)> + Send>;

impl InterfaceLink {
    /// Has other processes be able to take the interface over.
    #[must_use]
    pub(crate) fn seated(mut self, seat: Seat, open: OpenQueue) -> Self {
        seat.open(Door::Surroundings, self.follower.as_fd());
        let succession = Succession::new((seat, open), None, &self.table);
        self.succession = Some(Box::new(succession));
        self
    }

    /// What has passed between us and the process that sends and receives through this one, if there is one.
    pub fn relayed(&self) -> Option<RelayCounters> {
        let behind = self.succession.as_ref()?.behind.as_ref()?;
        Some(behind.relay.counters())
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
        let request = succession.asks.take();
        let Some(request) = request.filter(|request| !request.is_over()) else {
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
        // We are behind whoever has asked from now on.
        table.set_behind(true);
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
        let succession = Succession::new((seat, open), behind, &link.table);
        link.succession = Some(Box::new(succession));
        Ok(Box::new(link))
    }
}

impl Succession {
    fn new((seat, open): (Seat, OpenQueue), behind: Option<Neighbor>, table: &Table) -> Self {
        let expects_others = behind.is_none() && table.keeps_any();
        if expects_others {
            seat.set_timer(Some(PATIENCE));
        } else {
            table.set_behind(behind.is_some());
        }
        Self {
            seat,
            open,
            behind,
            asks: None,
            has_said_leaving: false,
            has_left: false,
            expects_others,
            may_be_of_others: expects_others && table.has_behind(),
        }
    }

    /// Sends what who is behind us sends.
    #[inline]
    pub(super) fn carry(&mut self, queues: &mut Queues) {
        self.has_left = false;
        if let Some(behind) = &mut self.behind
            && behind.relay.waiting().is_some()
        {
            self.has_left = carry(behind, queues);
        }
        if let Some(behind) = &mut self.behind {
            behind.relay.publish();
        }
    }

    /// Whether something that was to be sent waits for the interface.
    #[inline]
    pub(super) fn has_left(&self) -> bool {
        self.has_left
    }

    /// Whether frames are better left where they are: those for what was served before us come already, and nobody listens
    /// there yet, for a few milliseconds.
    #[inline]
    pub(super) fn waits_to_serve(&self, wanted: &Wanted) -> bool {
        self.expects_others && !wanted.is_serving()
    }

    pub(super) fn hand_over(&mut self, received: &Received, frame: &[u8]) -> bool {
        let Some(behind) = &mut self.behind else {
            // Lost, as it might be on its way: when it comes again, whose it is may be there.
            return self.may_be_of_others;
        };
        let note = Note::arrived(received.checksum, received.merged);
        // Without room it is lost, as it might be on its way.
        behind.relay.put(&note, frame);
        true
    }

    /// Looks who is at the doors.
    pub(super) fn look(
        &mut self,
        queues: &mut Queues,
        (table, wanted): (&Table, &Wanted),
        told: &mut TellTrouble,
    ) {
        let knocks = self.seat.look();
        while knocks.at(Door::Requests)
            && self.asks.is_none()
            && let Some(request) = self.seat.request()
        {
            match request.wish {
                Wish::Take => self.asks = Some(request),
                Wish::Join => self.on_join(request, table),
            }
        }
        if let Some(behind) = &mut self.behind {
            let is_over = knocks.at(Door::Behind) && matches!(behind.word(), Some(Word::End));
            let is_broken = behind.relay.is_broken();
            if is_broken {
                told(InterfaceTrouble::RelayBroken);
            }
            if is_over || is_broken {
                // What it has sent last.
                carry(behind, queues);
                behind.close(&self.seat);
                self.behind = None;
                table.set_behind(false);
                table.forget_kept();
            }
        }
        if knocks.at(Door::Timer) {
            self.seat.set_timer(None);
            if std::mem::take(&mut self.expects_others) {
                self.may_be_of_others = false;
                table.set_behind(false);
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
    fn on_join(&mut self, request: Request, table: &Table) {
        match &self.behind {
            Some(behind) => behind.pass_on(&request),
            // Who has asked may be gone.
            None => {
                if let Ok(behind) = Neighbor::admit(request) {
                    behind.open(&self.seat, [Door::Behind, Door::BellBehind]);
                    self.behind = Some(behind);
                    self.expects_others = false;
                    self.may_be_of_others = false;
                    table.set_behind(true);
                }
            }
        }
    }
}

/// Whether something is left for which the interface has no room.
#[cold]
fn carry(behind: &mut Neighbor, queues: &mut Queues) -> bool {
    behind.relay.carry(|relay, len| {
        if len > queues.frame_len_max() {
            relay.take(&mut []);
            return true;
        }
        let Some(room) = queues.reserve(len) else {
            return false;
        };
        // What is left to the device can't be left to this one.
        if let Some(note) = relay.take(room.get_mut(..len).unwrap_or_default())
            && note.offload == Offload::default()
        {
            queues.transmit(len, Offload::default());
        }
        true
    })
}

impl AsFd for Succession {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.seat.as_fd()
    }
}

/// How long others may take to find out that whoever had the interface is gone, who look every few milliseconds, and to join
/// us. Peers whose connections ended with him hear so much later of it; they send again what they have sent after some
/// hundred milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);
