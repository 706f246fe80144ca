//! The process that answers.

use crate::request::{ATTACH, Answer, CLAIM, KEEP, give};
use crate::shares::Shares;
use mill_device::attachment::Attachment;
use mill_device::partitions::PARTITIONS_MAX;
use mill_device::port_blocks::PortBlocks;
use mill_device::specification::Specification;
use mill_device::specification::device::Device;
use mill_device::specification::settings::{Spread, Workers};
use mill_sys::{descriptor, passing};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// A device, and the socket over which processes ask for it.
#[derive(Debug)]
pub struct Keeper {
    /// As on the command line.
    stack: String,
    device: Attachment,
    requests: OwnedFd,
    shares: Shares,
    /// Blocks of local ports, and their memory.
    ports: (PortBlocks, File),
    members: Vec<Member>,
    /// The number of the last process that has got the device.
    last: u64,
}

/// A process that has the device.
#[derive(Debug)]
struct Member {
    number: u64,
    /// Its other end is open as long as the process lives.
    channel: OwnedFd,
}

impl Keeper {
    /// Makes the device that `stack` describes. Beside the keeper are the end of its socket for the program, and messages
    /// about features that could not be had as requested; the error is a sentence.
    pub fn new(stack: &str) -> Result<(Self, OwnedFd, Vec<String>), String> {
        let mut specification = Specification::parse(stack).map_err(|error| error.to_string())?;
        if !matches!(specification.device, Device::AfXdp { .. }) {
            let kind = specification.device.kind();
            return Err(format!(
                "\"millstream run\" works over af_xdp, as in \"--stack af_xdp:eth0\"; {kind} cannot go from process to process"
            ));
        }
        // How many stacks there will be is not known: as many as there are queues can have some of their own.
        specification.workers = Workers {
            count: PARTITIONS_MAX,
            spread: Spread::ByPartition,
        };
        let made = Attachment::make(&specification).map_err(|error| error.to_string())?;
        let (device, notices) = made;
        device
            .can_export()
            .map_err(|why| format!("the device can't go from process to process: {why}"))?;
        let no_ports = |error: io::Error| format!("there is no memory for local ports: {error}");
        let memory = PortBlocks::create().map_err(no_ports)?;
        let ports = PortBlocks::open(&memory, NONE, &specification.af_xdp.ports);
        let pair = passing::pair().map_err(|error| format!("socketpair() failed: {error}"))?;
        let (requests, program) = pair;
        let keeper = Self {
            stack: String::from(stack),
            shares: Shares::new(device.worker_count()),
            ports: (ports.map_err(no_ports)?, memory),
            device,
            requests,
            members: Vec::new(),
            last: NONE,
        };
        Ok((keeper, program, notices))
    }

    /// Answers until the last process has ended that could ask.
    pub fn run(mut self) -> io::Result<()> {
        let mut buffer = [0; 64];
        // Connections that ended processes have left.
        let mut kept = Vec::new();
        loop {
            let (len, descriptors) = passing::receive(self.requests.as_fd(), &mut buffer)?;
            match (buffer.get(..len), descriptors.first()) {
                (Some(b""), None) => return Ok(()),
                (Some(ATTACH), Some(_)) => descriptors.into_iter().for_each(|it| self.admit(it)),
                (Some(CLAIM), Some(channel)) => {
                    let _ = give(channel.as_fd(), &kept);
                    kept.clear();
                }
                (Some(KEEP), Some(_)) => {
                    kept.extend(descriptors);
                    let surplus = kept.len().saturating_sub(passing::DESCRIPTORS_MAX);
                    kept.drain(..surplus);
                }
                _ => {}
            }
        }
    }

    /// Gives a process the device, and a share of its partitions.
    fn admit(&mut self, channel: OwnedFd) {
        self.forget_ended();
        self.last += 1;
        let number = self.last;
        let living: Vec<u64> = self.members.iter().map(|member| member.number).collect();
        let answer = Answer {
            stack: &self.stack,
            number,
            own: self.shares.give(number, &living),
            device: &self.device,
            ports: &self.ports.1,
        };
        // A process that is gone meanwhile needs no answer.
        if answer.send(channel.as_fd()).is_ok() {
            self.members.push(Member { number, channel });
        }
    }

    fn forget_ended(&mut self) {
        let ports = &self.ports.0;
        self.members.retain(|member| {
            let lives = member.lives();
            if !lives {
                ports.release(member.number);
            }
            lives
        });
    }
}

impl Member {
    fn lives(&self) -> bool {
        let channel = self.channel.as_fd();
        let received = descriptor::set_nonblocking(channel, true)
            .and_then(|()| passing::receive(channel, &mut [0; 1]));
        // It says nothing: only the end can be received.
        received.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// The number of no process.
const NONE: u64 = 0;
