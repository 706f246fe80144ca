//! The slave's side: it learns the master's limits, then offers its memory.

use super::super::message::{Hello, Init, Message};
use super::{
    Agreed, Handshake, LOG2_RING_SIZE_MAX, MODE_ETHERNET, Offer, Refusal, State, Step, Terms,
    VERSION,
};

impl<D> Handshake<D> {
    /// A slave's end of a new connection. `terms.rings` is at least 1.
    pub fn slave(terms: Terms) -> Self {
        debug_assert!(terms.rings > 0 && terms.log2_ring_size <= LOG2_RING_SIZE_MAX);
        Self::with_state(terms, State::WantsHello)
    }

    /// Offers the memory that `Step::Prepare` asked for.
    pub fn offer(&mut self, offer: Offer<D>) {
        debug_assert_eq!(self.state, State::Preparing);
        self.say(Message::Init(Init {
            version: VERSION,
            id: self.terms.id,
            mode: MODE_ETHERNET,
            secret: self.terms.secret,
            name: self.name(),
        }));
        for (region, descriptor) in offer.regions {
            let message = Message::AddRegion(region);
            self.outgoing.push_back((message, Some(descriptor)));
        }
        for (ring, descriptor) in offer.s2m.into_iter().chain(offer.m2s) {
            let message = Message::AddRing(ring);
            self.outgoing.push_back((message, Some(descriptor)));
        }
        self.acks_due = self.outgoing.len();
        self.say(Message::Connect(self.name()));
        self.state = State::WantsConnected;
    }

    pub(super) fn on_hello(&mut self, hello: &Hello) -> Result<Step<D>, Refusal> {
        if !(hello.version_min..=hello.version_max).contains(&VERSION) {
            return Err(Refusal::Version);
        }
        // The message has the highest index, one less than the number.
        let rings = |max: u16| self.terms.rings.min(max.saturating_add(1));
        let agreed = Agreed {
            s2m_rings: rings(hello.s2m_ring_max),
            m2s_rings: rings(hello.m2s_ring_max),
            log2_ring_size: self.terms.log2_ring_size.min(hello.log2_ring_size_max),
            offload: self.agreed_offload(&hello.name),
        };
        self.state = State::Preparing;
        Ok(Step::Prepare(agreed))
    }

    pub(super) fn on_ack(&mut self) -> Result<Step<D>, Refusal> {
        self.acks_due = self.acks_due.checked_sub(1).ok_or(Refusal::Unexpected)?;
        Ok(Step::Nothing)
    }

    pub(super) fn on_connected(&mut self) -> Result<Step<D>, Refusal> {
        if self.acks_due > 0 {
            return Err(Refusal::Unexpected);
        }
        self.state = State::Up;
        Ok(Step::Up)
    }
}
