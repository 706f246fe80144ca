//! Answers over a memif without a stack: what the load generator alone can ask for, as its server keeps no state and hardly
//! works.
//!
//! Each frame is answered from what it says itself: a SYN with a SYN-ACK, a request with one frame that holds the answer, a
//! FIN with its acknowledgement. What our sequence number is stands in the acknowledgement that came. Nothing is repeated, as
//! a memif loses nothing that it has taken.

use std::path::Path;
use std::process::ExitCode;

use mill_device::memif::{MemifLink, MemifOptions};
use mill_stack::link::{Burst, FrameId, Link, Offload, PartialChecksum};
use mill_wire::arp::{self, ArpOperation, ArpPacket};
use mill_wire::checksum::{Sum, fill_partial};
use mill_wire::ethernet::{self, EtherType, EthernetHeader, MacAddress};
use mill_wire::ipv4::{self, Ipv4Header};
use mill_wire::protocol::Protocol;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::{CHECKSUM_OFFSET, Flags, HEADER_BYTES_MAX, TcpHeader};
use mill_wire::tcp_option::{TcpOptions, Timestamps};
use std::net::{IpAddr, Ipv4Addr, TcpListener};

/// The argument after `bench` that starts it.
pub(in crate::bench) const ARGUMENT: &str = "memif-answers";

/// `SOCKET MTU BYTES keep|close PORT` until it is killed; it listens on the port once it answers.
pub(in crate::bench) fn run(arguments: &[&str]) -> ExitCode {
    let [socket, mtu, bytes, end, port] = arguments else {
        return wrong();
    };
    let numbers = (mtu.parse(), bytes.parse(), port.parse());
    let ((Ok(mtu), Ok(bytes), Ok(port)), "keep" | "close") = (numbers, *end) else {
        return wrong();
    };
    match Answers::new(Path::new(socket), mtu, bytes, *end == "close") {
        Ok(answers) => match TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)) {
            Ok(_listener) => answers.give(),
            Err(error) => failed(&error.to_string()),
        },
        Err(error) => failed(&error),
    }
}

fn wrong() -> ExitCode {
    eprintln!("xtask bench {ARGUMENT}: wants SOCKET MTU BYTES keep|close PORT");
    ExitCode::from(crate::EXIT_USAGE)
}

fn failed(why: &str) -> ExitCode {
    eprintln!("answers over a memif: {why}");
    ExitCode::FAILURE
}

/// The end of a memif that answers.
struct Answers {
    link: MemifLink,
    /// What follows the headers of a frame with an answer.
    answer: Vec<u8>,
    closes: bool,
    ids: Vec<FrameId>,
}

/// A frame's headers, as far as an answer needs them.
struct Asked {
    ethernet: EthernetHeader,
    ip: Ipv4Header,
    tcp: TcpHeader,
    payload_bytes: u32,
}

impl Answers {
    fn new(socket: &Path, mtu: u16, bytes: usize, closes: bool) -> Result<Self, String> {
        let answer = answer(bytes, closes);
        let frame = ethernet::HEADER_BYTES + ipv4::HEADER_BYTES + HEADER_BYTES_MAX + answer.len();
        if frame > ethernet::HEADER_BYTES + usize::from(mtu) {
            return Err("an answer has to fit into a frame".into());
        }
        let options = MemifOptions {
            mtu,
            polling: true,
            ..MemifOptions::default()
        };
        let link = MemifLink::listen(socket, &options);
        Ok(Self {
            link: link.map_err(|error| error.to_string())?,
            answer,
            closes,
            ids: Vec::new(),
        })
    }

    fn give(mut self) -> ! {
        let mut burst = Burst::new(BURST);
        loop {
            self.link.receive(&mut burst);
            let frames = burst.as_slice().iter();
            self.ids.extend(frames.map(|frame| frame.id));
            burst.clear();
            for place in 0..self.ids.len() {
                self.take(self.ids[place]);
            }
            self.ids.clear();
            self.link.flush();
        }
    }

    fn take(&mut self, id: FrameId) {
        let frame = self.link.frame(id);
        let is_arp = frame.get(12..14) == Some(&EtherType::ARP.0.to_be_bytes());
        let question = is_arp.then(|| parse_arp(frame)).flatten();
        let asked = if is_arp { None } else { parse(frame) };
        self.link.release(id);
        if let Some(question) = question {
            self.tell_address(&question);
        }
        if let Some(asked) = asked {
            self.reply(&asked);
        }
    }

    fn reply(&mut self, asked: &Asked) {
        let came = &asked.tcp;
        let mut options = TcpOptions {
            timestamps: came.options.timestamps.map(|theirs| Timestamps {
                value: theirs.value,
                echo: theirs.value,
            }),
            ..TcpOptions::default()
        };
        let (flags, takes) = if came.flags.has(Flags::RST) {
            return;
        } else if came.flags.has(Flags::SYN) {
            options.mss = came.options.mss;
            (Flags::SYN, 1)
        } else if asked.payload_bytes > 0 && self.closes {
            (Flags::PSH | Flags::FIN, asked.payload_bytes)
        } else if asked.payload_bytes > 0 {
            (Flags::PSH, asked.payload_bytes)
        } else if came.flags.has(Flags::FIN) && self.closes {
            (Flags::default(), 1)
        } else if came.flags.has(Flags::FIN) {
            (Flags::FIN, 1)
        } else {
            return;
        };
        let header = TcpHeader {
            source: came.target,
            target: came.source,
            seq: if flags.has(Flags::SYN) {
                SeqNumber(0)
            } else {
                came.ack
            },
            ack: came.seq + takes,
            flags: flags | Flags::ACK,
            window: u16::MAX,
            urgent: 0,
            options,
        };
        self.send(asked, &header);
    }

    fn send(&mut self, asked: &Asked, header: &TcpHeader) {
        let payload = match header.flags.has(Flags::PSH) {
            true => self.answer.as_slice(),
            false => &[],
        };
        let segment_bytes = header.len() + payload.len();
        let start = ethernet::HEADER_BYTES + ipv4::HEADER_BYTES;
        let Some(room) = room(&mut self.link, start + segment_bytes) else {
            return;
        };
        let (ethernet, packet) = room.split_at_mut(ethernet::HEADER_BYTES);
        EthernetHeader {
            target: asked.ethernet.source,
            source: asked.ethernet.target,
            ..asked.ethernet
        }
        .emit(ethernet);
        let (ip, segment) = packet.split_at_mut(ipv4::HEADER_BYTES);
        Ipv4Header {
            total_len: u16::try_from(ipv4::HEADER_BYTES + segment_bytes).unwrap_or(0),
            source: asked.ip.target,
            target: asked.ip.source,
            ..asked.ip
        }
        .emit(ip);
        let len = header.emit(segment);
        segment[len..segment_bytes].copy_from_slice(payload);
        let sum = Sum::of_pseudo_header(
            IpAddr::V4(asked.ip.target),
            IpAddr::V4(asked.ip.source),
            Protocol::TCP.0,
            segment_bytes,
        );
        fill_partial(sum, segment, CHECKSUM_OFFSET);
        let checksum = PartialChecksum {
            start: u16::try_from(start).unwrap_or(0),
            offset: u16::try_from(CHECKSUM_OFFSET).unwrap_or(0),
        };
        let offload = Offload {
            checksum: Some(checksum),
            segmentation: None,
        };
        self.link.transmit(start + segment_bytes, offload);
    }

    fn tell_address(&mut self, question: &ArpPacket) {
        let len = ethernet::HEADER_BYTES + arp::PACKET_BYTES;
        let is_for_others = question.operation != ArpOperation::Request
            || question.sender.is_unspecified()
            || question.sender == question.target;
        if is_for_others {
            return;
        }
        let Some(room) = room(&mut self.link, len) else {
            return;
        };
        let (ethernet, packet) = room.split_at_mut(ethernet::HEADER_BYTES);
        EthernetHeader {
            target: question.sender_mac,
            source: OWN,
            ether_type: EtherType::ARP,
        }
        .emit(ethernet);
        ArpPacket {
            operation: ArpOperation::Reply,
            sender_mac: OWN,
            sender: question.target,
            target_mac: question.sender_mac,
            target: question.sender,
        }
        .emit(packet);
        self.link.transmit(len, Offload::default());
    }
}

/// Room for a frame; waits for some in a full ring, which an empty one has at once.
fn room(link: &mut MemifLink, len: usize) -> Option<&mut [u8]> {
    while link.reserve(len).is_none() {
        link.flush();
        if !link.is_up() {
            return None;
        }
    }
    link.reserve(len)
}

fn parse_arp(frame: &[u8]) -> Option<ArpPacket> {
    let packet = frame.get(ethernet::HEADER_BYTES..)?;
    ArpPacket::parse(packet).ok().map(|(packet, _)| packet)
}

fn parse(frame: &[u8]) -> Option<Asked> {
    let (ethernet, len) = EthernetHeader::parse(frame).ok()?;
    let packet = frame.get(len..)?;
    let (ip, len) = Ipv4Header::parse(packet).ok()?;
    let segment = packet.get(len..ip.total_len.into())?;
    let (tcp, len) = TcpHeader::parse(segment).ok()?;
    Some(Asked {
        ethernet,
        ip,
        tcp,
        payload_bytes: u32::try_from(segment.len() - len).ok()?,
    })
}

/// An answer as our server gives it, with so many bytes of content.
fn answer(bytes: usize, closes: bool) -> Vec<u8> {
    let end = if closes { "close" } else { "keep-alive" };
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: answers\r\nDate: Sat, 28 Nov 2026 00:00:00 GMT\r\n\
         Content-Type: text/html\r\nContent-Length: {bytes}\r\n\
         Last-Modified: Sat, 28 Nov 2026 00:00:00 GMT\r\nConnection: {end}\r\n\
         ETag: \"000000000-000\"\r\nAccept-Ranges: bytes\r\n\r\n"
    );
    let mut answer = head.into_bytes();
    answer.resize(answer.len() + bytes, b'a');
    answer
}

/// This end's address.
const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

/// Frames taken at once, as the stack takes them.
const BURST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends of a memif, connected.
    fn ends(closes: bool) -> (Answers, MemifLink) {
        let socket = format!("@mill-answers-{}-{closes}", std::process::id());
        let socket = Path::new(&socket);
        let mut answers = Answers::new(socket, 1500, 100, closes).unwrap();
        let mut far = MemifLink::connect(socket, &MemifOptions::default()).unwrap();
        while !answers.link.is_up() || !far.is_up() {
            answers.link.receive(&mut Burst::new(0));
            far.receive(&mut Burst::new(0));
        }
        (answers, far)
    }

    /// Sends a segment with this payload, and gives the reply, if there is one, and how long its payload is.
    fn asked(
        (answers, far): &mut (Answers, MemifLink),
        tcp: TcpHeader,
        payload: &[u8],
    ) -> Option<(TcpHeader, u32)> {
        let (near, there) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let segment_bytes = tcp.len() + payload.len();
        let len = ethernet::HEADER_BYTES + ipv4::HEADER_BYTES + segment_bytes;
        let room = far.reserve(len).unwrap();
        let at = EthernetHeader {
            target: OWN,
            source: MacAddress([2, 0, 0, 0, 0, 2]),
            ether_type: EtherType::IPV4,
        }
        .emit(room);
        let at = at + plain(near, there, segment_bytes).emit(&mut room[at..]);
        let at = at + tcp.emit(&mut room[at..]);
        room[at..len].copy_from_slice(payload);
        far.transmit(len, Offload::default());
        far.flush();
        let mut burst = Burst::new(BURST);
        answers.link.receive(&mut burst);
        let ids: Vec<FrameId> = burst.as_slice().iter().map(|frame| frame.id).collect();
        assert_eq!(ids.len(), 1);
        answers.take(ids[0]);
        answers.link.flush();
        let mut burst = Burst::new(BURST);
        far.receive(&mut burst);
        let frame = burst.as_slice().first()?.id;
        let reply = parse(far.frame(frame)).unwrap();
        far.release(frame);
        assert_eq!((reply.ip.source, reply.ip.target), (there, near));
        Some((reply.tcp, reply.payload_bytes))
    }

    fn plain(source: Ipv4Addr, target: Ipv4Addr, bytes: usize) -> Ipv4Header {
        Ipv4Header {
            dscp: 0,
            ecn: ipv4::Ecn::NotCapable,
            total_len: u16::try_from(ipv4::HEADER_BYTES + bytes).unwrap(),
            ident: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol: Protocol::TCP,
            source,
            target,
            options: mill_wire::ipv4_option::Ipv4Options::default(),
        }
    }

    fn segment(seq: u32, ack: u32, flags: Flags) -> TcpHeader {
        TcpHeader {
            source: 5000,
            target: 80,
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            flags,
            ..TcpHeader::default()
        }
    }

    #[test]
    fn a_connection_is_answered_from_what_its_segments_say() {
        let mut ends = ends(false);
        let (reply, _) = asked(&mut ends, segment(7, 0, Flags::SYN), b"").unwrap();
        assert_eq!(reply.flags, Flags::SYN | Flags::ACK);
        assert_eq!((reply.seq, reply.ack), (SeqNumber(0), SeqNumber(8)));
        assert_eq!(asked(&mut ends, segment(8, 1, Flags::ACK), b""), None);
        let request = segment(8, 1, Flags::ACK | Flags::PSH);
        let (reply, bytes) = asked(&mut ends, request, b"GET /").unwrap();
        assert_eq!((reply.seq, reply.ack), (SeqNumber(1), SeqNumber(13)));
        assert_eq!(bytes as usize, answer(100, false).len());
        let end = segment(13, 400, Flags::ACK | Flags::FIN);
        let (reply, bytes) = asked(&mut ends, end, b"").unwrap();
        assert_eq!((reply.flags, bytes), (Flags::FIN | Flags::ACK, 0));
        assert_eq!((reply.seq, reply.ack), (SeqNumber(400), SeqNumber(14)));
    }

    #[test]
    fn an_answer_that_closes_has_the_end_with_it() {
        let mut ends = ends(true);
        let request = segment(8, 1, Flags::ACK | Flags::PSH);
        let (reply, _) = asked(&mut ends, request, b"GET /").unwrap();
        assert_eq!(reply.flags, Flags::FIN | Flags::PSH | Flags::ACK);
        let end = segment(13, 400, Flags::ACK | Flags::FIN);
        let (reply, _) = asked(&mut ends, end, b"").unwrap();
        assert_eq!((reply.flags, reply.ack), (Flags::ACK, SeqNumber(14)));
        assert_eq!(asked(&mut ends, segment(14, 0, Flags::RST), b""), None);
    }

    #[test]
    fn what_does_not_fit_into_a_frame_is_refused() {
        let refused = Answers::new(Path::new("@mill-answers-large"), 1500, 1400, false);
        assert!(refused.is_err());
    }
}
