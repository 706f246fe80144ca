//! Which worker has a socket at which queue.
//!
//! With as many queues as workers, or more, queue, core and worker belong together: worker w has the queues w, w +
//! workers, … to itself, and whatever arrives there. With fewer queues each worker has a socket at every queue, and the
//! steering program chooses among them by a hash of the flow; a flow then belongs to the same worker at whichever queue
//! it arrives. A worker sends by one queue, so that a flow's frames stay in order.
//!
//! If each worker has a queue that can send, nothing is shared, the table neither, so that each part can go from process to process.
//! With `Spread::ByPartition` that is always so: there are no more workers than queues that can send.

use crate::partitions::PARTITIONS_MAX;
use crate::specification::settings::{Spread, Workers};
use crate::steering::layout::TABLES_MAX;

/// The sockets of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Ordered by queue, and by worker within a queue.
    pub(super) sockets: Vec<Planned>,
    /// How many workers the program distinguishes at each queue.
    pub(super) workers_a_queue: u32,
    /// No two workers share a queue or a table.
    pub(super) is_partitioned: bool,
    workers: u32,
}

/// A socket to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) queue: u32,
    pub(super) worker: u32,
    /// Its number among the sockets of the queue, and how many there are.
    pub(super) place: u32,
    pub(super) sharers: u32,
    /// Which share of the queue's flows it receives, as the program counts; `None` if it only sends.
    pub(super) receives: Option<u32>,
    /// Whether its worker sends by it.
    pub(super) sends: bool,
}

/// How many partitions `queues` make, and the queues with those that can send first.
pub(super) fn partitions(
    workers: Workers,
    queues: &[u32],
    transmit_queues: u32,
) -> (Workers, Vec<u32>) {
    let (mut able, others): (Vec<u32>, Vec<u32>) =
        queues.iter().partition(|queue| **queue < transmit_queues);
    let sending = u32::try_from(able.len()).unwrap_or(u32::MAX);
    let most = sending.clamp(1, PARTITIONS_MAX);
    able.extend(others);
    let count = workers.count.clamp(1, most);
    (Workers { count, ..workers }, able)
}

impl Plan {
    /// The queues of each partition; one with all queues if workers share a table.
    pub(super) fn partitions(&self) -> Vec<Vec<u32>> {
        if !self.is_partitioned {
            return vec![Vec::new()];
        }
        let of = |worker| {
            let own = self.sockets.iter().filter(move |it| it.worker == worker);
            own.map(|planned| planned.queue).collect()
        };
        (0..self.workers).map(of).collect()
    }
}

/// Plans sockets for `queues`, at least one, of which those with a number below `transmit_queues` can send.
pub(super) fn plan(workers: Workers, queues: &[u32], transmit_queues: u32) -> Plan {
    let count = workers.count.max(1);
    let is_by_flow =
        count > 1 && (workers.spread == Spread::ByFlow || queues.len() < count as usize);
    let mut sockets: Vec<Planned> = Vec::new();
    for (index, queue) in (0..).zip(queues) {
        let of_queue = |worker, receives| Planned {
            queue: *queue,
            worker,
            place: 0,
            sharers: 1,
            receives: Some(receives),
            sends: false,
        };
        if is_by_flow {
            sockets.extend((0..count).map(|worker| of_queue(worker, worker)));
        } else {
            sockets.push(of_queue(index % count, 0));
        }
    }
    for worker in 0..count {
        choose_sender(&mut sockets, worker, is_by_flow, (queues, transmit_queues));
    }
    sockets.sort_by_key(|socket| (socket.queue, socket.receives.is_none(), socket.worker));
    number(&mut sockets);
    let is_alone = sockets.iter().all(|socket| socket.sharers == 1);
    let can_part = is_alone && (2..=TABLES_MAX).contains(&count);
    Plan {
        sockets,
        workers_a_queue: if is_by_flow { count } else { 1 },
        is_partitioned: can_part || workers.spread == Spread::ByPartition,
        workers: count,
    }
}

/// Chooses the queue that a worker sends by: one of its own if any can send. A queue beyond the interface's transmit
/// queues accepts frames and silently sends none, so such a worker uses another's queue.
fn choose_sender(
    sockets: &mut Vec<Planned>,
    worker: u32,
    is_by_flow: bool,
    (queues, transmit_queues): (&[u32], u32),
) {
    let sends = |queue: u32| queue < transmit_queues;
    let own: Vec<usize> = (0..sockets.len())
        .filter(|index| sockets[*index].worker == worker)
        .collect();
    let able: Vec<usize> = own
        .iter()
        .copied()
        .filter(|index| sends(sockets[*index].queue))
        .collect();
    // Several workers at the same queues do not all send by the first.
    let turn = if is_by_flow { worker as usize } else { 0 };
    if let Some(index) = turn.checked_rem(able.len()) {
        sockets[able[index]].sends = true;
        return;
    }
    let others: Vec<u32> = queues
        .iter()
        .copied()
        .filter(|queue| sends(*queue))
        .collect();
    match (worker as usize).checked_rem(others.len()) {
        Some(index) => sockets.push(Planned {
            queue: others[index],
            worker,
            place: 0,
            sharers: 1,
            receives: None,
            sends: true,
        }),
        // None can send; the link reports that.
        None => {
            if let Some(first) = own.first() {
                sockets[*first].sends = true;
            }
        }
    }
}

/// Numbers the sockets of each queue, which follow each other.
fn number(sockets: &mut [Planned]) {
    for of_queue in sockets.chunk_by_mut(|one, other| one.queue == other.queue) {
        let sharers = u32::try_from(of_queue.len()).unwrap_or(u32::MAX);
        for (place, socket) in (0..).zip(of_queue) {
            socket.place = place;
            socket.sharers = sharers;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Spread::ByPartition;

    /// Each socket as `worker@queue`, with `=n` for what it receives, `>` if it sends and `/sharers`.
    fn check(count: u32, spread: Spread, queues: &[u32], transmit_queues: u32, expected: &str) {
        let plan = plan(Workers { count, spread }, queues, transmit_queues);
        let described: Vec<String> = plan
            .sockets
            .iter()
            .map(|socket| {
                let receives = socket
                    .receives
                    .map_or(String::new(), |number| format!("={number}"));
                let sends = if socket.sends { ">" } else { "" };
                let (worker, queue, sharers) = (socket.worker, socket.queue, socket.sharers);
                format!("{worker}@{queue}{receives}{sends}/{sharers}")
            })
            .collect();
        assert_eq!(
            described.join(" "),
            expected,
            "{count} {spread:?} {queues:?}"
        );
        for worker in 0..count {
            let own = || plan.sockets.iter().filter(|socket| socket.worker == worker);
            assert_eq!(own().filter(|socket| socket.sends).count(), 1, "{worker}");
            assert!(own().any(|socket| socket.receives.is_some()), "{worker}");
        }
    }

    #[test]
    fn a_queue_belongs_to_one_worker_if_there_are_enough() {
        use Spread::ByQueue;
        check(1, ByQueue, &[0], 1, "0@0=0>/1");
        check(2, ByQueue, &[0, 1], 2, "0@0=0>/1 1@1=0>/1");
        check(1, ByQueue, &[0, 1], 2, "0@0=0>/1 0@1=0/1");
        check(2, ByQueue, &[3, 5, 7], 8, "0@3=0>/1 1@5=0>/1 0@7=0/1");
    }

    #[test]
    fn with_fewer_queues_each_worker_has_a_socket_at_every_queue() {
        use Spread::ByQueue;
        check(2, ByQueue, &[0], 1, "0@0=0>/2 1@0=1>/2");
        let expected = "0@0=0>/3 1@0=1/3 2@0=2>/3 0@1=0/3 1@1=1>/3 2@1=2/3";
        check(3, ByQueue, &[0, 1], 2, expected);
    }

    #[test]
    fn workers_that_open_connections_have_a_socket_at_every_queue() {
        use Spread::ByFlow;
        check(1, ByFlow, &[0, 1], 2, "0@0=0>/1 0@1=0/1");
        check(2, ByFlow, &[0, 1], 2, "0@0=0>/2 1@0=1/2 0@1=0/2 1@1=1>/2");
    }

    #[test]
    fn a_worker_without_a_sending_queue_sends_by_another_ones() {
        use Spread::ByQueue;
        check(2, ByQueue, &[0, 1], 1, "0@0=0>/2 1@0>/2 1@1=0/1");
        check(1, ByQueue, &[0, 1], 1, "0@0=0>/1 0@1=0/1");
        check(2, ByQueue, &[0, 1, 2], 1, "0@0=0>/2 1@0>/2 1@1=0/1 0@2=0/1");
        check(
            3,
            ByQueue,
            &[0, 1],
            1,
            "0@0=0>/3 1@0=1>/3 2@0=2>/3 0@1=0/3 1@1=1/3 2@1=2/3",
        );
        // No queue can send: the link is made anyway, so that it reports it.
        check(1, ByQueue, &[1], 1, "0@1=0>/1");
    }

    #[test]
    fn a_partition_has_queues_of_its_own_and_one_that_sends() {
        let check = |wanted: u32, queues: &[u32], transmit_queues: u32, expected: &str| {
            let workers = Workers {
                count: wanted,
                spread: ByPartition,
            };
            let (workers, queues) = partitions(workers, queues, transmit_queues);
            check(
                workers.count,
                ByPartition,
                &queues,
                transmit_queues,
                expected,
            );
        };
        check(8, &[0], 1, "0@0=0>/1");
        check(8, &[0, 1, 2], 3, "0@0=0>/1 1@1=0>/1 2@2=0>/1");
        check(2, &[0, 1, 2], 3, "0@0=0>/1 1@1=0>/1 0@2=0/1");
        check(0, &[0, 1], 2, "0@0=0>/1 0@1=0/1");
        // Queue 5 can't send.
        check(8, &[5, 1, 0], 2, "1@0=0>/1 0@1=0>/1 0@5=0/1");
        let sixteen: Vec<u32> = (0..16).collect();
        let most = Workers {
            count: 64,
            spread: ByPartition,
        };
        assert_eq!(partitions(most, &sixteen, 16).0.count, PARTITIONS_MAX);
    }
}
