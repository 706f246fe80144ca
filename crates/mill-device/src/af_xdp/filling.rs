//! The number of slots in the fill ring: as few as bursts allow, because the kernel uses all of them in turn, through
//! memory that the processor's cache may have evicted. During a long transfer it is all of them: as many frames may
//! arrive while this process is away for a moment, and what finds no slot is lost.

/// Recent load.
#[derive(Debug, Default)]
struct Recent {
    /// Slots that the kernel filled since the last evaluation, and how many of them completely, as a part of a long
    /// transfer does.
    filled: u32,
    full: u32,
    /// Successive evaluations in which the kernel had many times more slots than it needed.
    modest: u32,
    /// During these, the most slots found filled by one poll.
    waited_max: u32,
}

/// The receive slots that are not in the kernel's rings.
#[derive(Debug)]
pub(super) struct Filling {
    /// Slots of no frame. The last one released is used first: it may still be in the processor's cache.
    vacant: Vec<u32>,
    /// Slots that the kernel has, and how many it should have.
    filled: u32,
    target: u32,
    total: u32,
    recent: Recent,
    /// How many slots can be vacant here.
    vacant_max: usize,
}

impl Filling {
    /// Of `total` slots those that are not `vacant` are the kernel's. Up to `possible` slots may come here: where
    /// several sockets share a queue, also those of the others.
    pub(super) fn new(total: u32, mut vacant: Vec<u32>, possible: u32) -> Self {
        let vacant_max = possible as usize;
        vacant.reserve_exact(vacant_max.saturating_sub(vacant.len()));
        let filled = u32::try_from(vacant.len()).map_or(0, |ours| total.saturating_sub(ours));
        Self {
            vacant,
            filled,
            target: filled.next_power_of_two().max(TARGET_MIN).min(total),
            total,
            recent: Recent::default(),
            vacant_max,
        }
    }

    /// Corrects the number of slots that the kernel has, where other sockets of the queue give it slots too.
    #[inline]
    pub(super) fn set_filled(&mut self, filled: u32) {
        self.filled = filled;
    }

    /// The kernel has filled a slot; `is_full`: completely.
    #[inline]
    pub(super) fn taken(&mut self, is_full: bool) {
        self.filled = self.filled.saturating_sub(1);
        self.recent.filled += 1;
        self.recent.full += u32::from(is_full);
        if self.recent.filled >= LOOK_FRAMES {
            self.look();
        }
    }

    /// Adapts the target to the recent load.
    fn look(&mut self) {
        let Recent {
            full,
            waited_max,
            modest,
            ..
        } = core::mem::take(&mut self.recent);
        if full >= LOOK_FRAMES - LOOK_FRAMES / 8 {
            self.target = self.total;
        } else if waited_max <= self.target / 8 && self.target > TARGET_MIN {
            self.recent.modest = modest + 1;
            if self.recent.modest >= MODEST_LOOKS {
                self.recent.modest = 0;
                self.target = (self.target / 2).max(TARGET_MIN);
            }
        }
    }

    /// Takes back a released slot.
    #[inline]
    pub(super) fn release(&mut self, number: u32) {
        self.vacant.push(number);
        debug_assert!(self.vacant.len() <= self.vacant_max);
    }

    /// The next slot for the kernel, if it should have more.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u32> {
        if self.filled >= self.target {
            return None;
        }
        let number = self.vacant.pop()?;
        self.filled += 1;
        Some(number)
    }

    /// Notes how many filled slots one poll has found. Where that is half of what the kernel had, the next burst or
    /// delay may be twice as long: it gets more from now on.
    #[inline]
    pub(super) fn note_waited(&mut self, waited: u32) {
        self.recent.waited_max = self.recent.waited_max.max(waited);
        if waited > self.target / 2 {
            self.target = self.target.saturating_mul(2).min(self.total);
        }
    }
}

/// The target while bursts are short. With too few slots frames are lost while this process is away: at a million
/// frames a second this is half a millisecond. Measured with 64 frames of 200 bytes in flight, 512 made 10 % more round
/// trips than 2048; with as many answers of 1 kB, 15 %. Long transfers are as fast with either, but with 512 one of
/// them sometimes waited for 250 ms, after a loss of all its frames.
const TARGET_MIN: u32 = 512;

/// Filled slots between two evaluations: less than a millisecond of a long transfer at a Gbit/s and more.
const LOOK_FRAMES: u32 = 256;

/// Evaluations until the target is lowered: some 50 ms at 300 000 frames a second.
const MODEST_LOOKS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn with(total: u32, ours: std::ops::Range<u32>) -> Filling {
        Filling::new(total, ours.rev().collect(), total)
    }

    fn count_filled(filling: &mut Filling) -> usize {
        std::iter::from_fn(|| filling.next()).count()
    }

    #[test]
    fn the_kernel_gets_as_many_slots_as_the_target_says() {
        let mut filling = with(4096, 0..4096);
        assert_eq!(count_filled(&mut filling), 512);
        for _ in 0..100 {
            filling.taken(false);
        }
        assert_eq!(count_filled(&mut filling), 100);
        for number in 0..100 {
            filling.release(number);
        }
        assert_eq!(count_filled(&mut filling), 0);
        filling.taken(false);
        assert_eq!(filling.next(), Some(99), "the last released comes first");
    }

    #[test]
    fn a_long_burst_raises_the_target_up_to_all() {
        let mut filling = with(4096, 0..4096);
        count_filled(&mut filling);
        filling.note_waited(256);
        assert_eq!(count_filled(&mut filling), 0);
        for expected in [512, 1024, 2048, 0] {
            filling.note_waited(4000);
            assert_eq!(count_filled(&mut filling), expected);
        }
        let mut few = with(64, 0..64);
        assert_eq!(count_filled(&mut few), 64);
        few.note_waited(64);
        assert_eq!(count_filled(&mut few), 0);
    }

    /// The kernel fills the slots of one evaluation, `full` of them completely, after `waited` were found at once.
    fn receive(filling: &mut Filling, full: u32, waited: u32) -> u32 {
        filling.note_waited(waited);
        for number in 0..LOOK_FRAMES {
            filling.taken(number < full);
            filling.release(number);
        }
        count_filled(filling);
        filling.target
    }

    #[test]
    fn a_long_transfer_raises_the_target_to_all_and_short_answers_lower_it() {
        let mut filling = with(4096, 256..4096);
        count_filled(&mut filling);
        assert_eq!(receive(&mut filling, 223, 1), 512);
        assert_eq!(receive(&mut filling, 224, 1), 4096);
        for expected in [2048, 1024, 512] {
            for _ in 1..MODEST_LOOKS {
                assert_eq!(receive(&mut filling, 0, 1), expected * 2);
            }
            assert_eq!(receive(&mut filling, 0, 1), expected);
        }
        assert_eq!(receive(&mut filling, 0, 1), 512);
    }

    #[test]
    fn occasional_bursts_keep_the_target() {
        let mut filling = with(4096, 256..4096);
        receive(&mut filling, LOOK_FRAMES, 1);
        for round in 0..10 * MODEST_LOOKS {
            let waited = if round % MODEST_LOOKS == 0 { 513 } else { 512 };
            assert_eq!(receive(&mut filling, 0, waited), 4096);
        }
        let mut few = with(300, 256..300);
        assert_eq!(receive(&mut few, LOOK_FRAMES, 1), 300);
        assert_eq!(receive(&mut few, 0, 1), 300, "there were never more");
    }

    #[test]
    fn slots_that_the_kernel_has_already_count() {
        let mut filling = with(4096, 600..4096);
        assert_eq!(count_filled(&mut filling), 1024 - 600);
        assert_eq!(filling.vacant.len() + 1024, 4096);
        let mut all = with(4096, 0..0);
        assert_eq!(count_filled(&mut all), 0);
        all.taken(false);
        all.release(7);
        assert_eq!(all.next(), Some(7));
    }

    #[test]
    fn sockets_of_a_queue_give_what_all_together_lack() {
        let mut one = Filling::new(1024, (0..1024).rev().collect(), 2048);
        one.set_filled(500);
        assert_eq!(count_filled(&mut one), 12);
        // All frames are for this socket, and arrive in slots of the other one as well.
        for number in 0..1024 {
            one.taken(false);
            one.release(number);
        }
        one.set_filled(0);
        assert_eq!(count_filled(&mut one), 512);
        // The other one stands still, with all slots that the kernel had.
        one.set_filled(0);
        assert_eq!(count_filled(&mut one), 512);
    }
}
