//! HUP, USR1, QUIT, TERM, WINCH, and `-s`.

use crate::client::{Client, get};
use crate::site::{
    Site, command_line, free_address, is_running, send, user_of, wait_for, wait_until_ended,
    worker_threads,
};
use mill_sys::account;
use mill_sys::signal::Signal;
use std::fs;
use std::net::SocketAddr;

fn one_server(site: &Site, main: &str) -> SocketAddr {
    let address = free_address();
    site.configure(main, &format!("server {{ listen {address}; }}"));
    address
}

#[test]
fn the_worker_process_gives_up_the_rights_of_the_master() {
    let site = Site::new();
    let address = one_server(&site, "worker_processes 2;");
    let master = site.start();
    site.wait_until_served(address);
    let worker = site.worker(master, &[]);
    assert_eq!(worker_threads(worker), 2);
    if account::is_super_user() {
        let user = account::user(c"www-data").unwrap().unwrap();
        assert_eq!((user_of(master), user_of(worker)), (0, user.uid));
    }
    assert!(command_line(master).starts_with("nginx: master process /"));
    for process in [master, worker] {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap();
        assert_eq!(name, "nginx\n", "so that pidof and killall find it");
    }
}

#[test]
fn limits_directory_and_cpus_are_as_configured() {
    let site = Site::new();
    let cpu = mill_sys::affinity::allowed_cpus().unwrap().remove(0);
    let mask = format!("1{}", "0".repeat(usize::from(cpu)));
    let directory = site.path("").display().to_string();
    let main = format!(
        "worker_processes 2; worker_rlimit_nofile 321; worker_rlimit_core 0;\n\
         worker_cpu_affinity {mask}; working_directory {directory};"
    );
    let address = one_server(&site, &main);
    let master = site.start();
    site.wait_until_served(address);
    let worker = site.worker(master, &[]);
    let limits = fs::read_to_string(format!("/proc/{worker}/limits")).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    assert!(
        line.split_whitespace()
            .filter(|word| *word == "321")
            .count()
            == 2,
        "{line}"
    );
    let link = fs::read_link(format!("/proc/{worker}/cwd")).unwrap();
    assert_eq!(link, site.path("").canonicalize().unwrap());
    for task in fs::read_dir(format!("/proc/{worker}/task"))
        .unwrap()
        .flatten()
    {
        let status = fs::read_to_string(task.path().join("status")).unwrap();
        let line = |name: &str| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap();
            line.trim().to_owned()
        };
        if line("Name:").starts_with("worker ") {
            assert_eq!(line("Cpus_allowed_list:"), cpu.to_string());
        }
    }
}

#[test]
fn hangup_adds_a_port_and_keeps_process_and_connections() {
    let site = Site::new();
    let first = one_server(&site, "");
    let master = site.start();
    let worker = site.worker(master, &[]);
    let mut client = Client::connect(first).unwrap();
    assert_eq!(client.get("/").unwrap().status, 200);
    let second = free_address();
    site.configure(
        "",
        &format!("server {{ listen {first}; listen {second}; }}"),
    );
    send(master, Signal::Hangup);
    site.wait_until_served(second);
    assert_eq!(client.get("/").unwrap().content, b"hello\n");
    assert_eq!(site.worker(master, &[]), worker);
}

#[test]
fn hangup_removes_a_port() {
    let site = Site::new();
    let (first, second) = (free_address(), free_address());
    site.configure(
        "",
        &format!("server {{ listen {first}; listen {second}; }}"),
    );
    let master = site.start();
    site.wait_until_served(second);
    site.configure("", &format!("server {{ listen {first}; }}"));
    send(master, Signal::Hangup);
    wait_for("the port to be closed", || {
        Client::connect(second).is_err().then_some(())
    });
    assert_eq!(get(first, "/").unwrap().status, 200);
}

#[test]
fn user1_opens_logs_again_that_only_root_may_open() {
    let site = Site::new();
    let address = one_server(&site, "");
    let master = site.start();
    site.wait_until_served(address);
    let log = site.path("access.log");
    let lines = |name: &str| fs::read_to_string(site.path(name)).unwrap_or_default();
    wait_for("a line in the log", || {
        lines("access.log").contains("200").then_some(())
    });
    fs::rename(&log, site.path("access.old")).unwrap();
    send(master, Signal::User1);
    wait_for("a new log", || log.exists().then_some(()));
    wait_for("a line in the new log", || {
        get(address, "/after").unwrap();
        lines("access.log").contains("/after").then_some(())
    });
    assert!(!lines("access.old").contains("/after") || lines("access.log").contains("/after"));
    if account::is_super_user() {
        use std::os::unix::fs::MetadataExt;
        let user = account::user(c"www-data").unwrap().unwrap();
        assert_eq!(fs::metadata(&log).unwrap().uid(), user.uid);
    }
}

#[test]
fn no_thread_keeps_a_log_open_that_was_replaced() {
    let site = Site::new();
    let address = one_server(&site, "worker_processes 2;");
    let master = site.start();
    site.wait_until_served(address);
    for name in ["access.log", "error.log"] {
        fs::rename(site.path(name), site.path(format!("{name}.1"))).unwrap();
    }
    send(master, Signal::User1);
    let worker = site.worker(master, &[]);
    let holders = || {
        let processes = [master, worker].into_iter();
        let tasks = processes.map(|pid| fs::read_dir(format!("/proc/{pid}/task")).unwrap());
        let tables = tasks.flatten().flatten().map(|task| task.path().join("fd"));
        let files = tables.flat_map(|table| fs::read_dir(table).unwrap().flatten());
        let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        targets
            .filter(|target| target.to_string_lossy().ends_with(".log.1"))
            .count()
    };
    wait_for("all to let go of the old logs", || {
        (holders() == 0).then_some(())
    });
    assert_eq!(get(address, "/").unwrap().status, 200);
}

#[test]
fn quit_finishes_requests_in_progress_and_terminate_does_not() {
    for (signal, finishes) in [(Signal::Quit, true), (Signal::Terminate, false)] {
        let site = Site::new();
        let size = 32 * 1024 * 1024;
        fs::write(site.path("large"), vec![b'x'; size]).unwrap();
        let address = one_server(&site, "");
        let master = site.start();
        let mut client = Client::connect(address).unwrap();
        client
            .send(b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n")
            .unwrap();
        let (status, len) = client.head().unwrap();
        assert_eq!((status, len), (200, size));
        send(master, signal);
        if finishes {
            // No new connection, but the old one is served to its end.
            wait_for("the port to be closed", || {
                Client::connect(address).is_err().then_some(())
            });
            assert!(is_running(master));
        } else {
            wait_until_ended(master);
        }
        let rest = client.content(len);
        assert_eq!(rest.is_ok(), finishes, "{signal:?}");
        drop(client);
        wait_until_ended(master);
        assert_eq!(site.master(), None, "the pid file is removed");
    }
}

#[test]
fn quit_ends_after_worker_shutdown_timeout_at_the_latest() {
    let site = Site::new();
    fs::write(site.path("large"), vec![b'x'; 32 * 1024 * 1024]).unwrap();
    let address = one_server(&site, "worker_shutdown_timeout 200ms;");
    let master = site.start();
    let mut client = Client::connect(address).unwrap();
    client
        .send(b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n")
        .unwrap();
    let (_, len) = client.head().unwrap();
    send(master, Signal::Quit);
    wait_until_ended(master);
    assert!(client.content(len).is_err());
}

#[test]
fn quit_closes_idle_connections() {
    let site = Site::new();
    let address = one_server(&site, "");
    let master = site.start();
    let mut client = Client::connect(address).unwrap();
    assert_eq!(client.get("/").unwrap().status, 200);
    send(master, Signal::Quit);
    assert!(client.is_closed());
    wait_until_ended(master);
}

#[test]
fn winch_drains_and_hangup_brings_the_worker_process_back() {
    let site = Site::new();
    let address = one_server(&site, "");
    let master = site.start();
    let worker = site.worker(master, &[]);
    send(master, Signal::WindowChange);
    wait_until_ended(worker);
    // The master keeps the socket: a client that connects now waits.
    let mut waiting = Client::connect(address).unwrap();
    waiting
        .send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
        .unwrap();
    send(master, Signal::Hangup);
    assert_eq!(waiting.answer().unwrap().status, 200);
    assert!(is_running(site.worker(master, &[worker])));
}

#[test]
fn the_option_s_finds_the_master_by_its_pid_file() {
    let site = Site::new();
    let address = one_server(&site, "");
    let master = site.start();
    site.wait_until_served(address);
    let steps = [
        ("reopen", "signal 10 (SIGUSR1) received"),
        ("reload", "signal 1 (SIGHUP) received"),
        ("quit", "signal 3 (SIGQUIT) received"),
    ];
    for (word, line) in steps {
        assert!(site.nginx(&["-s", word]).status.success());
        site.wait_for_log(line);
    }
    wait_until_ended(master);
    let master = site.start();
    assert!(site.nginx(&["-s", "stop"]).status.success());
    wait_until_ended(master);
}
