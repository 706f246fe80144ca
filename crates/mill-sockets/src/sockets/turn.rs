//! A turn of the stack.

use super::{SocketLink, Sockets};
use crate::epoll_set::SetNumber;
use crate::readiness::Readiness;
use crate::slab::Number;
use crate::socket::{Kind, SocketNumber};
use mill_stack::host::Sent;
use mill_stack::host::tables::NextNumbers;
use mill_tcp::time::{Duration, Instant};
use std::collections::BTreeSet;

impl<L: SocketLink> Sockets<L> {
    /// Sends what there is to send, then takes the frames that have arrived and does what is due. Returns whether frames came.
    ///
    /// What these frames are answered with is sent by the next turn, which is due at once ([`Self::next_turn`]): by then the
    /// program has written what it has to say to them, and the acknowledgement leaves with it.
    pub fn turn(&mut self, now: Instant) -> bool {
        self.turn_timed(now, || now)
    }

    /// The same where time goes on meanwhile: frames have arrived when they were taken (see `Host::receive_timed`). `now` is when the
    /// turn began.
    pub fn turn_timed(&mut self, now: Instant, clock: impl Fn() -> Instant) -> bool {
        self.now = now;
        if self.unanswered.have_waited(now) {
            self.acknowledge_unanswered();
        }
        self.flush();
        self.heed_looks();
        // The link may give its device away now: all frames have been given back.
        let has_changed = self.hear_of_changes();
        let has_taken = self.take_passed();
        self.pass_waiting();
        let is_due = self.host.next_expiry().is_some_and(|at| at <= now);
        let before = self.host.counters().handed_over;
        let count = self.receive(clock);
        // What only goes on to another process, at once, is none of this one's.
        let handed_over = self.host.counters().handed_over.wrapping_sub(before);
        if handed_over > 0 {
            self.is_full |= self.link.flush();
        }
        let has_come = count as u64 > handed_over;
        self.host.expire(self.now);
        // A change may have woken what waits for a neighbour or a route.
        self.has_answers = has_come | has_taken | is_due | has_changed;
        self.host.tell_load(self.accepted);
        self.note_changes();
        self.forget_closed();
        has_come
    }

    /// Lists connections from now on as they begin, for [`Self::note_young`], or no more.
    pub fn list_young(&mut self, on: bool) {
        self.host.list_young(on);
    }

    /// What a reset of each connection would need that has begun, or gone to another process, since the last call
    /// (`Host::note_young`).
    pub fn note_young(&mut self, note: impl FnMut(u32, Option<NextNumbers>)) {
        self.host.note_young(note);
    }

    /// Sends what there is to send, and gives received frames back.
    pub fn flush(&mut self) {
        self.has_answers = false;
        let sent = self
            .host
            .transmit_some(&mut self.link, self.now, FRAMES_PER_TURN);
        self.has_more |= sent == Sent::Share;
        self.is_full = self.link.flush() | (sent == Sent::Full);
        self.host.settle(&mut self.link);
        self.host.take_wanted(&mut self.wanted);
        for address in self.wanted.drain(..) {
            self.link.resolve(address);
        }
        self.note_changes();
    }

    /// The program has nothing to say now: what it was told is acknowledged, by the next turn, which is due at once then.
    pub fn acknowledge_unanswered(&mut self) {
        for number in self.unanswered.streams.drain(..) {
            if let Some(socket) = self.sockets.get(number)
                && let Kind::Stream(id) = socket.kind
            {
                self.has_answers |= self.host.acknowledge_now(id);
            }
        }
    }

    /// When the next turn has to begin at the latest, if no frame arrives: at once, while there is more to do.
    pub fn next_turn(&self) -> Option<Instant> {
        if self.has_more || self.has_answers {
            return Some(self.now);
        }
        let expiry = self.host.next_expiry();
        if self.is_full {
            let retry = self.now + LINK_PAUSE;
            return Some(expiry.map_or(retry, |at| at.min(retry)));
        }
        expiry
    }

    /// The sets that got something to tell since the last call.
    pub fn take_woken(&mut self) -> impl Iterator<Item = SetNumber> {
        self.woken.drain(..)
    }

    /// Takes the frames that have arrived, as many as one turn does; says how many.
    fn receive(&mut self, clock: impl Fn() -> Instant) -> usize {
        let share = self.link.properties().frames_per_turn;
        let (mut bursts, mut frames) = (0, 0);
        loop {
            let (now, link) = (&mut self.now, &mut self.link);
            let count = self.host.receive_timed(link, || {
                *now = clock().max(*now);
                *now
            });
            frames += count;
            bursts += 1;
            if count < self.burst_max.min(share) {
                self.has_more = false;
                return frames;
            }
            if bursts == BURSTS_PER_TURN || frames >= share {
                self.has_more = true;
                return frames;
            }
        }
    }

    /// Says whether there were any.
    fn hear_of_changes(&mut self) -> bool {
        self.host.follow(&mut self.link, &mut self.changes);
        let has_changed = !self.changes.is_empty();
        for change in self.changes.drain(..) {
            self.host.on_change(&change, self.now);
        }
        has_changed
    }

    /// Queues what changed in the epoll sets that watch it.
    pub(super) fn note_changes(&mut self) {
        let mut ready = core::mem::take(&mut self.ready);
        self.host.take_ready(&mut ready);
        for changed in ready.drain(..) {
            let number = Number::from_bits(changed.token);
            let kind = self.kind_of_change(number);
            self.on_change(number, kind);
        }
        self.ready = ready;
        let mut acceptable = core::mem::take(&mut self.acceptable);
        self.host.take_acceptable(&mut acceptable);
        for listener in acceptable.drain(..) {
            let found = self.listeners.iter().find(|(id, _)| *id == listener);
            if let Some((_, number)) = found.copied() {
                self.on_change(number, Readiness::ARRIVALS);
            }
        }
        self.acceptable = acceptable;
    }

    /// What a stream's change concerns, as Linux tells it to those that wait: arrivals, room for a writer that lacked it, or
    /// all. Acknowledgements alone concern nothing.
    fn kind_of_change(&mut self, number: SocketNumber) -> Readiness {
        let Some(socket) = self.sockets.get(number) else {
            return Readiness::NONE;
        };
        let Kind::Stream(id) = socket.kind else {
            return Readiness::ALL;
        };
        let found = self.host.readable(id);
        let state = [
            self.host.is_established(id),
            found.finished,
            found.error.is_some(),
        ];
        let has_room = socket.lacks_space.get() && self.has_write_space(socket, id);
        let Some(socket) = self.sockets.get_mut(number) else {
            return Readiness::NONE;
        };
        let has_come = found.unread > socket.known_unread;
        let is_shut = socket.reads_no_more && socket.has_finished;
        if has_come && is_shut && found.error.is_none() {
            self.refuse_bytes(number, id);
            return Readiness::NONE;
        }
        let is_new = state != socket.known_state;
        if has_come || is_new {
            self.unanswered.note(number, self.now);
        }
        (socket.known_unread, socket.known_state) = (found.unread, state);
        if has_room {
            socket.lacks_space.set(false);
        }
        Readiness::ALL.when(is_new)
            | Readiness::ARRIVALS.when(has_come)
            | Readiness::ROOM.when(has_room)
    }

    /// A socket changed, in a way that concerns these conditions.
    pub(super) fn on_change(&mut self, number: SocketNumber, kind: Readiness) {
        let Some(socket) = self.sockets.get(number).filter(|_| !kind.is_empty()) else {
            return;
        };
        for index in 0..socket.watches.len() {
            let Some(watch) = self
                .sockets
                .get(number)
                .and_then(|socket| socket.watches.get(index))
            else {
                return;
            };
            let watch = *watch;
            let Some(set) = self.sets.get_mut(watch.set) else {
                continue;
            };
            if !set.watches.is_empty() {
                self.wake_set(watch, kind);
                continue;
            }
            if !set.has_queued() {
                self.woken.push(watch.set);
            }
            set.on_change(watch.entry, kind);
        }
    }

    /// Has the link stop bringing segments for ports without listener and connection; looks now and then.
    fn forget_closed(&mut self) {
        if self.closing.is_empty() || self.now.since(self.looked_at) < LOOK_INTERVAL {
            return;
        }
        self.looked_at = self.now;
        let connections = self.host.connections();
        let ports: BTreeSet<u16> = connections.map(|status| status.flow.local_port).collect();
        let link = &mut self.link;
        self.closing.retain(|service| {
            let is_used = ports.contains(&service.address.port());
            if !is_used {
                link.forget(*service);
            }
            is_used
        });
    }
}

/// Bursts received in one turn, and frames sent: as in the engine on the stack (mill-bypass), for the same reasons.
const BURSTS_PER_TURN: u32 = 4;
const FRAMES_PER_TURN: u64 = 128;

/// How long a turn waits for a link that is full.
const LINK_PAUSE: Duration = Duration::from_micros(200);

/// How often ports without listener are looked at for connections left.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
