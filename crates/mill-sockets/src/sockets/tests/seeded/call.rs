//! Calls that may wait: one attempt of each, compared with what readiness said before.

use super::super::*;
use super::exchange::{CLIENT, End, Exchange, SERVER};
use super::side::Side;
use crate::epoll_set::{Event, SetNumber, Target};
use crate::readiness::Readiness;
use crate::socket::SocketNumber;

#[derive(Clone, Debug)]
pub(super) enum Call {
    Accept(SocketNumber),
    /// connect(2) of a socket whose handshake has begun.
    Handshake(SocketNumber),
    /// At most so many bytes.
    Read(SocketNumber, usize),
    Write(SocketNumber, usize),
    /// poll(2).
    Poll(Vec<(SocketNumber, Readiness)>),
    /// epoll_wait(2), of at most so many events.
    Wait(SetNumber, usize),
    /// A condition of the program's own threads: the server has something to write, or never will.
    Answer(usize),
    /// The same: a side's end of an exchange is over.
    End(usize),
    /// Nothing, until the time is over.
    Sleep,
}

/// What a call gives.
#[derive(Clone, Debug)]
pub(super) enum Given {
    Nothing,
    Socket(SocketNumber),
    Count(usize),
    Ready(Vec<SocketNumber>),
    Events(Vec<Event>),
}

pub(super) type Outcome = Result<Given, Errno>;

impl Call {
    /// The socket that it waits for.
    pub(super) fn waits_for(&self, number: SocketNumber) -> bool {
        match self {
            Self::Accept(it) | Self::Handshake(it) | Self::Read(it, _) | Self::Write(it, _) => {
                *it == number
            }
            Self::Poll(list) => list.iter().any(|(it, _)| *it == number),
            Self::Wait(..) | Self::Answer(_) | Self::End(_) | Self::Sleep => false,
        }
    }

    /// `None` where it has to wait; `done` is what it has transferred.
    pub(super) fn attempt(
        &self,
        side: &mut Side,
        exchanges: &mut [Exchange],
        done: &mut usize,
    ) -> Option<Outcome> {
        match self {
            Self::Accept(number) => accept(side, *number),
            Self::Handshake(number) => handshake(side, exchanges, *number),
            Self::Read(number, most) => read(side, exchanges, *number, *most),
            Self::Write(number, most) => write(side, exchanges, *number, *most, done),
            Self::Poll(list) => poll(side, list),
            Self::Wait(set, most) => wait(side, *set, *most),
            Self::Answer(_) | Self::End(_) => {
                self.is_due(side, exchanges).then_some(Ok(Given::Nothing))
            }
            Self::Sleep => None,
        }
    }

    /// Whether an attempt would give something; the look has no effect.
    pub(super) fn is_due(&self, side: &Side, exchanges: &[Exchange]) -> bool {
        let found = |number| side.owed(Target::Socket(number));
        let has = |number, wanted| !side.is_open(number) || found(number).has_any(wanted);
        match self {
            Self::Accept(number) | Self::Read(number, _) => has(*number, Readiness::IN),
            Self::Handshake(number) => has(*number, Readiness::ALL),
            Self::Write(number, _) => has(*number, Readiness::OUT),
            Self::Poll(list) => list
                .iter()
                .any(|(number, wanted)| has(*number, *wanted | Readiness::ALWAYS)),
            Self::Wait(set, _) => side.is_ready(*set),
            Self::Answer(exchange) => {
                let exchange = &exchanges[*exchange];
                exchange.to_write(SERVER) > 0 || exchange.ends[SERVER].is_over()
            }
            Self::End(exchange) => End::is_over(&exchanges[*exchange].ends[side.index]),
            Self::Sleep => false,
        }
    }
}

fn accept(side: &mut Side, number: SocketNumber) -> Option<Outcome> {
    let is_ready = side.found(Target::Socket(number)).has_any(Readiness::IN);
    let accepted = side.sockets.accept(number);
    if !side.is_listener(number) {
        assert_eq!(accepted, Err(Errno::BAD_DESCRIPTOR));
    } else {
        assert_eq!(accepted.unwrap().is_some(), is_ready);
    }
    Some(accepted.transpose()?.map(Given::Socket))
}

fn handshake(side: &mut Side, exchanges: &mut [Exchange], number: SocketNumber) -> Option<Outcome> {
    let found = side.found(Target::Socket(number));
    let result = side.sockets.connected(number);
    let Some(exchange) = side.exchange(number) else {
        assert_eq!(result, Err(Errno::BAD_DESCRIPTOR));
        return Some(Err(Errno::BAD_DESCRIPTOR));
    };
    assert_eq!(result == Ok(None), found.is_empty(), "{result:?} {found:?}");
    let exchange = &mut exchanges[exchange];
    if matches!(result, Ok(Some(())) | Err(Errno::IS_CONNECTED)) {
        exchange.ends[side.index].is_connected = true;
        return Some(Ok(Given::Nothing));
    }
    if let Err(error) = result {
        exchange.ends[side.index].saw_error = true;
        side.touched.push(number);
        let own = &exchange.ends[side.index];
        let known = match error {
            Errno::REFUSED | Errno::RESET | Errno::CONNECTION_ABORTED => exchange.may_reset,
            Errno::NOT_CONNECTED => exchange.may_reset,
            // It was shut down when the handshake had failed.
            Errno::INVALID => own.has_finished || own.reads_no_more,
            // Each SYN of seven, or what answers it, is lost.
            Errno::TIMED_OUT => true,
            _ => false,
        };
        assert!(known, "{error:?}: {exchange:?}");
        exchange.may_reset = true;
    }
    Some(result.transpose()?.map(|()| Given::Nothing))
}

fn read(
    side: &mut Side,
    exchanges: &mut [Exchange],
    number: SocketNumber,
    most: usize,
) -> Option<Outcome> {
    let found = side.found(Target::Socket(number));
    let peeked = peek(side, number);
    let result = side.sockets.read(number, |bytes| {
        let count = bytes.len().min(most);
        (count, bytes[..count].to_vec())
    });
    let Some(exchange) = side.exchange(number) else {
        assert_eq!(result, Err(Errno::BAD_DESCRIPTOR));
        return Some(Err(Errno::BAD_DESCRIPTOR));
    };
    let exchange = &mut exchanges[exchange];
    if let (Some(peeked), Ok(Some(bytes))) = (&peeked, &result) {
        assert!(peeked.starts_with(bytes), "{exchange:?}");
    }
    if found.has_any(Readiness::IN) {
        assert_ne!(result, Ok(None), "{found:?}: {exchange:?}");
    } else if !found.has_any(Readiness::ALWAYS) && is_plain(side, number) {
        assert_eq!(result, Ok(None), "{found:?}: {exchange:?}");
    }
    match result.transpose() {
        None => {
            side.on_drained(number);
            None
        }
        Some(Ok(bytes)) => {
            exchange.on_read(side.index, &bytes);
            Some(Ok(Given::Count(bytes.len())))
        }
        Some(Err(error)) => {
            exchange.on_error(side.index, error);
            Some(Err(error))
        }
    }
}

/// What a look at the unread bytes finds (`MSG_PEEK`).
fn peek(side: &mut Side, number: SocketNumber) -> Option<Vec<u8>> {
    let unread = side.sockets.unread(number).unwrap_or(0);
    let peeked = (unread > 0).then(|| side.sockets.read(number, |bytes| (0, bytes.to_vec())));
    let peeked = peeked?.unwrap();
    assert_eq!(peeked.as_ref().map(Vec::len), Some(unread));
    peeked
}

/// Whether one byte makes it readable.
fn is_plain(side: &Side, number: SocketNumber) -> bool {
    let options = side.sockets.options(number);
    options.is_ok_and(|options| options.readable_min == 1)
}

fn write(
    side: &mut Side,
    exchanges: &mut [Exchange],
    number: SocketNumber,
    most: usize,
    done: &mut usize,
) -> Option<Outcome> {
    let told = Some(Ok(Given::Count(*done)));
    // What was sent is told; the error comes with the next call.
    if *done > 0 && side.sockets.has_error(number) {
        return told;
    }
    let found = side.found(Target::Socket(number));
    let index = side.exchange(number);
    let wanted = index.map_or(1, |index| {
        let exchange = &exchanges[index];
        exchange.to_write(side.index).min(most - *done)
    });
    if wanted == 0 {
        return told;
    }
    // A client that has more to write may say so (`MSG_MORE`).
    let is_more = side.index == CLIENT && most.is_multiple_of(5000);
    let has_more = is_more && index.is_some_and(|it| exchanges[it].to_write(CLIENT) > wanted);
    let result = side.sockets.write(number, has_more, |queue, room| {
        let Some(exchange) = index.map(|index| &exchanges[index]) else {
            return 0;
        };
        let start = exchange.ends[side.index].written;
        let places = start..start + wanted.min(room);
        let bytes = places.map(|place| exchange.byte(side.index, place));
        let bytes: Vec<u8> = bytes.collect();
        queue.push(&bytes);
        bytes.len()
    });
    let Some(exchange) = index.map(|index| &mut exchanges[index]) else {
        assert_eq!(result, Err(Errno::BAD_DESCRIPTOR));
        return Some(Err(Errno::BAD_DESCRIPTOR));
    };
    if found.has_any(Readiness::OUT) {
        assert!(!matches!(result, Ok(None | Some(0))), "{exchange:?}");
    }
    match result {
        Ok(None) => {
            side.on_filled(number);
            None
        }
        Ok(Some(count)) => {
            exchange.ends[side.index].written += count;
            *done += count;
            let is_done = *done >= most || exchange.to_write(side.index) == 0;
            is_done.then_some(Ok(Given::Count(*done)))
        }
        Err(_) if *done > 0 => told,
        Err(error) => {
            exchange.on_error(side.index, error);
            Some(Err(error))
        }
    }
}

fn poll(side: &Side, list: &[(SocketNumber, Readiness)]) -> Option<Outcome> {
    let ready = list.iter().filter(|(number, wanted)| {
        let found = side.sockets.readiness(*number);
        // A descriptor that is closed is told, too (`POLLNVAL`).
        !side.is_open(*number) || found.has_any(*wanted | Readiness::ALWAYS)
    });
    let ready: Vec<SocketNumber> = ready.map(|(number, _)| *number).collect();
    (!ready.is_empty()).then_some(Ok(Given::Ready(ready)))
}

fn wait(side: &mut Side, set: SetNumber, most: usize) -> Option<Outcome> {
    let mut events = Vec::new();
    side.sockets.collect(set, most, &mut events);
    assert!(events.len() <= most);
    for event in &events {
        side.on_told(set, event);
    }
    (!events.is_empty()).then_some(Ok(Given::Events(events)))
}
