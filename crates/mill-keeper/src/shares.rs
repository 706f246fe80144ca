//! Which partitions of the interface a process is to own.
//!
//! The first process has all. Each further one gets its share, one at least, first of what no living process has, then of the
//! processes with most, and among these what was given longest ago. Where there are twice as many processes as partitions, a further
//! one gets only what is left: it has its connections by way of the others. So workers that start together have as many each, and after
//! a reload the new ones have what the old ones had. What a process is given is a suggestion: between the living, partitions go by
//! the messages of mill-device's `handover.rs`, and what the keeper does not learn of makes shares uneven, nothing else.

/// The partitions, and the processes that were told to own them.
#[derive(Debug)]
pub struct Shares {
    partitions: Vec<Given>,
    /// How many times partitions were given.
    times: u64,
}

/// To which process a partition was given last, and when in the order of such events; 0 if it never was.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    to: u64,
    at: u64,
}

impl Shares {
    pub fn new(partitions: usize) -> Self {
        Self {
            partitions: vec![Given::default(); partitions],
            times: 0,
        }
    }

    /// The partitions that a new process is to own, beside living ones, all with numbers other than 0.
    pub fn give(&mut self, process: u64, living: &[u64]) -> Vec<u32> {
        let count = self.partitions.len();
        let share = match living.len() {
            // As many have a place already as begin and end at a reload: each change would hold up all of them.
            living if living >= 2 * count => 0,
            living => (count / (living + 1)).max(1),
        };
        self.times += 1;
        let mut given = Vec::new();
        while given.len() < share || self.is_left(living, process) {
            let Some(place) = self.next(process, living) else {
                break;
            };
            if let Some(partition) = self.partitions.get_mut(place) {
                *partition = Given {
                    to: process,
                    at: self.times,
                };
            }
            given.extend(u32::try_from(place));
        }
        given.sort_unstable();
        given
    }

    /// Whether there is a partition that no process has.
    fn is_left(&self, living: &[u64], process: u64) -> bool {
        let has_owner = |given: &Given| given.to == process || living.contains(&given.to);
        !self.partitions.iter().all(has_owner)
    }

    /// The partition to give next.
    fn next(&self, process: u64, living: &[u64]) -> Option<usize> {
        let count = |of: u64| self.partitions.iter().filter(|it| it.to == of).count();
        let places = self.partitions.iter().enumerate();
        let others = places.filter(|(_, given)| given.to != process);
        let first = others.min_by_key(|(place, given)| {
            let has_owner = living.contains(&given.to);
            let of_owner = if has_owner { count(given.to) } else { 0 };
            (has_owner, usize::MAX - of_owner, given.at, *place)
        });
        first.map(|(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each step is a new process and those that live then; what it gets.
    fn check(partitions: usize, steps: &[(u64, &[u64], &[u32])]) {
        let mut shares = Shares::new(partitions);
        for (process, living, expected) in steps {
            assert_eq!(
                shares.give(*process, living),
                *expected,
                "{process} of {partitions}"
            );
        }
    }

    #[test]
    fn the_first_process_has_all_and_the_next_ones_get_their_shares() {
        check(1, &[(1, &[], &[0]), (2, &[1], &[0])]);
        let four: &[(u64, &[u64], &[u32])] = &[
            (1, &[], &[0, 1, 2, 3]),
            (2, &[1], &[0, 1]),
            (3, &[1, 2], &[2]),
            (4, &[1, 2, 3], &[0]),
        ];
        // 1 has 3, 2 has 1.
        check(4, four);
        check(2, &[(1, &[], &[0, 1]), (2, &[1], &[0]), (3, &[1, 2], &[1])]);
    }

    #[test]
    fn after_a_reload_new_workers_have_what_the_old_ones_had() {
        let two: &[(u64, &[u64], &[u32])] = &[
            (1, &[], &[0, 1]),
            (2, &[1], &[0]),
            (3, &[1, 2], &[1]),
            (4, &[1, 2, 3], &[0]),
            // The old ones have ended.
            (5, &[3, 4], &[1]),
            (6, &[3, 4, 5], &[0]),
        ];
        check(2, two);
    }

    #[test]
    fn where_there_are_many_processes_a_further_one_gets_what_is_left() {
        let one: &[(u64, &[u64], &[u32])] = &[
            (1, &[], &[0]),
            (2, &[1], &[0]),
            (3, &[1, 2], &[]),
            (4, &[1, 2, 3], &[]),
            // 2 has ended.
            (5, &[1, 3, 4], &[0]),
        ];
        check(1, one);
    }

    #[test]
    fn what_an_ended_process_had_goes_to_the_next_one() {
        let two: &[(u64, &[u64], &[u32])] = &[
            (1, &[], &[0, 1]),
            (2, &[1], &[0]),
            // 2 was killed.
            (3, &[1], &[0]),
            // All were.
            (4, &[], &[0, 1]),
        ];
        check(2, two);
    }
}
