//! What is counted, per host; names are those of Linux's `nstat` where it has one.

/// Plain counters; the publisher copies the struct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub segments_in: u64,
    pub segments_out: u64,
    /// Segments sent again, each MSS counted.
    pub retransmitted: u64,
    /// `TCPTimeouts`.
    pub timeouts: u64,
    /// `TCPLossProbes`.
    pub loss_probes: u64,
    /// `TCPLossProbeRecovery`.
    pub loss_probe_recoveries: u64,
    /// `TCPFastRetrans`.
    pub fast_retransmits: u64,
    /// Recoveries entered by SACK, RACK or duplicate acknowledgements.
    pub recoveries: u64,
    /// `TCPLostRetransmit`.
    pub lost_retransmits: u64,
    /// Reductions of the congestion window that proved unneeded and were undone (D-SACK, timestamps, F-RTO).
    pub undone: u64,
    /// `TCPDSACKRecv`.
    pub dsacks_in: u64,
    /// Acknowledgements sent without data.
    pub acks_out: u64,
    /// `DelayedACKs`: sent because the timer expired.
    pub delayed_acks: u64,
    /// `TCPChallengeACK`.
    pub challenge_acks: u64,
    /// Challenge ACKs that the limit suppressed.
    pub challenge_acks_suppressed: u64,
    /// `PAWSEstab`.
    pub paws_drops: u64,
    /// Segments taken by the short path.
    pub short_path: u64,
    /// Segments that arrived out of order.
    pub out_of_order: u64,
    /// Payload bytes given to readers.
    pub delivered_bytes: u64,
    /// `TCPKeepAlive`.
    pub keepalive_probes: u64,
    /// `TCPWinProbe`.
    pub window_probes: u64,
    /// Windows reduced because of ECN.
    pub ecn_reductions: u64,
    /// Larger segments that were tried (`TCPMTUProbe`), that arrived (`TCPMTUPSuccess`), and that did not (`TCPMTUPFail`).
    pub path_probes: u64,
    pub path_probes_arrived: u64,
    pub path_probes_lost: u64,
    pub resets_in: u64,
    pub resets_out: u64,
}

impl Counters {
    pub const ZERO: Self = Self {
        segments_in: 0,
        segments_out: 0,
        retransmitted: 0,
        timeouts: 0,
        loss_probes: 0,
        loss_probe_recoveries: 0,
        fast_retransmits: 0,
        recoveries: 0,
        lost_retransmits: 0,
        undone: 0,
        dsacks_in: 0,
        acks_out: 0,
        delayed_acks: 0,
        challenge_acks: 0,
        challenge_acks_suppressed: 0,
        paws_drops: 0,
        short_path: 0,
        out_of_order: 0,
        delivered_bytes: 0,
        keepalive_probes: 0,
        window_probes: 0,
        ecn_reductions: 0,
        path_probes: 0,
        path_probes_arrived: 0,
        path_probes_lost: 0,
        resets_in: 0,
        resets_out: 0,
    };
}
