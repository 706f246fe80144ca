//! Where connections come from: addresses, and the choice of ports.

use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;

/// The source addresses and ports of a plan. Connection n comes from address n modulo their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Empty: the kernel chooses.
    pub addresses: Vec<IpAddr>,
    /// Early choice: the port is chosen before connecting. `None`: the kernel chooses late, by the whole 4-tuple.
    pub ports: Option<RangeInclusive<u16>>,
}

/// One thread's choice of source addresses and ports.
///
/// Early choice walks through the thread's own ports in turn, so that a port is unused for as long as possible before
/// it is used again; another thread's ports are never touched.
#[derive(Debug)]
pub(crate) struct SourceChoice {
    sources: Sources,
    thread: u32,
    threads: u32,
    /// Per address: how many of the thread's ports were taken.
    cursors: Vec<u32>,
}

impl SourceChoice {
    pub(crate) fn new(sources: Sources, thread: u32, threads: u32) -> Self {
        let cursors = vec![0; sources.addresses.len().max(1)];
        Self {
            sources,
            thread,
            threads: threads.max(1),
            cursors,
        }
    }

    /// The source of the next attempt of connection `number` to reach `target`; `None` leaves it to the kernel.
    pub(crate) fn next(&mut self, number: u32, target: SocketAddr) -> Option<SocketAddr> {
        let count = self.sources.addresses.len();
        let index = (number as usize).checked_rem(count).unwrap_or(0);
        let unspecified = match target {
            SocketAddr::V4(_) => IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(core::net::Ipv6Addr::UNSPECIFIED),
        };
        let given = self.sources.addresses.get(index).copied();
        let port = self.next_port(index);
        match (given, port) {
            (None, None) => None,
            (address, port) => Some(SocketAddr::new(
                address.unwrap_or(unspecified),
                port.unwrap_or(0),
            )),
        }
    }

    /// Whether ports were given, and fewer than threads: then some have none.
    pub(crate) fn lacks_ports(&self) -> bool {
        self.sources.ports.is_some() && self.ports_per_address() == 0
    }

    /// How many ports one address has in this thread: further attempts would only repeat.
    pub(crate) fn ports_per_address(&self) -> u32 {
        let Some(ports) = &self.sources.ports else {
            return 1;
        };
        let count = (u32::from(*ports.end()) + 1).saturating_sub(u32::from(*ports.start()));
        (count.saturating_sub(self.thread)).div_ceil(self.threads)
    }

    fn next_port(&mut self, index: usize) -> Option<u16> {
        let own = self.ports_per_address();
        let ports = self.sources.ports.as_ref()?;
        let cursor = self.cursors.get_mut(index)?;
        let nth = cursor.checked_rem(own)?;
        *cursor = cursor.wrapping_add(1);
        u16::try_from(u32::from(*ports.start()) + self.thread + nth * self.threads).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> SocketAddr {
        "10.0.0.9:80".parse().unwrap()
    }

    fn check(addresses: &[&str], ports: Option<RangeInclusive<u16>>, expected: &[Option<&str>]) {
        let sources = Sources {
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
            ports,
        };
        let mut choice = SourceChoice::new(sources, 1, 2);
        let chosen: Vec<Option<SocketAddr>> = (0..expected.len())
            .map(|number| choice.next(u32::try_from(number).unwrap(), target()))
            .collect();
        let expected: Vec<Option<SocketAddr>> = expected
            .iter()
            .map(|text| text.map(|text| text.parse().unwrap()))
            .collect();
        assert_eq!(chosen, expected);
    }

    #[test]
    fn addresses_are_taken_in_turn_and_ports_are_the_threads_own() {
        check(&[], None, &[None, None]);
        check(
            &["10.0.0.1", "10.0.0.2"],
            None,
            &[Some("10.0.0.1:0"), Some("10.0.0.2:0"), Some("10.0.0.1:0")],
        );
        check(
            &["10.0.0.1"],
            Some(5000..=5004),
            &[
                Some("10.0.0.1:5001"),
                Some("10.0.0.1:5003"),
                Some("10.0.0.1:5001"),
            ],
        );
        check(&[], Some(7000..=7001), &[Some("0.0.0.0:7001")]);
    }
}
