//! Recovering the owner of frames that a former process has left.
//!
//! The memory outlives a process, and behind the frames it has a byte for each that says which side owns it. A process
//! may end at any point, so its last change may be missing there; the contents of the rings decide. A frame that was
//! marked as the kernel's and never published is in no ring, just like one that the kernel is processing; such frames
//! are taken back only if the counts of the rings show that the kernel has none. Otherwise they are lost until the
//! socket is made anew: at most one burst for each process that is killed.

use super::pool::OwnRings;
use super::ring::{Consumer, Producer};
use super::socket;
use crate::memory::frames::Frames;
use std::os::fd::BorrowedFd;

/// What was found when a socket was taken over; zero for a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Frames that had arrived and were not taken.
    pub waiting: u32,
    /// Frames that the kernel had still to send.
    pub unsent: u32,
    /// Slots that the kernel had for receiving.
    pub filling: u32,
    /// Frames that were marked as the kernel's and were taken back.
    pub reclaimed: u32,
}

/// Makes the owner bytes agree with the rings of all sockets of a queue. Frames below `boundary` are for receiving.
/// `is_exact`: the kernel has skipped no entry.
pub(super) fn recover(
    frames: &mut Frames,
    boundary: u32,
    (fill, completed): (&mut Producer<u64>, &mut Consumer<u64>),
    sockets: &mut [OwnRings],
    is_exact: bool,
) -> Recovered {
    let filling = fill.unseen();
    let sent = completed.waiting();
    let (mut waiting, mut unsent) = (Vec::new(), Vec::new());
    let (mut arrived_count, mut taken_count) = (0_u32, 0_u32);
    for (received, transmit) in sockets {
        waiting.extend(received.waiting().iter().map(|piece| piece.address));
        unsent.extend(transmit.unseen().iter().map(|piece| piece.address));
        arrived_count = arrived_count.wrapping_add(received.put_count());
        taken_count = taken_count.wrapping_add(transmit.taken_count());
    }
    let shift = frames.frame_bytes().trailing_zeros();
    let mut is_in_ring = vec![false; frames.count() as usize];
    let all = filling.iter().chain(&sent).chain(&waiting).chain(&unsent);
    for address in all {
        let number = u32::try_from(address >> shift).unwrap_or(u32::MAX);
        // An entry that waits belongs to the kernel until it is taken; a mark to the contrary was made just before the
        // end.
        let _ = frames.give(number);
        if let Some(entry) = is_in_ring.get_mut(number as usize) {
            *entry = true;
        }
    }
    // Each slot in the fill ring becomes one in the receive ring, and each piece in the transmit ring one in the
    // completion ring.
    let receives_none = is_exact && fill.taken_count() == arrived_count;
    let sends_none = is_exact && taken_count == completed.put_count();
    let counted = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Recovered {
        waiting: counted(waiting.len()),
        unsent: counted(unsent.len()),
        filling: counted(filling.len()),
        reclaimed: reclaim(frames, boundary, &is_in_ring, [receives_none, sends_none]),
    }
}

/// Whether the counts of a socket's rings are exact: if the kernel has skipped invalid entries, they are not.
pub(super) fn is_exact(socket: BorrowedFd<'_>) -> bool {
    socket::statistics(socket)
        .is_ok_and(|counted| counted.strange_filled == 0 && counted.strange_transmitted == 0)
}

/// Takes back the frames that are in no ring, if the kernel can have none of them.
fn reclaim(
    frames: &mut Frames,
    boundary: u32,
    is_in_ring: &[bool],
    [receives_none, sends_none]: [bool; 2],
) -> u32 {
    let mut reclaimed = 0;
    for (number, is_in_ring) in (0..).zip(is_in_ring) {
        let is_kernels = if number < boundary {
            !receives_none
        } else {
            !sends_none
        };
        if !is_in_ring && !is_kernels && frames.take(number) {
            reclaimed += 1;
        }
    }
    reclaimed
}
