//! What must hold of a live stack whatever arrives: an input is a script of segments, acts of the application and
//! pauses, and none of it may lead to a panic, to a byte that was not sent, to a window that shrinks, or to memory
//! that is not given back.
//!
//! Every byte of a stream is a function of its sequence number, on both sides. So whatever the script sends, in
//! whatever order and however often, there is one right answer to what a reader may see.

/// The application on the stack.
#[path = "segments/application.rs"]
mod application;
/// Frames as the peer makes and reads them.
#[path = "segments/frame.rs"]
mod frame;
/// The other end of every connection.
#[path = "segments/peer.rs"]
mod peer;
/// The input of a run.
#[path = "segments/script.rs"]
mod script;
/// What the streams hold.
#[path = "segments/stream.rs"]
mod stream;

use application::Application;
use frame::OURS;
use mill_stack::config::{HostConfig, Prefix};
use mill_stack::host::Host;
use mill_stack::link::{Link, Offload};
use mill_stack::memory_link::{Frame, MemoryLink};
use mill_stack::queue::ByteQueue;
use mill_tcp::time::{Duration, Instant};
use peer::{PORTS, Peer};
use script::Script;
use std::net::IpAddr;

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
    let mut script = Script::new(input);
    let mut world = World::new(script.byte());
    for _ in 0..ACTS_MAX {
        if script.is_empty() {
            break;
        }
        world.act(&mut script);
        world.run();
    }
    world.end()
}

/// The stack and its surroundings.
struct World {
    host: Host<ByteQueue>,
    link: MemoryLink,
    peer: Peer,
    application: Application,
    now: Instant,
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
        let has_cookies = settings & 32 != 0;
        let link = MemoryLink::ethernet(1);
        let mut host = Host::new(config, link.properties(), now);
        let application = Application::new(&mut host);
        Self {
            host,
            link,
            peer: Peer::new(has_cookies),
            application,
            now,
        }
    }

    fn act(&mut self, script: &mut Script<'_>) {
        let which = script.byte();
        let port = usize::from(script.byte()) % usize::from(PORTS);
        let (application, host) = (&mut self.application, &mut self.host);
        let frame = match which % 16 {
            0 | 1 => self.peer.syn(port, script),
            2..=5 => self.peer.expected(port, script),
            6..=9 => self.peer.anything(port, script),
            10 => return self.pass_time(script),
            11 => return application.accept(host),
            12 => return application.write(host, port, script),
            13 => return application.leave(host, port, script),
            14 => return application.connect(host, port),
            _ => no_segment(script),
        };
        self.arrive(&frame);
    }

    fn arrive(&mut self, bytes: &[u8]) {
        self.link.arrived.push_back(Frame::new(bytes));
    }

    fn pass_time(&mut self, script: &mut Script<'_>) {
        let millis = u64::from(script.word()) << (script.byte() % 8);
        self.now = self.now + Duration::from_millis(millis);
    }

    /// Turns of the stack and of its readers, until none has anything to do.
    fn run(&mut self) {
        for _ in 0..8 {
            while self.host.receive(&mut self.link, self.now) > 0 {}
            self.host.expire(self.now);
            self.application
                .read(&mut self.host, &mut self.link, &self.peer);
            self.host.transmit(&mut self.link, self.now);
            self.host.settle(&mut self.link);
            assert_eq!(self.link.held(), 0, "frames are held beyond the turn");
            let sent = core::mem::take(&mut self.link.sent);
            if sent.is_empty() {
                break;
            }
            for frame in sent {
                assert_eq!(
                    frame.offload,
                    Offload::default(),
                    "this link completes nothing"
                );
                if let Some(answer) = frame::arp_answer(&frame.bytes) {
                    self.arrive(&answer);
                }
                self.peer.receive(&frame.bytes);
            }
        }
    }

    /// The application leaves and the peer is gone: a day later nothing is left.
    fn end(mut self) -> Outcome {
        self.application.end(&mut self.host);
        for _ in 0..2000 {
            self.run();
            let Some(next) = self.host.next_expiry() else {
                break;
            };
            self.now = self.now.max(next);
        }
        let usage = self.host.usage();
        assert!(usage.is_empty(), "left behind: {usage:?}");
        Outcome {
            connections: self.application.connections,
            read_bytes: self.application.read_bytes,
            sent_bytes: self.peer.received_bytes,
        }
    }
}

/// Bytes that are no segment at all.
fn no_segment(script: &mut Script<'_>) -> Vec<u8> {
    let mut bytes = frame::to_us();
    for _ in 0..usize::from(script.byte() % 100) {
        bytes.push(script.byte());
    }
    bytes
}

/// Acts of one input: enough for a handshake, trouble and an end, few enough for thousands of inputs a second.
const ACTS_MAX: usize = 400;
