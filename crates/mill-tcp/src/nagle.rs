//! How much new data leaves at once: whole segments, and when a small one does (RFC 9293 3.7.4, 3.8.6.2.1).

use crate::connection::{Cold, Connection, ConnectionFlags};

/// What the windows and the queue allow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Bytes that wait to be sent for the first time.
    pub(crate) unsent: u32,
    /// … and end a message, behind which more waits.
    pub(crate) is_message: bool,
    /// Bytes until the end of the peer's window.
    pub(crate) window: u32,
    /// Bytes until the congestion window is used up.
    pub(crate) congestion: u32,
    /// Payload of the largest segment that the device takes.
    pub(crate) segment_max: u32,
}

/// What comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// So many bytes leave.
    Send(u32),
    /// The congestion window has no room.
    Congested,
    /// The peer's window is too small, or a small segment waits for company.
    Wait,
}

impl Connection {
    /// New data, as much as one segment, or one that the device cuts, may carry now.
    #[inline]
    pub(crate) fn plan(&self, cold: Option<&Cold>, room: &Room) -> Plan {
        let mss = u32::from(self.snd_mss);
        let segment_max = (room.segment_max - room.segment_max % mss).max(mss);
        let len = room
            .unsent
            .min(room.window)
            .min(room.congestion)
            .min(segment_max);
        let is_all = len == room.unsent;
        let small = len % mss;
        if small == 0 || (is_all && (room.is_message || self.may_send_small(cold))) {
            return match len {
                0 if room.window == 0 => Plan::Wait,
                0 => Plan::Congested,
                len => Plan::Send(len),
            };
        }
        if len > mss {
            return Plan::Send(len - small);
        }
        if !is_all && room.window > room.congestion {
            return Plan::Congested;
        }
        // RFC 9293 3.8.6.2.1 (3): at least half of the largest window that the peer ever had.
        if !is_all && len >= self.snd.wnd_max() / 2 {
            return Plan::Send(len);
        }
        Plan::Wait
    }

    /// Whether a segment smaller than a full one may leave with the last of the queue.
    fn may_send_small(&self, cold: Option<&Cold>) -> bool {
        const HELD_BY_NOTHING: u32 = ConnectionFlags::FIN_QUEUED | ConnectionFlags::PUSH_DUE;
        if self.flags.has(HELD_BY_NOTHING) {
            return true;
        }
        if self.flags.has(ConnectionFlags::CORK) {
            return false;
        }
        // RFC 9293 3.7.4 as Minshall amended it: a small segment waits only while another small one is
        // unacknowledged, so that a large write does not wait for itself.
        self.flags.has(ConnectionFlags::NODELAY)
            || cold
                .and_then(|cold| cold.small_end)
                .is_none_or(|end| self.snd.una().is_at_or_after(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send_space::SendSpace;
    use mill_wire::seq::SeqNumber;

    const ROOM: Room = Room {
        unsent: 10_000,
        is_message: false,
        window: 10_000,
        congestion: 10_000,
        segment_max: 10_000,
    };

    fn room(change: impl FnOnce(&mut Room)) -> Room {
        let mut room = ROOM;
        change(&mut room);
        room
    }

    fn connection(flags: u32) -> Connection {
        let mut connection = Connection {
            snd_mss: 1_000,
            snd: SendSpace::with_window_max(SeqNumber(500), 10_000),
            ..Connection::default()
        };
        connection.flags.set(flags, true);
        connection
    }

    fn check(connection: &Connection, cold: Option<&Cold>, room: Room, expected: Plan) {
        assert_eq!(connection.plan(cold, &room), expected, "{room:?}");
    }

    #[test]
    fn whole_segments_leave_together_and_the_rest_with_the_last_of_the_queue() {
        let connection = connection(ConnectionFlags::NODELAY);
        let check =
            |change: fn(&mut Room), expected| check(&connection, None, room(change), expected);
        check(|_| {}, Plan::Send(10_000));
        check(|room| room.segment_max = 3_999, Plan::Send(3_000));
        check(|room| room.segment_max = 999, Plan::Send(1_000));
        check(|room| room.unsent = 2_500, Plan::Send(2_500));
        check(|room| room.congestion = 2_500, Plan::Send(2_000));
        check(|room| room.window = 2_500, Plan::Send(2_000));
        check(|room| room.congestion = 999, Plan::Congested);
        check(|room| room.congestion = 0, Plan::Congested);
        check(|room| room.window = 0, Plan::Wait);
    }

    #[test]
    fn a_small_window_is_used_from_half_of_the_largest_one_on() {
        let mut connection = connection(ConnectionFlags::NODELAY);
        connection.snd = SendSpace::with_window_max(SeqNumber(500), 1_600);
        let check =
            |change: fn(&mut Room), expected| check(&connection, None, room(change), expected);
        check(|room| room.window = 799, Plan::Wait);
        check(|room| room.window = 800, Plan::Send(800));
    }

    #[test]
    fn a_small_segment_waits_for_the_small_one_before_it_only() {
        let mut cold = Cold::default();
        let small = room(|room| room.unsent = 10);
        let nagle = connection(0);
        check(&nagle, None, small, Plan::Send(10));
        check(&nagle, Some(&cold), small, Plan::Send(10));
        cold.small_end = Some(SeqNumber(501));
        check(&nagle, Some(&cold), small, Plan::Wait);
        for unsent in [1_010, 1_000] {
            let whole = room(|room| room.unsent = unsent);
            check(&nagle, Some(&cold), whole, Plan::Send(1_000));
        }
        let nodelay = connection(ConnectionFlags::NODELAY);
        check(&nodelay, Some(&cold), small, Plan::Send(10));
        cold.small_end = Some(SeqNumber(500));
        check(&nagle, Some(&cold), small, Plan::Send(10));
    }

    /// As in Linux: only the last of the queue waits.
    #[test]
    fn the_end_of_a_message_with_more_behind_it_leaves_whatever_holds_small_segments() {
        let cold = Cold {
            small_end: Some(SeqNumber(501)),
            ..Cold::default()
        };
        let message = Room {
            unsent: 1_010,
            is_message: true,
            ..ROOM
        };
        for flags in [0, ConnectionFlags::CORK] {
            check(&connection(flags), Some(&cold), message, Plan::Send(1_010));
            let narrow = Room {
                window: 1_005,
                ..message
            };
            check(&connection(flags), Some(&cold), narrow, Plan::Send(1_000));
        }
    }

    #[test]
    fn a_cork_holds_what_is_small_whatever_else_is_said_but_not_before_fin() {
        let small = room(|room| room.unsent = 10);
        let corked = connection(ConnectionFlags::CORK | ConnectionFlags::NODELAY);
        check(&corked, None, small, Plan::Wait);
        let whole = room(|room| room.unsent = 1_010);
        check(&corked, None, whole, Plan::Send(1_000));
        let ends = connection(ConnectionFlags::CORK | ConnectionFlags::FIN_QUEUED);
        check(&ends, None, small, Plan::Send(10));
        let pushed = connection(ConnectionFlags::CORK | ConnectionFlags::PUSH_DUE);
        check(&pushed, None, small, Plan::Send(10));
    }
}
