//! `millstream run` over TAP devices and memifs, whose addresses the kernel does not have.

use crate::memif::stacks;
use crate::namespace::{get, has, in_namespace, text_of};
use crate::others::Load;
use crate::run::{Accelerated, BINARY};
use crate::run_workers::workers;
use crate::server::{Site, wait_for};
use crate::topology::{BRIDGED, HOSTS, JOIN_BRIDGE, between};
use mill_sys::signal::Signal;
use std::collections::BTreeSet;
use std::{fs, thread};

/// Listens at addresses that the kernel does not have.
const SERVERS: &str = "server { listen 10.50.0.1:80; listen [fd50::1]:80;
    location = /worker { return 200 $pid; } }";

#[test]
fn nginx_on_a_tap_device_serves_both_families_and_reloads_lose_no_request() {
    if !has("nginx") || !has("wrk") {
        println!("not tested: there is no nginx or no wrk");
        return;
    }
    between(1500, |topology| {
        topology.bridge();
        let site = Site::new();
        let conf = site.configure("worker_processes 2;", SERVERS);
        let nginx = Accelerated::on(BRIDGED, &["nginx", "-c", &conf, "-e", "stderr"]);
        wait_for(|| !nginx.children().is_empty());
        text_of("sh", &["-c", JOIN_BRIDGE]);
        let large = fs::read(site.path("large.bin")).unwrap();
        let fetched = site.path("fetched");
        for host in HOSTS {
            wait_for(|| {
                topology
                    .at_client(|| get(&format!("http://{host}/")))
                    .is_some()
            });
            let url = format!("http://{host}/large.bin");
            let to = fetched.to_str().unwrap();
            topology.at_client(|| text_of("curl", &["-sSfo", to, &url]));
            assert!(fs::read(&fetched).unwrap() == large, "{url}");
        }
        workers(topology, 2, &BTreeSet::new());
        let load = topology.at_client(|| Load::with_header("Connection: close", 4));
        reload_under_load(&nginx, 3);
        let report = load.report();
        workers(topology, 2, &BTreeSet::new());
        assert!(report.contains("Requests/sec"), "{report}");
        let has_errors = report.contains("Socket errors") || report.contains("Non-2xx");
        assert!(!has_errors, "{report}");
        nginx.end_alone(Signal::Quit);
    });
}

#[test]
fn nginx_on_a_memif_serves_programs_on_the_other_end_and_reloads_lose_no_request() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    in_namespace(|| {
        let site = Site::new();
        let [ours, theirs] = stacks(&site, 1500);
        let conf = site.configure(
            "worker_processes 2;",
            "server { listen 10.60.0.1:80; listen [fd60::1]:80; location = /worker { return 200 \"$pid \"; } }",
        );
        let nginx = Accelerated::on(&ours, &["nginx", "-c", &conf, "-e", "stderr"]);
        wait_for(|| !nginx.children().is_empty());
        let fetched = site.path("fetched");
        let to = fetched.to_str().unwrap();
        let curl = |url: &str| {
            let retry = ["--retry", "50", "--retry-delay", "0", "--retry-all-errors"];
            let words = ["run", "--stack", &theirs, "--", "curl", "-sSfo", to];
            text_of(BINARY, &[&words[..], &retry, &[url]].concat());
        };
        for host in ["10.60.0.1", "[fd60::1]"] {
            curl(&format!("http://{host}/large.bin"));
            let large = fs::read(site.path("large.bin")).unwrap();
            assert!(fs::read(&fetched).unwrap() == large, "{host}");
        }
        let answering = || {
            let urls = ["http://10.60.0.1/worker"; 40];
            let words = [
                "run",
                "--stack",
                &theirs,
                "--",
                "curl",
                "-sSfH",
                "Connection: close",
            ];
            let said = text_of(BINARY, &[&words[..], &urls].concat());
            said.split_whitespace()
                .map(String::from)
                .collect::<BTreeSet<_>>()
                .len()
        };
        wait_for(|| answering() == 2);
        let ab = ["ab", "--stack", &theirs, "-n", "20000", "-c", "20"];
        let report = thread::scope(|scope| {
            let url = "http://10.60.0.1/";
            let load = scope.spawn(|| text_of(BINARY, &[&ab[..], &[url]].concat()));
            reload_under_load(&nginx, 3);
            load.join().unwrap()
        });
        assert!(report.contains("Complete requests:      20000"), "{report}");
        assert!(report.contains("Failed requests:        0"), "{report}");
        nginx.end_alone(Signal::Quit);
    });
}

/// Reloads so many times, each time once the workers before are others.
pub(crate) fn reload_under_load(nginx: &Accelerated, count: usize) {
    for _ in 0..count {
        let before = nginx.children();
        nginx.signal(Signal::Hangup);
        wait_for(|| {
            let now = nginx.children();
            !now.is_empty() && !now.iter().any(|worker| before.contains(worker))
        });
    }
}
