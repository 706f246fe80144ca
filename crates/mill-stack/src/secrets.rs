//! Numbers that peers see and nobody may foretell.

use crate::flow::Flow;
use crate::siphash::Key;
use mill_tcp::time::Instant;
use mill_wire::seq::SeqNumber;

/// One key for each purpose, all from the host's secret.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Secrets {
    /// Of the flow table and of reuseport groups.
    pub(crate) table: Key,
    pub(crate) cookie: Key,
    pub(crate) port: Key,
    pub(crate) fast_open: Key,
    iss: Key,
    timestamp: Key,
}

impl Secrets {
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        let key = Key::new(secret);
        Self {
            table: key.derive(1),
            cookie: key.derive(2),
            port: key.derive(3),
            fast_open: key.derive(7),
            iss: key.derive(4),
            timestamp: key.derive(5),
        }
    }

    /// A seed for numbers that are no secrets.
    pub(crate) fn seed(secret: [u8; 16]) -> u64 {
        Key::new(secret).secret(&[6])
    }

    /// RFC 6528 3: a clock plus a hash of the flow. The clock ticks each 64 ns, as Linux's does, so that a
    /// connection's numbers stay ahead of its predecessor's at 15 Gbit/s also.
    #[expect(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
    pub(crate) fn iss(&self, flow: &Flow, now: Instant) -> SeqNumber {
        let clock = now.as_nanos() / ISS_TICK_NANOS;
        let hash = flow.secret_hash(self.iss, 0);
        SeqNumber(clock.wrapping_add(hash) as u32)
    }

    /// What is added to the clock in timestamps: one number for all flows between two addresses, so that a port that
    /// is used again sees its time go on (RFC 7323 5.4, RFC 6191).
    #[expect(
        clippy::cast_possible_truncation,
        reason = "any 32 bits of the hash will do"
    )]
    pub(crate) fn timestamp_offset(&self, flow: &Flow) -> u32 {
        flow.secret_hash_of_addresses(self.timestamp) as u32
    }
}

const ISS_TICK_NANOS: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flows_numbers_go_on_with_the_clock_and_say_nothing_of_anothers() {
        let secrets = Secrets::new([9; 16]);
        let flow =
            |remote: &str| Flow::new("10.0.0.1:80".parse().unwrap(), remote.parse().unwrap());
        let (first, second) = (flow("10.0.0.2:1000"), flow("10.0.0.2:1001"));
        let at = |nanos| Instant::from_nanos(nanos);
        let start = secrets.iss(&first, at(0));
        assert_eq!(secrets.iss(&first, at(6400)) - start, 100);
        assert!(secrets.iss(&second, at(0)).since(start).unsigned_abs() > 1000);
        assert_eq!(
            secrets.timestamp_offset(&first),
            secrets.timestamp_offset(&second)
        );
        let other = Secrets::new([8; 16]);
        assert_ne!(other.iss(&first, at(0)), start);
        assert_ne!(
            other.timestamp_offset(&first),
            secrets.timestamp_offset(&first)
        );
    }
}
