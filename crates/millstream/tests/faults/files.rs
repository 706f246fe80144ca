//! Disks that are full, logs that are removed, files that change while they are served.

use crate::fates::Client;
use crate::processes::all_are_answered;
use crate::stage::{FILE, MAIN, Stage, on_each, pause};
use crate::transport::Transport;
use mill_sys::signal::Signal;
use std::fs;

#[test]
fn logs_that_are_removed_and_opened_again_lose_no_request() {
    let remove = |stage: &mut Stage<'_>| {
        let log = stage.site.path("access.log");
        let http = format!(
            "keepalive_requests 1000000; server {{ listen 80; access_log {}; }}",
            log.display()
        );
        stage.site.configure(MAIN, &http);
        stage.server().signal(Signal::Hangup);
        stage.wait_until("a reload", |stage| stage.in_force(2) == 1);
        for _ in 0..20 {
            stage.wait_until("lines", |_| {
                fs::metadata(&log).is_ok_and(|log| log.len() > 0)
            });
            fs::remove_file(&log).unwrap();
            pause(20);
            stage.server().signal(Signal::User1);
            stage.wait_until("the log", |_| log.exists());
        }
        String::from("20 times removed, reopened")
    };
    on_each(
        &Transport::ALL,
        "access log removed",
        remove,
        all_are_answered,
    );
}

/// A device on which every write fails for lack of room.
#[test]
fn a_full_disk_below_the_access_log_loses_no_request() {
    let fill = |stage: &mut Stage<'_>| {
        let http = "keepalive_requests 1000000; server { listen 80; access_log /dev/full; }";
        stage.site.configure(MAIN, http);
        stage.server().signal(Signal::Hangup);
        stage.wait_until("a reload", |stage| stage.in_force(2) == 1);
        pause(1000);
        String::from("access_log /dev/full for 2 s")
    };
    on_each(&Transport::ALL, "disk full", fill, all_are_answered);
}

#[test]
fn files_that_are_replaced_while_they_are_served_lose_no_request() {
    let replace = |stage: &mut Stage<'_>| {
        let (path, other) = (stage.site.path(FILE), stage.site.path("other.bin"));
        let content = fs::read(&path).unwrap();
        for _ in 0..100 {
            fs::write(&other, &content).unwrap();
            fs::rename(&other, &path).unwrap();
            pause(10);
        }
        String::from("100 times replaced by rename")
    };
    on_each(&Transport::ALL, "file replaced", replace, all_are_answered);
}

/// A file that gets shorter while it is sent ends its connections by a reset, so no client waits for the rest.
#[test]
fn files_that_are_truncated_while_they_are_served_end_in_a_reset() {
    let cut = |stage: &mut Stage<'_>| {
        let path = stage.site.path("cut.bin");
        let content = fs::read(stage.site.path("large.bin")).unwrap();
        fs::copy(stage.site.path("large.bin"), &path).unwrap();
        let client = stage.at_client(|| Client::start(&stage.site, stage.transport, "cut.bin"));
        pause(1000);
        for _ in 0..20 {
            // Transfers of the old one are cut; new requests get the new one, whole.
            let old = fs::OpenOptions::new().write(true).open(&path).unwrap();
            let other = stage.site.path("other.bin");
            fs::write(&other, &content).unwrap();
            fs::rename(&other, &path).unwrap();
            old.set_len(1000).unwrap();
            pause(80);
        }
        pause(1000);
        let fates = client.end();
        assert_eq!((fates.timed_out, fates.cut), (0, 0), "{fates:?}");
        assert!(fates.reset > 0, "{fates:?}");
        format!("beside it a file of 12 MB, 20 times cut and whole again: {fates:?}")
    };
    on_each(&Transport::OPEN, "file cut short", cut, all_are_answered);
}
