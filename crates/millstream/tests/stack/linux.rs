//! Linux's end of transfers: blocking sockets.

use crate::namespace::text_of;
use crate::ours::{TRANSFER_TIME_MAX, Transfer};
use crate::pattern::Pattern;
use crate::server::wait_for;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

/// Connects, sends, receives. `look` is called when everything was sent, while the connection is open.
pub(crate) fn ask(
    target: SocketAddr,
    transfer: Transfer,
    look: impl FnOnce(SocketAddr),
) -> Result<(), String> {
    let stream = TcpStream::connect_timeout(&target, TRANSFER_TIME_MAX);
    let mut stream = stream.map_err(|error| format!("connecting: {error}"))?;
    send(&mut stream, transfer, || look(target))?;
    receive(&mut stream, transfer)
}

/// Accepts one connection, receives, sends.
pub(crate) fn answer(listener: &TcpListener, transfer: Transfer) -> Result<(), String> {
    let (mut stream, _) = listener.accept().map_err(|error| error.to_string())?;
    receive(&mut stream, transfer)?;
    send(&mut stream, transfer, || {})
}

/// ss's line about the connection to a peer once everything is acknowledged: `rtt:…`, `cwnd:…`, negotiated options.
pub(crate) fn look(peer: SocketAddr) -> String {
    let peer = peer.to_string();
    let mut shown = String::new();
    wait_for(|| {
        shown = text_of("ss", &["-tinoeH", "dst", &peer]);
        !shown.contains(" unacked:") && !shown.contains(" notsent:")
    });
    shown
}

fn send(stream: &mut TcpStream, transfer: Transfer, sent: impl FnOnce()) -> Result<(), String> {
    stream.set_write_timeout(Some(TRANSFER_TIME_MAX)).unwrap();
    let mut pattern = Pattern::new(transfer.seed + 1);
    let mut piece = vec![0; 64 * 1024];
    while pattern.at() < transfer.bytes {
        let len = piece
            .len()
            .min(usize::try_from(transfer.bytes - pattern.at()).unwrap());
        pattern.fill(&mut piece[..len]);
        let sent = stream.write_all(&piece[..len]);
        sent.map_err(|error| format!("sending at {}: {error}", pattern.at()))?;
    }
    sent();
    let ended = stream.shutdown(Shutdown::Write);
    ended.map_err(|error| format!("ending: {error}"))
}

fn receive(stream: &mut TcpStream, transfer: Transfer) -> Result<(), String> {
    stream.set_read_timeout(Some(TRANSFER_TIME_MAX)).unwrap();
    let mut pattern = Pattern::new(transfer.seed);
    let mut piece = vec![0; 256 * 1024];
    loop {
        let len = stream.read(&mut piece);
        let len = len.map_err(|error| format!("receiving at {}: {error}", pattern.at()))?;
        if len == 0 {
            break;
        }
        pattern.check(&piece[..len])?;
    }
    if pattern.at() == transfer.bytes {
        Ok(())
    } else {
        let (at, bytes) = (pattern.at(), transfer.bytes);
        Err(format!("{at} bytes came instead of {bytes}"))
    }
}
