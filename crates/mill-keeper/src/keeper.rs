//! The process that answers.

use crate::farewell::{Farewell, Word};
use crate::offer;
use crate::request::{ATTACH, Answer, CLAIM, KEEP, give};
use crate::shares::Shares;
use mill_device::attachment::Attachment;
use mill_device::ledger::{self, Entry};
use mill_device::partitions::PARTITIONS_MAX;
use mill_device::port_blocks::PortBlocks;
use mill_device::process_group::GroupTable;
use mill_device::specification::Specification;
use mill_device::specification::device::Device;
use mill_device::specification::settings::{Spread, StacksPer, Workers};
use mill_sys::{clock, descriptor, passing};
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A device, and the socket over which processes ask for it.
#[derive(Debug)]
pub struct Keeper {
    /// As on the command line.
    stack: String,
    /// Those that the stack has and the kernel does not.
    addresses: Vec<IpAddr>,
    stacks: StacksPer,
    device: Attachment,
    requests: OwnedFd,
    shares: Shares,
    /// Blocks of local ports, and their memory.
    ports: (PortBlocks, File),
    /// Which processes listen where, and the memory of that.
    groups: (GroupTable, File),
    members: Vec<Member>,
    /// The number of the last process that has got the device.
    last: u64,
    farewell: Farewell,
    /// Connections of ended processes whose peers are to be asked once more, and when.
    asked_again: Vec<(Duration, Vec<Entry>)>,
}

/// A process that has the device.
#[derive(Debug)]
struct Member {
    number: u64,
    /// Its other end is open as long as the process lives.
    channel: OwnedFd,
    /// Its connections, if it has the memory for that.
    ledger: Option<File>,
}

impl Keeper {
    /// Makes the device that `stack` describes. Beside the keeper are the end of its socket for the program, and messages
    /// about features that could not be had as requested; the error is a sentence.
    pub fn new(stack: &str) -> Result<(Self, OwnedFd, Vec<String>), String> {
        // Programs fork, and a process that does can't have DPDK's environment: a bridge has a port.
        let specification = Specification::parse(stack);
        let specification = specification.and_then(Specification::behind_bridge);
        let mut specification = specification.map_err(|error| error.to_string())?;
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
        let addresses = match &specification.device {
            Device::AfXdp { .. } => Vec::new(),
            Device::Tap { .. } | Device::Memif { .. } | Device::Dpdk { .. } => {
                specification.addresses.clone()
            }
        };
        let no_ports = |error: io::Error| format!("there is no memory for local ports: {error}");
        let memory = PortBlocks::create().map_err(no_ports)?;
        let ports = PortBlocks::open(&memory, NONE, specification.local_ports());
        let no_groups = |error: io::Error| format!("there is no memory for listeners: {error}");
        let listening = GroupTable::create().map_err(no_groups)?;
        let groups = GroupTable::open(&listening, NONE, device.worker_count(), || {});
        let pair = passing::pair().map_err(|error| format!("socketpair() failed: {error}"))?;
        let (requests, program) = pair;
        let keeper = Self {
            stack: String::from(stack),
            addresses: addresses.iter().map(|prefix| prefix.address).collect(),
            stacks: specification.stacks,
            shares: Shares::new(device.worker_count()),
            ports: (ports.map_err(no_ports)?, memory),
            groups: (groups.map_err(no_groups)?, listening),
            device,
            requests,
            members: Vec::new(),
            last: NONE,
            farewell: Farewell::new(),
            asked_again: Vec::new(),
        };
        Ok((keeper, program, notices))
    }

    /// The addresses that the stack has and the kernel does not.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// What has a stack of its own.
    pub const fn stacks(&self) -> StacksPer {
        self.stacks
    }

    /// What a program gets, in words: the device, its queues, and how many stacks they are for.
    pub fn offer(&self) -> String {
        let device = self.stack.split(',').next().unwrap_or_default();
        let (queues, stacks) = (self.device.queues().len(), self.device.worker_count());
        offer::words(device, queues, stacks, self.stacks)
    }

    /// Answers until the last process has ended that could ask.
    pub fn run(mut self) -> io::Result<()> {
        // Connections that ended processes have left.
        let mut kept = Vec::new();
        loop {
            let is_asked = self.wait()?;
            self.forget_ended(Member::has_ended);
            self.ask_again();
            if is_asked && !self.answer(&mut kept)? {
                break;
            }
        }
        // All have: the kernel releases the descriptors of a process one by one.
        self.forget_ended(|_| true);
        // From here on the interface is the kernel's, which resets what is unknown to it.
        drop(self.device);
        for (_, entries) in &self.asked_again {
            self.farewell.send(entries, Word::Probe);
        }
        Ok(())
    }

    /// Waits for a request, the end of a process, or the time to ask its peers again; whether there is a request.
    fn wait(&self) -> io::Result<bool> {
        let channels = self.members.iter().map(|member| member.channel.as_fd());
        let sources: Vec<BorrowedFd<'_>> = core::iter::once(self.requests.as_fd())
            .chain(channels)
            .collect();
        let next = self.asked_again.iter().map(|(at, _)| *at).min();
        let timeout = next.map(|at| at.saturating_sub(clock::monotonic()));
        let ready = descriptor::wait_readable(&sources, timeout)?;
        Ok(ready.first() == Some(&true))
    }

    /// Answers a request; whether others can follow.
    fn answer(&mut self, kept: &mut Vec<OwnedFd>) -> io::Result<bool> {
        let mut buffer = [0; 64];
        let (len, descriptors) = passing::receive(self.requests.as_fd(), &mut buffer)?;
        match (buffer.get(..len), descriptors.first()) {
            (Some(b""), None) => return Ok(false),
            (Some(ATTACH), Some(_)) => self.admit(descriptors),
            (Some(CLAIM), Some(channel)) => {
                // A process that is gone meanwhile needs no answer.
                let _ = give(channel.as_fd(), kept);
                kept.clear();
            }
            (Some(KEEP), Some(_)) => {
                kept.extend(descriptors);
                let surplus = kept.len().saturating_sub(passing::DESCRIPTORS_MAX);
                kept.drain(..surplus);
            }
            _ => {}
        }
        Ok(true)
    }

    /// Gives a process the device, and a share of its partitions.
    fn admit(&mut self, descriptors: Vec<OwnedFd>) {
        let mut descriptors = descriptors.into_iter();
        let Some(channel) = descriptors.next() else {
            return;
        };
        let ledger = descriptors.next().map(File::from);
        self.last += 1;
        let number = self.last;
        let living: Vec<u64> = self.members.iter().map(|member| member.number).collect();
        let answer = Answer {
            stack: &self.stack,
            number,
            own: self.shares.give(number, &living),
            device: &self.device,
            ports: &self.ports.1,
            groups: &self.groups.1,
        };
        // A process that is gone meanwhile needs no answer.
        if answer.send(channel.as_fd()).is_ok() {
            self.members.push(Member {
                number,
                channel,
                ledger,
            });
        }
    }

    /// Frees what ended processes have had, and tells the peers of their connections.
    fn forget_ended(&mut self, has_ended: impl Fn(&Member) -> bool) {
        let ended = self.members.extract_if(.., |member| has_ended(member));
        let ended: Vec<Member> = ended.collect();
        // A peer answers one such probe in half a second (tcp_invalid_ratelimit): where no process is left whose stack would reset
        // its answer, it is asked when the interface is another's.
        let is_answered = !self.members.is_empty();
        for ended in ended {
            self.ports.0.release(ended.number);
            self.groups.0.release(ended.number);
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
            self.asked_again.push((at, entries));
        }
    }

    fn ask_again(&mut self) {
        let now = clock::monotonic();
        for (_, entries) in self.asked_again.extract_if(.., |(at, _)| *at <= now) {
            self.farewell.send(&entries, Word::Probe);
        }
    }
}

impl Member {
    fn has_ended(&self) -> bool {
        let channel = self.channel.as_fd();
        let received = descriptor::set_nonblocking(channel, true)
            .and_then(|()| passing::receive(channel, &mut [0; 1]));
        // It says nothing: only the end can be received.
        !received.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// A peer may answer while no process has the interface, and answers one such probe in half a second only.
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(1200);

/// The number of no process.
const NONE: u64 = 0;
