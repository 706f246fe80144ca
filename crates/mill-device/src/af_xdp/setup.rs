//! Socket and memory of a queue, as they are made by whoever has the rights.

use super::frame_len_max;
use mill_sys::descriptor;
use mill_sys::memory::{Pages, SharedMemory};
use mill_sys::xsk::{self, Copying, HEADROOM, XskError, XskOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Memory, and why it is not made of large pages, if it is not.
#[derive(Debug)]
pub struct XdpMemory {
    pub memory: SharedMemory,
    pub not_huge: Option<io::Error>,
}

/// What a socket for an MTU is made with: places as small as the longest frame allows, in pieces where the largest place is
/// too small.
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

/// The same where several segments may come as one packet of up to 64 KiB: behind a driver of this machine's own, which
/// leaves the cutting of its kernel's segments to whoever needs it.
pub fn for_merged(options: XskOptions) -> XskOptions {
    XskOptions {
        frame_bytes: 4096,
        in_pieces: true,
        ..options
    }
}

/// Makes the memory; of pages of 2 MiB, if they are wanted and there are any to be had.
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

/// Makes the socket. A queue is busy for a moment after its last socket was closed, by a process that was killed, say: it is
/// waited for.
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
                // Waits for nothing but the time.
                let _ = descriptor::wait_readable(&[], Some(Duration::from_millis(10)));
            }
            result => return result,
        }
    }
}

/// The memory's name in /proc.
const NAME: &str = "millstream-af_xdp";

/// Frames that can be received and not released, together with those that the kernel can fill meanwhile. More hold a longer
/// burst; 8 MiB with places of 2048 bytes.
const RECEIVE_FRAMES: u32 = 4096;

/// Frames that can be queued to be sent.
const TRANSMIT_FRAMES: u32 = 2048;

/// How often a queue that is busy is asked for again, 10 ms apart. It was seen to take 50 ms.
const BUSY_TRIES_MAX: u32 = 200;

/// "Device or resource busy" (asm-generic/errno-base.h).
const EBUSY: i32 = 16;
