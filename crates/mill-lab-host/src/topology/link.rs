//! Interfaces and namespaces by ip(8) and tc(8): the commands that a user would type, each in the journal.

use super::TopologyError;
use crate::host::Host;
use crate::journal::{Entry, Journal, setting};

/// The name of the lab's interfaces inside their namespaces; short, since the kernel takes 15 bytes.
pub(super) const INTERFACE: &str = "ms0";

/// The lab's network, in namespaces of its own: a part of 10.0.0.0/8 (RFC 1918 3) that homes and offices seldom use,
/// so that an address in a report is recognised as the lab's.
const NETWORK: [u8; 2] = [10, 213];
pub(super) const PREFIX: u32 = 16;

/// How many client hosts the network has addresses for: the server and 254 x 253 others; more namespaces than 4094 need
/// more memory for their tables than the machines have.
pub(super) const CLIENTS_MAX: u32 = 4094;

/// The server is number 0, clients count from 1: 10.213.0.1, 10.213.0.2 … 10.213.0.254, 10.213.1.1 …
pub(super) fn address(number: u32) -> String {
    let [a, b] = NETWORK;
    format!("{a}.{b}.{}.{}", number / HOSTS, number % HOSTS + 1)
}

/// Last bytes from 1 to 254: 0 and 255 look like a network and a broadcast to older tools.
const HOSTS: u32 = 254;

/// Makes a link: its ends are namespaces, and the interfaces in them have the same name.
pub(super) struct Links<'a> {
    pub(super) journal: &'a mut Journal,
    /// Between `ms` and the role: the lab's process id, and a letter for each further topology of the same lab.
    pub(super) prefix: String,
}

impl<'a> Links<'a> {
    pub(super) fn new(journal: &'a mut Journal) -> Self {
        let process = std::process::id();
        let letters = std::iter::once(String::new()).chain(('b'..='z').map(String::from));
        let mut prefixes = letters.map(|letter| format!("ms{process}{letter}"));
        let is_free = |prefix: &String| !setting::is_namespace(&format!("{prefix}-s"));
        let prefix = prefixes.find(is_free);
        Self {
            journal,
            // Twenty-five topologies at once: then the next is refused by ip(8), which says why.
            prefix: prefix.unwrap_or_else(|| format!("ms{process}")),
        }
    }

    /// Makes the namespace of a role, with its own lo up.
    pub(super) fn namespace(&mut self, role: &str) -> Result<String, TopologyError> {
        let name = format!("{}-{role}", self.prefix);
        self.journal
            .note(&Entry::MadeNamespace { name: name.clone() })
            .map_err(failed)?;
        self.make(&["ip", "netns", "add", &name])?;
        self.make(&["ip", "-n", &name, "link", "set", "lo", "up"])?;
        Ok(name)
    }

    /// Runs a command that makes objects inside namespaces, which are removed with them.
    pub(super) fn make(&mut self, argv: &[&str]) -> Result<(), TopologyError> {
        self.journal
            .run(&Host::Local, argv, &[])
            .map(drop)
            .map_err(failed)
    }

    /// A veth pair, one end in each namespace.
    pub(super) fn pair(
        &mut self,
        ends: [&str; 2],
        queues: Option<u32>,
        mtu: Option<u32>,
    ) -> Result<(), TopologyError> {
        let queues = queues.map(|count| count.to_string());
        let mtu = mtu.map(|bytes| bytes.to_string());
        let settings = |argv: &mut Vec<String>| {
            for (word, value) in [
                ("numtxqueues", &queues),
                ("numrxqueues", &queues),
                ("mtu", &mtu),
            ] {
                if let Some(value) = value {
                    argv.extend([String::from(word), value.clone()]);
                }
            }
        };
        let mut argv = ["ip", "-n", ends[0], "link", "add", INTERFACE]
            .map(String::from)
            .to_vec();
        settings(&mut argv);
        argv.extend(
            ["type", "veth", "peer", "name", INTERFACE, "netns", ends[1]].map(String::from),
        );
        settings(&mut argv);
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        self.make(&argv)
    }

    /// Gives the interface an address and sets it up.
    pub(super) fn up(&mut self, namespace: &str, number: u32) -> Result<(), TopologyError> {
        let address = format!("{}/{PREFIX}", address(number));
        self.make(&[
            "ip", "-n", namespace, "addr", "add", &address, "dev", INTERFACE,
        ])?;
        self.make(&["ip", "-n", namespace, "link", "set", INTERFACE, "up"])
    }

    /// Limits the rate at which the interface sends.
    pub(super) fn limit(&mut self, namespace: &str, rate_gbit: f64) -> Result<(), TopologyError> {
        let bucket = Bucket::of(rate_gbit).ok_or_else(|| {
            TopologyError::Failed(format!("a link of {rate_gbit} Gbit/s: rates are above 0"))
        })?;
        let (rate, burst, limit) = (
            format!("{}bit", bucket.rate_bits_per_s),
            bucket.burst_bytes.to_string(),
            bucket.limit_bytes.to_string(),
        );
        self.make(&[
            "tc", "-n", namespace, "qdisc", "add", "dev", INTERFACE, "root", "tbf", "rate", &rate,
            "burst", &burst, "limit", &limit,
        ])
    }
}

/// The settings of tbf(8) for a rate. It counts bytes of Ethernet frames without preamble, checksum and gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    rate_bits_per_s: u64,
    burst_bytes: u64,
    limit_bytes: u64,
}

impl Bucket {
    fn of(rate_gbit: f64) -> Option<Self> {
        if !rate_gbit.is_finite() || rate_gbit <= 0.0 {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive and finite; a float's conversion saturates"
        )]
        let rate_bits_per_s = (rate_gbit * 1e9).round() as u64;
        let bytes_in = |micros: u64| rate_bits_per_s / 8 * micros / 1_000_000;
        let burst_bytes = bytes_in(BURST_US).max(BURST_BYTES_MIN);
        Some(Self {
            rate_bits_per_s: rate_bits_per_s.max(1),
            burst_bytes,
            limit_bytes: burst_bytes + bytes_in(QUEUE_US).max(QUEUE_BYTES_MIN),
        })
    }
}

/// The burst after a pause: as long as a virtual machine's timer may be late. With less, the link would be slower
/// than its rate.
const BURST_US: u64 = 1_000;

/// Two segments of 64 KiB as segmentation offload makes them: a smaller bucket would make tbf cut them up itself.
const BURST_BYTES_MIN: u64 = 128 * 1024;

/// How long a queue may wait before packets are dropped: 1000 packets of 1514 bytes at 1 Gbit/s take 12 ms, and 1000 is what
/// Ethernet interfaces have (net/ethernet/eth.c, DEFAULT_TX_QUEUE_LEN).
const QUEUE_US: u64 = 12_000;

/// A slow link has room for the same 1000 packets.
const QUEUE_BYTES_MIN: u64 = 1_514_000;

fn failed(error: std::io::Error) -> TopologyError {
    if error.kind() == std::io::ErrorKind::NotFound && error.to_string().starts_with("needs ") {
        return TopologyError::Absent(format!("not on this machine: {error}"));
    }
    TopologyError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_have_addresses_of_their_own() {
        for (number, expected) in [
            (0, "10.213.0.1"),
            (1, "10.213.0.2"),
            (253, "10.213.0.254"),
            (254, "10.213.1.1"),
            (CLIENTS_MAX, "10.213.16.31"),
        ] {
            assert_eq!(address(number), expected);
        }
    }

    #[test]
    fn a_bucket_fits_its_rate() {
        for (rate, expected) in [
            (0.1, Some((100_000_000, 131_072, 1_645_072))),
            (1.0, Some((1_000_000_000, 131_072, 1_645_072))),
            (10.0, Some((10_000_000_000, 1_250_000, 16_250_000))),
            (25.0, Some((25_000_000_000, 3_125_000, 40_625_000))),
            (0.0, None),
            (-1.0, None),
            (f64::NAN, None),
        ] {
            let bucket = Bucket::of(rate).map(|bucket| {
                (
                    bucket.rate_bits_per_s,
                    bucket.burst_bytes,
                    bucket.limit_bytes,
                )
            });
            assert_eq!(bucket, expected, "{rate}");
        }
    }
}
