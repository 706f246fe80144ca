//! Listeners that this program has closed.
//!
//! The socket of a listener may be other processes' as well, as after fork(2). What waits there when one of them closes it is
//! accepted by the others, in the kernel. Here each process has a host of its own, so it goes on completing handshakes until
//! another one has the device, and passes what waits to that, which has a way for the answers. Where that does not listen there, or this process keeps the
//! device as it serves other ports, what waits goes to a process that does, after a moment.

use super::neglecting::Passed;
use super::{SocketLink, Sockets};
use crate::socket::{Kind, SocketNumber};
use mill_stack::host::migration::{Waiting, format};
use mill_stack::socket::ListenerId;
use mill_tcp::time::{Duration, Instant};
use std::collections::BTreeMap;

/// What is on its way between processes.
#[derive(Debug, Default)]
pub(super) struct Succession {
    /// Listeners that this program has closed and that are not ended.
    left: Vec<Left>,
    /// What was taken from them for processes that listen at the same address, by their numbers …
    passed: BTreeMap<u64, Vec<u8>>,
    /// … and what could not be passed yet to the one that has the device.
    passing: Vec<u8>,
    /// What has come and finds no listener yet, and in which turn that was seen first.
    arriving: Vec<(Waiting, Option<Instant>)>,
}

/// A listener that the program has closed.
#[derive(Clone, Copy, Debug)]
struct Left {
    listener: ListenerId,
    /// The socket's name.
    name: u64,
    since: Instant,
}

impl Succession {
    /// This connection is for a process that listens at its address.
    fn pass(&mut self, process: u64, waiting: &Waiting) {
        format::write(waiting, self.passed.entry(process).or_default());
    }

    /// This connection is for a listener here.
    pub(super) fn arrive(&mut self, waiting: Waiting) {
        self.arriving.push((waiting, None));
    }

    /// Whether the program has closed this listener.
    pub(super) fn has(&self, listener: ListenerId) -> bool {
        self.left.iter().any(|left| left.listener == listener)
    }
}

impl<L: SocketLink> Sockets<L> {
    /// close(2) of one descriptor of a listener whose socket other processes may have, too; `name` is the socket's. Whether it
    /// was the last one: then what waits there waits for another process, until [`Self::end_left`].
    pub fn leave_listener(&mut self, number: SocketNumber, name: u64) -> bool {
        let left = self.let_go(number);
        let Some(Kind::Listener(listener)) = left.map(|socket| socket.kind) else {
            return false;
        };
        self.host.leave_group(listener);
        self.retire(listener);
        let since = self.now;
        self.succession.left.push(Left {
            listener,
            name,
            since,
        });
        true
    }

    /// Names of the listeners that the program has closed and that are not ended.
    pub fn left(&self) -> impl Iterator<Item = u64> {
        self.succession.left.iter().map(|left| left.name)
    }

    /// Ends the listener of this name that the program has closed: no other process has its socket. What waits there is reset.
    pub fn end_left(&mut self, name: u64) {
        let ended = self
            .succession
            .left
            .extract_if(.., |left| left.name == name);
        let ended: Vec<ListenerId> = ended.map(|left| left.listener).collect();
        for listener in ended {
            self.host.close_listener(listener);
            self.stop_serving(listener);
        }
    }

    /// Whether anything waits for another process: at a listener that this program has closed.
    pub fn has_waiting(&self) -> bool {
        let succession = &self.succession;
        let mut left = succession.left.iter();
        !succession.passing.is_empty()
            || !succession.passed.is_empty()
            || !succession.arriving.is_empty()
            || left.any(|it| {
                self.host.waiting(it.listener) > 0 || self.host.half_open(it.listener) > 0
            })
    }

    /// Whether other processes listen where the program has closed listeners.
    pub fn has_successors(&mut self) -> bool {
        let (host, mut left) = (&mut self.host, self.succession.left.iter());
        left.any(|left| host.others(left.listener).count > 0)
    }

    /// Takes all that waits at listeners that this program has closed away, as bytes for another process.
    pub fn give_waiting(&mut self) -> Vec<u8> {
        // Text that is still in frames can't move.
        self.flush();
        self.collect_waiting();
        let succession = &mut self.succession;
        for (waiting, _) in succession.arriving.drain(..) {
            format::write(&waiting, &mut succession.passing);
        }
        core::mem::take(&mut succession.passing)
    }

    /// Takes the connections and handshakes of a listener of the program away, as bytes for the program that its process becomes.
    pub fn give_listening(&mut self, number: SocketNumber) -> Vec<u8> {
        let mut given = Vec::new();
        if let Ok(Kind::Listener(listener)) = self.socket(number).map(|socket| socket.kind) {
            self.flush();
            let local = self.host.listener_address(listener);
            let is_for = |waiting: &Waiting| {
                local.is_some_and(|local| local.port() == waiting.flow.local().port())
            };
            // As after an exec(2) that has failed, and is tried with the next folder of `PATH`.
            let arriving = &mut self.succession.arriving;
            let arriving = arriving.extract_if(.., |(waiting, _)| is_for(waiting));
            let arriving: Vec<Waiting> = arriving.map(|(waiting, _)| waiting).collect();
            let open = self.host.give_open(listener, usize::MAX);
            let handshakes = self.host.give_handshakes(listener);
            for waiting in arriving.iter().chain(&open).chain(&handshakes) {
                format::write(waiting, &mut given);
            }
            if !given.is_empty() {
                self.link.note_moving();
            }
        }
        given
    }

    /// What has been taken away for other processes that listen at the same address.
    pub fn take_outgoing(&mut self) -> impl Iterator<Item = Passed> {
        core::mem::take(&mut self.succession.passed).into_iter()
    }

    /// These connections could not be passed to their process: they go to the one that has the device.
    pub fn pass_otherwise(&mut self, connections: &[u8]) {
        self.succession.passing.extend(connections);
    }

    /// Takes what waits at listeners that the program has closed, for the process that has the device next.
    fn collect_waiting(&mut self) {
        let succession = &mut self.succession;
        for left in &succession.left {
            for waiting in self.host.give_waiting(left.listener) {
                format::write(&waiting, &mut succession.passing);
            }
        }
    }

    /// The same where this process keeps the device, as it serves other ports, for processes that listen there. Not at once: one of these takes
    /// the device as a rule, and then has a way for its answers.
    fn collect_for_listening(&mut self) {
        let (host, succession) = (&mut self.host, &mut self.succession);
        for place in 0..succession.left.len() {
            let Some(left) = succession.left.get(place).copied() else {
                continue;
            };
            let listener = left.listener;
            if self.now.since(left.since) < KEPT || host.others(listener).count == 0 {
                continue;
            }
            for waiting in host.give_waiting(listener) {
                match host.give_to_other(listener, &waiting.flow) {
                    Some(process) => succession.pass(process, &waiting),
                    // It is for another listener of this program at the same address.
                    None => succession.arrive(waiting),
                }
            }
        }
    }

    /// Passes what waits to other processes.
    pub(super) fn pass_waiting(&mut self) {
        let succession = &self.succession;
        if succession.left.is_empty() && succession.passing.is_empty() {
            return;
        }
        let has_heir = self.link.has_heir();
        match has_heir {
            true => self.collect_waiting(),
            false => self.collect_for_listening(),
        }
        let succession = &mut self.succession;
        if !succession.passed.is_empty() {
            self.link.note_moving();
        }
        if has_heir && !succession.passing.is_empty() && self.link.pass_waiting(&succession.passing)
        {
            succession.passing.clear();
        }
    }

    /// Takes what another process has given; it goes to listeners with the next turn.
    pub fn bring_waiting(&mut self, connections: &[u8]) {
        let mut rest = connections;
        while let Some(waiting) = format::read(&mut rest) {
            self.succession.arrive(waiting);
        }
    }

    /// Takes what a former owner of the device has passed; whether listeners got anything.
    pub(super) fn take_passed(&mut self) -> bool {
        while let Some(passed) = self.link.take_passed() {
            self.bring_waiting(&passed);
        }
        if self.succession.arriving.is_empty() {
            return false;
        }
        let arriving = core::mem::take(&mut self.succession.arriving);
        let mut has_taken = false;
        for (waiting, since) in arriving {
            let Err(waiting) = self.host.take_waiting(&mut self.link, waiting) else {
                has_taken = true;
                continue;
            };
            // The program listens at one socket after the other.
            let since = since.unwrap_or(self.now);
            let time = self.now.since(since);
            let process = match time < KEPT {
                true => None,
                false => self.host.listening_process(&waiting.flow),
            };
            match process {
                Some(process) => self.succession.pass(process, &waiting),
                None if time < PATIENCE => self.succession.arriving.push((waiting, Some(since))),
                None => self.host.refuse_waiting(&waiting),
            }
        }
        has_taken
    }
}

/// How long what waits stays with the device: at a closed listener for the next process, and there for a listener.
const KEPT: Duration = Duration::from_millis(50);

/// How long what has come may wait for its listener.
const PATIENCE: Duration = Duration::from_secs(1);
