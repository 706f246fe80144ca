//! /proc/net/dev: traffic of an interface.

/// Counters of one interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub rx_bytes: u64,
    pub rx_packets: u64,
    pub rx_errors: u64,
    pub rx_dropped: u64,
    pub tx_bytes: u64,
    pub tx_packets: u64,
    pub tx_errors: u64,
    pub tx_dropped: u64,
}

/// The line of an interface; none if it does not exist.
pub(crate) fn parse(text: &str, interface: &str) -> Option<Traffic> {
    text.lines().find_map(|line| {
        // Names may hold colons (aliases), counters never do.
        let (name, counters) = line.rsplit_once(':')?;
        if name.trim() != interface {
            return None;
        }
        let counters: Vec<u64> = counters
            .split_ascii_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        let counter = |index: usize| counters.get(index).copied();
        Some(Traffic {
            rx_bytes: counter(0)?,
            rx_packets: counter(1)?,
            rx_errors: counter(2)?,
            rx_dropped: counter(3)?,
            tx_bytes: counter(8)?,
            tx_packets: counter(9)?,
            tx_errors: counter(10)?,
            tx_dropped: counter(11)?,
        })
    })
}

impl Traffic {
    /// The difference since `earlier`. An interface that was made anew begins at zero.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, u64::saturating_sub)
    }

    /// The sum of both interfaces.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn with(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            rx_bytes: of(self.rx_bytes, other.rx_bytes),
            rx_packets: of(self.rx_packets, other.rx_packets),
            rx_errors: of(self.rx_errors, other.rx_errors),
            rx_dropped: of(self.rx_dropped, other.rx_dropped),
            tx_bytes: of(self.tx_bytes, other.tx_bytes),
            tx_packets: of(self.tx_packets, other.tx_packets),
            tx_errors: of(self.tx_errors, other.tx_errors),
            tx_dropped: of(self.tx_dropped, other.tx_dropped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 1239106757151 463083710    0 26148    0     0          0         0 1239106757151 463083710    0    0    0     0       0          0
  eth0:638642959   22112    1    2    0     0          0         0  1302676   14730    3    4    0     0       0          0
eth0:1:       5       6    0    0    0     0          0         0        7       8    0    0    0     0       0          0
";

    #[test]
    fn the_line_of_an_interface_is_found_by_its_name() {
        let eth0 = Traffic {
            rx_bytes: 638_642_959,
            rx_packets: 22112,
            rx_errors: 1,
            rx_dropped: 2,
            tx_bytes: 1_302_676,
            tx_packets: 14730,
            tx_errors: 3,
            tx_dropped: 4,
        };
        assert_eq!(parse(DEV, "eth0"), Some(eth0));
        assert_eq!(eth0.plus(&eth0).since(&eth0), eth0);
        assert_eq!(parse(DEV, "lo").map(|lo| lo.rx_dropped), Some(26148));
        assert_eq!(parse(DEV, "eth0:1").map(|alias| alias.rx_bytes), Some(5));
    }

    #[test]
    fn what_is_missing_or_mangled_is_none() {
        assert_eq!(parse(DEV, "eth"), None);
        assert_eq!(parse("eth0: 1 2 3", "eth0"), None);
        assert_eq!(parse("eth0: 1 2 3 x 5 6 7 8 9 10 11 12", "eth0"), None);
        assert_eq!(parse("", "lo"), None);
    }

    #[test]
    fn a_new_interface_of_the_same_name_is_no_negative_traffic() {
        let before = parse(DEV, "eth0").unwrap();
        assert_eq!(Traffic::default().since(&before), Traffic::default());
    }
}
