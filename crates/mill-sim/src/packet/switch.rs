//! Stations, switches, and the way from one to the other.

use super::carrier::{Carrier, Effect, Outcome};
use super::conduct::Conduct;
use super::ethernet::{StationCounts, StationOptions};
use super::flying::Flying;
use super::router::{self, TooBig};
use super::scrutiny::scrutinise;
use super::trace::{Leg, Trace};
use super::wire::Wire;
use crate::agenda::Event;
use crate::network::Network;
use mill_runtime::time::Instant;
use mill_stack::link::{LinkProperties, Offload};
use std::collections::VecDeque;

/// All stations of a world.
#[derive(Debug)]
pub(crate) struct Packets {
    pub(super) stations: Vec<Station>,
    pub(crate) switches: usize,
    /// Empty buffers.
    pool: Vec<Vec<u8>>,
    pub(crate) trace: Trace,
    conduct: Conduct,
}

/// One host's place at a switch.
#[derive(Debug)]
pub(super) struct Station {
    pub(super) switch: usize,
    pub(super) properties: LinkProperties,
    pub(super) options: StationOptions,
    /// The engine to be woken.
    pub(super) engine: Option<usize>,
    /// Frames that have arrived and were not taken.
    pub(super) ring: VecDeque<Flying>,
    /// Frames that the host has taken and not released.
    pub(super) held: usize,
    pub(super) outward: Carrier,
    pub(super) inward: Carrier,
    /// The host found the card full, and is to be woken when it is not any more.
    is_starved: bool,
    has_room_again: bool,
    pub(super) counts: StationCounts,
}

impl Packets {
    pub(crate) const fn new() -> Self {
        Self {
            stations: Vec::new(),
            switches: 0,
            pool: Vec::new(),
            trace: Trace::new(),
            conduct: Conduct::new(),
        }
    }

    pub(super) fn add_station(
        &mut self,
        switch: usize,
        options: StationOptions,
        engine: Option<usize>,
        seeds: [u64; 2],
    ) -> usize {
        let index = self.stations.len();
        let [high, low] = u16::try_from(index + 1).unwrap_or(0).to_be_bytes();
        let properties = LinkProperties {
            // Locally administered, unicast (IEEE 802, 8.2.2).
            address: [2, 0, 0, 0, high, low],
            mtu: options.mtu,
            completes_checksums: options.completes_checksums,
            segment_bytes_max: options.segment_bytes_max.max(u32::from(options.mtu)),
            cut_bytes_min: 0,
            sends_external: options.segment_bytes_max > u32::from(options.mtu),
            frames_per_turn: usize::MAX,
        };
        self.stations.push(Station {
            switch,
            properties,
            options,
            engine,
            ring: VecDeque::new(),
            held: 0,
            outward: Carrier::new(Wire::IDEAL, seeds[0]),
            inward: Carrier::new(Wire::IDEAL, seeds[1]),
            is_starved: false,
            has_room_again: false,
            counts: StationCounts::default(),
        });
        index
    }

    /// Whether something waits at a station of this engine.
    pub(crate) fn concerns(&self, engine: usize) -> bool {
        let mut stations = self.stations.iter();
        stations.any(|it| it.engine == Some(engine) && (!it.ring.is_empty() || it.has_room_again))
    }

    /// The engine has been woken; frames that it leaves wake it again, room does not.
    pub(crate) fn on_woken(&mut self, engine: usize) {
        for station in &mut self.stations {
            if station.engine == Some(engine) {
                station.has_room_again = false;
            }
        }
    }

    pub(super) fn take_buffer(&mut self) -> Vec<u8> {
        self.pool.pop().unwrap_or_default()
    }

    pub(super) fn give_buffer(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.pool.push(buffer);
    }
}

impl Network {
    /// Whether a station's card takes another frame. If not, it wakes its host when it does.
    pub(super) fn card_has_room(&mut self, index: usize) -> bool {
        let now = self.now;
        let station = &mut self.packets.stations[index];
        let Some(bytes) = station.options.card_bytes else {
            return true;
        };
        if station.outward.backlog(now) < bytes {
            return true;
        }
        if !station.is_starved {
            station.is_starved = true;
            // Strictly later, lest a rounding makes the host ask for ever at one instant.
            let soon = now + mill_runtime::time::Duration::from_nanos(1);
            let at = station.outward.has_room_at(bytes).max(soon);
            self.agenda.enter(at, Event::CardHasRoom(index));
        }
        false
    }

    pub(crate) fn on_card_has_room(&mut self, index: usize) {
        let station = &mut self.packets.stations[index];
        station.is_starved = false;
        station.has_room_again = true;
    }

    /// A host sends a frame.
    pub(super) fn transmit(&mut self, index: usize, bytes: Vec<u8>, offload: Offload) {
        let now = self.now;
        let packets = &mut self.packets;
        let station = &mut packets.stations[index];
        let wrong = scrutinise(&bytes, offload, &station.properties)
            .and_then(|()| packets.conduct.observe(&bytes, offload));
        if let Err(what) = wrong {
            let _ = packets
                .trace
                .on_sent(now, index, &Flying::new(bytes, offload, index));
            let steps = self.packets.trace.text(40);
            panic!("a host sent a frame that is wrong: {what}; the last of these:\n{steps}");
        }
        station.counts.sent += 1;
        station.counts.sent_bytes += bytes.len() as u64;
        let frame = Flying::new(bytes, offload, index);
        if packets.travels_whole(index) {
            self.leave(index, frame, now);
            return;
        }
        let mut cut = std::mem::take(&mut self.packets.stations[index].options.cut);
        frame.cut(|| self.packets.take_buffer(), |piece| cut.push(piece));
        for piece in cut.drain(..) {
            self.leave(index, piece, now);
        }
        self.packets.stations[index].options.cut = cut;
    }

    fn leave(&mut self, index: usize, mut frame: Flying, now: Instant) {
        let Packets {
            stations, trace, ..
        } = &mut self.packets;
        frame.number = trace.on_sent(now, index, &frame);
        let number = frame.number;
        let station = &mut stations[index];
        let outcome = station.outward.carry(now, &mut frame, |effect| {
            trace.note(number, Leg::Out, effect)
        });
        self.follow(outcome, Leg::Out, index, frame);
    }

    /// A frame has come to the end of its sender's wire: from there it goes to the station with its address, or to all.
    pub(crate) fn on_switched(&mut self, frame: Flying) {
        let target = frame.bytes.get(..6).unwrap_or_default();
        let switch = self.packets.stations[frame.origin].switch;
        let others =
            |(index, it): &(usize, &Station)| *index != frame.origin && it.switch == switch;
        let mut stations = self.packets.stations.iter().enumerate().filter(others);
        let known = stations.find(|(_, it)| it.properties.address == target);
        if let Some((index, _)) = known {
            self.approach(index, frame);
            return;
        }
        for index in 0..self.packets.stations.len() {
            let station = &self.packets.stations[index];
            if index != frame.origin && station.switch == switch {
                let copy = self.copy_of(&frame);
                self.approach(index, copy);
            }
        }
        self.packets.give_buffer(frame.bytes);
    }

    fn approach(&mut self, index: usize, mut frame: Flying) {
        let Packets {
            stations, trace, ..
        } = &mut self.packets;
        let number = frame.number;
        let outcome = stations[index]
            .inward
            .carry(self.now, &mut frame, |effect| {
                trace.note(number, Leg::In, effect)
            });
        self.follow(outcome, Leg::In, index, frame);
    }

    /// Does with a frame what its wire has decided.
    fn follow(&mut self, outcome: Outcome, leg: Leg, index: usize, frame: Flying) {
        match outcome {
            Outcome::Arrives { at, again } => {
                if let Some(message) = self.carrier(leg, index).slander(&frame) {
                    self.tell_too_big(&frame, index, &message);
                }
                if let Some(again) = again {
                    let copy = self.copy_of(&frame);
                    self.enter(again, leg, index, copy);
                }
                self.enter(at, leg, index, frame);
            }
            Outcome::Dropped(effect) => {
                self.packets.trace.note(frame.number, leg, effect);
                if let Effect::TooBig(mtu) = effect
                    && let Some(message) = self.carrier(leg, index).too_big(mtu)
                {
                    self.tell_too_big(&frame, index, &message);
                }
                self.packets.give_buffer(frame.bytes);
            }
        }
    }

    fn carrier(&mut self, leg: Leg, index: usize) -> &mut Carrier {
        let station = &mut self.packets.stations[index];
        match leg {
            Leg::Out => &mut station.outward,
            Leg::In => &mut station.inward,
        }
    }

    fn enter(&mut self, at: Instant, leg: Leg, index: usize, frame: Flying) {
        match leg {
            // Most of what arrives at once needs no place in the agenda.
            Leg::Out if at <= self.now => self.on_switched(frame),
            Leg::In if at <= self.now => self.on_frame(index, frame),
            Leg::Out => self.agenda.enter(at, Event::FrameSwitched(frame)),
            Leg::In => self.agenda.enter(at, Event::FrameArrives(index, frame)),
        }
    }

    /// What a router says reaches the sender, past all wires.
    fn tell_too_big(&mut self, frame: &Flying, index: usize, message: &TooBig) {
        let mut bytes = self.packets.take_buffer();
        if !router::packet_too_big(&frame.bytes, message, &mut bytes) {
            self.packets.give_buffer(bytes);
            return;
        }
        let mut answer = Flying::new(bytes, Offload::default(), frame.origin);
        answer.number = self.packets.trace.on_sent(self.now, index, &answer);
        let at = self.now + message.after;
        self.agenda
            .enter(at, Event::FrameArrives(frame.origin, answer));
    }

    /// A frame has come to a station.
    pub(crate) fn on_frame(&mut self, index: usize, frame: Flying) {
        let station = &mut self.packets.stations[index];
        if station.ring.len() >= station.options.ring_frames {
            station.counts.overrun += 1;
            self.packets
                .trace
                .note(frame.number, Leg::In, Effect::Overrun);
            self.packets.give_buffer(frame.bytes);
            return;
        }
        station.counts.received += 1;
        station.ring.push_back(frame);
    }

    fn copy_of(&mut self, frame: &Flying) -> Flying {
        let mut bytes = self.packets.take_buffer();
        bytes.extend_from_slice(&frame.bytes);
        Flying { bytes, ..*frame }
    }
}

impl Packets {
    /// Whether all receivers of a station's frames take larger ones than the MTU.
    fn travels_whole(&self, index: usize) -> bool {
        let switch = self.stations[index].switch;
        let mut others = self.stations.iter().enumerate();
        others.all(|(other, it)| other == index || it.switch != switch || it.options.merges)
    }
}
