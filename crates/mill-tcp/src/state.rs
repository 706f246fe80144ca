//! The states of RFC 9293 3.3.2.

/// LISTEN, and SYN-RECEIVED after a listener's SYN, are not states of a connection here: a listener is the
/// host's, and `listen::HalfOpen` stands for what waits for the last acknowledgement of its handshake.
/// SYN-RECEIVED below is reached by a simultaneous open only. TIME-WAIT is `time_wait::TimeWait`;
/// a connection that reaches it is `Closed` and says so by `Events::TIME_WAIT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Closed,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
}

impl State {
    /// Both sides know each other's sequence numbers.
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent | Self::SynReceived)
    }

    /// The peer may still send data (RFC 9293 3.10.7.4, seventh).
    pub const fn may_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// The application may still hand over data, and what it handed over is sent.
    pub const fn may_send(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait)
    }

    /// Data or a FIN of ours may be unacknowledged.
    pub const fn may_retransmit(self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }
}
