//! What is set for one kind of device only.

use std::ops::RangeInclusive;

/// Of `af_xdp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfXdpSettings {
    /// The number of the receive queue.
    pub queue: u32,
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemifSettings {
    /// Somebody has to say.
    pub role: Option<Role>,
    /// Which interface of the socket.
    pub id: u32,
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
            queue: 0,
            mode: Mode::Any,
            zero_copy: true,
            hugepages: true,
            receive_frames: 4096,
            transmit_frames: 2048,
            ports: 10240..=32767,
        }
    }
}
