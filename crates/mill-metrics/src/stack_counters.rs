//! Everything that a stack of our own and its link count, one field each.
//!
//! Those of drops are called `dropped_` and the reason, so that they can be shown as a table.

use crate::counter::counters;

counters! {
    /// The counts of one worker's stack; or, after [`StackCounters::merge`], of all of them.
    pub struct StackCounters {
        /// Frames taken from the link.
        frames_received: Counter of Frames,
        /// Frames given to the link.
        frames_transmitted: Counter of Frames,
        /// Received frames that were not dropped: `frames_received` less those of the reasons of receiving.
        frames_handled: Counter of Frames,
        /// Handled by giving them to another process or worker, which may have the connections that this one has not.
        frames_handed_over: Counter of Frames,

        /// Dropped on the way in: shorter than its headers say, or an invalid header.
        dropped_malformed: Counter of Frames,
        /// Dropped on the way in: sent to another machine.
        dropped_not_for_us: Counter of Frames,
        /// Dropped on the way in: a protocol that the stack does not support.
        dropped_unknown_protocol: Counter of Frames,
        /// Dropped on the way in: a checksum that does not match.
        dropped_checksum: Counter of Frames,
        /// Dropped on the way in: from an address that no peer can have.
        dropped_bad_source: Counter of Frames,
        /// Dropped on the way in: a fragment that overlaps another, or is too many, too late or too small.
        dropped_fragment: Counter of Frames,
        /// Dropped on the way in: no socket listens at this port.
        dropped_no_listener: Counter of Frames,
        /// Dropped on the way in: the listener's queue is full.
        dropped_listen_queue_full: Counter of Frames,
        /// Dropped on the way in: no memory for one more connection.
        dropped_no_memory: Counter of Frames,
        /// Dropped on the way out: no room in the device, or in the queue before it.
        dropped_device_full: Counter of Frames,
        /// Dropped on the way out: no answer to ARP or neighbour solicitation.
        dropped_unresolved: Counter of Frames,
        /// Dropped on the way out: no route to the target.
        dropped_no_route: Counter of Frames,
        /// Dropped on the way out: the limit of answers per second is used up.
        dropped_rate_limit: Counter of Frames,
        /// Dropped after they were received: pieces of a datagram whose others did not come in time.
        dropped_fragment_timeout: Counter of Frames,
        /// Dropped on the way in: a segment of an address that is blocked (`ip_block` of `frang`).
        dropped_blocked: Counter of Frames,
        /// Dropped on the way in: a segment outside the window.
        dropped_outside_window: Counter of Frames,
        /// Dropped on the way in: a segment with an old timestamp (RFC 7323 5).
        dropped_paws: Counter of Frames,
        /// Dropped on the way in: a reset without the exact number (RFC 5961 3).
        dropped_blind_reset: Counter of Frames,
        /// Dropped on the way in: a SYN for an existing connection (RFC 5961 4).
        dropped_blind_syn: Counter of Frames,
        /// Dropped on the way in: it acknowledges bytes that were not sent, or too long ago (RFC 5961 5).
        dropped_bad_ack: Counter of Frames,
        /// Dropped on the way in: a segment without an acknowledgement, where one must be.
        dropped_no_ack: Counter of Frames,
        /// Dropped on the way in: all of it had been received before.
        dropped_duplicate: Counter of Frames,
        /// Dropped on the way in: no room for segments out of order.
        dropped_reassembly_full: Counter of Frames,
        /// Dropped on the way in: no room for unread bytes.
        dropped_no_buffer: Counter of Frames,
        /// Dropped on the way in: data after the application has closed.
        dropped_after_close: Counter of Frames,
        /// Dropped on the way in: of no connection.
        dropped_no_connection: Counter of Frames,

        /// Connections that peers opened.
        opens_passive: Counter of Connections,
        /// Connections that we opened.
        opens_active: Counter of Connections,
        /// Handshakes that failed.
        opens_failed: Counter of Connections,
        /// SYNs received.
        syns_received: Counter of Segments,
        /// SYN cookies sent (nstat: SyncookiesSent).
        syn_cookies_sent: Counter of Segments,
        /// SYN cookies that came back and were good (SyncookiesRecv).
        syn_cookies_taken: Counter of Segments,
        /// … and those that were not (SyncookiesFailed).
        syn_cookies_refused: Counter of Segments,
        /// Connections that a Fast Open cookie opened.
        fast_opens: Counter of Connections,
        /// Fast Open cookies given.
        fast_open_cookies_sent: Counter of Segments,
        /// Connections of ours whose first bytes were taken with the SYN.
        fast_opens_out: Counter of Connections,
        /// … and those that had to repeat the SYN without them.
        fast_opens_lost: Counter of Connections,
        /// Long segments whose payload was sent from where it lay, without a copy of ours.
        segments_in_place: Counter of Frames,
        /// Connections that went to TIME-WAIT.
        time_waits: Counter of Connections,
        /// … and were removed early, because there were too many.
        time_waits_forgotten: Counter of Connections,
        /// … and whose addresses and ports a new connection took over (RFC 6191).
        time_waits_reopened: Counter of Connections,
        /// Bytes that had to be copied because a reader left them at the end of a turn.
        bytes_left: Counter of Bytes,
        /// Bytes that had to be copied because a second segment came before the first was read.
        bytes_gathered: Counter of Bytes,

        /// TCP segments received.
        segments_received: Counter of Segments,
        /// TCP segments sent, those sent again included.
        segments_sent: Counter of Segments,
        /// TCP segments sent again.
        segments_retransmitted: Counter of Segments,
        /// Retransmission timers that expired (TCPTimeouts).
        timeouts: Counter of Events,
        /// Tail loss probes (TCPLossProbes).
        loss_probes: Counter of Segments,
        /// Losses that a probe repaired (TCPLossProbeRecovery).
        loss_probe_recoveries: Counter of Events,
        /// Segments sent again before a timer expired (TCPFastRetrans).
        fast_retransmits: Counter of Segments,
        /// Recoveries entered by SACK, RACK or duplicate acknowledgements.
        recoveries: Counter of Events,
        /// Segments lost again after they were sent again (TCPLostRetransmit).
        lost_retransmits: Counter of Segments,
        /// Reductions of the congestion window that proved unneeded and were undone.
        undone: Counter of Events,
        /// Duplicate SACKs received (TCPDSACKRecv).
        dsacks_received: Counter of Segments,
        /// Acknowledgements sent without data.
        acks_sent: Counter of Segments,
        /// … because their timer expired (DelayedACKs).
        delayed_acks: Counter of Segments,
        /// Challenge acknowledgements (TCPChallengeACK).
        challenge_acks: Counter of Segments,
        /// … that were not sent because of their limit.
        challenge_acks_suppressed: Counter of Segments,
        /// Segments that took the short path: next in order, nothing unusual.
        short_path: Counter of Segments,
        /// Segments that came out of order.
        out_of_order: Counter of Segments,
        /// Bytes given to readers.
        bytes_delivered: Counter of Bytes,
        /// Keep-alive probes (TCPKeepAlive).
        keepalive_probes: Counter of Segments,
        /// Probes of closed windows (TCPWinProbe).
        window_probes: Counter of Segments,
        /// Congestion windows reduced because of ECN.
        ecn_reductions: Counter of Events,
        /// Paths with a smaller MTU than assumed, as reported by routers (ICMP "packet too big").
        paths_told: Counter of Events,
        /// Such messages that were ignored: the packet they quote is not in flight, or the size is invalid.
        paths_doubted: Counter of Events,
        /// Paths found to drop large segments silently.
        black_holes: Counter of Events,
        /// Paths removed because more were known than `paths=` allows.
        paths_forgotten: Counter of Events,
        /// Larger segments tried on such paths (TCPMTUProbe).
        path_probes: Counter of Segments,
        /// Of them, those that arrived (TCPMTUPSuccess).
        path_probes_arrived: Counter of Segments,
        /// Of them, those that did not (TCPMTUPFail).
        path_probes_lost: Counter of Segments,
        /// Resets received.
        resets_received: Counter of Segments,
        /// Resets sent.
        resets_sent: Counter of Segments,

        /// Connections, closing ones included.
        connections: Gauge of Connections,
        /// Targets known to be reached by smaller packets only.
        small_paths: Gauge of Events,
        /// Handshakes in progress.
        half_open: Gauge of Connections,
        /// Connections in TIME-WAIT.
        time_wait: Gauge of Connections,
        /// Entries of the flow table.
        flows: Gauge of Connections,
        /// Armed timers of connections and handshakes.
        timers: Gauge of Events,
        /// Frames that readers may still access.
        frames_held: Gauge of Frames,
        /// Buffers with unread bytes.
        buffers: Gauge of Buffers,
        /// Bytes received and not read, those out of order included.
        unread_bytes: Gauge of Bytes,
        /// Bytes of incomplete datagrams.
        fragment_bytes: Gauge of Bytes,
        /// Segments and datagrams that wait for the device or for a neighbour.
        waiting: Gauge of Frames,
        /// Bytes of the tables of connections, flows, timers and TIME-WAIT.
        table_bytes: Gauge of Bytes,
        /// Neighbours that are known or asked for.
        neighbors: Gauge of Events,

        /// The link: frames received.
        link_received: Counter of Frames,
        /// … their bytes.
        link_received_bytes: Counter of Bytes,
        /// The link: frames sent.
        link_transmitted: Counter of Frames,
        /// … their bytes.
        link_transmitted_bytes: Counter of Bytes,
        /// The link: long segments among the frames sent, which the device cuts.
        link_segments: Counter of Frames,
        /// The link: received frames that were dropped: too long, or malformed by the peer.
        link_dropped: Counter of Frames,
        /// The link: frames to be sent for which there was no peer, or no room, at the other end.
        link_lost: Counter of Frames,
        /// The link: calls or signals that woke the other side.
        link_kicks: Counter of Events,
        /// The link: calls to send that the kernel refused, the interface being down or gone.
        link_refused: Counter of Events,
        /// The link: frames of no connection of this worker, offered to the next one.
        link_handed_on: Counter of Frames,
        /// The link: frames that another worker has offered to this one.
        link_handed_here: Counter of Frames,
        /// The link: frames that the next worker had no room for.
        link_handed_lost: Counter of Frames,
        /// AF_XDP: frames that the kernel dropped: too long for a buffer, or without a free one.
        xdp_dropped: Counter of Frames,
        /// AF_XDP: frames that the kernel dropped because the ring of received ones was full.
        xdp_ring_full: Counter of Frames,
        /// AF_XDP: times that a frame found the fill ring empty.
        xdp_no_place: Counter of Events,
        /// AF_XDP: descriptors that the kernel found invalid; always zero.
        xdp_strange: Counter of Events,
        /// AF_XDP: frames that the steering gave to a socket.
        steering_redirected: Counter of Frames,
        /// AF_XDP: frames that the steering left to the kernel: another address, port or protocol.
        steering_passed: Counter of Frames,
        /// AF_XDP: frames of connections that the kernel had before the port was served.
        steering_kept: Counter of Frames,
        /// AF_XDP: frames of the stack without a socket for their queue and worker, left to the kernel.
        steering_unclaimed: Counter of Frames,
        /// AF_XDP: first fragments to a served port, dropped.
        steering_fragments: Counter of Frames,
        /// AF_XDP: frames of blocked addresses to a served port, dropped.
        steering_blocked: Counter of Frames,
        /// AF_XDP: headers cut short or contradictory, left to the kernel.
        steering_malformed: Counter of Frames,
        /// AF_XDP: IPv6 with more than four extension headers, or one that the steering does not pass over, left to the kernel.
        steering_chains: Counter of Frames,
    }
}

impl StackCounters {
    /// Frames dropped by reason, also reasons that nothing was dropped for; names are those of the fields without `dropped_`.
    pub fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let named = Self::DESCRIPTIONS.iter().zip(self.values());
        named.filter_map(|(figure, value)| Some((figure.name.strip_prefix(DROPPED)?, value)))
    }

    /// Whether frames are dropped for this reason on their way out, or after they were handled; all other reasons are
    /// of received frames that were not handled.
    pub fn is_late(reason: &str) -> bool {
        matches!(
            reason,
            "device_full" | "unresolved" | "no_route" | "rate_limit" | "fragment_timeout"
        )
    }

    /// Received frames that were dropped.
    pub fn dropped_received(&self) -> u64 {
        let received = self.drops().filter(|(reason, _)| !Self::is_late(reason));
        received.map(|(_, count)| count).sum()
    }
}

/// The prefix of such figures' names.
pub(crate) const DROPPED: &str = "dropped_";

/// Figures of the steering program, of which the sum over all workers counts each frame of the interface once: a worker
/// with queues to itself publishes those of its queues, and of workers that share queues the first one those of all.
pub fn is_of_interface(name: &str) -> bool {
    name.starts_with("steering_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_helps_are_sentences() {
        let mut names = Vec::new();
        for description in StackCounters::DESCRIPTIONS {
            assert!(!names.contains(&description.name), "{}", description.name);
            names.push(description.name);
            assert!(description.help.ends_with('.'), "{}", description.name);
        }
    }

    #[test]
    fn drops_are_distinguished_by_their_direction() {
        let counters = StackCounters {
            dropped_checksum: 3,
            dropped_no_route: 5,
            dropped_duplicate: 7,
            ..Default::default()
        };
        assert_eq!(counters.dropped_received(), 10);
        assert_eq!(counters.drops().count(), 26);
        let outgoing = counters
            .drops()
            .filter(|(name, _)| StackCounters::is_late(name));
        assert_eq!(outgoing.map(|(_, count)| count).sum::<u64>(), 5);
    }
}
