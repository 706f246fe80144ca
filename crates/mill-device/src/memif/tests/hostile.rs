//! Peers that violate the protocol, in what they offer and in what they write once they are connected. They are refused
//! with the reason, and the next one is served.

use super::super::handshake::{Handshake, Offer, Step};
use super::super::layout::Layout;
use super::super::message::{AddRegion, AddRing, MESSAGE_BYTES, Message};
use super::super::ring::{Descriptor, Index, Ring};
use super::*;
use mill_sys::eventfd;
use mill_sys::memory::{Pages, SharedMemory};
use mill_sys::{passing, seqpacket};

/// A slave that does what a test tells it to.
struct Slave {
    socket: OwnedFd,
    handshake: Handshake<OwnedFd>,
    regions: Vec<SharedMemory>,
    layout: Option<Layout>,
    /// The reason with which the master has disconnected.
    left: Option<String>,
}

/// What it offers: a region, and a ring in each direction with its eventfd.
type Offered = Offer<OwnedFd>;

impl Slave {
    fn new(place: &Path) -> Self {
        Self {
            socket: seqpacket::connect(&name(place)).unwrap(),
            handshake: Handshake::slave(small(16, 256).terms()),
            regions: Vec::new(),
            layout: None,
            left: None,
        }
    }

    /// Runs the handshake with a valid offer, changed by `change`.
    fn talk(&mut self, change: &dyn Fn(&mut Offered)) {
        while let Some((message, descriptor)) = self.handshake.next_message() {
            let passed = descriptor.as_ref().map(AsFd::as_fd);
            let _ = passing::send(self.socket.as_fd(), &message.emit(), passed.as_slice());
        }
        let mut buffer = [0; MESSAGE_BYTES];
        let Ok((len @ 1.., _)) = passing::receive(self.socket.as_fd(), &mut buffer) else {
            return;
        };
        let message = Message::parse(&buffer[..len]).unwrap();
        match self.handshake.on_message(message, None, false).unwrap() {
            Step::Prepare(agreed) => {
                let layout = Layout::new(agreed, 256).unwrap();
                let mut offer = self.make(&layout);
                change(&mut offer);
                self.layout = Some(layout);
                self.handshake.offer(offer);
            }
            Step::Left(reason) => self.left = Some(reason),
            _ => {}
        }
    }

    fn make(&mut self, layout: &Layout) -> Offered {
        let bytes = usize::try_from(layout.region_bytes).unwrap();
        let memory = SharedMemory::create("hostile", bytes, Pages::Small).unwrap();
        let file = memory.as_fd().try_clone_to_owned().unwrap();
        let region = AddRegion {
            index: 0,
            size_bytes: memory.len() as u64,
        };
        self.regions = vec![memory];
        let ring = |offset: u32, is_s2m| {
            let ring = Ring::new(&self.regions, 0, offset, layout.log2_ring_size).unwrap();
            ring.initialise(&self.regions);
            let add = AddRing {
                is_s2m,
                index: 0,
                region: 0,
                offset,
                log2_size: layout.log2_ring_size,
                private_header_bytes: 0,
            };
            (add, eventfd::create().unwrap())
        };
        Offer {
            regions: vec![(region, file)],
            s2m: vec![ring(layout.s2m[0], true)],
            m2s: vec![ring(layout.m2s[0], false)],
        }
    }

    /// The ring from the slave, and the one to it.
    fn rings(&self) -> [Ring; 2] {
        let layout = self.layout.as_ref().unwrap();
        [layout.s2m[0], layout.m2s[0]]
            .map(|at| Ring::new(&self.regions, 0, at, layout.log2_ring_size).unwrap())
    }
}

fn nothing(_: &mut Offered) {}

/// Runs a slave against a master until it is connected or refused.
fn meet(master: &mut MemifLink, place: &Path, change: &dyn Fn(&mut Offered)) -> Slave {
    let mut slave = Slave::new(place);
    while !slave.handshake.is_up() && slave.left.is_none() {
        slave.talk(change);
        master.receive(&mut Burst::new(0));
    }
    slave
}

/// Checks that a master refuses an offer with this reason, and then serves a valid one.
fn check_offer(expected: &str, change: impl Fn(&mut Offered)) {
    let place = place();
    let mut master = MemifLink::listen(&place, &small(16, 256)).unwrap();
    let slave = meet(&mut master, &place, &change);
    assert_eq!(slave.left.as_deref(), Some(expected));
    assert!(!master.is_up());
    drop(slave);
    let slave = meet(&mut master, &place, &nothing);
    assert!(slave.handshake.is_up() && master.is_up());
}

#[test]
fn regions_that_could_end_the_process_are_refused() {
    let expected = "a region is no memfd of small pages, sealed against shrinking";
    check_offer(expected, |offer| {
        // A file of a file system cannot be sealed.
        let path = std::env::temp_dir().join(format!("mill-unsealed-{}", std::process::id()));
        let file = std::fs::File::create_new(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file.set_len(1 << 20).unwrap();
        offer.regions[0].1 = file.into();
    });
    check_offer(expected, |offer| {
        // Made without sealing.
        let file = passing::memory_file(c"unsealed").unwrap();
        file.set_len(offer.regions[0].0.size_bytes).unwrap();
        offer.regions[0].1 = file.into();
    });
    check_offer(expected, |offer| offer.regions[0].0.size_bytes += 1);
    check_offer(expected, |offer| {
        // Far longer than announced.
        let long = SharedMemory::create("long", 8 << 20, Pages::Small).unwrap();
        offer.regions[0].1 = long.as_fd().try_clone_to_owned().unwrap();
    });
    check_offer(expected, |offer| {
        offer.regions[0].1 = passing::pair().unwrap().0;
    });
}

#[test]
fn rings_outside_of_their_region_and_non_rings_are_refused() {
    let expected = "a ring outside of its region, or no ring";
    check_offer(expected, |offer| offer.s2m[0].0.offset = u32::MAX - 3);
    check_offer(expected, |offer| offer.m2s[0].0.offset = 1 << 31);
    check_offer(expected, |offer| {
        let end = u32::try_from(offer.regions[0].0.size_bytes).unwrap();
        offer.s2m[0].0.offset = end - 128;
    });
    // Not a multiple of four, and no cookie there.
    check_offer(expected, |offer| offer.s2m[0].0.offset += 2);
    check_offer(expected, |offer| offer.m2s[0].0.offset += 64);
}

#[test]
fn descriptors_that_are_no_eventfds_are_refused() {
    let expected = "not an eventfd";
    check_offer(expected, |offer| {
        offer.s2m[0].1 = passing::pair().unwrap().0;
    });
    check_offer(expected, |offer| {
        offer.m2s[0].1 = passing::memory_file(c"none").unwrap().into();
    });
}

/// Checks that a master disconnects a slave that does this, and serves the next one.
fn check_rings(act: impl Fn(&Slave, &mut MemifLink)) {
    let place = place();
    let mut master = MemifLink::listen(&place, &small(16, 256)).unwrap();
    for _ in 0..2 {
        let mut slave = meet(&mut master, &place, &nothing);
        assert!(master.is_up());
        act(&slave, &mut master);
        assert!(drain(&mut master).is_empty());
        assert!(!master.is_up());
        slave.talk(&nothing);
        let expected = "an index or a buffer outside its bounds";
        assert_eq!(slave.left.as_deref(), Some(expected));
    }
    assert_eq!(master.counters().connected, 2);
}

fn post(slave: &Slave, descriptor: Descriptor) {
    let [_, to_slave] = slave.rings();
    to_slave.set_descriptor(&slave.regions, 0, descriptor);
    to_slave.publish(&slave.regions, Index::Head, 1);
}

fn buffer(region: u16, offset: u32, len: u32) -> Descriptor {
    Descriptor {
        region,
        offset,
        len,
        ..Descriptor::default()
    }
}

#[test]
fn indices_that_jump_end_the_connection() {
    check_rings(|slave, _| slave.rings()[0].publish(&slave.regions, Index::Head, 17));
    check_rings(|slave, _| slave.rings()[0].publish(&slave.regions, Index::Head, u16::MAX));
    check_rings(|slave, master| {
        slave.rings()[1].publish(&slave.regions, Index::Head, 17);
        assert!(send(master, 1, 60));
    });
}

#[test]
fn buffers_outside_of_their_region_end_the_connection() {
    for wrong in [
        buffer(1, 0, 64),
        buffer(u16::MAX, 0, 64),
        buffer(0, u32::MAX, 64),
        buffer(0, 0, u32::MAX),
        buffer(0, 0, 0),
    ] {
        check_rings(|slave, master| {
            post(slave, wrong);
            assert!(send(master, 1, 60));
        });
    }
}

#[test]
fn a_chain_without_an_end_ends_the_connection() {
    check_rings(|slave, _| {
        let [from_slave, _] = slave.rings();
        for count in 0..16 {
            let mut descriptor = buffer(0, 4096, 1);
            descriptor.has_next = true;
            from_slave.set_descriptor(&slave.regions, count, descriptor);
        }
        from_slave.publish(&slave.regions, Index::Head, 16);
    });
}

#[test]
fn frames_with_invalid_descriptors_are_dropped_and_counted_and_others_pass() {
    let place = place();
    let mut master = MemifLink::listen(&place, &small(16, 256)).unwrap();
    let slave = meet(&mut master, &place, &nothing);
    let [from_slave, _] = slave.rings();
    slave.regions[0].write(4096, &[7; 60]).unwrap();
    let end = u32::try_from(slave.regions[0].len()).unwrap();
    let descriptors = [
        buffer(1, 0, 60),
        buffer(0, end - 59, 60),
        buffer(0, end, 1),
        buffer(0, u32::MAX, u32::MAX),
        buffer(0, 0, 0),
        buffer(0, 4096, 60),
    ];
    for (count, descriptor) in (0..).zip(descriptors) {
        from_slave.set_descriptor(&slave.regions, count, descriptor);
    }
    from_slave.publish(&slave.regions, Index::Head, 6);
    assert_eq!(drain(&mut master), [vec![7; 60]]);
    assert_eq!((master.counters().refused, master.is_up()), (5, true));
}

#[test]
fn the_first_part_of_a_chain_waits_for_the_rest() {
    let place = place();
    let mut master = MemifLink::listen(&place, &small(16, 256)).unwrap();
    let slave = meet(&mut master, &place, &nothing);
    let [from_slave, _] = slave.rings();
    slave.regions[0].write(4096, &[7; 60]).unwrap();
    let mut first = buffer(0, 4096, 20);
    first.has_next = true;
    from_slave.set_descriptor(&slave.regions, 0, first);
    from_slave.publish(&slave.regions, Index::Head, 1);
    for _ in 0..3 {
        assert!(drain(&mut master).is_empty());
    }
    from_slave.set_descriptor(&slave.regions, 1, buffer(0, 4100, 10));
    from_slave.publish(&slave.regions, Index::Head, 2);
    assert_eq!(drain(&mut master), [vec![7; 30]]);
}

/// Checks that a master refuses this message with this reason, and goes on.
fn check_said(bytes: &[u8], expected: &str) {
    let place = place();
    let mut master = MemifLink::listen(&place, &small(16, 256)).unwrap();
    let socket = seqpacket::connect(&name(&place)).unwrap();
    passing::send(socket.as_fd(), bytes, &[]).unwrap();
    master.receive(&mut Burst::new(0));
    let mut buffer = [0; MESSAGE_BYTES];
    let mut last = None;
    while let Ok((MESSAGE_BYTES, _)) = passing::receive(socket.as_fd(), &mut buffer) {
        last = Message::parse(&buffer).ok();
    }
    let Some(Message::Disconnect { reason, .. }) = last else {
        panic!("{last:?}");
    };
    assert_eq!(reason.to_text(), expected);
    assert!(meet(&mut master, &place, &nothing).handshake.is_up());
}

#[test]
fn what_is_no_message_is_refused_and_the_next_one_is_served() {
    let expected = "not an expected message";
    check_said(&[1], expected);
    check_said(&[0; 127], expected);
    check_said(&[0; 128], expected);
    check_said(&[0; 129], expected);
    check_said(&[0xff; 4000], expected);
    check_said(&Message::Ack.emit(), expected);
}

#[test]
fn a_silent_peer_does_not_keep_others_out() {
    let place = place();
    let options = small(16, 256);
    let mut master = MemifLink::listen(&place, &options).unwrap();
    let mut buffer = [0; MESSAGE_BYTES];
    let silent = seqpacket::connect(&name(&place)).unwrap();
    let mut slave = MemifLink::connect(&place, &options).unwrap();
    until(&mut [&mut master, &mut slave], are_up);
    // Hello, then why it was sent away.
    passing::receive(silent.as_fd(), &mut buffer).unwrap();
    passing::receive(silent.as_fd(), &mut buffer).unwrap();
    let Ok(Message::Disconnect { reason, .. }) = Message::parse(&buffer) else {
        panic!("it was not refused");
    };
    assert_eq!(reason.to_text(), "the handshake takes too long");
}
