//! What is accelerated can be looked at: `onload_stackdump`, `millstream status`.

use crate::client::Client;
use crate::namespace::{has, output_of, text_of};
use crate::run::{Accelerated, BINARY, address, workers_of_nginx};
use crate::server::{Site, wait_for};
use crate::topology::{HOSTS, STACK, between, is_steered};
use mill_sys::signal::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Echoes one connection after the other. Each has a forked child, which has no stack.
const ECHO: &str = "
import os, socket, time
s = socket.create_server(('0.0.0.0', 7000), backlog=50)
while True:
    c = s.accept()[0]
    if os.fork() == 0: time.sleep(1000)
    while d := c.recv(9999): c.sendall(d)
    c.close()
";

#[test]
fn programs_on_the_stack_are_shown_with_their_connections_and_nothing_is_left_of_a_killed_one() {
    let python = "/usr/bin/python3";
    if !Path::new(python).exists() {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let link = site.path("onload_stackdump");
        std::os::unix::fs::symlink(BINARY, &link).unwrap();
        let link = link.to_str().unwrap();
        let server = Accelerated::start(&[python, "-c", ECHO]);
        let process = server.pid().number().to_string();
        let dump = |words: &[&str]| text_of(link, words);
        let of_one = |word: &str| dump(&[word, &process]);

        // Connections are the kernel's until the stack listens.
        let listens = || of_one("netstat").contains("0.0.0.0:7000");
        wait_for(|| dump(&["stacks"]).contains(&process) && listens());
        let mut client = topology.at_client(|| TcpStream::connect(address(7000)).unwrap());
        client.write_all(b"some bytes").unwrap();
        client.read_exact(&mut [0; 10]).unwrap();
        let line = format!("{}:7000", HOSTS[0]);
        let is_shown = |text: &str| {
            let of_it = text.lines().find(|shown| shown.contains(&line));
            of_it.is_some_and(|shown| shown.ends_with("ESTABLISHED"))
        };
        wait_for(|| is_shown(&of_one("netstat")));

        let row = |text: String, found: &str| {
            let row = text.lines().find(|line| line.contains(found));
            row.map(str::to_owned).unwrap_or_default()
        };
        let name = row(dump(&[]), &process);
        assert!(
            name.contains("python3-c0") && name.ends_with(&process),
            "{name}"
        );
        let bare = row(dump(&["--nopids", "stacks"]), &process);
        assert!(bare.ends_with("python3-c0"), "{bare}");
        let size = row(dump(&["clusters", &process]), "size");
        assert_eq!(size, "cluster python3: size=1 interface=mill0");
        assert!(row(of_one("netstat"), "LISTEN").contains("     0     50 0.0.0.0:7000"));
        wait_for(|| row(of_one("stats"), "bytes_delivered") == "bytes_delivered: 10");
        assert_eq!(
            row(of_one("opts"), "EF_TCP_FIN_TIMEOUT"),
            "EF_TCP_FIN_TIMEOUT: 60"
        );
        for word in ["LISTEN", "opens_passive: ", "EF_POLL_USEC: "] {
            assert!(of_one("lots").contains(word), "{word}");
        }
        let status = row(text_of(BINARY, &["status", &process]), &process);
        let words: Vec<&str> = status.split_whitespace().collect();
        let expected = [&process, "python3", "mill0", "stack", "1", "1", "0"];
        assert_eq!(words, expected, "{status}");
        // Servers of other tests are shown, too, and one may be so slow that this is an error.
        let all = output_of(BINARY, &["status"]).stdout;
        let all = row(String::from_utf8(all).unwrap(), &process);
        assert!(all.split_whitespace().eq(expected), "{all}");

        let child = text_of("pgrep", &["-nP", &process]);
        let of_child = row(text_of(BINARY, &["status", child.trim()]), child.trim());
        assert!(of_child.contains("kernel"), "{of_child}");

        // By SIGKILL.
        drop(server);
        assert_eq!(row(dump(&[]), &process), "");
        wait_for(|| !is_steered());
    });
}

#[test]
fn connections_of_the_kernel_are_counted_beside_those_of_the_stack() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let servers = "server { listen 80; keepalive_timeout 600s; keepalive_requests 100000; }";
        let (nginx, mut over_interface) = workers_of_nginx(topology, &site, (1, servers));
        let worker = nginx.children()[0].number().to_string();
        let master = nginx.pid().number().to_string();
        // Of a process: what is on the stack, and what is the kernel's.
        let counts = |process: &str| {
            let text = text_of(BINARY, &["status", process]);
            let is_its = |line: &&str| line.trim_start().starts_with(process);
            let row = text.lines().find(is_its).unwrap_or_default();
            let words: Vec<&str> = row.split_whitespace().rev().take(2).collect();
            words.join(" of kernel, on stack ")
        };
        wait_for(|| counts(&worker) == "0 of kernel, on stack 1");
        let local = "127.0.0.1:80".parse().unwrap();
        let mut over_loopback = [(); 2].map(|()| Client::connect(local).unwrap());
        for client in over_loopback.iter_mut().chain([&mut over_interface]) {
            assert_eq!(client.get("/").unwrap().status, 200);
        }
        assert_eq!(counts(&worker), "2 of kernel, on stack 1");
        assert_eq!(counts(&master), "0 of kernel, on stack -");
        drop(over_loopback);
        wait_for(|| counts(&worker) == "0 of kernel, on stack 1");
        assert_eq!(over_interface.get("/").unwrap().status, 200);
        assert!(nginx.end(Signal::Quit).success());
    });
}

/// A program in a namespace of processes of its own, as in a container, which ends with it.
struct Contained(Child);

impl Contained {
    fn start(program: &[&str]) -> Self {
        let words = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
        let child = Command::new("unshare")
            .args(words)
            .args([BINARY, "run", "--stack", STACK, "--"])
            .args(program)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn programs_in_a_container_are_shown_outside_by_the_numbers_that_they_have_there() {
    let python = "/usr/bin/python3";
    if !Path::new(python).exists() {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let contained = Contained::start(&[python, "-c", ECHO]);
        let outside = || output_of("pgrep", &["-P", &contained.0.id().to_string()]);
        wait_for(|| outside().status.success());
        let process = String::from_utf8(outside().stdout).unwrap();
        let process = process.trim();
        let is_its = |line: &str| line.contains("python3-c0") && line.ends_with(process);
        let is_shown = || {
            let stacks = text_of(BINARY, &["stackdump", "stacks"]);
            stacks.lines().any(is_its)
        };
        wait_for(is_shown);
        wait_for(|| text_of(BINARY, &["stackdump", "netstat", process]).contains("0.0.0.0:7000"));
        let mut client = topology.at_client(|| TcpStream::connect(address(7000)).unwrap());
        client.write_all(b"some bytes").unwrap();
        client.read_exact(&mut [0; 10]).unwrap();
        let expected = [process, "python3", "mill0", "stack", "1", "1", "0"];
        wait_for(|| {
            let status = text_of(BINARY, &["status", process]);
            let mut rows = status.lines().map(str::split_whitespace);
            rows.any(|words| words.eq(expected))
        });
        drop(contained);
        wait_for(|| !is_steered());
        assert!(!is_shown());
    });
}
