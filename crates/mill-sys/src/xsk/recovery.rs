//! Whose the frames are that somebody has left behind.
//!
//! A byte a frame, behind the frames in the memory that outlives a process, says whose it is. A process ends at any point,
//! so that it may be behind what the rings say by what happened last; and what lies in the rings is the truth. A frame that
//! was marked as the kernel's and never published is in no ring, like one that the kernel has at this moment; only when the
//! counts of the rings say that it has none are such frames taken back. The others are lost until the socket is made anew:
//! no more than one burst for a process that was killed.

use super::pool::OwnRings;
use super::ring::{Consumer, Producer};
use super::socket;
use crate::memory::frames::Frames;
use std::os::fd::BorrowedFd;

/// What was found when a socket was taken over; nothing of a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Frames that had arrived and nobody has taken.
    pub waiting: u32,
    /// Frames that the kernel was to send and has not looked at.
    pub unsent: u32,
    /// Places that the kernel has to fill.
    pub filling: u32,
    /// Frames that were marked as the kernel's and were not.
    pub reclaimed: u32,
}

/// Makes the marks say what the rings of all sockets of a queue say. Frames below `boundary` receive. `is_exact`: no entry
/// was taken without a result.
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
        // What waits to be taken is the kernel's until it is; a mark that says otherwise was made just before the end.
        let _ = frames.give(number);
        if let Some(entry) = is_in_ring.get_mut(number as usize) {
            *entry = true;
        }
    }
    // Each place to fill becomes one that has arrived, and each piece to send one that is complete.
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

/// Whether the counts of a socket's rings can be relied on: strange entries were taken without a result, and then nothing is
/// known.
pub(super) fn is_exact(socket: BorrowedFd<'_>) -> bool {
    socket::statistics(socket)
        .is_ok_and(|counted| counted.strange_filled == 0 && counted.strange_transmitted == 0)
}

/// Takes the frames back that are in no ring, if the kernel can have none of them.
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
