//! What must hold of the ends of memif's rings whatever the peer writes into the shared memory: an input is a script of
//! writes of the peer and calls of ours. Nothing may panic, no frame may be longer than its place, and between two
//! times that buffers are given back no more frames may be taken or put than the ring has descriptors.

use mill_device::memif::handshake::Agreed;
use mill_device::memif::layout::Layout;
use mill_device::memif::receiver::{Receiver, Taken};
use mill_device::memif::ring::{Descriptor, Index, Ring};
use mill_device::memif::transmitter::Transmitter;
use mill_sys::memory::{Pages, SharedMemory};

/// What a script came to, so that tests can see that theirs were about something.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) taken: u32,
    pub(crate) refused: u32,
    pub(crate) put: u32,
    /// Whether the peer was caught at writing nonsense.
    pub(crate) broken: bool,
}

/// Panics if an end breaks a promise on `input`.
pub(crate) fn check(input: &[u8]) -> Outcome {
    let mut script = Script(input);
    let mut world = World::new(script.byte());
    for _ in 0..ACTS_MAX {
        if script.0.is_empty() || world.outcome.broken {
            break;
        }
        world.act(&mut script);
    }
    let untaken = world.transmitter.count_untaken(&world.regions);
    assert!(
        untaken <= u64::from(world.size),
        "{untaken} frames under way"
    );
    world.outcome
}

/// What is left of an input; zeros behind its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A number near 0, near a boundary, or any.
    fn number(&mut self) -> u32 {
        let kind = self.byte();
        let small = u32::from(self.word());
        match kind % 8 {
            0..=3 => small % 512,
            4 => small,
            5 => u32::try_from(REGION_BYTES)
                .unwrap_or(0)
                .wrapping_sub(small % 512),
            6 => u32::MAX - small % 8,
            _ => small << 16 | u32::from(self.word()),
        }
    }
}

/// One end of both rings, and what the peer sees of them.
struct World {
    regions: Vec<SharedMemory>,
    /// Frames to us, frames from us.
    rings: [Ring; 2],
    receiver: Receiver,
    transmitter: Transmitter,
    place: Vec<u8>,
    size: u16,
    /// Since buffers were given back, since frames were published.
    taken: u16,
    put: u16,
    outcome: Outcome,
}

impl World {
    fn new(settings: u8) -> Self {
        let log2_ring_size = settings >> 1 & 7;
        let agreed = Agreed {
            s2m_rings: 1,
            m2s_rings: 1,
            log2_ring_size,
            offload: false,
        };
        let layout = Layout::new(agreed, 64).expect("rings this small have room");
        let memory = |bytes| SharedMemory::create("fuzz", bytes, Pages::Small);
        let regions = [REGION_BYTES, 4096].map(|bytes| memory(bytes).expect("memory"));
        let regions = Vec::from(regions);
        let ring = |offsets: &[u32]| {
            let ring = Ring::new(&regions, 0, offsets[0], log2_ring_size);
            let ring = ring.expect("the region is large enough");
            ring.initialise(&regions);
            ring
        };
        let (s2m, m2s) = (ring(&layout.s2m), ring(&layout.m2s));
        let (rings, mut receiver, transmitter) = if settings & 1 == 0 {
            let receiver = Receiver::of_master(s2m);
            ([s2m, m2s], receiver, Transmitter::of_master(m2s))
        } else {
            let receiver = Receiver::of_slave(m2s, layout.buffers(1));
            let transmitter = Transmitter::of_slave(s2m, layout.buffers(0));
            ([m2s, s2m], receiver, transmitter)
        };
        receiver.start(&regions);
        Self {
            regions,
            rings,
            receiver,
            transmitter,
            place: vec![0; 200],
            size: 1 << log2_ring_size,
            taken: 0,
            put: 0,
            outcome: Outcome::default(),
        }
    }

    fn act(&mut self, script: &mut Script<'_>) {
        let which = script.byte();
        let ring = self.rings[usize::from(which >> 4 & 1)];
        let index = if which & 32 == 0 {
            Index::Head
        } else {
            Index::Tail
        };
        match which % 12 {
            0 => ring.publish(&self.regions, index, script.word()),
            // A peer that goes on, as an honest one does; further than it may, now and then.
            1..=3 => {
                let step = u16::from(script.byte() % 4);
                let count = ring.look(&self.regions, index).wrapping_add(step);
                ring.publish(&self.regions, index, count);
            }
            4 | 5 => {
                let count = script.word();
                let descriptor = Descriptor {
                    has_next: script.byte().is_multiple_of(4),
                    region: u16::from(script.byte() % 4),
                    len: script.number(),
                    offset: script.number(),
                    metadata: script.number(),
                };
                ring.set_descriptor(&self.regions, count, descriptor);
            }
            6 => {
                let at = usize::from(script.word());
                let bytes = script.word().to_le_bytes();
                // What lies outside is not written.
                let _ = self.regions[0].write(at, &bytes);
            }
            7 | 8 => self.take(),
            9 => {
                self.receiver.give_back(&self.regions, true);
                self.taken = 0;
            }
            10 => self.put(usize::from(script.byte()) + 1),
            _ => {
                self.transmitter.publish(&self.regions);
                self.put = 0;
            }
        }
    }

    fn take(&mut self) {
        match self.receiver.take(&self.regions, &mut self.place) {
            Ok(Taken::Frame { len, .. }) => {
                assert!((1..=self.place.len()).contains(&len), "a frame of {len}");
                self.taken += 1;
                self.outcome.taken += 1;
            }
            Ok(Taken::Refused) => {
                self.taken += 1;
                self.outcome.refused += 1;
            }
            Ok(Taken::Nothing) => {}
            Err(_) => self.outcome.broken = true,
        }
        assert!(self.taken <= self.size, "more frames than descriptors");
    }

    fn put(&mut self, len: usize) {
        let frame = vec![0xaa; len];
        match self.transmitter.put(&self.regions, &frame, 7) {
            Ok(true) => {
                self.put += 1;
                self.outcome.put += 1;
            }
            Ok(false) => {}
            Err(_) => self.outcome.broken = true,
        }
        assert!(self.put <= self.size, "more frames than descriptors");
    }
}

/// Both rings and their buffers at their largest, and some more.
const REGION_BYTES: usize = 64 << 10;

/// Acts of one input: enough for rings of 128 to fill, few enough for thousands of inputs a second.
const ACTS_MAX: usize = 600;
