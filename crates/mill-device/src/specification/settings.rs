//! What is set for one kind of device only.

use std::fmt;
use std::ops::RangeInclusive;

/// The threads that run a stack, each with a host of its own at its seat of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    pub count: u32,
    pub spread: Spread,
}

/// Which worker a flow belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// Who has the queue that it comes by, as long as there are as many queues as workers: they share nothing then.
    #[default]
    ByQueue,
    /// Whom a hash of its addresses and ports names, by whichever queue it comes: who opens connections can't know that
    /// in advance.
    ByFlow,
}

/// Of `af_xdp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfXdpSettings {
    /// The numbers of the receive queues; none means all of them.
    pub queues: Vec<u32>,
    pub mode: Mode,
    /// Whether to ask for it.
    pub zero_copy: bool,
    /// Whether to ask for them.
    pub hugepages: bool,
    /// Frames that may have come and not be done with: places in packet memory, and descriptors of their ring.
    pub receive_frames: u32,
    /// Frames that may wait to be sent, likewise.
    pub transmit_frames: u32,
    /// Of connections that we open.
    pub ports: RangeInclusive<u16>,
}

/// Where frames are taken from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver if it can, else behind it.
    Any,
    /// In the driver.
    Native,
    /// Behind the driver, at the price of the kernel's own packet memory.
    Generic,
}

/// Of `memif`.
#[derive(Clone, PartialEq, Eq)]
pub struct MemifSettings {
    /// Somebody has to say.
    pub role: Option<Role>,
    /// Which interface of the socket.
    pub id: u32,
    /// What the slave has to know; empty: nothing.
    pub secret: String,
    /// Rings in each direction.
    pub rings: u32,
    /// Buffers of a ring: a power of two.
    pub ring_size: u32,
    /// Bytes of each buffer, which the slave makes.
    pub buffer_bytes: u32,
}

/// The two ends of a memif.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Makes the socket and waits.
    Master,
    /// Connects, and owns the memory.
    Slave,
}

/// 4096 places of 2 KiB hold the frames of 4 ms at a million a second; all together are 12 MiB.
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

/// As VPP, libmemif and DPDK have it.
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

/// The secret stays one.
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
