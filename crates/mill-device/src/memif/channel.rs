//! A control channel: the socket under a handshake.

use super::agreement::Agreement;
use super::connection::Connection;
use super::handshake::{Handshake, Refusal, Step, Terms};
use super::message::{MESSAGE_BYTES, Message};
use mill_sys::passing;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// One peer, until either end disconnects.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    handshake: Handshake<OwnedFd>,
    buffer_bytes: u32,
    /// A slave's connection, between the offer of its memory and its use.
    made: Option<Connected>,
}

/// All rings of a connection, and what it was agreed on.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) connection: Connection,
    pub(crate) agreement: Agreement,
}

/// The state of a channel after a call of `pump`.
#[derive(Debug)]
pub(crate) enum Pumped {
    /// The next message is the peer's.
    Waits,
    Up(Box<Connected>),
    Over(End),
}

/// Why a channel ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The peer has closed the socket.
    Gone,
    /// The peer has sent a disconnect with this reason.
    Left(String),
    /// This end has disconnected.
    Refused(Refusal),
    Failed(io::Error),
}

impl Channel {
    pub(crate) fn master(socket: OwnedFd, terms: Terms) -> Self {
        Self::new(socket, Handshake::master(terms), 0)
    }

    pub(crate) fn slave(socket: OwnedFd, terms: Terms, buffer_bytes: u32) -> Self {
        Self::new(socket, Handshake::slave(terms), buffer_bytes)
    }

    /// The channel of a connection that another process has made.
    pub(crate) fn of_connected(socket: OwnedFd, terms: Terms) -> Self {
        Self::new(socket, Handshake::of_connected(terms), 0)
    }

    fn new(socket: OwnedFd, handshake: Handshake<OwnedFd>, buffer_bytes: u32) -> Self {
        Self {
            socket,
            handshake,
            buffer_bytes,
            made: None,
        }
    }

    /// Sends and receives all that is possible now. The handshake limits the number of messages.
    pub(crate) fn pump(&mut self, is_busy: bool) -> Pumped {
        loop {
            if let Err(error) = self.send_all() {
                return Pumped::Over(End::Failed(error));
            }
            let (message, descriptor) = match self.receive() {
                Ok(Some(received)) => received,
                Ok(None) => return Pumped::Waits,
                Err(end) => return self.end(end),
            };
            let step = match self.handshake.on_message(message, descriptor, is_busy) {
                Ok(step) => step,
                Err(refusal) => return self.end(End::Refused(refusal)),
            };
            match self.take(step) {
                Ok(Some(mut connected)) => {
                    connected.connection.start();
                    // What is left is sent when the socket has room again.
                    let _ = self.send_all();
                    return Pumped::Up(Box::new(connected));
                }
                Ok(None) => {}
                Err(end) => return self.end(end),
            }
        }
    }

    /// Sends a disconnect with this reason, and ends the channel.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.handshake.refuse(refusal);
        // If the peer does not read it, it still sees the end of the socket.
        let _ = self.send_all();
    }

    fn take(&mut self, step: Step<OwnedFd>) -> Result<Option<Connected>, End> {
        match step {
            Step::Nothing => Ok(None),
            Step::Prepare(agreed) => {
                let (agreement, regions) =
                    Agreement::make(agreed, self.buffer_bytes).map_err(End::Refused)?;
                let connection = Connection::new(regions, &agreement).map_err(End::Refused)?;
                let offer = agreement.offer().map_err(End::Failed)?;
                self.made = Some(Connected {
                    connection,
                    agreement,
                });
                self.handshake.offer(offer);
                Ok(None)
            }
            Step::Map(offer, agreed) => {
                let agreement = Agreement::offered(offer, agreed);
                let regions = agreement.map().map_err(End::Refused)?;
                let connection = Connection::new(regions, &agreement).map_err(End::Refused)?;
                self.handshake.accept();
                Ok(Some(Connected {
                    connection,
                    agreement,
                }))
            }
            Step::Up => Ok(self.made.take()),
            Step::Left(reason) => Err(End::Left(reason)),
        }
    }

    fn end(&mut self, end: End) -> Pumped {
        if let End::Refused(refusal) = &end {
            self.refuse(*refusal);
        }
        Pumped::Over(end)
    }

    fn send_all(&mut self) -> io::Result<()> {
        while let Some((message, descriptor)) = self.handshake.next_message() {
            let passed = descriptor.as_ref().map(AsFd::as_fd);
            match passing::send(self.socket.as_fd(), &message.emit(), passed.as_slice()) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.handshake.put_back(message, descriptor);
                    return Ok(());
                }
                Err(error) if is_closed(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive(&self) -> Result<Option<(Message, Option<OwnedFd>)>, End> {
        let mut buffer = [0; MESSAGE_BYTES];
        let mut received = passing::receive(self.socket.as_fd(), &mut buffer);
        if received.as_ref().is_err_and(is_closed) {
            // The error is reported once; then come the messages that the peer sent before.
            received = passing::receive(self.socket.as_fd(), &mut buffer);
        }
        let (len, descriptors) = match received {
            Ok((0, _)) => return Err(End::Gone),
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if is_closed(&error) => return Err(End::Gone),
            Err(error) if error.raw_os_error() == Some(EMSGSIZE) => {
                return Err(End::Refused(Refusal::Unexpected));
            }
            Err(error) => return Err(End::Failed(error)),
        };
        let message = buffer
            .get(..len)
            .and_then(|bytes| Message::parse(bytes).ok())
            .ok_or(End::Refused(Refusal::Unexpected))?;
        let mut descriptors = descriptors.into_iter();
        let descriptor = descriptors.next();
        if descriptors.next().is_some() {
            return Err(End::Refused(Refusal::DescriptorUnwanted));
        }
        Ok(Some((message, descriptor)))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => formatter.write_str("the peer has closed the socket"),
            Self::Left(reason) => write!(formatter, "the peer says: {reason}"),
            Self::Refused(refusal) => refusal.fmt(formatter),
            Self::Failed(error) => error.fmt(formatter),
        }
    }
}

/// The peer has closed its end, perhaps without reading everything. What it had sent can still be read.
fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// "Message too long" (asm-generic/errno-base.h): a datagram that is longer than any message.
const EMSGSIZE: i32 = 90;
