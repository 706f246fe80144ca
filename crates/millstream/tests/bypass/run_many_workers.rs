//! Many more processes of one program than the interface has queues.

use crate::client::Client;
use crate::namespace::has;
use crate::others::Load;
use crate::run::{address, workers_of_nginx};
use crate::run_devices::reload_under_load;
use crate::server::{Site, wait_for};
use crate::topology::{Topology, between_queues, is_steered, kernel_connections};
use mill_sys::signal::Signal;

const WORKERS: u32 = 24;

/// Quick reloads of so many can lose single requests (docs/run.md), so there is load before and after reloads only.
#[test]
fn many_workers_on_two_queues_serve_before_and_after_reloads() {
    if !has("nginx") || !has("wrk") {
        println!("not tested: there is no nginx or no wrk");
        return;
    }
    between_queues([2, 2], |topology| {
        let site = Site::new();
        let servers = "server { listen 80; }";
        let (nginx, kept) = workers_of_nginx(topology, &site, (WORKERS, servers));
        drop(kept);
        for reloads in [0, 1, 2] {
            reload_under_load(&nginx, reloads);
            wait_for(|| nginx.children().len() == WORKERS as usize);
            let answered = || {
                let answer = Client::connect(address(80)).and_then(|mut client| client.get("/"));
                answer.is_ok_and(|answer| answer.status == 200)
            };
            topology.at_client(|| wait_for(answered));
            check_load(topology);
        }
        assert_eq!(kernel_connections(80), "");
        nginx.end(Signal::Quit);
        wait_for(|| !is_steered());
    });
}

/// A connection a request, for a second; each is answered.
fn check_load(topology: &Topology) {
    let load = topology.at_client(|| Load::with_header("Connection: close", 1));
    let report = load.report();
    println!("{report}");
    assert!(report.contains("Requests/sec"), "{report}");
    let has_errors = report.contains("Socket errors") || report.contains("Non-2xx");
    assert!(!has_errors, "{report}");
}
