//! Queues of an interface: packet memory, sockets, and the program that steers to them.

/// Which worker has a socket at which queue.
mod plan;

/// The interface that carries the frames.
mod carrier;

/// What the workers of a process share.
mod shared_resources;

/// The sockets of a plan, with their memory.
mod sockets;

/// The text about a queue that goes to the next binary.
mod queue_wire_format;

/// Errors and notices as sentences.
mod sentences;

use super::movable::trouble_of;
use super::{AttachError, Hold, Trouble};
use crate::af_xdp::{XdpLink, XdpLinkOptions, XdpTrouble};
use crate::card::added_queues_of;
use crate::handover::member::Member;
use crate::handover::{Aim, Endpoint, OwnershipLock, ProcessNumber};
use crate::interface::{InterfaceFault, InterfaceLink};
use crate::network::monitor::NetlinkMonitor;
use crate::network::{ENODEV, LinkState, Network};
use crate::outlet::Outlet;
use crate::queues::Queues;
use crate::specification::settings::{AfXdpSettings, Mode, Spread, Workers};
use crate::standby::{Origin, Parts, StandbyLink};
use crate::steering::table::opened::OpenedPorts;
use crate::steering::{Steering, SteeringError, Table, WantedMode};
use crate::vlan::Vlan;
use crate::wanted::Wanted;
use carrier::Carrier;
use mill_stack::config::{HostConfig, Neighboring};
use mill_sys::bpf::link;
use mill_sys::memory::SharedMemory;
use mill_sys::xsk::{Xsk, XskOptions};
use mill_sys::{interface, packet};
use plan::{partitions, plan};
use sentences::{loses_merged_notice, not_read, queue_trouble};
use shared_resources::SharedResources;
use sockets::{attachments, check, check_share, loses_merged, make_sockets};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// One worker's queues as the master process has made them, and the state of the interface at that time.
#[derive(Clone, Debug)]
pub(super) struct AfXdp<D> {
    /// The first is the one that sends.
    sockets: Vec<Socket<D>>,
    /// The packet socket by which long segments leave whole, if the device cuts any.
    outlet: Option<D>,
    /// Descriptors of the steering table and its counters, shared by the workers.
    table: [D; 2],
    shared: Arc<SharedResources>,
    /// Ports from which connections are opened, here or by another worker.
    opened: Arc<OpenedPorts>,
    worker: u32,
    /// Queues and table are this worker's own, so that each may be another process's.
    is_partition: bool,
    network: Box<Network>,
    /// The virtual network whose tag the frames have.
    vlan: Option<Vlan>,
}

/// A socket at a queue, with the memory that all sockets of the queue share.
#[derive(Clone, Debug)]
struct Socket<D> {
    descriptor: D,
    memory: D,
    queue: u32,
    /// Its number among the sockets that share the queue.
    place: u32,
    options: XskOptions,
}

/// The attachments of all workers, what the master process holds, and notices for the log.
pub(super) struct Made {
    pub(super) attachments: Vec<AfXdp<OwnedFd>>,
    pub(super) hold: Hold,
    pub(super) notices: Vec<String>,
}

impl AfXdp<OwnedFd> {
    pub(super) fn make(
        (interface, vlan): (&str, Option<Vlan>),
        (settings, offload): (&AfXdpSettings, bool),
        workers: Workers,
    ) -> Result<Made, AttachError> {
        let refused = |what: String| AttachError(format!("af_xdp:{interface}: {what}"));
        let network = Network::of(interface).map_err(|error| refused(not_read(&error)))?;
        let carrier = Carrier::of(&network.link, vlan).map_err(refused)?;
        let link = &carrier.link;
        let queues = check(link, settings, workers).map_err(refused)?;
        let transmit_queues = link.transmit_queues;
        let (workers, queues) = match workers.spread {
            Spread::ByPartition => partitions(workers, &queues, transmit_queues),
            Spread::ByQueue | Spread::ByFlow => (workers, queues),
        };
        check_share(workers, &queues).map_err(refused)?;
        let plan = plan(workers, &queues, transmit_queues);
        let (sockets, not_huge) = make_sockets(link, settings, &plan).map_err(refused)?;
        let wanted = match settings.mode {
            Mode::Any => WantedMode::Fastest,
            Mode::Native => WantedMode::Only(link::Mode::Native),
            Mode::Generic => WantedMode::Only(link::Mode::Generic),
        };
        let steer = || {
            let partitions = plan.partitions();
            let (partitions, queues) = ((&*partitions, carrier.vlan), link.receive_queues);
            let steering = Steering::attach_partitions(link.index, queues, partitions, wanted)?;
            let rules = steering.rules();
            for (planned, socket) in plan.sockets.iter().zip(&sockets) {
                if let Some(number) = planned.receives {
                    rules.set_socket(planned.queue, number, socket.descriptor.as_fd())?;
                }
            }
            Ok(steering)
        };
        // Before the program, with which the driver counts the added ones as well.
        let added = added_queues_of(&link.name);
        let steering = steer().map_err(|error: SteeringError| refused(error.to_string()))?;
        let mut notices: Vec<String> = carrier.notice().into_iter().collect();
        if let Some(why) = steering.fallback() {
            notices.push(format!(
                "af_xdp:{interface}: the driver takes no program ({why}), frames are taken behind it (mode=generic), \
                 which costs more for each"
            ));
            if loses_merged(link, settings.mode) {
                notices.push(loses_merged_notice(interface));
            }
        }
        if steering.fallback().is_none() && settings.mode != Mode::Generic {
            notices.extend(added.map(|why| format!("af_xdp:{interface}: {why}")));
        }
        if let Some(why) = not_huge {
            notices.push(format!(
                "af_xdp:{interface}: packet memory is in small pages, there are no large ones ({why}); \
                 \"sysctl vm.nr_hugepages=64\" makes some"
            ));
        }
        let mut attachments = attachments(
            workers,
            (&plan, sockets),
            &steering,
            (network, carrier.vlan),
        )
        .map_err(|error| refused(format!("dup() failed: {error}")))?;
        for attachment in attachments.iter_mut().filter(|_| offload) {
            attachment.outlet = outlet(link);
        }
        Ok(Made {
            attachments,
            hold: Hold::made(steering),
            notices,
        })
    }

    /// Has them open ports together, as the answer to a connection of one may come to the queues of another. `attachments` are all
    /// of the interface.
    pub(super) fn share_opened(
        attachments: &mut [&mut Self],
        ports: &RangeInclusive<u16>,
    ) -> io::Result<()> {
        let opened = Self::opened_ports(attachments.iter().map(|it| &**it), ports)?;
        let opened = Arc::new(opened);
        for attachment in attachments {
            attachment.opened = Arc::clone(&opened);
        }
        Ok(())
    }

    /// The ports that all of the interface's tables bring. `attachments` are all of it.
    pub(super) fn opened_ports<'a>(
        attachments: impl Iterator<Item = &'a Self>,
        ports: &RangeInclusive<u16>,
    ) -> io::Result<OpenedPorts> {
        // Without partitions they have one table.
        let owners = attachments.filter(|it| it.is_partition || it.worker == 0);
        OpenedPorts::of(owners.map(|it| &it.table[0]), ports.clone())
    }

    /// Sets up what the workers of this process share. `attachments` are all of them.
    pub(super) fn prepare(attachments: &[&Self]) -> io::Result<()> {
        let shared = attachments.first().map(|first| Arc::clone(&first.shared));
        // A single worker opens the table together with its link, and not before it owns the device: until then the
        // table may be the previous process's.
        let shared = shared.filter(|shared| !shared.is_for_one());
        let opened = shared.map_or(Ok(()), |shared| shared.open(attachments));
        match opened.map_err(unbound_is_gone) {
            // Each worker finds that out, and reports it.
            Err(error) if super::is_gone(&error) => Ok(()),
            opened => opened,
        }
    }

    /// Whether another process can take the queues over: no other worker uses any of them.
    pub(super) fn is_movable(&self) -> bool {
        self.shared.is_for_one()
            && self
                .sockets
                .iter()
                .all(|socket| socket.options.sharers == 1)
    }

    /// The queues at which it has sockets.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.sockets.iter().map(|socket| socket.queue)
    }

    /// Whether the frames of a queue are all one worker's.
    pub(super) fn are_one_workers(&self) -> bool {
        self.shared.are_queues_one_workers()
    }

    /// Makes the link. With an ownership lock other processes may own the queues, and they move from one to another.
    pub(super) fn link(
        self,
        ownership: Option<OwnershipLock>,
        (aim, number): (Aim, ProcessNumber),
        on_trouble: impl Fn(Trouble) + Clone + Send + 'static,
    ) -> io::Result<Placed> {
        // Look the name up by index: the interface may have been renamed. Another one may have its old name, and one
        // that was deleted has no name.
        let name = interface::name(self.network.link.index)?;
        let monitor = NetlinkMonitor::of(&name).map_err(|error| match error.is_gone() {
            true => error.cause,
            false => io::Error::other(error),
        })?;
        let tell = on_trouble.clone();
        let is_first = self.worker == 0;
        let on_fault = Box::new(move |trouble| {
            if is_first {
                on_trouble(trouble_of(trouble));
            }
        });
        let state = &monitor.network().link;
        let Some(ownership) = ownership else {
            let (queues, table) = match self.shared.is_for_one() {
                true => self.open(state, Table::open, tell)?,
                false => self.open(state, |_| self.shared.table(), tell)?,
            };
            let among_sharers = if self.is_partition { 0 } else { self.worker };
            let link = InterfaceLink::new((queues, among_sharers), table, monitor, on_fault);
            return Ok(Placed::Owner(Box::new(link)));
        };
        let (endpoint, is_ours) = Endpoint::new(ownership, number)?;
        if is_ours {
            // The former owner may have ended before its successors have noticed: what they serve stays served.
            let (queues, table) = self.open(state, Table::inherit, tell.clone())?;
            let open =
                Box::new(move |state: &LinkState| self.open(state, Table::inherit, tell.clone()));
            let link = InterfaceLink::new((queues, 0), table, monitor, on_fault);
            return Ok(Placed::Owner(Box::new(
                link.with_handover(endpoint, open, aim),
            )));
        }
        let (has_outlet, opened) = (self.outlet.is_some(), Arc::clone(&self.opened));
        let link = StandbyLink::waiting(Parts {
            member: Member::new(endpoint, aim),
            origin: Origin::Interface {
                open: Box::new(move |state: &LinkState| {
                    self.open(state, Table::inherit, tell.clone())
                }),
                monitor,
                changes: Vec::new(),
                has_outlet,
                opened,
            },
            on_fault,
            wanted: Wanted::default(),
            has_failed: false,
        });
        Ok(Placed::Standby(Box::new(link)))
    }

    fn open(
        &self,
        state: &LinkState,
        table: impl FnOnce([OwnedFd; 2]) -> io::Result<Table>,
        tell: impl Fn(Trouble) + Clone + Send + 'static,
    ) -> io::Result<(Queues, Table)> {
        let [served, counters] = &self.table;
        let table = table([served.try_clone()?, counters.try_clone()?])?;
        table.share_opened(Arc::clone(&self.opened));
        // Packet memory keeps the layout that it was made with, however many processes use it in turn.
        let options = XdpLinkOptions {
            address: state.mac.0,
            mtu: self.network.link.mtu,
            peer_may_be_local: state.peer_may_be_local(),
        };
        // The first worker reports what is true for all.
        let is_first = self.worker == 0;
        let mut links = Vec::with_capacity(self.sockets.len());
        for socket in &self.sockets {
            let memory = SharedMemory::open(socket.memory.try_clone()?)?;
            let descriptor = socket.descriptor.try_clone()?;
            let xsk = match socket.options.sharers {
                1 => Xsk::open(descriptor, memory, &socket.options).map_err(unbound_is_gone)?,
                _ => self
                    .shared
                    .pool(socket.queue)?
                    .take(socket.place, descriptor, memory)?,
            };
            let on_trouble = tell.clone();
            let link = XdpLink::new(xsk, options).on_trouble(move |trouble| {
                if is_first || trouble != XdpTrouble::DeviceGone {
                    on_trouble(queue_trouble(trouble));
                }
            });
            links.push(link);
        }
        let first = links.remove(0);
        let outlet = self.outlet.as_ref().map(OwnedFd::try_clone).transpose()?;
        let outlet = outlet.map(Outlet::new);
        let mut queues = Queues::new(first, links).with_outlet(outlet);
        if !queues.set_mtu(state.mtu) && is_first {
            tell(trouble_of(InterfaceFault::MtuTooLarge(state.mtu)));
        }
        Ok((queues, table))
    }
}

/// The link, depending on whether this process owns the interface.
pub(super) enum Placed {
    Owner(Box<InterfaceLink>),
    Standby(Box<StandbyLink>),
}

impl<D> AfXdp<D> {
    /// The virtual network whose tag the frames have.
    pub(super) fn vlan(&self) -> Option<Vlan> {
        self.vlan
    }

    /// The kernel's addresses and routes.
    pub(super) fn configure(&self, host: &mut HostConfig, settings: &AfXdpSettings) {
        host.addresses.clone_from(&self.network.addresses);
        host.routes.clone_from(&self.network.routes);
        host.neighbors = Neighboring::Kernel;
        host.ephemeral_ports = settings.ports.clone();
    }

    pub(super) fn try_map<E>(&self, copy: impl Fn(&D) -> io::Result<E>) -> io::Result<AfXdp<E>> {
        let [served, counters] = &self.table;
        let sockets = self.sockets.iter().map(|socket| {
            Ok(Socket {
                descriptor: copy(&socket.descriptor)?,
                memory: copy(&socket.memory)?,
                queue: socket.queue,
                place: socket.place,
                options: socket.options,
            })
        });
        Ok(AfXdp {
            sockets: sockets.collect::<io::Result<_>>()?,
            outlet: self.outlet.as_ref().map(&copy).transpose()?,
            table: [copy(served)?, copy(counters)?],
            shared: Arc::clone(&self.shared),
            opened: Arc::clone(&self.opened),
            worker: self.worker,
            is_partition: self.is_partition,
            network: self.network.clone(),
            vlan: self.vlan,
        })
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = &D> {
        let sockets = self.sockets.iter();
        sockets
            .flat_map(|socket| [&socket.descriptor, &socket.memory])
            .chain(&self.table)
            .chain(&self.outlet)
    }
}

/// A way out for long segments, if the device cuts them. Without the socket all leaves as frames.
fn outlet(link: &LinkState) -> Option<OwnedFd> {
    let cuts = interface::has_segmentation(&link.name).unwrap_or(false);
    cuts.then(|| packet::create(link.index).ok()).flatten()
}

/// The rings of a socket whose interface was deleted, or moved to another namespace for a time, cannot be mapped
/// (xsk_mmap).
fn unbound_is_gone(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::ResourceBusy => io::Error::from_raw_os_error(ENODEV),
        _ => error,
    }
}
