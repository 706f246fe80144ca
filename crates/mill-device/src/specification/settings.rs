//! Settings of one kind of device.

use std::fmt;
use std::ops::RangeInclusive;

/// The threads that run a stack, each with a host and an attachment of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    pub count: u32,
    pub spread: Spread,
}

/// Which worker a flow belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// The worker that has the queue at which its frames arrive, as long as there are as many queues as workers: they
    /// share nothing then.
    #[default]
    ByQueue,
    /// The worker that a hash of its addresses and ports selects, at whichever queue its frames arrive: the queue of an
    /// outgoing connection's answers is not known in advance.
    ByFlow,
    /// As `ByQueue`, but each worker is a process, which may take over what another one has (`handover.rs`): as many workers as
    /// there are queues, up to `count`.
    ByPartition,
}

/// What has a stack of its own in a program that is not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StacksPer {
    #[default]
    Process,
    Thread,
}

/// Settings of `af_xdp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfXdpSettings {
    /// The receive queues; empty for all of them.
    pub queues: Vec<u32>,
    pub mode: Mode,
    /// Whether to require it.
    pub zero_copy: bool,
    /// Whether to request them.
    pub hugepages: bool,
    /// Frames received and not released: slots in packet memory, and descriptors of the ring.
    pub receive_frames: u32,
    /// Frames that may wait to be sent, likewise.
    pub transmit_frames: u32,
    /// Local ports of outgoing connections.
    pub ports: RangeInclusive<u16>,
}

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver if that is possible, else in generic mode.
    Any,
    /// In the driver.
    Native,
    /// In generic mode, at the cost of the kernel's own packet memory.
    Generic,
}

/// Settings of `memif`.
#[derive(Clone, PartialEq, Eq)]
pub struct MemifSettings {
    /// Has to be set.
    pub role: Option<Role>,
    /// The interface's number at the socket.
    pub id: u32,
    /// The secret that the slave has to send; empty: none.
    pub secret: String,
    /// Rings in each direction.
    pub rings: u32,
    /// Buffers of a ring: a power of two.
    pub ring_size: u32,
    /// Bytes of each buffer that the slave makes.
    pub buffer_bytes: u32,
}

/// Settings of `dpdk`: how the port is opened, or the bridge to it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DpdkSettings {
    /// Whether a process of its own has the port.
    pub bridge: bool,
    /// Where it may run; empty for everywhere.
    pub cores: Vec<u32>,
    /// Queues of the port in each direction, and rings of the bridge; 0: one for each worker.
    pub queue_pairs: u32,
    /// Whether to use them.
    pub hugepages: bool,
    /// The stack's; `None` for one that is made from its IP address.
    pub ethernet_address: Option<[u8; 6]>,
    /// More arguments of EAL.
    pub arguments: Vec<String>,
}

impl DpdkSettings {
    /// Queue pairs behind a bridge, which one worker serves.
    pub(crate) fn bridge_pairs(&self) -> u32 {
        self.queue_pairs.max(1)
    }

    /// The most that a port in this process has.
    pub(crate) fn pairs_max(&self) -> u32 {
        match self.queue_pairs {
            0 => QUEUE_PAIRS_MAX,
            pairs => pairs,
        }
    }
}

/// Queue pairs of a port in this process, and so workers on it, unless `queue-pairs=` says another number.
const QUEUE_PAIRS_MAX: u32 = 64;

/// The two ends of a memif.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Makes the socket and listens.
    Master,
    /// Connects, and owns the memory.
    Slave,
}

/// 4096 slots of 2 KiB hold the frames of 4 ms at a million a second; all together are 12 MiB.
impl Default for AfXdpSettings {
    fn default() -> Self {
        Self {
            queues: Vec::new(),
            mode: Mode::Any,
            zero_copy: true,
            hugepages: true,
            receive_frames: 4096,
            transmit_frames: 2048,
            ports: 10240..=32767,
        }
    }
}

/// The defaults of VPP, libmemif and DPDK.
impl Default for MemifSettings {
    fn default() -> Self {
        Self {
            role: None,
            id: 0,
            secret: String::new(),
            rings: 1,
            ring_size: 1024,
            buffer_bytes: 2048,
        }
    }
}

impl Default for DpdkSettings {
    fn default() -> Self {
        Self {
            bridge: false,
            cores: Vec::new(),
            queue_pairs: 0,
            hugepages: true,
            ethernet_address: None,
            arguments: Vec::new(),
        }
    }
}

/// Does not print the secret.
impl fmt::Debug for MemifSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MemifSettings")
            .field("role", &self.role)
            .field("id", &self.id)
            .field("rings", &self.rings)
            .field("ring_size", &self.ring_size)
            .field("buffer_bytes", &self.buffer_bytes)
            .finish_non_exhaustive()
    }
}

impl Default for Workers {
    fn default() -> Self {
        Self {
            count: 1,
            spread: Spread::default(),
        }
    }
}
