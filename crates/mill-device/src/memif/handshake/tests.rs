//! Handshakes message by message; descriptors are numbers here.

use super::super::message::{AddRegion, AddRing, Hello, Init, Message, Text};
use super::*;

const SECRET: [u8; 24] = *b"sesame\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

fn terms() -> Terms {
    Terms {
        id: 7,
        secret: SECRET,
        rings: 2,
        log2_ring_size: 10,
        offload: true,
    }
}

fn init() -> Init {
    Init {
        version: VERSION,
        id: 7,
        mode: 0,
        secret: SECRET,
        name: Text::new("a slave"),
    }
}

fn region(index: u16, size_bytes: u64) -> Message {
    Message::AddRegion(AddRegion { index, size_bytes })
}

fn add_ring(is_s2m: bool, index: u16) -> AddRing {
    AddRing {
        is_s2m,
        index,
        region: 0,
        offset: 0,
        log2_size: 10,
        private_header_bytes: 0,
    }
}

fn ring(is_s2m: bool, index: u16) -> Message {
    Message::AddRing(add_ring(is_s2m, index))
}

/// The messages of a valid slave, with descriptors where they are required.
fn script() -> Vec<(Message, Option<u32>)> {
    vec![
        (Message::Init(init()), None),
        (region(0, 4096), Some(1)),
        (ring(true, 0), Some(2)),
        (ring(false, 0), Some(3)),
        (Message::Connect(Text::new("mem0")), None),
    ]
}

/// Feeds messages to a master; returns the first answer that is no success, or the last one.
fn tell(
    master: &mut Handshake<u32>,
    said: Vec<(Message, Option<u32>)>,
    is_busy: bool,
) -> Result<Step<u32>, Refusal> {
    let mut last = Ok(Step::Nothing);
    for (message, descriptor) in said {
        last = master.on_message(message, descriptor, is_busy);
        if last.is_err() {
            break;
        }
    }
    last
}

fn said(handshake: &mut Handshake<u32>) -> Vec<Message> {
    std::iter::from_fn(|| handshake.next_message())
        .map(|(message, _)| message)
        .collect()
}

#[test]
fn a_master_announces_its_limits_and_acknowledges_offers() {
    let mut master = Handshake::master(terms());
    let hello = Message::Hello(Hello {
        name: Text::new("millstream offload/1"),
        version_min: 0x0200,
        version_max: 0x0200,
        region_max: 63,
        m2s_ring_max: 1,
        s2m_ring_max: 1,
        log2_ring_size_max: 10,
    });
    assert_eq!(said(&mut master), [hello]);
    let Ok(Step::Map(offer, agreed)) = tell(&mut master, script(), false) else {
        panic!("nothing to map");
    };
    let expected = Agreed {
        s2m_rings: 1,
        m2s_rings: 1,
        log2_ring_size: 10,
        offload: false,
    };
    assert_eq!(agreed, expected);
    assert_eq!(
        (offer.regions.len(), offer.s2m[0].1, offer.m2s[0].1),
        (1, 2, 3)
    );
    assert_eq!(said(&mut master), [Message::Ack; 4]);
    master.accept();
    assert!(master.is_up());
    assert!(matches!(said(&mut master)[..], [Message::Connected(_)]));
}

/// Changes a valid slave's messages, and expects the master to refuse them with `expected`.
fn check(change: impl FnOnce(&mut Vec<(Message, Option<u32>)>), expected: Option<Refusal>) {
    let mut master = Handshake::master(terms());
    let mut script = script();
    change(&mut script);
    let found = tell(&mut master, script, false).err();
    assert_eq!(found, expected);
    let Some(refusal) = found else { return };
    master.refuse(refusal);
    let reason = Text::new(&refusal.to_string());
    assert_eq!(said(&mut master), [Message::Disconnect { code: 0, reason }]);
}

#[test]
fn a_master_refuses_a_slave_of_another_interface() {
    let with = |change: fn(&mut Init), expected| {
        let mut init = init();
        change(&mut init);
        check(|script| script[0].0 = Message::Init(init), expected);
    };
    with(|_| {}, None);
    with(|init| init.version = 0x0100, Some(Refusal::Version));
    with(|init| init.version = 0x0201, Some(Refusal::Version));
    with(|init| init.id = 8, Some(Refusal::Id));
    with(|init| init.mode = 1, Some(Refusal::Mode));
    with(|init| init.secret = [0; 24], Some(Refusal::Secret));
    with(|init| init.secret[23] = 1, Some(Refusal::Secret));
    let mut master = Handshake::master(terms());
    let found = tell(&mut master, script(), true);
    assert_eq!(found, Err(Refusal::Busy));
}

#[test]
fn a_master_without_a_secret_takes_any() {
    let mut terms = terms();
    terms.secret = [0; 24];
    let mut master = Handshake::master(terms);
    assert!(tell(&mut master, script(), false).is_ok());
}

#[test]
fn a_master_refuses_what_comes_out_of_order() {
    let at = |at: usize, message: Message, descriptor: Option<u32>, expected| {
        check(|script| script.insert(at, (message, descriptor)), expected);
    };
    at(0, Message::Ack, None, Some(Refusal::Unexpected));
    at(0, region(0, 1), Some(9), Some(Refusal::Unexpected));
    at(1, Message::Init(init()), None, Some(Refusal::Unexpected));
    at(1, ring(true, 0), Some(9), Some(Refusal::RingRegion));
    let connect = Message::Connect(Text::new(""));
    at(0, connect, None, Some(Refusal::Unexpected));
    at(1, connect, None, Some(Refusal::NoRing));
    at(3, connect, None, Some(Refusal::NoRing));
    at(5, connect, None, Some(Refusal::Unexpected));
    at(5, ring(true, 1), Some(9), Some(Refusal::Unexpected));
    let connected = Message::Connected(Text::new(""));
    at(4, connected, None, Some(Refusal::Unexpected));
}

#[test]
fn a_master_refuses_descriptors_that_are_missing_or_too_many() {
    check(
        |script| script[1].1 = None,
        Some(Refusal::DescriptorMissing),
    );
    check(
        |script| script[2].1 = None,
        Some(Refusal::DescriptorMissing),
    );
    check(
        |script| script[0].1 = Some(1),
        Some(Refusal::DescriptorUnwanted),
    );
    check(
        |script| script[4].1 = Some(1),
        Some(Refusal::DescriptorUnwanted),
    );
}

#[test]
fn a_master_refuses_regions_of_the_wrong_index_or_size() {
    let with = |index, size, expected| check(|script| script[1].0 = region(index, size), expected);
    with(1, 4096, Some(Refusal::RegionIndex));
    with(u16::MAX, 4096, Some(Refusal::RegionIndex));
    with(0, 0, Some(Refusal::RegionSize));
    with(0, REGIONS_BYTES_MAX, None);
    with(0, REGIONS_BYTES_MAX + 1, Some(Refusal::RegionSize));
    with(0, u64::MAX, Some(Refusal::RegionSize));
    let more = |count: u16, size, expected| {
        check(
            |script| {
                let added = (1..count).map(|index| (region(index, size), Some(9)));
                script.splice(2..2, added);
            },
            expected,
        );
    };
    more(64, 4096, None);
    more(65, 4096, Some(Refusal::RegionIndex));
    more(2, REGIONS_BYTES_MAX - 4096, None);
    more(2, REGIONS_BYTES_MAX - 4095, Some(Refusal::RegionSize));
}

#[test]
fn a_master_refuses_rings_that_it_has_not_offered() {
    let with = |change: fn(&mut AddRing), expected| {
        let mut ring = add_ring(true, 0);
        change(&mut ring);
        check(|script| script[2].0 = Message::AddRing(ring), expected);
    };
    with(|ring| ring.index = 1, Some(Refusal::RingIndex));
    with(|ring| ring.region = 1, Some(Refusal::RingRegion));
    with(|ring| ring.log2_size = 11, Some(Refusal::RingSize));
    with(|ring| ring.log2_size = 255, Some(Refusal::RingSize));
    with(|ring| ring.log2_size = 0, None);
    with(
        |ring| ring.private_header_bytes = 1,
        Some(Refusal::PrivateHeader),
    );
    let more = |message, expected| check(|script| script.insert(4, (message, Some(9))), expected);
    more(ring(true, 1), None);
    more(ring(false, 1), None);
    more(ring(true, 0), Some(Refusal::RingIndex));
    check(
        |script| {
            let added = [ring(true, 1), ring(true, 2)].map(|ring| (ring, Some(9)));
            script.splice(4..4, added);
        },
        Some(Refusal::RingIndex),
    );
}

fn hello() -> Hello {
    Hello {
        name: Text::new("millstream offload/1"),
        version_min: 0x0200,
        version_max: 0x0200,
        region_max: 0,
        m2s_ring_max: 255,
        s2m_ring_max: 0,
        log2_ring_size_max: 9,
    }
}

fn offer() -> Offer<u32> {
    let region = AddRegion {
        index: 0,
        size_bytes: 4096,
    };
    Offer {
        regions: vec![(region, 1)],
        s2m: vec![(add_ring(true, 0), 2)],
        m2s: vec![(add_ring(false, 0), 3), (add_ring(false, 1), 4)],
    }
}

/// A slave that has sent everything.
fn offered() -> Handshake<u32> {
    let mut slave = Handshake::slave(terms());
    slave
        .on_message(Message::Hello(hello()), None, false)
        .unwrap();
    slave.offer(offer());
    slave
}

#[test]
fn a_slave_offers_what_both_support_in_order() {
    let mut slave = Handshake::slave(terms());
    assert_eq!(slave.next_message(), None);
    let step = slave.on_message(Message::Hello(hello()), None, false);
    let agreed = Agreed {
        s2m_rings: 1,
        m2s_rings: 2,
        log2_ring_size: 9,
        offload: true,
    };
    assert_eq!(step, Ok(Step::Prepare(agreed)));
    slave.offer(offer());
    let said: Vec<_> = std::iter::from_fn(|| slave.next_message()).collect();
    let name = Text::new("millstream offload/1");
    let own = Init { name, ..init() };
    let expected = [
        (Message::Init(own), None),
        (region(0, 4096), Some(1)),
        (ring(true, 0), Some(2)),
        (ring(false, 0), Some(3)),
        (ring(false, 1), Some(4)),
        (Message::Connect(name), None),
    ];
    assert_eq!(said, expected);
    let connected = Message::Connected(Text::new("x"));
    let early = slave.on_message(connected, None, false);
    assert_eq!(early, Err(Refusal::Unexpected));
    for _ in 0..5 {
        let step = slave.on_message(Message::Ack, None, false);
        assert_eq!(step, Ok(Step::Nothing));
    }
    let more = slave.on_message(Message::Ack, None, false);
    assert_eq!(more, Err(Refusal::Unexpected));
    assert_eq!(slave.on_message(connected, None, false), Ok(Step::Up));
    assert!(slave.is_up());
}

#[test]
fn a_slave_refuses_masters_of_other_versions_and_messages_out_of_order() {
    let check = |change: fn(&mut Hello), expected: Option<Refusal>| {
        let mut hello = hello();
        change(&mut hello);
        let found = Handshake::<u32>::slave(terms()).on_message(Message::Hello(hello), None, false);
        assert_eq!(found.err(), expected);
    };
    check(|_| {}, None);
    check(|hello| hello.version_min = 0x0201, Some(Refusal::Version));
    check(|hello| hello.version_max = 0x01ff, Some(Refusal::Version));
    check(
        |hello| (hello.version_min, hello.version_max) = (0, u16::MAX),
        None,
    );
    let mut fresh = Handshake::<u32>::slave(terms());
    let found = fresh.on_message(Message::Ack, None, false);
    assert_eq!(found, Err(Refusal::Unexpected));
    let again = offered().on_message(Message::Hello(hello()), None, false);
    assert_eq!(again, Err(Refusal::Unexpected));
    let unwanted = offered().on_message(Message::Ack, Some(1), false);
    assert_eq!(unwanted, Err(Refusal::DescriptorUnwanted));
}

#[test]
fn rings_without_end_are_as_many_as_wanted() {
    let mut hello = hello();
    (hello.m2s_ring_max, hello.s2m_ring_max) = (u16::MAX, u16::MAX);
    let step = Handshake::<u32>::slave(terms()).on_message(Message::Hello(hello), None, false);
    let Ok(Step::Prepare(agreed)) = step else {
        panic!("{step:?}");
    };
    assert_eq!((agreed.s2m_rings, agreed.m2s_rings), (2, 2));
}

#[test]
fn large_segments_pass_only_if_both_ends_announce_them() {
    let check = |ours, theirs: &str, expected| {
        let mut terms = terms();
        terms.offload = ours;
        let mut hello = hello();
        hello.name = Text::new(theirs);
        let mut slave = Handshake::<u32>::slave(terms.clone());
        let step = slave.on_message(Message::Hello(hello), None, false);
        assert!(matches!(step, Ok(Step::Prepare(agreed)) if agreed.offload == expected));
        let mut master = Handshake::master(terms);
        let mut script = script();
        let name = Text::new(theirs);
        script[0].0 = Message::Init(Init { name, ..init() });
        let step = tell(&mut master, script, false);
        assert!(matches!(step, Ok(Step::Map(_, agreed)) if agreed.offload == expected));
    };
    check(true, "millstream offload/1", true);
    check(false, "millstream offload/1", false);
    check(true, "millstream", false);
    check(true, "millstream offload/10", false);
    check(true, "VPP 23.10", false);
    check(true, "", false);
}

#[test]
fn a_peer_may_leave_at_any_time() {
    let leave = Message::Disconnect {
        code: 3,
        reason: Text::new("bye"),
    };
    let left = Ok(Step::Left("bye".to_owned()));
    for told in 0..=5 {
        let mut master = Handshake::master(terms());
        let script = script().into_iter().take(told).collect();
        tell(&mut master, script, false).unwrap();
        assert_eq!(master.on_message(leave, None, false), left);
        let after = master.on_message(Message::Ack, None, false);
        assert_eq!(after, Err(Refusal::Unexpected));
    }
    assert_eq!(offered().on_message(leave, None, false), left);
}
