//! What a link recovers from a former one, and what happens when its interface goes away.

use super::wire::{End, FAR, NEAR, Steering, duplicate, ip, lay, link};
use super::{frames, slices};
use crate::af_xdp::{XdpTrouble, setup};
use mill_stack::link::{Burst, Link, Offload};
use mill_sys::bpf::link::Mode;
use mill_sys::interface;
use mill_sys::memory::{Pages, SharedMemory};
use mill_sys::xsk::{Copying, create};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

impl End {
    /// Opens the socket and memory again, as a process does that was started anew.
    fn started_anew(mut self, name: &str) -> Self {
        let memory = SharedMemory::open(duplicate(&self.memory)).unwrap();
        let mtu = self.link.properties().mtu;
        self.link = link(duplicate(&self.socket), memory, name, mtu, &self.options);
        self
    }
}

#[test]
fn a_link_that_takes_a_socket_over_recovers_every_frame() {
    if !lay(1500, "") {
        return;
    }
    let (mut near, mut far) = (End::new(NEAR, 1500), End::new(FAR, 1500));
    let frames = frames(300, 200);
    for round in 0..20 {
        // The former link leaves frames received and held, frames that wait, frames reserved, transmitted and not
        // flushed, and sent but not completed.
        near.send(slices(&frames));
        let mut burst = Burst::new(37 * round % 64);
        far.link.receive(&mut burst);
        let taken = burst.as_slice().len();
        for _ in 0..round * 3 {
            far.link.reserve(60).unwrap();
            far.link.transmit(60, Offload::default());
        }
        far.link.reserve(60).unwrap();
        far = far.started_anew(FAR);
        let waiting = far.link.recovered().waiting as usize;
        assert_eq!(waiting, 300 - taken, "round {round}");
        assert!(far.link.recovered().filling > 0);
        assert!(far.receive() == frames[taken..], "round {round}");
        let again = far.link.reserve(60).is_some();
        assert!(again && !far.link.is_full());
    }
    // No slot is lost: as many frames as there are can be held, and sent, at once.
    let places = far.options.receive_frames as usize;
    let mut held = Burst::new(places + 1);
    for _ in 0..places / 256 + 4 {
        near.send(slices(&frames[..256]));
        far.link.receive(&mut held);
    }
    assert_eq!(held.as_slice().len(), places);
    for received in held.as_slice() {
        far.link.release(received.id);
    }
    for _ in 0..far.options.transmit_frames / 256 {
        far.send(slices(&frames[..256]));
        assert!(near.receive() == frames[..256]);
    }
    assert!(!far.link.is_full());
}

/// A driver without copies looks for slots when the program is attached, before any link is opened.
#[test]
fn the_kernel_has_slots_before_a_link_is_opened() {
    if !lay(1500, "") {
        return;
    }
    let mut near = End::new(NEAR, 1500);
    let (options, index) = (near.options, interface::index(FAR).unwrap());
    let memory = || setup::memory(&options, Pages::Huge).unwrap().memory;
    let (first, kept) = (memory(), memory());
    let busy = create(index, 0, &first, &options).unwrap();
    // A queue that is busy for a moment is tried again, with the memory of the first try.
    let ebusy = 16;
    let failed = create(index, 0, &kept, &options).unwrap_err();
    assert_eq!(failed.error.raw_os_error(), Some(ebusy));
    drop(busy);
    let socket = setup::socket(index, 0, &kept, &options).unwrap();
    let steering = Steering::new(FAR, Mode::Native);
    steering.sockets.set_socket(0, socket.as_fd()).unwrap();
    let frames = frames(200, 300);
    near.send(slices(&frames));
    let far = link(socket, kept, FAR, 1500, &options);
    let recovered = far.recovered();
    assert_eq!((recovered.waiting, recovered.reclaimed), (200, 0));
    assert_eq!(far.statistics().unwrap().no_place, 0);
}

#[test]
fn frames_queued_by_the_former_link_are_sent() {
    if !lay(1500, "") {
        return;
    }
    let (mut near, mut far) = (End::new(NEAR, 1500), End::new(FAR, 1500));
    // The kernel refuses while the interface is down, and keeps the frames.
    ip(&["link", "set", NEAR, "down"]);
    near.send(slices(&frames(10, 100)));
    assert!(near.link.is_full());
    assert_eq!(near.link.counters().refused, 1);
    near = near.started_anew(NEAR);
    assert_eq!(near.link.recovered().unsent, 10);
    ip(&["link", "set", NEAR, "up"]);
    near.send([]);
    assert!(!near.link.is_full());
    assert!(far.receive() == frames(10, 100));
}

#[test]
fn frames_pass_again_after_an_interface_was_down() {
    if !lay(1500, "") {
        return;
    }
    let (mut near, mut far) = (End::new(NEAR, 1500), End::new(FAR, 1500));
    for _ in 0..3 {
        ip(&["link", "set", FAR, "down"]);
        near.send(slices(&frames(3, 100)));
        assert!(far.receive().is_empty());
        ip(&["link", "set", FAR, "up"]);
        near.send([]);
        far.receive();
        near.send(slices(&frames(40, 100)));
        assert!(far.receive() == frames(40, 100));
    }
}

#[test]
fn an_interface_that_is_deleted_is_reported_once() {
    if !lay(1500, "") {
        return;
    }
    let near = End::new(NEAR, 1500);
    let (sender, told) = std::sync::mpsc::channel();
    let mut link = near.link.on_trouble(move |trouble| {
        sender.send(trouble).unwrap();
    });
    ip(&["link", "delete", NEAR]);
    for _ in 0..3 {
        link.reserve(60).unwrap();
        link.transmit(60, Offload::default());
        link.flush();
        link.receive(&mut Burst::new(1));
    }
    let told: Vec<XdpTrouble> = told.try_iter().collect();
    assert_eq!(told, [XdpTrouble::DeviceGone]);
}

/// A process that holds the socket is killed: its queue is busy while it lives, and is free afterwards.
#[test]
fn the_queue_of_a_killed_process_can_be_had_again() {
    if !lay(1500, "") {
        return;
    }
    let options = setup::xsk_options(1500, Copying::AsDriverCan);
    let index = interface::index(NEAR).unwrap();
    let memory = setup::memory(&options, Pages::Huge).unwrap().memory;
    let held = setup::socket(index, 0, &memory, &options).unwrap();
    let mut holder = Command::new("sleep")
        .arg("1000")
        .stdin(Stdio::from(held))
        .spawn()
        .unwrap();
    let memory = setup::memory(&options, Pages::Huge).unwrap().memory;
    let ebusy = 16;
    let refused = create(index, 0, &memory, &options).unwrap_err();
    assert_eq!(
        (refused.call, refused.error.raw_os_error()),
        ("bind(AF_XDP)", Some(ebusy))
    );
    holder.kill().unwrap();
    holder.wait().unwrap();
    setup::socket(index, 0, &memory, &options).unwrap();
}

#[test]
fn a_link_that_was_closed_leaves_its_queue() {
    if !lay(1500, "") {
        return;
    }
    let mut far = End::new(FAR, 1500);
    for _ in 0..5 {
        let mut near = End::new(NEAR, 1500);
        near.send(slices(&frames(10, 100)));
        assert!(near.link.as_fd().try_clone_to_owned().is_ok());
        assert!(far.receive() == frames(10, 100));
    }
}
