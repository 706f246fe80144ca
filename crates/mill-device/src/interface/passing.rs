//! The interface goes from one process to another while both serve: a part of the link that few have.

use super::{FaultCallback, InterfaceFault, InterfaceLink, Passage, PreexistingKernelFlows};
use crate::handover::{Endpoint, EventSource, Message, PeerProcess, Request, RequestKind};
use crate::network::LinkState;
use crate::queues::Queues;
use crate::relay::{Note, Relay, RelayCounters};
use crate::standby::{Parts, StandbyLink};
use crate::steering::Table;
use crate::wanted::Wanted;
use mill_stack::link::{Link, Offload, Received};
use mill_sys::epoll::Watcher;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Who else could have the interface, or is behind us.
pub(super) struct Succession {
    endpoint: Endpoint,
    open: OpenQueue,
    behind: Option<PeerProcess>,
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
    pub(crate) fn seated(mut self, endpoint: Endpoint, open: OpenQueue) -> Self {
        endpoint.open(EventSource::Network, self.monitor.as_fd());
        let handover = Succession::new((endpoint, open), None, &self.table);
        self.handover = Some(Box::new(handover));
        self
    }

    /// What has passed between us and the process that sends and receives through this one, if there is one.
    pub fn relayed(&self) -> Option<RelayCounters> {
        let behind = self.handover.as_ref()?.behind.as_ref()?;
        Some(behind.relay.counters())
    }

    /// Whether another process asks for the interface.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        let handover = self.handover.as_ref();
        handover.is_some_and(|handover| handover.asks.is_some())
    }

    /// Has frames end the waits of whoever has the watcher, if it may have to change what is watched. `None` if it took it.
    pub(crate) fn set_watcher(&mut self, watcher: Watcher) -> Option<Watcher> {
        let Some(handover) = &mut self.handover else {
            return Some(watcher);
        };
        handover.endpoint.set_watcher(watcher);
        handover.endpoint.watch(self.queues.as_fd());
        None
    }

    /// Gives the interface to who asks for it; the link goes on behind him. No frame is held, and none is being written.
    pub(crate) fn give(mut self) -> Result<Box<StandbyLink>, Box<Self>> {
        let Some(mut handover) = self.handover.take() else {
            return Err(Box::new(self));
        };
        let request = handover.asks.take();
        let Some(request) = request.filter(|request| !request.is_over()) else {
            self.handover = Some(handover);
            return Err(Box::new(self));
        };
        let Ok((relay, far)) = Relay::new() else {
            // He hears that nothing came of it, and asks again.
            self.handover = Some(handover);
            return Err(Box::new(self));
        };
        let Self {
            mut queues,
            table,
            monitor,
            heard,
            on_fault,
            wanted,
            ..
        } = self;
        queues.leave();
        // We are behind whoever has asked from now on.
        table.set_behind(true);
        handover.endpoint.leave(queues.as_fd());
        drop((queues, table));
        // Only now, when nothing of ours touches the rings any more. First the message: who finds the device free without it
        // would think that we are gone.
        let before = PeerProcess::say_admitted(request, relay, far);
        handover.endpoint.unlock();
        let Succession {
            endpoint,
            open,
            behind,
            ..
        } = *handover;
        let parts = Parts {
            endpoint,
            open,
            monitor,
            on_fault,
            wanted,
            behind,
            heard,
            has_failed: false,
        };
        // If he is gone by now the device is nobody's, and ours again in a moment.
        Ok(Box::new(StandbyLink::new(parts, before.ok())))
    }

    /// Takes the interface, which is ours now, as whoever had it has left it.
    pub(crate) fn take(mut parts: Parts) -> Result<Box<Self>, Box<StandbyLink>> {
        let opened = (parts.open)(&parts.monitor.network().link);
        let (queues, table) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                (parts.on_fault)(InterfaceFault::NotTaken(error.to_string()));
                if let Some(behind) = parts.behind.take() {
                    behind.close(&parts.endpoint);
                }
                parts.endpoint.unlock();
                parts.has_failed = true;
                return Err(Box::new(StandbyLink::new(parts, None)));
            }
        };
        parts.endpoint.watch(queues.as_fd());
        let Parts {
            endpoint,
            open,
            monitor,
            on_fault,
            wanted,
            behind,
            heard,
            has_failed: _,
        } = parts;
        let addresses = monitor.network().addresses.clone();
        let mut link = Self {
            queues,
            flows: table.flow_hash(),
            worker: 0,
            forwarding: None,
            monitor,
            kernel_flows: PreexistingKernelFlows::inherited(&wanted.services, &table),
            taken: BTreeSet::new(),
            table,
            heard,
            turns_left: 0,
            passage: Passage::Open,
            on_fault,
            wanted: Wanted::default(),
            handover: None,
        };
        for service in wanted.services {
            link.wanted.serve(service, true);
            link.table.serve(service, true);
        }
        if let Some(ports) = wanted.ports {
            link.open_ports(ports);
        }
        link.steer(&addresses);
        let state = link.monitor.network().link.clone();
        link.tell_passage(&state);
        let handover = Succession::new((endpoint, open), behind, &link.table);
        link.handover = Some(Box::new(handover));
        Ok(Box::new(link))
    }
}

impl Succession {
    fn new(
        (endpoint, open): (Endpoint, OpenQueue),
        behind: Option<PeerProcess>,
        table: &Table,
    ) -> Self {
        let expects_others = behind.is_none() && table.keeps_any();
        if expects_others {
            endpoint.set_timer(Some(TIMEOUT));
        } else {
            table.set_behind(behind.is_some());
        }
        Self {
            endpoint,
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

    /// Looks who is at the sources.
    pub(super) fn look(
        &mut self,
        queues: &mut Queues,
        (table, wanted): (&Table, &Wanted),
        on_fault: &mut FaultCallback,
    ) {
        let ready = self.endpoint.look();
        while ready.at(EventSource::Requests)
            && self.asks.is_none()
            && let Some(request) = self.endpoint.request()
        {
            match request.request_kind {
                RequestKind::Take => self.asks = Some(request),
                RequestKind::Join => self.on_join(request, table),
            }
        }
        if let Some(behind) = &mut self.behind {
            let is_over = ready.at(EventSource::Behind)
                && matches!(behind.next_message(), Some(Message::End));
            let is_broken = behind.relay.is_broken();
            if is_broken {
                on_fault(InterfaceFault::RelayBroken);
            }
            if is_over || is_broken {
                // What it has sent last.
                carry(behind, queues);
                behind.close(&self.endpoint);
                self.behind = None;
                table.set_behind(false);
                table.forget_kept();
            }
        }
        if ready.at(EventSource::Timer) {
            self.endpoint.set_timer(None);
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
                if let Ok(behind) = PeerProcess::admit(request) {
                    behind.open(
                        &self.endpoint,
                        [EventSource::Behind, EventSource::DoorbellBehind],
                    );
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
fn carry(behind: &mut PeerProcess, queues: &mut Queues) -> bool {
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
        self.endpoint.as_fd()
    }
}

/// How long others may take to find out that whoever had the interface is gone, who look every few milliseconds, and to join
/// us. Peers whose connections ended with him hear so much later of it; they send again what they have sent after some
/// hundred milliseconds.
const TIMEOUT: Duration = Duration::from_secs(1);
