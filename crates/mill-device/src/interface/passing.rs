//! The interface goes to another process while both serve (see [`crate::handover`]).

use super::{InterfaceLink, Passage, PreexistingKernelFlows, untaken};
use crate::handover::directory::Directory;
use crate::handover::member::Member;
use crate::handover::owner::{Delivery, Owner};
use crate::handover::{Aim, Endpoint, EventSource};
use crate::network::LinkState;
use crate::queues::Queues;
use crate::relay::RelayCounters;
use crate::standby::{Origin, Parts, StandbyLink};
use crate::steering::Table;
use crate::wanted::Wanted;
use mill_stack::link::{Link, Received, Stray};
use mill_sys::epoll::Watcher;
use std::io;
use std::os::fd::AsFd;

/// Opens queues and table in the state in which the former owner left them.
pub(crate) type OpenQueue = Box<dyn Fn(&LinkState) -> io::Result<(Queues, Table)> + Send>;

impl InterfaceLink {
    /// Lets other processes take the interface over.
    #[must_use]
    pub(crate) fn with_handover(mut self, endpoint: Endpoint, open: OpenQueue, aim: Aim) -> Self {
        endpoint.open(EventSource::Network, self.monitor.as_fd());
        self.handover = Some(Owner::new(
            Member::new(endpoint, aim),
            open,
            Some(&self.table),
        ));
        self
    }

    /// Gives a frame to the process that has its flow ([`Owner::give_listed`]); `bytes` are those of one that another worker has
    /// forwarded.
    pub(crate) fn give_listed(
        &mut self,
        frame: &Received,
        bytes: Option<&[u8]>,
        stray: &Stray<'_>,
    ) -> Delivery {
        let handover = self.handover.as_mut();
        handover.map_or(Delivery::None, |handover| {
            let copy = handover.returned_copy(frame.id);
            let bytes = bytes.or(copy.as_deref());
            let bytes = bytes.unwrap_or_else(|| self.queues.frame(frame.id));
            handover.give_listed(frame, bytes, (stray, &self.wanted))
        })
    }

    /// Gives a frame to the process that had the interface before ([`Owner::fall_back`]).
    pub(crate) fn fall_back(&mut self, frame: &Received, bytes: Option<&[u8]>) -> bool {
        let handover = self.handover.as_mut();
        handover.is_some_and(|handover| {
            let copy = handover.returned_copy(frame.id);
            let bytes = bytes.or(copy.as_deref());
            let bytes = bytes.unwrap_or_else(|| self.queues.frame(frame.id));
            handover.fall_back(frame, bytes)
        })
    }

    pub(crate) fn close_ways(&mut self) {
        if let Some(handover) = &mut self.handover {
            handover.close_ways();
        }
    }

    pub(crate) fn note_change(&self) {
        if let Some(handover) = &self.handover {
            handover.endpoint().note_change();
        }
    }

    /// Where the host is to list its flows, if others stand by.
    #[inline]
    pub(crate) fn flow_directory(&self) -> Option<Directory> {
        self.handover.as_ref()?.flow_directory()
    }

    pub(crate) fn set_directory(&mut self, directory: Directory) {
        if let Some(handover) = &mut self.handover {
            handover.set_directory(directory);
        }
    }

    /// What has passed between this process and those that stand by; `None` without any.
    pub fn relayed(&self) -> Option<RelayCounters> {
        self.handover.as_ref()?.relayed()
    }

    /// Whether other processes have sent TAKE or JOIN.
    #[inline]
    pub(crate) fn has_requests(&self) -> bool {
        let handover = self.handover.as_ref();
        handover.is_some_and(|handover| handover.has_requests())
    }

    /// Passes the watcher to the handover, which has to watch another descriptor when the owner changes; returns it if
    /// this link takes no part in one.
    pub(crate) fn set_watcher(&mut self, watcher: Watcher) -> Option<Watcher> {
        let Some(handover) = &mut self.handover else {
            return Some(watcher);
        };
        handover.set_watcher(watcher);
        handover.endpoint().watch(self.queues.descriptors());
        None
    }

    /// Whether one of those that stand by may ask for the interface, as this process has served and ends; the next turn looks.
    pub(crate) fn seek_heir(&mut self) -> bool {
        self.turns_left = 0;
        let handover = self.handover.as_ref();
        handover.is_some_and(|handover| handover.may_have_heir(&self.wanted))
    }

    /// Answers JOIN. Gives the interface to the process that has sent TAKE, and returns the link that stands by. No frame may be
    /// held or being written.
    pub(crate) fn give(mut self) -> Result<Box<StandbyLink>, Box<Self>> {
        let Some(mut handover) = self.handover.take() else {
            return Err(Box::new(self));
        };
        handover.admit(Some(&self.table), &self.wanted);
        let Some(heir) = handover.accept_heir() else {
            self.handover = Some(handover);
            return Err(Box::new(self));
        };
        let Self {
            mut queues,
            table,
            monitor,
            changes,
            on_fault,
            wanted,
            ..
        } = self;
        let (has_outlet, opened) = (queues.has_outlet(), table.opened());
        // By another worker of this process, perhaps.
        if opened.are_open() {
            handover.note_opened();
        }
        queues.leave();
        // From here on this process stands by.
        table.set_has_successor(true);
        handover.endpoint().unwatch(queues.descriptors());
        drop((queues, table));
        Ok(
            handover.stand_by(heir, (wanted, on_fault), |open| Origin::Interface {
                open,
                monitor,
                changes,
                has_outlet,
                opened,
            }),
        )
    }

    /// Opens the interface, which this process owns now, in the state in which the former owner left it.
    pub(crate) fn take(parts: Parts) -> Result<Box<Self>, Box<StandbyLink>> {
        let Origin::Interface {
            open,
            monitor,
            changes,
            has_outlet,
            opened,
        } = parts.origin
        else {
            return Err(Box::new(StandbyLink::new(parts, None)));
        };
        let (queues, table) = match open(&monitor.network().link) {
            Ok(opened) => opened,
            Err(error) => {
                let origin = Origin::Interface {
                    open,
                    monitor,
                    changes,
                    has_outlet,
                    opened,
                };
                let parts = Parts { origin, ..parts };
                return Err(StandbyLink::without_device(parts, &error));
            }
        };
        parts.member.endpoint.note_change();
        parts.member.endpoint.watch(queues.descriptors());
        let on_fault = parts.on_fault;
        let wanted = parts.wanted;
        let addresses = monitor.network().addresses.clone();
        let mut link = Self {
            queues,
            flows: table.flow_hash(),
            worker: 0,
            monitor,
            kernel_flows: PreexistingKernelFlows::inherited(&wanted.services, &table),
            opened: table.opened(),
            table,
            changes,
            turns_left: 0,
            passage: Passage::Open,
            on_fault,
            wanted: Wanted::default(),
            handover: None,
        };
        for service in &wanted.services {
            link.table.serve(*service, true);
        }
        // What a former owner served for others is forgotten a second after its end.
        for service in &wanted.closing {
            link.table.serve(*service, true);
            link.table.serve(*service, false);
        }
        if wanted.opens_ports || parts.member.opens_ports {
            link.table.open_ports(untaken);
        }
        // Also that it has served: a process that serves no more, and has the device again since another one has ended, leaves.
        link.wanted = wanted;
        link.steer(&addresses);
        let state = link.monitor.network().link.clone();
        link.report_passage(&state);
        link.handover = Some(Owner::new(parts.member, open, Some(&link.table)));
        Ok(Box::new(link))
    }
}
