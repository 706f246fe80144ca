//! Whose the frames are that somebody has left behind.
//!
//! A byte a frame, behind the frames in the memory that outlives a process, says whose it is. A process ends at any point,
//! so that it may be behind what the rings say by what happened last; and what lies in the rings is the truth. A frame that
//! was marked as the kernel's and never published is in no ring, like one that the kernel has at this moment; only when the
//! counts of the rings say that it has none are such frames taken back. The others are lost until the socket is made anew:
//! no more than one burst for a process that was killed.

use super::Xsk;

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

impl Xsk {
    /// Makes the marks say what the rings say.
    pub(super) fn recover(&mut self) -> Recovered {
        let filling = self.fill.unseen();
        let waiting = self.received.waiting();
        let unsent = self.transmit.unseen();
        let sent = self.completed.waiting();
        let mut is_in_ring = vec![false; self.frames.count() as usize];
        let received = waiting.iter().map(|piece| piece.address);
        let transmitted = unsent.iter().map(|piece| piece.address);
        let addresses = filling.iter().chain(&sent).copied();
        for address in addresses.chain(received).chain(transmitted) {
            let number = self.number_of(address).unwrap_or(u32::MAX);
            // What waits to be taken is the kernel's until it is; a mark that says otherwise was made just before the end.
            let _ = self.frames.give(number);
            if let Some(entry) = is_in_ring.get_mut(number as usize) {
                *entry = true;
            }
        }
        let reclaimed = self.reclaim(&is_in_ring);
        let counted = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Recovered {
            waiting: counted(waiting.len()),
            unsent: counted(unsent.len()),
            filling: counted(filling.len()),
            reclaimed,
        }
    }

    /// Takes the frames back that are in no ring, if the kernel can have none of them.
    fn reclaim(&mut self, is_in_ring: &[bool]) -> u32 {
        // Each place to fill becomes one that has arrived, and each piece to send one that is complete; strange ones were
        // taken without a result, and then nothing is known.
        let Ok(statistics) = self.statistics() else {
            return 0;
        };
        let is_exact = statistics.strange_filled == 0 && statistics.strange_transmitted == 0;
        let receives_none = is_exact && self.fill.taken_count() == self.received.put_count();
        let sends_none = is_exact && self.transmit.taken_count() == self.completed.put_count();
        let mut reclaimed = 0;
        for (number, is_in_ring) in (0..).zip(is_in_ring) {
            let is_kernels = if number < self.receive_frames {
                !receives_none
            } else {
                !sends_none
            };
            if !is_in_ring && !is_kernels && self.frames.take(number) {
                reclaimed += 1;
            }
        }
        reclaimed
    }
}
