//! nginx opens its logs anew, as log rotation has it do.

use crate::client::Client;
use crate::namespace::has;
use crate::run::nginx;
use crate::server::{Site, wait_for};
use crate::topology::{between, kernel_connections};
use mill_sys::signal::Signal;
use std::fs;

#[test]
fn nginx_opens_its_logs_anew_while_its_connections_go_on() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let (log, rotated) = (site.path("access.log"), site.path("access.log.1"));
        let servers = format!(
            "server {{ listen 80; access_log {}; location = /worker {{ return 200 $pid; }} }}",
            log.display()
        );
        let (nginx, mut kept) = nginx(topology, &site, &servers);
        let worker = |kept: &mut Client| kept.get("/worker").unwrap().content;
        let before = worker(&mut kept);
        fs::rename(&log, &rotated).unwrap();
        nginx.signal(Signal::User1);
        // The worker opens it some time after the master.
        wait_for(|| {
            assert_eq!(worker(&mut kept), before, "the same worker answers");
            fs::read(&log).is_ok_and(|lines| !lines.is_empty())
        });
        let lines = |path| fs::read_to_string(path).unwrap().lines().count();
        let (old, new) = (lines(&rotated), lines(&log));
        worker(&mut kept);
        wait_for(|| lines(&log) > new);
        assert_eq!(lines(&rotated), old, "nothing more goes to the old log");
        assert_eq!(kernel_connections(80), "", "the stack has the connection");
        assert!(nginx.end(Signal::Quit).success());
    });
}
