//! Raw frames over AF_XDP: the least work that any program over it can do, as a reference for stacks.
//!
//! One end answers each frame with some frames, the other keeps some exchanges in flight. Only the Ethernet header is
//! written, and only it is read.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

use mill_device::af_xdp::{XdpLink, XdpLinkOptions, setup};
use mill_stack::link::{Burst, FrameId, Link, Offload};
use mill_sys::bpf::Instruction;
use mill_sys::bpf::link::{Mode, attach};
use mill_sys::bpf::map::Map;
use mill_sys::bpf::program::Program;
use mill_sys::memory::Pages;
use mill_sys::xsk::{Copying, Xsk};
use mill_sys::{clock, interface};

use super::exchange::Exchange;
use crate::bench::figures::Figures;

/// The argument after `bench` that starts one end.
pub(in crate::bench) const ARGUMENT: &str = "raw-frames";

type Failed = Box<dyn std::error::Error>;

/// `answer INTERFACE MTU CONNECTIONS BYTES PORT` until it is killed; it listens on the port once it answers. Or
/// `ask INTERFACE MTU CONNECTIONS BYTES SECONDS`, which prints what wrk prints; what stands behind is for readers.
/// `ask-twice` counts two exchanges as one: a request that passes a proxy, and the answer that does.
pub(in crate::bench) fn run(arguments: &[&str]) -> ExitCode {
    let done: Option<Result<(), Failed>> = match arguments {
        [
            what @ ("answer" | "ask" | "ask-twice"),
            interface,
            mtu,
            connections,
            bytes,
            last,
            ..,
        ] => Exchange::parse([mtu, connections, bytes])
            .zip(last.parse::<u16>().ok())
            .map(|(exchange, last)| match *what {
                "answer" => {
                    let end = End::attach(interface, exchange)?;
                    let _listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, last))?;
                    end.answer()
                }
                what => {
                    let seconds = Duration::from_secs(last.into());
                    let figures = End::attach(interface, exchange)?.ask(seconds);
                    let bytes = exchange.frames * exchange.answer_bytes;
                    let share = if what == "ask-twice" { 0.5 } else { 1.0 };
                    let (window, answers) = (exchange.window, exchange.answers * share);
                    println!("{}", figures.emit("raw frames", window, answers, bytes));
                    Ok(())
                }
            }),
        _ => None,
    };
    match done {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("raw frames: {error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!(
                "xtask bench {ARGUMENT}: wants \"answer\", \"ask\" or \"ask-twice\", and what to exchange"
            );
            ExitCode::from(crate::EXIT_USAGE)
        }
    }
}

/// An interface whose frames are all redirected here.
struct End {
    link: XdpLink,
    exchange: Exchange,
    burst: Burst,
    ids: Vec<FrameId>,
    _program: OwnedFd,
    _sockets: Map,
}

/// Frames taken at once, as the stack takes them.
const BURST: usize = 64;

/// After this time without a frame, those in flight count as lost, so that they do not stop the run. On a busy
/// machine an end may wait for its CPU for some 20 ms.
const SILENCE: Duration = Duration::from_millis(100);

/// An EtherType for local experiments (IEEE 802, 9.2.3), after two addresses.
const HEADER: [u8; 14] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5,
];

impl End {
    fn attach(name: &str, exchange: Exchange) -> Result<Self, Failed> {
        let index = interface::index(name)?;
        let options = setup::xsk_options(exchange.mtu, Copying::AsDriverCan);
        let memory = setup::memory(&options, Pages::Huge)?.memory;
        let socket = setup::socket(index, 0, &memory, &options).map_err(|failed| failed.error)?;
        let sockets = Map::sockets("raw_sockets", 1)?;
        sockets.set_socket(0, socket.as_fd())?;
        let program = Program::load("raw_frames", &everything(&sockets))?;
        let held = attach(&program, index, Mode::Native)?;
        let link_options = XdpLinkOptions {
            address: interface::hardware_address(name)?,
            mtu: exchange.mtu,
            peer_may_be_local: true,
        };
        Ok(Self {
            link: XdpLink::new(Xsk::open(socket, memory, &options)?, link_options),
            exchange,
            burst: Burst::new(BURST),
            ids: Vec::with_capacity(BURST),
            _program: held,
            _sockets: sockets,
        })
    }

    fn answer(mut self) -> ! {
        loop {
            let frames = self.exchange.frames;
            for _ in 0..frames * self.receive() {
                self.send(self.exchange.answer_bytes);
            }
            self.link.flush();
        }
    }

    fn ask(mut self, duration: Duration) -> Figures {
        let mut latencies_ns = Vec::new();
        // When each exchange in flight was begun; they end in the same order.
        let mut begun = VecDeque::with_capacity(self.exchange.window);
        let (mut frames, mut lost) = (0, 0);
        let start = clock::monotonic();
        let mut now = start;
        let mut heard = start;
        while now.saturating_sub(start) < duration {
            let received = self.receive();
            now = clock::monotonic();
            if received > 0 {
                heard = now;
                frames += received;
                while frames >= self.exchange.frames {
                    frames -= self.exchange.frames;
                    if let Some(begun) = begun.pop_front() {
                        latencies_ns.push(nanoseconds(now.saturating_sub(begun)));
                    }
                }
            } else if now.saturating_sub(heard) > SILENCE {
                heard = now;
                lost += begun.len() as u64;
                begun.clear();
                frames = 0;
            }
            if begun.len() < self.exchange.window {
                while begun.len() < self.exchange.window {
                    self.send(self.exchange.request_bytes);
                    begun.push_back(now);
                }
                self.link.flush();
            }
        }
        Figures::of(latencies_ns, lost, now.saturating_sub(start))
    }

    /// Takes what has arrived, and returns how many of the frames were ours.
    fn receive(&mut self) -> usize {
        self.link.receive(&mut self.burst);
        self.ids
            .extend(self.burst.as_slice().iter().map(|frame| frame.id));
        self.burst.clear();
        let mut count = 0;
        for id in self.ids.drain(..) {
            count += usize::from(self.link.frame(id).get(..HEADER.len()) == Some(&HEADER[..]));
            self.link.release(id);
        }
        count
    }

    /// Queues a frame, when there is room.
    fn send(&mut self, len: usize) {
        loop {
            if let Some(header) = self
                .link
                .reserve(len)
                .and_then(|room| room.first_chunk_mut())
            {
                *header = HEADER;
                return self.link.transmit(len, Offload::default());
            }
            self.link.flush();
        }
    }
}

/// The longest time of a run of some seconds.
fn nanoseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_nanos()).unwrap_or(u32::MAX)
}

/// `return bpf_redirect_map(sockets, queue, XDP_PASS)`
fn everything(sockets: &Map) -> [Instruction; 6] {
    let instruction = |code, destination, source, offset, immediate| Instruction {
        code,
        registers: Instruction::registers(destination, source),
        offset,
        immediate,
    };
    let map = sockets.as_fd().as_raw_fd();
    [
        instruction(0x61, 2, 1, 16, 0),  // r2 = queue
        instruction(0x18, 1, 1, 0, map), // r1 = sockets, of two instructions
        instruction(0, 0, 0, 0, 0),
        instruction(0xb7, 3, 0, 0, 2),  // r3 = XDP_PASS
        instruction(0x85, 0, 0, 0, 51), // call bpf_redirect_map
        instruction(0x95, 0, 0, 0, 0),  // return r0
    ]
}
