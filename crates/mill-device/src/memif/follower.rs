//! A worker that gets its rings from another one, the leader, which has the control channel.

use super::channel::End;
use super::connection::Connection;
use super::control::{EVENTS_MAX, News, ON_CHANGE};
use super::dispatch::{self, Dispatch, Word};
use super::share::Share;
use mill_sys::epoll::{Epoll, Event};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// A worker's way to its rings.
#[derive(Debug)]
pub(crate) struct Follower {
    /// Its other end is the leader's.
    channel: OwnedFd,
    share: Share,
    epoll: Epoll,
    /// The connection's number, while there is one.
    number: Option<u64>,
    /// The leader has not answered yet whether there are rings.
    is_asking: bool,
}

impl Follower {
    pub(crate) fn new(channel: OwnedFd, share: Share) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(channel.as_fd(), ON_CHANGE, 0)?;
        let mut follower = Self {
            channel,
            share,
            epoll,
            number: None,
            is_asking: false,
        };
        follower.want();
        Ok(follower)
    }

    /// Whether it is not known yet that there are no rings.
    pub(super) fn is_asking(&self) -> bool {
        self.is_asking
    }

    /// Readable while there is something to do.
    pub(super) fn epoll(&self) -> &Epoll {
        &self.epoll
    }

    /// Handles what the leader says.
    pub(super) fn look(&mut self, news: &mut Vec<News>) {
        let mut buffer = [Event::EMPTY; EVENTS_MAX];
        // Edges are reported once, so all of them are read.
        while let Ok(EVENTS_MAX) = self
            .epoll
            .wait(&mut buffer, Some(Duration::ZERO))
            .map(<[_]>::len)
        {}
        while let Some(dispatch) = dispatch::receive(self.channel.as_fd()) {
            self.is_asking = false;
            match dispatch {
                Dispatch::Up {
                    number,
                    agreement,
                    is_anew,
                } if self.number != Some(number) => {
                    match Connection::resume(&agreement, self.share) {
                        Ok(mut connection) => {
                            if is_anew {
                                connection.pass_over();
                            }
                            self.number = Some(number);
                            news.push(News::Up(Box::new(connection)));
                        }
                        Err(refusal) => news.push(News::Failed(End::Refused(refusal))),
                    }
                }
                Dispatch::Word(Word::Down(number)) => {
                    let is_over = |own: &mut u64| *own <= number;
                    if self.number.take_if(is_over).is_some() {
                        news.push(News::Down(End::Gone));
                    }
                    self.want();
                }
                _ => {}
            }
        }
    }

    /// Has the leader disconnect a peer that violates the protocol.
    pub(super) fn hang_up(&mut self) {
        if let Some(number) = self.number.take() {
            // Without room the leader does not read: it is about to end, and the connection with it.
            let _ = Word::Broken(number).send(self.channel.as_fd());
        }
    }

    fn want(&mut self) {
        // As above; each process that becomes the leader asks what is wanted.
        self.is_asking = Word::Want.send(self.channel.as_fd()).is_ok();
    }
}
