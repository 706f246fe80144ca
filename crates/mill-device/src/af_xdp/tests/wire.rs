//! A veth pair in a network namespace of the test, which vanishes with its thread, and a link on an end of it.

use crate::af_xdp::{XdpLink, XdpLinkOptions, setup};
use mill_stack::link::{Burst, FrameId, Link, Offload};
use mill_sys::bpf::Instruction;
use mill_sys::bpf::link::{Mode, attach};
use mill_sys::bpf::map::Map;
use mill_sys::bpf::program::Program;
use mill_sys::memory::{Pages, SharedMemory};
use mill_sys::xsk::{Copying, Xsk, XskOptions};
use mill_sys::{descriptor, interface, namespace};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;
use std::time::Duration;

/// The two ends' names.
pub(super) const NEAR: &str = "near";
pub(super) const FAR: &str = "far";

/// Moves the test's thread into a namespace of its own with a veth pair. `false`, with the reason printed, where
/// privileges or kernel features are missing.
pub(super) fn lay(mtu: u16, queues: &str) -> bool {
    if let Err(error) = namespace::leave_network() {
        println!("not tested: a network namespace of our own: {error}");
        return false;
    }
    // Without an IPv6 address the kernel sends nothing by itself. A kernel without IPv6 has none anyway.
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    let mtu = mtu.to_string();
    let mut line = vec!["link", "add", NEAR, "mtu", &mtu];
    line.extend(queues.split_whitespace());
    line.extend(["type", "veth", "peer", FAR, "mtu", &mtu]);
    line.extend(queues.split_whitespace());
    ip(&line);
    for end in [NEAR, FAR] {
        ip(&["link", "set", end, "up"]);
    }
    true
}

/// Runs ip(8) in the thread's namespace.
pub(super) fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "ip {arguments:?}: {output:?}");
}

/// A link that receives all frames of an interface's queue, and sends on it.
pub(super) struct End {
    pub(super) link: XdpLink,
    pub(super) options: XskOptions,
    /// Duplicates, for a link that takes over.
    pub(super) socket: OwnedFd,
    pub(super) memory: OwnedFd,
    _steering: Steering,
}

/// Attaches a program that directs all frames to the socket, until it is dropped.
pub(super) struct Steering {
    pub(super) sockets: Map,
    _held: OwnedFd,
}

impl Steering {
    pub(super) fn new(name: &str, mode: Mode) -> Self {
        let sockets = Map::sockets("sockets", 4).unwrap();
        let program = Program::load("everything", &everything(&sockets)).unwrap();
        let index = interface::index(name).unwrap();
        // A former program stays attached while a child that another test has just forked holds a duplicate of its
        // link.
        let held = (0..100).find_map(|_| {
            let patience = Duration::from_millis(10);
            let held = attach(&program, index, mode).ok();
            held.or_else(|| descriptor::wait_readable(&[], Some(patience)).map_or(None, |_| None))
        });
        Self {
            _held: held.unwrap(),
            sockets,
        }
    }
}

impl End {
    pub(super) fn new(name: &str, mtu: u16) -> Self {
        let options = setup::xsk_options(mtu, Copying::AsDriverCan);
        Self::with(name, 0, mtu, &options, Steering::new(name, Mode::Native))
    }

    pub(super) fn with(
        name: &str,
        queue: u32,
        mtu: u16,
        options: &XskOptions,
        steering: Steering,
    ) -> Self {
        let memory = setup::memory(options, Pages::Huge).unwrap().memory;
        let index = interface::index(name).unwrap();
        let socket = setup::socket(index, queue, &memory, options).unwrap();
        steering.sockets.set_socket(queue, socket.as_fd()).unwrap();
        let (socket_again, memory_again) = (duplicate(&socket), duplicate(&memory));
        Self {
            link: link(socket, memory, name, mtu, options),
            options: *options,
            socket: socket_again,
            memory: memory_again,
            _steering: steering,
        }
    }

    /// Sends frames; all of them have to find room.
    pub(super) fn send<'a>(&mut self, frames: impl IntoIterator<Item = &'a [u8]>) {
        for frame in frames {
            let room = self.link.reserve(frame.len()).unwrap();
            room.copy_from_slice(frame);
            self.link.transmit(frame.len(), Offload::default());
        }
        self.link.flush();
    }

    /// Receives until no frame arrives for a while.
    pub(super) fn receive(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        self.each(|frame| frames.push(frame.to_vec()));
        frames
    }

    /// Calls `each` with every frame that arrives, until none does for a while; returns their number.
    pub(super) fn each(&mut self, mut each: impl FnMut(&[u8])) -> usize {
        let mut burst = Burst::new(64);
        let mut count = 0;
        loop {
            self.link.receive(&mut burst);
            if burst.as_slice().is_empty() && !is_readable(&self.link) {
                return count;
            }
            let ids: Vec<FrameId> = burst.as_slice().iter().map(|frame| frame.id).collect();
            burst.clear();
            count += ids.len();
            for id in ids {
                each(self.link.frame(id));
                self.link.release(id);
            }
        }
    }
}

pub(super) fn link(
    socket: OwnedFd,
    memory: SharedMemory,
    name: &str,
    mtu: u16,
    options: &XskOptions,
) -> XdpLink {
    let xsk = Xsk::open(socket, memory, options).unwrap();
    let options = XdpLinkOptions {
        address: interface::hardware_address(name).unwrap(),
        mtu,
        peer_may_be_local: true,
    };
    XdpLink::new(xsk, options)
}

/// A frame that the kernel ignores: an EtherType for local experiments (IEEE 802 9.2.3), and bytes that identify it.
pub(super) fn frame(number: usize, len: usize) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame.extend(u64::try_from(number).unwrap().to_be_bytes());
    let rest = len - frame.len();
    frame.extend((0..rest).map(|at| (number + at / 7).to_le_bytes()[0]));
    frame
}

pub(super) fn duplicate(descriptor: &impl AsFd) -> OwnedFd {
    descriptor.as_fd().try_clone_to_owned().unwrap()
}

/// Whether a frame arrives within a tenth of a second.
fn is_readable(link: &XdpLink) -> bool {
    let patience = Duration::from_millis(100);
    descriptor::wait_readable(&[link.as_fd()], Some(patience))
        .is_ok_and(|readable| readable.iter().any(|one| *one))
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
