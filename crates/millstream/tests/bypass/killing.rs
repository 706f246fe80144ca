//! Processes that are killed at any moment, also while they start: the interface returns to the kernel, and the next
//! server gets it at once.

use crate::others::{Echo, converse};
use crate::server::{Server, Site, wait_for};
use crate::topology::{FAR, HOSTS, STACK, between, configure, is_steered};
use mill_sys::descriptor::wait_readable;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The process to be killed.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Master,
    Worker,
    Both,
}

const VICTIMS: [Victim; 3] = [Victim::Master, Victim::Worker, Victim::Both];

/// Moments from before the program is attached until long after everything runs.
const MOMENTS: u64 = 24;
const LATEST_MS: u64 = 250;

#[test]
fn a_kill_at_any_moment_leaves_the_interface_to_the_kernel() {
    let seed = mill_sys::random::seed().unwrap();
    println!("seed {seed:#x}");
    between(1500, |topology| {
        let echo = Echo::start();
        let mut kept = topology.at_client(|| HOSTS.map(|host| echo.connect(host)));
        let site = Site::new();
        let conf = configure(&site);
        for moment in 0..MOMENTS {
            let random = scattered(seed.wrapping_add(moment));
            let victim = VICTIMS[usize::try_from(random % 3).unwrap()];
            let at = Duration::from_micros(random / 3 % (LATEST_MS * 1000));
            let mut server = Server::begin(&conf, &["--stack", STACK]);
            // Waits for the time only.
            wait_readable(&[], Some(at)).unwrap();
            let worker = server.worker_if_any();
            match (victim, worker) {
                (Victim::Both, _) => server.kill_all(),
                (Victim::Worker, Some(worker)) => kill(worker),
                (Victim::Master | Victim::Worker, _) => server.signal(Signal::Kill),
            }
            if let (Victim::Worker, Some(_)) = (victim, worker) {
                // Replaced; the serving process is ended as usual.
                assert!(server.end(Signal::Quit).success(), "{moment}: {at:?}");
            }
            wait_for(|| !is_steered());
            // The remaining one of the two ends by itself, so no socket listens.
            wait_for(|| topology.at_client(|| is_refused(HOSTS[0]) && is_refused(HOSTS[1])));
            topology.at_client(|| kept.iter_mut().for_each(converse));
        }
        // Directly after a kill, when the queue is busy for a moment.
        for _ in 0..3 {
            let mut server = Server::begin(&conf, &["--stack", STACK]);
            wait_for(is_steered);
            server.kill_all();
        }
        let log_before = site.error_log().len();
        let server = Server::begin(&conf, &["--stack", STACK]);
        wait_for(|| site.error_log()[log_before..].contains("configuration 1 is in force"));
        topology.at_client(|| {
            assert!(!is_refused(HOSTS[0]), "{FAR}");
            kept.iter_mut().for_each(converse);
        });
        assert!(server.end(Signal::Quit).success());
    });
}

fn kill(process: Pid) {
    // It may have ended by itself.
    let _ = process.kill(Signal::Kill.number());
}

fn is_refused(host: &str) -> bool {
    let address: SocketAddr = format!("{host}:80").parse().unwrap();
    let connected = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// A pseudo-random number (SplitMix64).
fn scattered(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
