//! `$limit_req_status`, `$limit_conn_status`.

/// What `limit_conn` made of a request or a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionStatus {
    Passed,
    Rejected,
    RejectedDryRun,
}

/// What `limit_req` made of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestStatus {
    Passed,
    Delayed,
    Rejected,
    DelayedDryRun,
    RejectedDryRun,
}

impl ConnectionStatus {
    /// nginx's word.
    pub(crate) const fn word(self) -> &'static [u8] {
        match self {
            Self::Passed => b"PASSED",
            Self::Rejected => b"REJECTED",
            Self::RejectedDryRun => b"REJECTED_DRY_RUN",
        }
    }
}

impl RequestStatus {
    /// nginx's word.
    pub(crate) const fn word(self) -> &'static [u8] {
        match self {
            Self::Passed => b"PASSED",
            Self::Delayed => b"DELAYED",
            Self::Rejected => b"REJECTED",
            Self::DelayedDryRun => b"DELAYED_DRY_RUN",
            Self::RejectedDryRun => b"REJECTED_DRY_RUN",
        }
    }
}
