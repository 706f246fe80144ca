//! Forged packets: floods of SYNs, and resets and ICMP errors with the addresses of others.

use crate::namespace::has;
use crate::processes::all_are_answered;
use crate::stage::{Stage, on_each};
use crate::transport::Transport;
use std::process::{Command, Stdio};

/// Sends raw packets for so many seconds, as fast as one processor makes them; prints how many. The first argument is
/// their kind.
const SENDER: &str = "
import random, socket, struct, sys, time
what, seconds = sys.argv[1], float(sys.argv[2])
server, client = socket.inet_aton('10.50.0.1'), socket.inet_aton('10.50.0.2')
def checksum(data):
    if len(data) % 2:
        data += b'\\0'
    total = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
def ip(source, target, protocol, payload):
    return struct.pack('!BBHHHBBH', 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0) + source + target + payload
def tcp(source, target, ports, sequence, flags):
    head = struct.pack('!HHIIBBHHH', *ports, sequence, random.getrandbits(32), 0x50, flags, 64240, 0, 0)
    pseudo = source + target + struct.pack('!BBH', 0, 6, len(head))
    return head[:16] + struct.pack('!H', checksum(pseudo + head)) + head[18:]
def number():
    return random.getrandbits(32)
def port():
    return random.randrange(32768, 61000)
def syn():
    stranger = bytes([10, 50, 0, random.randrange(100, 250)])
    return ip(stranger, server, 6, tcp(stranger, server, (port(), 80), number(), 2))
def reset():
    return ip(client, server, 6, tcp(client, server, (port(), 80), number(), random.choice([4, 20])))
def icmp():
    quoted = ip(server, client, 6, struct.pack('!HHII', 80, port(), number(), number()))
    kind, code, rest = random.choice([(3, 1, 0), (3, 3, 0), (3, 4, 68), (3, 4, 0), (3, 4, 1000), (11, 0, 0), (4, 0, 0)])
    body = struct.pack('!BBHI', kind, code, 0, rest) + quoted
    return ip(client, server, 1, body[:2] + struct.pack('!H', checksum(body)) + body[4:])
packets = [{'syn': syn, 'reset': reset, 'icmp': icmp}[what]() for _ in range(20000)]
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
sent, end = 0, time.monotonic() + seconds
while time.monotonic() < end:
    for packet in random.sample(packets, 200):
        try:
            s.sendto(packet, ('10.50.0.1', 0))
            sent += 1
        except OSError:
            pass
print(sent)
";

fn check(what: &str, kind: &str) {
    if !has("python3") {
        println!("not tested: there is no python3");
        return;
    }
    let send = |stage: &mut Stage<'_>| {
        let sent = stage.at_client(|| {
            let mut command = Command::new("python3");
            command.args(["-c", SENDER, kind, "2"]).stdin(Stdio::null());
            command.output().unwrap()
        });
        let sent = String::from_utf8(sent.stdout).unwrap();
        let sent: u64 = sent.trim().parse().unwrap();
        assert!(sent > 1000, "{sent}");
        format!("{sent} packets in 2 s")
    };
    on_each(&Transport::OPEN, what, send, all_are_answered);
}

#[test]
fn a_flood_of_syns_loses_no_request() {
    check("SYN flood", "syn");
}

#[test]
fn forged_resets_lose_no_request() {
    check("forged RST", "reset");
}

#[test]
fn forged_icmp_errors_lose_no_request() {
    check("forged ICMP", "icmp");
}
