//! The worker that has the control channel, as the other workers see it: it gives them their rings of each connection.

use super::agreement::Agreement;
use super::dispatch::{self, Dispatch, Whole, Word};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What it has of the other workers, and of the next process.
#[derive(Debug, Default)]
pub(crate) struct Leader {
    others: Vec<Other>,
    /// Into the first of them goes the connection that there is, and out of the second comes one whose process has ended, however that
    /// came: what is in a socket stays open.
    passage: Option<[OwnedFd; 2]>,
    /// The connection is one of a process that did not end in order.
    is_anew: bool,
}

/// Another worker.
#[derive(Debug)]
struct Other {
    channel: OwnedFd,
    /// It has asked for rings, and has got none since.
    wants: bool,
    /// It may have rings of a connection.
    has: bool,
}

/// The connection of a process that has ended.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) whole: Whole,
    /// It was not killed, nor has it crashed.
    pub(super) is_in_order: bool,
}

/// What it knows of the connection that there is.
pub(crate) type Current<'a> = Option<(u64, &'a Agreement)>;

impl Leader {
    pub(crate) fn new(passage: Option<[OwnedFd; 2]>, others: Vec<OwnedFd>) -> Self {
        let others = others.into_iter().map(|channel| Other {
            channel,
            wants: false,
            has: true,
        });
        Self {
            others: others.collect(),
            passage,
            is_anew: false,
        }
    }

    /// The channels to the other workers, which are to be watched.
    pub(super) fn channels(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.others.iter().map(|other| other.channel.as_fd())
    }

    /// How many workers there are, this one included.
    pub(super) fn workers(&self) -> usize {
        self.others.len() + 1
    }

    /// The connection that the process before had, if there is one.
    pub(super) fn take_left(&self) -> Option<Left> {
        let [_, out] = self.passage.as_ref()?;
        let mut left = None;
        while let Some(dispatch) = dispatch::receive(out.as_fd()) {
            match dispatch {
                Dispatch::Whole(whole) => {
                    left = Some(Left {
                        whole,
                        is_in_order: false,
                    });
                }
                Dispatch::Word(Word::Nothing) => {
                    left.iter_mut().for_each(|left| left.is_in_order = true);
                }
                _ => {}
            }
        }
        left
    }

    /// Keeps a connection for the next process; `false` if that is not possible.
    pub(super) fn keep(&self, current: (u64, &Agreement), socket: BorrowedFd<'_>) -> bool {
        let Some([into, _]) = &self.passage else {
            return false;
        };
        dispatch::send_whole(into.as_fd(), current, socket).is_ok()
    }

    /// The process ends in order, and keeps its connection for the next one.
    pub(super) fn leave(&self) {
        if let Some([into, _]) = &self.passage {
            // Without that the next one passes over the frames that wait.
            let _ = Word::Nothing.send(into.as_fd());
        }
    }

    /// Keeps the connection no more: it is over.
    pub(super) fn withdraw(&self) {
        drop(self.take_left());
    }

    /// Reads what the other workers say. Whether one of them has found that the peer of this connection violates the protocol.
    pub(super) fn read(&mut self, current: Current<'_>) -> bool {
        let mut is_broken = false;
        for (index, other) in self.others.iter_mut().enumerate() {
            let mut is_asked = false;
            while let Some(dispatch) = dispatch::receive(other.channel.as_fd()) {
                match dispatch {
                    Dispatch::Word(Word::Want) => is_asked = true,
                    Dispatch::Word(Word::Broken(number)) => {
                        is_broken |= current.is_some_and(|(current, _)| current == number);
                    }
                    _ => {}
                }
            }
            other.wants |= is_asked;
            other.provide(index + 1, current, self.is_anew);
            if is_asked && other.wants {
                // Without it the worker sends nothing until it gets its rings.
                let _ = Word::Nothing.send(other.channel.as_fd());
            }
        }
        is_broken
    }

    /// The other workers pass over what waits in their rings of the connection that there is.
    pub(super) fn begin_anew(&mut self) {
        self.is_anew = true;
    }

    /// Gives the others their rings of a new connection.
    pub(super) fn up(&mut self, number: u64, agreement: &Agreement) {
        self.is_anew = false;
        for (index, other) in self.others.iter_mut().enumerate() {
            other.provide(index + 1, Some((number, agreement)), false);
        }
    }

    /// Tells the others that this connection is over. They ask for the next one.
    pub(super) fn down(&mut self, number: u64) {
        for other in &mut self.others {
            if std::mem::take(&mut other.has) {
                // Without room the worker has not read yet that an earlier one is over, after which it asks, too.
                let _ = Word::Down(number).send(other.channel.as_fd());
            }
        }
    }
}

impl Other {
    /// Sends what this worker wants, if there is a ring in each direction for it.
    fn provide(&mut self, worker: usize, current: Current<'_>, is_anew: bool) {
        let Some((number, agreement)) = current.filter(|_| self.wants) else {
            return;
        };
        if agreement
            .ring_counts()
            .into_iter()
            .all(|rings| rings > worker)
        {
            self.wants =
                dispatch::send_up(self.channel.as_fd(), (number, agreement), is_anew).is_err();
            self.has |= !self.wants;
        }
    }
}
