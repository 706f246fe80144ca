//! The data of one answered request.

use mill_runtime::time::{Duration, Instant};

/// One request that was answered; with a script that pipelines, one batch of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The connection's number among all of the run.
    pub connection: u32,
    /// When the request was due. In a closed loop: when it was started.
    pub intended: Instant,
    /// When the exchange began: before connecting if the connection was opened for it, else `sent`.
    pub started: Instant,
    /// When the connection was established, if it was opened for this request.
    pub connected: Option<Instant>,
    /// When the request was queued on the transport.
    pub sent: Instant,
    /// When the first byte of the response was read.
    pub first_byte: Instant,
    /// When the last byte of the response was read.
    pub done: Instant,
    pub status: u16,
    /// Bytes of the heads of the response.
    pub head_bytes: u64,
    /// Bytes of content, without the framing of chunks.
    pub content_bytes: u64,
    /// All bytes of the response.
    pub bytes: u64,
    /// Whether the response allowed the connection to persist.
    pub keep_alive: bool,
}

#[cfg(test)]
impl Sample {
    /// An answer of status 200 and ten bytes, all of whose times are `at`.
    pub(crate) const fn example(at: Instant) -> Self {
        Self {
            connection: 0,
            intended: at,
            started: at,
            connected: None,
            sent: at,
            first_byte: at,
            done: at,
            status: 200,
            head_bytes: 90,
            content_bytes: 10,
            bytes: 100,
            keep_alive: true,
        }
    }
}

impl Sample {
    /// What a user would have waited: from the intended start.
    pub const fn latency(&self) -> Duration {
        self.done.since(self.intended)
    }

    /// The server's time as the client sees it: from sending, without the handshake.
    pub const fn service_time(&self) -> Duration {
        self.done.since(self.sent)
    }

    /// From the actual start, with the handshake.
    pub const fn time(&self) -> Duration {
        self.done.since(self.started)
    }

    /// How long connecting took, if there was any.
    pub fn connect_time(&self) -> Option<Duration> {
        self.connected
            .map(|connected| connected.since(self.started))
    }

    /// From sending to the first byte of the response.
    pub const fn first_byte_time(&self) -> Duration {
        self.first_byte.since(self.sent)
    }

    /// From the intended start to the first byte of the response, with the handshakes.
    pub const fn ttfb(&self) -> Duration {
        self.first_byte.since(self.intended)
    }

    /// How long after its due time the request was started.
    pub const fn lateness(&self) -> Duration {
        self.started.since(self.intended)
    }
}
