//! Types of values: their syntax, parser and description.

use crate::specification::Specification;
use mill_stack::config::Prefix;
use mill_stack::polling::{DEFAULT_SPIN, Polling};
use mill_tcp::config::Keepalive;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// A type, and the field of the specification that a value is stored in.
#[derive(Clone, Debug)]
pub enum Value {
    Switch(fn(&mut Specification) -> &mut bool),
    Number(RangeInclusive<u32>, fn(&mut Specification) -> &mut u32),
    PowerOfTwo(RangeInclusive<u32>, fn(&mut Specification) -> &mut u32),
    Count(RangeInclusive<u8>, fn(&mut Specification) -> &mut u8),
    Seed(fn(&mut Specification) -> &mut u64),
    /// A range in milliseconds.
    Time(RangeInclusive<u64>, fn(&mut Specification) -> &mut Duration),
    /// The same, or `off`.
    Limit(
        RangeInclusive<u64>,
        fn(&mut Specification) -> &mut Option<Duration>,
    ),
    Bytes(RangeInclusive<u32>, fn(&mut Specification) -> &mut u32),
    Memory(RangeInclusive<u64>, fn(&mut Specification) -> &mut u64),
    /// Bytes of a segment, or `off` for the path's limit.
    Segment(
        RangeInclusive<u16>,
        fn(&mut Specification) -> &mut Option<u16>,
    ),
    Keepalive(fn(&mut Specification) -> &mut Option<Keepalive>),
    /// In millionths.
    Share(fn(&mut Specification) -> &mut u32),
    Keyword(&'static [Keyword]),
    Prefix(fn(&mut Specification) -> &mut Vec<Prefix>),
    Address(fn(&mut Specification) -> &mut Vec<IpAddr>),
    Path(fn(&mut Specification) -> &mut Option<PathBuf>),
    Polling(fn(&mut Specification) -> &mut Polling),
    Ports(fn(&mut Specification) -> &mut RangeInclusive<u16>),
    /// A text of at most this many bytes.
    Secret(usize, fn(&mut Specification) -> &mut String),
    /// An argument of another program.
    Argument(fn(&mut Specification) -> &mut Vec<String>),
    EthernetAddress(fn(&mut Specification) -> &mut Option<[u8; 6]>),
    /// Numbers up to this one; the empty list stands for all.
    Queues(u32, fn(&mut Specification) -> &mut Vec<u32>),
}

/// A word and its effect.
pub type Keyword = (&'static str, fn(&mut Specification));

impl Value {
    /// Whether the option may occur several times, each time with one more value.
    pub(crate) fn repeats(&self) -> bool {
        matches!(
            self,
            Self::Prefix(_) | Self::Address(_) | Self::Argument(_) | Self::Queues(..)
        )
    }

    /// Parses and stores a value; `None` if it is invalid.
    pub(crate) fn set(&self, specification: &mut Specification, text: &str) -> Option<()> {
        match self {
            Self::Switch(place) => {
                *place(specification) = match text {
                    "on" => true,
                    "off" => false,
                    _ => return None,
                }
            }
            Self::Number(range, place) => {
                *place(specification) = within(text.parse().ok()?, range)?
            }
            Self::PowerOfTwo(range, place) => {
                let number: u32 = within(text.parse().ok()?, range)?;
                *place(specification) = number.is_power_of_two().then_some(number)?;
            }
            Self::Count(range, place) => {
                *place(specification) = within(text.parse().ok()?, range)?;
            }
            Self::Seed(place) => *place(specification) = text.parse().ok()?,
            Self::Time(range, place) => {
                let millis = within(parse_millis(text)?, range)?;
                *place(specification) = Duration::from_millis(millis);
            }
            Self::Limit(range, place) => {
                let millis = or_off(text, |text| within(parse_millis(text)?, range))?;
                *place(specification) = millis.map(Duration::from_millis);
            }
            Self::Bytes(range, place) => {
                let bytes = u32::try_from(parse_bytes(text)?).ok()?;
                *place(specification) = within(bytes, range)?;
            }
            Self::Memory(range, place) => {
                *place(specification) = within(parse_bytes(text)?, range)?;
            }
            Self::Segment(range, place) => {
                *place(specification) = or_off(text, |text| within(text.parse().ok()?, range))?;
            }
            Self::Keepalive(place) => *place(specification) = or_off(text, parse_keepalive)?,
            Self::Share(place) => *place(specification) = parse_share(text)?,
            Self::Keyword(words) => {
                let (_, choose) = words.iter().find(|(word, _)| *word == text)?;
                choose(specification);
            }
            Self::Prefix(place) => place(specification).push(parse_prefix(text)?),
            Self::Address(place) => place(specification).push(text.parse().ok()?),
            Self::Path(place) => {
                if text.is_empty() {
                    return None;
                }
                *place(specification) = Some(PathBuf::from(text));
            }
            Self::Polling(place) => *place(specification) = parse_polling(text)?,
            Self::Ports(place) => *place(specification) = parse_ports(text)?,
            Self::Secret(most, place) => {
                if !(1..=*most).contains(&text.len()) {
                    return None;
                }
                *place(specification) = text.to_owned();
            }
            Self::Argument(place) => {
                let is_one = text.starts_with('-') && !text.trim_matches('-').is_empty();
                place(specification).push(is_one.then(|| text.to_owned())?);
            }
            Self::EthernetAddress(place) => {
                *place(specification) = Some(parse_ethernet_address(text)?);
            }
            Self::Queues(last, place) => {
                let to = place(specification);
                match text {
                    "all" => to.clear(),
                    _ => to.extend(parse_queues(text, *last)?),
                }
                to.sort_unstable();
                to.dedup();
            }
        }
        Some(())
    }

    /// A description of valid values, as the middle of a sentence.
    pub(crate) fn wanted(&self) -> String {
        match self {
            Self::Switch(_) => String::from("\"on\" or \"off\""),
            Self::Number(range, _) => {
                format!("a number from {} to {}", range.start(), range.end())
            }
            Self::PowerOfTwo(range, _) => {
                format!("a power of two from {} to {}", range.start(), range.end())
            }
            Self::Count(range, _) => {
                format!("a number from {} to {}", range.start(), range.end())
            }
            Self::Seed(_) => String::from("a number"),
            Self::Time(range, _) => format!(
                "a time from {} to {}, as 200ms or 2s,",
                show_millis(*range.start()),
                show_millis(*range.end())
            ),
            Self::Limit(range, _) => format!(
                "\"off\" or a time from {} to {}, as 200ms or 2s,",
                show_millis(*range.start()),
                show_millis(*range.end())
            ),
            Self::Bytes(range, _) => wanted_bytes((*range.start()).into(), (*range.end()).into()),
            Self::Memory(range, _) => wanted_bytes(*range.start(), *range.end()),
            Self::Segment(range, _) => format!(
                "\"off\" or a number from {} to {}",
                range.start(),
                range.end()
            ),
            Self::Keepalive(_) => String::from(
                "\"off\", \"on\" or silence, interval and number of probes, as 30s:5s:3 (1s to 32767s, 1 to 127),",
            ),
            Self::Share(_) => String::from("a share from 0% to 100%, as 1% or 0.01%,"),
            Self::Keyword(words) => {
                let words: Vec<_> = words
                    .iter()
                    .map(|(word, _)| format!("\"{word}\""))
                    .collect();
                words.join(" or ")
            }
            Self::Prefix(_) => String::from(
                "an address with the length of its network's prefix, as 10.77.0.2/24 or fd00::2/64,",
            ),
            Self::Address(_) => String::from("an IP address"),
            Self::Path(_) => String::from("the name of a file"),
            Self::Polling(_) => String::from(
                "\"interrupt\", \"adaptive=50us\", \"sleep-spin=50us\" (1us to 100ms), \"spin\" or \"hz=1000\" (1 to 100000)",
            ),
            Self::Ports(_) => String::from("a range of ports, as 10240-32767,"),
            Self::Secret(most, _) => format!("1 to {most} bytes"),
            Self::Argument(_) => String::from("an argument that begins with \"-\""),
            Self::EthernetAddress(_) => {
                String::from("an Ethernet address of one station, as 02:00:00:00:00:01,")
            }
            Self::Queues(last, _) => {
                format!("\"all\", a number up to {last}, or a range of them, as 0-3,")
            }
        }
    }

    /// The syntax of a value, for tables.
    pub fn form(&self) -> String {
        match self {
            Self::Switch(_) => String::from("on | off"),
            Self::Number(range, _) => format!("{}–{}", range.start(), range.end()),
            Self::PowerOfTwo(range, _) => format!("{}–{}", range.start(), range.end()),
            Self::Count(range, _) => format!("{}–{}", range.start(), range.end()),
            Self::Seed(_) => String::from("number"),
            Self::Time(range, _) => {
                let (from, to) = (*range.start(), *range.end());
                format!("{}–{}", show_millis(from), show_millis(to))
            }
            Self::Limit(range, _) => {
                let (from, to) = (*range.start(), *range.end());
                format!("off | {}–{}", show_millis(from), show_millis(to))
            }
            Self::Bytes(range, _) => form_of_bytes((*range.start()).into(), (*range.end()).into()),
            Self::Memory(range, _) => form_of_bytes(*range.start(), *range.end()),
            Self::Segment(range, _) => format!("off | {}–{}", range.start(), range.end()),
            Self::Keepalive(_) => String::from("off | on | TIME:TIME:NUMBER"),
            Self::Share(_) => String::from("0%–100%"),
            Self::Keyword(words) => {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                words.join(" | ")
            }
            Self::Prefix(_) => String::from("address/length"),
            Self::Address(_) => String::from("address"),
            Self::Path(_) => String::from("file"),
            Self::Polling(_) => {
                String::from("interrupt | adaptive[=TIME] | sleep-spin[=TIME] | spin | hz=NUMBER")
            }
            Self::Ports(_) => String::from("first-last"),
            Self::Secret(..) => String::from("text"),
            Self::Argument(_) => String::from("argument"),
            Self::EthernetAddress(_) => String::from("Ethernet address"),
            Self::Queues(..) => String::from("all | number | first-last"),
        }
    }
}

fn within<T: PartialOrd>(value: T, range: &RangeInclusive<T>) -> Option<T> {
    range.contains(&value).then_some(value)
}

fn parse_millis(text: &str) -> Option<u64> {
    match text.strip_suffix("ms") {
        Some(millis) => millis.parse().ok(),
        None => text
            .strip_suffix('s')?
            .parse::<u64>()
            .ok()?
            .checked_mul(1000),
    }
}

fn show_millis(millis: u64) -> String {
    if millis.is_multiple_of(1000) {
        format!("{}s", millis / 1000)
    } else {
        format!("{millis}ms")
    }
}

/// `off`, or a value that `read` parses.
fn or_off<T>(text: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
    if text == "off" {
        return Some(None);
    }
    read(text).map(Some)
}

/// Suffixes of sizes, as in nginx.
const UNITS: [(char, u64); 3] = [('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30)];

fn parse_bytes(text: &str) -> Option<u64> {
    let unit = UNITS
        .iter()
        .find(|(letter, _)| text.ends_with([*letter, letter.to_ascii_uppercase()]));
    let (number, unit) = match unit {
        Some((_, unit)) => (text.get(..text.len() - 1)?, *unit),
        None => (text, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

fn show_bytes(bytes: u64) -> String {
    let unit = UNITS
        .iter()
        .rev()
        .find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    match unit {
        Some((letter, unit)) => format!("{}{letter}", bytes / unit),
        None => bytes.to_string(),
    }
}

fn wanted_bytes(from: u64, to: u64) -> String {
    format!("a size from {} to {}", show_bytes(from), show_bytes(to))
}

fn form_of_bytes(from: u64, to: u64) -> String {
    format!("{}–{}", show_bytes(from), show_bytes(to))
}

/// `on`, or three values within the limits of Linux's socket options (tcp(7)).
fn parse_keepalive(text: &str) -> Option<Keepalive> {
    if text == "on" {
        return Some(Keepalive::default());
    }
    let mut parts = text.split(':');
    let mut part = || parts.next();
    let time = |text| {
        let millis = within(parse_millis(text)?, &(1000..=32_767_000))?;
        Some(Duration::from_millis(millis))
    };
    let keepalive = Keepalive {
        idle: time(part()?)?,
        interval: time(part()?)?,
        count: within(part()?.parse().ok()?, &(1..=127))?,
    };
    part().is_none().then_some(keepalive)
}

/// `1%`, `0.05%` in millionths: up to four digits after the point.
fn parse_share(text: &str) -> Option<u32> {
    let text = text.strip_suffix('%')?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > 4 {
        return None;
    }
    let fraction: u32 = format!("{fraction:0<4}").parse().ok()?;
    let share = whole.parse::<u32>().ok()?.checked_mul(10_000)? + fraction;
    within(share, &(0..=1_000_000))
}

fn parse_prefix(text: &str) -> Option<Prefix> {
    let (address, len) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let len = within(len.parse().ok()?, &(1..=most))?;
    Some(Prefix { address, len })
}

/// A word, for some of them with an argument.
pub(super) fn parse_polling(text: &str) -> Option<Polling> {
    let (word, value) = match text.split_once('=') {
        Some((word, value)) => (word, Some(value)),
        None => (text, None),
    };
    let pause = || value.map_or(Some(DEFAULT_SPIN), parse_pause);
    match (word, value) {
        ("interrupt", None) => Some(Polling::Interrupt),
        ("spin", None) => Some(Polling::Spin),
        ("adaptive", _) => Some(Polling::Adaptive(pause()?)),
        ("sleep-spin", _) => Some(Polling::SleepSpin(pause()?)),
        ("hz", Some(hz)) => Some(Polling::Rate(within(hz.parse().ok()?, &(1..=100_000))?)),
        _ => None,
    }
}

fn parse_pause(text: &str) -> Option<Duration> {
    let micros = match text.strip_suffix("us") {
        Some(micros) => micros.parse().ok()?,
        None => parse_millis(text)?.checked_mul(1000)?,
    };
    Some(Duration::from_micros(within(micros, &(1..=100_000))?))
}

fn parse_queues(text: &str, last_of_all: u32) -> Option<RangeInclusive<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last <= last_of_all).then_some(first..=last)
}

/// Six pairs of hexadecimal digits; no group's address (IEEE 802 8.2.2), nor that of no station.
fn parse_ethernet_address(text: &str) -> Option<[u8; 6]> {
    let mut octets = [0; 6];
    let mut parts = text.split(':');
    for octet in &mut octets {
        let part = parts.next()?;
        let is_pair = part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
        *octet = u8::from_str_radix(is_pair.then_some(part)?, 16).ok()?;
    }
    let is_a_stations = octets[0] & 1 == 0 && octets != [0; 6];
    (parts.next().is_none() && is_a_stations).then_some(octets)
}

fn parse_ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (0 < first && first <= last).then_some(first..=last)
}
