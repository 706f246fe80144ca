//! Opening records where they lie in the engine's buffer.
//!
//! ```text
//! engine's unread bytes: | plaintext | tail | next record, sealed ...
//! ```
//!
//! The header of the first record is consumed when it is opened. Its tail (padding, content type, tag) is consumed with the
//! last byte of plaintext. Where a reader needs more than is open, the next record's plaintext moves down to the end of the
//! open one, and the gap joins the tail: so plaintext is contiguous, and no byte is kept elsewhere.

use super::{Established, State, TlsStream};
use crate::alert::{Alert, AlertDescription};
use crate::handshake::{Fault, Updates};
use crate::protection::{Opener, Sealer, Version};
use crate::record::{ContentType, HEADER_BYTES, RecordHeader};
use mill_runtime::stream::{Readable, Stream, StreamError};
use std::task::Poll;

/// The unread bytes that were opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unread {
    plain: usize,
    tail: usize,
    /// Bytes of the next record that are needed; 0 stands for its header.
    needed: usize,
    /// Records without application data, one after the other.
    empty: u32,
}

/// What a record asks for, besides being read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Message {
    /// Nothing.
    None,
    Alert(Alert),
    /// A handshake message behind the handshake.
    Handshake(Vec<u8>),
}

impl Unread {
    /// Lends the plaintext to `take`.
    pub(super) fn lend<R>(
        &mut self,
        bytes: &mut [u8],
        take: impl FnOnce(&mut [u8]) -> (usize, R),
    ) -> (usize, R) {
        let (consumed, result) = take(bytes.get_mut(..self.plain).unwrap_or_default());
        self.plain -= consumed.min(self.plain);
        if self.plain > 0 {
            return (consumed, result);
        }
        (consumed + std::mem::take(&mut self.tail), result)
    }

    /// Unread bytes of the engine that the next record needs.
    fn all_needed(&self) -> usize {
        self.plain + self.tail + self.needed.max(HEADER_BYTES)
    }

    /// Opens the next record; returns how many bytes the engine may forget.
    fn open(
        &mut self,
        bytes: &mut [u8],
        opener: &mut Opener,
    ) -> (usize, Result<Message, AlertDescription>) {
        let at = self.plain + self.tail;
        let rest = bytes.get_mut(at..).unwrap_or_default();
        let header = match RecordHeader::parse(rest) {
            None => return (0, Ok(Message::None)),
            Some(Ok(header)) => header,
            Some(Err(error)) => return (0, Err(error.into())),
        };
        let total = HEADER_BYTES + header.len;
        let Some(body) = rest.get_mut(HEADER_BYTES..total) else {
            self.needed = total;
            return (0, Ok(Message::None));
        };
        self.needed = 0;
        let opened = match opener.open(header, body) {
            Ok(opened) => opened,
            Err(description) => return (0, Err(description)),
        };
        let start = HEADER_BYTES + opened.start;
        if opened.content_type != ContentType::ApplicationData || opened.len == 0 {
            let message = match opened.content_type {
                ContentType::ApplicationData => Ok(Message::None),
                content_type => {
                    let content = rest.get(start..start + opened.len).unwrap_or_default();
                    Message::of(content_type, content)
                }
            };
            self.empty += 1;
            let message = match message {
                Ok(_) if self.empty > EMPTY_MAX => Err(AlertDescription::UnexpectedMessage),
                other => other,
            };
            if self.plain == 0 {
                return (total, message);
            }
            self.tail += total;
            return (0, message);
        }
        self.empty = 0;
        if self.plain == 0 {
            self.plain = opened.len;
            self.tail = total - start - opened.len;
            return (start, Ok(Message::None));
        }
        let from = at + start;
        bytes.copy_within(from..from + opened.len, self.plain);
        self.plain += opened.len;
        self.tail = at + total - self.plain;
        (0, Ok(Message::None))
    }
}

impl Message {
    fn of(content_type: ContentType, content: &[u8]) -> Result<Self, AlertDescription> {
        match content_type {
            // RFC 8446 5.4.
            ContentType::Alert | ContentType::Handshake if content.is_empty() => {
                Err(AlertDescription::UnexpectedMessage)
            }
            ContentType::Alert => Alert::parse(content)
                .map(Self::Alert)
                .ok_or(AlertDescription::DecodeError),
            ContentType::Handshake => Ok(Self::Handshake(content.to_vec())),
            ContentType::ChangeCipherSpec | ContentType::ApplicationData => {
                Err(AlertDescription::UnexpectedMessage)
            }
        }
    }
}

impl<S: Stream> TlsStream<S> {
    /// As [`Stream::poll_readable`], of plaintext.
    pub(super) fn poll_plain(&self, least: usize) -> Poll<Result<Readable, StreamError>> {
        loop {
            let needed = match &mut *self.state.borrow_mut() {
                State::Established(established) => {
                    if !established.early.is_empty() {
                        established.join_early(&self.stream);
                    }
                    let unread = established.early.len() + established.unread.plain;
                    let finished = established.is_closed;
                    if unread >= least || finished {
                        return Poll::Ready(Ok(Readable { unread, finished }));
                    }
                    established.unread.all_needed()
                }
                State::Early(early) if early.unread() >= least => {
                    return Poll::Ready(Ok(Readable {
                        unread: early.unread(),
                        finished: false,
                    }));
                }
                State::Failed(error, _) => return Poll::Ready(Err(*error)),
                // Plain HTTP came instead of a handshake.
                State::Clear(_) => return self.stream.poll_readable(least),
                State::Handshaking { .. } | State::Early(_) => 0,
            };
            if needed == 0 {
                // What else is to come, comes with the handshake or behind it.
                match self.poll_step() {
                    Poll::Ready(()) => continue,
                    Poll::Pending => return Poll::Pending,
                }
            }
            match self.stream.poll_readable(needed) {
                // FIN without close_notify: what was to come is cut, or never was.
                Poll::Ready(Ok(readable)) if readable.unread < needed => {
                    return Poll::Ready(Err(StreamError::Unfinished));
                }
                Poll::Ready(Ok(_)) => self.open_next(),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn open_next(&self) {
        let result = match &mut *self.state.borrow_mut() {
            State::Established(established) => {
                let Established { unread, opener, .. } = &mut **established;
                let message = self.stream.read(|bytes| unread.open(bytes, opener));
                message.and_then(|message| established.on_message(&message))
            }
            _ => return,
        };
        match result {
            Ok(None) => {}
            Ok(Some(Answer::NoRenegotiation)) => self.seal_message(
                ContentType::Alert,
                &Alert {
                    is_fatal: false,
                    description: AlertDescription::NoRenegotiation,
                }
                .emit(),
            ),
            Ok(Some(Answer::KeyUpdate)) => self.update_keys(),
            Err(description) => self.refuse(description),
        }
    }

    /// Tells the peer why, and ends; one that has ended itself is told nothing (RFC 8446 6.2).
    fn refuse(&self, description: AlertDescription) {
        self.worker.count(|counters| counters.records_refused += 1);
        if description != AlertDescription::CloseNotify {
            self.seal_message(ContentType::Alert, &Alert::fatal(description).emit());
        }
        *self.state.borrow_mut() = State::Failed(StreamError::Tls, Fault::Record(description));
    }
}

/// What our side owes for a message.
enum Answer {
    NoRenegotiation,
    /// New keys of our side too.
    KeyUpdate,
}

impl Established {
    fn on_message(&mut self, message: &Message) -> Result<Option<Answer>, AlertDescription> {
        match message {
            Message::None => Ok(None),
            Message::Alert(alert) => match alert.description {
                AlertDescription::CloseNotify => {
                    self.is_closed = true;
                    Ok(None)
                }
                AlertDescription::UserCanceled => Ok(None),
                // A warning of TLS 1.2 ends nothing; in TLS 1.3 there are no others (RFC 8446 6).
                _ if !alert.is_fatal && self.version == Version::Tls12 => Ok(None),
                _ => Err(AlertDescription::CloseNotify),
            },
            Message::Handshake(content) => self.on_handshake(content),
        }
    }

    /// Messages behind the handshake (RFC 8446 4.6). A message that goes on in the next record is refused: none that is
    /// taken here is as long, but tickets, which rustls' servers and OpenSSL's send whole.
    fn on_handshake(&mut self, mut content: &[u8]) -> Result<Option<Answer>, AlertDescription> {
        let mut answer = None;
        while !content.is_empty() {
            let (head, rest) = content
                .split_first_chunk::<4>()
                .ok_or(AlertDescription::UnexpectedMessage)?;
            let [kind, high, middle, low] = *head;
            let len = u32::from_be_bytes([0, high, middle, low]) as usize;
            let (body, rest) = rest
                .split_at_checked(len)
                .ok_or(AlertDescription::UnexpectedMessage)?;
            content = rest;
            if kind == KEY_UPDATE && !content.is_empty() {
                // RFC 8446 5.1: what follows is for the new keys, so it stands in another record.
                return Err(AlertDescription::UnexpectedMessage);
            }
            answer = match (self.version, kind, &mut self.updates) {
                (Version::Tls13, KEY_UPDATE, _) => self.on_key_update(body)?,
                (Version::Tls13, NEW_SESSION_TICKET, Updates::Client(updates)) => {
                    (updates.handle_new_session_ticket(body))
                        .map_err(|_| AlertDescription::DecodeError)?;
                    let tickets = &self.facts.tickets;
                    tickets.set(tickets.get().saturating_add(1));
                    None
                }
                (Version::Tls12, CLIENT_HELLO, Updates::Server(_))
                | (Version::Tls12, HELLO_REQUEST, Updates::Client(_)) => {
                    Some(Answer::NoRenegotiation)
                }
                _ => return Err(AlertDescription::UnexpectedMessage),
            };
        }
        Ok(answer)
    }

    fn on_key_update(&mut self, body: &[u8]) -> Result<Option<Answer>, AlertDescription> {
        let answer = match body {
            [0] => None,
            [1] => Some(Answer::KeyUpdate),
            [_] => return Err(AlertDescription::IllegalParameter),
            _ => return Err(AlertDescription::DecodeError),
        };
        let secrets = match &mut self.updates {
            Updates::Server(updates) => updates.update_rx_secret(),
            Updates::Client(updates) => updates.update_rx_secret(),
        };
        let secrets = secrets.map_err(|_| AlertDescription::InternalError)?;
        self.opener = Opener::new(secrets, self.version).ok_or(AlertDescription::InternalError)?;
        Ok(answer)
    }

    /// New keys of our side; the message that says so was sealed with the old ones.
    pub(super) fn renew_sealer(&mut self) -> Option<()> {
        let secrets = match &mut self.updates {
            Updates::Server(updates) => updates.update_tx_secret(),
            Updates::Client(updates) => updates.update_tx_secret(),
        };
        self.sealer = Sealer::new(secrets.ok()?, self.version)?;
        Some(())
    }
}

const HELLO_REQUEST: u8 = 0;
const CLIENT_HELLO: u8 = 1;
const NEW_SESSION_TICKET: u8 = 4;
pub(super) const KEY_UPDATE: u8 = 24;

/// Records without application data that a peer may send one after the other: tickets come two or four at a time.
const EMPTY_MAX: u32 = 32;
