//! What must hold of a live stack whatever arrives: an input is a script of segments, acts of the application and
//! pauses, and none of it may lead to a panic, to a byte that was not sent, to a window that shrinks, or to memory
//! that is not given back.
//!
//! Every byte of a stream is a function of its sequence number, on both sides. So whatever the script sends, in
//! whatever order and however often, there is one right answer to what a reader may see.

use mill_stack::config::{HostConfig, Prefix};
use mill_stack::host::Host;
use mill_stack::link::{Burst, FrameId, Link, LinkProperties, Offload, Received, ReceivedChecksum};
use mill_stack::queue::ByteQueue;
use mill_stack::socket::{ListenOptions, ListenerId, SocketId};
use mill_stack::tcp::time::{Duration, Instant};
use mill_stack::wire::seq::SeqNumber;
use mill_stack::wire::tcp::{Flags, TcpHeader};
use mill_stack::wire::tcp_option::{SackBlocks, TcpOptions, Timestamps};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Acts of one input: enough for a handshake, trouble and an end, few enough for thousands of inputs a second.
const ACTS_MAX: usize = 400;

const PORTS: u16 = 3;
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const OUR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PEER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// What a script came to, so that tests can see that theirs were about something.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) connections: u32,
    /// Bytes that readers have seen.
    pub(crate) read_bytes: u64,
    /// Bytes that the stack has sent, sent again included.
    pub(crate) sent_bytes: u64,
}

/// Panics if the stack breaks a promise on `input`.
pub(crate) fn check(input: &[u8]) -> Outcome {
    let mut script = Script { bytes: input };
    let mut world = World::new(script.byte());
    for _ in 0..ACTS_MAX {
        if script.bytes.is_empty() {
            break;
        }
        world.act(&mut script);
        world.run();
    }
    world.end()
}

/// The input, read as numbers; zeros behind its end.
struct Script<'a> {
    bytes: &'a [u8],
}

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                *first
            }
            None => 0,
        }
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn long(&mut self) -> u32 {
        u32::from(self.word()) << 16 | u32::from(self.word())
    }
}

/// What the peer knows of one of its ports.
#[derive(Default)]
struct Port {
    /// Next of its own to send.
    snd_nxt: SeqNumber,
    /// What the stack acknowledged, and where its window ends.
    acked: SeqNumber,
    edge: Option<SeqNumber>,
    /// Known once the stack answers a SYN: whether it scales depends on the SYN that it has taken.
    shift: Option<u8>,
    /// The end of what the stack has sent.
    rcv_nxt: SeqNumber,
    /// The stack's and our first sequence numbers behind SYN, of the last connections of this port.
    their_starts: Vec<SeqNumber>,
    our_starts: Vec<SeqNumber>,
    timestamp: u32,
}

/// A socket of the application.
struct Reader {
    id: SocketId,
    port: usize,
    read: u32,
    written: u32,
    /// Where the peer's stream may have begun; known with the first bytes.
    starts: Option<Vec<SeqNumber>>,
    is_open: bool,
}

struct World {
    host: Host<ByteQueue>,
    link: Wire,
    listener: ListenerId,
    now: Instant,
    ports: [Port; PORTS as usize],
    readers: Vec<Reader>,
    has_cookies: bool,
    outcome: Outcome,
}

impl World {
    fn new(settings: u8) -> Self {
        let now = Instant::from_nanos(1 << 40);
        let prefix = Prefix {
            address: IpAddr::V4(OURS),
            len: 24,
        };
        let mut config = HostConfig::new(vec![prefix], [7; 16]);
        config.tcp.timestamps = settings & 1 == 0;
        config.tcp.sack = settings & 2 == 0;
        config.tcp.window_scaling = settings & 4 == 0;
        config.tcp.nodelay = settings & 8 == 0;
        config.tcp.receive_buffer_bytes = if settings & 16 == 0 { 131_072 } else { 3000 };
        config.limits.half_open_max = if settings & 32 == 0 { 16 } else { 0 };
        let link = Wire::new();
        let mut host = Host::new(config, link.properties(), now);
        let address = SocketAddr::new(IpAddr::V4(OURS), 80);
        let listener = host
            .listen(address, &ListenOptions::default())
            .expect("nobody else listens in a new host");
        Self {
            host,
            link,
            listener,
            now,
            ports: Default::default(),
            readers: Vec::new(),
            has_cookies: settings & 32 != 0,
            outcome: Outcome::default(),
        }
    }

    fn act(&mut self, script: &mut Script<'_>) {
        let which = script.byte();
        let port = usize::from(script.byte()) % usize::from(PORTS);
        match which % 16 {
            0 | 1 => self.send_syn(port, script),
            2..=5 => self.send_expected(port, script),
            6..=9 => self.send_anything(port, script),
            10 => self.pass_time(script),
            11 => self.accept(),
            12 => self.write(port, script),
            13 => self.leave(port, script),
            14 => self.connect(port),
            _ => self.send_frame(script),
        }
    }

    /// The peer opens a connection.
    fn send_syn(&mut self, port: usize, script: &mut Script<'_>) {
        let seq = SeqNumber(script.long());
        let bits = script.byte();
        self.ports[port].snd_nxt = seq + 1;
        let header = TcpHeader {
            seq,
            flags: Flags::SYN,
            window: script.word(),
            options: TcpOptions {
                mss: (bits & 1 == 0).then(|| script.word()),
                window_scale: (bits & 2 == 0).then_some(bits >> 4),
                sack_permitted: bits & 4 == 0,
                timestamps: (bits & 8 == 0).then_some(Timestamps { value: 1, echo: 0 }),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        self.send(port, header, 0);
    }

    /// What a well-behaved peer would send next: an acknowledgement of everything, maybe data, maybe FIN.
    fn send_expected(&mut self, port: usize, script: &mut Script<'_>) {
        let bits = script.byte();
        let len = if bits & 1 == 0 {
            0
        } else {
            script.word() % 1461
        };
        let known = &mut self.ports[port];
        known.timestamp += u32::from(bits >> 4);
        let mut flags = Flags::ACK;
        if bits & 2 != 0 {
            flags |= Flags::FIN;
        }
        let header = TcpHeader {
            seq: known.snd_nxt,
            ack: known.rcv_nxt,
            flags,
            window: if bits & 4 == 0 { 65535 } else { script.word() },
            options: TcpOptions {
                timestamps: (bits & 8 == 0).then_some(Timestamps {
                    value: known.timestamp,
                    echo: 0,
                }),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        known.snd_nxt += u32::from(len) + u32::from(bits >> 1 & 1);
        self.send(port, header, len);
    }

    /// A segment of any kind near what is expected, or far from it.
    fn send_anything(&mut self, port: usize, script: &mut Script<'_>) {
        let (flags, bits) = (script.byte(), script.byte());
        let (near, far) = (u32::from(script.word()), script.long());
        let known = &self.ports[port];
        let seq = match bits & 3 {
            0 => known.snd_nxt + near,
            1 => known.snd_nxt - near,
            2 => known.edge.unwrap_or_default() - near % 5,
            _ => SeqNumber(far),
        };
        let ack = match bits >> 2 & 3 {
            0 => known.rcv_nxt,
            1 => known.rcv_nxt - near,
            2 => known.rcv_nxt + near,
            _ => SeqNumber(far.rotate_left(7)),
        };
        let mut sack = SackBlocks::default();
        for _ in 0..(bits >> 4 & 3) {
            let start = ack + u32::from(script.word());
            sack.push(start, start + u32::from(script.word()));
        }
        let header = TcpHeader {
            seq,
            ack,
            flags: Flags(u16::from(flags)),
            window: script.word(),
            urgent: script.word(),
            options: TcpOptions {
                timestamps: (bits & 64 != 0).then_some(Timestamps {
                    value: known.timestamp.wrapping_add(far),
                    echo: near,
                }),
                sack,
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        let len = if bits & 128 == 0 {
            0
        } else {
            script.word() % 1400
        };
        self.send(port, header, len);
    }

    fn send(&mut self, port: usize, header: TcpHeader, len: u16) {
        let header = TcpHeader {
            source: 40_000 + u16::try_from(port).unwrap_or_default(),
            target: 80,
            ..header
        };
        if header.flags.has(Flags::SYN) {
            remember(&mut self.ports[port].our_starts, header.seq + 1);
        }
        let first = header.seq + u32::from(header.flags.has(Flags::SYN));
        let payload: Vec<u8> = (0..u32::from(len)).map(|n| their_byte(first + n)).collect();
        self.link.arrived.push_back(frame(&header, &payload));
    }

    /// Bytes that are no segment at all.
    fn send_frame(&mut self, script: &mut Script<'_>) {
        let mut bytes = [OUR_MAC, PEER_MAC].concat();
        for _ in 0..usize::from(script.byte() % 100) {
            bytes.push(script.byte());
        }
        self.link.arrived.push_back(bytes);
    }

    fn pass_time(&mut self, script: &mut Script<'_>) {
        let millis = u64::from(script.word()) << (script.byte() % 8);
        self.now = self.now + Duration::from_millis(millis);
    }

    fn accept(&mut self) {
        while let Some(id) = self.host.accept(self.listener, 0) {
            self.outcome.connections += 1;
            let peer = self.host.peer(id).map_or(0, |peer| peer.port());
            let port = usize::from(peer.wrapping_sub(40_000)) % usize::from(PORTS);
            self.readers.push(Reader {
                id,
                port,
                read: 0,
                written: 0,
                starts: None,
                is_open: true,
            });
        }
    }

    fn connect(&mut self, port: usize) {
        let target = 40_000 + u16::try_from(port).unwrap_or_default();
        let target = SocketAddr::new(IpAddr::V4(PEER), target);
        let source = SocketAddr::new(IpAddr::V4(OURS), 80);
        if let Ok(id) = self.host.connect(target, Some(source), true, 0) {
            self.readers.push(Reader {
                id,
                port,
                read: 0,
                written: 0,
                starts: None,
                is_open: true,
            });
        }
    }

    fn write(&mut self, port: usize, script: &mut Script<'_>) {
        let len = u32::from(script.word());
        for reader in &mut self.readers {
            if reader.port == port
                && reader.is_open
                && let Some(queue) = self.host.queue(reader.id)
            {
                let bytes: Vec<u8> = (reader.written..reader.written + len)
                    .map(our_byte)
                    .collect();
                queue.push(&bytes);
                reader.written += len;
                self.host.wrote(reader.id);
            }
        }
    }

    fn leave(&mut self, port: usize, script: &mut Script<'_>) {
        let how = script.byte();
        for reader in self.readers.iter_mut().filter(|reader| reader.port == port) {
            match how % 3 {
                0 => self.host.shutdown(reader.id),
                1 => self.host.close(reader.id),
                _ => self.host.abort(reader.id),
            }
            reader.is_open = reader.is_open && how % 3 == 0 && how > 128;
        }
        self.readers
            .retain(|reader| how % 3 == 0 || reader.port != port);
    }

    /// A turn of the stack, then of its readers.
    fn run(&mut self) {
        for _ in 0..8 {
            while self.host.receive(&mut self.link, self.now) > 0 {}
            self.host.expire(self.now);
            self.read();
            self.host.transmit(&mut self.link, self.now);
            self.host.settle(&mut self.link);
            assert_eq!(self.link.lying(), 0, "frames are held beyond the turn");
            let sent = core::mem::take(&mut self.link.sent);
            if sent.is_empty() {
                break;
            }
            for frame in sent {
                self.look_at(&frame);
            }
        }
    }

    fn read(&mut self) {
        for reader in &mut self.readers {
            let starts = &self.ports[reader.port].our_starts;
            let (id, from) = (reader.id, reader.read);
            let fits = |start: &SeqNumber, bytes: &[u8]| {
                let expected = (from..).map(|n| their_byte(*start + n));
                bytes.iter().copied().eq(expected.take(bytes.len()))
            };
            let unread = self.host.readable(id).unread;
            let count = self.host.read(id, &mut self.link, |bytes| {
                assert_eq!(bytes.len(), unread, "what is lent is what is unread");
                if !bytes.is_empty() {
                    let starts = reader.starts.get_or_insert_with(|| starts.clone());
                    starts.retain(|start| fits(start, bytes));
                    assert!(
                        !starts.is_empty(),
                        "{} bytes behind {from} are not the peer's",
                        bytes.len()
                    );
                }
                // Two of three bytes stay: readers are slow at times.
                let taken = if bytes.len() % 3 == 0 {
                    bytes.len()
                } else {
                    bytes.len() / 3
                };
                (taken, taken)
            });
            self.outcome.read_bytes += count as u64;
            reader.read += u32::try_from(count).expect("a window is shorter");
        }
    }

    /// What the stack has sent has to make sense to its peer.
    fn look_at(&mut self, frame: &[u8]) {
        self.answer_arp(frame);
        let Some((header, payload)) = parse(frame) else {
            return;
        };
        self.outcome.sent_bytes += payload.len() as u64;
        let index = usize::from(header.target.wrapping_sub(40_000));
        let Some(port) = self.ports.get_mut(index) else {
            return;
        };
        if header.flags.has(Flags::SYN) {
            port.edge = None;
            port.rcv_nxt = header.seq + 1;
            remember(&mut port.their_starts, header.seq + 1);
            // A cookie forgets the scale when the peer forgets its timestamps.
            let answers = header.flags.has(Flags::ACK) && !self.has_cookies;
            port.shift = answers.then(|| header.options.window_scale.unwrap_or(0));
            return;
        }
        if header.flags.has(Flags::RST) {
            return;
        }
        if !payload.is_empty() {
            let fits = |start: &SeqNumber| {
                let from = header.seq.0.wrapping_sub(start.0);
                let expected = (0..).map(|n: u32| our_byte(from.wrapping_add(n)));
                payload.iter().copied().eq(expected.take(payload.len()))
            };
            assert!(
                port.their_starts.iter().any(fits),
                "{} bytes at {:?} are not what was written",
                payload.len(),
                header.seq
            );
        }
        let end = header.seq
            + u32::try_from(payload.len()).expect("a frame is short")
            + u32::from(header.flags.has(Flags::FIN));
        port.rcv_nxt = port.rcv_nxt.max(end);
        port.acked = header.ack;
        let Some(shift) = port.shift else {
            return;
        };
        let edge = header.ack + (u32::from(header.window) << shift);
        if let Some(before) = port.edge {
            // Rounding to the scale's unit may take less than one (RFC 7323 2.4).
            assert!(
                (edge + ((1 << shift) - 1)).is_at_or_after(before),
                "the window's edge moved from {before:?} to {edge:?}"
            );
        }
        port.edge = Some(port.edge.map_or(edge, |before| before.max(edge)));
    }

    /// The application leaves and the peer is gone: a day later nothing is left.
    fn end(mut self) -> Outcome {
        self.accept();
        for reader in core::mem::take(&mut self.readers) {
            self.host.close(reader.id);
        }
        self.host.close_listener(self.listener);
        for _ in 0..2000 {
            self.run();
            let Some(next) = self.host.next_expiry() else {
                break;
            };
            self.now = self.now.max(next);
        }
        let usage = self.host.usage();
        assert!(usage.is_empty(), "left behind: {usage:?}");
        self.outcome
    }

    /// The peer has an address on the wire (RFC 826).
    fn answer_arp(&mut self, frame: &[u8]) {
        let asks = frame.len() >= 42 && frame[12..14] == [8, 6] && frame[21] == 1;
        if asks && frame[38..42] == PEER.octets() {
            let mut answer = [OUR_MAC, PEER_MAC].concat();
            answer.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
            answer.extend(PEER_MAC);
            answer.extend(PEER.octets());
            answer.extend(&frame[22..32]);
            self.link.arrived.push_back(answer);
        }
    }
}

fn remember(starts: &mut Vec<SeqNumber>, start: SeqNumber) {
    if !starts.contains(&start) {
        starts.push(start);
    }
}

/// The byte that the peer sends at this sequence number.
fn their_byte(seq: SeqNumber) -> u8 {
    let mixed = seq.0.wrapping_mul(0x9E37_79B1);
    (mixed >> 24) as u8 ^ (mixed >> 11) as u8
}

/// The byte that the application writes at this offset of its stream.
fn our_byte(offset: u32) -> u8 {
    let mixed = offset.wrapping_mul(0x85EB_CA77);
    (mixed >> 23) as u8
}

/// A frame with IPv4 and TCP, its checksums right.
fn frame(header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [OUR_MAC, PEER_MAC].concat();
    bytes.extend([8, 0]);
    let total = u16::try_from(20 + header.len() + payload.len()).expect("a frame is short");
    let mut ip = vec![0x45, 0];
    ip.extend(total.to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    ip.extend(PEER.octets());
    ip.extend(OURS.octets());
    let sum = !folded(&[&ip]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut tcp = vec![0; header.len()];
    header.emit(&mut tcp);
    tcp.extend_from_slice(payload);
    let len = u16::try_from(tcp.len()).expect("a frame is short");
    let pseudo = [
        &PEER.octets()[..],
        &OURS.octets(),
        &[0, 6],
        &len.to_be_bytes(),
    ]
    .concat();
    let sum = !folded(&[&pseudo, &tcp]);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    [bytes, ip, tcp].concat()
}

/// The header and payload of a frame that holds a TCP segment over IPv4, whose checksum has to be right.
fn parse(frame: &[u8]) -> Option<(TcpHeader, &[u8])> {
    let packet = frame.get(14..)?;
    if frame[12..14] != [8, 0] || packet[9] != 6 {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let segment = &packet[20..total];
    let len = u16::try_from(segment.len()).expect("a frame is short");
    let pseudo = [&packet[12..20], &[0, 6], &len.to_be_bytes()].concat();
    assert_eq!(
        folded(&[&pseudo, segment]),
        0xffff,
        "a checksum that is wrong"
    );
    let (header, begin) = TcpHeader::parse(segment).expect("the stack's headers are well-formed");
    Some((header, &segment[begin..]))
}

/// The ones' complement sum of RFC 1071, as slow and plain as can be.
fn folded(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for pair in parts.concat().chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).expect("the sum was folded")
}

/// The device between script and stack.
struct Wire {
    properties: LinkProperties,
    arrived: VecDeque<Vec<u8>>,
    held: Vec<Option<Vec<u8>>>,
    room: Vec<u8>,
    sent: Vec<Vec<u8>>,
}

impl Wire {
    fn new() -> Self {
        Self {
            properties: LinkProperties {
                address: OUR_MAC,
                mtu: 1500,
                completes_checksums: false,
                segment_bytes_max: 1500,
            },
            arrived: VecDeque::new(),
            held: Vec::new(),
            room: vec![0; 1514],
            sent: Vec::new(),
        }
    }

    fn lying(&self) -> usize {
        self.held.iter().flatten().count()
    }
}

impl Link for Wire {
    fn properties(&self) -> &LinkProperties {
        &self.properties
    }

    fn receive(&mut self, burst: &mut Burst) {
        while burst.room() > 0
            && let Some(frame) = self.arrived.pop_front()
        {
            let index = self.held.iter().position(Option::is_none);
            let index = index.unwrap_or(self.held.len());
            if index == self.held.len() {
                self.held.push(None);
            }
            self.held[index] = Some(frame);
            burst.push(Received {
                id: FrameId(u32::try_from(index).expect("few frames lie here")),
                checksum: ReceivedChecksum::Unverified,
                merged: 1,
            });
        }
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        self.held[id.0 as usize].as_mut().expect("a held frame")
    }

    fn release(&mut self, id: FrameId) {
        let frame = self.held[id.0 as usize].take();
        assert!(frame.is_some(), "a frame is released once");
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        self.room.get_mut(..len_max)
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        assert_eq!(
            offload,
            Offload::default(),
            "this device does nothing for others"
        );
        self.sent.push(self.room[..len].to_vec());
    }

    fn flush(&mut self) {}
}
