//! A queue of an interface: packet memory, its socket, and the program that steers to it.

use super::{AttachError, Hold, Trouble};
use crate::af_xdp::{XdpLink, XdpLinkOptions, XdpTrouble, setup};
use crate::apart::{ApartLink, Parts};
use crate::interface::{InterfaceLink, InterfaceTrouble, Passage};
use crate::network::follower::Follower;
use crate::network::{ENODEV, LinkState, Network, NetworkError};
use crate::rights::{Right, Rights};
use crate::specification::nearest::nearest;
use crate::specification::settings::{AfXdpSettings, Mode};
use crate::steering::{Steering, SteeringError, Table, WantedMode};
use crate::succession::{Chair, Seat, VERSION};
use crate::wanted::Wanted;
use mill_stack::config::{HostConfig, Neighboring};
use mill_sys::bpf::link;
use mill_sys::interface;
use mill_sys::memory::{Pages, SharedMemory};
use mill_sys::xsk::{Copying, Xsk, XskError, XskOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// What the process in charge has made, and what it found.
#[derive(Clone, Debug)]
pub(super) struct AfXdp<D> {
    socket: D,
    memory: D,
    table: [D; 2],
    options: XskOptions,
    network: Network,
}

/// The same with what stays with the process in charge, and what people have to be told.
pub(super) struct Made {
    pub(super) queue: AfXdp<OwnedFd>,
    pub(super) hold: Hold,
    pub(super) notices: Vec<String>,
}

impl AfXdp<OwnedFd> {
    pub(super) fn make(interface: &str, settings: &AfXdpSettings) -> Result<Made, AttachError> {
        let refused = |what: String| AttachError(format!("af_xdp:{interface}: {what}"));
        let network = Network::of(interface).map_err(|error| refused(not_read(&error)))?;
        check(&network, settings).map_err(refused)?;
        let mut options = xsk_options(network.link.mtu, settings);
        if may_be_merged(&network.link, settings.mode) {
            options = setup::for_merged(options);
        }
        let pages = if settings.hugepages {
            Pages::Huge
        } else {
            Pages::Small
        };
        let memory = setup::memory(&options, pages)
            .map_err(|error| refused(format!("there is no packet memory: {error}")))?;
        let index = network.link.index;
        let socket = setup::socket(index, settings.queue, &memory.memory, &options)
            .map_err(|error| refused(not_bound(&error, settings.queue)))?;
        let wanted = match settings.mode {
            Mode::Any => WantedMode::Fastest,
            Mode::Native => WantedMode::Only(link::Mode::Native),
            Mode::Generic => WantedMode::Only(link::Mode::Generic),
        };
        let steer = || {
            let steering = Steering::attach(index, network.link.receive_queues, wanted)?;
            let rules = steering.rules();
            rules.set_socket(settings.queue, 0, socket.as_fd())?;
            let table = rules.descriptors().map(|map| map.try_clone_to_owned());
            let [Ok(served), Ok(counters)] = table else {
                return Err(SteeringError::Memory(io::Error::last_os_error()));
            };
            Ok((steering, [served, counters]))
        };
        let (steering, table) = steer().map_err(|error| refused(error.to_string()))?;
        let mut notices = Vec::new();
        if let Some(why) = steering.fallback() {
            notices.push(format!(
                "af_xdp:{interface}: the driver takes no program ({why}), frames are taken behind it (mode=generic), \
                 which costs more for each"
            ));
        }
        if let Some(why) = memory.not_huge {
            notices.push(format!(
                "af_xdp:{interface}: packet memory is in small pages, there are no large ones ({why}); \
                 \"sysctl vm.nr_hugepages=64\" makes some"
            ));
        }
        let memory = memory.memory.as_fd().try_clone_to_owned();
        let memory = memory.map_err(|error| refused(format!("dup() failed: {error}")))?;
        let queue = Self {
            socket,
            memory,
            table,
            options,
            network,
        };
        Ok(Made {
            queue,
            hold: Hold::made(steering),
            notices,
        })
    }

    /// The queue, in whichever process; with a chair it may be another's, and go from one to the other.
    pub(super) fn link(
        self,
        chair: Option<Chair>,
        on_trouble: impl Fn(Trouble) + Clone + Send + 'static,
    ) -> io::Result<Placed> {
        // It may be called otherwise now. One that has its old name and another number is another one, and one that is
        // gone has no name.
        let name = interface::name(self.network.link.index)?;
        let follower = Follower::of(&name).map_err(|error| match error.is_gone() {
            true => error.cause,
            false => io::Error::other(error),
        })?;
        let tell = on_trouble.clone();
        let told = Box::new(move |trouble| on_trouble(said(trouble)));
        let Some(chair) = chair else {
            let (xdp, table) = self.open(&follower.network().link, Table::open, tell)?;
            let link = InterfaceLink::new(xdp, table, follower, told);
            return Ok(Placed::There(Box::new(link)));
        };
        let (seat, is_ours) = Seat::at(chair)?;
        if is_ours {
            let (xdp, table) = self.open(&follower.network().link, Table::open, tell.clone())?;
            let open =
                Box::new(move |state: &LinkState| self.open(state, Table::inherit, tell.clone()));
            let link = InterfaceLink::new(xdp, table, follower, told);
            return Ok(Placed::There(Box::new(link.seated(seat, open))));
        }
        let link = ApartLink::waiting(Parts {
            seat,
            open: Box::new(move |state: &LinkState| self.open(state, Table::inherit, tell.clone())),
            follower,
            told,
            wanted: Wanted::default(),
            behind: None,
            heard: Vec::new(),
            has_failed: false,
        });
        Ok(Placed::Apart(Box::new(link)))
    }

    fn open(
        &self,
        state: &LinkState,
        table: impl FnOnce([OwnedFd; 2]) -> io::Result<Table>,
        tell: impl Fn(Trouble) + Clone + Send + 'static,
    ) -> io::Result<(XdpLink, Table)> {
        let memory = SharedMemory::open(self.memory.try_clone()?)?;
        let xsk = Xsk::open(self.socket.try_clone()?, memory, &self.options);
        let xsk = xsk.map_err(unbound_is_gone)?;
        let [served, counters] = &self.table;
        let table = table([served.try_clone()?, counters.try_clone()?])?;
        // Packet memory is what it was made as, however many processes have had it since.
        let options = XdpLinkOptions {
            address: state.mac.0,
            mtu: self.network.link.mtu,
            peer_may_be_local: state.peer_may_be_local(),
        };
        let on_trouble = tell.clone();
        let mut xdp = XdpLink::new(xsk, options).told_of_trouble(move |trouble| match trouble {
            XdpTrouble::DeviceGone => on_trouble(Trouble::DeviceGone),
            XdpTrouble::QueueSendsNothing => on_trouble(Trouble::Said(String::from(
                "the interface has fewer queues to send than to receive by, and sends nothing by this one: \
                 choose a lower queue=, or give it as many (ethtool -L)",
            ))),
        });
        if !xdp.set_mtu(state.mtu) {
            tell(said(InterfaceTrouble::MtuTooLarge(state.mtu)));
        }
        Ok((xdp, table))
    }
}

/// A link as a process finds the interface.
pub(super) enum Placed {
    There(Box<InterfaceLink>),
    Apart(Box<ApartLink>),
}

impl AfXdp<OwnedFd> {
    /// What a successor has to know besides the descriptors.
    pub(super) fn describe(&self, settings: &AfXdpSettings) -> String {
        let XskOptions {
            frame_bytes,
            receive_frames,
            transmit_frames,
            copying,
            in_pieces,
        } = self.options;
        let copying = match copying {
            Copying::AsDriverCan => "as-driver-can",
            Copying::Always => "always",
            Copying::Never => "never",
        };
        let (name, mtu, queue) = (
            &self.network.link.name,
            self.network.link.mtu,
            settings.queue,
        );
        format!(
            "{VERSION} af_xdp {name} mtu {mtu} queue {queue} bytes {frame_bytes} receive {receive_frames} send {transmit_frames} \
             copying {copying} pieces {in_pieces}"
        )
    }

    /// The queue as a predecessor has described it.
    pub(super) fn inherit(
        interface: &str,
        settings: &AfXdpSettings,
        text: &str,
        descriptors: impl Iterator<Item = OwnedFd>,
    ) -> Result<Self, AttachError> {
        let refused = |what: String| AttachError(format!("af_xdp:{interface}: {what}"));
        let strange = || {
            refused(format!(
                "the old binary has a device that this one does not know ({text})"
            ))
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let [
            version,
            "af_xdp",
            name,
            "mtu",
            mtu,
            "queue",
            queue,
            "bytes",
            bytes,
            "receive",
            receive,
            "send",
            send,
            "copying",
            copying,
            "pieces",
            pieces,
        ] = words.as_slice()
        else {
            return Err(strange());
        };
        if *version != VERSION.to_string() {
            return Err(refused(format!(
                "the old binary speaks of it in version {version}, and this one in {VERSION}: stop it and start the new one"
            )));
        }
        if *name != interface || *queue != settings.queue.to_string() {
            return Err(refused(format!(
                "the device can't be changed together with the binary: the old one has af_xdp:{name},queue={queue}"
            )));
        }
        let number = |text: &str| text.parse().map_err(|_| strange());
        let options = XskOptions {
            frame_bytes: number(bytes)?,
            receive_frames: number(receive)?,
            transmit_frames: number(send)?,
            copying: match *copying {
                "as-driver-can" => Copying::AsDriverCan,
                "always" => Copying::Always,
                "never" => Copying::Never,
                _ => return Err(strange()),
            },
            in_pieces: pieces.parse().map_err(|_| strange())?,
        };
        let mut network = Network::of(interface).map_err(|error| refused(error.to_string()))?;
        network.link.mtu = mtu.parse().map_err(|_| strange())?;
        let descriptors: Vec<OwnedFd> = descriptors.collect();
        let [socket, memory, served, counters] = descriptors.try_into().map_err(|_| strange())?;
        Ok(Self {
            socket,
            memory,
            table: [served, counters],
            options,
            network,
        })
    }
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
        Ok(AfXdp {
            socket: copy(&self.socket)?,
            memory: copy(&self.memory)?,
            table: [copy(served)?, copy(counters)?],
            options: self.options,
            network: self.network.clone(),
        })
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = &D> {
        [&self.socket, &self.memory].into_iter().chain(&self.table)
    }
}

/// The rings of a socket whose interface was deleted, or was away in another namespace, can't be had any more (xsk_mmap).
fn unbound_is_gone(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::ResourceBusy => io::Error::from_raw_os_error(ENODEV),
        _ => error,
    }
}

fn xsk_options(mtu: u16, settings: &AfXdpSettings) -> XskOptions {
    let copying = if settings.zero_copy {
        Copying::AsDriverCan
    } else {
        Copying::Always
    };
    XskOptions {
        receive_frames: settings.receive_frames.next_power_of_two(),
        transmit_frames: settings.transmit_frames.next_power_of_two(),
        ..setup::xsk_options(mtu, copying)
    }
}

/// Whether segments may come as one. Drivers that run programs leave that to nobody; of a card the kernel merges none
/// while it has a program (netif_elide_gro).
fn may_be_merged(link: &LinkState, mode: Mode) -> bool {
    let is_behind_driver = match mode {
        Mode::Native => false,
        Mode::Generic => true,
        Mode::Any => !matches!(link.kind.as_deref(), Some("veth" | "tun")),
    };
    is_behind_driver && link.peer_may_be_local()
}

/// What can be told before anything is tried.
fn check(network: &Network, settings: &AfXdpSettings) -> Result<(), String> {
    let link = &network.link;
    if !link.is_up {
        let name = &link.name;
        return Err(format!(
            "the interface is down; \"ip link set {name} up\" switches it on"
        ));
    }
    if settings.queue >= link.receive_queues {
        let (queue, count) = (settings.queue, link.receive_queues);
        return Err(format!(
            "there is no queue {queue}: the interface receives by {count}, counted from 0"
        ));
    }
    Ok(())
}

fn not_read(error: &NetworkError) -> String {
    if !error.is_gone() {
        return error.to_string();
    }
    let wanted = &error.interface;
    let names = interface::names().unwrap_or_default();
    match nearest(wanted, names.iter().map(String::as_str)) {
        Some(name) => format!("there is no interface \"{wanted}\"; did you mean \"{name}\"?"),
        None => {
            format!("there is no interface \"{wanted}\"; \"ip link\" lists those that there are")
        }
    }
}

fn not_bound(failed: &XskError, queue: u32) -> String {
    let has = |right| Rights::own().is_none_or(|own| own.has(right));
    let why = match failed.error.kind() {
        io::ErrorKind::PermissionDenied if has(Right::NET_RAW) => String::from(
            "the interface belongs to another user namespace, over which rights of this one count nothing",
        ),
        io::ErrorKind::PermissionDenied => {
            String::from("the right CAP_NET_RAW is missing, which root has")
        }
        io::ErrorKind::ResourceBusy => {
            format!("somebody else has queue {queue} of the interface, another Millstream perhaps")
        }
        // What the kernel answers where pinned pages would be more than RLIMIT_MEMLOCK (xdp_umem_account_pages).
        _ if failed.error.raw_os_error() == Some(ENOBUFS) => {
            let missing = if has(Right::IPC_LOCK) {
                ""
            } else {
                ", and the right CAP_IPC_LOCK is missing, for which there is no limit"
            };
            format!("packet memory is more than may be locked (ulimit -l){missing}")
        }
        _ => format!("{}: {}", failed.call, failed.error),
    };
    format!("the queue can't be had: {why}")
}

/// "No buffer space available" (asm-generic/errno.h).
const ENOBUFS: i32 = 105;

fn said(trouble: InterfaceTrouble) -> Trouble {
    Trouble::Said(match trouble {
        InterfaceTrouble::Gone => return Trouble::DeviceGone,
        InterfaceTrouble::Passage(Passage::Down) => {
            String::from("the interface is down: connections wait until it is up again")
        }
        InterfaceTrouble::Passage(Passage::NoCarrier) => String::from(
            "the interface has no carrier: connections wait until somebody is at its other end",
        ),
        InterfaceTrouble::Passage(Passage::Open) => {
            String::from("the interface is up again: connections go on")
        }
        InterfaceTrouble::AddressesLeftOut(count) => {
            format!("{count} addresses of the interface are one too many: the kernel serves them")
        }
        InterfaceTrouble::MtuTooLarge(mtu) => format!(
            "packets of {mtu} bytes do not fit into packet memory, which was made for less: \
             longer ones are dropped until a restart"
        ),
        InterfaceTrouble::NotGiven => String::from(
            "another process has the interface and does not give it up, though it was asked to: \
             is the old worker process stopped? New connections are its own until then",
        ),
        InterfaceTrouble::NotTaken(why) => {
            format!("the interface can't be taken over from another process: {why}")
        }
        InterfaceTrouble::Deaf(why) => format!("changes of the interface are not followed: {why}"),
    })
}
