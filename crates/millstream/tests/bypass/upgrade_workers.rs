//! The binary is replaced while several workers serve over the stack: each gives its queues to the new process's worker, and its
//! connections go on, also where their frames move to another worker's queue.

use crate::client::Client;
use crate::handover::upgraded;
use crate::namespace::{has, text_of};
use crate::proxied::ORIGIN;
use crate::server::{Server, Site, wait_for};
use crate::topology::{
    BRIDGED, FAR_ADDRESS, HOSTS, JOIN_BRIDGE, STACK, between_queues, is_steered,
    kernel_connections, resets_of_kernel,
};
use crate::upgrade::{Download, LISTEN, Load, World, is_running, pid_line, send};
use crate::workers::leave_by;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::fs;

/// A server with so many workers on an interface with so many queues.
pub(crate) fn with_workers(queues: u32, workers: u32, test: impl FnOnce(World<'_>) + Send) {
    with_workers_over(queues, workers, STACK, test);
}

/// The same over a stack with other options.
fn with_workers_over(queues: u32, workers: u32, stack: &str, test: impl FnOnce(World<'_>) + Send) {
    between_queues([queues, queues], |topology| {
        let site = Site::new();
        let conf = site.configure(&format!("worker_processes {workers};"), LISTEN);
        let old = Server::configured(&site, &conf, &["--stack", stack]);
        test(World {
            topology,
            site,
            old,
        });
    });
}

/// The same on a TAP device, which has a queue for each worker.
pub(crate) fn with_workers_on_tap(workers: u32, test: impl FnOnce(World<'_>) + Send) {
    between_queues([1, 1], |topology| {
        topology.bridge();
        let site = Site::new();
        let conf = site.configure(&format!("worker_processes {workers};"), LISTEN);
        let old = Server::configured(&site, &conf, &["--stack", BRIDGED]);
        text_of("sh", &["-c", JOIN_BRIDGE]);
        test(World {
            topology,
            site,
            old,
        });
    });
}

/// Waits until each of many connections in a row is this process's.
pub(crate) fn wait_until_all_are_of(world: &World<'_>, worker: Pid) {
    wait_for(|| (0..40).all(|_| world.served_by() == Some(worker)));
}

/// Connections to both addresses, spread over the queues by their ports.
pub(crate) fn connections(world: &World<'_>) -> Vec<Client> {
    let connect = |number: usize| {
        let address = format!("{}:80", HOSTS[number % 2]).parse().unwrap();
        world
            .topology
            .at_client(|| Client::connect(address).unwrap())
    };
    (0..24).map(connect).collect()
}

pub(crate) fn are_served_by(clients: &mut [Client], worker: Pid) {
    for client in clients {
        assert_eq!(client.get("/pid").unwrap().content, pid_line(worker));
    }
}

/// The connections of two processes, of which the newer has the device.
pub(crate) struct Both {
    pub(crate) old_worker: Pid,
    pub(crate) of_old: Vec<Client>,
    /// The new binary's processes.
    pub(crate) master: Pid,
    pub(crate) worker: Pid,
    pub(crate) of_new: Vec<Client>,
}

impl Both {
    pub(crate) fn begin(world: &World<'_>) -> Self {
        let old_worker = world.old.worker();
        let mut of_old = connections(world);
        are_served_by(&mut of_old, old_worker);
        let (master, worker) = world.upgrade();
        wait_until_all_are_of(world, worker);
        let mut of_new = connections(world);
        are_served_by(&mut of_new, worker);
        Self {
            old_worker,
            of_old,
            master,
            worker,
            of_new,
        }
    }
}

fn check_upgrade(world: World<'_>) {
    let was_steered = is_steered();
    let old_worker = world.old.worker();
    let mut of_old = connections(&world);
    are_served_by(&mut of_old, old_worker);
    let downloads = [Download::begin(&world), Download::begin(&world)];
    let (master, worker) = world.upgrade();
    wait_until_all_are_of(&world, worker);
    are_served_by(&mut of_old, old_worker);
    let mut of_new = connections(&world);
    are_served_by(&mut of_new, worker);
    world.old.signal(Signal::Quit);
    for download in downloads {
        download.finish_alone();
    }
    are_served_by(&mut of_new, worker);
    drop(of_old);
    wait_for(|| !is_running(world.old.pid()));
    are_served_by(&mut of_new, worker);
    wait_until_all_are_of(&world, worker);
    assert_eq!(kernel_connections(80), "");
    assert_eq!(is_steered(), was_steered);
    send(master, Signal::Quit);
    drop(of_new);
    wait_for(|| !is_running(master));
    assert!(!is_steered());
}

#[test]
fn all_workers_give_their_queues_and_keep_their_connections() {
    for (queues, workers) in [(2, 2), (4, 3), (6, 6)] {
        with_workers(queues, workers, check_upgrade);
    }
}

#[test]
fn so_they_do_over_a_tap_device() {
    with_workers_on_tap(3, check_upgrade);
}

/// The frames of each connection arrive at all queues in turn: at workers of the new process, which has the device, and the
/// connection may be of any worker of either process.
#[test]
fn connections_of_both_processes_go_on_where_their_frames_change_queues() {
    for (queues, workers) in [(2, 2), (4, 3)] {
        with_workers(queues, workers, |world| {
            let Both {
                old_worker,
                mut of_old,
                master,
                worker,
                mut of_new,
            } = Both::begin(&world);
            for turn in 0..2 * queues {
                world.topology.at_client(|| leave_by(turn % queues, queues));
                are_served_by(&mut of_old, old_worker);
                are_served_by(&mut of_new, worker);
            }
            world.old.signal(Signal::Quit);
            drop(of_old);
            wait_for(|| !is_running(world.old.pid()));
            are_served_by(&mut of_new, worker);
            send(master, Signal::Terminate);
            wait_for(|| !is_running(master));
        });
    }
}

#[test]
fn an_upgrade_of_several_workers_can_be_taken_back() {
    with_workers(2, 2, |world| {
        let old_worker = world.old.worker();
        let mut of_old = connections(&world);
        are_served_by(&mut of_old, old_worker);
        let (master, worker) = world.upgrade();
        wait_until_all_are_of(&world, worker);
        let download = Download::begin(&world);
        send(master, Signal::Quit);
        wait_until_all_are_of(&world, old_worker);
        are_served_by(&mut of_old, old_worker);
        download.finish_alone();
        wait_for(|| !is_running(master));
        are_served_by(&mut of_old, old_worker);
        assert!(world.old.end(Signal::Quit).success());
        assert!(!is_steered());
    });
}

/// Kills a worker process of an upgrade; the connections of the other one go on.
fn check_killed(is_old: bool) {
    with_workers(2, 2, |world| {
        let both = Both::begin(&world);
        let master = both.master;
        let (victim, mut lost, mut left) = match is_old {
            true => (both.old_worker, both.of_old, both.of_new),
            false => (both.worker, both.of_new, both.of_old),
        };
        send(victim, Signal::Kill);
        wait_for(|| !is_running(victim));
        for client in &mut left {
            assert_eq!(client.get("/").unwrap().status, 200);
        }
        for client in &mut lost {
            assert!(client.get("/").is_err());
        }
        wait_for(|| {
            let by = world.served_by();
            by.is_some_and(|by| by != victim && is_running(by))
        });
        send(master, Signal::Terminate);
        wait_for(|| !is_running(master));
    });
}

#[test]
fn old_workers_that_are_killed_leave_the_new_ones_connections() {
    check_killed(true);
}

#[test]
fn new_workers_that_are_killed_leave_the_old_ones_connections() {
    check_killed(false);
}

/// Three processes in a row, of which the middle one dies. The first master is killed, so that its worker process finishes alone and
/// the second master may be replaced.
#[test]
fn a_row_of_processes_loses_nothing_of_others_when_its_middle_one_dies() {
    with_workers(2, 2, |world| {
        let first = world.old.worker();
        let of_first: Vec<Download> = (0..6).map(|_| Download::begin(&world)).collect();
        let (second_master, second) = world.upgrade();
        wait_until_all_are_of(&world, second);
        let of_second = Download::begin(&world);
        send(world.old.pid(), Signal::Kill);
        wait_for(|| !is_running(world.old.pid()));
        let (third_master, third) = upgraded(&world, second_master);
        wait_until_all_are_of(&world, third);
        let mut of_third = connections(&world);
        are_served_by(&mut of_third, third);
        // The second master is told to finish, so that it starts no other worker process; for the download its last one stays.
        send(second_master, Signal::Quit);
        assert!([first, second].into_iter().all(is_running));
        send(second, Signal::Kill);
        wait_for(|| !is_running(second_master));
        are_served_by(&mut of_third, third);
        for download in of_first {
            download.finish_alone();
        }
        are_served_by(&mut of_third, third);
        drop(of_second);
        wait_for(|| !is_running(first));
        send(third_master, Signal::Terminate);
        wait_for(|| !is_running(third_master));
    });
}

#[test]
fn five_upgrades_of_several_workers_fail_no_request() {
    if !has("python3") {
        println!("not tested: there is no python3");
        return;
    }
    for workers in [2, 3] {
        with_workers(workers, workers, |world| {
            let load = Load::begin(&world);
            let mut master = world.old.pid();
            for _ in 0..5 {
                let (next, worker) = upgraded(&world, master);
                wait_until_all_are_of(&world, worker);
                send(master, Signal::Quit);
                wait_for(|| !is_running(master));
                master = next;
            }
            let count = load.end();
            assert!(count > 100, "{count}");
            send(master, Signal::Terminate);
            wait_for(|| !is_running(master));
        });
    }
}

/// Threads of a worker process that serve.
fn serving_threads(worker: Pid) -> usize {
    let tasks = format!("/proc/{}/task", worker.number());
    let tasks = fs::read_dir(tasks).into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("worker ")).count()
}

/// Answers of its server come to any queue, also to that of a worker which has ended, and whose successor opens no connections.
#[test]
fn what_an_old_binary_asks_of_servers_is_answered_until_its_last_worker_has_ended() {
    between_queues([2, 2], |topology| {
        let (behind, site) = (Site::new(), Site::new());
        let conf = behind.configure("worker_processes 1;", ORIGIN);
        let far = topology.at_client(|| Server::configured(&behind, &conf, &[]));
        let servers = format!(
            "server {{
                listen 80;
                location = /pid {{ return 200 \"$pid\n\"; }}
                location / {{ proxy_pass http://{FAR_ADDRESS}:9111; proxy_buffering off; }}
            }}"
        );
        let conf = site.configure("worker_processes 2;", &servers);
        // With small buffers most of the download is the server's to send for as long as the client does not read.
        let stack = format!("{STACK},receive-buffer=256k,send-buffer=256k");
        let old = Server::configured(&site, &conf, &["--stack", &stack]);
        let world = World {
            topology,
            site,
            old,
        };
        let (mut master, mut worker) = (world.old.pid(), world.old.worker());
        // The kernel chooses the queue of each connection.
        for _ in 0..4 {
            let download = Download::begin(&world);
            let (next, next_worker) = upgraded(&world, master);
            wait_until_all_are_of(&world, next_worker);
            send(master, Signal::Quit);
            wait_for(|| serving_threads(worker) == 1);
            let to_servers = || text_of("ss", &["-Htn", "sport = :9111"]);
            let there = topology.at_client(to_servers);
            assert_eq!(resets_of_kernel(), 0, "{there}");
            download.finish_alone();
            assert!(!there.is_empty(), "it waited for the client");
            assert_eq!(resets_of_kernel(), 0);
            wait_for(|| !is_running(master));
            (master, worker) = (next, next_worker);
        }
        send(master, Signal::Terminate);
        wait_for(|| !is_running(master));
        assert!(far.end(Signal::Quit).success());
    });
}

/// It serves no port any more, and has the queues again.
#[test]
fn an_old_binary_that_drains_goes_on_when_the_new_one_ends() {
    for workers in [1, 2] {
        let with_small_buffers = format!("{STACK},send-buffer=256k");
        with_workers_over(workers, workers, &with_small_buffers, |world| {
            let old_worker = world.old.worker();
            let download = Download::begin(&world);
            let (master, _) = world.upgrade();
            world.old.signal(Signal::Quit);
            // The new one has the queues, and the old one has closed its listeners.
            wait_for(|| (0..40).all(|_| world.served_by() != Some(old_worker)));
            send(master, Signal::Terminate);
            wait_for(|| !is_running(master));
            // Longer than what it knows of the one that has ended lasts.
            let mut looks = 0;
            wait_for(|| {
                assert!(is_running(old_worker));
                looks += 1;
                looks == 150
            });
            download.finish_alone();
            wait_for(|| !is_running(world.old.pid()));
        });
    }
}

/// No process comes after it. Answers of its server come to any queue, also to that of a worker which has nothing to do any more.
#[test]
fn a_download_through_a_proxy_that_ends_is_finished_whichever_worker_has_it() {
    between_queues([3, 3], |topology| {
        let behind = Site::new();
        let conf = behind.configure("worker_processes 1;", ORIGIN);
        let far = topology.at_client(|| Server::configured(&behind, &conf, &[]));
        let servers = format!(
            "server {{ listen 80; location = /pid {{ return 200 \"$pid\n\"; }}
            location / {{ proxy_pass http://{FAR_ADDRESS}:9111; proxy_buffering off; }} }}"
        );
        let stack = format!("{STACK},receive-buffer=256k,send-buffer=256k");
        // The kernel chooses the queue of each connection.
        for _ in 0..4 {
            // Of its own, as the log tells when it serves.
            let site = Site::new();
            let conf = site.configure("worker_processes 3;", &servers);
            let old = Server::configured(&site, &conf, &["--stack", &stack]);
            let world = World {
                topology,
                site,
                old,
            };
            let worker = world.old.worker();
            let download = Download::begin(&world);
            world.old.signal(Signal::Quit);
            let address = format!("{}:80", HOSTS[0]).parse().unwrap();
            let connect = || topology.at_client(|| Client::connect(address));
            wait_for(|| connect().is_err());
            // For half a second: those that have nothing to do would have ended by then.
            let mut looks = 0;
            wait_for(|| {
                assert_eq!(serving_threads(worker), 3);
                looks += 1;
                looks == 50
            });
            download.finish_alone();
            wait_for(|| !is_running(worker));
            wait_for(|| !is_running(world.old.pid()));
        }
        assert!(far.end(Signal::Quit).success());
    });
}

/// Workers that share a queue share its packet memory.
#[test]
fn workers_that_share_a_queue_refuse_to_be_replaced_and_serve_on() {
    with_workers(1, 2, |world| {
        world.old.signal(Signal::User2);
        wait_for(|| {
            let said = world.site.error_log();
            said.contains("it has fewer queues than workers, which share them")
        });
        assert_eq!(world.served_by(), Some(world.old.worker()));
        assert_eq!(world.master(), Some(world.old.pid()));
    });
}
