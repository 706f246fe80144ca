//! Peers of a worker process that is killed hear of it at once, although they say nothing, as on kernel sockets: the process that
//! replaces it tells them.

use crate::client::Client;
use crate::server::wait_for;
use crate::topology::HOSTS;
use crate::upgrade::{World, is_running, send};
use crate::upgrade_workers::{
    Both, are_served_by, connections, wait_until_all_are_of, with_workers, with_workers_on_tap,
};
use mill_sys::clock;
use mill_sys::descriptor::wait_readable;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::fs;
use std::io::ErrorKind;
use std::time::Duration;

/// Much longer than between two times that a worker notes its connections.
const NOTED: Duration = Duration::from_millis(200);

/// The peer has said nothing since; what had arrived before comes first.
fn hear_reset(client: &mut Client) {
    let error = loop {
        if let Err(error) = client.content(1) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// Kills a worker process and checks that these hear of it.
fn kill(worker: Pid, clients: &mut [Client]) {
    send(worker, Signal::Kill);
    let since = clock::monotonic();
    clients.iter_mut().for_each(hear_reset);
    let took = clock::monotonic() - since;
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// Has a server send something that the client does not read: frames go on until the window is full.
fn stalled(world: &World<'_>, host: &str) -> Client {
    let address = format!("{host}:80").parse().unwrap();
    let mut client = world
        .topology
        .at_client(|| Client::connect(address).unwrap());
    client
        .send(b"GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n")
        .unwrap();
    assert_eq!(client.head().unwrap().0, 200);
    client
}

fn check_crash(world: World<'_>) {
    fs::write(world.site.path("large.bin"), vec![7; 9_000_000]).unwrap();
    for _ in 0..2 {
        let worker = world.old.worker();
        wait_until_all_are_of(&world, worker);
        let mut clients = connections(&world);
        are_served_by(&mut clients, worker);
        clients.extend(HOSTS.map(|host| stalled(&world, host)));
        wait_readable(&[], Some(NOTED)).unwrap();
        kill(worker, &mut clients);
        wait_for(|| world.old.worker_if_any().is_some_and(|new| new != worker));
    }
    wait_until_all_are_of(&world, world.old.worker());
    assert!(world.old.end(Signal::Quit).success());
}

#[test]
fn peers_of_a_killed_worker_process_hear_of_it_though_they_say_nothing() {
    for (queues, workers) in [(1, 1), (2, 2)] {
        with_workers(queues, workers, check_crash);
    }
}

#[test]
fn so_they_do_over_a_tap_device() {
    with_workers_on_tap(2, check_crash);
}

/// Answers of the peers come to a process that does not know the connections, and that has another one behind it.
#[test]
fn peers_of_the_old_binary_hear_nothing_when_the_new_one_s_worker_is_killed() {
    with_workers(2, 2, |world| {
        let mut both = Both::begin(&world);
        wait_readable(&[], Some(NOTED)).unwrap();
        kill(both.worker, &mut both.of_new);
        are_served_by(&mut both.of_old, both.old_worker);
        send(both.master, Signal::Quit);
        drop(both.of_old);
        wait_for(|| !is_running(both.master));
        assert!(world.old.end(Signal::Quit).success());
    });
}
