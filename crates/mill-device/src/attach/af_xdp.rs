//! Queues of an interface: packet memory, sockets, and the program that steers to them.

/// Which worker has a socket at which queue.
mod plan;

/// What the workers of a process have in common.
mod shared_resources;

/// The sockets of a plan, with their memory.
mod sockets;

/// What is told to the process that comes after.
mod queue_wire_format;

/// What went wrong, in words.
mod sentences;

use super::{AttachError, Hold, Trouble};
use crate::af_xdp::{XdpLink, XdpLinkOptions, XdpTrouble};
use crate::forwarding::WorkerForwarding;
use crate::handover::{Endpoint, OwnershipLock};
use crate::interface::{InterfaceFault, InterfaceLink};
use crate::network::monitor::NetlinkMonitor;
use crate::network::{ENODEV, LinkState, Network};
use crate::queues::Queues;
use crate::specification::settings::{AfXdpSettings, Mode, Workers};
use crate::standby::{Parts, StandbyLink};
use crate::steering::{Steering, SteeringError, Table, WantedMode};
use crate::wanted::Wanted;
use mill_stack::config::{HostConfig, Neighboring};
use mill_sys::bpf::link;
use mill_sys::interface;
use mill_sys::memory::SharedMemory;
use mill_sys::xsk::{Xsk, XskOptions};
use plan::plan;
use sentences::{loses_merged_notice, not_read, said, said_of_queue};
use shared_resources::SharedResources;
use sockets::{attachments, check, loses_merged, make_sockets};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// What the process in charge has made for one worker, and what it found.
#[derive(Clone, Debug)]
pub(super) struct AfXdp<D> {
    /// The first is the one that sends.
    sockets: Vec<Socket<D>>,
    /// What the workers share.
    table: [D; 2],
    shared: Arc<SharedResources>,
    /// Wakes all workers, if they hand frames to each other: where each has queues to itself.
    doorbell: Option<D>,
    worker: u32,
    network: Network,
}

/// A socket at a queue, with the memory of all that are there.
#[derive(Clone, Debug)]
struct Socket<D> {
    descriptor: D,
    memory: D,
    queue: u32,
    /// Its place among those that share the queue.
    place: u32,
    options: XskOptions,
}

/// The same for all workers, with what stays with the process in charge, and what people have to be told.
pub(super) struct Made {
    pub(super) attachments: Vec<AfXdp<OwnedFd>>,
    pub(super) hold: Hold,
    pub(super) notices: Vec<String>,
}

impl AfXdp<OwnedFd> {
    pub(super) fn make(
        interface: &str,
        settings: &AfXdpSettings,
        workers: Workers,
    ) -> Result<Made, AttachError> {
        let refused = |what: String| AttachError(format!("af_xdp:{interface}: {what}"));
        let network = Network::of(interface).map_err(|error| refused(not_read(&error)))?;
        let queues = check(&network.link, settings, workers).map_err(refused)?;
        let plan = plan(workers, &queues, network.link.transmit_queues);
        let (sockets, not_huge) = make_sockets(&network.link, settings, &plan).map_err(refused)?;
        let wanted = match settings.mode {
            Mode::Any => WantedMode::Fastest,
            Mode::Native => WantedMode::Only(link::Mode::Native),
            Mode::Generic => WantedMode::Only(link::Mode::Generic),
        };
        let steer = || {
            let link = &network.link;
            let steering = Steering::attach(link.index, link.receive_queues, wanted)?;
            let rules = steering.rules();
            for (planned, socket) in plan.sockets.iter().zip(&sockets) {
                if let Some(number) = planned.receives {
                    rules.set_socket(planned.queue, number, socket.descriptor.as_fd())?;
                }
            }
            Ok(steering)
        };
        let steering = steer().map_err(|error: SteeringError| refused(error.to_string()))?;
        let mut notices = Vec::new();
        if let Some(why) = steering.fallback() {
            notices.push(format!(
                "af_xdp:{interface}: the driver takes no program ({why}), frames are taken behind it (mode=generic), \
                 which costs more for each"
            ));
            if loses_merged(&network.link, settings.mode) {
                notices.push(loses_merged_notice(interface));
            }
        }
        if let Some(why) = not_huge {
            notices.push(format!(
                "af_xdp:{interface}: packet memory is in small pages, there are no large ones ({why}); \
                 \"sysctl vm.nr_hugepages=64\" makes some"
            ));
        }
        let attachments = attachments(workers.count, (&plan, sockets), &steering, network)
            .map_err(|error| refused(format!("dup() failed: {error}")))?;
        Ok(Made {
            attachments,
            hold: Hold::made(steering),
            notices,
        })
    }

    /// Has the workers of this process know each other. `attachments` are all of them.
    pub(super) fn prepare(attachments: &[&Self]) -> io::Result<()> {
        let shared = attachments.first().map(|first| Arc::clone(&first.shared));
        // Who is alone opens the table with his link, and not before the device is his: it may be a predecessor's still.
        let shared = shared.filter(|shared| !shared.is_for_one());
        let opened = shared.map_or(Ok(()), |shared| shared.open(attachments));
        match opened.map_err(unbound_is_gone) {
            // Each of them finds that out, and says so.
            Err(error) if super::is_gone(&error) => Ok(()),
            opened => opened,
        }
    }

    /// Whether it is all that there is, so that another process can have it after us.
    pub(super) fn has_one_queue(&self) -> bool {
        self.shared.is_for_one() && self.sockets.len() == 1
    }

    /// The queues, in whichever process; with an ownership lock they may be another's, and go from one to the other.
    pub(super) fn link(
        self,
        ownership: Option<OwnershipLock>,
        on_trouble: impl Fn(Trouble) + Clone + Send + 'static,
    ) -> io::Result<Placed> {
        // It may be called otherwise now. One that has its old name and another number is another one, and one that is
        // gone has no name.
        let name = interface::name(self.network.link.index)?;
        let monitor = NetlinkMonitor::of(&name).map_err(|error| match error.is_gone() {
            true => error.cause,
            false => io::Error::other(error),
        })?;
        let tell = on_trouble.clone();
        let is_first = self.worker == 0;
        let on_fault = Box::new(move |trouble| {
            if is_first {
                on_trouble(said(trouble));
            }
        });
        let state = &monitor.network().link;
        let Some(ownership) = ownership else {
            let (queues, table) = match self.shared.is_for_one() {
                true => self.open(state, Table::open, tell)?,
                false => self.open(state, |_| self.shared.table(), tell)?,
            };
            let forwarding = match self.doorbell {
                Some(doorbell) => {
                    let own = self.worker as usize;
                    Some(WorkerForwarding::new(
                        self.shared.frame_queues()?,
                        own,
                        doorbell,
                    ))
                }
                None => None,
            };
            let queues = (queues, self.worker, forwarding);
            let link = InterfaceLink::new(queues, table, monitor, on_fault);
            return Ok(Placed::There(Box::new(link)));
        };
        let (endpoint, is_ours) = Endpoint::new(ownership)?;
        if is_ours {
            // Whoever had it may be gone before those behind him have noticed: what they serve stays served.
            let (queues, table) = self.open(state, Table::inherit, tell.clone())?;
            let open =
                Box::new(move |state: &LinkState| self.open(state, Table::inherit, tell.clone()));
            let link = InterfaceLink::new((queues, 0, None), table, monitor, on_fault);
            return Ok(Placed::There(Box::new(link.with_handover(endpoint, open))));
        }
        let link = StandbyLink::waiting(Parts {
            endpoint,
            open: Box::new(move |state: &LinkState| self.open(state, Table::inherit, tell.clone())),
            monitor,
            on_fault,
            wanted: Wanted::default(),
            successor: None,
            heard: Vec::new(),
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
        // Packet memory is what it was made as, however many processes have had it since.
        let options = XdpLinkOptions {
            address: state.mac.0,
            mtu: self.network.link.mtu,
            peer_may_be_local: state.peer_may_be_local(),
        };
        // What is true for all workers is said by one.
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
            let link = XdpLink::new(xsk, options).told_of_trouble(move |trouble| {
                if is_first || trouble != XdpTrouble::DeviceGone {
                    on_trouble(said_of_queue(trouble));
                }
            });
            links.push(link);
        }
        let first = links.remove(0);
        let mut queues = Queues::new(first, links);
        if !queues.set_mtu(state.mtu) && is_first {
            tell(said(InterfaceFault::MtuTooLarge(state.mtu)));
        }
        Ok((queues, table))
    }
}

/// A link as a process finds the interface.
pub(super) enum Placed {
    There(Box<InterfaceLink>),
    Standby(Box<StandbyLink>),
}

impl<D> AfXdp<D> {
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
            table: [copy(served)?, copy(counters)?],
            shared: Arc::clone(&self.shared),
            doorbell: self.doorbell.as_ref().map(&copy).transpose()?,
            worker: self.worker,
            network: self.network.clone(),
        })
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = &D> {
        let sockets = self.sockets.iter();
        sockets
            .flat_map(|socket| [&socket.descriptor, &socket.memory])
            .chain(&self.table)
            .chain(&self.doorbell)
    }
}

/// The rings of a socket whose interface was deleted, or was away in another namespace, can't be had any more (xsk_mmap).
fn unbound_is_gone(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::ResourceBusy => io::Error::from_raw_os_error(ENODEV),
        _ => error,
    }
}
