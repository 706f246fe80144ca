//! `geo`: values of networks.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use super::MapValue;

/// The networks of one `geo`, or its ranges.
#[derive(Debug, Default)]
pub struct GeoTable {
    /// By the length of their prefix, the longest first. IPv4 addresses are mapped ones.
    networks: Vec<(u8, BTreeMap<u128, MapValue>)>,
    /// `ranges`, sorted and apart from each other.
    ranges: Vec<(u128, u128, MapValue)>,
}

impl GeoTable {
    /// The value of an address.
    pub fn find(&self, address: IpAddr) -> Option<&MapValue> {
        let bits = bits_of(address);
        let after = self.ranges.partition_point(|(start, _, _)| *start <= bits);
        let range = after.checked_sub(1).and_then(|at| self.ranges.get(at));
        if let Some((_, end, value)) = range
            && bits <= *end
        {
            return Some(value);
        }
        let mut lengths = self.networks.iter();
        lengths.find_map(|(length, networks)| networks.get(&(bits & mask(*length))))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.networks.is_empty() && self.ranges.is_empty()
    }

    /// Adds a network; returns the value that it had.
    pub(crate) fn insert(
        &mut self,
        network: IpAddr,
        bits: u8,
        value: MapValue,
    ) -> Option<MapValue> {
        let length = length_of(network, bits);
        let at = self.networks.partition_point(|(known, _)| *known > length);
        if self
            .networks
            .get(at)
            .is_none_or(|(known, _)| *known != length)
        {
            self.networks.insert(at, (length, BTreeMap::new()));
        }
        let (_, networks) = self.networks.get_mut(at)?;
        networks.insert(bits_of(network), value)
    }

    /// Removes a network; false if it is not there.
    pub(crate) fn remove(&mut self, network: IpAddr, bits: u8) -> bool {
        let (length, key) = (length_of(network, bits), bits_of(network));
        let mut lengths = self.networks.iter_mut();
        let Some((_, networks)) = lengths.find(|(known, _)| *known == length) else {
            return false;
        };
        networks.remove(&key).is_some()
    }

    /// Adds a range: apart from all others, or inside of one, which it divides; as that one itself it replaces its value,
    /// which is returned. The error is a range that it meets otherwise.
    pub(crate) fn insert_range(
        &mut self,
        (start, end): (Ipv4Addr, Ipv4Addr),
        value: MapValue,
    ) -> Result<Option<MapValue>, (Ipv4Addr, Ipv4Addr)> {
        let (first, last) = (bits_of(start.into()), bits_of(end.into()));
        let at = self.ranges.partition_point(|(_, end, _)| *end < first);
        let behind = self.ranges.partition_point(|(start, _, _)| *start <= last);
        let Some((known_first, known_last, _)) = self.ranges.get(at).filter(|_| at < behind) else {
            self.ranges.insert(at, (first, last, value));
            return Ok(None);
        };
        if behind - at > 1 || first < *known_first || last > *known_last {
            let met = behind.checked_sub(1).and_then(|at| self.ranges.get(at));
            let (start, end) = met.map_or((first, last), |(start, end, _)| (*start, *end));
            return Err((ipv4(start), ipv4(end)));
        }
        let (known_first, known_last, known) = self.ranges.remove(at);
        let mut pieces = Vec::new();
        if known_first < first {
            pieces.push((known_first, first - 1, known.clone()));
        }
        pieces.push((first, last, value));
        if last < known_last {
            pieces.push((last + 1, known_last, known.clone()));
        }
        let is_same = pieces.len() == 1;
        self.ranges.splice(at..at, pieces);
        Ok(is_same.then_some(known))
    }

    /// Removes a range; false if there is none with these ends.
    pub(crate) fn remove_range(&mut self, (start, end): (Ipv4Addr, Ipv4Addr)) -> bool {
        let ends = (bits_of(start.into()), bits_of(end.into()));
        let before = self.ranges.len();
        self.ranges.retain(|(start, end, _)| (*start, *end) != ends);
        self.ranges.len() < before
    }
}

/// An address of IPv4 as [`bits_of`] has it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a mapped address ends in the address"
)]
const fn ipv4(bits: u128) -> Ipv4Addr {
    Ipv4Addr::from_bits(bits as u32)
}

/// An address as a number; IPv4 as mapped to IPv6 (RFC 4291 2.5.5.2).
fn bits_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

const fn length_of(network: IpAddr, bits: u8) -> u8 {
    match network {
        IpAddr::V4(_) => bits + 96,
        IpAddr::V6(_) => bits,
    }
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Template;

    fn value(text: &str) -> MapValue {
        MapValue(Template::literal(text))
    }

    fn found(table: &GeoTable, address: &str) -> String {
        let found = table.find(address.parse().unwrap());
        let text = found.and_then(|value| value.0.as_literal());
        String::from_utf8_lossy(text.unwrap_or(b"-")).into_owned()
    }

    #[test]
    fn the_longest_prefix_decides() {
        let mut table = GeoTable::default();
        let mut add = |network: &str, bits, text| {
            table
                .insert(network.parse().unwrap(), bits, value(text))
                .is_none()
        };
        assert!(add("10.0.0.0", 8, "ten"));
        assert!(add("10.1.0.0", 16, "ten one"));
        assert!(add("10.1.2.3", 32, "host"));
        assert!(add("2001:db8::", 32, "six"));
        assert!(!add("10.0.0.0", 8, "changed"));
        for (address, expected) in [
            ("10.9.9.9", "changed"),
            ("10.1.9.9", "ten one"),
            ("10.1.2.3", "host"),
            ("::ffff:10.1.2.3", "host"),
            ("11.0.0.0", "-"),
            ("2001:db8:1::", "six"),
            ("2001:db9::", "-"),
        ] {
            assert_eq!(found(&table, address), expected, "{address}");
        }
        assert!(table.remove("10.1.0.0".parse().unwrap(), 16));
        assert!(!table.remove("10.1.0.0".parse().unwrap(), 16));
        assert_eq!(found(&table, "10.1.9.9"), "changed");
    }

    #[test]
    fn a_range_may_lie_in_another_one_and_not_across_its_end() {
        let mut table = GeoTable::default();
        let ends = |start: &str, end: &str| (start.parse().unwrap(), end.parse().unwrap());
        let mut add = |start, end, text| table.insert_range(ends(start, end), value(text));
        assert!(add("10.0.0.0", "10.0.0.99", "wide").is_ok());
        assert!(add("10.0.0.10", "10.0.0.19", "inside").is_ok());
        assert!(add("10.0.1.0", "10.0.1.0", "one").is_ok());
        let replaced = add("10.0.1.0", "10.0.1.0", "other").unwrap();
        assert_eq!(replaced.unwrap().0.as_literal(), Some(&b"one"[..]));
        for (start, end, met) in [
            ("10.0.0.90", "10.0.0.120", ("10.0.0.20", "10.0.0.99")),
            ("9.0.0.0", "10.0.0.5", ("10.0.0.0", "10.0.0.9")),
            ("10.0.0.15", "10.0.0.25", ("10.0.0.20", "10.0.0.99")),
            ("9.0.0.0", "11.0.0.0", ("10.0.1.0", "10.0.1.0")),
        ] {
            assert_eq!(add(start, end, "x").unwrap_err(), ends(met.0, met.1));
        }
        for (address, expected) in [
            ("10.0.0.0", "wide"),
            ("10.0.0.9", "wide"),
            ("10.0.0.10", "inside"),
            ("10.0.0.19", "inside"),
            ("10.0.0.20", "wide"),
            ("10.0.0.99", "wide"),
            ("10.0.0.100", "-"),
            ("10.0.1.0", "other"),
            ("::1", "-"),
        ] {
            assert_eq!(found(&table, address), expected, "{address}");
        }
        assert!(!table.remove_range(ends("10.0.0.0", "10.0.0.99")));
        assert!(table.remove_range(ends("10.0.0.10", "10.0.0.19")));
        assert_eq!(found(&table, "10.0.0.10"), "-");
    }
}
