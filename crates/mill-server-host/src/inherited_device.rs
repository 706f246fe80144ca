//! The network stack's device goes from an old binary to the new one that it has started.
//!
//! The new one asks for it, by a line that the old one has left open: a program that knows nothing of it gets nothing, and
//! in particular nothing that would hold the device when we are gone. From then on both have it, and their worker processes
//! agree about who uses it (mill-device `handover.rs`).

use crate::channel::Channel;
use crate::process_log::describe;
use crate::stack::OwnStack;
use mill_device::specification::Specification;
use mill_sys::{descriptor, passing};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// A line for a new binary: our end, and its. A sentence if the stack can't be handed over.
pub(crate) fn line(stack: &OwnStack) -> Result<(Channel, OwnedFd), String> {
    let refused = |why: &str| {
        format!(
            "the binary is not changed: the network stack can't be handed over, since {why}; \
             stop it and start the new one"
        )
    };
    stack.can_export().map_err(refused)?;
    let made = passing::pair().and_then(|(own, far)| Ok((Channel::of(own)?, far)));
    made.map_err(|error| refused(&format!("socketpair() failed {}", describe(&error))))
}

/// Answers what comes by the line. A new binary that asks nothing needs nothing, or has ended.
pub(crate) fn answer(line: &Channel, stack: &OwnStack) -> io::Result<()> {
    let Some(question) = line.receive()? else {
        return Ok(());
    };
    match stack.export() {
        Some(inherited_device) if question.kind == ASK => line.send(
            DEVICE,
            inherited_device.text.as_bytes(),
            &inherited_device.descriptors,
        ),
        _ => Ok(()),
    }
}

/// Asks the old binary for its device; a sentence if that brings none.
pub(crate) fn ask(
    line: OwnedFd,
    specification: &Specification,
) -> Result<(OwnStack, Vec<String>), String> {
    let failed = |error: &io::Error| {
        format!(
            "the network stack of the old binary can't be had {}",
            describe(error)
        )
    };
    let ask = || {
        let line = Channel::of(line)?;
        line.send(ASK, &[], &[])?;
        if !descriptor::wait_readable(&[line.as_fd()], Some(TIMEOUT))?.contains(&true) {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        let answer = line.receive()?;
        answer
            .filter(|answer| answer.kind == DEVICE)
            .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
    };
    let answer = ask().map_err(|error| failed(&error))?;
    let text = String::from_utf8_lossy(&answer.body);
    OwnStack::inherit(specification, &text, answer.descriptors).map_err(|error| error.to_string())
}

// Kinds of messages.
const ASK: u8 = 1;
const DEVICE: u8 = 2;

/// How long the old binary may take to answer: its master does nothing that takes longer but read a configuration.
const TIMEOUT: Duration = Duration::from_secs(20);
