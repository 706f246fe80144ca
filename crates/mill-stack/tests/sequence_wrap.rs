//! One connection that carries more than 2^32 bytes each way, at once: sequence numbers go round, and so does the clock of
//! timestamps, while windows are scaled and segments are long.
#![expect(clippy::unwrap_used, reason = "what can't be made fails its test")]

use mill_stack::config::{HostConfig, Prefix};
use mill_stack::host::Host;
use mill_stack::link::{ExternalBytes, Link, LinkProperties};
use mill_stack::memory_link::MemoryLink;
use mill_stack::queue::{SendQueue, Vanished};
use mill_stack::socket::{ListenOptions, SocketId};
use mill_tcp::time::Instant;
use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;
use std::time::Duration;

/// Bytes each way: round the numbers once, and half a gigabyte more.
const TOTAL: u64 = (1 << 32) + (1 << 29) + 12_345;

/// After so many bytes the content begins again: a prime, which no window, segment or power of two is a multiple of.
const PERIOD: usize = 65_521;

/// The content, long enough that as much as a period and a segment more can be had from any place in the first period.
static CONTENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut state = 1_u32;
    let period: Vec<u8> = (0..PERIOD)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .collect();
    period.iter().copied().cycle().take(3 * PERIOD).collect()
});

/// What stands at `position`, up to 64 KiB of it.
fn content_at(position: u64, len: usize) -> &'static [u8] {
    let start = usize::try_from(position % PERIOD as u64).unwrap();
    &CONTENT[start..start + len]
}

/// A queue that makes its bytes up when they are sent.
#[derive(Debug, Default)]
struct Made {
    released: u64,
    end: u64,
}

impl SendQueue for Made {
    fn len(&self) -> u64 {
        self.end - self.released
    }

    fn copy(&mut self, offset: u64, into: &mut [u8]) -> Result<(), Vanished> {
        assert!(offset + into.len() as u64 <= self.len());
        into.copy_from_slice(content_at(self.released + offset, into.len()));
        Ok(())
    }

    fn external(&mut self, offset: u64, len: u32) -> Option<ExternalBytes<'_>> {
        let bytes = content_at(self.released + offset, len as usize);
        Some(ExternalBytes::of_memory(bytes))
    }

    fn release(&mut self, count: u64) {
        assert!(count <= self.len());
        self.released += count;
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// One side, and how much of the other's content it has read.
struct Side {
    host: Host<Made>,
    link: MemoryLink,
    socket: Option<SocketId>,
    read: u64,
}

impl Side {
    fn new(number: u8, now: Instant) -> Self {
        let link = MemoryLink::new(LinkProperties {
            address: [2, 0, 0, 0, 0, number],
            mtu: 1500,
            completes_checksums: true,
            segment_bytes_max: 65_535,
            cut_bytes_min: 0,
            sends_external: true,
            frames_per_turn: usize::MAX,
        });
        let address = Prefix {
            address: IpAddr::from([10, 0, 0, number]),
            len: 24,
        };
        let config = HostConfig::new(vec![address], [number; 16]);
        Self {
            host: Host::new(config, link.properties(), now),
            link,
            socket: None,
            read: 0,
        }
    }

    /// One turn; whatever has arrived is compared with what stands there.
    fn turn(&mut self, now: Instant) {
        while self.host.receive(&mut self.link, now) > 0 {
            self.read();
            self.host.settle(&mut self.link);
        }
        self.host.expire(now);
        self.host.transmit(&mut self.link, now);
    }

    fn read(&mut self) {
        let Some(socket) = self.socket else { return };
        let at = self.read;
        self.read += self.host.read(socket, &mut self.link, |bytes| {
            let mut position = at;
            for part in bytes.chunks(PERIOD) {
                assert!(
                    part == content_at(position, part.len()),
                    "other bytes behind {position}"
                );
                position += part.len() as u64;
            }
            (bytes.len(), position - at)
        });
    }

    /// Everything is to be sent, and FIN behind it.
    fn send_all(&mut self) {
        let socket = self.socket.unwrap();
        self.host.queue(socket).unwrap().end = TOTAL;
        self.host.wrote(socket);
        self.host.shutdown(socket);
    }
}

#[test]
fn both_ways_carry_more_than_sequence_numbers_count() {
    // Shortly before the clock of timestamps goes round.
    let mut now = Instant::from_nanos(((1 << 32) - 50) * 1_000_000);
    let (mut client, mut server) = (Side::new(2, now), Side::new(1, now));
    let address: SocketAddr = "10.0.0.1:80".parse().unwrap();
    let options = ListenOptions::default();
    let listener = server.host.listen(address, &options).unwrap();
    client.socket = Some(client.host.connect(address, None, true, 0).unwrap());
    let mut turns = 0;
    while client.read < TOTAL || server.read < TOTAL {
        client.turn(now);
        client.link.carry(&mut server.link);
        server.turn(now);
        server.link.carry(&mut client.link);
        if server.socket.is_none()
            && let Some(socket) = server.host.accept(listener, 0)
        {
            server.socket = Some(socket);
            server.send_all();
            client.send_all();
        }
        now = now + Duration::from_micros(200);
        turns += 1;
        assert!(turns < 100_000, "{} and {} bytes", client.read, server.read);
    }
    for _ in 0..5 {
        client.turn(now);
        client.link.carry(&mut server.link);
        server.turn(now);
        server.link.carry(&mut client.link);
    }
    for side in [&client, &server] {
        let socket = side.socket.unwrap();
        assert_eq!((side.read, side.host.acked(socket)), (TOTAL, TOTAL));
        let readable = side.host.readable(socket);
        assert!(readable.finished && readable.error.is_none());
        let counters = side.host.tcp_counters();
        assert_eq!((counters.retransmitted, counters.paws_drops), (0, 0));
    }
    assert!(now.as_millis() > 1 << 32, "the clock went round");
}
