//! A script is replayed: virtual time, one host, one wire.

mod calls;
mod icmp;

use crate::flow::{Flow, fits, stack_byte};
use crate::ladder::{Ladder, seconds};
use crate::packet::{Ends, Packet};
use crate::script::{Event, Line, Moment, SYN, Script, Segment, Time};
use crate::settings::Settings;
use crate::wire::Wire;
use calls::Sockets;
use mill_stack::host::Host;
use mill_stack::queue::ByteQueue;
use mill_tcp::time::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// How far a packet's time may be from what the script says: one tick, in which all timers are kept.
const TOLERANCE_NANOS: u64 = 1_000_000;

/// When the clock of the stack begins: it must not matter, so it is not zero.
const BEGIN: Instant = Instant::from_nanos(5_000_000_123_456);

/// Turns at one point in time before it is said that the stack runs in circles.
const TURNS_MAX: u32 = 10_000;

/// The peer's ports are this and the flow's number.
const PEER_PORT: u16 = 40_000;

/// The port that scripts listen at, if they do not say.
const LOCAL_PORT: u16 = 8080;

/// What is wrong with a script, in a form for people; nothing if it holds.
pub(crate) fn replay(script: &Script, ends: Ends) -> Result<(), String> {
    let settings = Settings::new(&script.settings, &ends)?;
    let mut run = Run::new(settings, ends);
    for line in &script.lines {
        run.line(line).map_err(|problem| {
            let Line { place, text, .. } = line;
            let ladder = run.ladder.tail();
            format!("{place}\n    {text}\n  {problem}\n    {ladder}")
        })?;
    }
    run.end().map_err(|problem| {
        let ladder = run.ladder.tail();
        format!("at the end: {problem}\n    {ladder}")
    })
}

pub(crate) struct Run {
    host: Host<ByteQueue>,
    wire: Wire,
    ends: Ends,
    settings: Settings,
    /// Nanoseconds since the script began.
    now: u64,
    /// What the relative time of the next line is relative to.
    last: u64,
    flows: BTreeMap<u8, Flow>,
    /// What the stack sent and no line has expected yet.
    sent: VecDeque<Sent>,
    sockets: Sockets,
    blocked: Option<Blocked>,
    ladder: Ladder,
}

struct Sent {
    at: u64,
    flow: u8,
    packet: Packet,
}

/// A call that has not returned.
struct Blocked {
    line: Line,
    until: u64,
}

impl Run {
    fn new(settings: Settings, ends: Ends) -> Self {
        let extra = ends.header_bytes() - Ends::V4.header_bytes();
        let wire = Wire::new(ends, settings.mtu + extra);
        let link = mill_stack::link::Link::properties(&wire);
        let host = Host::new(settings.host.clone(), link, BEGIN);
        Self {
            host,
            wire,
            ends,
            settings,
            now: 0,
            last: 0,
            flows: BTreeMap::new(),
            sent: VecDeque::new(),
            sockets: Sockets::default(),
            blocked: None,
            ladder: Ladder::default(),
        }
    }

    fn line(&mut self, line: &Line) -> Result<(), String> {
        match &line.event {
            Event::Outbound(segment) => self.expect(segment, line.time),
            event => {
                let (from, until) = match line.time {
                    Time::At(at) => (self.absolute(at), None),
                    Time::Blocking(from, until) => {
                        (self.absolute(from), Some(self.absolute(until)))
                    }
                    _ => return Err("only for what the stack sends the time may be open".into()),
                };
                self.advance(from)?;
                self.last = from;
                self.event(line, event, until)
            }
        }
    }

    fn event(&mut self, line: &Line, event: &Event, until: Option<u64>) -> Result<(), String> {
        match event {
            Event::Inbound(segment) => self.inject(segment)?,
            Event::Icmp(message) => {
                self.nothing_is_left()?;
                let ends = self.ends;
                let packet = icmp::to_bytes(message, self.flow(message.flow), &ends);
                self.ladder.inbound(self.now, &line.text);
                self.wire.send(&packet);
            }
            Event::Call(call) => {
                if let Some(blocked) = &self.blocked {
                    return Err(format!("{} has not returned yet", blocked.line.text));
                }
                let result = self.call(call)?;
                match until {
                    None if result != call.result => return Err(format!("it gave {result}")),
                    None => {}
                    Some(_) if !calls::would_block(&result) => {
                        return Err(format!("it did not block and gave {result}"));
                    }
                    Some(until) => {
                        let line = line.clone();
                        self.blocked = Some(Blocked { line, until });
                    }
                }
            }
            Event::Silence => return self.nothing_is_left(),
            Event::Renew(flow) => self.flow(*flow).renew(),
            Event::Outbound(_) => {}
        }
        self.turn()
    }

    fn inject(&mut self, segment: &Segment) -> Result<(), String> {
        self.nothing_is_left()?;
        let cookie = self.flows.values().find_map(|flow| flow.cookie.clone());
        let flow = self.flow(segment.flow);
        flow.cookie = flow.cookie.take().or(cookie);
        let packet = flow.to_packet(segment)?;
        self.ladder.inbound(self.now, &segment.to_string());
        let mut bytes = packet.to_bytes(&self.ends, true);
        if segment.has_bad_checksum {
            bytes[usize::from(self.ends.header_bytes()) + 16] ^= 1;
        }
        self.wire.send(&bytes);
        Ok(())
    }

    /// Waits for the next packet of the stack, which has to be this one.
    fn expect(&mut self, expected: &Segment, time: Time) -> Result<(), String> {
        let (from, until) = match time {
            Time::At(at) => (self.absolute(at), self.absolute(at)),
            Time::Within(from, until) => (self.absolute(from), self.absolute(until)),
            Time::Any => (0, u64::MAX / 2),
            Time::Blocking(..) => return Err("a packet does not block".into()),
        };
        let from = from.saturating_sub(TOLERANCE_NANOS);
        let until = until + TOLERANCE_NANOS;
        while self.sent.is_empty() && self.step(until)? {}
        let Some(sent) = self.sent.pop_front() else {
            return Err("nothing was sent".into());
        };
        let flow = self.flow(sent.flow);
        flow.learn_timestamps(expected, &sent.packet);
        let segment = flow.to_segment(sent.flow, &sent.packet);
        check_payload(&segment, &sent.packet)?;
        if !fits(expected, &segment) {
            return Err(format!("what was sent: {} > {segment}", seconds(sent.at)));
        }
        if !(from..=until).contains(&sent.at) {
            return Err(format!("it was sent at {}", seconds(sent.at)));
        }
        self.last = sent.at;
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        if let Some(blocked) = &self.blocked {
            self.advance(blocked.until + TOLERANCE_NANOS)?;
        }
        if let Some(blocked) = &self.blocked {
            return Err(format!("{} has not returned", blocked.line.text));
        }
        self.nothing_is_left()
    }

    /// Whatever the stack has sent, a line has expected.
    fn nothing_is_left(&mut self) -> Result<(), String> {
        let Some(sent) = self.sent.pop_front() else {
            return Ok(());
        };
        let segment = self.flow(sent.flow).to_segment(sent.flow, &sent.packet);
        Err(format!("not expected: {} > {segment}", seconds(sent.at)))
    }

    const fn absolute(&self, moment: Moment) -> u64 {
        if moment.relative {
            self.last + moment.nanos
        } else {
            moment.nanos
        }
    }

    fn flow(&mut self, number: u8) -> &mut Flow {
        let peer_isn = self.settings.peer_isn;
        let local_port = self.sockets.port().unwrap_or(LOCAL_PORT);
        let peer_port = PEER_PORT + u16::from(number);
        self.flows
            .entry(number)
            .or_insert_with(|| Flow::new(peer_port, local_port, peer_isn))
    }

    fn instant(&self) -> Instant {
        BEGIN + Duration::from_nanos(self.now)
    }

    /// Lets time pass, timer by timer.
    fn advance(&mut self, until: u64) -> Result<(), String> {
        if until < self.now {
            return Err(format!("it is {} already", seconds(self.now)));
        }
        while self.step(until)? {}
        Ok(())
    }

    /// Goes to the next timer of the stack, or to `until`; says whether there was a timer.
    fn step(&mut self, until: u64) -> Result<bool, String> {
        let due = self.host.next_expiry().map(|at| at.since(BEGIN).as_nanos());
        let due = due.and_then(|nanos| u64::try_from(nanos).ok());
        match due {
            Some(due) if due <= until => {
                // An expiry that stays in the past would stop the clock.
                self.now = due.max(self.now + 1).min(until.max(self.now));
                let passed = self.now < until;
                self.turn()?;
                Ok(passed)
            }
            _ => {
                self.now = self.now.max(until);
                self.turn()?;
                Ok(false)
            }
        }
    }

    /// One turn of the stack, and another while its own packets are answered below.
    fn turn(&mut self) -> Result<(), String> {
        for _ in 0..TURNS_MAX {
            let now = self.instant();
            while self.host.receive(&mut self.wire, now) > 0 {}
            self.host.expire(now);
            let waits = self.host.transmit(&mut self.wire, now);
            self.host.settle(&mut self.wire);
            if waits {
                return Err("the stack waits for a wire that is never full".into());
            }
            match self.wire.lent_count() {
                0 => {}
                count => return Err(format!("{count} frames were not given back")),
            }
            self.collect()?;
            if !self.wire.has_arriving() {
                return self.unblock();
            }
        }
        Err("the stack and its neighbour talk in circles".into())
    }

    fn collect(&mut self) -> Result<(), String> {
        while let Some(bytes) = self.wire.sent.pop_front() {
            let packet = Packet::parse(&bytes, &self.ends)?;
            let number = packet.target_port.wrapping_sub(PEER_PORT);
            let number = u8::try_from(number).map_err(|_| "a packet to a port of no flow")?;
            let flow = self.flow(number);
            if packet.flags & SYN != 0 {
                flow.local_port = packet.source_port;
            }
            flow.learn(&packet);
            let text = flow.to_segment(number, &packet).to_string();
            self.ladder.outbound(self.now, &text);
            if packet.may_be_fragmented {
                return Err("without Don't Fragment there is no path MTU discovery".into());
            }
            self.sent.push_back(Sent {
                at: self.now,
                flow: number,
                packet,
            });
        }
        Ok(())
    }

    /// Tries again what blocks.
    fn unblock(&mut self) -> Result<(), String> {
        let Some(blocked) = self.blocked.take() else {
            return Ok(());
        };
        let Event::Call(call) = &blocked.line.event else {
            return Ok(());
        };
        let result = self.call(call)?;
        if calls::would_block(&result) {
            if self.now > blocked.until + TOLERANCE_NANOS {
                return Err(format!("{} still blocks", blocked.line.text));
            }
            self.blocked = Some(blocked);
            return Ok(());
        }
        if result != call.result {
            return Err(format!("{} gave {result}", blocked.line.text));
        }
        if self.now.abs_diff(blocked.until) > TOLERANCE_NANOS {
            let now = seconds(self.now);
            return Err(format!("{} returned at {now}", blocked.line.text));
        }
        // What the call did may be to send something.
        self.turn()
    }
}

/// The bytes have to be those that the program wrote.
fn check_payload(segment: &Segment, packet: &Packet) -> Result<(), String> {
    let from = segment
        .seq
        .wrapping_add(u32::from(segment.flags & SYN != 0));
    let wrong = (0..).zip(&packet.payload).find(|(at, byte)| {
        let expected = stack_byte(from.wrapping_add(*at));
        **byte != expected
    });
    match wrong {
        None => Ok(()),
        Some((at, _)) => Err(format!("byte {at} of {segment} is not what was written")),
    }
}
