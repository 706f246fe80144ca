//! What a process asks of its keeper, and what it gets: datagrams with descriptors.

use mill_device::attachment::Attachment;
use mill_device::specification::Specification;
use mill_sys::passing;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The variable of the environment that has the number of the socket to the keeper.
pub const VARIABLE: &str = "MILLSTREAM_KEEPER";

/// The variable of the environment that has the name of a `millstream run`, where its user gave one.
pub const CLUSTER: &str = "MILLSTREAM_CLUSTER";

/// The request: its datagram carries the end of a channel for the answer.
pub(crate) const ATTACH: &[u8] = b"attach";

/// The request to keep connections that wait for another process: its datagram carries them as a memory file.
pub(crate) const KEEP: &[u8] = b"keep";

/// The request for what was kept: its datagram carries the end of a channel for the answer.
pub(crate) const CLAIM: &[u8] = b"claim";

/// What separates the parts of an answer.
const SEPARATOR: u8 = b'\n';

/// Bytes of an answer: `--stack`, and the description of a device.
const ANSWER_MAX: usize = 64 * 1024;

/// Asks the keeper at the other end of `keeper` for its device. The error is a sentence.
pub fn attach(keeper: BorrowedFd<'_>) -> Result<Attachment, String> {
    let exchange = || -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        let (near, far) = passing::pair()?;
        passing::send(keeper, ATTACH, &[far.as_fd()])?;
        drop(far);
        let mut answer = vec![0; ANSWER_MAX];
        let (len, descriptors) = passing::receive(near.as_fd(), &mut answer)?;
        answer.truncate(len);
        Ok((answer, descriptors))
    };
    let (answer, descriptors) =
        exchange().map_err(|error| format!("the keeper of \"millstream run\" is gone: {error}"))?;
    let answer = String::from_utf8(answer).unwrap_or_default();
    let Some((stack, device)) = answer.split_once(char::from(SEPARATOR)) else {
        return Err(match answer.is_empty() {
            true => String::from("the keeper of \"millstream run\" is gone"),
            false => answer,
        });
    };
    let specification = Specification::parse(stack).map_err(|error| error.to_string())?;
    let attached = Attachment::inherit(&specification, device, descriptors);
    let (attachment, _) = attached.map_err(|error| error.to_string())?;
    Ok(attachment)
}

/// Leaves connections that wait with the keeper, for the process that has the device next.
pub fn keep(keeper: BorrowedFd<'_>, connections: &[u8]) -> io::Result<()> {
    let mut file = passing::memory_file(c"millstream-waiting")?;
    file.write_all(connections)?;
    passing::send(keeper, KEEP, &[file.as_fd()])
}

/// Fetches what was left with the keeper.
pub fn claim(keeper: BorrowedFd<'_>) -> io::Result<Vec<Vec<u8>>> {
    let (near, far) = passing::pair()?;
    passing::send(keeper, CLAIM, &[far.as_fd()])?;
    drop(far);
    let (_, kept) = passing::receive(near.as_fd(), &mut [0; 1])?;
    let read = |file: OwnedFd| -> io::Result<Vec<u8>> {
        let mut file = File::from(file);
        file.rewind()?;
        let mut connections = Vec::new();
        file.read_to_end(&mut connections)?;
        Ok(connections)
    };
    kept.into_iter().map(read).collect()
}

/// Answers a claim.
pub(crate) fn give(channel: BorrowedFd<'_>, kept: &[OwnedFd]) -> io::Result<()> {
    let kept: Vec<BorrowedFd<'_>> = kept.iter().map(AsFd::as_fd).collect();
    passing::send(channel, &[1], &kept)
}

/// Answers a request: the text of `--stack`, and the device.
pub(crate) fn answer(channel: BorrowedFd<'_>, stack: &str, device: &Attachment) -> io::Result<()> {
    let Some(exported) = device.export() else {
        let why = device.can_export().err().unwrap_or("it can't be passed on");
        let what = format!("the device is for one process only: {why}");
        return passing::send(channel, what.as_bytes(), &[]);
    };
    let text = format!("{stack}{}{}", char::from(SEPARATOR), exported.text);
    passing::send(channel, text.as_bytes(), &exported.descriptors)
}
