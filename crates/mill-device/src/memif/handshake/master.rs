//! The master's side: it announces its limits, then checks what it is offered.

use super::super::message::{AddRegion, AddRing, Hello, Init, Message};
use super::{
    Agreed, Handshake, LOG2_RING_SIZE_MAX, MODE_ETHERNET, Offer, REGIONS_BYTES_MAX, REGIONS_MAX,
    Refusal, State, Step, Terms, VERSION,
};

impl<D> Handshake<D> {
    /// A master's end of a new connection. `terms.rings` is at least 1.
    pub fn master(terms: Terms) -> Self {
        debug_assert!(terms.rings > 0 && terms.log2_ring_size <= LOG2_RING_SIZE_MAX);
        let mut master = Self::with_state(terms, State::WantsInit);
        let ring_max = master.terms.rings.saturating_sub(1);
        master.say(Message::Hello(Hello {
            name: master.name(),
            version_min: VERSION,
            version_max: VERSION,
            region_max: u16::try_from(REGIONS_MAX - 1).unwrap_or(u16::MAX),
            m2s_ring_max: ring_max,
            s2m_ring_max: ring_max,
            log2_ring_size_max: master.terms.log2_ring_size,
        }));
        master
    }

    /// Called when the offer is mapped.
    pub fn accept(&mut self) {
        debug_assert_eq!(self.state, State::Mapping);
        self.say(Message::Connected(self.name()));
        self.state = State::Up;
    }

    pub(super) fn on_init(&mut self, init: &Init, is_busy: bool) -> Result<Step<D>, Refusal> {
        if init.version != VERSION {
            return Err(Refusal::Version);
        }
        if init.id != self.terms.id {
            return Err(Refusal::Id);
        }
        if init.mode != MODE_ETHERNET {
            return Err(Refusal::Mode);
        }
        if self.terms.secret != [0; 24] && !is_equal(&self.terms.secret, &init.secret) {
            return Err(Refusal::Secret);
        }
        if is_busy {
            return Err(Refusal::Busy);
        }
        self.terms.offload = self.agreed_offload(&init.name);
        self.state = State::WantsOffer;
        self.say(Message::Ack);
        Ok(Step::Nothing)
    }

    pub(super) fn on_region(
        &mut self,
        region: AddRegion,
        descriptor: D,
    ) -> Result<Step<D>, Refusal> {
        let regions = &mut self.offer.regions;
        if usize::from(region.index) != regions.len() || regions.len() >= REGIONS_MAX {
            return Err(Refusal::RegionIndex);
        }
        let so_far: u64 = regions.iter().map(|(other, _)| other.size_bytes).sum();
        let left = REGIONS_BYTES_MAX.saturating_sub(so_far);
        if !(1..=left).contains(&region.size_bytes) {
            return Err(Refusal::RegionSize);
        }
        regions.push((region, descriptor));
        self.say(Message::Ack);
        Ok(Step::Nothing)
    }

    pub(super) fn on_ring(&mut self, ring: AddRing, descriptor: D) -> Result<Step<D>, Refusal> {
        let rings = if ring.is_s2m {
            &mut self.offer.s2m
        } else {
            &mut self.offer.m2s
        };
        if usize::from(ring.index) != rings.len() || ring.index >= self.terms.rings {
            return Err(Refusal::RingIndex);
        }
        if usize::from(ring.region) >= self.offer.regions.len() {
            return Err(Refusal::RingRegion);
        }
        if ring.log2_size > self.terms.log2_ring_size {
            return Err(Refusal::RingSize);
        }
        if ring.private_header_bytes != 0 {
            return Err(Refusal::PrivateHeader);
        }
        rings.push((ring, descriptor));
        self.say(Message::Ack);
        Ok(Step::Nothing)
    }

    pub(super) fn on_connect(&mut self) -> Result<Step<D>, Refusal> {
        if self.offer.s2m.is_empty() || self.offer.m2s.is_empty() {
            return Err(Refusal::NoRing);
        }
        let agreed = Agreed {
            s2m_rings: count(&self.offer.s2m),
            m2s_rings: count(&self.offer.m2s),
            log2_ring_size: self.terms.log2_ring_size,
            offload: self.terms.offload,
        };
        self.state = State::Mapping;
        let offer = std::mem::replace(&mut self.offer, Offer::new());
        Ok(Step::Map(offer, agreed))
    }
}

fn count<D>(rings: &[(AddRing, D)]) -> u16 {
    u16::try_from(rings.len()).unwrap_or(u16::MAX)
}

/// Compares in constant time.
fn is_equal(one: &[u8; 24], other: &[u8; 24]) -> bool {
    let mut differences = 0;
    for (one, other) in one.iter().zip(other) {
        differences |= one ^ other;
    }
    differences == 0
}
