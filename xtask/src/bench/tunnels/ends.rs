//! Threads that hold the two ends of tunnels, each with a descriptor table of its own.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use mill_sys::descriptor;

/// Tunnels whose one end a thread holds at most: below the usual limit of descriptors, 20 000.
const SHARE: usize = 10_000;

/// What a browser sends, and what it gets.
const REQUEST: &[u8] = b"GET /room?id=12 HTTP/1.1\r\nHost: www.example.org\r\nConnection: Upgrade\r\n\
    Pragma: no-cache\r\nCache-Control: no-cache\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) \
    AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\nUpgrade: websocket\r\n\
    Origin: https://www.example.org\r\nSec-WebSocket-Version: 13\r\nAccept-Encoding: gzip, deflate, br\r\n\
    Accept-Language: en-US,en;q=0.9\r\nCookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
const ANSWER: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// The server behind: answers every request with 101, and says nothing more.
pub(super) struct Origin {
    pub(super) address: SocketAddr,
}

impl Origin {
    /// Its threads end when the tunnels do.
    pub(super) fn start(tunnels: usize) -> io::Result<Self> {
        let listener = Arc::new(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?);
        let address = listener.local_addr()?;
        for share in shares(tunnels) {
            let listener = Arc::clone(&listener);
            thread::spawn(move || hold(&listener, share));
        }
        Ok(Self { address })
    }
}

fn hold(listener: &TcpListener, share: usize) -> io::Result<()> {
    descriptor::unshare_table()?;
    let mut held = Vec::new();
    for _ in 0..share {
        let (mut stream, _) = listener.accept()?;
        read_head(&mut stream)?;
        stream.write_all(ANSWER)?;
        held.push(stream);
    }
    // Until the proxy ends.
    held.last_mut()
        .map_or(Ok(0), |stream| stream.read(&mut [0]))
        .map(drop)
}

/// The clients; dropping this closes their connections.
pub(super) struct Clients(Vec<Thread>);

/// A thread that opens half of its tunnels whenever it is told to, and says what came of it.
struct Thread {
    open: SyncSender<()>,
    opened: Receiver<io::Result<()>>,
}

impl Clients {
    pub(super) fn start(front: SocketAddr, tunnels: usize) -> Self {
        let threads = shares(tunnels).map(|share| {
            let ((open, told), (tell, opened)) = (sync_channel(0), sync_channel(1));
            thread::spawn(move || {
                let mut held = Vec::new();
                let mut next = descriptor::unshare_table();
                for half in [share / 2, share - share / 2] {
                    if told.recv().is_err() {
                        return;
                    }
                    next = next.and_then(|()| connect(front, half, &mut held));
                    let end = std::mem::replace(&mut next, Ok(()));
                    let _ = tell.send(end);
                }
                let _ = told.recv();
            });
            Thread { open, opened }
        });
        Self(threads.collect())
    }

    /// Returns when half of the tunnels, or the rest, are open.
    pub(super) fn open_half(&self) -> io::Result<()> {
        for thread in &self.0 {
            let _ = thread.open.send(());
        }
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let mut all = self.0.iter();
        all.try_for_each(|thread| thread.opened.recv().unwrap_or_else(|_| Err(gone())))
    }
}

fn connect(front: SocketAddr, count: usize, held: &mut Vec<TcpStream>) -> io::Result<()> {
    for _ in 0..count {
        let mut stream = TcpStream::connect(front)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(REQUEST)?;
        if !read_head(&mut stream)?.starts_with(b"HTTP/1.1 101 ") {
            return Err(io::Error::other("the answer is not 101"));
        }
        held.push(stream);
    }
    Ok(())
}

/// A head behind which nothing follows.
fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut piece = [0; 2048];
        let len = stream.read(&mut piece)?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&piece[..len]);
    }
    Ok(head)
}

/// The tunnels of each thread.
fn shares(tunnels: usize) -> impl Iterator<Item = usize> {
    let starts = (0..tunnels).step_by(SHARE);
    starts.map(move |start| SHARE.min(tunnels - start))
}

/// A proxy that takes longer for an answer has failed.
const PATIENCE: Duration = Duration::from_secs(10);
