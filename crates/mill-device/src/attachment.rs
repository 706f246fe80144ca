//! How a program is attached to a stack of its own: the device, with an attachment for each worker.
//!
//! The process in charge makes it, which takes privileges, and keeps it; other processes and threads work with duplicates
//! of its descriptors. The device vanishes with the last of them, however the processes end.

use crate::any::AnyLink;
use crate::attach::inherited_device::InheritedDevice;
use crate::attach::siblings::{Sibling, siblings};
use crate::attach::{AttachError, Attached, Hold, Made, Trouble};
use crate::device_link::DeviceLink;
use crate::handover::Aim;
use crate::ledger::Ledger;
use crate::partitions::Partitions;
use crate::specification::Specification;
use crate::specification::settings::StacksPer;
use mill_stack::config::HostConfig;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// A stack's specification and its device, not yet running.
#[derive(Debug)]
pub struct Attachment {
    /// Set only in the process that made the device. It is dropped first: a bridge to a port ends before its memif does, which DPDK
    /// 22.11 may not survive, and would leave its port as it is.
    hold: Hold,
    specification: Specification,
    /// Indexed by worker.
    workers: Vec<Attached>,
    /// The same, where the workers of this process forward frames to each other; made by [`Self::prepare`].
    siblings: Vec<Sibling>,
    /// The connections of each worker, in memory that all processes have that are forked from this one; empty without.
    ledgers: Vec<Ledger>,
}

/// One worker's part. With the numbers of descriptors in their place it is for a thread that is about to leave this
/// descriptor table.
#[derive(Clone, Debug)]
pub struct WorkerAttachment<D = OwnedFd> {
    specification: Specification,
    attached: Attached<D>,
    sibling: Option<Sibling<D>>,
    ledger: Option<Ledger>,
    /// This worker reports what concerns all workers.
    is_first: bool,
}

impl Attachment {
    /// Makes the device with an attachment for each worker of the specification, as far as it carries several. Beside it are
    /// messages about features that could not be had as requested.
    pub fn make(specification: &Specification) -> Result<(Self, Vec<String>), AttachError> {
        let mut made = Attached::make(specification)?;
        let mut specification = specification.clone();
        if made.attachments.iter().any(Attached::is_opened_by_server) {
            made.notices.extend(specification.spin_if_woken());
        }
        Ok(Self::of(specification, made))
    }

    /// Tries in a child of this process, which has one thread, what [`Self::open`] opens, so that errors are known before anything
    /// serves. Returns what could not be had as requested.
    pub fn rehearse(&mut self) -> Result<Vec<String>, AttachError> {
        let notices = Attached::rehearse(&mut self.workers, &self.specification)?;
        self.count_workers();
        Ok(notices)
    }

    /// Opens what only the process can have whose workers use it: a port of DPDK. That takes privileges. The process must not fork
    /// afterwards.
    pub fn open(&mut self) -> Result<Vec<String>, AttachError> {
        let notices = Attached::open(&mut self.workers, &self.specification)?;
        self.count_workers();
        Ok(notices)
    }

    /// Whether threads that use it have to share the descriptor table of their process.
    pub fn needs_shared_table(&self) -> bool {
        self.workers.iter().any(Attached::is_opened_by_server)
    }

    /// A device may carry fewer workers than were asked for.
    fn count_workers(&mut self) {
        let count = u32::try_from(self.workers.len()).unwrap_or(u32::MAX);
        let workers = &mut self.specification.workers.count;
        *workers = count.min((*workers).max(1));
    }

    /// Takes over the old binary's device; the old binary serves until a worker of this one does.
    pub fn inherit(
        specification: &Specification,
        text: &str,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(Self, Vec<String>), AttachError> {
        let made = Attached::inherit(specification, text, descriptors)?;
        let mut specification = specification.clone();
        specification.workers.count = u32::try_from(made.attachments.len()).unwrap_or(u32::MAX);
        Ok(Self::of(specification, made))
    }

    fn of(specification: Specification, made: Made) -> (Self, Vec<String>) {
        let attachment = Self {
            hold: made.hold,
            specification,
            workers: made.attachments,
            siblings: Vec::new(),
            ledgers: Vec::new(),
        };
        (attachment, made.notices)
    }

    /// Ports of an interface at which no process listens are the kernel's again, also where the processes that have the queues have taken over
    /// what others served.
    pub fn close_unlistened(&self, is_listened: impl FnMut(SocketAddr) -> bool) -> io::Result<()> {
        let ports = Attached::opened_ports(&self.workers, &self.specification)?;
        ports.close_unlistened(is_listened);
        Ok(())
    }

    /// Whether another binary can have the device; if not, why.
    pub fn can_export(&self) -> Result<(), &'static str> {
        self.workers.iter().try_for_each(Attached::can_export)
    }

    /// The argument of the new binary's [`Self::inherit`].
    pub fn export(&self) -> Option<InheritedDevice<'_>> {
        Attached::export(&self.workers, &self.hold, &self.specification)
    }

    /// A copy for another process, with descriptors of its own.
    pub fn duplicate(&self) -> io::Result<Self> {
        let workers = self.workers.iter().map(Attached::duplicate);
        Ok(Self {
            specification: self.specification.clone(),
            workers: workers.collect::<io::Result<_>>()?,
            siblings: Vec::new(),
            ledgers: self.ledgers.clone(),
            hold: Hold::default(),
        })
    }

    /// Has workers note their connections, so that a process that replaces a killed one can tell their peers. To be called before
    /// those processes are forked.
    pub fn keep_ledgers(&mut self) -> io::Result<()> {
        let ledgers = self.workers.iter().map(|_| Ok(Ledger::new()?.0));
        self.ledgers = ledgers.collect::<io::Result<_>>()?;
        Ok(())
    }

    /// The descriptors that keep the device alive, to be held longer than by the thread that gets this value.
    pub fn take_hold(&mut self) -> Hold {
        std::mem::take(&mut self.hold)
    }

    pub fn specification(&self) -> &Specification {
        &self.specification
    }

    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.workers.iter().flat_map(Attached::descriptors)
    }

    /// How many workers it is for.
    pub fn worker_count(&self) -> usize {
        self.workers.len()
    }

    /// The interface's queues that it has, by their numbers; none of a device that is no interface of this machine.
    pub fn queues(&self) -> Vec<u32> {
        let mut queues: Vec<u32> = self.workers.iter().flat_map(Attached::queues).collect();
        queues.sort_unstable();
        queues.dedup();
        queues
    }

    /// Sets up what the workers of this process share, before the first of them makes its link.
    pub fn prepare(&mut self) -> io::Result<()> {
        if Attached::forward(&self.workers) {
            self.siblings = siblings(self.workers.len())?;
        }
        Attached::prepare(&mut self.workers, &self.specification)
    }

    /// A duplicate of one worker's part, of a device that is prepared.
    pub fn worker(&self, place: usize) -> io::Result<WorkerAttachment> {
        let attached = self.workers.get(place);
        let attached = attached
            .ok_or_else(|| io::Error::other("the device has no attachment for the thread"))?;
        Ok(WorkerAttachment {
            specification: self.specification.clone(),
            attached: attached.duplicate()?,
            sibling: self
                .siblings
                .get(place)
                .map(Sibling::duplicate)
                .transpose()?,
            ledger: self.ledgers.get(place).cloned(),
            is_first: place == 0,
        })
    }

    /// One link over all partitions, and the configuration of a host on it, for the process with this number among those that
    /// have the device. Partitions whose places are in `own` are to be this process's, the others only if no other process has
    /// them. `on_trouble` is called once for each kind of trouble.
    pub fn link(
        mut self,
        (process, own): (u64, &[u32]),
        on_trouble: impl Fn(Trouble) + Clone + Send + 'static,
    ) -> io::Result<(AnyLink, HostConfig)> {
        let specification = &self.specification;
        let first = self.workers.first();
        let first = first.ok_or_else(|| io::Error::other("the device has no queue"))?;
        let host = first.host_config(specification)?;
        let vlan = first.vlan(specification);
        Attached::share_opened(&mut self.workers, &self.specification)?;
        let mut links = Vec::with_capacity(self.workers.len());
        for (place, attached) in (0..).zip(self.workers) {
            let aim = match (own.contains(&place), specification.stacks) {
                (true, StacksPer::Process) => Aim::Take,
                (true, StacksPer::Thread) => Aim::Share,
                (false, _) => Aim::Join,
            };
            links.push(attached.device(specification, (aim, process), on_trouble.clone())?);
        }
        let device = match links.len() {
            1 => links.remove(0),
            _ => DeviceLink::Partitions(Partitions::new(links)),
        };
        Ok((AnyLink::new(device, None).with_vlan(vlan), host))
    }

    /// The parts of all workers of this process, in their order, prepared.
    pub fn into_workers(mut self) -> io::Result<Vec<WorkerAttachment>> {
        self.prepare()?;
        let specification = self.specification;
        let mut siblings = self.siblings.into_iter();
        let mut ledgers = self.ledgers.into_iter();
        let workers = self.workers.into_iter().enumerate();
        let workers = workers.map(|(place, attached)| WorkerAttachment {
            specification: specification.clone(),
            attached,
            sibling: siblings.next(),
            ledger: ledgers.next(),
            is_first: place == 0,
        });
        Ok(workers.collect())
    }
}

impl WorkerAttachment {
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let doorbell = self.sibling.as_ref().map(Sibling::descriptor);
        self.attached.descriptors().chain(doorbell)
    }

    /// For a thread that is about to unshare its descriptor table; valid as long as this value lives.
    pub fn lend(&self) -> WorkerAttachment<RawFd> {
        WorkerAttachment {
            specification: self.specification.clone(),
            attached: self.attached.lend(),
            sibling: self.sibling.as_ref().map(Sibling::lend),
            ledger: self.ledger.clone(),
            is_first: self.is_first,
        }
    }

    pub fn specification(&self) -> &Specification {
        &self.specification
    }

    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// The link, and the configuration of a host on it. `on_trouble` is called once for each kind of trouble.
    pub fn link(
        self,
        on_trouble: impl Fn(Trouble) + Clone + Send + 'static,
    ) -> io::Result<(AnyLink, HostConfig)> {
        let host = self.attached.host_config(&self.specification)?;
        let link = self.attached.link(&self.specification, on_trouble)?;
        let link = link.with_ledger(self.ledger);
        let link = match self.sibling {
            Some(sibling) => link.with_forwarding(sibling.forwarding()),
            None => link,
        };
        Ok((link, host))
    }
}

impl<D> WorkerAttachment<D> {
    /// Whether the thread that uses it has to share the descriptor table of its process.
    pub fn needs_shared_table(&self) -> bool {
        Attached::is_opened_by_server(&self.attached)
    }
}

impl WorkerAttachment<RawFd> {
    /// Duplicates the descriptors in the caller's descriptor table.
    pub fn take(self) -> io::Result<WorkerAttachment> {
        Ok(WorkerAttachment {
            specification: self.specification,
            attached: self.attached.take()?,
            sibling: self.sibling.map(Sibling::take).transpose()?,
            ledger: self.ledger,
            is_first: self.is_first,
        })
    }
}
