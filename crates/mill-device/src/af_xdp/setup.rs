//! Makes the socket and its memory, in the process that has the privileges.

use super::frame_len_max;
use mill_sys::descriptor;
use mill_sys::memory::{Pages, SharedMemory};
use mill_sys::xsk::{self, Copying, HEADROOM, XskError, XskOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The memory, and why it is not of huge pages, if it is not.
#[derive(Debug)]
pub struct XdpMemory {
    pub memory: SharedMemory,
    pub not_huge: Option<io::Error>,
}

/// Options of a socket for an MTU: slots as small as the longest frame allows, or frames of several pieces where the
/// largest slot is too small.
pub fn xsk_options(mtu: u16, copying: Copying) -> XskOptions {
    let needed = frame_len_max(mtu) + HEADROOM as usize;
    XskOptions {
        frame_bytes: if needed <= 2048 { 2048 } else { 4096 },
        receive_frames: RECEIVE_FRAMES,
        transmit_frames: TRANSMIT_FRAMES,
        sharers: 1,
        copying,
        in_pieces: needed > 4096,
    }
}

/// The same where several segments may arrive as one packet of up to 64 KiB: in generic mode on an interface whose peer
/// is on this machine, where the kernel leaves segmentation to the receiver.
pub fn for_merged(options: XskOptions) -> XskOptions {
    XskOptions {
        frame_bytes: 4096,
        in_pieces: true,
        ..options
    }
}

/// The same for a device that is told the room of a slot in whole KiB, rounded down: frames of any usual MTU fit into the larger
/// slot, and the MTU may grow while the link is open.
pub fn for_whole_kib(options: XskOptions) -> XskOptions {
    XskOptions {
        frame_bytes: 4096,
        ..options
    }
}

/// Makes the memory; of 2 MiB pages if they are wanted and available.
pub fn memory(options: &XskOptions, wanted: Pages) -> io::Result<XdpMemory> {
    let bytes = options.memory_bytes()?;
    let (memory, not_huge) = match SharedMemory::create(NAME, bytes, wanted) {
        Ok(memory) => (memory, None),
        Err(error) if wanted == Pages::Huge => (
            SharedMemory::create(NAME, bytes, Pages::Small)?,
            Some(error),
        ),
        Err(error) => return Err(error),
    };
    Ok(XdpMemory { memory, not_huge })
}

/// Makes the socket. A queue stays busy for a moment after its last socket was closed, for example by a kill: binding
/// is retried.
pub fn socket(
    interface: u32,
    queue: u32,
    memory: &SharedMemory,
    options: &XskOptions,
) -> Result<OwnedFd, XskError> {
    let mut tries_left = BUSY_TRIES_MAX;
    loop {
        match xsk::create(interface, queue, memory, options) {
            Err(failed) if failed.error.raw_os_error() == Some(EBUSY) && tries_left > 0 => {
                tries_left -= 1;
                // No descriptors: waits for the time alone.
                let _ = descriptor::wait_readable(&[], Some(Duration::from_millis(10)));
            }
            result => return result,
        }
    }
}

/// The memory's name in /proc.
const NAME: &str = "millstream-af_xdp";

/// Frames received and not released, together with the slots for the kernel. More of them hold a longer burst; 8 MiB
/// with slots of 2048 bytes.
const RECEIVE_FRAMES: u32 = 4096;

/// Frames that can be queued to be sent.
const TRANSMIT_FRAMES: u32 = 2048;

/// How often a busy queue is retried, 10 ms apart. It was seen to take 50 ms, and over 2 s on an overloaded machine, where the kernel
/// releases it in a work queue.
const BUSY_TRIES_MAX: u32 = 300;

/// "Device or resource busy" (asm-generic/errno-base.h).
const EBUSY: i32 = 16;
