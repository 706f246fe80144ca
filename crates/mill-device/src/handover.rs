//! Who has a device, of several processes that could: one has it at a time, and it goes from one to the next without a frame
//! lost.
//!
//! ```text
//! the lock        made with the device; each process has it: a file to lock, and a queue of requests
//! owner           the process whose table of descriptors has locked the file. The kernel unlocks it, however it ends
//! TAKE, JOIN      a request: "give me the device", "let me be behind you", with one end of a channel of two
//! GIVEN           in the channel: the device is yours from here on, and I am behind you; with the relay
//! WELCOME         you are behind me; with the relay
//! LEAVING         to who is behind: whoever serves may take the device back
//! ```
//!
//! Who is behind another sends and receives through him: what the other does not know is handed over to him. So processes
//! stand in a row, the newest first. A channel ends with either of the two; who has lost the one before him takes the device, if
//! nobody has it, or joins the row again.

use crate::relay::{FarEnd, Relay};
use mill_sys::epoll::{Epoll, Event, Interest, Watcher};
use mill_sys::timerfd::Timer;
use mill_sys::{descriptor, lock, passing};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// What the processes share that may have the device.
#[derive(Clone, Debug)]
pub struct OwnershipLock<D = OwnedFd> {
    lock: D,
    /// Requests go in at the one end and come out at the other.
    asking: D,
    asked: D,
}

/// A link's part in the handover.
#[derive(Debug)]
pub(crate) struct Endpoint {
    ownership: OwnershipLock,
    sources: Epoll,
    timer: Timer,
    watcher: Option<Watcher>,
}

/// Somebody else who has the same device, and how to talk to him.
#[derive(Debug)]
pub(crate) struct PeerProcess {
    pub(crate) relay: Relay,
    channel: OwnedFd,
}

/// What somebody asks for.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) request_kind: RequestKind,
    pub(crate) channel: OwnedFd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Take,
    Join,
}

/// What comes in a channel.
#[derive(Debug)]
pub(crate) enum Message {
    Given(FarEnd),
    Welcome(FarEnd),
    Leaving,
    /// Of somebody further behind.
    Join(OwnedFd),
    /// The other is gone, or says what we don't understand.
    End,
}

/// What is at which source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSource {
    Network,
    Requests,
    Timer,
    /// Talk with the process before us, and with the one behind.
    Before,
    Behind,
    DoorbellBefore,
    DoorbellBehind,
}

/// The sources at which something is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadySources(u32);

impl OwnershipLock {
    pub fn new() -> io::Result<Self> {
        let (asking, asked) = passing::pair()?;
        for end in [&asking, &asked] {
            descriptor::set_nonblocking(end.as_fd(), true)?;
        }
        let lock = passing::memory_file(c"millstream-handover")?;
        Ok(Self {
            lock: lock.into(),
            asking,
            asked,
        })
    }

    /// Of three descriptors, in the order of [`Self::descriptors`].
    pub fn of(descriptors: [OwnedFd; 3]) -> Self {
        let [lock, asking, asked] = descriptors;
        Self {
            lock,
            asking,
            asked,
        }
    }
}

impl<D> OwnershipLock<D> {
    pub fn descriptors(&self) -> [&D; 3] {
        [&self.lock, &self.asking, &self.asked]
    }

    pub fn try_map<E>(&self, copy: impl Fn(&D) -> io::Result<E>) -> io::Result<OwnershipLock<E>> {
        Ok(OwnershipLock {
            lock: copy(&self.lock)?,
            asking: copy(&self.asking)?,
            asked: copy(&self.asked)?,
        })
    }
}

impl Endpoint {
    /// Sits down. Whether the device is ours then: nobody else had it.
    pub(crate) fn at(ownership: OwnershipLock) -> io::Result<(Self, bool)> {
        let mut endpoint = Self {
            ownership,
            sources: Epoll::new()?,
            timer: Timer::new()?,
            watcher: None,
        };
        let timer = endpoint.timer.as_fd();
        endpoint
            .sources
            .add(timer, LEVEL, EventSource::Timer as u64)?;
        let is_ours = endpoint.lock();
        Ok((endpoint, is_ours))
    }

    /// Makes the device ours if it is nobody's; requests come to us then.
    pub(crate) fn lock(&mut self) -> bool {
        let is_ours = lock::lock_for_table(&self.ownership.lock).is_ok();
        if is_ours {
            // It is there already if the device was ours before.
            let asked = self.ownership.asked.as_fd();
            let _ = self.sources.add(asked, LEVEL, EventSource::Requests as u64);
        }
        is_ours
    }

    /// The device is not ours any more: nothing of it may be touched from here on.
    pub(crate) fn unlock(&mut self) {
        let _ = self.sources.remove(self.ownership.asked.as_fd());
        // It can't fail: the descriptor is that of a file that was locked.
        let _ = lock::unlock_for_table(&self.ownership.lock);
    }

    /// Asks whoever has the device, whose answer comes in a channel.
    pub(crate) fn ask(&self, request_kind: RequestKind) -> io::Result<OwnedFd> {
        let (near, far) = passing::pair()?;
        for end in [&near, &far] {
            descriptor::set_nonblocking(end.as_fd(), true)?;
        }
        let kind = match request_kind {
            RequestKind::Take => TAKE,
            RequestKind::Join => JOIN,
        };
        say(&self.ownership.asking, kind, &[far.as_fd()])?;
        self.open(EventSource::Before, near.as_fd());
        Ok(near)
    }

    /// The next request, of those that came to whoever has the device.
    pub(crate) fn request(&self) -> Option<Request> {
        loop {
            let (kind, descriptors) = heard(&self.ownership.asked).ok()??;
            let Some(channel) = descriptors.into_iter().next() else {
                continue;
            };
            let request_kind = match kind {
                TAKE => RequestKind::Take,
                JOIN => RequestKind::Join,
                // Who asks what we don't know finds that the channel is over.
                _ => continue,
            };
            let request = Request {
                request_kind,
                channel,
            };
            if !request.is_over() {
                return Some(request);
            }
        }
    }

    /// Has what comes at a source end waits.
    pub(crate) fn open(&self, source: EventSource, descriptor: BorrowedFd<'_>) {
        let interest = match source {
            // Nobody reads a doorbell: each ring counts.
            EventSource::DoorbellBefore | EventSource::DoorbellBehind => EDGE,
            _ => LEVEL,
        };
        // There are few sources; one that can't be watched is looked at when another is.
        let _ = self.sources.add(descriptor, interest, source as u64);
    }

    pub(crate) fn close(&self, descriptor: BorrowedFd<'_>) {
        // Of a channel the other may have more descriptors, hence it has to be said.
        let _ = self.sources.remove(descriptor);
    }

    /// The sources at which something is now.
    pub(crate) fn look(&self) -> ReadySources {
        let mut events = [Event::EMPTY; 8];
        let reports = self.sources.wait(&mut events, Some(Duration::ZERO));
        let mut ready = ReadySources::default();
        for report in reports.unwrap_or_default() {
            ready.0 |= 1 << (report.token() & 31);
        }
        ready
    }

    /// Ends waits at all sources, at the latest after so long.
    pub(crate) fn set_timer(&self, after: Option<Duration>) {
        // Without it whoever waits is woken by others.
        let _ = self.timer.set(after);
    }

    /// Has frames of the device end waits, by way of whoever waits.
    pub(crate) fn set_watcher(&mut self, watcher: Watcher) {
        self.watcher = Some(watcher);
    }

    pub(crate) fn watch(&self, device: BorrowedFd<'_>) {
        if let Some(watcher) = &self.watcher {
            // Frames are found by whatever else ends a wait, then.
            let _ = watcher.watch(device);
        }
    }

    pub(crate) fn leave(&self, device: BorrowedFd<'_>) {
        if let Some(watcher) = &self.watcher {
            let _ = watcher.leave(device);
        }
    }
}

/// Readable while something is at a source.
impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sources.as_fd()
    }
}

impl Request {
    /// Whether who has asked is gone, or has what he asked for, by somebody's end: then it means nothing any more, and
    /// perhaps it was we.
    pub(crate) fn is_over(&self) -> bool {
        // Before he is answered he says nothing.
        !matches!(heard(&self.channel), Ok(None))
    }
}

impl PeerProcess {
    /// Says to who has asked what he is to us from now on, and gives him his end of a relay.
    pub(crate) fn admit(request: Request) -> io::Result<Self> {
        let (relay, far) = Relay::new()?;
        Self::say_admitted(request, relay, far)
    }

    /// The same with a relay that was made before.
    pub(crate) fn say_admitted(request: Request, relay: Relay, far: FarEnd) -> io::Result<Self> {
        let Request {
            request_kind,
            channel,
        } = request;
        let kind = match request_kind {
            RequestKind::Take => GIVEN,
            RequestKind::Join => WELCOME,
        };
        let [ours, theirs] = &far.doorbells;
        let descriptors = [far.memory.as_fd(), ours.as_fd(), theirs.as_fd()];
        say(&channel, kind, &descriptors)?;
        Ok(Self { relay, channel })
    }

    /// Takes the relay that came in a channel.
    pub(crate) fn joined(channel: OwnedFd, far: FarEnd) -> io::Result<Self> {
        Ok(Self {
            relay: Relay::join(far)?,
            channel,
        })
    }

    /// What it says next; `None` if nothing.
    pub(crate) fn next_message(&self) -> Option<Message> {
        next_message(&self.channel)
    }

    pub(crate) fn say_leaving(&self) {
        // Who is gone is noticed.
        let _ = say(&self.channel, LEAVING, &[]);
    }

    /// Passes on that somebody wants to be behind.
    pub(crate) fn pass_on(&self, request: &Request) {
        let _ = say(&self.channel, JOIN, &[request.channel.as_fd()]);
    }

    pub(crate) fn open(&self, endpoint: &Endpoint, [talk, doorbell]: [EventSource; 2]) {
        endpoint.open(talk, self.channel.as_fd());
        endpoint.open(doorbell, self.relay.doorbell_fd());
    }

    pub(crate) fn close(&self, endpoint: &Endpoint) {
        endpoint.close(self.channel.as_fd());
        endpoint.close(self.relay.doorbell_fd());
    }
}

/// What comes next in a channel; `None` if nothing.
pub(crate) fn next_message(channel: &OwnedFd) -> Option<Message> {
    let (kind, descriptors) = match heard(channel) {
        Ok(Some(heard)) => heard,
        Ok(None) => return None,
        Err(_) => return Some(Message::End),
    };
    let far_end = |descriptors: Vec<OwnedFd>| {
        let [memory, first, second] = <[OwnedFd; 3]>::try_from(descriptors).ok()?;
        let doorbells = [first, second];
        Some(FarEnd { memory, doorbells })
    };
    let next_message = match kind {
        GIVEN => far_end(descriptors).map(Message::Given),
        WELCOME => far_end(descriptors).map(Message::Welcome),
        LEAVING => Some(Message::Leaving),
        JOIN => descriptors.into_iter().next().map(Message::Join),
        _ => None,
    };
    Some(next_message.unwrap_or(Message::End))
}

impl ReadySources {
    pub(crate) const fn at(self, source: EventSource) -> bool {
        self.0 & (1 << source as u32) != 0
    }
}

fn say(to: &OwnedFd, kind: u8, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    passing::send(to.as_fd(), &[VERSION, kind], descriptors)
}

/// `None` if nothing is said; an error at the end, also of understanding.
fn heard(from: &OwnedFd) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut bytes = [0; 2];
    match passing::receive(from.as_fd(), &mut bytes) {
        Ok((2, descriptors)) if bytes[0] == VERSION => Ok(Some((bytes[1], descriptors))),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Ok(_) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        Err(error) => Err(error),
    }
}

/// Of what is said and of the relay: a program that speaks another is no successor.
pub(crate) const VERSION: u8 = 1;

const TAKE: u8 = 1;
const JOIN: u8 = 2;
const GIVEN: u8 = 3;
const WELCOME: u8 = 4;
const LEAVING: u8 = 5;

const LEVEL: Interest = Interest {
    readable: true,
    writable: false,
    edge: false,
    exclusive: false,
};
const EDGE: Interest = Interest {
    edge: true,
    ..LEVEL
};

#[cfg(test)]
mod tests;
