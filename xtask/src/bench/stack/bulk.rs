//! The cost of a segment in an endless transfer: sent, received, acknowledged.

use std::time::Duration;

use super::pair::{Pair, TARGET};

/// Nanoseconds of each operation, per segment of data or per acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bulk {
    /// A full segment of new data: TCP, headers, the payload copied into the frame.
    pub(super) send_ns: f64,
    /// A full segment that is next in order, read by the application in place.
    pub(super) receive_ns: f64,
    /// An acknowledgement sent.
    pub(super) acknowledge_ns: f64,
    /// An acknowledgement received.
    pub(super) acknowledged_ns: f64,
    pub(super) segments: u64,
    pub(super) acks: u64,
}

/// Sends until `segments` have arrived.
pub(super) fn run(segments: u64, offload: bool) -> Result<Bulk, String> {
    let mut pair = Pair::new(1, offload);
    let sender = pair
        .client
        .host
        .connect(TARGET, None, true, 1)
        .map_err(|error| format!("the client can't connect: {error:?}"))?;
    pair.settle();
    let receiver = pair
        .server
        .host
        .accept(pair.listener, 2)
        .ok_or("the server has accepted nothing")?;
    let mut spent = [Duration::ZERO; 4];
    let (mut data, mut acks, mut idle) = (0, 0, 0);
    while data < segments {
        pair.advance(Duration::from_micros(20));
        let (client, server, now) = (&mut pair.client, &mut pair.server, pair.now);
        if let Some(queue) = client.host.queue(sender) {
            queue.len = 1 << 24;
        }
        client.host.wrote(sender);
        client.take_spent();
        client.timed(|side| side.host.transmit(&mut side.port, now));
        let sent = client.port.sent() as u64;
        spent[0] += client.take_spent();
        client.port.carry(&mut server.port);

        server.take_spent();
        server.timed(|side| {
            while side.port.has_arrived() && side.host.receive(&mut side.port, now) > 0 {
                side.host
                    .read(receiver, &mut side.port, |bytes| (bytes.len(), ()));
                side.host.settle(&mut side.port);
            }
        });
        spent[1] += server.take_spent();

        server.timed(|side| side.host.transmit(&mut side.port, now));
        let answered = server.port.sent() as u64;
        spent[2] += server.take_spent();
        server.port.carry(&mut client.port);

        client.timed(|side| {
            while side.port.has_arrived() && side.host.receive(&mut side.port, now) > 0 {
                side.host.settle(&mut side.port);
            }
        });
        spent[3] += client.take_spent();
        idle = if sent == 0 { idle + 1 } else { 0 };
        if idle > IDLE_TURNS_MAX {
            return Err(format!("the transfer stands still after {data} segments"));
        }
        data += sent;
        acks += answered;
    }
    let each = |spent: Duration, count: u64| spent.as_secs_f64() * 1e9 / count.max(1) as f64;
    Ok(Bulk {
        send_ns: each(spent[0], data),
        receive_ns: each(spent[1], data),
        acknowledge_ns: each(spent[2], acks),
        acknowledged_ns: each(spent[3], acks),
        segments: data,
        acks,
    })
}

/// Turns without a segment, 20 us each, after which the transfer has stopped: longer than any timer of a connection
/// without loss.
const IDLE_TURNS_MAX: u32 = 100_000;
