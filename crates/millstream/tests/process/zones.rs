//! What workers count together, over a reload.

use crate::client::get;
use crate::site::{Site, free_address, send, wait_for};
use mill_sys::signal::Signal;
use std::net::SocketAddr;

/// The document at a path of the API.
fn told(address: SocketAddr, path: &str) -> String {
    let answer = get(address, &format!("/api/9{path}")).unwrap();
    assert_eq!(answer.status, 200);
    String::from_utf8_lossy(&answer.content).into_owned()
}

#[test]
fn a_zone_has_the_requests_of_all_workers_and_goes_on_after_a_reload() {
    let site = Site::new();
    let front = free_address();
    site.configure(
        "worker_processes 2;",
        &format!(
            "open_file_cache max=9;
             server {{ listen {front} reuseport; status_zone s; location / {{ status_zone l; }}
                       location /api {{ api; }} }}"
        ),
    );
    let master = site.start();
    site.wait_until_served(front);
    // The page was asked for until it was served.
    let before = wait_for("the zone", || {
        let zone = told(front, "/http/location_zones/l");
        Some(requests(&zone)).filter(|requests| *requests > 0)
    });
    let ask = || {
        for _ in 0..40 {
            assert_eq!(get(front, "/index.html").unwrap().content, b"hello\n");
        }
    };
    // A request is counted a moment after its client has the answer.
    let wait_for_requests = |count: u64| {
        wait_for("the requests to be counted", || {
            let zone = told(front, "/http/location_zones/l");
            (requests(&zone) == count).then_some(zone)
        })
    };
    ask();
    let zone = wait_for_requests(before + 40);
    let codes = format!("\"codes\":{{\"200\":{}}}", before + 40);
    assert!(zone.contains(&codes), "{zone}");
    send(master, Signal::Hangup);
    site.wait_for_log("configuration 2 is in force");
    ask();
    wait_for_requests(before + 80);
    let zone = told(front, "/http/server_zones/s");
    assert!(requests(&zone) > before + 80, "{zone}");
    let nginx = told(front, "/nginx");
    assert!(nginx.contains(&format!("\"ppid\":{master}")), "{nginx}");
}

fn requests(zone: &str) -> u64 {
    let (_, rest) = zone.split_once("\"requests\":").unwrap();
    let digits = rest.split(|byte: char| !byte.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}
