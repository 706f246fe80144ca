//! A link without a device, which takes the place of a link that is being replaced.

use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FrameId, Link, LinkProperties, Offload, Received, Stray,
};
use std::os::fd::{AsFd, BorrowedFd};

/// Receives nothing and sends nothing.
#[derive(Debug)]
pub struct Nowhere;

static NOTHING: LinkProperties = LinkProperties {
    address: [0; 6],
    mtu: 0,
    completes_checksums: false,
    segment_bytes_max: 0,
    cut_bytes_min: 0,
    sends_external: false,
    frames_per_turn: usize::MAX,
};

impl Link for Nowhere {
    fn properties(&self) -> &LinkProperties {
        &NOTHING
    }

    fn receive(&mut self, _burst: &mut Burst) {}

    fn frame(&mut self, _id: FrameId) -> &mut [u8] {
        &mut []
    }

    fn release(&mut self, _id: FrameId) {}

    fn reserve(&mut self, _len_max: usize) -> Option<&mut [u8]> {
        None
    }

    fn transmit(&mut self, _len: usize, _offload: Offload) {}

    fn transmit_external(&mut self, _: usize, _: Offload, _: ExternalBytes<'_>) -> ExternalSent {
        ExternalSent::Unable
    }

    fn flush(&mut self) -> bool {
        false
    }

    fn hand_over(&mut self, _frame: &Received, _stray: &Stray<'_>) -> bool {
        false
    }
}

impl AsFd for Nowhere {
    fn as_fd(&self) -> BorrowedFd<'_> {
        unreachable!("this link is replaced before the next wait")
    }
}
