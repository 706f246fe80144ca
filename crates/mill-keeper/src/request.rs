//! What a process asks of its keeper, and what it gets: datagrams with descriptors.

use mill_device::attachment::Attachment;
use mill_device::port_blocks::PortBlocks;
use mill_device::specification::Specification;
use mill_sys::{descriptor, passing};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The variable of the environment that has the number of the socket to the keeper.
pub const VARIABLE: &str = "MILLSTREAM_KEEPER";

/// The variable of the environment that has the name of a `millstream run`, where its user gave one.
pub const CLUSTER: &str = "MILLSTREAM_CLUSTER";

/// The variable of the environment that has the addresses that the stack has and the kernel does not, separated by spaces.
pub const ADDRESSES: &str = "MILLSTREAM_ADDRESSES";

/// The variable of the environment that says what has a stack of its own: `thread`, or it is not there.
pub const STACKS: &str = "MILLSTREAM_STACKS";

/// The variable of the environment with which each process says which stack it has.
pub const VERBOSE: &str = "MILLSTREAM_VERBOSE";

/// The request: its datagram carries the end of a channel for the answer, and the process's ledger if it has one.
pub(crate) const ATTACH: &[u8] = b"attach";

/// The request to keep connections that wait for another process: its datagram carries them as a memory file.
pub(crate) const KEEP: &[u8] = b"keep";

/// The request for what was kept: its datagram carries the end of a channel for the answer.
pub(crate) const CLAIM: &[u8] = b"claim";

/// The request to pass connections that wait to another process: behind the word are the numbers of the asking process and of that one; its
/// datagram carries the connections as a memory file.
pub(crate) const PASS: &[u8] = b"pass ";

/// A process has taken what was passed to it.
pub(crate) const TAKEN: &[u8] = b"taken";

/// What separates the parts of an answer.
const SEPARATOR: char = '\n';

/// Bytes of an answer: `--stack`, the process's number and share, and the description of a device.
const ANSWER_MAX: usize = 64 * 1024;

/// What a process gets.
#[derive(Debug)]
pub struct Admission {
    pub attachment: Attachment,
    /// The partitions of the device that the process is to own.
    pub own: Vec<u32>,
    /// From which it may open connections.
    pub ports: PortBlocks,
    /// The memory of [`mill_device::process_group::GroupTable`].
    pub groups: File,
    /// Its number among the processes that have the device.
    pub number: u64,
    /// To be kept open as long as the process lives; what is passed to it comes by it.
    pub membership: OwnedFd,
}

/// Asks the keeper at the other end of `keeper` for its device; `ledger` is the file of the process's connections. The error is a
/// sentence.
pub fn attach(keeper: BorrowedFd<'_>, ledger: Option<&File>) -> Result<Admission, String> {
    let exchange = || -> io::Result<(OwnedFd, Vec<u8>, Vec<OwnedFd>)> {
        let (near, far) = passing::pair()?;
        let mut passed = vec![far.as_fd()];
        passed.extend(ledger.map(AsFd::as_fd));
        passing::send(keeper, ATTACH, &passed)?;
        drop(far);
        let mut answer = vec![0; ANSWER_MAX];
        let (len, descriptors) = passing::receive(near.as_fd(), &mut answer)?;
        answer.truncate(len);
        Ok((near, answer, descriptors))
    };
    let (membership, answer, descriptors) =
        exchange().map_err(|error| format!("the keeper of \"millstream run\" is gone: {error}"))?;
    let answer = String::from_utf8(answer).unwrap_or_default();
    let parts: Vec<&str> = answer.splitn(4, SEPARATOR).collect();
    let [stack, number, own, device] = parts.as_slice() else {
        return Err(match answer.is_empty() {
            true => String::from("the keeper of \"millstream run\" is gone"),
            false => answer,
        });
    };
    let unknown =
        || String::from("the keeper's answer is not understood: it is of another version");
    let number: u64 = number.parse().map_err(|_| unknown())?;
    let own = own.split_whitespace().map(str::parse);
    let own = own.collect::<Result<_, _>>().map_err(|_| unknown())?;
    let mut descriptors = descriptors.into_iter();
    let memory = File::from(descriptors.next().ok_or_else(unknown)?);
    let groups = File::from(descriptors.next().ok_or_else(unknown)?);
    let specification = Specification::parse(stack);
    let specification = specification.and_then(Specification::behind_bridge);
    let specification = specification.map_err(|error| error.to_string())?;
    let ports = PortBlocks::open(&memory, number, specification.local_ports())
        .map_err(|error| format!("mmap() of local ports: {error}"))?;
    // Further words are looked for, not waited for.
    descriptor::set_nonblocking(membership.as_fd(), true).map_err(|error| error.to_string())?;
    let attached = Attachment::inherit(&specification, device, descriptors.collect());
    let (attachment, _) = attached.map_err(|error| error.to_string())?;
    Ok(Admission {
        attachment,
        own,
        ports,
        groups,
        number,
        membership,
    })
}

/// Leaves connections that wait with the keeper, for the process that has the device next.
pub fn keep(keeper: BorrowedFd<'_>, connections: &[u8]) -> io::Result<()> {
    let file = written(connections)?;
    passing::send(keeper, KEEP, &[file.as_fd()])
}

/// Passes connections that wait at the listeners of process `from` to process `to`; if that is no more, or does not take them, they come back.
pub fn pass(keeper: BorrowedFd<'_>, from: u64, to: u64, connections: &[u8]) -> io::Result<()> {
    let file = written(connections)?;
    let request = [PASS, format!("{from} {to}").as_bytes()].concat();
    passing::send(keeper, &request, &[file.as_fd()])
}

/// What the keeper says to a process by its membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Connections that another process has passed to this one.
    Passed(Vec<u8>),
    /// Connections are kept for whichever process of the program claims them.
    Kept,
}

/// What the keeper has said, if anything; `membership` is that of the process's admission. The end of the keeper is an error.
pub fn receive_passed(membership: BorrowedFd<'_>) -> io::Result<Option<Heard>> {
    let received = match passing::receive(membership, &mut [0; 1]) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        received => received?,
    };
    match received {
        (0, _) => Err(io::ErrorKind::UnexpectedEof.into()),
        (_, mut files) => {
            let Some(file) = files.pop() else {
                return Ok(Some(Heard::Kept));
            };
            let connections = read(file)?;
            // Without it the keeper has them for the next process that claims them, once this one has ended.
            let _ = passing::send(membership, TAKEN, &[]);
            Ok(Some(Heard::Passed(connections)))
        }
    }
}

fn written(connections: &[u8]) -> io::Result<File> {
    let mut file = passing::memory_file(c"millstream-waiting")?;
    file.write_all(connections)?;
    Ok(file)
}

/// The bytes of a memory file.
pub(crate) fn read(file: OwnedFd) -> io::Result<Vec<u8>> {
    let mut file = File::from(file);
    file.rewind()?;
    let mut connections = Vec::new();
    file.read_to_end(&mut connections)?;
    Ok(connections)
}

/// Fetches what was left with the keeper.
pub fn claim(keeper: BorrowedFd<'_>) -> io::Result<Vec<Vec<u8>>> {
    let (near, far) = passing::pair()?;
    passing::send(keeper, CLAIM, &[far.as_fd()])?;
    drop(far);
    let (_, kept) = passing::receive(near.as_fd(), &mut [0; 1])?;
    kept.into_iter().map(read).collect()
}

/// Answers a claim.
pub(crate) fn give(channel: BorrowedFd<'_>, kept: &[OwnedFd]) -> io::Result<()> {
    let kept: Vec<BorrowedFd<'_>> = kept.iter().map(AsFd::as_fd).collect();
    passing::send(channel, &[1], &kept)
}

/// The answer to a request.
pub(crate) struct Answer<'a> {
    /// As on the command line.
    pub(crate) stack: &'a str,
    pub(crate) number: u64,
    pub(crate) own: Vec<u32>,
    pub(crate) device: &'a Attachment,
    /// The memory of [`PortBlocks`].
    pub(crate) ports: &'a File,
    /// The memory of [`mill_device::process_group::GroupTable`].
    pub(crate) groups: &'a File,
}

impl Answer<'_> {
    pub(crate) fn send(&self, channel: BorrowedFd<'_>) -> io::Result<()> {
        let Some(exported) = self.device.export() else {
            let why = self.device.can_export().err();
            let why = why.unwrap_or("it can't be passed on");
            let what = format!("the device is for one process only: {why}");
            return passing::send(channel, what.as_bytes(), &[]);
        };
        let own: Vec<String> = self.own.iter().map(u32::to_string).collect();
        let number = self.number.to_string();
        let parts = [self.stack, &number, &own.join(" "), &exported.text];
        let descriptors: Vec<BorrowedFd<'_>> = [self.ports.as_fd(), self.groups.as_fd()]
            .into_iter()
            .chain(exported.descriptors)
            .collect();
        let text = parts.join(&SEPARATOR.to_string());
        passing::send(channel, text.as_bytes(), &descriptors)
    }
}
