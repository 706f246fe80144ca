//! The device, which precedes the first comma.

use super::port::Port;
use super::{SpecificationError, error};
use std::fmt;
use std::path::PathBuf;

/// A device, as specified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// An Ethernet interface that is created; this process is the other end of its wire.
    Tap { name: String },
    /// An interface of this machine, some of whose frames go to the stack.
    AfXdp { interface: String },
    /// Memory that is shared with another process, which is found through a socket.
    Memif { socket: PathBuf },
    /// A port of DPDK, behind a process that carries its frames.
    Dpdk { port: Port },
}

/// The kinds of devices that an option is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Devices {
    pub tap: bool,
    pub af_xdp: bool,
    pub memif: bool,
    pub dpdk: bool,
}

impl Devices {
    pub const ALL: Self = Self {
        tap: true,
        af_xdp: true,
        memif: true,
        dpdk: true,
    };
    const NONE: Self = Self {
        tap: false,
        af_xdp: false,
        memif: false,
        dpdk: false,
    };
    pub const TAP: Self = Self {
        tap: true,
        ..Self::NONE
    };
    pub const AF_XDP: Self = Self {
        af_xdp: true,
        ..Self::NONE
    };
    pub const MEMIF: Self = Self {
        memif: true,
        ..Self::NONE
    };
    pub const DPDK: Self = Self {
        dpdk: true,
        ..Self::NONE
    };
    /// Those whose frames lie in rings of shared memory.
    pub const RINGS: Self = Self {
        memif: true,
        dpdk: true,
        ..Self::NONE
    };
    /// Those whose addresses belong to the stack alone.
    pub const OWN_ADDRESSES: Self = Self {
        af_xdp: false,
        ..Self::ALL
    };

    /// Those whose frames may have the tag of a virtual network.
    pub const TAGGED: Self = Self {
        dpdk: false,
        ..Self::ALL
    };

    pub const fn has(self, device: &Device) -> bool {
        match device {
            Device::Tap { .. } => self.tap,
            Device::AfXdp { .. } => self.af_xdp,
            Device::Memif { .. } => self.memif,
            Device::Dpdk { .. } => self.dpdk,
        }
    }
}

/// As in tables; empty for all kinds.
impl fmt::Display for Devices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return Ok(());
        }
        let kinds = [
            (self.tap, "tap"),
            (self.af_xdp, "af_xdp"),
            (self.memif, "memif"),
            (self.dpdk, "dpdk"),
        ];
        let names: Vec<_> = kinds
            .iter()
            .filter(|(is, _)| *is)
            .map(|kind| kind.1)
            .collect();
        formatter.write_str(&names.join(", "))
    }
}

impl Device {
    pub(super) fn parse(text: &str) -> Result<Self, SpecificationError> {
        let Some((kind, name)) = text.split_once(':') else {
            return Err(error(format!("\"{text}\" is no device: {FORMS}")));
        };
        match kind {
            "tap" => Ok(Self::Tap {
                name: interface_name(name, "tap:ms0")?,
            }),
            "af_xdp" => Ok(Self::AfXdp {
                interface: interface_name(name, "af_xdp:eth0")?,
            }),
            "memif" => Ok(Self::Memif {
                socket: socket_path(name)?,
            }),
            "dpdk" => Ok(Self::Dpdk {
                port: Port::parse(name)?,
            }),
            _ => Err(error(format!("\"{kind}\" is no kind of device: {FORMS}"))),
        }
    }

    /// The kind, as in the specification.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Tap { .. } => "tap",
            Self::AfXdp { .. } => "af_xdp",
            Self::Memif { .. } => "memif",
            Self::Dpdk { .. } => "dpdk",
        }
    }

    /// The kind as the subject of a sentence.
    pub const fn noun(&self) -> &'static str {
        match self {
            Self::Tap { .. } => "a TAP device",
            Self::AfXdp { .. } => "an interface",
            Self::Memif { .. } => "a memif",
            Self::Dpdk { .. } => "a port of DPDK",
        }
    }

    /// Whether the stack's addresses are the kernel's as well, which serves all other ports.
    pub const fn shares_addresses(&self) -> bool {
        matches!(self, Self::AfXdp { .. })
    }
}

/// As in the specification.
impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tap { name } => formatter.write_str(name),
            Self::AfXdp { interface } => formatter.write_str(interface),
            Self::Memif { socket } => write!(formatter, "{}", socket.display()),
            Self::Dpdk { port } => formatter.write_str(&port.name),
        }
    }
}

fn interface_name(name: &str, example: &str) -> Result<String, SpecificationError> {
    let is_letter = |letter: char| letter.is_ascii_graphic() && !"/:%".contains(letter);
    let is_name = !name.is_empty() && name.len() <= NAME_LEN_MAX && name.chars().all(is_letter);
    if name.contains('=') {
        return Err(error(format!(
            "\"{name}\" is no name of a device: options stand behind a comma, as in \"{example},mtu=9000\""
        )));
    }
    if !is_name || RESERVED.contains(&name) {
        return Err(error(format!(
            "\"{name}\" is no name of a device: 1 to {NAME_LEN_MAX} letters or digits are, as in \"{example}\""
        )));
    }
    Ok(name.to_owned())
}

fn socket_path(path: &str) -> Result<PathBuf, SpecificationError> {
    let is_path = path.starts_with(['/', '@']) && (2..=PATH_LEN_MAX).contains(&path.len());
    if !is_path {
        return Err(error(format!(
            "\"{path}\" is no socket: a path of at most {PATH_LEN_MAX} bytes is, as in \"memif:/run/mill.sock\", \
             or an abstract name as in \"memif:@mill\""
        )));
    }
    Ok(PathBuf::from(path))
}

const FORMS: &str = "a device is written as \"tap:ms0\", \"af_xdp:eth0\", \"memif:/run/mill.sock\" or \"dpdk:0000:03:00.0\"";

/// Names that stand for folders below /proc/sys/net, which the kernel gives to no interface.
const RESERVED: &[&str] = &[".", "..", "all", "default"];

/// Bytes of an interface's name (IFNAMSIZ of the kernel's if.h, less the NUL).
const NAME_LEN_MAX: usize = 15;

/// Bytes of a UNIX socket's path (unix(7)), less the NUL.
const PATH_LEN_MAX: usize = 107;
