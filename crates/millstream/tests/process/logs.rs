//! Logs that cannot be written to: requests go on, and lost lines are counted and reported.

use crate::client::get;
use crate::site::{Site, free_address, send, wait_for};
use mill_sys::account;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A server whose access log is in a small file system of its own, in a mount namespace of its own.
struct Full {
    site: Site,
    address: SocketAddr,
    master: Pid,
}

impl Full {
    fn start() -> Self {
        let site = Site::new();
        let address = free_address();
        let directory = site.path("small");
        fs::create_dir(&directory).unwrap();
        let small = directory.display();
        site.configure(
            "",
            &format!(
                "access_log {small}/access.log; server {{ listen {address};
                 location = /metrics {{ access_log off; millstream_metrics; }} }}"
            ),
        );
        let script = format!(
            "mount -t tmpfs -o size=128k,mode=777 none {small} && head -c 96k /dev/zero > {small}/filler && \
             exec {} -c {}",
            site.path("nginx").display(),
            site.path("nginx.conf").display()
        );
        let status = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", &script])
            .stdin(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        let master = site.master().unwrap();
        Self {
            site,
            address,
            master,
        }
    }

    /// A file of the small file system.
    fn small(&self, name: &str) -> PathBuf {
        let inside = self.site.path("small").join(name);
        PathBuf::from(format!("/proc/{}/root{}", self.master, inside.display()))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.small("access.log")).unwrap()
    }

    fn lost(&self) -> usize {
        let metrics = get(self.address, "/metrics").unwrap().content;
        let metrics = String::from_utf8(metrics).unwrap();
        let line = metrics
            .lines()
            .find(|line| line.starts_with("millstream_log_lines_lost"));
        let count = line.and_then(|line| line.rsplit(' ').next());
        count.unwrap().parse().unwrap()
    }
}

#[test]
fn a_full_disk_loses_only_log_lines_which_are_counted_and_reported() {
    if !account::is_super_user() {
        println!("not tested: a file system of one's own takes root");
        return;
    }
    let full = Full::start();
    let mut asked = 0;
    let mut ask = |path: &str| {
        assert_eq!(get(full.address, path).unwrap().status, 200);
        asked += 1;
    };
    // 32 KiB hold fewer than these.
    let long = format!("/index.html?{}", "x".repeat(500));
    (0..100).for_each(|_| ask(&long));
    let error = "small/access.log\" failed (28: No space left on device)";
    full.site.wait_for_log(error);
    // There is room again: that is noticed, and a torn line is finished first.
    fs::remove_file(full.small("filler")).unwrap();
    wait_for("a line that is written again", || {
        ask("/index.html?again");
        full.log().contains("?again").then_some(())
    });
    wait_for("every line to be either in the log or counted", || {
        (full.log().lines().count() + full.lost() == asked).then_some(())
    });
    assert!(full.lost() > 0);
    for line in full.log().lines() {
        let request = line.split('"').nth(1).unwrap_or_default();
        let whole = format!("GET {long} HTTP/1.1");
        assert!(
            request == whole || request == "GET /index.html?again HTTP/1.1",
            "{line}"
        );
    }
    let errors = full.site.error_log();
    assert_eq!(errors.matches(error).count(), 1, "once a minute: {errors}");
}

#[test]
fn a_log_that_was_removed_is_there_again_after_reopening() {
    let site = Site::new();
    let address = free_address();
    let folder = site.path("logs");
    fs::create_dir(&folder).unwrap();
    let log = folder.join("access.log");
    let access_log = format!("access_log {};", log.display());
    site.configure("", &format!("server {{ listen {address}; {access_log} }}"));
    let master = site.start();
    let lines = || fs::read_to_string(&log).unwrap_or_default().lines().count();
    let ask = || assert_eq!(get(address, "/").unwrap().status, 200);
    ask();
    wait_for("a line", || (lines() == 1).then_some(()));
    fs::remove_file(&log).unwrap();
    ask();
    assert!(!log.exists(), "the old file is written to");
    send(master, Signal::User1);
    wait_for("a new log", || log.exists().then_some(()));
    wait_for("a line in it", || {
        ask();
        (lines() > 0).then_some(())
    });
    // Without its folder it cannot be created: that is logged, and requests go on.
    fs::remove_dir_all(&folder).unwrap();
    send(master, Signal::User1);
    let why = format!(
        "open() \"{}\" failed (2: No such file or directory)",
        log.display()
    );
    site.wait_for_log(&why);
    ask();
    fs::create_dir(&folder).unwrap();
    send(master, Signal::User1);
    wait_for("a line in a new log", || {
        ask();
        (lines() > 0).then_some(())
    });
}
