//! Two hosts behind one address that both listen: new connections are theirs in turn, by their ports.

use super::succession::Succession;
use super::*;
use crate::flow::Flow;
use crate::process_group::ProcessGroup;
use crate::socket::{ListenOptions, ListenerId};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicU32, Ordering};

/// A group of two hosts: flows with an even port of the peer are the older host's.
#[derive(Debug)]
struct EvenAndOdd {
    is_older: bool,
    /// Listeners in it.
    members: Arc<AtomicU32>,
}

impl ProcessGroup for EvenAndOdd {
    fn join(&mut self, _address: SocketAddr) {
        self.members.fetch_add(1, Ordering::Relaxed);
    }

    fn leave(&mut self, _address: SocketAddr) {
        self.members.fetch_sub(1, Ordering::Relaxed);
    }

    fn is_of_another(&mut self, address: SocketAddr, flow: &Flow) -> bool {
        assert_eq!(address, SERVER_V4.parse().unwrap());
        self.is_older != flow.remote_port.is_multiple_of(2)
    }

    fn has_departed(&self, _flow: &Flow) -> bool {
        false
    }
}

/// Both hosts listen.
fn listening() -> (Succession, [ListenerId; 2], Arc<AtomicU32>) {
    let mut world = Succession::new(|_| {});
    let members = Arc::new(AtomicU32::new(0));
    let group = |is_older| {
        let members = Arc::clone(&members);
        Box::new(EvenAndOdd { is_older, members })
    };
    world.pair.server.set_process_group(group(true));
    let older = world.pair.listen(SERVER_V4);
    world.succeed(false);
    let host = world.younger();
    host.set_process_group(group(false));
    let address = SERVER_V4.parse().unwrap();
    let younger = host.listen(address, &ListenOptions::default()).unwrap();
    (world, [older, younger], members)
}

#[test]
fn a_new_connection_is_the_hosts_whose_flow_it_is() {
    let (mut world, [older, younger], members) = listening();
    assert_eq!(members.load(Ordering::Relaxed), 2);
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

#[test]
fn a_listener_leaves_its_group_once() {
    let (mut world, [older, younger], members) = listening();
    world.pair.server.leave_group(older);
    assert_eq!(members.load(Ordering::Relaxed), 1);
    world.pair.server.close_listener(older);
    assert_eq!(members.load(Ordering::Relaxed), 1);
    world.younger().close_listener(younger);
    assert_eq!(members.load(Ordering::Relaxed), 0);
}
