//! One end of a memif.

use super::dpdk::bridge::PROGRAM;
use super::dpdk::output;
use super::inherited_device::{same_terms, unknown, vlan_terms};
use super::movable::Movable;
use super::{AttachError, Trouble};
use crate::direct::DirectLink;
use crate::handover::VERSION;
use crate::memif::{self, MemifChange, MemifLink, MemifOptions};
use crate::specification::Specification;
use crate::specification::device::Device;
use crate::specification::port::Port;
use crate::specification::settings::Role;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The socket at which the two ends connect.
#[derive(Clone, Debug)]
pub(super) enum Memif<D> {
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
    /// Makes the socket, if this end is the one that listens.
    pub(super) fn new(socket: &Path, specification: &Specification) -> Result<Self, AttachError> {
        let failed = |error: &io::Error| {
            let path = socket.display();
            AttachError(format!("the socket \"{path}\" can't be made: {error}"))
        };
        Ok(match specification.memif.role {
            Some(Role::Master) => Self::Master {
                listener: memif::listener_when_free(socket).map_err(|error| failed(&error))?,
            },
            Some(Role::Slave) | None => Self::Slave {
                socket: socket.to_owned(),
            },
        })
    }

    /// What another process has to know besides the descriptor.
    pub(super) fn describe(specification: &Specification) -> String {
        format!("{VERSION} {}", terms(specification))
    }

    /// Parses the description that the previous binary, or the keeper of a device, has sent.
    pub(super) fn inherit(
        specification: &Specification,
        text: &str,
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> Result<Self, AttachError> {
        same_terms(text, &terms(specification))?;
        let mut next = || descriptors.next().ok_or_else(|| unknown(text));
        let socket = match &specification.device {
            Device::Memif { socket } => socket,
            Device::Dpdk { .. } => {
                return Ok(Self::Bridge {
                    socket: next()?,
                    output: next()?,
                });
            }
            Device::Tap { .. } | Device::AfXdp { .. } => return Err(unknown(text)),
        };
        Ok(match specification.memif.role {
            Some(Role::Master) => Self::Master { listener: next()? },
            Some(Role::Slave) | None => Self::Slave {
                socket: socket.clone(),
            },
        })
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
                let mut link = match self.try_map(OwnedFd::try_clone)? {
                    Self::Master { listener } => MemifLink::serve(listener, &options),
                    Self::Slave { socket } => MemifLink::connect(&socket, &options),
                    Self::Bridge { socket, .. } => MemifLink::connect_to(socket, &options),
                }?;
                let on_trouble = on_trouble.clone();
                let output = self.output().map(OwnedFd::try_clone).transpose()?;
                link.on_change(move |change| {
                    on_trouble(match &output {
                        Some(output) => trouble_of_bridge(change, output),
                        None => trouble_of(change),
                    });
                });
                Ok(DirectLink::Memif(link))
            }),
        }
    }
}

/// What both processes have to agree on.
fn terms(specification: &Specification) -> String {
    let socket = match &specification.device {
        Device::Memif { socket } => socket,
        Device::Dpdk { port } => return terms_of_port(port, specification),
        Device::Tap { .. } | Device::AfXdp { .. } => return String::new(),
    };
    let settings = &specification.memif;
    let role = match settings.role {
        Some(Role::Master) => "master",
        Some(Role::Slave) | None => "slave",
    };
    let (path, id) = (socket.display(), settings.id);
    let (mtu, offload) = (specification.mtu(), specification.offload);
    format!(
        "memif {path} role {role} id {id} mtu {mtu} offload {offload}{}",
        vlan_terms(specification.vlan())
    )
}

fn terms_of_port(port: &Port, specification: &Specification) -> String {
    let (mtu, rings) = (specification.mtu(), specification.memif.ring_size);
    let settings = &specification.dpdk;
    let (pairs, cores) = (settings.bridge_pairs(), &settings.cores);
    let (hugepages, arguments) = (settings.hugepages, settings.arguments.join(" "));
    let port = port.description();
    format!(
        "dpdk {port} mtu {mtu} ring-size {rings} queue-pairs {pairs} core {cores:?} hugepages {hugepages} eal [{arguments}]"
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
            Self::Master { listener } => Memif::Master {
                listener: copy(listener)?,
            },
            Self::Slave { socket } => Memif::Slave {
                socket: socket.clone(),
            },
            Self::Bridge { socket, output } => Memif::Bridge {
                socket: copy(socket)?,
                output: copy(output)?,
            },
        })
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = &D> {
        let all = match self {
            Self::Master { listener } => [Some(listener), None],
            Self::Slave { .. } => [None, None],
            Self::Bridge { socket, output } => [Some(socket), Some(output)],
        };
        all.into_iter().flatten()
    }

    fn output(&self) -> Option<&D> {
        match self {
            Self::Bridge { output, .. } => Some(output),
            Self::Master { .. } | Self::Slave { .. } => None,
        }
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

    #[test]
    fn both_ends_have_ethernet_addresses_of_their_own() {
        let of = |text: &str| mac_of(Some(text.parse().unwrap()));
        assert_eq!(of("10.0.0.1"), [2, 0xfe, 10, 0, 0, 1]);
        assert_eq!(of("fd00::a:1"), [2, 0xfe, 0, 10, 0, 1]);
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
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
