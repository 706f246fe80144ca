//! Bytes to a server and back.

use crate::answer;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

/// The bytes received on one connection.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: End,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The server closed.
    Closed,
    /// The server reset the connection.
    Reset,
    /// No more bytes arrived.
    Open,
    /// The client left.
    Left,
    /// The same, when an answer had begun.
    LeftWithinAnswer,
}

/// When the client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// When it has its answers, or waits in vain.
    AtEnd,
    /// It sends FIN a moment after its last bytes, and reads on.
    HalfCloses,
    /// It closes a moment after its last bytes.
    Closes,
    /// It closes once something of an answer has arrived, most of which it has not read: that resets the connection.
    WithinAnswer,
}

/// The moment after which a client leaves: longer than a proxy takes to ask a server.
pub(crate) const LEAVES_AFTER: Duration = Duration::from_millis(60);

/// After this time without bytes an exchange whose answers are complete counts as ended.
const QUIET: Duration = Duration::from_millis(300);

/// The same while an answer is missing: longer than a loaded machine takes.
const QUIET_INCOMPLETE: Duration = Duration::from_secs(3);

/// Sends the parts of a case, each after the server has answered the one before, and reads to the end.
pub(crate) fn exchange(server: SocketAddr, sends: &[Vec<u8>], leaves: Leaves) -> Received {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut bytes = Vec::new();
    let (last, before) = sends.split_last().expect("a case sends something");
    for part in before {
        // If the server has closed already, the next read shows it.
        let _ = stream.write_all(part);
        read(&mut stream, &mut bytes, |_| QUIET);
    }
    let _ = stream.write_all(last);
    if let Some(end) = leave(&mut stream, leaves, &mut bytes) {
        return Received { bytes, end };
    }
    let requests = answer::requested_methods(&sends.concat());
    let end = read(&mut stream, &mut bytes, |bytes| {
        if answer::are_complete(bytes, &requests) && !announces_end(bytes) {
            QUIET
        } else {
            QUIET_INCOMPLETE
        }
    });
    let _ = stream.shutdown(Shutdown::Both);
    Received { bytes, end }
}

/// Leaves, if that is not at the end; how the connection ended if it did.
fn leave(stream: &mut TcpStream, leaves: Leaves, bytes: &mut Vec<u8>) -> Option<End> {
    match leaves {
        Leaves::AtEnd => return None,
        Leaves::WithinAnswer => {
            stream.set_read_timeout(Some(QUIET_INCOMPLETE)).unwrap();
            // No answer at all is as good.
            let _ = stream.read(&mut [0]);
        }
        Leaves::HalfCloses => thread::park_timeout(LEAVES_AFTER),
        Leaves::Closes => {
            // Bytes that it leaves unread would reset the connection.
            read(stream, bytes, |_| LEAVES_AFTER);
        }
    }
    if leaves == Leaves::HalfCloses {
        // The server may have closed already.
        let _ = stream.shutdown(Shutdown::Write);
        return None;
    }
    Some(match leaves {
        Leaves::WithinAnswer => End::LeftWithinAnswer,
        _ => End::Left,
    })
}

/// Whether an answer says that the connection ends: a loaded machine may take its time to do so.
fn announces_end(bytes: &[u8]) -> bool {
    const SAID: &[u8] = b"\r\nConnection: close\r\n";
    bytes.windows(SAID.len()).any(|part| part == SAID)
}

fn read(stream: &mut TcpStream, bytes: &mut Vec<u8>, quiet: impl Fn(&[u8]) -> Duration) -> End {
    let mut buffer = vec![0; 1 << 16];
    loop {
        stream.set_read_timeout(Some(quiet(bytes))).unwrap();
        match stream.read(&mut buffer) {
            Ok(0) => return End::Closed,
            Ok(len) => bytes.extend_from_slice(&buffer[..len]),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => return End::Open,
                ErrorKind::Interrupted => {}
                _ => return End::Reset,
            },
        }
    }
}
