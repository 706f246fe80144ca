//! The messages between the master and the worker process.

use crate::channel::{Channel, Parcel};
use crate::status::control_socket::Question;
use mill_config::bundle::Bundle;
use mill_config::config::ListenAddress;
use mill_tls::tickets::TicketSecret;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// From the master to the worker process.
#[derive(Debug)]
pub enum Order {
    /// Serve this from now on. Sockets that it does not name any more are to be drained and closed.
    Configure(Configuration),
    /// Write the logs to these files from now on.
    ReopenLogs(Vec<LogFile>),
    /// Exit when the requests in progress are answered.
    Quit,
    /// Have the worker threads answer a status client's question.
    Answer(Question),
}

/// A configuration with the descriptors that the worker process may not open itself.
#[derive(Debug)]
pub struct Configuration {
    /// Counts the configurations since the master started, from 1.
    pub generation: u64,
    /// The texts; the worker process parses them again.
    pub bundle: Bundle,
    pub sockets: Vec<ListeningSocket>,
    pub logs: Vec<LogFile>,
    /// What keys of TLS tickets are made from.
    pub ticket_secret: Option<TicketSecret>,
}

/// One listening socket.
#[derive(Debug)]
pub struct ListeningSocket {
    pub address: ListenAddress,
    /// Its number among those that share the port (`reuseport`).
    pub share: Option<u32>,
    pub descriptor: OwnedFd,
}

/// An open log file.
#[derive(Debug)]
pub struct LogFile {
    /// As the configuration names it.
    pub path: Vec<u8>,
    pub file: File,
}

/// A message from the worker process to the master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// That configuration is in force on every thread.
    Ready { generation: u64 },
    /// That configuration was refused; the one before is still in force.
    Refused { generation: u64, why: String },
    /// `Order::Answer` has arrived.
    QuestionTaken,
}

impl Configuration {
    /// Sends a configuration without consuming it.
    pub fn send(&self, channel: &Channel) -> io::Result<()> {
        let mut body = Vec::new();
        body.extend_from_slice(&self.generation.to_le_bytes());
        emit_text(&mut body, &self.bundle.encode());
        emit_count(&mut body, self.sockets.len());
        for socket in &self.sockets {
            emit_count(
                &mut body,
                socket.share.map_or(0, |share| share as usize + 1),
            );
            emit_text(&mut body, socket.address.to_key().as_slice());
        }
        emit_paths(&mut body, &self.logs);
        let secret = self.ticket_secret.as_ref();
        emit_text(&mut body, secret.map_or(&[][..], |secret| secret.bytes()));
        let sockets = self.sockets.iter().map(|socket| socket.descriptor.as_fd());
        let logs = self.logs.iter().map(|log| log.file.as_fd());
        let descriptors: Vec<BorrowedFd<'_>> = sockets.chain(logs).collect();
        channel.send(CONFIGURE, &body, &descriptors)
    }

    fn parse(mut body: &[u8], descriptors: Vec<OwnedFd>) -> Option<Self> {
        let mut descriptors = descriptors.into_iter();
        let (generation, rest) = body.split_first_chunk::<8>()?;
        body = rest;
        let bundle = Bundle::decode(parse_text(&mut body)?)?;
        let mut sockets = Vec::new();
        for _ in 0..parse_count(&mut body)? {
            let share = parse_count(&mut body)?.checked_sub(1);
            sockets.push(ListeningSocket {
                share: share.map(u32::try_from).transpose().ok()?,
                address: AddressKey::parse(parse_text(&mut body)?)?,
                descriptor: descriptors.next()?,
            });
        }
        let logs = parse_logs(&mut body, &mut descriptors)?;
        let secret = parse_text(&mut body)?;
        let generation = u64::from_le_bytes(*generation);
        body.is_empty().then_some(Self {
            generation,
            bundle,
            sockets,
            logs,
            ticket_secret: secret.try_into().ok().map(TicketSecret::of),
        })
    }
}

impl Order {
    /// Sends the log files of `ReopenLogs` without consuming them.
    pub fn send_logs(channel: &Channel, logs: &[LogFile]) -> io::Result<()> {
        let mut body = Vec::new();
        emit_paths(&mut body, logs);
        let descriptors: Vec<BorrowedFd<'_>> = logs.iter().map(|log| log.file.as_fd()).collect();
        channel.send(REOPEN_LOGS, &body, &descriptors)
    }

    /// Passes a question on, with the socket of the client that asks.
    pub(crate) fn send_question(channel: &Channel, question: &Question) -> io::Result<()> {
        let client = question.client.as_fd();
        let files = question.files.iter().map(AsFd::as_fd);
        let descriptors: Vec<BorrowedFd<'_>> = [client].into_iter().chain(files).collect();
        channel.send(ANSWER, &question.body, &descriptors)
    }

    pub fn send_quit(channel: &Channel) -> io::Result<()> {
        channel.send(QUIT, &[], &[])
    }

    /// The next order; waits for it. `None` when the master has ended.
    pub fn receive(channel: &Channel) -> io::Result<Option<Self>> {
        let Some(parcel) = channel.receive()? else {
            return Ok(None);
        };
        let order = Self::parse(parcel);
        order
            .map(Some)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    fn parse(parcel: Parcel) -> Option<Self> {
        match parcel.kind {
            CONFIGURE => {
                Configuration::parse(&parcel.body, parcel.descriptors).map(Self::Configure)
            }
            REOPEN_LOGS => {
                let mut descriptors = parcel.descriptors.into_iter();
                parse_logs(&mut parcel.body.as_slice(), &mut descriptors).map(Self::ReopenLogs)
            }
            QUIT => Some(Self::Quit),
            ANSWER => {
                let mut descriptors = parcel.descriptors.into_iter();
                Some(Self::Answer(Question {
                    client: Channel::of(descriptors.next()?).ok()?,
                    request: serde_json::from_slice(&parcel.body).ok()?,
                    body: parcel.body,
                    files: descriptors.collect(),
                }))
            }
            _ => None,
        }
    }
}

impl Report {
    pub fn send(&self, channel: &Channel) -> io::Result<()> {
        let (kind, generation, why) = match self {
            Self::Ready { generation } => (READY, generation, ""),
            Self::Refused { generation, why } => (REFUSED, generation, why.as_str()),
            Self::QuestionTaken => (QUESTION_TAKEN, &0, ""),
        };
        let mut body = generation.to_le_bytes().to_vec();
        body.extend_from_slice(why.as_bytes());
        channel.send(kind, &body, &[])
    }

    /// The next report; waits for it. `None` when the worker process has ended.
    pub fn receive(channel: &Channel) -> io::Result<Option<Self>> {
        let Some(parcel) = channel.receive()? else {
            return Ok(None);
        };
        let report = Self::parse(&parcel);
        report
            .map(Some)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    fn parse(parcel: &Parcel) -> Option<Self> {
        let (generation, why) = parcel.body.split_first_chunk::<8>()?;
        let generation = u64::from_le_bytes(*generation);
        match parcel.kind {
            READY => Some(Self::Ready { generation }),
            QUESTION_TAKEN => Some(Self::QuestionTaken),
            REFUSED => Some(Self::Refused {
                generation,
                why: String::from_utf8_lossy(why).into_owned(),
            }),
            _ => None,
        }
    }
}

/// An address as bytes and back.
pub(crate) trait AddressKey: Sized {
    fn to_key(&self) -> Vec<u8>;
    fn parse(key: &[u8]) -> Option<Self>;
}

impl AddressKey for ListenAddress {
    fn to_key(&self) -> Vec<u8> {
        match self {
            Self::Inet(address) => address.to_string().into_bytes(),
            Self::Unix(path) => [UNIX_PREFIX, path].concat(),
        }
    }

    fn parse(key: &[u8]) -> Option<Self> {
        match key.strip_prefix(UNIX_PREFIX) {
            Some(path) => Some(Self::Unix(path.into())),
            None => std::str::from_utf8(key).ok()?.parse().ok().map(Self::Inet),
        }
    }
}

const UNIX_PREFIX: &[u8] = b"unix:";

// Types of parcels; orders and reports have different ones.
const CONFIGURE: u8 = 1;
const REOPEN_LOGS: u8 = 2;
const QUIT: u8 = 3;
const READY: u8 = 4;
const REFUSED: u8 = 5;
const ANSWER: u8 = 6;
const QUESTION_TAKEN: u8 = 7;

fn emit_count(body: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    body.extend_from_slice(&count.to_le_bytes());
}

fn emit_text(body: &mut Vec<u8>, text: &[u8]) {
    emit_count(body, text.len());
    body.extend_from_slice(text);
}

fn emit_paths(body: &mut Vec<u8>, logs: &[LogFile]) {
    emit_count(body, logs.len());
    for log in logs {
        emit_text(body, &log.path);
    }
}

fn parse_count(body: &mut &[u8]) -> Option<usize> {
    let (count, rest) = body.split_first_chunk::<4>()?;
    *body = rest;
    usize::try_from(u32::from_le_bytes(*count)).ok()
}

fn parse_text<'a>(body: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = parse_count(body)?;
    let (text, rest) = body.split_at_checked(len)?;
    *body = rest;
    Some(text)
}

fn parse_logs(
    body: &mut &[u8],
    descriptors: &mut impl Iterator<Item = OwnedFd>,
) -> Option<Vec<LogFile>> {
    let mut logs = Vec::new();
    for _ in 0..parse_count(body)? {
        let path = parse_text(body)?.to_vec();
        let file = File::from(descriptors.next()?);
        logs.push(LogFile { path, file });
    }
    Some(logs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_sys::passing;

    fn file() -> File {
        passing::memory_file(c"test").unwrap()
    }

    fn configuration() -> Configuration {
        let socket = |address: ListenAddress, share| ListeningSocket {
            address,
            share,
            descriptor: file().into(),
        };
        Configuration {
            generation: 3,
            bundle: Bundle {
                files: vec![("/a".into(), "x".into())],
                ..Bundle::default()
            },
            sockets: vec![
                socket(ListenAddress::Inet("[::1]:80".parse().unwrap()), None),
                socket(
                    ListenAddress::Inet("127.0.0.1:80".parse().unwrap()),
                    Some(0),
                ),
                socket(ListenAddress::Unix("/run/x".into()), Some(7)),
            ],
            logs: vec![LogFile {
                path: b"/var/log/x".to_vec(),
                file: file(),
            }],
            ticket_secret: Some(TicketSecret::of([7; 32])),
        }
    }

    #[test]
    fn a_configuration_arrives_whole() {
        let (master, worker) = Channel::pair().unwrap();
        let sent = configuration();
        sent.send(&master).unwrap();
        let Some(Order::Configure(received)) = Order::receive(&worker).unwrap() else {
            panic!("another order");
        };
        assert_eq!((received.generation, &received.bundle), (3, &sent.bundle));
        assert_eq!(received.ticket_secret.as_ref().unwrap().bytes(), &[7; 32]);
        let names = |configuration: &Configuration| -> Vec<_> {
            let sockets = configuration.sockets.iter();
            sockets
                .map(|socket| (socket.address.clone(), socket.share))
                .collect()
        };
        assert_eq!(names(&received), names(&sent));
        assert_eq!(received.logs.len(), 1);
        assert_eq!(received.logs.first().unwrap().path, b"/var/log/x");
    }

    #[test]
    fn other_orders_arrive() {
        let (master, worker) = Channel::pair().unwrap();
        Order::send_logs(&master, &configuration().logs).unwrap();
        Order::send_quit(&master).unwrap();
        drop(master);
        let Some(Order::ReopenLogs(logs)) = Order::receive(&worker).unwrap() else {
            panic!("another order");
        };
        assert_eq!(logs.len(), 1);
        assert!(matches!(Order::receive(&worker), Ok(Some(Order::Quit))));
        assert!(matches!(Order::receive(&worker), Ok(None)));
    }

    #[test]
    fn reports_arrive() {
        let (master, worker) = Channel::pair().unwrap();
        let reports = [
            Report::QuestionTaken,
            Report::Ready { generation: 1 },
            Report::Refused {
                generation: 2,
                why: String::from("no memory"),
            },
        ];
        for report in &reports {
            report.send(&worker).unwrap();
            assert_eq!(Report::receive(&master).unwrap().as_ref(), Some(report));
        }
    }

    #[test]
    fn an_order_with_a_descriptor_too_few_is_refused() {
        let (master, worker) = Channel::pair().unwrap();
        let mut body = Vec::new();
        emit_paths(&mut body, &configuration().logs);
        master.send(REOPEN_LOGS, &body, &[]).unwrap();
        assert!(Order::receive(&worker).is_err());
    }
}
