//! One end of a memif.

use super::dpdk::bridge::PROGRAM;
use super::dpdk::output;
use super::inherited_device::{same_terms, unknown, vlan_terms};
use super::movable::Movable;
use super::{AttachError, Trouble};
use crate::direct::DirectLink;
use crate::handover::VERSION;
use crate::memif::dispatch;
use crate::memif::leader::Leader;
use crate::memif::share::Share;
use crate::memif::{self, MemifChange, MemifLink, MemifOptions};
use crate::specification::Specification;
use crate::specification::device::Device;
use crate::specification::port::Port;
use crate::specification::settings::Role;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A worker's part of one end.
#[derive(Clone, Debug)]
pub(super) enum Memif<D> {
    /// The worker that connects, and gives the others their rings.
    First(First<D>),
    /// Another one.
    Other {
        /// The channel to the first one.
        first: D,
        share: Share,
    },
}

#[derive(Clone, Debug)]
pub(super) struct First<D> {
    meeting: Meeting<D>,
    /// How a connection comes from one process to the next. None if the previous binary made none: there each process connects
    /// anew.
    passage: Option<[D; 2]>,
    /// The channels to the other workers.
    others: Vec<D>,
}

/// The socket at which the two ends connect.
#[derive(Clone, Debug)]
enum Meeting<D> {
    Master {
        listener: D,
    },
    Slave {
        socket: PathBuf,
    },
    /// The slave of a bridge to a port, with the file of its socket, and what the bridge writes.
    Bridge {
        socket: D,
        output: D,
    },
}

impl Memif<OwnedFd> {
    /// One end with a part for each worker that can have rings of its own. Makes the socket, if this end is the one that listens.
    pub(super) fn make(
        socket: &Path,
        specification: &Specification,
    ) -> Result<Vec<Self>, AttachError> {
        let failed = |error: &io::Error| {
            let path = socket.display();
            AttachError(format!("the socket \"{path}\" can't be made: {error}"))
        };
        let meeting = match specification.memif.role {
            Some(Role::Master) => Meeting::Master {
                listener: memif::listener_when_free(socket).map_err(|error| failed(&error))?,
            },
            Some(Role::Slave) | None => Meeting::Slave {
                socket: socket.to_owned(),
            },
        };
        let workers = specification.attachments();
        Self::parts(meeting, workers)
            .map_err(|error| AttachError(format!("the workers' channels can't be made: {error}")))
    }

    fn parts(meeting: Meeting<OwnedFd>, workers: u32) -> io::Result<Vec<Self>> {
        let mut channels = Vec::new();
        let mut others = Vec::new();
        for worker in 1..workers {
            let [ours, theirs] = dispatch::pair()?;
            channels.push(ours);
            others.push(Self::Other {
                first: theirs,
                share: Share { worker, workers },
            });
        }
        let first = Self::First(First {
            meeting,
            passage: Some(dispatch::pair()?),
            others: channels,
        });
        Ok(core::iter::once(first).chain(others).collect())
    }

    /// The only worker's part of the end of a bridge to a port.
    pub(super) fn of_bridge(socket: OwnedFd, output: OwnedFd) -> Result<Self, AttachError> {
        let passage = dispatch::pair().map_err(|error| {
            AttachError(format!("the way between processes can't be made: {error}"))
        })?;
        Ok(Self::First(First {
            meeting: Meeting::Bridge { socket, output },
            passage: Some(passage),
            others: Vec::new(),
        }))
    }

    /// What another process has to know besides the descriptors.
    pub(super) fn describe(&self, specification: &Specification) -> String {
        let share = match self {
            Self::First(First { passage: None, .. }) => None,
            Self::First(First { others, .. }) => Some(Share {
                worker: 0,
                workers: u32::try_from(others.len() + 1).unwrap_or(u32::MAX),
            }),
            Self::Other { share, .. } => Some(*share),
        };
        format!("{VERSION} {}", terms(specification, share))
    }

    /// Parses the description that the previous binary, or the keeper of a device, has sent.
    pub(super) fn inherit(
        specification: &Specification,
        text: &str,
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> Result<Self, AttachError> {
        let share = described_share(text);
        same_terms(text, &terms(specification, share))?;
        let mut next = || descriptors.next().ok_or_else(|| unknown(text));
        if let Some(share) = share.filter(|share| share.worker > 0) {
            return Ok(Self::Other {
                first: next()?,
                share,
            });
        }
        let meeting = match &specification.device {
            Device::Memif { socket } => match specification.memif.role {
                Some(Role::Master) => Meeting::Master { listener: next()? },
                Some(Role::Slave) | None => Meeting::Slave {
                    socket: socket.clone(),
                },
            },
            Device::Dpdk { .. } => Meeting::Bridge {
                socket: next()?,
                output: next()?,
            },
            Device::Tap { .. } | Device::AfXdp { .. } => return Err(unknown(text)),
        };
        let passage = match share {
            Some(_) => Some([next()?, next()?]),
            None => None,
        };
        let others = share.map_or(0, |share| share.workers.saturating_sub(1));
        let others = (0..others).map(|_| next()).collect::<Result<_, _>>()?;
        Ok(Self::First(First {
            meeting,
            passage,
            others,
        }))
    }

    /// How it is opened, by one process after the other. `on_trouble` gets what happens to the peer.
    pub(super) fn movable(
        self,
        specification: &Specification,
        on_trouble: impl Fn(Trouble) + Clone + Send + 'static,
    ) -> Movable {
        let options = options(specification);
        Movable {
            properties: MemifLink::properties_of(&options),
            kind: "memif",
            open: Box::new(move || {
                let output = self.output().map(OwnedFd::try_clone).transpose()?;
                let mut link = match self.try_map(OwnedFd::try_clone)? {
                    Self::First(first) => first.open(&options)?,
                    Self::Other { first, share } => MemifLink::follow(first, share, &options)?,
                };
                let on_trouble = on_trouble.clone();
                let is_first = matches!(self, Self::First(_));
                link.on_change(move |change| {
                    let trouble = match &output {
                        Some(output) => trouble_of_bridge(change, output),
                        None => trouble_of(change),
                    };
                    // The first worker reports what is true for all.
                    if is_first || matches!(change, MemifChange::Failed(_)) {
                        on_trouble(trouble);
                    }
                });
                Ok(DirectLink::Memif(link))
            }),
        }
    }
}

impl First<OwnedFd> {
    fn open(self, options: &MemifOptions) -> io::Result<MemifLink> {
        let link = match self.meeting {
            Meeting::Master { listener } => MemifLink::serve(listener, options),
            Meeting::Slave { socket } => MemifLink::connect(&socket, options),
            Meeting::Bridge { socket, .. } => MemifLink::connect_to(socket, options),
        };
        link?.lead(Leader::new(self.passage, self.others))
    }
}

/// The worker that a description is of; none in those of binaries that knew one worker.
fn described_share(text: &str) -> Option<Share> {
    let (_, rest) = text.split_once(" worker ")?;
    let mut words = rest.split(' ');
    let worker = words.next()?.parse().ok()?;
    let workers = words.nth(1)?.parse().ok()?;
    Some(Share { worker, workers })
}

/// What both processes have to agree on, and the worker. A binary that knows no words for that refuses the device: it would wait for
/// a peer that is connected already.
fn terms(specification: &Specification, share: Option<Share>) -> String {
    let socket = match &specification.device {
        Device::Memif { socket } => socket,
        Device::Dpdk { port } => return terms_of_port(port, specification, share),
        Device::Tap { .. } | Device::AfXdp { .. } => return String::new(),
    };
    let settings = &specification.memif;
    let role = match settings.role {
        Some(Role::Master) => "master",
        Some(Role::Slave) | None => "slave",
    };
    let (path, id) = (socket.display(), settings.id);
    let (mtu, offload) = (specification.mtu(), specification.offload);
    let worker = worker_term(share);
    format!(
        "memif {path}{worker} role {role} id {id} mtu {mtu} offload {offload}{}",
        vlan_terms(specification.vlan())
    )
}

fn worker_term(share: Option<Share>) -> String {
    share.map_or_else(String::new, |Share { worker, workers }| {
        format!(" worker {worker} of {workers}")
    })
}

fn terms_of_port(port: &Port, specification: &Specification, share: Option<Share>) -> String {
    let (mtu, rings) = (specification.mtu(), specification.memif.ring_size);
    let settings = &specification.dpdk;
    let (pairs, cores) = (settings.bridge_pairs(), &settings.cores);
    let (hugepages, arguments) = (settings.hugepages, settings.arguments.join(" "));
    let (port, worker) = (port.description(), worker_term(share));
    format!(
        "dpdk {port}{worker} mtu {mtu} ring-size {rings} queue-pairs {pairs} core {cores:?} hugepages {hugepages} eal [{arguments}]"
    )
}

/// The link's options as the specification gives them.
pub(crate) fn options(specification: &Specification) -> MemifOptions {
    let settings = &specification.memif;
    let rings = match specification.device {
        Device::Dpdk { .. } => specification.dpdk.bridge_pairs(),
        _ => settings.rings,
    };
    MemifOptions {
        address: ethernet_address(specification),
        mtu: specification.mtu(),
        id: settings.id,
        secret: settings.secret.clone(),
        // Values out of range become 0, which validation refuses.
        rings: u16::try_from(rings).unwrap_or(0),
        ring_size: u16::try_from(settings.ring_size).unwrap_or(0),
        buffer_bytes: settings.buffer_bytes,
        offload: specification.offload,
        polling: !specification.polling.is_woken(),
    }
}

/// The stack's Ethernet address: the one that is given, or one that is made from its first IP address.
pub(super) fn ethernet_address(specification: &Specification) -> [u8; 6] {
    let first = specification.addresses.first();
    let derived = mac_of(first.map(|prefix| prefix.address));
    specification.dpdk.ethernet_address.unwrap_or(derived)
}

/// What is different with a bridge: it is there from the start, and once it has ended there will be no other.
fn trouble_of_bridge(change: &MemifChange, output: &OwnedFd) -> Trouble {
    match change {
        MemifChange::Absent(io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            let said = output::summary(output.as_fd());
            Trouble::Problem(format!(
                "the bridge to the port, \"{PROGRAM}\", has ended: no frame passes until a restart; its last words: {said}"
            ))
        }
        MemifChange::Up { .. } => Trouble::Notice(String::from("the bridge to the port is there")),
        MemifChange::Down(why) => {
            Trouble::Problem(format!("the bridge to the port has disconnected: {why}"))
        }
        _ => trouble_of(change),
    }
}

fn trouble_of(change: &MemifChange) -> Trouble {
    match change {
        MemifChange::Up { offload: true } => Trouble::Notice(String::from("the peer is there")),
        MemifChange::Up { offload: false } => Trouble::Notice(String::from(
            "the peer is there; frames are of the MTU, with checksums",
        )),
        MemifChange::FewRings { rings, workers } => Trouble::Problem(format!(
            "the peer agrees to {rings} of the {workers} rings in each direction that {workers} workers need: those beyond send and \
             receive nothing; give the peer \"rings={workers}\""
        )),
        MemifChange::Down(why) => Trouble::Notice(format!("the peer is gone: {why}")),
        MemifChange::Failed(why) => Trouble::Problem(format!("no connection to the peer: {why}")),
        MemifChange::Absent(io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            Trouble::Problem(String::from(
                "no process listens at this socket yet, waiting",
            ))
        }
        MemifChange::Absent(io::ErrorKind::PermissionDenied) => Trouble::Problem(String::from(
            "this process may not write to the socket, as its slave has to: give its user that right, by `chown` or \
             `chmod`; a server's is that of `user`",
        )),
        MemifChange::Absent(why) => {
            Trouble::Problem(format!("the socket can't be connected to: {why}"))
        }
    }
}

impl<D> Memif<D> {
    pub(super) fn try_map<E>(&self, copy: impl Fn(&D) -> io::Result<E>) -> io::Result<Memif<E>> {
        Ok(match self {
            Self::First(first) => Memif::First(First {
                meeting: first.meeting.try_map(&copy)?,
                passage: match &first.passage {
                    Some([into, out]) => Some([copy(into)?, copy(out)?]),
                    None => None,
                },
                others: first.others.iter().map(&copy).collect::<io::Result<_>>()?,
            }),
            Self::Other { first, share } => Memif::Other {
                first: copy(first)?,
                share: *share,
            },
        })
    }

    /// In the order in which [`Memif::inherit`] takes them.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = &D> {
        let (first, other) = match self {
            Self::First(first) => (Some(first), None),
            Self::Other { first, .. } => (None, Some(first)),
        };
        let of_first = first.into_iter().flat_map(|first| {
            let passage = first.passage.iter().flatten();
            first
                .meeting
                .descriptors()
                .chain(passage)
                .chain(&first.others)
        });
        of_first.chain(other)
    }

    /// What the bridge to a port writes.
    fn output(&self) -> Option<&D> {
        match self {
            Self::First(First {
                meeting: Meeting::Bridge { output, .. },
                ..
            }) => Some(output),
            _ => None,
        }
    }
}

impl<D> Meeting<D> {
    fn try_map<E>(&self, copy: impl Fn(&D) -> io::Result<E>) -> io::Result<Meeting<E>> {
        Ok(match self {
            Self::Master { listener } => Meeting::Master {
                listener: copy(listener)?,
            },
            Self::Slave { socket } => Meeting::Slave {
                socket: socket.clone(),
            },
            Self::Bridge { socket, output } => Meeting::Bridge {
                socket: copy(socket)?,
                output: copy(output)?,
            },
        })
    }

    fn descriptors(&self) -> impl Iterator<Item = &D> {
        let all = match self {
            Self::Master { listener } => [Some(listener), None],
            Self::Slave { .. } => [None, None],
            Self::Bridge { socket, output } => [Some(socket), Some(output)],
        };
        all.into_iter().flatten()
    }
}

/// A locally administered Ethernet address (IEEE 802 8.4), derived from the IP address: unique on the link as that is,
/// and the same after a restart.
fn mac_of(address: Option<IpAddr>) -> [u8; 6] {
    let [a, b, c, d] = match address {
        Some(IpAddr::V4(address)) => address.octets(),
        Some(IpAddr::V6(address)) => {
            let octets = address.octets();
            [octets[12], octets[13], octets[14], octets[15]]
        }
        None => [0; 4],
    };
    [2, 0xfe, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::Attached;
    use std::os::fd::BorrowedFd;

    #[test]
    fn both_ends_have_ethernet_addresses_of_their_own() {
        let of = |text: &str| mac_of(Some(text.parse().unwrap()));
        assert_eq!(of("10.0.0.1"), [2, 0xfe, 10, 0, 0, 1]);
        assert_eq!(of("fd00::a:1"), [2, 0xfe, 0, 10, 0, 1]);
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }

    fn specification(more: &str) -> Specification {
        let text = format!("memif:@mill-parts,role=slave,address=10.0.0.1/24{more}");
        let mut specification = Specification::parse(&text).unwrap();
        specification.workers.count = 3;
        specification
    }

    #[test]
    fn there_are_as_many_parts_as_workers_but_no_more_than_rings() {
        for (more, expected) in [("", 1), (",rings=2", 2), (",rings=3", 3), (",rings=4", 3)] {
            let made = Attached::make(&specification(more)).unwrap();
            assert_eq!(made.attachments.len(), expected, "{more}");
            assert_eq!(Attached::forward(&made.attachments), expected > 1);
        }
    }

    #[test]
    fn the_parts_of_all_workers_are_inherited() {
        let specification = specification(",rings=3");
        let made = Attached::make(&specification).unwrap();
        let exported = Attached::export(&made.attachments, &made.hold, &specification).unwrap();
        let text = exported.text.clone();
        let copy = |descriptors: &[BorrowedFd<'_>]| -> Vec<OwnedFd> {
            let copies = descriptors.iter().map(BorrowedFd::try_clone_to_owned);
            copies.collect::<io::Result<_>>().unwrap()
        };
        let descriptors = copy(&exported.descriptors);
        let next = Attached::inherit(&specification, &text, descriptors).unwrap();
        assert_eq!(next.attachments.len(), 3);
        let again = Attached::export(&next.attachments, &next.hold, &specification).unwrap();
        assert_eq!(again.text, text);
        assert_eq!(again.descriptors.len(), exported.descriptors.len());
        let mut few = copy(&exported.descriptors);
        few.pop();
        let refused = Attached::inherit(&specification, &text, few);
        assert!(refused.is_err(), "a descriptor is missing");
    }

    #[test]
    fn the_way_of_a_bridges_connection_is_inherited() {
        let text = "dpdk:vdev=net_af_packet0,iface=mill0,bridge=on,address=10.0.0.1/24";
        let specification = Specification::parse(text).unwrap();
        let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let made = Memif::of_bridge(null(), null()).unwrap();
        let text = made.describe(&specification);
        let copies = made.descriptors().map(OwnedFd::try_clone);
        let copies: Vec<_> = copies.collect::<io::Result<_>>().unwrap();
        let next = Memif::inherit(&specification, &text, &mut copies.into_iter()).unwrap();
        assert_eq!(next.descriptors().count(), 4);
        assert_eq!(next.describe(&specification), text);
    }

    /// Of a binary whose device had one worker, and that did not leave its connection to the next one.
    #[test]
    fn earlier_descriptions_are_understood() {
        let specification = specification("");
        let made = Attached::make(&specification).unwrap();
        let ownership = made.attachments[0].ownership.as_ref().unwrap();
        let lock = ownership.descriptors().map(|end| end.try_clone().unwrap());
        let text = format!("{VERSION} memif @mill-parts role slave id 0 mtu 1500 offload true");
        let next = Attached::inherit(&specification, &text, lock.into()).unwrap();
        let again = Attached::export(&next.attachments, &next.hold, &specification).unwrap();
        assert_eq!(again.text, text, "it is described so again");
    }

    #[test]
    fn a_socket_that_must_not_be_made_is_reported() {
        let text = "memif:/nowhere/at/all.sock,role=master,address=10.0.0.1/24";
        let specification = Specification::parse(text).unwrap();
        let refused = Attached::make(&specification).unwrap_err().to_string();
        let expected = "the socket \"/nowhere/at/all.sock\" can't be made: ";
        assert!(refused.starts_with(expected), "{refused}");
    }

    #[test]
    fn a_socket_that_may_not_be_written_to_says_which_right_is_missing() {
        let change = MemifChange::Absent(io::ErrorKind::PermissionDenied);
        let Trouble::Problem(text) = trouble_of(&change) else {
            panic!("it is a problem");
        };
        assert!(
            text.contains("`chown`") && text.contains("`user`"),
            "{text}"
        );
    }
}
