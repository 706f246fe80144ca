//! Lists of address ranges: `10.0.0.1-10.0.0.20,10.0.1.0/28,fd00::1`.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::RangeInclusive;

/// All addresses of a list, in its order, without repetition.
pub(super) fn parse(text: &str) -> Result<Vec<IpAddr>, String> {
    let mut all: Vec<IpAddr> = Vec::new();
    for part in text.split(',') {
        let range = range(part.trim())?;
        let many = range.len().saturating_add(all.len());
        if many > ADDRESSES_MAX {
            return Err(format!(
                "\"{part}\" makes more than {ADDRESSES_MAX} addresses"
            ));
        }
        all.extend(range.addresses());
    }
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = all.iter().find(|address| !seen.insert(**address)) {
        return Err(format!("{twice} is in the list twice"));
    }
    Ok(all)
}

/// A range of ports, `20000-60000`, or one port.
pub(super) fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let refuse = || format!("\"{text}\" is no range of ports, such as 20000-60000");
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.parse().ok().filter(|port: &u16| *port > 0);
    let (from, to) = (port(from).ok_or_else(refuse)?, port(to).ok_or_else(refuse)?);
    if from > to {
        return Err(format!("\"{text}\" ends before it begins"));
    }
    Ok(from..=to)
}

/// Consecutive addresses of one family, as numbers.
struct Range {
    first: u128,
    last: u128,
    is_v4: bool,
}

impl Range {
    fn len(&self) -> usize {
        usize::try_from(self.last - self.first).map_or(usize::MAX, |len| len.saturating_add(1))
    }

    fn addresses(self) -> impl Iterator<Item = IpAddr> {
        (self.first..=self.last).map(move |bits| match u32::try_from(bits) {
            Ok(bits) if self.is_v4 => IpAddr::V4(Ipv4Addr::from_bits(bits)),
            _ => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        })
    }
}

fn range(text: &str) -> Result<Range, String> {
    if let Some((address, length)) = text.split_once('/') {
        return network(text, address, length);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (address(first)?, address(last)?);
    if first.is_ipv4() != last.is_ipv4() {
        return Err(format!("\"{text}\" goes from one IP version to the other"));
    }
    let range = Range {
        first: bits(first),
        last: bits(last),
        is_v4: first.is_ipv4(),
    };
    if range.first > range.last {
        return Err(format!("\"{text}\" ends before it begins"));
    }
    Ok(range)
}

/// All addresses of a prefix; of an IPv4 network of four and more without its network and broadcast addresses.
fn network(text: &str, address_text: &str, length: &str) -> Result<Range, String> {
    let address = address(address_text)?;
    let width: u32 = if address.is_ipv4() { 32 } else { 128 };
    let length: u32 = length
        .parse()
        .ok()
        .filter(|length| *length <= width)
        .ok_or_else(|| format!("\"{text}\": a prefix has 0 to {width} bits"))?;
    let host_bits = width - length;
    let hosts = 1_u128
        .checked_shl(host_bits)
        .map_or(u128::MAX, |size| size - 1);
    let (first, last) = (bits(address) & !hosts, bits(address) | hosts);
    let has_ends = address.is_ipv4() && host_bits >= 2;
    Ok(Range {
        first: first + u128::from(has_ends),
        last: last - u128::from(has_ends),
        is_v4: address.is_ipv4(),
    })
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("\"{text}\" is no address; write 10.0.0.1-10.0.0.20 or 10.0.1.0/28"))
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// A longer list is a mistake (`/8`), and would take memory for each address.
const ADDRESSES_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let expected: Vec<IpAddr> = expected.iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(parse(text), Ok(expected), "{text}");
    }

    #[test]
    fn ranges_networks_and_single_addresses_make_one_list() {
        check("10.0.0.1", &["10.0.0.1"]);
        check(
            "10.0.0.254-10.0.1.1",
            &["10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.1"],
        );
        check("10.0.1.0/30", &["10.0.1.1", "10.0.1.2"]);
        check("10.0.1.6/31", &["10.0.1.6", "10.0.1.7"]);
        check("10.0.1.6/32,fd00::1", &["10.0.1.6", "fd00::1"]);
        check("fd00::2/127", &["fd00::2", "fd00::3"]);
        assert_eq!(parse("10.0.0.0/16").map(|all| all.len()), Ok(65_534));
    }

    #[test]
    fn malformed_lists_are_errors_with_their_reason() {
        for (text, why) in [
            ("", "is no address"),
            ("10.0.0.2-10.0.0.1", "ends before it begins"),
            ("10.0.0.1-fd00::1", "from one IP version"),
            ("10.0.0.0/33", "0 to 32 bits"),
            ("10.0.0.0/8", "more than 65536"),
            ("::/0", "more than 65536"),
            ("10.0.0.1,10.0.0.0/30", "10.0.0.1 is in the list twice"),
            ("localhost", "is no address"),
        ] {
            let refusal = parse(text).unwrap_err();
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
    }

    #[test]
    fn ports_are_a_range() {
        assert_eq!(ports("20000-60000"), Ok(20_000..=60_000));
        assert_eq!(ports("80"), Ok(80..=80));
        for bad in ["", "0-5", "5-1", "1-70000", "a-b", "1-2-3"] {
            assert!(ports(bad).is_err(), "{bad}");
        }
    }
}
