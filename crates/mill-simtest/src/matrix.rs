//! Throughput by loss, delay and buffer: one bulk transfer per cell over two bare hosts, in virtual time.
//!
//! The text is a snapshot (`matrix.txt`), checked by a test, so that a change of congestion control or recovery shows as
//! numbers in a review. Beside each figure stands what theory expects of an ideal sender in that cell.

/// What theory expects.
mod theory;

use crate::bare::{End, Pair, stack_time};
use crate::content;
use mill_runtime::time::Duration;
use mill_sim::packet::ethernet::StationOptions;
use mill_sim::packet::wire::{Loss, Wire};
use mill_stack::config::{HostConfig, Prefix};
use mill_stack::socket::{ListenOptions, SocketId};
use mill_tcp::config::{Algorithm, Config};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where the snapshot lies in the checkout.
pub const PATH: &str = "crates/mill-simtest/matrix.txt";

/// One cell.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub algorithm: Algorithm,
    /// Frames in a million that are lost, towards the receiver.
    pub loss_per_million: u32,
    /// There and back, without queueing.
    pub rtt: Duration,
    /// Bytes of the queue before the wire.
    pub buffer_bytes: u64,
}

/// The whole matrix as text.
pub fn text() -> String {
    let mut text = String::from(HEAD);
    for algorithm in [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr] {
        for rtt_ms in RTTS_MS {
            let rtt = Duration::from_millis(rtt_ms);
            let _ = writeln!(text, "\n{algorithm:?}, round trip {rtt_ms} ms");
            let _ = write!(text, "{:>12}", "loss");
            for (name, ..) in BUFFERS {
                let _ = write!(text, "{name:>20}");
            }
            text.push('\n');
            for loss_per_million in LOSSES_PER_MILLION {
                let percent = f64::from(loss_per_million) / 10_000.0;
                let _ = write!(text, "{percent:>10.2} %");
                for (_, numerator, denominator) in BUFFERS {
                    let product = bytes_in(rtt) * numerator / denominator;
                    let cell = Cell {
                        algorithm,
                        loss_per_million,
                        rtt,
                        buffer_bytes: product.max(BUFFER_BYTES_MIN),
                    };
                    let measured = format!("{:.2}", measure(&cell) / 1e6);
                    let expected = format!("({:.2})", theory::bits_per_second(&cell) / 1e6);
                    let _ = write!(text, "{measured:>11} {expected:>8}");
                }
                text.push('\n');
            }
        }
    }
    text
}

/// Payload bits a second that a transfer reaches, without its first quarter.
pub fn measure(cell: &Cell) -> f64 {
    let length = (cell.rtt * ROUND_TRIPS).max(SHORTEST);
    let mut pair = pair(cell);
    let target = SocketAddr::new(ADDRESSES[1], 80);
    let (sender, receiver) = pair.ends.split_at_mut(1);
    let (sender, receiver) = (&mut sender[0], &mut receiver[0]);
    let listening = receiver.host.listen(target, &ListenOptions::default());
    let listener = listening.expect("no other listener is there");
    let opened = sender.host.connect(target, None, true, 0);
    let socket = opened.expect("the target is on the link");
    let mut accepted = None;
    let mut transfer = |index: usize, end: &mut End| {
        if index == 0 {
            refill(end, socket);
        } else {
            accepted = accepted.or_else(|| end.host.accept(listener, 0));
            if let Some(socket) = accepted {
                end.host
                    .read(socket, &mut end.link, |bytes| (bytes.len(), ()));
            }
        }
        false
    };
    pair.run(length / 4, &mut transfer);
    let (began, early) = (stack_time(&pair.world), pair.ends[0].host.acked(socket));
    pair.run(length, &mut transfer);
    let took = stack_time(&pair.world).since(began);
    let acked = pair.ends[0].host.acked(socket) - early;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 bits")]
    let bits = (acked * 8) as f64;
    bits / took.as_secs_f64()
}

fn pair(cell: &Cell) -> Pair {
    let tcp = Config {
        congestion: cell.algorithm,
        ..Config::default()
    };
    let host = |index: usize| {
        let prefix = Prefix {
            address: ADDRESSES[index],
            len: 24,
        };
        let mut config = HostConfig::new(vec![prefix], [7; 16]);
        config.tcp = tcp.clone();
        config
    };
    let outward = Wire {
        bits_per_second: Some(BITS_PER_SECOND),
        queue_bytes: cell.buffer_bytes,
        loss: Loss::Random {
            per_million: cell.loss_per_million,
        },
        ..Wire::delayed(cell.rtt / 2)
    };
    Pair::new(
        1,
        [host(0), host(1)],
        [MTU, MTU].map(StationOptions::new),
        outward,
        Wire::delayed(cell.rtt / 2),
    )
}

/// Keeps more in the queue than any window of a cell takes.
fn refill(end: &mut End, socket: SocketId) {
    let Some(queue) = end.host.queue(socket) else {
        return;
    };
    let mut wrote = false;
    while mill_stack::queue::SendQueue::len(queue) < QUEUED_BYTES {
        queue.push(content::of(0, 65_536));
        wrote = true;
    }
    if wrote {
        end.host.wrote(socket);
    }
}

/// Bytes that the wire carries in a time.
fn bytes_in(time: Duration) -> u64 {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    BITS_PER_SECOND / 8 * micros / 1_000_000
}

/// Of the wire. Slow enough that a cell is measured in a fraction of a second.
const BITS_PER_SECOND: u64 = 10_000_000;

const MTU: u16 = 1500;

const LOSSES_PER_MILLION: [u32; 5] = [0, 100, 1_000, 10_000, 30_000];

const RTTS_MS: [u64; 3] = [4, 40, 200];

/// Queues, as parts of what the wire carries in a round trip.
const BUFFERS: [(&str, u64, u64); 3] = [
    ("buffer 1/4 BDP", 1, 4),
    ("buffer 1 BDP", 1, 1),
    ("buffer 4 BDP", 4, 1),
];

/// Bytes: a queue of five frames is the least that any network has.
const BUFFER_BYTES_MIN: u64 = 5 * 1514;

/// A transfer lasts so many round trips, that many losses come together, …
const ROUND_TRIPS: u32 = 200;
/// … and so long.
const SHORTEST: Duration = Duration::from_secs(20);

const QUEUED_BYTES: u64 = 2_000_000;

const ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
];

const HEAD: &str = "\
Throughput of one bulk transfer in Mbit/s of payload, over a wire of 10 Mbit/s, by random loss, round trip and the queue
before the wire (in parts of what the wire carries in a round trip; at least five frames). MTU 1500, timestamps, SACK.
Each transfer lasts 20 s or 200 round trips, whichever is longer; its first quarter is left out. Deterministic.

In parentheses what theory gives an ideal sender: the wire's payload rate, or what loss lets grow, if that is less.
  Reno   sqrt(3 / 2p) segments in a round trip (Mathis and others, 1997)
  Bbr    the wire's payload rate, less what is lost
  Cubic  the larger of that and 1.054 (RTT / p)^(3/4) segments (RFC 9438 5.1), RTT in seconds
Theory knows neither timeouts nor that the window never falls below one segment, and no queue: with a queue of less than
one round trip a single sender that halves its window (Reno) or takes 0.7 of it (Cubic) cannot fill the wire.

Made by `cargo xtask sim --matrix`, checked by a test.
";
