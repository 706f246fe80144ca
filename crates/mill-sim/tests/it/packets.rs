//! Frames on wires that mistreat them, without any stack: what goes in, and what comes out when.

mod frame;
mod scrutiny;

use frame::{Frame, has_right_sums, payload_of};
use mill_runtime::time::Duration;
use mill_sim::packet::ethernet::StationOptions;
use mill_sim::packet::sim_link::SimLink;
use mill_sim::packet::wire::{Loss, Wire};
use mill_sim::world::World;
use mill_stack::link::{Burst, Link, ReceivedChecksum};

const MS: Duration = Duration::from_millis(1);

/// A cable with a host at each end.
struct Cable {
    world: World,
    a: SimLink,
    b: SimLink,
}

impl Cable {
    fn new(seed: u64, sender: StationOptions, receiver: StationOptions) -> Self {
        let world = World::new(seed);
        let ethernet = world.ethernet();
        let (a, b) = (ethernet.plug(sender, None), ethernet.plug(receiver, None));
        Self { world, a, b }
    }

    fn plain(seed: u64, wire: Wire) -> Self {
        let cable = Self::new(seed, StationOptions::new(1500), StationOptions::new(1500));
        cable.a.station().set_wires(wire, Wire::IDEAL);
        cable
    }

    fn send(&mut self, frame: &Frame) {
        let (from, to) = if frame.is_answer {
            (&mut self.b, &mut self.a)
        } else {
            (&mut self.a, &mut self.b)
        };
        let (bytes, offload) = frame.emit(from, to);
        let room = from.reserve(bytes.len()).expect("the card has room");
        room.copy_from_slice(&bytes);
        from.transmit(bytes.len(), offload);
        from.flush();
    }

    /// What has come to `b`: when, what its card says of the checksum, and the bytes.
    fn arrivals(&mut self) -> Vec<(Duration, ReceivedChecksum, Vec<u8>)> {
        let mut all = Vec::new();
        loop {
            let elapsed = self.world.elapsed();
            for (checksum, bytes) in take(&mut self.b) {
                all.push((elapsed, checksum, bytes));
            }
            if !self.world.step(None) {
                return all;
            }
        }
    }
}

fn take(link: &mut SimLink) -> Vec<(ReceivedChecksum, Vec<u8>)> {
    let mut taken = Vec::new();
    while link.has_frames() {
        let mut burst = Burst::new(3);
        link.receive(&mut burst);
        for received in burst.as_slice() {
            taken.push((received.checksum, link.frame(received.id).to_vec()));
            link.release(received.id);
        }
    }
    assert_eq!(link.station().held(), 0);
    taken
}

/// Which of `count` numbered frames come through a wire, in which order and when.
fn through(wire: Wire, count: u32) -> Vec<(u32, Duration)> {
    let mut cable = Cable::plain(1, wire);
    for number in 0..count {
        cable.send(&Frame::data(number, 100));
    }
    let arrivals = cable.arrivals().into_iter();
    arrivals
        .map(|(at, _, bytes)| (frame::seq_of(&bytes), at))
        .collect()
}

#[test]
fn a_wire_takes_the_time_that_its_delay_and_rate_say() {
    let wire = Wire::delayed(5 * MS);
    assert_eq!(through(wire, 2), [(0, 5 * MS), (1, 5 * MS)]);
    // 154 bytes: Ethernet 14, IPv4 20, TCP 20, payload 100.
    let slow = Wire {
        bits_per_second: Some(154 * 8 * 1000),
        ..wire
    };
    assert_eq!(through(slow, 3), [(0, 6 * MS), (1, 7 * MS), (2, 8 * MS)]);
}

#[test]
fn a_full_queue_drops_what_comes_last() {
    let wire = Wire {
        bits_per_second: Some(154 * 8 * 1000),
        queue_bytes: 3 * 154,
        ..Wire::IDEAL
    };
    let arrived: Vec<u32> = through(wire, 10).iter().map(|(seq, _)| *seq).collect();
    assert_eq!(arrived, [0, 1, 2]);
}

#[test]
fn what_is_listed_is_lost_and_what_is_cut_carries_nothing() {
    let wire = Wire {
        loss: Loss::Listed(&[1, 3]),
        ..Wire::IDEAL
    };
    let arrived: Vec<u32> = through(wire, 5).iter().map(|(seq, _)| *seq).collect();
    assert_eq!(arrived, [0, 2, 4]);
    let cut = Wire {
        cut: true,
        ..Wire::IDEAL
    };
    assert_eq!(through(cut, 5), []);
}

#[test]
fn jitter_keeps_the_order_and_reordering_does_not() {
    let jittery = Wire {
        jitter: 20 * MS,
        ..Wire::IDEAL
    };
    let arrived = through(jittery, 50);
    assert!(arrived.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(arrived.windows(2).any(|pair| pair[0].1 < pair[1].1));
    let reordering = Wire {
        reorder_per_million: 300_000,
        reorder_delay: 20 * MS,
        ..Wire::IDEAL
    };
    let arrived = through(reordering, 50);
    assert_eq!(arrived.len(), 50);
    assert!(arrived.windows(2).any(|pair| pair[0].0 > pair[1].0));
}

#[test]
fn duplicates_come_twice() {
    let wire = Wire {
        duplicate_per_million: 1_000_000,
        ..Wire::IDEAL
    };
    let arrived: Vec<u32> = through(wire, 2).iter().map(|(seq, _)| *seq).collect();
    assert_eq!(arrived, [0, 0, 1, 1]);
}

#[test]
fn whatever_is_corrupted_is_noticed() {
    let wire = Wire {
        corrupt_per_million: 1_000_000,
        ..Wire::IDEAL
    };
    for (seed, vouches) in [
        (1, ReceivedChecksum::Verified),
        (2, ReceivedChecksum::Unverified),
    ] {
        let mut receiver = StationOptions::new(1500);
        receiver.vouches = vouches;
        let mut cable = Cable::new(seed, StationOptions::new(1500), receiver);
        cable.a.station().set_wires(wire, Wire::IDEAL);
        for number in 0..3000 {
            cable.send(&Frame::data(
                number,
                usize::try_from(number % 700).expect("small"),
            ));
        }
        let arrivals = cable.arrivals();
        // A changed target reaches no station or all; here there is only one other station.
        assert_eq!(arrivals.len(), 3000);
        let mut right = 0;
        for (_, checksum, bytes) in &arrivals {
            assert_eq!(*checksum, ReceivedChecksum::Unverified);
            right +=
                usize::from(has_right_sums(bytes) && bytes[..6] == cable.b.properties().address);
        }
        assert_eq!(right, 0);
    }
}

/// Two changes could cancel each other in a sum of 16 bits.
#[test]
fn two_bad_wires_corrupt_a_frame_once() {
    let wire = Wire {
        corrupt_per_million: 1_000_000,
        ..Wire::IDEAL
    };
    let arrivals = |wire: Wire| {
        let mut cable = Cable::new(1, StationOptions::new(1500), StationOptions::new(1500));
        cable.a.station().set_wires(wire, Wire::IDEAL);
        cable.b.station().set_wires(Wire::IDEAL, wire);
        for number in 0..100 {
            cable.send(&Frame::data(number, 1000));
        }
        cable.arrivals()
    };
    let (sent, corrupted) = (arrivals(Wire::IDEAL), arrivals(wire));
    assert_eq!((sent.len(), corrupted.len()), (100, 100));
    for ((.., sent), (.., corrupted)) in sent.iter().zip(&corrupted) {
        let differs = |at: &usize| sent[*at] != corrupted[*at];
        let first = (0..sent.len()).find(differs).expect("it was corrupted");
        let last = (0..sent.len()).rfind(differs).expect("it was corrupted");
        // Fifteen bits, perhaps on both sides of the source address.
        assert!(last - first <= 8, "{first} {last}");
    }
}

#[test]
fn a_segment_larger_than_the_mtu_is_cut_by_the_card() {
    let mut sender = StationOptions::new(1500);
    (sender.completes_checksums, sender.segment_bytes_max) = (true, 65_535);
    let mut cable = Cable::new(1, sender, StationOptions::new(1500));
    let frame = Frame::data(u32::MAX - 99, 3000).segmented(1460).finishing();
    cable.send(&frame);
    let arrivals = cable.arrivals();
    assert_eq!(arrivals.len(), 3);
    let mut payload = Vec::new();
    for (_, checksum, bytes) in &arrivals {
        assert!(has_right_sums(bytes), "{bytes:02x?}");
        assert_eq!(*checksum, ReceivedChecksum::Unverified);
        payload.extend_from_slice(payload_of(bytes));
    }
    assert_eq!(payload, frame.payload);
    let seqs: Vec<u32> = arrivals
        .iter()
        .map(|(.., bytes)| frame::seq_of(bytes))
        .collect();
    assert_eq!(seqs, [u32::MAX - 99, 1360, 2820]);
    // FIN stays with the last, CWR with the first.
    let flags: Vec<u8> = arrivals
        .iter()
        .map(|(.., bytes)| bytes[14 + 20 + 13])
        .collect();
    assert_eq!(flags, [0x90, 0x10, 0x11]);
}

#[test]
fn a_receiver_that_merges_gets_it_whole() {
    let mut sender = StationOptions::new(1500);
    (sender.completes_checksums, sender.segment_bytes_max) = (true, 65_535);
    let mut receiver = StationOptions::new(1500);
    receiver.merges = true;
    let mut cable = Cable::new(1, sender, receiver);
    cable.send(&Frame::data(0, 3000).segmented(1460));
    let arrivals = cable.arrivals();
    assert_eq!(arrivals.len(), 1);
    assert_eq!(arrivals[0].1, ReceivedChecksum::MaybePartial);
    assert_eq!(payload_of(&arrivals[0].2).len(), 3000);
}

#[test]
fn a_router_tells_what_would_have_fitted() {
    let narrow = Wire {
        mtu: Some(1000),
        ..Wire::delayed(3 * MS)
    };
    let mut cable = Cable::plain(1, narrow);
    cable.send(&Frame::data(0, 960));
    cable.send(&Frame::data(0, 961));
    assert_eq!(cable.arrivals().len(), 1);
    let told = take(&mut cable.a);
    assert_eq!(told.len(), 1);
    let message = &told[0].1;
    assert!(has_right_sums(message));
    assert_eq!(message[..6], cable.a.properties().address);
    assert_eq!(message[34..42][..2], [3, 4]);
    assert_eq!(message[40..42], 1000u16.to_be_bytes());
    let ladder = cable.world.segments(9);
    assert!(
        ladder.contains("(961)") && ladder.contains("out: lost, larger than 1000"),
        "{ladder}"
    );
    assert!(ladder.contains("packet too big, MTU 1000"), "{ladder}");
}

#[test]
fn congestion_is_marked_where_the_packet_may_be_marked() {
    let wire = Wire {
        bits_per_second: Some(1_000_000),
        mark_bytes: Some(200),
        ..Wire::IDEAL
    };
    for (ecn, expected) in [(0, [0, 0, 0, 0]), (2, [2, 2, 3, 3]), (3, [3, 3, 3, 3])] {
        let mut cable = Cable::plain(1, wire);
        for number in 0..4 {
            cable.send(&Frame::data(number, 100).with_ecn(ecn));
        }
        let arrivals = cable.arrivals();
        assert!(arrivals.iter().all(|(.., bytes)| has_right_sums(bytes)));
        let marks: Vec<u8> = arrivals.iter().map(|(.., bytes)| bytes[15] & 3).collect();
        assert_eq!(marks, expected);
    }
}

#[test]
fn a_full_card_wakes_the_host_that_waits_for_it() {
    let mut sender = StationOptions::new(1500);
    sender.card_bytes = Some(400);
    let mut cable = Cable::new(1, sender, StationOptions::new(1500));
    let wire = Wire {
        bits_per_second: Some(154 * 8 * 1000),
        ..Wire::IDEAL
    };
    cable.a.station().set_wires(wire, Wire::IDEAL);
    for number in 0..3 {
        cable.send(&Frame::data(number, 100));
    }
    assert!(cable.a.reserve(60).is_none());
    // Two hundred bytes wait when 262 of 462 have left.
    while cable.a.reserve(60).is_none() {
        assert!(
            cable.world.step(None),
            "something happens before there is room"
        );
    }
    assert_eq!(cable.world.elapsed(), MS);
}

#[test]
fn a_switch_sends_to_known_stations_and_else_to_all() {
    let world = World::new(1);
    let ethernet = world.ethernet();
    let plug = || ethernet.plug(StationOptions::new(1500), None);
    let (mut a, mut b, mut c) = (plug(), plug(), plug());
    let mut other = world.ethernet().plug(StationOptions::new(1500), None);
    for broadcast in [false, true] {
        let (mut bytes, offload) = Frame::data(0, 10).emit(&a, &b);
        if broadcast {
            bytes[..6].fill(0xff);
        }
        let room = a.reserve(bytes.len()).expect("room");
        room.copy_from_slice(&bytes);
        a.transmit(bytes.len(), offload);
        let counts = [&mut a, &mut b, &mut c, &mut other].map(|link| take(link).len());
        assert_eq!(counts, [0, 1, usize::from(broadcast), 0]);
    }
}

#[test]
fn the_ladder_says_what_was_sent_and_what_became_of_it() {
    let wire = Wire {
        loss: Loss::Listed(&[1]),
        ..Wire::delayed(10 * MS)
    };
    let mut cable = Cable::plain(1, wire);
    cable.send(&Frame::syn(1000));
    cable.send(&Frame::data(1001, 200));
    cable.send(&Frame::data(1201, 0).finishing());
    assert_eq!(
        cable.world.segments(99),
        "      0.000 ms  a  10.0.0.1:1000 > 10.0.0.2:80  S   seq 0  win 65535  <mss 1460>\n\
         \u{20}     0.000 ms  a  10.0.0.1:1000 > 10.0.0.2:80  A   seq 1:201 (200)  ack 7  win 65535  | out: lost\n\
         \u{20}     0.000 ms  a  10.0.0.1:1000 > 10.0.0.2:80  FAW seq 201  ack 7  win 65535\n"
    );
    assert_eq!(cable.world.segments(1).lines().count(), 1);
}
