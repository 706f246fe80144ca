//! What is said over connections of the plain TCP, and what is found.

/// A client: asks our servers, and compares every byte.
mod client;
/// A server: answers our clients.
mod server;

use crate::plan::PlainTalk;
use client::Client;
use server::Server;

/// One end's application.
#[derive(Debug)]
pub struct Application {
    part: Part,
    /// It was told that nothing follows.
    is_finished: bool,
}

#[derive(Debug)]
enum Part {
    Client(Box<Client>),
    Server(Server),
}

/// What an application does when it has been given bytes, all of which it takes.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) bytes: Vec<u8>,
    pub(super) closes: bool,
    /// It leaves by RST.
    pub(super) resets: bool,
}

/// What a client has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It is not at its end yet.
    Open,
    /// Everything came, and the end after it; or the client left, as it meant to.
    Whole,
    /// The connection broke before anything came.
    Refused(&'static str),
    /// It broke, or ended too early.
    Broken(String),
    /// Something else came than was sent: what must never happen.
    Wrong(String),
}

impl Application {
    pub(super) fn client(number: usize, talk: &PlainTalk) -> Self {
        Self {
            part: Part::Client(Box::new(Client::new(number, talk))),
            is_finished: false,
        }
    }

    pub(super) fn server() -> Self {
        Self {
            part: Part::Server(Server::default()),
            is_finished: false,
        }
    }

    /// `finished`: behind these bytes nothing follows.
    pub(super) fn act(&mut self, unread: &[u8], finished: bool) -> Said {
        self.is_finished |= finished;
        match &mut self.part {
            Part::Client(client) => client.act(unread, finished),
            Part::Server(server) => server.act(unread, finished),
        }
    }

    /// The connection broke.
    pub(super) fn break_off(&mut self, why: &'static str) {
        if let Part::Client(client) = &mut self.part {
            client.break_off(why);
        }
    }

    /// Whether it knows that nothing follows.
    pub(super) const fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// A client's number and finding.
    pub(super) fn finding(&self) -> Option<(usize, &Finding)> {
        match &self.part {
            Part::Client(client) => Some((client.number, &client.finding)),
            Part::Server(_) => None,
        }
    }
}

/// The end of a head, behind its empty line.
fn head_len(bytes: &[u8]) -> Option<usize> {
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    at.map(|at| at + 4)
}
