//! How many places the kernel has to fill: as few as bursts allow, because it goes through all of them in turn, and each time
//! through memory that the processor's cache may have forgotten. While somebody sends us much, all of them: as many frames
//! may be on their way when we are away for a moment, and what finds no place is lost.

/// What came of late.
#[derive(Debug, Default)]
struct Recent {
    /// Places that were filled since the last look at them, and how many of them to the brim: with a part of a long transfer.
    filled: u32,
    full: u32,
    /// Looks in a row after which the kernel had many times what it needed.
    modest: u32,
    /// The most that had been filled when we looked since the last of them.
    waited_max: u32,
}

/// The places that receive and are ours.
#[derive(Debug)]
pub(super) struct Filling {
    /// Nobody's frames. The last released is the first filled: it may still be in the processor's cache.
    vacant: Vec<u32>,
    /// How many the kernel has, and how many it is to have.
    filled: u32,
    target: u32,
    total: u32,
    recent: Recent,
    /// How many can be vacant here.
    vacant_max: usize,
}

impl Filling {
    /// Of `total` places those that are not `vacant` are the kernel's. Up to `possible` places may come here: where several
    /// sockets share a queue, those of the others as well.
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

    /// The kernel has so many, as somebody knows better who has seen what others have given it.
    #[inline]
    pub(super) fn set_filled(&mut self, filled: u32) {
        self.filled = filled;
    }

    /// The kernel has filled a place; `is_full`: with as much as a frame takes.
    #[inline]
    pub(super) fn taken(&mut self, is_full: bool) {
        self.filled = self.filled.saturating_sub(1);
        self.recent.filled += 1;
        self.recent.full += u32::from(is_full);
        if self.recent.filled >= LOOK_FRAMES {
            self.look();
        }
    }

    /// Adapts to what came since the last time.
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

    /// Nobody needs the frame any more.
    #[inline]
    pub(super) fn release(&mut self, number: u32) {
        self.vacant.push(number);
        debug_assert!(self.vacant.len() <= self.vacant_max);
    }

    /// The next place to give to the kernel, if it is to have more.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u32> {
        if self.filled >= self.target {
            return None;
        }
        let number = self.vacant.pop()?;
        self.filled += 1;
        Some(number)
    }

    /// So many had been filled when we looked. Where that is half of what the kernel had, the next burst or the next
    /// delay of ours may be twice as long: it gets more from now on.
    #[inline]
    pub(super) fn note_waited(&mut self, waited: u32) {
        self.recent.waited_max = self.recent.waited_max.max(waited);
        if waited > self.target / 2 {
            self.target = self.target.saturating_mul(2).min(self.total);
        }
    }
}

/// How many places the kernel gets as long as bursts are short. Few lose frames when we are away for a moment: at a million
/// frames a second this is half a millisecond. Measured with 64 frames of 200 bytes in flight, 512 made 10 % more round trips
/// than 2048; with as many answers of 1 kB, 15 %. Long transfers are as fast with either, but with 512 one of them waited for
/// 250 ms now and then, whose frames had been lost all together.
const TARGET_MIN: u32 = 512;

/// Places filled between two looks at what came: less than a millisecond of a long transfer at a Gbit/s and more.
const LOOK_FRAMES: u32 = 256;

/// So many looks say that the kernel needs less: some 50 ms at 300 000 frames a second.
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
    fn the_kernel_has_as_many_as_it_is_to_have() {
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
    fn a_long_burst_makes_it_more_up_to_all() {
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

    /// The kernel fills as many places as are looked at together, `full` of them to the brim, after `waited`.
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
    fn a_long_transfer_makes_it_all_and_short_answers_few_again() {
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
    fn what_waits_now_and_then_keeps_it_as_it_is() {
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
    fn what_the_kernel_has_from_before_counts() {
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
    fn who_shares_a_queue_gives_what_all_together_have_not() {
        let mut one = Filling::new(1024, (0..1024).rev().collect(), 2048);
        one.set_filled(500);
        assert_eq!(count_filled(&mut one), 12);
        // All that comes is for this socket, in places of the other's as well.
        for number in 0..1024 {
            one.taken(false);
            one.release(number);
        }
        one.set_filled(0);
        assert_eq!(count_filled(&mut one), 512);
        // Another one stands still, with all that the kernel had.
        one.set_filled(0);
        assert_eq!(count_filled(&mut one), 512);
    }
}
