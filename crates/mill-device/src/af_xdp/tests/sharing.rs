//! Several links at one queue.

use super::wire::{End, FAR, NEAR, Steering, duplicate, lay};
use super::{frames, slices};
use crate::af_xdp::{XdpLink, XdpLinkOptions, setup};
use mill_stack::link::{Burst, Link, Offload};
use mill_sys::bpf::link::Mode;
use mill_sys::descriptor::wait_readable;
use mill_sys::interface;
use mill_sys::memory::{Pages, SharedMemory};
use mill_sys::xsk::{Copying, XskOptions, XskPool, create_sharing};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Links at the near end's queue, of which one receives.
struct Sharers {
    links: Vec<XdpLink>,
    sockets: Vec<OwnedFd>,
    memory: OwnedFd,
    options: XskOptions,
    steering: Steering,
}

impl Sharers {
    fn new(count: u32) -> Self {
        let options = XskOptions {
            sharers: count,
            receive_frames: 1024,
            transmit_frames: 256,
            ..setup::xsk_options(1500, Copying::AsDriverCan)
        };
        let memory = setup::memory(&options, Pages::Huge).unwrap().memory;
        let index = interface::index(NEAR).unwrap();
        let mut sockets = vec![setup::socket(index, 0, &memory, &options).unwrap()];
        for _ in 1..count {
            let more = create_sharing(sockets[0].as_fd(), index, 0, &options);
            sockets.push(more.unwrap());
        }
        let mut sharers = Self {
            links: Vec::new(),
            sockets,
            memory: duplicate(&memory),
            options,
            steering: Steering::new(NEAR, Mode::Native),
        };
        sharers.open();
        sharers
    }

    /// Opens all sockets again, as a process does that was started anew.
    fn open(&mut self) {
        self.links.clear();
        let memory = || SharedMemory::open(duplicate(&self.memory)).unwrap();
        let sockets: Vec<_> = self.sockets.iter().map(AsFd::as_fd).collect();
        let pool = XskPool::open(&sockets, memory(), &self.options).unwrap();
        let options = XdpLinkOptions {
            address: interface::hardware_address(NEAR).unwrap(),
            mtu: 1500,
            peer_may_be_local: true,
        };
        let links = (0..).zip(&self.sockets).map(|(place, socket)| {
            let xsk = pool.take(place, duplicate(socket), memory()).unwrap();
            assert!(
                pool.take(place, duplicate(socket), memory()).is_err(),
                "once"
            );
            XdpLink::new(xsk, options)
        });
        self.links = links.collect();
    }

    /// Directs received frames to this link.
    fn steer_to(&self, index: usize) {
        let socket = self.sockets[index].as_fd();
        self.steering.sockets.set_socket(0, socket).unwrap();
    }

    /// Waits until this many frames have arrived at a link, and returns them.
    fn receive(&mut self, index: usize, count: usize) -> Vec<Vec<u8>> {
        let link = &mut self.links[index];
        let mut burst = Burst::new(64);
        let mut frames = Vec::new();
        loop {
            link.receive(&mut burst);
            if burst.as_slice().is_empty() {
                let patience = Duration::from_millis(100);
                let is_all = frames.len() >= count;
                if is_all || wait_readable(&[link.as_fd()], Some(patience)).unwrap() == [false] {
                    return frames;
                }
            }
            for received in burst.as_slice() {
                frames.push(link.frame(received.id).to_vec());
                link.release(received.id);
            }
            burst.clear();
        }
    }

    fn send<'a>(&mut self, index: usize, frames: impl IntoIterator<Item = &'a [u8]>) {
        let link = &mut self.links[index];
        for frame in frames {
            let room = link.reserve(frame.len()).unwrap();
            room.copy_from_slice(frame);
            link.transmit(frame.len(), Offload::default());
        }
        link.flush();
    }
}

#[test]
fn links_that_share_a_queue_receive_and_send_each_its_own() {
    if !lay(1500, "") {
        return;
    }
    let (mut near, mut far) = (Sharers::new(3), End::new(FAR, 1500));
    let frames = frames(200, 300);
    for round in 0..60 {
        // The receiver changes; each one uses the slots that all have given.
        let index = round / 7 % 3;
        near.steer_to(index);
        far.send(slices(&frames));
        for other in 0..3 {
            let count = if other == index { 200 } else { 0 };
            let got = near.receive(other, count);
            assert!(
                got == frames || other != index && got.is_empty(),
                "{round} {other}"
            );
        }
        for sender in [index, (index + 1) % 3] {
            near.send(sender, slices(&frames));
            assert!(far.receive() == frames, "{round} {sender}");
        }
    }
    for link in &near.links {
        assert_eq!(link.statistics().unwrap().no_place, 0);
        assert_eq!(link.counters().dropped, 0);
    }
}

#[test]
fn links_that_take_several_sockets_over_recover_every_frame() {
    if !lay(1500, "") {
        return;
    }
    let (mut near, mut far) = (Sharers::new(2), End::new(FAR, 1500));
    let frames = frames(200, 300);
    for round in 0..30 {
        let index = round % 2;
        near.steer_to(index);
        far.send(slices(&frames));
        // The former links leave frames that are held, wait, are queued or were sent.
        let mut burst = Burst::new(round * 3 + 1);
        wait_readable(&[near.links[index].as_fd()], None).unwrap();
        near.links[index].receive(&mut burst);
        let taken = burst.as_slice().len();
        for link in &mut near.links {
            for _ in 0..round {
                link.reserve(60).unwrap();
                link.transmit(60, Offload::default());
            }
        }
        near.open();
        assert!(
            near.receive(index, 200 - taken) == frames[taken..],
            "{round}"
        );
        assert!(near.receive(1 - index, 0).is_empty());
        for sender in 0..2 {
            near.send(sender, slices(&frames));
            assert!(far.receive() == frames, "{round} {sender}");
        }
    }
}

#[test]
fn a_link_that_stands_still_leaves_the_others_their_places() {
    if !lay(1500, "") {
        return;
    }
    let (mut near, mut far) = (Sharers::new(2), End::new(FAR, 1500));
    let frames = frames(200, 300);
    near.steer_to(0);
    for _ in 0..20 {
        far.send(slices(&frames));
    }
    near.steer_to(1);
    // The first link has all slots that the kernel had; the other one gives it more in its turn.
    assert!(near.receive(1, 0).is_empty());
    for round in 0..20 {
        far.send(slices(&frames));
        assert!(near.receive(1, 200) == frames, "{round}");
    }
}
