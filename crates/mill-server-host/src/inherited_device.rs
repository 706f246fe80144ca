//! Hands the network stack's device from an old binary to the new one that it has started.
//!
//! The new binary asks for it over a channel that the old one left open. A program that does not ask gets no descriptor
//! of the device, so it cannot keep the device alive by accident. From then on both binaries have the device, and their
//! worker processes agree which of them uses it (mill-device `handover.rs`). When the new one serves it says so: until then
//! nothing else takes connections, so that the old one does not quit (`master.rs`).

use crate::channel::Channel;
use crate::process_log::describe;
use mill_device::attachment::Attachment;
use mill_device::specification::Specification;
use mill_sys::{descriptor, passing};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Makes the channel to a new binary: our end, and its end. The error is a message if the stack can't be handed over.
pub(crate) fn channel(stack: &Attachment) -> Result<(Channel, OwnedFd), String> {
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

/// Answers what the new binary says; whether there is more to come, until it serves. One that asks for nothing does not need the device,
/// or has ended.
pub(crate) fn answer(channel: &Channel, stack: &Attachment) -> io::Result<bool> {
    let Some(question) = channel.receive()? else {
        return Ok(false);
    };
    match stack.export() {
        Some(inherited_device) if question.kind == ASK => {
            let text = inherited_device.text.as_bytes();
            channel.send(DEVICE, text, &inherited_device.descriptors)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Tells the old binary that this one serves. It may have ended.
pub(crate) fn tell_serving(channel: &Channel) {
    let _ = channel.send(SERVES, &[], &[]);
}

/// Asks the old binary for its device; the error is a message.
pub(crate) fn ask(
    channel: &Channel,
    specification: &Specification,
) -> Result<(Attachment, Vec<String>), String> {
    let failed = |error: &io::Error| {
        format!(
            "the network stack of the old binary cannot be taken over {}",
            describe(error)
        )
    };
    let ask = || {
        channel.send(ASK, &[], &[])?;
        if !descriptor::wait_readable(&[channel.as_fd()], Some(TIMEOUT))?.contains(&true) {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        let answer = channel.receive()?;
        answer
            .filter(|answer| answer.kind == DEVICE)
            .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
    };
    let answer = ask().map_err(|error| failed(&error))?;
    let text = String::from_utf8_lossy(&answer.body);
    Attachment::inherit(specification, &text, answer.descriptors).map_err(|error| error.to_string())
}

// Message types.
const ASK: u8 = 1;
const DEVICE: u8 = 2;
const SERVES: u8 = 3;

/// How long the old binary may take to answer: the longest thing its master does is to read a configuration.
const TIMEOUT: Duration = Duration::from_secs(20);
