//! Two hosts behind one address that both listen: new connections are theirs in turn, by their ports.

use super::pair::turn_of;
use super::succession::Succession;
use super::*;
use crate::flow::Flow;
use crate::process_group::{Load, Others, ProcessGroup, Taker};
use crate::socket::{ListenOptions, ListenerId};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A group of two hosts: flows with an even port of the peer are the older host's, until its turn ends.
#[derive(Debug)]
struct EvenAndOdd {
    is_older: bool,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Listeners in it.
    members: AtomicU32,
    /// All flows are the younger host's.
    is_over: AtomicBool,
}

impl ProcessGroup for EvenAndOdd {
    fn join(&mut self, _address: SocketAddr) {
        self.shared.members.fetch_add(1, Ordering::Relaxed);
    }

    fn leave(&mut self, _address: SocketAddr) {
        self.shared.members.fetch_sub(1, Ordering::Relaxed);
    }

    fn others(&mut self, _address: SocketAddr) -> Others {
        Others::default()
    }

    fn taker(
        &mut self,
        address: SocketAddr,
        flow: &Flow,
        _is_opening: bool,
        unreachable: &[u64],
    ) -> Taker {
        if address != SERVER_V4.parse().unwrap() {
            return Taker::None;
        }
        let is_over = self.shared.is_over.load(Ordering::Relaxed);
        let is_own = self.is_older == (flow.remote_port.is_multiple_of(2) && !is_over);
        match is_own || !unreachable.is_empty() {
            true => Taker::This,
            false => Taker::Another(OTHER),
        }
    }

    fn note_load(&mut self, _address: SocketAddr, _load: Load) {}

    fn note_given(&mut self, _address: SocketAddr, _flow: &Flow, _taker: Taker) {}

    fn has_departed(&self, _flow: &Flow) -> bool {
        false
    }

    fn forget_departed(&mut self, _flow: &Flow) {}
}

/// The number of either one for the other.
const OTHER: u64 = 7;

/// Both hosts listen.
fn listening() -> (Succession, [ListenerId; 2], Arc<Shared>) {
    let mut world = Succession::new(|_| {});
    let shared = Arc::new(Shared::default());
    let group = |is_older| {
        let shared = Arc::clone(&shared);
        Box::new(EvenAndOdd { is_older, shared })
    };
    world.pair.server.set_process_group(group(true));
    let older = world.pair.listen(SERVER_V4);
    world.succeed(false);
    let host = world.younger();
    host.set_process_group(group(false));
    let address = SERVER_V4.parse().unwrap();
    let younger = host.listen(address, &ListenOptions::default()).unwrap();
    (world, [older, younger], shared)
}

#[test]
fn a_new_connection_is_the_hosts_whose_flow_it_is() {
    let (mut world, [older, younger], shared) = listening();
    assert_eq!(shared.members.load(Ordering::Relaxed), 2);
    let mut counts = [0, 0];
    for _ in 0..20 {
        let (socket, is_established) = world.connect(SERVER_V4);
        assert!(is_established);
        let port = world.pair.client.local(socket).unwrap().port();
        counts[usize::from(port % 2)] += 1;
    }
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
    assert_eq!(world.pair.server.waiting(older), counts[0]);
    assert_eq!(world.younger().waiting(younger), counts[1]);
    assert_eq!(world.younger().tcp_counters().resets_out, 0);
    assert_eq!(world.pair.server.tcp_counters().resets_out, 0);
}

/// A group of others, to which there is no way from here.
#[derive(Debug)]
struct OutOfReach;

impl ProcessGroup for OutOfReach {
    fn join(&mut self, _address: SocketAddr) {}

    fn leave(&mut self, _address: SocketAddr) {}

    fn others(&mut self, _address: SocketAddr) -> Others {
        Others::default()
    }

    fn taker(
        &mut self,
        _address: SocketAddr,
        _flow: &Flow,
        _is_opening: bool,
        unreachable: &[u64],
    ) -> Taker {
        match unreachable.is_empty() {
            true => Taker::Another(OTHER),
            false => Taker::None,
        }
    }

    fn note_load(&mut self, _address: SocketAddr, _load: Load) {}

    fn note_given(&mut self, _address: SocketAddr, _flow: &Flow, _taker: Taker) {}

    fn has_departed(&self, _flow: &Flow) -> bool {
        false
    }

    fn forget_departed(&mut self, _flow: &Flow) {}
}

/// It was on its way to this host when the program closed its listener.
#[test]
fn a_syn_for_a_listener_that_was_closed_a_moment_ago_goes_back() {
    for listens in [false, true] {
        let mut world = Succession::new(|_| {});
        world.pair.server.set_process_group(Box::new(OutOfReach));
        world.pair.server_link.given_back = Some(VecDeque::new());
        let listener = world.pair.listen(SERVER_V4);
        if !listens {
            world.pair.server.close_listener(listener);
        }
        let (_, is_established) = world.connect(SERVER_V4);
        assert_eq!(
            is_established, listens,
            "no other host gets one of this one"
        );
        let given_back = world.pair.server_link.given_back.unwrap();
        assert_eq!(given_back.is_empty(), listens);
        assert_eq!(world.pair.server.tcp_counters().resets_out, 0);
    }
}

/// The older host is the last of the row: what is not its own comes to it only where the others do not take it.
#[test]
fn the_last_host_takes_what_no_other_one_gets() {
    let (mut world, [older, _], _) = listening();
    world.younger = None;
    for _ in 0..20 {
        assert!(world.connect(SERVER_V4).1);
    }
    assert_eq!(world.pair.server.waiting(older), 20);
}

/// A client with few ports soon has one again whose connection has gone from this host to another one, and ended there.
#[test]
fn a_flow_whose_connection_has_just_left_may_be_opened_anew() {
    let (mut world, [older, _], _) = listening();
    world.younger = None;
    let sockets: Vec<_> = (0..20).map(|_| world.connect(SERVER_V4).0).collect();
    assert_eq!(world.pair.server.give_waiting(older).len(), 20);
    let client = &mut world.pair.client;
    let ports: Vec<_> = sockets.iter().map(|it| client.local(*it)).collect();
    sockets.into_iter().for_each(|it| client.abort(it));
    world.run();
    let target = SERVER_V4.parse().unwrap();
    for port in ports {
        let again = world.pair.client.connect(target, port, true, 7).unwrap();
        world.run();
        assert!(world.pair.client.is_established(again));
    }
}

/// Its process was killed, and another one still waits for the end of a connection of the same flow from before.
#[test]
fn a_connection_that_no_host_has_is_reset_by_one_that_has_its_flow_in_time_wait() {
    let (mut world, [older, _], shared) = listening();
    let mut opened = core::iter::repeat_with(|| {
        let (socket, _) = world.connect(SERVER_V4);
        (socket, world.pair.client.local(socket))
    });
    let is_olders = |local: &Option<SocketAddr>| local.unwrap().port().is_multiple_of(2);
    let (first, local) = opened.find(|(_, local)| is_olders(local)).unwrap();
    let accepted = world.pair.server.accept(older, 5).unwrap();
    world.pair.server.close(accepted);
    world.run();
    world.pair.client.close(first);
    world.run();
    assert_eq!(world.pair.server.usage().time_wait, 1);
    // The younger one has the next one.
    shared.is_over.store(true, Ordering::Relaxed);
    let target = SERVER_V4.parse().unwrap();
    let again = world.pair.client.connect(target, local, true, 7).unwrap();
    world.run();
    assert!(world.pair.client.is_established(again));
    world.younger = None;
    write(&mut world.pair.client, again, b"is it there?");
    world.run();
    assert!(world.pair.client.readable(again).error.is_some());
}

#[test]
fn a_listener_leaves_its_group_once() {
    let (mut world, [older, younger], shared) = listening();
    world.pair.server.leave_group(older);
    assert_eq!(shared.members.load(Ordering::Relaxed), 1);
    world.pair.server.close_listener(older);
    assert_eq!(shared.members.load(Ordering::Relaxed), 1);
    world.younger().close_listener(younger);
    assert_eq!(shared.members.load(Ordering::Relaxed), 0);
}

/// The SYN came twice, and each host has answered one: the peer has the older host's answer, and the younger one gets the
/// acknowledgement first.
#[test]
fn a_handshake_that_two_hosts_have_begun_is_completed_by_the_one_whose_answer_came() {
    let (mut world, [older, younger], shared) = listening();
    // Both know the way to each other.
    let is_even = |world: &mut Succession| {
        let (socket, _) = world.connect(SERVER_V4);
        let port = world.pair.client.local(socket).unwrap().port();
        port.is_multiple_of(2)
    };
    while !is_even(&mut world) {}
    let waiting = world.pair.server.waiting(older);
    let client = loop {
        let target = SERVER_V4.parse().unwrap();
        let socket = world.pair.client.connect(target, None, true, 7).unwrap();
        if world
            .pair
            .client
            .local(socket)
            .unwrap()
            .port()
            .is_multiple_of(2)
        {
            break socket;
        }
        world.run();
    };
    let step = |world: &mut Succession| {
        let Some((host, link)) = &mut world.younger else {
            panic!("it is there")
        };
        let pair = &mut world.pair;
        turn_of(&mut pair.client, &mut pair.client_link, pair.now);
        pair.client_link.carry(link);
        turn_of(host, link, pair.now);
        let handed = link.handed.as_mut().unwrap();
        pair.server_link.arrived.append(handed);
        turn_of(&mut pair.server, &mut pair.server_link, pair.now);
        turn_of(host, link, pair.now);
    };
    step(&mut world);
    let answer = world.pair.server_link.sent.drain(..).collect::<Vec<_>>();
    assert_eq!(answer.len(), 1, "the older host's SYN-ACK, which is late");
    shared.is_over.store(true, Ordering::Relaxed);
    world.pair.now = world.pair.now + Duration::from_millis(1500);
    step(&mut world);
    assert_eq!(world.younger().half_open(younger), 1);
    let (_, link) = world.younger.as_mut().unwrap();
    assert!(
        link.sent.drain(..).count() > 0,
        "its SYN-ACK, which is lost"
    );
    world.pair.client_link.arrived.extend(answer);
    world.run();
    assert!(world.pair.client.is_established(client));
    assert_eq!(world.pair.server.waiting(older), waiting + 1);
    assert_eq!(world.younger().tcp_counters().resets_out, 0);
}
