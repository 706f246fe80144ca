//! The process that answers.

use crate::request::{ATTACH, CLAIM, KEEP, answer, give};
use mill_device::attachment::Attachment;
use mill_device::specification::Specification;
use mill_device::specification::device::Device;
use mill_sys::passing;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// A device, and the socket over which processes ask for it.
#[derive(Debug)]
pub struct Keeper {
    /// As on the command line.
    stack: String,
    device: Attachment,
    requests: OwnedFd,
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
        specification.workers.count = 1;
        let made = Attachment::make(&specification).map_err(|error| error.to_string())?;
        let (device, notices) = made;
        device.can_export().map_err(|why| {
            format!(
                "the device can't go from process to process: {why}; \"queue=0\" takes one queue"
            )
        })?;
        let pair = passing::pair().map_err(|error| format!("socketpair() failed: {error}"))?;
        let (requests, program) = pair;
        let keeper = Self {
            stack: String::from(stack),
            device,
            requests,
        };
        Ok((keeper, program, notices))
    }

    /// Answers until the last process has ended that could ask.
    pub fn run(self) -> io::Result<()> {
        let mut buffer = [0; 64];
        // Connections that ended processes have left.
        let mut kept = Vec::new();
        loop {
            let (len, descriptors) = passing::receive(self.requests.as_fd(), &mut buffer)?;
            match (buffer.get(..len), descriptors.first()) {
                (Some(b""), None) => return Ok(()),
                (Some(ATTACH), Some(channel)) => {
                    // A process that is gone meanwhile needs no answer.
                    let _ = answer(channel.as_fd(), &self.stack, &self.device);
                }
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
}
