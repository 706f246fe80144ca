//! Frames of those that stand by, which the owner sends for them, or receives once more as they come back.

use crate::handover::member::Member;
use crate::handover::returned_frames::ReturnedFrames;
use crate::relay::Relay;
use mill_stack::link::{Link, LinkProperties, Offload};

/// Sends the frames of those that stand by; whether one is left for which the device has no room.
#[cold]
pub(super) fn carry(
    member: &mut Member,
    returned: &mut ReturnedFrames,
    (device, len_max): (&mut impl Link, usize),
) -> bool {
    member
        .peers
        .carry(|relay, len| send(relay, len, returned, (device, len_max)))
}

/// Sends what a former owner has not sent; whether a frame is left.
#[cold]
pub(super) fn carry_unsent(
    member: &mut Member,
    returned: &mut ReturnedFrames,
    (device, len_max): (&mut impl Link, usize),
) -> bool {
    member.carry_unsent(|relay, len| send(relay, len, returned, (device, len_max)))
}

/// Sends the next frame of a relay, of this length; `false` if the device has no room. One that comes back is received instead.
fn send(
    relay: &mut Relay,
    len: usize,
    returned: &mut ReturnedFrames,
    (device, len_max): (&mut impl Link, usize),
) -> bool {
    if len > len_max {
        relay.take(&mut []);
        return true;
    }
    let Some(room) = device.reserve(len) else {
        return false;
    };
    let room = room.get_mut(..len).unwrap_or_default();
    match relay.take(room) {
        Some(note) if note.returns > 0 => {
            returned.keep(note, room, len_max);
        }
        Some(note) if can_send(note.offload, device.properties()) => {
            device.transmit(len, note.offload);
        }
        _ => {}
    }
    true
}

/// Whether the device does what a frame leaves to it; the frame of a process that expects another device is dropped.
fn can_send(offload: Offload, device: &LinkProperties) -> bool {
    let cuts = device.segment_bytes_max > u32::from(device.mtu);
    match (offload.segmentation, offload.checksum) {
        (Some(_), _) => cuts,
        (None, Some(_)) => device.completes_checksums,
        (None, None) => true,
    }
}
