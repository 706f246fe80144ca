//! What a host counts besides TCP.

use crate::drop_reason::DropReason;
use mill_tcp::arrived::SegmentDrop;

/// Plain counters; the publisher copies the struct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    pub frames_in: u64,
    pub frames_out: u64,
    /// Received and not dropped, which each of them is for one reason at most:
    /// `frames_in` = `frames_handled` + `received_drops()`.
    pub frames_handled: u64,
    /// Connections opened by peers, and by us.
    pub passive_opens: u64,
    pub active_opens: u64,
    /// Slots, flows and ports were all right, and yet the handshake failed.
    pub failed_opens: u64,
    pub syns_in: u64,
    /// `SyncookiesSent`.
    pub cookies_sent: u64,
    /// `SyncookiesRecv`.
    pub cookies_taken: u64,
    /// `SyncookiesFailed`.
    pub cookies_refused: u64,
    /// SYNs that opened a connection by a Fast Open cookie, and cookies given.
    pub fast_opens: u64,
    pub fast_open_cookies_sent: u64,
    /// SYNs of ours whose text was taken by a server, and those that had to be repeated without it.
    pub fast_opens_out: u64,
    pub fast_opens_lost: u64,
    /// Long segments whose payload was sent from where it lay.
    pub segments_in_place: u64,
    pub time_waits: u64,
    /// Entries forgotten before their time because there were too many.
    pub time_waits_forgotten: u64,
    /// Connections whose port was taken over from TIME-WAIT (RFC 6191).
    pub time_waits_reopened: u64,
    /// Frames without connection or listener here, given to another worker or process (`Link::hand_over`).
    pub handed_over: u64,
    /// Connections that waited at a listener and moved to another process's host, and from one (`host/migration.rs`).
    pub moved_out: u64,
    pub moved_in: u64,
    /// Paths that carry less than was assumed, reported by a router (RFC 1191, RFC 8201).
    pub paths_told: u64,
    /// Such messages about an existing connection which were not believed: the segment that they quote is not in
    /// flight, or the size makes no sense (RFC 5927 7.2).
    pub paths_doubted: u64,
    /// Paths that silently drop large packets, detected by timeouts (RFC 4821 7.7).
    pub black_holes: u64,
    /// Bytes that readers left at the end of a turn, so that they had to be copied.
    pub bytes_left: u64,
    /// Bytes copied because a second segment came before the first was read.
    pub bytes_gathered: u64,
    drops: [u64; DropReason::COUNT],
    /// Of them, received frames.
    received_drops: u64,
}

impl HostCounters {
    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        if let Some(count) = self.drops.get_mut(reason.index()) {
            *count += 1;
        }
        self.received_drops += u64::from(!reason.is_late());
    }

    /// Received frames that were dropped.
    pub const fn received_drops(&self) -> u64 {
        self.received_drops
    }

    /// Frames dropped for this reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops.get(reason.index()).copied().unwrap_or(0)
    }

    /// All reasons for which something was dropped, and how often.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> {
        DropReason::ALL
            .into_iter()
            .map(|reason| (reason, self.dropped(reason)))
            .filter(|(_, count)| *count > 0)
    }
}

impl DropReason {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = {
        use SegmentDrop as Tcp;
        [
            Self::Malformed,
            Self::NotForUs,
            Self::UnknownProtocol,
            Self::Checksum,
            Self::BadSource,
            Self::Fragment,
            Self::NoListener,
            Self::ListenQueueFull,
            Self::NoMemory,
            Self::DeviceFull,
            Self::Unresolved,
            Self::NoRoute,
            Self::RateLimit,
            Self::FragmentTimeout,
            Self::Blocked,
            Self::Segment(Tcp::OutsideWindow),
            Self::Segment(Tcp::Paws),
            Self::Segment(Tcp::BlindReset),
            Self::Segment(Tcp::BlindSyn),
            Self::Segment(Tcp::BadAck),
            Self::Segment(Tcp::NoAck),
            Self::Segment(Tcp::Duplicate),
            Self::Segment(Tcp::ReassemblyFull),
            Self::Segment(Tcp::NoBuffer),
            Self::Segment(Tcp::AfterClose),
            Self::Segment(Tcp::NoConnection),
        ]
    };

    const COUNT: usize = 26;

    const fn index(self) -> usize {
        match self {
            Self::Malformed => 0,
            Self::NotForUs => 1,
            Self::UnknownProtocol => 2,
            Self::Checksum => 3,
            Self::BadSource => 4,
            Self::Fragment => 5,
            Self::NoListener => 6,
            Self::ListenQueueFull => 7,
            Self::NoMemory => 8,
            Self::DeviceFull => 9,
            Self::Unresolved => 10,
            Self::NoRoute => 11,
            Self::RateLimit => 12,
            Self::FragmentTimeout => 13,
            Self::Blocked => 14,
            Self::Segment(reason) => 15 + segment_index(reason),
        }
    }

    /// Whether it concerns transmitted or queued packets, and not the received frame.
    pub const fn is_late(self) -> bool {
        matches!(
            self,
            Self::DeviceFull
                | Self::Unresolved
                | Self::NoRoute
                | Self::RateLimit
                | Self::FragmentTimeout
        )
    }
}

const fn segment_index(reason: SegmentDrop) -> usize {
    match reason {
        SegmentDrop::OutsideWindow => 0,
        SegmentDrop::Paws => 1,
        SegmentDrop::BlindReset => 2,
        SegmentDrop::BlindSyn => 3,
        SegmentDrop::BadAck => 4,
        SegmentDrop::NoAck => 5,
        SegmentDrop::Duplicate => 6,
        SegmentDrop::ReassemblyFull => 7,
        SegmentDrop::NoBuffer => 8,
        SegmentDrop::AfterClose => 9,
        SegmentDrop::NoConnection => 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_number_of_its_own() {
        let mut counters = HostCounters::default();
        for (index, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason.index(), index, "{reason:?}");
            counters.count_drop(reason);
            assert_eq!(counters.drops().count(), index + 1);
        }
    }
}
