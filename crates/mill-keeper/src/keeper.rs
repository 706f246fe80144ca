//! The process that answers.

use crate::farewell::{Farewell, Word};
use crate::joining::{self, Door, Visitor};
use crate::member::Member;
use crate::offer;
use crate::request::{ATTACH, Answer, CLAIM, KEEP, PASS, give, read};
use crate::shares::Shares;
use mill_device::attachment::Attachment;
use mill_device::ledger::{self, Entry};
use mill_device::partitions::PARTITIONS_MAX;
use mill_device::port_blocks::PortBlocks;
use mill_device::process_group::GroupTable;
use mill_device::specification::Specification;
use mill_device::specification::device::Device;
use mill_device::specification::settings::{Spread, Workers};
use mill_sys::{clock, descriptor, passing};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A device, and the programs whose processes ask for it.
#[derive(Debug)]
pub struct Keeper {
    specification: Specification,
    device: Attachment,
    /// The first one, and those that have come by the door.
    programs: Vec<Program>,
    door: Option<Door>,
    shares: Shares,
    /// Blocks of local ports, and their memory.
    ports: (PortBlocks, File),
    /// Which processes listen where, and the memory of that.
    groups: (GroupTable, File),
    members: Vec<Member>,
    /// The number of the last process that has got the device, and of the last program.
    last: u64,
    last_program: u64,
    farewell: Farewell,
    /// Connections of ended processes whose peers are to be asked again, and when.
    asked_again: Vec<(Duration, Again, Vec<Entry>)>,
}

/// Which of the times that a peer is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    First,
    Last,
}

/// A program, and the processes that have begun with it.
#[derive(Debug)]
struct Program {
    /// Among all that there were.
    number: u64,
    name: String,
    /// Its `--stack`.
    stack: String,
    /// Where its processes ask. The end is there when the last of them has ended.
    requests: OwnedFd,
    /// Connections that ended processes have left for the next one that listens.
    kept: Vec<OwnedFd>,
}

impl Keeper {
    /// Makes the device that `stack` describes, for a program. Beside the keeper are the end of its socket for that, and messages
    /// about features that could not be had as requested; the error is a sentence.
    pub fn new(program: &str, stack: &str) -> Result<(Self, OwnedFd, Vec<String>), String> {
        let mut specification = parse(stack)?;
        // Before the device: a program that begins at the same moment waits here, and does not make it, too.
        let door = Door::open(&specification);
        if door.is_none() && joining::has_keeper(&specification) {
            return Err(format!(
                "another program begins with {}",
                specification.device
            ));
        }
        // How many stacks there will be is not known: as many as there are queues can have some of their own. Of other devices
        // there is one queue.
        if matches!(specification.device, Device::AfXdp { .. }) {
            specification.workers = Workers {
                count: PARTITIONS_MAX,
                spread: Spread::ByPartition,
            };
        }
        let made = Attachment::make(&specification).map_err(|error| error.to_string())?;
        let (device, notices) = made;
        device
            .can_export()
            .map_err(|why| format!("the device can't go from process to process: {why}"))?;
        let no_ports = |error: io::Error| format!("there is no memory for local ports: {error}");
        let memory = PortBlocks::create().map_err(no_ports)?;
        let ports = PortBlocks::open(&memory, NONE, specification.local_ports());
        let no_groups = |error: io::Error| format!("there is no memory for listeners: {error}");
        let listening = GroupTable::create().map_err(no_groups)?;
        let groups = GroupTable::open(&listening, NONE, device.worker_count(), || {});
        let begun = Program::begin(FIRST, program.to_owned(), stack.to_owned());
        let (program, socket) = begun.map_err(|error| format!("socketpair() failed: {error}"))?;
        let keeper = Self {
            shares: Shares::new(device.worker_count()),
            ports: (ports.map_err(no_ports)?, memory),
            groups: (groups.map_err(no_groups)?, listening),
            device,
            programs: vec![program],
            door,
            specification,
            members: Vec::new(),
            last: NONE,
            last_program: FIRST,
            farewell: Farewell::new(),
            asked_again: Vec::new(),
        };
        Ok((keeper, socket, notices))
    }

    /// What the first program gets, in words: the device, its queues, and how many stacks they are for.
    pub fn offer(&self) -> String {
        self.offer_to(&self.specification)
    }

    fn offer_to(&self, specification: &Specification) -> String {
        let device = &specification.device;
        let device = format!("{}:{device}", device.kind());
        let (queues, stacks) = (self.device.queues().len(), self.device.worker_count());
        offer::words(&device, queues, stacks, specification.stacks)
    }

    /// Answers until the last process has ended that could ask.
    pub fn run(mut self) -> io::Result<()> {
        while !self.programs.is_empty() {
            let asking = self.wait()?;
            self.forget_ended(Member::has_ended);
            self.ask_again();
            for place in asking.into_iter().rev() {
                if !self.answer(place) {
                    let ended = self.programs.remove(place);
                    self.end_kept(ended.kept);
                }
            }
            self.welcome();
        }
        // All have: the kernel releases the descriptors of a process one by one.
        self.forget_ended(|_| true);
        // From here on the interface is the kernel's, which resets what is unknown to it.
        drop(self.device);
        // A program that waits here hears its end, and makes the device anew.
        drop(self.door);
        for (_, _, entries) in &self.asked_again {
            self.farewell.send(entries, Word::Probe);
        }
        Ok(())
    }

    /// Waits for a request, the end of a process, a further program, or the time to ask peers again; which programs have requests.
    fn wait(&self) -> io::Result<Vec<usize>> {
        let programs = self.programs.iter().map(|program| program.requests.as_fd());
        let channels = self.members.iter().map(AsFd::as_fd);
        let door = self.door.iter().map(Door::as_fd);
        let sources: Vec<BorrowedFd<'_>> = programs.chain(channels).chain(door).collect();
        let next = self.asked_again.iter().map(|(at, ..)| *at).min();
        let timeout = next.map(|at| at.saturating_sub(clock::monotonic()));
        let ready = descriptor::wait_readable(&sources, timeout)?;
        let programs = ready.into_iter().take(self.programs.len()).enumerate();
        Ok(programs
            .filter(|(_, is)| *is)
            .map(|(place, _)| place)
            .collect())
    }

    /// Answers a request; whether others can follow.
    fn answer(&mut self, place: usize) -> bool {
        let Some(program) = self.programs.get_mut(place) else {
            return true;
        };
        let mut buffer = [0; 64];
        // What does not fit is no request, and one for which this process has no descriptors left gets no answer.
        let Ok((len, descriptors)) = passing::receive(program.requests.as_fd(), &mut buffer) else {
            return true;
        };
        if let Some(channel) = descriptors.first() {
            // It is the asking process's: one that does not read is not waited for.
            let _ = passing::set_send_timeout(channel.as_fd(), ANSWER_PATIENCE);
        }
        match (buffer.get(..len), descriptors.first()) {
            (Some(b""), None) => return false,
            (Some(ATTACH), Some(_)) => {
                let (number, stack) = (program.number, program.stack.clone());
                self.admit(number, &stack, descriptors);
            }
            (Some(CLAIM), Some(channel)) => {
                // A process that is gone meanwhile needs no answer.
                let _ = give(channel.as_fd(), &program.kept);
                program.kept.clear();
            }
            (Some(KEEP), Some(_)) => {
                let surplus = program.keep(descriptors);
                self.end_kept(surplus);
            }
            (Some(words), Some(_)) if words.starts_with(PASS) => {
                let number = program.number;
                let words = words.get(PASS.len()..).unwrap_or_default();
                let words = str::from_utf8(words).unwrap_or_default();
                let processes = words.split(' ').filter_map(|word| word.parse().ok());
                // To the second, else back to the first.
                let processes: Vec<u64> = processes.collect();
                for file in descriptors {
                    self.pass(number, file, processes.iter().rev().copied());
                }
            }
            _ => {}
        }
        true
    }

    /// Passes connections to the first of these processes that takes them, or keeps them for their program.
    fn pass(&mut self, program: u64, file: OwnedFd, processes: impl Iterator<Item = u64>) {
        for process in processes {
            let mut members = self.members.iter_mut();
            let member = members.find(|member| member.number == process);
            if member.is_some_and(|member| member.pass(&file, clock::monotonic())) {
                return;
            }
        }
        let mut programs = self.programs.iter_mut();
        let surplus = match programs.find(|it| it.number == program) {
            Some(program) => program.keep(vec![file]),
            None => vec![file],
        };
        self.end_kept(surplus);
        // Otherwise processes claim what is kept only when they become the owner of a queue.
        let members = self.members.iter();
        for member in members.filter(|member| member.program == program) {
            member.say_kept();
        }
    }

    /// Tells the peers of connections that wait for a process that will not be.
    fn end_kept(&self, files: Vec<OwnedFd>) {
        for file in files {
            let connections = read(file).unwrap_or_default();
            self.farewell
                .send(&ledger::waiting(&connections), Word::Reset);
        }
    }

    /// Admits a program that is at the door, if there is one.
    fn welcome(&mut self) {
        let Some(visitor) = self.door.as_ref().and_then(Door::accept) else {
            return;
        };
        match self.begin(&visitor) {
            Ok(program) => {
                self.last_program = program.number;
                self.programs.push(program);
            }
            Err(why) => visitor.refuse(&why),
        }
    }

    /// Begins with a further program, if it can have the device as it is.
    fn begin(&self, visitor: &Visitor) -> Result<Program, String> {
        let asked = parse(&visitor.stack)?;
        if !asked.has_same_device(&self.specification) {
            let first = self.programs.first();
            let (name, stack) = first.map_or(("", ""), |it| (it.name.as_str(), it.stack.as_str()));
            return Err(format!(
                "\"{name}\" has {}:{} with other options of the device, which hold for all that use it: \"--stack {stack}\"",
                asked.device.kind(),
                asked.device
            ));
        }
        let number = self.last_program + 1;
        let begun = Program::begin(number, visitor.program.clone(), visitor.stack.clone());
        let (program, socket) = begun.map_err(|error| format!("socketpair() failed: {error}"))?;
        let names: Vec<&str> = self.programs.iter().map(|it| it.name.as_str()).collect();
        let offer = self.offer_to(&asked);
        match visitor.admit(
            socket.as_fd(),
            &format!("{offer} (and those of {})", listed(&names)),
        ) {
            true => Ok(program),
            false => Err(String::from("it is gone")),
        }
    }

    /// Gives a process of a program the device, and a share of its partitions.
    fn admit(&mut self, program: u64, stack: &str, descriptors: Vec<OwnedFd>) {
        let mut descriptors = descriptors.into_iter();
        let Some(channel) = descriptors.next() else {
            return;
        };
        let ledger = descriptors.next().map(File::from);
        self.last += 1;
        let number = self.last;
        let living: Vec<u64> = self.members.iter().map(|member| member.number).collect();
        let answer = Answer {
            stack,
            number,
            own: self.shares.give(number, &living),
            device: &self.device,
            ports: &self.ports.1,
            groups: &self.groups.1,
        };
        // A process that is gone meanwhile needs no answer.
        if answer.send(channel.as_fd()).is_ok() {
            // Without it the process is as one that has ended.
            self.members
                .extend(Member::new((number, program), channel, ledger));
        }
    }

    /// Frees what ended processes have had, and tells the peers of their connections.
    fn forget_ended(&mut self, has_ended: impl Fn(&mut Member) -> bool) {
        let ended = self.members.extract_if(.., |member| has_ended(member));
        let ended: Vec<Member> = ended.collect();
        // A peer answers one such probe in half a second (tcp_invalid_ratelimit): where no process is left whose stack would reset
        // its answer, it is asked when the interface is another's.
        let is_answered = !self.members.is_empty();
        let has_any = !ended.is_empty();
        for mut ended in ended {
            self.ports.0.release(ended.number);
            self.groups.0.release(ended.number);
            let program = ended.program;
            for file in ended.take_passed() {
                self.pass(program, file, core::iter::empty());
            }
            let entries = ended.ledger.as_ref().map(ledger::read);
            let entries = entries.and_then(Result::ok).unwrap_or_default();
            if entries.is_empty() {
                continue;
            }
            self.groups.0.note_departed(&entries);
            self.farewell.send(&entries, Word::Reset);
            if is_answered {
                self.farewell.send(&entries, Word::Probe);
            }
            let at = clock::monotonic() + ASKED_AGAIN_AFTER;
            self.asked_again.push((at, Again::First, entries));
        }
        if is_answered && has_any {
            // Without memory for a look at the tables ports stay the stack's until the last process ends.
            let groups = &mut self.groups.0;
            let _ = self
                .device
                .close_unlistened(|address| groups.is_listened(address));
        }
    }

    fn ask_again(&mut self) {
        let now = clock::monotonic();
        let due = self.asked_again.extract_if(.., |(at, ..)| *at <= now);
        let due: Vec<_> = due.collect();
        for (_, again, entries) in due {
            self.farewell.send(&entries, Word::Probe);
            if again == Again::First {
                let at = now + ASKED_AGAIN_AFTER;
                self.asked_again.push((at, Again::Last, entries));
            }
        }
    }
}

impl Program {
    /// With the socket for its processes.
    fn begin(number: u64, name: String, stack: String) -> io::Result<(Self, OwnedFd)> {
        let (requests, socket) = passing::pair()?;
        let kept = Vec::new();
        let program = Self {
            number,
            name,
            stack,
            requests,
            kept,
        };
        Ok((program, socket))
    }

    /// Keeps connections for the process that claims them next; those that are too many are given back, the oldest.
    fn keep(&mut self, files: Vec<OwnedFd>) -> Vec<OwnedFd> {
        self.kept.extend(files);
        let surplus = self.kept.len().saturating_sub(passing::DESCRIPTORS_MAX);
        self.kept.drain(..surplus).collect()
    }
}

/// What `--stack` says; the error is a sentence.
pub(crate) fn parse(stack: &str) -> Result<Specification, String> {
    // Programs fork, and a process that does can't have DPDK's environment: a bridge has a port.
    let specification = Specification::parse(stack);
    let specification = specification.and_then(Specification::behind_bridge);
    specification.map_err(|error| error.to_string())
}

/// Names of programs in a sentence, each once.
fn listed(names: &[&str]) -> String {
    let names: BTreeSet<&str> = names.iter().copied().collect();
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}

/// A peer may answer while no process has the interface, and answers one such probe in half a second only (tcp_invalid_ratelimit).
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(600);

/// How long a process may leave an answer unread that finds no room.
const ANSWER_PATIENCE: Duration = Duration::from_millis(100);

/// The number of no process.
const NONE: u64 = 0;

/// The number of the first program.
const FIRST: u64 = 1;
