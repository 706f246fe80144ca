//! What waits at a listener moves to the host that has its address next.

use super::migration::{Progress, Waiting, format};
use super::pair::turn_of;
use super::succession::Succession;
use super::*;
use crate::flow::Flow;
use crate::socket::{ListenerId, SocketId};
use mill_tcp::time_wait::TimeWait;
use mill_tcp::timestamps::TimestampState;
use mill_wire::seq::SeqNumber;

/// What the older host gives, after its way as bytes.
fn give(world: &mut Succession, listener: ListenerId) -> Vec<Waiting> {
    let given = world.pair.server.give_waiting(listener);
    let mut bytes = Vec::new();
    for waiting in &given {
        format::write(waiting, &mut bytes);
    }
    let mut rest = &*bytes;
    let read: Vec<Waiting> = core::iter::from_fn(|| format::read(&mut rest)).collect();
    assert_eq!(read, given);
    assert_eq!(rest, b"");
    for len in 0..bytes.len() {
        let mut cut = &bytes[..len];
        let whole = core::iter::from_fn(|| format::read(&mut cut)).count();
        assert!(whole < given.len(), "a part is not taken for the whole");
    }
    given
}

fn take(world: &mut Succession, given: Vec<Waiting>) {
    let (host, link) = world.younger.as_mut().unwrap();
    for waiting in given {
        host.take_waiting(link, waiting).unwrap();
    }
}

/// The younger host's listener.
const LISTENER: ListenerId = ListenerId(0);

/// The connection that the younger host accepts, and all that its client says.
fn accepted(world: &mut Succession, client: SocketId, more: &[u8]) -> Vec<u8> {
    let server = world.younger().accept(LISTENER, 5).unwrap();
    write(&mut world.pair.client, client, more);
    world.pair.client.shutdown(client);
    let mut got = Vec::new();
    for _ in 0..10_000 {
        world.turn();
        let (host, link) = world.younger.as_mut().unwrap();
        got.extend(read(host, link, server));
        if host.readable(server).finished && host.readable(server).unread == 0 {
            break;
        }
        world.pair.now = world.pair.now + Duration::from_millis(1);
    }
    write(world.younger(), server, b"answer");
    world.younger().close(server);
    world.run();
    let pair = &mut world.pair;
    let answer = read(&mut pair.client, &mut pair.client_link, client);
    assert_eq!(answer, b"answer");
    assert!(pair.client.readable(client).finished);
    got
}

#[test]
fn a_connection_that_waits_moves_with_its_text() {
    for target in [SERVER_V4, SERVER_V6] {
        for len in [0, 1, 3000, 200_000] {
            let mut world = Succession::new(|_| {});
            let listener = world.pair.listen(target);
            let (client, is_established) = world.connect(target);
            assert!(is_established);
            let said = pattern(len, 4);
            write(&mut world.pair.client, client, &said);
            world.run();
            let given = give(&mut world, listener);
            assert_eq!(given.len(), 1);
            world.pair.server.close_listener(listener);
            world.succeed(true);
            if target == SERVER_V6 {
                world.younger().close_listener(LISTENER);
                let options = crate::socket::ListenOptions::default();
                let address = target.parse().unwrap();
                assert_eq!(world.younger().listen(address, &options), Ok(ListenerId(1)));
            }
            // Until it listens again, what moves waits.
            take(&mut world, given);
            world.run();
            let server = match target {
                SERVER_V4 => LISTENER,
                _ => ListenerId(1),
            };
            assert_eq!(world.younger().waiting(server), 1);
            assert_eq!(world.pair.server.usage(), Usage::default());
            if server == LISTENER {
                let got = accepted(&mut world, client, b"more");
                assert!(got == [&*said, b"more"].concat(), "{len} bytes");
                assert_eq!(world.pair.server.tcp_counters().resets_out, 0, "{len}");
                assert_eq!(world.younger().tcp_counters().resets_out, 0);
            }
        }
    }
}

#[test]
fn an_end_that_the_peer_has_announced_moves_too() {
    let mut world = Succession::new(|_| {});
    let listener = world.pair.listen(SERVER_V4);
    let (client, _) = world.connect(SERVER_V4);
    write(&mut world.pair.client, client, b"all");
    world.pair.client.shutdown(client);
    world.run();
    let given = give(&mut world, listener);
    world.succeed(true);
    take(&mut world, given);
    assert_eq!(accepted(&mut world, client, b""), b"all");
}

/// A connection of the client's, whose SYN the older host has answered; the answer has not come.
fn begin(world: &mut Succession) -> SocketId {
    let target = SERVER_V4.parse().unwrap();
    let pair = &mut world.pair;
    let client = pair.client.connect(target, None, true, 7).unwrap();
    turn_of(&mut pair.client, &mut pair.client_link, pair.now);
    pair.client_link.carry(&mut pair.server_link);
    turn_of(&mut pair.server, &mut pair.server_link, pair.now);
    client
}

#[test]
fn a_handshake_moves_and_is_completed_at_the_other_host() {
    let mut world = Succession::new(|_| {});
    let listener = world.pair.listen(SERVER_V4);
    // The addresses are known by then.
    let (first, _) = world.connect(SERVER_V4);
    let client = begin(&mut world);
    let given = give(&mut world, listener);
    assert_eq!(given.len(), 2);
    world.succeed(true);
    take(&mut world, given);
    world.pair.server_link.carry(&mut world.pair.client_link);
    world.run();
    assert!(world.pair.client.is_established(client));
    assert_eq!(world.younger().waiting(LISTENER), 2);
    assert_eq!(world.younger().counters().moved_in, 2);
    assert_eq!(world.pair.server.counters().moved_out, 2);
    assert_eq!(accepted(&mut world, first, b"1"), b"1");
    assert_eq!(accepted(&mut world, client, b"2"), b"2");
}

/// The former host's process may have ended before the device had its answer.
#[test]
fn a_handshake_that_moves_is_answered_again_at_once() {
    let mut world = Succession::new(|_| {});
    let listener = world.pair.listen(SERVER_V4);
    world.connect(SERVER_V4);
    let client = begin(&mut world);
    let lost = world.pair.server_link.carry(&mut MemoryLink::ethernet(9));
    assert_eq!(lost, 1);
    let given = give(&mut world, listener);
    world.succeed(true);
    take(&mut world, given);
    world.run();
    assert!(world.pair.client.is_established(client));
}

/// A segment may reach the former host when the connection has left it and has not arrived.
#[test]
fn segments_for_a_connection_on_its_way_are_not_answered_with_a_reset() {
    let mut world = Succession::new(|_| {});
    let listener = world.pair.listen(SERVER_V4);
    let (client, _) = world.connect(SERVER_V4);
    let given = give(&mut world, listener);
    world.succeed(false);
    write(&mut world.pair.client, client, b"early ");
    world.run();
    assert_eq!(world.pair.client.readable(client).error, None);
    let given = given
        .into_iter()
        .map(|waiting| {
            let (host, link) = world.younger.as_mut().unwrap();
            host.take_waiting(link, waiting).unwrap_err()
        })
        .collect();
    let options = crate::socket::ListenOptions::default();
    let address = SERVER_V4.parse().unwrap();
    assert_eq!(world.younger().listen(address, &options), Ok(LISTENER));
    take(&mut world, given);
    assert_eq!(accepted(&mut world, client, b"and late"), b"early and late");
}

/// The younger host waits for the end of a connection of this flow, whose peer's last number was this.
fn wait_in_younger(world: &mut Succession, flow: &Flow, rcv_nxt: SeqNumber) {
    let ends_at = world.pair.now.tick().after(Duration::from_secs(60));
    let host = world.younger();
    let hash = host.flows.hash(flow);
    host.flows.insert_connection(flow, hash, UNUSED);
    let wait = TimeWait {
        snd_nxt: SeqNumber(1000),
        rcv_nxt,
        window: 100,
        timestamps: false,
        ts: TimestampState::default(),
        ends_at,
    };
    host.flows.begin_time_wait(flow, UNUSED, wait);
}

/// A number that no slot has.
const UNUSED: u32 = 1 << 20;

/// The peer has opened a flow anew whose former connection the other host has had; its SYN came to the first host.
#[test]
fn what_moves_ends_the_wait_of_the_flows_former_connection() {
    let mut world = Succession::new(|_| {});
    let listener = world.pair.listen(SERVER_V4);
    let (client, _) = world.connect(SERVER_V4);
    let given = give(&mut world, listener);
    world.succeed(true);
    wait_in_younger(&mut world, &given[0].flow, SeqNumber(7));
    take(&mut world, given);
    assert_eq!(accepted(&mut world, client, b"said"), b"said");
}

/// The same where the connection stays at the first host.
#[test]
fn a_segment_behind_the_fin_of_a_flow_that_waits_is_anothers() {
    let mut world = Succession::new(|_| {});
    let listener = world.pair.listen(SERVER_V4);
    world.connect(SERVER_V4);
    let first = give(&mut world, listener).remove(0);
    let Progress::Open { migration, .. } = first.progress else {
        panic!("{first:?}");
    };
    let half_open = migration.half_open;
    for listens in [true, false] {
        // Worlds are the same up to here, also in their numbers.
        let mut world = Succession::new(|_| {});
        let listener = world.pair.listen(SERVER_V4);
        let (client, _) = world.connect(SERVER_V4);
        let server = world.pair.server.accept(listener, 5).unwrap();
        world.succeed(listens);
        let flow = first.flow;
        // As if the former connection had ended just before this one's first byte.
        wait_in_younger(&mut world, &flow, half_open.irs);
        write(&mut world.pair.client, client, b"said");
        world.run();
        let pair = &mut world.pair;
        let got = read(&mut pair.server, &mut pair.server_link, server);
        assert_eq!(got, b"said");
    }
}
