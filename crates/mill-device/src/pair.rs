//! For tests: a TAP link over a pair of sockets that keep datagrams whole, and can be full.

use crate::tap::TapLink;
use mill_stack::link::{Burst, Link, Offload};
use mill_sys::tap::VNET_HEADER_LEN;
use mill_sys::{descriptor, passing, tap};
use std::os::fd::{AsFd, OwnedFd};

/// A link, and the kernel's end of it.
pub(crate) fn pair() -> (TapLink, OwnedFd) {
    let (near, far) = passing::pair().unwrap();
    for end in [&near, &far] {
        descriptor::set_nonblocking(end.as_fd(), true).unwrap();
    }
    let link = TapLink::new(near, [2, 0, 0, 0, 0, 7], 1500, true);
    (link, far)
}

/// What the link has sent, with its header.
pub(crate) fn take(far: &OwnedFd) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 70_000];
    let len = tap::read(far.as_fd(), &mut buffer).ok()?;
    buffer.truncate(len);
    Some(buffer)
}

/// Has the link send a frame of equal bytes; false if it is full.
pub(crate) fn send(link: &mut impl Link, byte: u8, len: usize) -> bool {
    let Some(room) = link.reserve(len) else {
        return false;
    };
    room.fill(byte);
    link.transmit(len, Offload::default());
    true
}

/// Has the link receive a frame.
pub(crate) fn put(far: &OwnedFd, flags: u8, frame: &[u8]) {
    let mut bytes = vec![0; VNET_HEADER_LEN];
    bytes[0] = flags;
    bytes.extend_from_slice(frame);
    tap::write(far.as_fd(), &bytes).unwrap();
}

/// All frames that the link has now; each is released.
pub(crate) fn drain(link: &mut impl Link) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut burst = Burst::new(4);
    loop {
        burst.clear();
        link.receive(&mut burst);
        if burst.as_slice().is_empty() {
            return frames;
        }
        for received in burst.as_slice() {
            frames.push(link.frame(received.id).to_vec());
            link.release(received.id);
        }
    }
}
