//! Tells the peers of a process that was killed that their connections have ended.
//!
//! On kernel sockets the kernel does that. Here the keeper sends two segments for each connection of the process's ledger:
//!
//! - RST with the number that the peer expects, as far as the ledger knows. A connection that was idle ends with it (RFC 5961 3.2).
//! - An acknowledgement of a number before the window, as a keep-alive probe has it (RFC 9293 3.8.4). A peer that has exchanged
//!   something since the ledger was written answers it, and that answer finds no connection any more: it is reset by whatever has
//!   the interface now, another process' stack or the kernel. It has timestamps: a peer that has agreed on them drops a segment
//!   without (RFC 7323 3.2). It has an octet of text, too: some peers (FreeBSD) drop one without whose timestamp is old.

use mill_device::ledger::Entry;
use mill_sys::raw_ip::RawIp;
use mill_wire::checksum::{self, Sum};
use mill_wire::ipv4::{self, Ecn, Ipv4Header};
use mill_wire::ipv4_option::Ipv4Options;
use mill_wire::ipv6::{self, Ipv6Header};
use mill_wire::protocol::Protocol;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::{self, FixedHeader, Flags};
use mill_wire::tcp_option::{TcpOptions, Timestamps};
use std::net::IpAddr;

/// The sockets to send by; a family that the machine lacks has none.
#[derive(Debug)]
pub(crate) struct Farewell {
    v4: Option<RawIp>,
    v6: Option<RawIp>,
}

/// What of it a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Reset,
    Probe,
}

impl Farewell {
    pub(crate) fn new() -> Self {
        Self {
            v4: RawIp::new(false).ok(),
            v6: RawIp::new(true).ok(),
        }
    }

    /// Sends one segment for each connection. What the kernel does not take is lost: peers find out by themselves.
    pub(crate) fn send(&self, entries: &[Entry], word: Word) {
        for entry in entries {
            let target = entry.remote.ip();
            let socket = match target {
                IpAddr::V4(_) => &self.v4,
                IpAddr::V6(_) => &self.v6,
            };
            if let (Some(socket), Some(packet)) = (socket, packet(entry, word)) {
                let _ = socket.send(&packet, target);
            }
        }
    }
}

/// A packet with a segment.
fn packet(entry: &Entry, word: Word) -> Option<Vec<u8>> {
    let (seq, flags) = match word {
        Word::Reset => (entry.snd_nxt, Flags::RST),
        Word::Probe => (entry.snd_nxt.wrapping_sub(PROBE_BEFORE), Flags::ACK),
    };
    let segment = FixedHeader {
        source: entry.local.port(),
        target: entry.remote.port(),
        seq: SeqNumber(seq),
        ack: SeqNumber(entry.rcv_nxt),
        flags,
        window: 0,
        urgent: 0,
    };
    let options = TcpOptions {
        timestamps: (word == Word::Probe).then(Timestamps::default),
        ..TcpOptions::default()
    };
    let (source, target) = (entry.local.ip(), entry.remote.ip());
    let text = usize::from(word == Word::Probe);
    let len = tcp::HEADER_BYTES + options.len() + text;
    let mut packet = vec![0; ip_header_len(source) + len];
    let ip_len = match (source, target) {
        (IpAddr::V4(source), IpAddr::V4(target)) => Ipv4Header {
            dscp: 0,
            ecn: Ecn::NotCapable,
            total_len: u16::try_from(packet.len()).ok()?,
            ident: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: TTL,
            protocol: Protocol::TCP,
            source,
            target,
            options: Ipv4Options::default(),
        }
        .emit(&mut packet),
        (IpAddr::V6(source), IpAddr::V6(target)) => Ipv6Header {
            dscp: 0,
            ecn: Ecn::NotCapable,
            flow_label: 0,
            payload_len: u16::try_from(len).ok()?,
            next_header: Protocol::TCP,
            hop_limit: TTL,
            source,
            target,
        }
        .emit(&mut packet),
        _ => return None,
    };
    let body = packet.get_mut(ip_len..)?;
    segment.emit(&options, body);
    let pseudo_header = Sum::of_pseudo_header(source, target, Protocol::TCP.0, len);
    checksum::fill(pseudo_header, body, tcp::CHECKSUM_OFFSET);
    Some(packet)
}

fn ip_header_len(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(_) => ipv4::HEADER_BYTES,
        IpAddr::V6(_) => ipv6::HEADER_BYTES,
    }
}

/// How far before what was sent last the number of a probe lies: outside of any window, however much was sent since the ledger was
/// written.
const PROBE_BEFORE: u32 = 1 << 30;

const TTL: u8 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use mill_wire::tcp::TcpHeader;

    #[test]
    fn segments_are_whole_and_have_the_numbers_of_the_ledger() {
        for (local, remote) in [
            ("10.0.0.1:80", "10.0.0.2:5000"),
            ("[fd00::1]:80", "[fd00::2]:5000"),
        ] {
            let entry = Entry {
                local: local.parse().unwrap(),
                remote: remote.parse().unwrap(),
                snd_nxt: 100,
                rcv_nxt: 200,
            };
            for (word, seq, flags) in [
                (Word::Reset, 100, Flags::RST),
                (Word::Probe, 100_u32.wrapping_sub(1 << 30), Flags::ACK),
            ] {
                let packet = packet(&entry, word).unwrap();
                let ip_len = match entry.local {
                    std::net::SocketAddr::V4(_) => Ipv4Header::parse(&packet).unwrap().1,
                    std::net::SocketAddr::V6(_) => Ipv6Header::parse(&packet).unwrap().1,
                };
                let segment = &packet[ip_len..];
                let (local, remote) = (entry.local.ip(), entry.remote.ip());
                let sum = Sum::of_pseudo_header(local, remote, 6, segment.len());
                assert!(checksum::verify(sum, segment), "{word:?}");
                let (header, len) = TcpHeader::parse(segment).unwrap();
                let text = usize::from(word == Word::Probe);
                assert_eq!(len + text, segment.len());
                assert_eq!((header.source, header.target), (80, 5000));
                assert_eq!((header.seq, header.ack), (SeqNumber(seq), SeqNumber(200)));
                assert_eq!(header.flags, flags);
                let has_timestamps = header.options.timestamps.is_some();
                assert_eq!(has_timestamps, word == Word::Probe);
            }
        }
    }

    #[test]
    fn a_connection_of_two_families_is_none() {
        let entry = Entry {
            local: "10.0.0.1:80".parse().unwrap(),
            remote: "[fd00::2]:5000".parse().unwrap(),
            snd_nxt: 0,
            rcv_nxt: 0,
        };
        assert_eq!(packet(&entry, Word::Reset), None);
    }
}
