//! Invariants of memif's handshake for any messages of the peer: an input is a sequence of messages, some of them
//! random bytes, some nearly valid. Nothing may panic, each message is answered by at most one (a slave's offer
//! apart), what a master maps is within its limits, and a side that has refused or was left ignores further messages.

use mill_device::memif::handshake::{Agreed, Handshake, Offer, Step, Terms};
use mill_device::memif::layout::Layout;
use mill_device::memif::message::{AddRegion, AddRing, MESSAGE_BYTES, Message};

/// What a conversation came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) mapped: bool,
    pub(crate) up: bool,
    pub(crate) refused: bool,
}

/// Panics if a handshake breaks a promise on `input`.
pub(crate) fn check(input: &[u8]) -> Outcome {
    let Some((settings, mut rest)) = input.split_first() else {
        return Outcome::default();
    };
    let terms = Terms {
        id: 0,
        secret: [0; 24],
        rings: RINGS,
        log2_ring_size: LOG2_RING_SIZE,
        offload: settings & 2 == 0,
    };
    let mut talk = Talk {
        handshake: if settings & 1 == 0 {
            Handshake::master(terms)
        } else {
            Handshake::slave(terms)
        },
        outcome: Outcome::default(),
    };
    talk.drain(1);
    for _ in 0..MESSAGES_MAX {
        let Some((head, behind)) = rest.split_first() else {
            break;
        };
        // The head says how many bytes of the input this message has, and whether a descriptor is with it.
        let len = usize::from(head & 0x7f).min(behind.len());
        let (bytes, behind) = behind.split_at(len);
        rest = behind;
        let mut whole = [0; MESSAGE_BYTES];
        whole[..len].copy_from_slice(bytes);
        let Ok(message) = Message::parse(&whole) else {
            continue;
        };
        let again = Message::parse(&message.emit());
        assert_eq!(again, Ok(message), "what is emitted is parsed");
        if !talk.hear(message, (head & 0x80 != 0).then_some(9)) {
            break;
        }
    }
    talk.outcome
}

struct Talk {
    handshake: Handshake<u32>,
    outcome: Outcome,
}

impl Talk {
    /// False once this end listens no more.
    fn hear(&mut self, message: Message, descriptor: Option<u32>) -> bool {
        let was_up = self.handshake.is_up();
        match self.handshake.on_message(message, descriptor, false) {
            Ok(Step::Nothing) => self.drain(1),
            Ok(Step::Prepare(agreed)) => {
                within_limits(&agreed);
                let offer = offer(&agreed);
                let count = 2 + offer.regions.len() + offer.s2m.len() + offer.m2s.len();
                self.handshake.offer(offer);
                self.drain(count);
            }
            Ok(Step::Map(offer, agreed)) => {
                within_limits(&agreed);
                check_offer(&offer);
                self.handshake.accept();
                self.outcome.mapped = true;
                self.outcome.up = true;
                self.drain(1);
            }
            Ok(Step::Up) => self.outcome.up = true,
            Ok(Step::Left(_)) => {
                assert!(self.is_deaf(), "a side that was left ignores messages");
                return false;
            }
            Err(refusal) => {
                self.outcome.refused = true;
                self.handshake.refuse(refusal);
                self.drain(1);
                assert!(self.is_deaf(), "a side that has refused ignores messages");
                return false;
            }
        }
        assert!(!was_up, "only an end can follow");
        true
    }

    fn is_deaf(&mut self) -> bool {
        self.handshake
            .on_message(Message::Ack, None, false)
            .is_err()
    }

    fn drain(&mut self, count_max: usize) {
        let said = std::iter::from_fn(|| self.handshake.next_message()).count();
        assert!(said <= count_max, "{said} answers");
    }
}

fn within_limits(agreed: &Agreed) {
    assert!((1..=RINGS).contains(&agreed.s2m_rings), "{agreed:?}");
    assert!((1..=RINGS).contains(&agreed.m2s_rings), "{agreed:?}");
    assert!(agreed.log2_ring_size <= LOG2_RING_SIZE, "{agreed:?}");
}

fn check_offer(offer: &Offer<u32>) {
    let bytes: u64 = offer
        .regions
        .iter()
        .map(|(region, _)| region.size_bytes)
        .sum();
    assert!(bytes <= 4 << 30, "{bytes} bytes to be mapped");
    for (index, (region, _)) in offer.regions.iter().enumerate() {
        assert_eq!(usize::from(region.index), index);
    }
    for rings in [&offer.s2m, &offer.m2s] {
        assert!(rings.len() <= usize::from(RINGS));
        for (index, (ring, _)) in rings.iter().enumerate() {
            assert_eq!(usize::from(ring.index), index);
            assert!(usize::from(ring.region) < offer.regions.len());
            assert!(ring.log2_size <= LOG2_RING_SIZE);
        }
    }
}

fn offer(agreed: &Agreed) -> Offer<u32> {
    let layout = Layout::new(*agreed, 64).expect("rings this small have room");
    let rings = |offsets: &[u32], is_s2m| {
        let ring = |(index, offset): (u16, &u32)| {
            let ring = AddRing {
                is_s2m,
                index,
                region: 0,
                offset: *offset,
                log2_size: agreed.log2_ring_size,
                private_header_bytes: 0,
            };
            (ring, 1)
        };
        (0..).zip(offsets).map(ring).collect()
    };
    let region = AddRegion {
        index: 0,
        size_bytes: layout.region_bytes.into(),
    };
    Offer {
        regions: vec![(region, 1)],
        s2m: rings(&layout.s2m, true),
        m2s: rings(&layout.m2s, false),
    }
}

/// What this end takes.
const RINGS: u16 = 3;
const LOG2_RING_SIZE: u8 = 10;

/// Messages of one input: more than a handshake can have.
const MESSAGES_MAX: usize = 200;
