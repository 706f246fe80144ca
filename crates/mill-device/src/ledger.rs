//! The connections of a process on the stack, in memory that outlives it: when it is killed, their peers are told by the keeper
//! of `millstream run`, or by the worker process that replaces it (mill-stack `host/farewell.rs`).
//!
//! Each place is one connection. The process writes it now and then, so that it costs nothing at a connection's beginning or end;
//! what has happened since shows in what the peers answer.

use mill_stack::flow::Flow;
use mill_stack::host::migration::format;
use mill_stack::host::tables::NextNumbers;
use mill_sys::memory::words;
use mill_wire::seq::SeqNumber;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a reset of a connection needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// IPv6 addresses without scope.
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// The next numbers (RFC 9293 3.3.1): `SND.NXT`, which the peer expects, and `RCV.NXT`.
    pub snd_nxt: u32,
    pub rcv_nxt: u32,
}

/// The places, as the process that writes them has them. A process that is forked has the same memory.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// How many places have been written, from the first on; so many are read.
    end: &'static AtomicU64,
    places: &'static [AtomicU64],
}

/// Connections beyond are not in it; pages of places that are never written take no memory.
pub const PLACES: u32 = 262_144;

/// Words of a place: family and ports, two addresses, two numbers.
const WORDS: usize = 6;

/// Words of all.
const COUNT: usize = 1 + PLACES as usize * WORDS;

impl Ledger {
    /// Makes one; the file is for the keeper.
    pub fn new() -> io::Result<(Self, File)> {
        let file = words::create("millstream-ledger", COUNT)?;
        let (end, places) = words::map(&file, COUNT)?
            .split_first()
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok((Self { end, places }, file))
    }

    /// What is at a place now. A place beyond the last is ignored.
    pub fn note(&mut self, place: u32, entry: Option<Entry>) {
        if place >= PLACES || (entry.is_none() && place >= self.end()) {
            return;
        }
        let start = place as usize * WORDS;
        let Some([kind, rest @ ..]) = self.places.get(start..start + WORDS) else {
            return;
        };
        // Last, so that an entry that is half written is none.
        kind.store(0, Ordering::Release);
        let Some(entry) = entry else {
            return;
        };
        let end = self.end().max(place + 1);
        self.end.store(end.into(), Ordering::Relaxed);
        let [first, numbers @ ..] = emit(&entry);
        for (word, number) in rest.iter().zip(numbers) {
            word.store(number, Ordering::Release);
        }
        kind.store(first, Ordering::Release);
    }

    /// No connection is left.
    pub fn clear(&mut self) {
        for place in 0..self.end() {
            self.note(place, None);
        }
        self.end.store(0, Ordering::Relaxed);
    }

    /// What the process has left that had this memory before, which is empty then.
    pub fn take(&mut self) -> Vec<Entry> {
        let words = self.places.get(..self.end() as usize * WORDS);
        let words = words.unwrap_or_default().iter();
        let words: Vec<u64> = words.map(|word| word.load(Ordering::Acquire)).collect();
        self.clear();
        entries(&words)
    }

    /// It is no more than there are places, whatever is written there.
    fn end(&self) -> u32 {
        let end = self.end.load(Ordering::Relaxed);
        u32::try_from(end).unwrap_or(PLACES).min(PLACES)
    }
}

/// Reads what a process has left.
pub fn read(file: &File) -> io::Result<Vec<Entry>> {
    // Of places that were never written not even a copy is made: a process that ends has some hundred of them as a rule.
    let end = words::copy(file, 1)?.first().copied();
    let places = usize::try_from(end.unwrap_or(0)).unwrap_or(usize::MAX);
    let words = words::copy(file, 1 + places.min(PLACES as usize) * WORDS)?;
    Ok(entries(words.get(1..).unwrap_or_default()))
}

fn entries(places: &[u64]) -> Vec<Entry> {
    let (places, _) = places.as_chunks::<WORDS>();
    places.iter().filter_map(parse).collect()
}

impl From<NextNumbers> for Entry {
    fn from(numbers: NextNumbers) -> Self {
        Self {
            local: numbers.flow.local(),
            remote: numbers.flow.remote(),
            snd_nxt: numbers.snd_nxt.0,
            rcv_nxt: numbers.rcv_nxt.0,
        }
    }
}

/// What resets of open connections need that were on their way from one process to another: `connections` are the bytes of mill-stack's
/// `host/migration/format.rs`. A peer whose handshake has not ended sends its SYN again.
pub fn waiting(connections: &[u8]) -> Vec<Entry> {
    let mut rest = connections;
    let each = core::iter::from_fn(|| format::read(&mut rest));
    let numbers = each.filter_map(|waiting| waiting.next_numbers());
    numbers.map(Entry::from).collect()
}

impl From<Entry> for NextNumbers {
    fn from(entry: Entry) -> Self {
        Self {
            flow: Flow::new(entry.local, entry.remote),
            snd_nxt: SeqNumber(entry.snd_nxt),
            rcv_nxt: SeqNumber(entry.rcv_nxt),
        }
    }
}

fn emit(entry: &Entry) -> [u64; WORDS] {
    let kind = match entry.local {
        SocketAddr::V4(_) => V4,
        SocketAddr::V6(_) => V6,
    };
    let ports = u64::from(entry.local.port()) << 16 | u64::from(entry.remote.port());
    let [local, remote] = [entry.local, entry.remote].map(|end| halves(end.ip()));
    let numbers = u64::from(entry.snd_nxt) << 32 | u64::from(entry.rcv_nxt);
    [
        kind << 32 | ports,
        local[0],
        local[1],
        remote[0],
        remote[1],
        numbers,
    ]
}

/// An address as two words; IPv4 mapped into IPv6.
fn halves(address: IpAddr) -> [u64; 2] {
    let address = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let octets = address.octets();
    let (words, _) = octets.as_chunks::<8>();
    let word = |place: usize| words.get(place).map_or(0, |word| u64::from_be_bytes(*word));
    [word(0), word(1)]
}

fn parse(words: &[u64; WORDS]) -> Option<Entry> {
    let [
        kind,
        local_high,
        local_low,
        remote_high,
        remote_low,
        numbers,
    ] = *words;
    let is_v4 = match kind >> 32 {
        V4 => true,
        V6 => false,
        _ => return None,
    };
    let address = |high: u64, low: u64| {
        let address = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
        match is_v4 {
            true => address.to_ipv4_mapped().map(IpAddr::V4),
            false => Some(IpAddr::V6(address)),
        }
    };
    let [
        _,
        _,
        _,
        _,
        local_first,
        local_second,
        remote_first,
        remote_second,
    ] = kind.to_be_bytes();
    let local_port = u16::from_be_bytes([local_first, local_second]);
    let remote_port = u16::from_be_bytes([remote_first, remote_second]);
    let [a, b, c, d, e, f, g, h] = numbers.to_be_bytes();
    Some(Entry {
        local: SocketAddr::new(address(local_high, local_low)?, local_port),
        remote: SocketAddr::new(address(remote_high, remote_low)?, remote_port),
        snd_nxt: u32::from_be_bytes([a, b, c, d]),
        rcv_nxt: u32::from_be_bytes([e, f, g, h]),
    })
}

/// Families; 0 is no entry.
const V4: u64 = 4;
const V6: u64 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(local: &str, remote: &str) -> Entry {
        Entry {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            snd_nxt: u32::MAX,
            rcv_nxt: 7,
        }
    }

    #[test]
    fn what_was_noted_last_is_read_in_the_order_of_places() {
        let (mut ledger, file) = Ledger::new().unwrap();
        assert_eq!(read(&file).unwrap(), []);
        let first = entry("10.0.0.1:80", "10.0.0.2:65535");
        let second = entry("[fd00::1]:443", "[2001:db8::2]:1");
        ledger.note(5, Some(second));
        ledger.note(2, Some(first));
        ledger.note(PLACES, Some(first));
        ledger.note(u32::MAX, None);
        assert_eq!(read(&file).unwrap(), [first, second]);
        ledger.note(PLACES - 1, Some(first));
        ledger.note(2, None);
        ledger.note(9, None);
        assert_eq!(read(&file).unwrap(), [second, first]);
        ledger.clear();
        assert_eq!(read(&file).unwrap(), []);
        ledger.note(0, Some(second));
        assert_eq!(read(&file).unwrap(), [second]);
        // As a process does that is forked.
        let mut heir = ledger.clone();
        assert_eq!(heir.take(), [second]);
        assert_eq!(heir.take(), []);
        assert_eq!(read(&file).unwrap(), []);
    }

    #[test]
    fn an_entry_has_all_of_a_connection_s_numbers() {
        let first = entry("[fd00::1]:443", "[2001:db8::2]:1");
        assert_eq!(Entry::from(NextNumbers::from(first)), first);
    }

    #[test]
    fn what_is_no_entry_is_left_out() {
        for words in [
            [0; WORDS],
            [1 << 32; WORDS],
            [V4 << 32; WORDS],
            [u64::MAX; WORDS],
        ] {
            assert_eq!(parse(&words), None, "{words:?}");
        }
    }
}
