//! One host, its link, and the slots of its streams.

use crate::bypass::{BypassLink, is_under_way};
use crate::datagram_tasks::DatagramTasks;
use crate::file_bytes::FileBytes;
use crate::mapping::{to_runtime, to_stack};
use crate::noting::Noting;
use crate::pace::{Pace, Wait};
use crate::payload_queue::PayloadQueue;
use crate::pool::Pool;
use crate::slot::Slots;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use mill_runtime::datagrams::SEGMENTS_MAX;
use mill_runtime::engine::Park;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::{Duration, Instant};
use mill_stack::host::{Host, Sent};
use mill_stack::link::LinkChange;
use mill_stack::polling::Polling;
use mill_stack::socket::{ListenerId, Ready};
use mill_wire::udp::HEADER_BYTES;

/// What a worker's handles on the stack share.
pub(crate) struct Stack<L: BypassLink, F: FileBytes> {
    pub(crate) host: Host<PayloadQueue<F>>,
    pub(crate) link: L,
    pub(crate) slots: Slots,
    pub(crate) pool: Pool<F>,
    /// Changes that were not reported yet.
    ready: Vec<Ready>,
    acceptable: Vec<ListenerId>,
    pub(crate) datagrams: DatagramTasks,
    /// Memory for sockets of datagrams that have something to read.
    readable: Vec<SocketAddr>,
    /// The frames that `Host::receive` takes in one call.
    burst_max: usize,
    /// The last turn received or sent as many frames as it may, and may have left some.
    pub(crate) has_more: bool,
    /// Consecutive turns whose frames did not all fit into the link, or did not all leave it.
    full_turns: u32,
    pace: Pace,
    /// Memory for the link's changes, and for neighbours whose addresses the host has to resolve.
    changes: Vec<LinkChange>,
    wanted: Vec<IpAddr>,
    /// The link's peer is gone, so that the frames queued to it will never be taken.
    is_alone: bool,
    /// Where to go on with resetting connections that were closed and are not over.
    aborted_to: u32,
    /// The slot from which the last search for unsent bytes goes on.
    lingered_at: u32,
    /// If the link has a ledger.
    noting: Option<Noting>,
    /// The time of the last packet call.
    now: Instant,
}

impl<L: BypassLink, F: FileBytes> Stack<L, F> {
    pub(crate) fn new(
        mut host: Host<PayloadQueue<F>>,
        mut link: L,
        (burst_max, polling): (usize, Polling),
        now: Instant,
    ) -> Self {
        let noting = link
            .has_ledger()
            .then(|| Noting::new(&mut host, &mut link, now));
        Self {
            host,
            link,
            slots: Slots::default(),
            pool: Pool::default(),
            ready: Vec::new(),
            acceptable: Vec::new(),
            datagrams: DatagramTasks::default(),
            readable: Vec::new(),
            burst_max: burst_max.max(1),
            has_more: false,
            full_turns: 0,
            pace: Pace::new(polling, now),
            changes: Vec::new(),
            wanted: Vec::new(),
            is_alone: false,
            aborted_to: 0,
            lingered_at: 0,
            noting,
            now,
        }
    }

    /// How the inner engine may wait, when it would wait as `park` says.
    pub(crate) fn wait(&mut self, park: Park, now: impl FnOnce() -> Instant) -> Wait {
        // A turn that does not sleep needs no deadline.
        let park = if self.pace.spins(self.now) {
            Park::No
        } else {
            self.park(park, now)
        };
        self.pace.wait(park, self.now)
    }

    fn park(&self, park: Park, now: impl FnOnce() -> Instant) -> Park {
        let has_work = self.has_more
            || !self.ready.is_empty()
            || !self.acceptable.is_empty()
            || self.datagrams.has_ready();
        let asks_again = (1..=FULL_TURNS_MAX).contains(&self.full_turns);
        if park == Park::No || has_work || asks_again {
            return Park::No;
        }
        let noting = self.noting.as_ref();
        let noted_at = noting.and_then(|noting| noting.next_turn(&self.host));
        let park = earlier(park, noted_at);
        let park = earlier(park, self.host.next_expiry().map(to_runtime));
        if self.full_turns > 0 {
            return earlier(park, Some(now() + LINK_PAUSE));
        }
        park
    }

    /// Receives waiting frames, up to a turn's share, and expires timers. `now` is when the turn began, `clock` the time as it goes on.
    pub(crate) fn receive(&mut self, now: Instant, clock: impl Fn() -> Instant) {
        self.now = now;
        self.hear_of_changes();
        let share = self.link.properties().frames_per_turn;
        let (mut bursts, mut frames) = (0, 0);
        self.has_more = loop {
            let (now, link) = (&mut self.now, &mut self.link);
            let count = self.host.receive_timed(link, || {
                *now = clock().max(*now);
                to_stack(*now)
            });
            if count > 0 {
                self.pace.worked(self.now);
            }
            if count < self.burst_max.min(share) {
                break false;
            }
            bursts += 1;
            frames += count;
            if bursts == BURSTS_PER_TURN || frames >= share {
                break true;
            }
        };
        let now = to_stack(self.now);
        let is_done = self.host.expire(now);
        debug_assert!(
            !is_done || self.host.next_expiry().is_none_or(|at| at > now),
            "what is due is done, or the turns would not end"
        );
        self.note_changes();
    }

    fn hear_of_changes(&mut self) {
        self.host.follow(&mut self.link, &mut self.changes);
        for change in self.changes.drain(..) {
            match change {
                LinkChange::PeerGone => self.is_alone = true,
                LinkChange::PeerThere => self.is_alone = false,
                _ => {}
            }
            self.host.on_change(&change, to_stack(self.now));
        }
    }

    /// The time of the last packet call.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// Whether bytes are on their way that the peer will take. The search goes on from the last slot that had some: a
    /// million connections that are ending are looked at a few times each, and not once a turn.
    pub(crate) fn has_lingering_orphans(&mut self) -> bool {
        !self.is_alone && (self.lingers_from(self.lingered_at) || self.lingers_from(0))
    }

    fn lingers_from(&mut self, from: u32) -> bool {
        let mut place = Some(from);
        while let Some(from) = place {
            let (mut found, next) = self.host.connections_from(from, LOOKED_AT_ONCE);
            if found.any(|status| is_under_way(&status)) {
                self.lingered_at = from;
                return true;
            }
            place = next;
        }
        false
    }

    /// Resets some of the connections that were closed and are not over; returns whether there may be more.
    pub(crate) fn abort_orphans(&mut self) -> bool {
        let next = self.host.abort_orphans(self.aborted_to);
        self.aborted_to = next.unwrap_or(0);
        next.is_some()
    }

    /// The tasks have work of any kind.
    pub(crate) const fn worked(&mut self) {
        self.pace.worked(self.now);
    }

    /// The inner engine had events.
    pub(crate) const fn note_inner_activity(&mut self) {
        self.pace.note_inner_activity();
    }

    /// Sends queued frames, and gives the turn's received frames back.
    pub(crate) fn settle(&mut self, now: Instant) {
        self.now = now;
        if let Some(noting) = &mut self.noting {
            noting.go_on(&mut self.host, &mut self.link, now);
            self.has_more |= noting.is_telling();
        }
        let frames = FRAMES_PER_TURN;
        let sent = self
            .host
            .transmit_some(&mut self.link, to_stack(now), frames);
        self.has_more |= sent == Sent::Share;
        if let Some(noting) = &self.noting {
            noting.note_young(&mut self.host, &mut self.link);
        }
        let is_behind = self.link.flush();
        self.host.settle(&mut self.link);
        self.host.take_wanted(&mut self.wanted);
        for address in self.wanted.drain(..) {
            self.link.resolve(address);
        }
        self.full_turns = if sent == Sent::Full || is_behind {
            self.full_turns.saturating_add(1)
        } else {
            0
        };
        self.note_changes();
    }

    /// The tasks of the connections that changed.
    pub(crate) fn report(&mut self, tasks: &mut Vec<TaskId>) {
        let changed = self.ready.drain(..);
        tasks.extend(changed.map(|ready| TaskId::from_bits(ready.token)));
        self.datagrams.take_ready(tasks);
    }

    /// The listeners at which connections began to wait.
    pub(crate) fn drain_acceptable(&mut self) -> impl Iterator<Item = ListenerId> {
        self.acceptable.drain(..)
    }

    fn note_changes(&mut self) {
        self.host.take_ready(&mut self.ready);
        self.host.take_acceptable(&mut self.acceptable);
        self.host.take_readable_udp(&mut self.readable);
        for socket in self.readable.drain(..) {
            self.datagrams.on_readable(socket);
        }
        if self.datagrams.wants_room()
            && self.host.has_room_for_udp(SEGMENTS_MAX, SEGMENTS_BYTES_MAX)
        {
            self.datagrams.on_room();
        }
    }
}

/// Sends the FIN or RST of the streams closed last. A lost one is not sent again.
impl<L: BypassLink, F: FileBytes> Drop for Stack<L, F> {
    fn drop(&mut self) {
        self.host.transmit(&mut self.link, to_stack(self.now));
        self.link.flush();
        self.host.settle(&mut self.link);
    }
}

impl<L: BypassLink, F: FileBytes> fmt::Debug for Stack<L, F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Stack({} streams)", self.slots.count())
    }
}

/// The earlier end of two waits.
pub(crate) fn earlier(park: Park, at: Option<Instant>) -> Park {
    match (park, at) {
        (Park::Until(until), Some(at)) => Park::Until(until.min(at)),
        (Park::Forever, Some(at)) => Park::Until(at),
        (park, _) => park,
    }
}

/// Bytes of a datagram with the most segments, with their headers: a sender that waits is woken when any finds room.
const SEGMENTS_BYTES_MAX: usize = u16::MAX as usize + SEGMENTS_MAX * HEADER_BYTES;

/// Slots that are looked at in each turn for bytes still on their way.
const LOOKED_AT_ONCE: u32 = 64;

/// Bursts received in one turn: with 64 frames each what a fast link brings in a fifth of a millisecond. Bounds how long
/// tasks and timers wait for their turn while frames come faster than they are handled.
const BURSTS_PER_TURN: u32 = 4;

/// Frames sent in one turn, about; half of what one receives. Without a bound acknowledgements pile up while everything
/// that all windows allow leaves: over a veth pair, whose frames take 2 us each, round trips of 25 ms instead of 1 ms
/// were measured with 16 downloads, standing queues at both ends that overflowed now and then, and a fifth less
/// throughput, because frames had left the processor's cache when they were copied.
const FRAMES_PER_TURN: u64 = 128;

/// Turns that retry a full link at once: it usually has room again when the turn is over.
const FULL_TURNS_MAX: u32 = 8;

/// How long a turn waits for a link that stays full: its peer does not keep pace, and no event reports when it does.
const LINK_PAUSE: Duration = Duration::from_micros(200);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_bytes::NoFile;
    use mill_stack::config::{HostConfig, Neighboring, Prefix, Route};
    use mill_stack::link::{Link, Offload};
    use mill_stack::memory_link::MemoryLink;

    /// As after the machine was suspended: the timers of all connections are due at the same time, more than one turn
    /// looks at. The next turn begins at once.
    #[test]
    fn more_timers_than_a_turn_looks_at_are_left_to_the_next_turns() {
        let link = MemoryLink::ethernet(1);
        let address = IpAddr::from([10, 0, 0, 1]);
        let config = HostConfig::new(alloc::vec![Prefix { address, len: 24 }], [1; 16]);
        let start = Instant::from_nanos(1_000_000_000);
        let host = Host::new(config, link.properties(), to_stack(start));
        let mut stack: Stack<_, NoFile> = Stack::new(host, link, (64, Polling::Interrupt), start);
        let target = "10.0.0.2:80".parse().unwrap();
        for token in 0..6000 {
            let opened = stack.host.connect(target, None, true, token);
            assert!(opened.is_ok());
        }
        stack.settle(start);
        let late = start + Duration::from_secs(500);
        let mut turns = 0;
        while let Park::Until(at) = stack.park(Park::Forever, || late)
            && at <= late
        {
            stack.receive(late, || late);
            stack.settle(late);
            turns += 1;
            assert!(turns < 100, "the turns end");
        }
        assert!(turns > 1, "{turns}");
    }

    #[test]
    fn what_a_turn_leaves_to_be_sent_leaves_in_the_next_ones_which_do_not_wait() {
        let link = MemoryLink::ethernet(1);
        let prefix = |address: [u8; 4]| Prefix {
            address: address.into(),
            len: 24,
        };
        let mut config = HostConfig::new(alloc::vec![prefix([10, 0, 0, 1])], [1; 16]);
        config.neighbors = Neighboring::Kernel;
        config.routes = alloc::vec![Route::on_link(prefix([10, 0, 0, 0]))];
        let start = Instant::from_nanos(1_000_000_000);
        let mut host = Host::new(config, link.properties(), to_stack(start));
        let known = LinkChange::Neighbor {
            address: [10, 0, 0, 2].into(),
            mac: Some([2; 6]),
        };
        host.on_change(&known, to_stack(start));
        let mut stack: Stack<_, NoFile> = Stack::new(host, link, (64, Polling::Interrupt), start);
        let target = "10.0.0.2:80".parse().unwrap();
        for token in 0..3 * FRAMES_PER_TURN {
            let opened = stack.host.connect(target, None, true, token);
            assert!(opened.is_ok());
        }
        for turn in 1..=3 {
            stack.receive(start, || start);
            stack.settle(start);
            assert_eq!(stack.host.counters().frames_out, turn * FRAMES_PER_TURN);
            let is_done = stack.park(Park::Forever, || start) != Park::No;
            assert_eq!(is_done, turn == 3);
        }
    }

    /// Or its round trip would be shorter than the path's, wherever a thread is preempted before it takes its frames.
    #[test]
    fn frames_have_arrived_when_they_were_taken_and_not_when_the_turn_began() {
        let (mut link, mut far) = (MemoryLink::ethernet(1), MemoryLink::ethernet(2));
        let room = far.reserve(60).map(|room| room.len());
        assert_eq!(room, Some(60));
        far.transmit(60, Offload::default());
        far.carry(&mut link);
        let address = IpAddr::from([10, 0, 0, 1]);
        let config = HostConfig::new(alloc::vec![Prefix { address, len: 24 }], [1; 16]);
        let start = Instant::from_nanos(1_000_000_000);
        let host = Host::new(config, link.properties(), to_stack(start));
        let mut stack: Stack<_, NoFile> = Stack::new(host, link, (64, Polling::Interrupt), start);
        let taken = start + Duration::from_millis(25);
        stack.receive(start, || taken);
        assert_eq!((stack.now(), stack.host.counters().frames_in), (taken, 1));
        // Without a frame no clock is read.
        let next = start + Duration::from_millis(26);
        stack.receive(next, || panic!("for nothing"));
        assert_eq!(stack.now(), next);
    }

    #[test]
    fn the_earlier_end_of_a_wait_counts() {
        let at = Instant::from_nanos;
        let check = |park, other, expected| assert_eq!(earlier(park, other), expected);
        check(Park::Forever, None, Park::Forever);
        check(Park::Forever, Some(at(5)), Park::Until(at(5)));
        check(Park::Until(at(7)), None, Park::Until(at(7)));
        check(Park::Until(at(7)), Some(at(6)), Park::Until(at(6)));
        check(Park::Until(at(7)), Some(at(8)), Park::Until(at(7)));
        check(Park::No, Some(at(8)), Park::No);
    }
}
