//! /proc/net/dev: the traffic of interfaces.

/// Bytes since the interface exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}

/// The traffic of `interface`.
pub(crate) fn traffic(text: &str, interface: &str) -> Option<Traffic> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, figures) = lines.find(|(name, _)| name.trim() == interface)?;
    let mut figures = figures.split_ascii_whitespace();
    Some(Traffic {
        received_bytes: figures.next()?.parse().ok()?,
        sent_bytes: figures.nth(SENT_BYTES - 1)?.parse().ok()?,
    })
}

/// The reported speed of the interface, in bits per second; virtual ones often report nothing, or -1.
pub(crate) fn speed_bits(text: &str) -> Option<u64> {
    let megabits: u64 = text.trim().parse().ok()?;
    megabits.checked_mul(1_000_000).filter(|bits| *bits > 0)
}

/// The column of sent bytes; that of received ones is 0.
const SENT_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 1000      10    0    0    0     0          0         0     1001      10    0    0    0     0       0          0
  eth0:5000      50    0    0    0     0          0         0     7000      70    0    0    0     0       0          0
";

    #[test]
    fn an_interface_has_two_directions() {
        let traffic = |name| traffic(TEXT, name);
        let expected = |received_bytes, sent_bytes| {
            Some(Traffic {
                received_bytes,
                sent_bytes,
            })
        };
        assert_eq!(traffic("lo"), expected(1000, 1001));
        assert_eq!(traffic("eth0"), expected(5000, 7000));
        assert_eq!(traffic("eth1"), None);
    }

    #[test]
    fn a_speed_is_in_megabits() {
        assert_eq!(speed_bits("10000\n"), Some(10_000_000_000));
        assert_eq!(speed_bits("-1\n"), None);
        assert_eq!(speed_bits("0\n"), None);
        assert_eq!(speed_bits(""), None);
    }
}
