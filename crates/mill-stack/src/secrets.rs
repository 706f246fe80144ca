//! Numbers that peers see and must not be able to predict.

use crate::flow::Flow;
use crate::siphash::Key;
use core::net::{IpAddr, Ipv6Addr};
use mill_tcp::time::Instant;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp_option::FastOpenCookie;

/// One key for each purpose, all from the host's secret.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Secrets {
    /// Of the flow table and of reuseport groups.
    pub(crate) table: Key,
    pub(crate) cookie: Key,
    pub(crate) port: Key,
    fast_open: Key,
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
            timestamp: key.derive(TIMESTAMP),
        }
    }

    /// Timestamps' offsets are made of this one, which other hosts share.
    pub(crate) fn set_boot_secret(&mut self, secret: [u8; 16]) {
        self.timestamp = Key::new(secret).derive(TIMESTAMP);
    }

    /// Cookies of Fast Open are made with this key.
    pub(crate) const fn set_fast_open_key(&mut self, key: [u8; 16]) {
        self.fast_open = Key::new(key);
    }

    /// RFC 7413 4.1.2: the cookie of a flow's client, of eight bytes. As in Linux it is SipHash-2-4 of the client's
    /// address and then ours, little-endian.
    pub(crate) fn fast_open_cookie(&self, flow: &Flow) -> FastOpenCookie {
        let hash = match (flow.remote, flow.local) {
            (IpAddr::V4(remote), IpAddr::V4(local)) => {
                let ([a, b, c, d], [e, f, g, h]) = (remote.octets(), local.octets());
                self.fast_open
                    .secret(&[u64::from_le_bytes([a, b, c, d, e, f, g, h])])
            }
            (remote, local) => {
                let (remote, local) = (ipv6(remote), ipv6(local));
                let [a, b] = words(remote);
                let [c, d] = words(local);
                self.fast_open.secret(&[a, b, c, d])
            }
        };
        FastOpenCookie::new(&hash.to_le_bytes()).unwrap_or_default()
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

/// The number of the key of timestamps among those that are derived.
const TIMESTAMP: u64 = 5;

const fn ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// The bytes of an address as little-endian words.
const fn words(address: Ipv6Addr) -> [u64; 2] {
    let both = u128::from_le_bytes(address.octets());
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    [both as u64, (both >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Linux makes with `tcp_fastopen_key=a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4`.
    #[test]
    fn cookies_are_those_of_linux_with_the_same_key() {
        let mut secrets = Secrets::new([9; 16]);
        let key = [0xa1_u8, 0xb2, 0xc3, 0xd4].map(|byte| [byte; 4]);
        secrets.set_fast_open_key(*key.concat().first_chunk().unwrap());
        for (local, remote, expected) in [
            ("192.168.0.1:80", "192.0.2.1:9", 0x3021_b9d8_8901_7eeb_u64),
            (
                "[fd3d:a0b:17d6::1]:80",
                "[fd3d:fa7b:d17d::1]:9",
                0xc1d1_e974_2a47_a9bc,
            ),
        ] {
            let flow = Flow::new(local.parse().unwrap(), remote.parse().unwrap());
            let cookie = secrets.fast_open_cookie(&flow);
            assert_eq!(cookie.as_slice(), expected.to_be_bytes());
        }
    }

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

    /// Nothing else is shared: the numbers of one process reveal none of another's.
    #[test]
    fn hosts_of_one_boot_share_the_offset_of_timestamps_alone() {
        let flow = Flow::new(
            "10.0.0.1:80".parse().unwrap(),
            "10.0.0.2:9".parse().unwrap(),
        );
        let [one, other] = [[9; 16], [8; 16]].map(|secret| {
            let mut secrets = Secrets::new(secret);
            secrets.set_boot_secret([7; 16]);
            secrets
        });
        assert_eq!(one.timestamp_offset(&flow), other.timestamp_offset(&flow));
        let at = Instant::from_nanos(0);
        assert_ne!(one.iss(&flow, at), other.iss(&flow, at));
    }
}
