//! The application on the stack: sockets that are written to, read slowly, and left in every way.

use super::frame::{OURS, PEER};
use super::peer::{FIRST_PORT, PORTS, Peer};
use super::script::Script;
use super::stream::{our_byte, their_byte};
use mill_stack::host::Host;
use mill_stack::memory_link::MemoryLink;
use mill_stack::queue::ByteQueue;
use mill_stack::socket::{ListenOptions, ListenerId, SocketId};
use mill_wire::seq::SeqNumber;
use std::net::{IpAddr, SocketAddr};

/// A listener and its sockets.
pub(super) struct Application {
    listener: ListenerId,
    readers: Vec<Reader>,
    /// Connections that were accepted.
    pub(super) connections: u32,
    /// Bytes that readers have seen.
    pub(super) read_bytes: u64,
}

struct Reader {
    id: SocketId,
    port: usize,
    read: u32,
    written: u32,
    /// Where the peer's stream may have begun; known with the first bytes.
    starts: Option<Vec<SeqNumber>>,
    is_open: bool,
}

impl Application {
    pub(super) fn new(host: &mut Host<ByteQueue>) -> Self {
        let address = SocketAddr::new(IpAddr::V4(OURS), 80);
        let listener = host
            .listen(address, &ListenOptions::default())
            .expect("no other listener in a new host");
        Self {
            listener,
            readers: Vec::new(),
            connections: 0,
            read_bytes: 0,
        }
    }

    pub(super) fn accept(&mut self, host: &mut Host<ByteQueue>) {
        while let Some(id) = host.accept(self.listener, 0) {
            self.connections += 1;
            let peer = host.peer(id).map_or(0, |peer| peer.port());
            let port = usize::from(peer.wrapping_sub(FIRST_PORT)) % usize::from(PORTS);
            self.readers.push(Reader::new(id, port));
        }
    }

    pub(super) fn connect(&mut self, host: &mut Host<ByteQueue>, port: usize) {
        let target = FIRST_PORT + u16::try_from(port).expect("there are few ports");
        let target = SocketAddr::new(IpAddr::V4(PEER), target);
        let source = SocketAddr::new(IpAddr::V4(OURS), 80);
        if let Ok(id) = host.connect(target, Some(source), true, 0) {
            self.readers.push(Reader::new(id, port));
        }
    }

    pub(super) fn write(
        &mut self,
        host: &mut Host<ByteQueue>,
        port: usize,
        script: &mut Script<'_>,
    ) {
        let len = u32::from(script.word());
        for reader in &mut self.readers {
            if reader.port == port
                && reader.is_open
                && let Some(queue) = host.queue(reader.id)
            {
                let bytes: Vec<u8> = (reader.written..reader.written + len)
                    .map(our_byte)
                    .collect();
                queue.push(&bytes);
                reader.written += len;
                host.wrote(reader.id);
            }
        }
    }

    pub(super) fn leave(
        &mut self,
        host: &mut Host<ByteQueue>,
        port: usize,
        script: &mut Script<'_>,
    ) {
        let how = script.byte();
        let keeps_reading = how.is_multiple_of(3);
        for reader in self.readers.iter_mut().filter(|reader| reader.port == port) {
            match how % 3 {
                0 => host.shutdown(reader.id),
                1 => host.close(reader.id),
                _ => host.abort(reader.id),
            }
            // Some write behind their FIN, which the stack has to bear.
            reader.is_open = reader.is_open && keeps_reading && how > 128;
        }
        self.readers
            .retain(|reader| keeps_reading || reader.port != port);
    }

    /// Looks at everything that is there, and takes some of it.
    pub(super) fn read(&mut self, host: &mut Host<ByteQueue>, link: &mut MemoryLink, peer: &Peer) {
        for reader in &mut self.readers {
            let unread = host.readable(reader.id).unread;
            let count = host.read(reader.id, link, |bytes| {
                assert_eq!(bytes.len(), unread, "what is lent is what is unread");
                reader.check(bytes, peer);
                // Two of three bytes stay: readers are slow at times.
                let taken = if bytes.len().is_multiple_of(3) {
                    bytes.len()
                } else {
                    bytes.len() / 3
                };
                (taken, taken)
            });
            self.read_bytes += count as u64;
            reader.read += u32::try_from(count).expect("a window is shorter");
        }
    }

    /// Closes everything.
    pub(super) fn end(&mut self, host: &mut Host<ByteQueue>) {
        self.accept(host);
        for reader in self.readers.drain(..) {
            host.close(reader.id);
        }
        host.close_listener(self.listener);
    }
}

impl Reader {
    fn new(id: SocketId, port: usize) -> Self {
        Self {
            id,
            port,
            read: 0,
            written: 0,
            starts: None,
            is_open: true,
        }
    }

    /// Whether they are the peer's bytes, of one of the connections that there were.
    fn check(&mut self, bytes: &[u8], peer: &Peer) {
        if bytes.is_empty() {
            return;
        }
        let from = self.read;
        let starts = self
            .starts
            .get_or_insert_with(|| peer.starts(self.port).to_vec());
        starts.retain(|start| {
            let expected = (from..).map(|n| their_byte(*start + n));
            bytes.iter().copied().eq(expected.take(bytes.len()))
        });
        assert!(
            !starts.is_empty(),
            "{} bytes behind {from} are not the peer's",
            bytes.len()
        );
    }
}
