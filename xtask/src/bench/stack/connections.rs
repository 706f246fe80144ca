//! The cost of a whole connection: handshake, request, response, close by the server.

use std::time::Duration;

use mill_stack::socket::SocketId;

use super::pair::{Pair, TARGET};

/// Nanoseconds per connection, for each side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Connections {
    pub(super) server_ns: f64,
    pub(super) client_ns: f64,
    pub(super) frames_to_server: f64,
    pub(super) frames_to_client: f64,
}

/// Connections open at once: what a burst can hold.
const AT_ONCE: usize = 32;

/// A request as wrk sends it, and nginx's response of 0 bytes.
const REQUEST_BYTES: u64 = 100;
const RESPONSE_BYTES: u64 = 236;

/// Opens, serves and closes at least `count` connections, in whole batches.
pub(super) fn run(count: u64, offload: bool) -> Result<Connections, String> {
    // TIME-WAIT is on the server; the client's ports must not be used up before it ends.
    let mut pair = Pair::new(64, offload);
    let mut done = 0;
    let (mut to_server, mut to_client) = (0, 0);
    let mut batch = Vec::with_capacity(AT_ONCE);
    while done < count {
        let (client, server) = exchange(&mut pair, &mut batch)?;
        to_server += client;
        to_client += server;
        done += AT_ONCE as u64;
        pair.advance(Duration::from_micros(50));
    }
    let each = |total: f64| total / done as f64;
    Ok(Connections {
        server_ns: each(pair.server.take_spent().as_secs_f64() * 1e9),
        client_ns: each(pair.client.take_spent().as_secs_f64() * 1e9),
        frames_to_server: each(to_server as f64),
        frames_to_client: each(to_client as f64),
    })
}

/// One batch from the first SYN to the last FIN's acknowledgement; the frames each way.
fn exchange(pair: &mut Pair, batch: &mut Vec<SocketId>) -> Result<(usize, usize), String> {
    batch.clear();
    pair.client.timed(|side| {
        for token in 0..AT_ONCE as u64 {
            let socket = side.host.connect(TARGET, None, true, token);
            let socket = socket.map_err(|error| format!("the client can't connect: {error:?}"))?;
            write(side, socket, REQUEST_BYTES);
            batch.push(socket);
        }
        Ok::<_, String>(())
    })?;
    let mut frames = (0, 0);
    let mut answered = 0;
    loop {
        let there = pair.pass_to_server();
        let listener = pair.listener;
        pair.server.timed(|side| {
            while let Some(socket) = side.host.accept(listener, 0) {
                let taken = side
                    .host
                    .read(socket, &mut side.port, |bytes| (bytes.len(), bytes.len()));
                debug_assert_eq!(taken as u64, REQUEST_BYTES);
                write(side, socket, RESPONSE_BYTES);
                side.host.close(socket);
                answered += 1;
            }
            side.host.settle(&mut side.port);
        });
        let back = pair.pass_to_client();
        pair.client.timed(|side| {
            batch.retain(|socket| {
                if !side.host.readable(*socket).finished {
                    return true;
                }
                side.host
                    .read(*socket, &mut side.port, |bytes| (bytes.len(), ()));
                side.host.close(*socket);
                false
            });
            side.host.settle(&mut side.port);
        });
        frames = (frames.0 + there, frames.1 + back);
        if there + back == 0 {
            break;
        }
    }
    if answered != AT_ONCE || !batch.is_empty() {
        return Err(format!(
            "of {AT_ONCE} connections {answered} were answered and {} did not end",
            batch.len()
        ));
    }
    Ok(frames)
}

fn write(side: &mut super::pair::Side, socket: SocketId, bytes: u64) {
    if let Some(queue) = side.host.queue(socket) {
        queue.len += bytes;
    }
    side.host.wrote(socket);
}
