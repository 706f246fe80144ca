//! Who has a device, of several processes that could: one has it at a time, and it goes from one to the next without a frame
//! lost.
//!
//! ```text
//! the chair       made with the device; each process has it: a file to lock, and a queue of requests
//! owner           the process whose table of descriptors has locked the file. The kernel unlocks it, however it ends
//! TAKE, JOIN      a request: "give me the device", "let me be behind you", with one end of a conversation of two
//! GIVEN           in the conversation: the device is yours from here on, and I am behind you; with the relay
//! WELCOME         you are behind me; with the relay
//! LEAVING         to who is behind: whoever serves may take the device back
//! ```
//!
//! Who is behind another sends and receives through him: what the other does not know is handed over to him. So processes
//! stand in a row, the newest first. A conversation ends with either of the two; who has lost the one before him takes the device, if
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
pub struct Chair<D = OwnedFd> {
    lock: D,
    /// Requests go in at the one end and come out at the other.
    asking: D,
    asked: D,
}

/// A link's part in the succession.
#[derive(Debug)]
pub(crate) struct Seat {
    chair: Chair,
    doors: Epoll,
    timer: Timer,
    watcher: Option<Watcher>,
}

/// Somebody else who has the same device, and how to talk to him.
#[derive(Debug)]
pub(crate) struct Neighbor {
    pub(crate) relay: Relay,
    conversation: OwnedFd,
}

/// What somebody asks for.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) wish: Wish,
    pub(crate) conversation: OwnedFd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Take,
    Join,
}

/// What comes in a conversation.
#[derive(Debug)]
pub(crate) enum Word {
    Given(FarEnd),
    Welcome(FarEnd),
    Leaving,
    /// Of somebody further behind.
    Join(OwnedFd),
    /// The other is gone, or says what we don't understand.
    End,
}

/// What is at which door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Surroundings,
    Requests,
    Timer,
    /// Talk with the process before us, and with the one behind.
    Before,
    Behind,
    BellBefore,
    BellBehind,
}

/// The doors at which something is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Knocks(u32);

impl Chair {
    pub fn new() -> io::Result<Self> {
        let (asking, asked) = passing::pair()?;
        for end in [&asking, &asked] {
            descriptor::set_nonblocking(end.as_fd(), true)?;
        }
        let lock = passing::memory_file(c"millstream-succession")?;
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

impl<D> Chair<D> {
    pub fn descriptors(&self) -> [&D; 3] {
        [&self.lock, &self.asking, &self.asked]
    }

    pub fn try_map<E>(&self, copy: impl Fn(&D) -> io::Result<E>) -> io::Result<Chair<E>> {
        Ok(Chair {
            lock: copy(&self.lock)?,
            asking: copy(&self.asking)?,
            asked: copy(&self.asked)?,
        })
    }
}

impl Seat {
    /// Sits down. Whether the device is ours then: nobody else had it.
    pub(crate) fn at(chair: Chair) -> io::Result<(Self, bool)> {
        let mut seat = Self {
            chair,
            doors: Epoll::new()?,
            timer: Timer::new()?,
            watcher: None,
        };
        let timer = seat.timer.as_fd();
        seat.doors.add(timer, LEVEL, Door::Timer as u64)?;
        let is_ours = seat.lock();
        Ok((seat, is_ours))
    }

    /// Makes the device ours if it is nobody's; requests come to us then.
    pub(crate) fn lock(&mut self) -> bool {
        let is_ours = lock::lock_for_table(&self.chair.lock).is_ok();
        if is_ours {
            // It is there already if the device was ours before.
            let asked = self.chair.asked.as_fd();
            let _ = self.doors.add(asked, LEVEL, Door::Requests as u64);
        }
        is_ours
    }

    /// The device is not ours any more: nothing of it may be touched from here on.
    pub(crate) fn unlock(&mut self) {
        let _ = self.doors.remove(self.chair.asked.as_fd());
        // It can't fail: the descriptor is that of a file that was locked.
        let _ = lock::unlock_for_table(&self.chair.lock);
    }

    /// Asks whoever has the device, whose answer comes in a conversation.
    pub(crate) fn ask(&self, wish: Wish) -> io::Result<OwnedFd> {
        let (near, far) = passing::pair()?;
        for end in [&near, &far] {
            descriptor::set_nonblocking(end.as_fd(), true)?;
        }
        let kind = match wish {
            Wish::Take => TAKE,
            Wish::Join => JOIN,
        };
        say(&self.chair.asking, kind, &[far.as_fd()])?;
        self.open(Door::Before, near.as_fd());
        Ok(near)
    }

    /// The next request, of those that came to whoever has the device.
    pub(crate) fn request(&self) -> Option<Request> {
        loop {
            let (kind, descriptors) = heard(&self.chair.asked).ok()??;
            let Some(conversation) = descriptors.into_iter().next() else {
                continue;
            };
            let wish = match kind {
                TAKE => Wish::Take,
                JOIN => Wish::Join,
                // Who asks what we don't know finds that the conversation is over.
                _ => continue,
            };
            let request = Request { wish, conversation };
            if !request.is_over() {
                return Some(request);
            }
        }
    }

    /// Has what comes at a door end waits.
    pub(crate) fn open(&self, door: Door, descriptor: BorrowedFd<'_>) {
        let interest = match door {
            // Nobody reads a bell: each ring counts.
            Door::BellBefore | Door::BellBehind => EDGE,
            _ => LEVEL,
        };
        // There are few doors; one that can't be watched is looked at when another is.
        let _ = self.doors.add(descriptor, interest, door as u64);
    }

    pub(crate) fn close(&self, descriptor: BorrowedFd<'_>) {
        // Of a conversation the other may have more descriptors, hence it has to be said.
        let _ = self.doors.remove(descriptor);
    }

    /// The doors at which something is now.
    pub(crate) fn look(&self) -> Knocks {
        let mut events = [Event::EMPTY; 8];
        let reports = self.doors.wait(&mut events, Some(Duration::ZERO));
        let mut knocks = Knocks::default();
        for report in reports.unwrap_or_default() {
            knocks.0 |= 1 << (report.token() & 31);
        }
        knocks
    }

    /// Ends waits at all doors, at the latest after so long.
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

/// Readable while something is at a door.
impl AsFd for Seat {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.doors.as_fd()
    }
}

impl Request {
    /// Whether who has asked is gone, or has what he asked for, by somebody's end: then it means nothing any more, and
    /// perhaps it was we.
    pub(crate) fn is_over(&self) -> bool {
        // Before he is answered he says nothing.
        !matches!(heard(&self.conversation), Ok(None))
    }
}

impl Neighbor {
    /// Says to who has asked what he is to us from now on, and gives him his end of a relay.
    pub(crate) fn admit(request: Request) -> io::Result<Self> {
        let (relay, far) = Relay::new()?;
        Self::say_admitted(request, relay, far)
    }

    /// The same with a relay that was made before.
    pub(crate) fn say_admitted(request: Request, relay: Relay, far: FarEnd) -> io::Result<Self> {
        let Request { wish, conversation } = request;
        let kind = match wish {
            Wish::Take => GIVEN,
            Wish::Join => WELCOME,
        };
        let [ours, theirs] = &far.bells;
        let descriptors = [far.memory.as_fd(), ours.as_fd(), theirs.as_fd()];
        say(&conversation, kind, &descriptors)?;
        Ok(Self {
            relay,
            conversation,
        })
    }

    /// Takes the relay that came in a conversation.
    pub(crate) fn joined(conversation: OwnedFd, far: FarEnd) -> io::Result<Self> {
        Ok(Self {
            relay: Relay::join(far)?,
            conversation,
        })
    }

    /// What it says next; `None` if nothing.
    pub(crate) fn word(&self) -> Option<Word> {
        word(&self.conversation)
    }

    pub(crate) fn say_leaving(&self) {
        // Who is gone is noticed.
        let _ = say(&self.conversation, LEAVING, &[]);
    }

    /// Passes on that somebody wants to be behind.
    pub(crate) fn pass_on(&self, request: &Request) {
        let _ = say(&self.conversation, JOIN, &[request.conversation.as_fd()]);
    }

    pub(crate) fn open(&self, seat: &Seat, [talk, bell]: [Door; 2]) {
        seat.open(talk, self.conversation.as_fd());
        seat.open(bell, self.relay.bell());
    }

    pub(crate) fn close(&self, seat: &Seat) {
        seat.close(self.conversation.as_fd());
        seat.close(self.relay.bell());
    }
}

/// What comes next in a conversation; `None` if nothing.
pub(crate) fn word(conversation: &OwnedFd) -> Option<Word> {
    let (kind, descriptors) = match heard(conversation) {
        Ok(Some(heard)) => heard,
        Ok(None) => return None,
        Err(_) => return Some(Word::End),
    };
    let far_end = |descriptors: Vec<OwnedFd>| {
        let [memory, first, second] = <[OwnedFd; 3]>::try_from(descriptors).ok()?;
        let bells = [first, second];
        Some(FarEnd { memory, bells })
    };
    let word = match kind {
        GIVEN => far_end(descriptors).map(Word::Given),
        WELCOME => far_end(descriptors).map(Word::Welcome),
        LEAVING => Some(Word::Leaving),
        JOIN => descriptors.into_iter().next().map(Word::Join),
        _ => None,
    };
    Some(word.unwrap_or(Word::End))
}

impl Knocks {
    pub(crate) const fn at(self, door: Door) -> bool {
        self.0 & (1 << door as u32) != 0
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
