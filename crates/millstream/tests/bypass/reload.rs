//! Reloads under load: ports come and go, and no request fails.

use crate::namespace::{get, has, output_of};
use crate::others::Load;
use crate::server::{Server, Site, wait_for};
use crate::topology::{HOSTS, STACK, between, kernel_connections};
use mill_sys::signal::Signal;

const MAIN: &str = "worker_processes 1;";

#[test]
fn a_reload_adds_and_removes_ports_and_no_request_fails() {
    if !has("wrk") {
        println!("not tested: there is no wrk");
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let always = "listen 80; listen [::]:80;";
        let conf = site.configure(MAIN, &format!("server {{ {always} listen 81; }}"));
        let server = Server::configured(&site, &conf, &["--stack", STACK]);
        let worker = server.worker();
        let load = topology.at_client(|| Load::start(3));
        let fetch = |port: u16| {
            let url = format!("http://{}:{port}/", HOSTS[0]);
            topology.at_client(|| get(&url))
        };
        let is_refused = |port: u16| {
            let url = format!("http://{}:{port}/", HOSTS[0]);
            let output = topology.at_client(|| output_of("curl", &["-s", "-m2", &url]));
            output.status.code() == Some(CURL_COULD_NOT_CONNECT)
        };
        for (number, [added, removed]) in [[82, 81], [81, 82], [82, 81]].into_iter().enumerate() {
            assert!(fetch(removed).is_some() && is_refused(added));
            site.configure(MAIN, &format!("server {{ {always} listen {added}; }}"));
            server.signal(Signal::Hangup);
            let in_force = format!("configuration {} is in force", number + 2);
            wait_for(|| site.error_log().contains(&in_force));
            assert_eq!(fetch(added).as_deref(), Some("hello\n"), "{added}");
            wait_for(|| is_refused(removed));
        }
        assert_eq!(kernel_connections(80), "");
        assert_eq!(kernel_connections(82), "");
        let report = load.report();
        assert!(report.contains("Requests/sec"), "{report}");
        let has_errors = report.contains("Socket errors") || report.contains("Non-2xx");
        assert!(!has_errors, "{report}");
        assert_eq!(server.worker(), worker);
        assert!(server.end(Signal::Quit).success());
    });
}

/// curl(1), exit codes: nobody listens there, or nothing comes back.
const CURL_COULD_NOT_CONNECT: i32 = 7;
