//! Programs that are not changed, on the stack: `millstream run`.

use crate::client::Client;
use crate::namespace::{get, has, output_of, text_of};
use crate::nginx::Nginx;
use crate::server::{Server, Site, wait_for};
use crate::topology::{
    FAR_ADDRESS, HOSTS, INTERFACE, STACK, Topology, between, is_steered, kernel_connections,
};
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_millstream");

/// A program on the stack, ended whatever happens.
pub(crate) struct Accelerated(Child);

impl Accelerated {
    pub(crate) fn start(program: &[&str]) -> Self {
        Self::on(STACK, program)
    }

    /// The same on another stack.
    pub(crate) fn on(stack: &str, program: &[&str]) -> Self {
        Self::with_input(stack, program, Stdio::null())
    }

    /// A program that reads what [`Self::say`] says.
    pub(crate) fn piped(program: &[&str]) -> Self {
        Self::with_input(STACK, program, Stdio::piped())
    }

    pub(crate) fn say(&mut self, words: &[u8]) {
        self.0.stdin.as_mut().unwrap().write_all(words).unwrap();
    }

    fn with_input(stack: &str, program: &[&str], input: Stdio) -> Self {
        let library = Path::new(BINARY).with_file_name("libmillstream.so");
        assert!(
            library.exists(),
            "{} is not there: \"cargo build -p mill-preload\" makes it",
            library.display()
        );
        let child = Command::new(BINARY)
            .args(["run", "--stack", stack, "--"])
            .args(program)
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::new(i32::try_from(self.0.id()).unwrap()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.pid().kill(signal.number()).unwrap();
    }

    /// Its children, oldest first.
    pub(crate) fn children(&self) -> Vec<Pid> {
        let own = self.0.id().to_string();
        let children = output_of("pgrep", &["-P", &own]);
        let children = String::from_utf8_lossy(&children.stdout).into_owned();
        let numbers = children.lines().filter_map(|line| line.parse().ok());
        numbers.filter_map(Pid::new).collect()
    }

    /// Ends the program, after which the interface has to be the kernel's.
    pub(crate) fn end(self, signal: Signal) -> ExitStatus {
        let ended = self.end_alone(signal);
        wait_for(|| !is_steered());
        ended
    }

    /// Ends a program that has no interface.
    pub(crate) fn end_alone(mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        let mut ended = None;
        wait_for(|| {
            ended = self.0.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap()
    }
}

impl Accelerated {
    /// Sends the signal again and again until the program has ended, a few seconds apart.
    pub(crate) fn end_in_the_end(mut self, signal: Signal) -> ExitStatus {
        let mut looks = 0_u32;
        let mut ended = None;
        wait_for(|| {
            if looks.is_multiple_of(LOOKS_BETWEEN_SIGNALS) {
                self.signal(signal);
            }
            looks += 1;
            ended = self.0.try_wait().unwrap();
            ended.is_some()
        });
        wait_for(|| !is_steered());
        ended.unwrap()
    }

    /// What its threads wait for, if it does not do what a test expects.
    fn tell_threads(&self) {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id()));
        for task in tasks.into_iter().flatten().flatten() {
            let told = ["comm", "wchan", "syscall"].map(|name| {
                let told = fs::read_to_string(task.path().join(name));
                told.unwrap_or_default().trim().to_owned()
            });
            println!("{told:?}");
        }
    }
}

impl Drop for Accelerated {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tell_threads();
        }
        // A master that is told of a worker's end begins another one, which would outlive it.
        let _ = self.pid().kill(SIGSTOP);
        let children = self.children();
        let _ = self.0.kill();
        let _ = self.0.wait();
        for child in children {
            let _ = child.kill(Signal::Kill.number());
        }
    }
}

/// signal(7), on x86 and ARM.
pub(crate) const SIGSTOP: i32 = 19;

/// How often it is looked, before a signal is sent again.
const LOOKS_BETWEEN_SIGNALS: u32 = 500;

pub(crate) fn address(port: u16) -> SocketAddr {
    format!("{}:{port}", HOSTS[0]).parse().unwrap()
}

/// nginx with a master, once it serves, and a kept connection over which it does so without the kernel.
pub(crate) fn nginx(topology: &Topology, site: &Site, servers: &str) -> (Accelerated, Client) {
    workers_of_nginx(topology, site, (1, servers))
}

/// The same with so many workers.
pub(crate) fn workers_of_nginx(
    topology: &Topology,
    site: &Site,
    (workers, servers): (u32, &str),
) -> (Accelerated, Client) {
    let conf = site.configure(&format!("worker_processes {workers};"), servers);
    let nginx = Accelerated::start(&["nginx", "-c", &conf, "-e", "stderr"]);
    // Until its workers listen on the stack, the kernel has its connections.
    let mut kept = None;
    wait_for(|| {
        kept = topology.at_client(|| {
            let mut client = Client::connect(address(80)).ok()?;
            let answer = client.get("/").ok()?;
            (answer.status == 200).then_some(client)
        });
        kept.is_some() && kernel_connections(80).is_empty()
    });
    (nginx, kept.unwrap())
}

#[test]
fn nginx_serves_every_byte_to_both_families_and_its_worker_has_no_rights() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    for mtu in [1500, 9000] {
        between(mtu, |topology| {
            let site = Site::new();
            let listening = "server { listen 80; listen [::]:80; sendfile on; }";
            let (nginx, _kept) = nginx(topology, &site, listening);
            let large = fs::read(site.path("large.bin")).unwrap();
            let fetched = site.path("fetched");
            for host in HOSTS {
                let url = format!("http://{host}/large.bin");
                let to = fetched.to_str().unwrap();
                topology.at_client(|| text_of("curl", &["-sSfo", to, &url]));
                assert!(fs::read(&fetched).unwrap() == large, "{url}, MTU {mtu}");
            }
            let worker = text_of("pgrep", &["-P", &nginx.pid().number().to_string()]);
            let worker = worker.lines().next_back().unwrap();
            let status = fs::read_to_string(format!("/proc/{worker}/status")).unwrap();
            assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
            // Loopback stays the kernel's.
            assert_eq!(get("http://127.0.0.1/").as_deref(), Some("hello\n"));
            nginx.end(Signal::Quit);
        });
    }
}

#[test]
fn reloads_of_nginx_bring_new_workers_lose_no_request_and_the_oldest_finishes_its_answer() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let servers = "server { listen 80; location = /worker { return 200 $pid; } }";
        let (nginx, mut kept) = nginx(topology, &site, servers);
        let url = format!("http://{}/worker", HOSTS[0]);
        let worker = || topology.at_client(|| get(&url));
        let mut known = worker();
        kept.send(b"GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n")
            .unwrap();
        let (_, len) = kept.head().unwrap();
        let first = kept.content(100_000).unwrap();
        for _ in 0..10 {
            nginx.signal(Signal::Hangup);
            wait_for(|| {
                let now = worker();
                assert!(now.is_some(), "each request is answered");
                core::mem::replace(&mut known, now.clone()) != now
            });
        }
        let rest = kept.content(len - first.len()).unwrap();
        let served = fs::read(site.path("large.bin")).unwrap();
        assert!(
            served == [first, rest].concat(),
            "the oldest worker finishes its answer"
        );
        drop(kept);
        nginx.end(Signal::Quit);
    });
}

/// A worker closes its listener while connections wait there, and only then the next one begins to listen.
#[test]
fn connections_that_a_worker_leaves_at_its_listener_are_the_next_ones() {
    let python = "/usr/bin/python3";
    if !Path::new(python).exists() {
        println!("not tested: there is no python3");
        return;
    }
    let script = "
import os, select, socket, sys
s = socket.create_server(('0.0.0.0', 7000), backlog=50)
r, w = os.pipe()
if os.fork() == 0:
    # It is asked to end when there are connections, as a worker of nginx at a reload.
    select.select([s], [], [])
    os.read(r, 1)
    s.close()
    sys.exit()
sys.stdin.read(1)
os.write(w, b'x')
os.wait() if len(sys.argv) > 1 else None
while True:
    c = s.accept()[0]
    while d := c.recv(99999): c.sendall(d)
    c.close()
";
    for words in [
        &["-c", script][..],
        &["-c", script, "the first one ends before"],
    ] {
        between(1500, |topology| {
            let mut server = Accelerated::piped(&[&[python], words].concat());
            // The first ones may come before the program waits for them: those are the kernel's.
            let of_kernel = || kernel_connections(7000).lines().count();
            wait_for(|| {
                let before = of_kernel();
                let client = topology.at_client(|| Client::connect(address(7000)));
                client.is_ok() && of_kernel() == before
            });
            let before = of_kernel();
            let waiting = topology.at_client(|| {
                let mut waiting: Vec<_> = (0..20)
                    .map(|_| std::net::TcpStream::connect(address(7000)).unwrap())
                    .collect();
                for (number, stream) in waiting.iter_mut().enumerate() {
                    stream.write_all(&vec![b'x'; number * 1000]).unwrap();
                    if number % 2 == 0 {
                        stream.shutdown(std::net::Shutdown::Write).unwrap();
                    }
                }
                waiting
            });
            assert!(of_kernel() <= before);
            server.say(b"go");
            topology.at_client(|| {
                for (number, mut stream) in waiting.into_iter().enumerate() {
                    if number % 2 == 1 {
                        stream.write_all(b"end").unwrap();
                        stream.shutdown(std::net::Shutdown::Write).unwrap();
                    }
                    let mut heard = Vec::new();
                    stream.read_to_end(&mut heard).unwrap();
                    assert_eq!(heard.len(), number * 1000 + 3 * (number % 2));
                }
            });
            drop(server);
            wait_for(|| !is_steered());
        });
    }
}

/// The output of a program on the stack.
pub(crate) fn on_stack(program: &[&str]) -> String {
    text_of(
        BINARY,
        &[&["run", "--stack", STACK, "--"], program].concat(),
    )
}

#[test]
fn clients_open_their_connections_on_the_stack() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let servers = "server { listen 80; listen [::]:80; keepalive_requests 100000; \
             location = /from { return 200 $remote_addr; } }";
        let _nginx = topology.at_client(|| Nginx::start(&site, servers));
        for (host, own) in [(FAR_ADDRESS, "10.50.0.1"), ("[fd50::2]", "fd50::1")] {
            let url = format!("http://{host}/");
            assert_eq!(on_stack(&["curl", "-sSf", &format!("{url}from")]), own);
            for [kept, threads] in [["X-Kept: yes", "-t2"], ["Connection: close", "-t1"]] {
                let report = on_stack(&["wrk", threads, "-c20", "-d1s", "-H", kept, &url]);
                assert!(report.contains("Requests/sec"), "{report}");
                let has_errors = report.contains("Socket errors") || report.contains("Non-2xx");
                assert!(!has_errors, "{report}");
            }
        }
        let url = format!("http://{FAR_ADDRESS}/");
        for keep_alive in [&["-k"][..], &[]] {
            let words = [&["ab", "-q", "-n500", "-c10"], keep_alive, &[&url]].concat();
            let report = on_stack(&words);
            assert!(report.contains("Complete requests:      500"), "{report}");
            assert!(report.contains("Failed requests:        0"), "{report}");
        }
        // Nothing of it was the kernel's: it would have connections in TIME-WAIT.
        assert_eq!(text_of("ss", &["-Htan", "dport = :80"]), "");
        wait_for(|| !is_steered());
    });
}

#[test]
fn the_command_line_of_onload_starts_programs() {
    between(1500, |topology| {
        let site = Site::new();
        let link = site.path("onload");
        std::os::unix::fs::symlink(BINARY, &link).unwrap();
        let profile = site.path("mine.opf");
        fs::write(
            &profile,
            "onload_set EF_POLL_USEC 20\nonload_import wan-traffic\n",
        )
        .unwrap();
        let target = Site::new();
        let echo = topology.at_client(|| Server::directory(&target.path(""), &["--listen", "*"]));
        let url = format!("http://{FAR_ADDRESS}/");
        for profile in ["nginx-balanced", profile.to_str().unwrap()] {
            let words = ["-p", profile, "curl", "-sSf", &url];
            let output = Command::new(&link)
                .args(words)
                .env("MILLSTREAM_STACK", STACK)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{profile}: {errors}");
            assert_eq!(text_of("ss", &["-Htan", "dport = :80"]), "", "{profile}");
        }
        drop(echo);
        wait_for(|| !is_steered());
    });
}

/// Sends bytes to an echo server and reads them, then its end.
pub(crate) fn echo(port: u16, said: &[u8]) {
    let mut stream = std::net::TcpStream::connect(address(port)).unwrap();
    let mut half = stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            half.write_all(said).unwrap();
            half.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        assert!(heard == said, "{} of {} bytes", heard.len(), said.len());
    });
}

/// Echo servers as Python programs are written: a thread for each connection that waits, select(2), poll(2) and epoll(7), and a
/// child for each.
const ECHOES: [(&str, &str); 5] = [
    (
        "threads that wait",
        "
import threading
def talk(c):
    while d := c.recv(9999): c.sendall(d)
    c.close()
while True: threading.Thread(target=talk, args=(s.accept()[0],), daemon=True).start()
",
    ),
    (
        "select",
        "
import select
own = [s]
while True:
    for c in select.select(own, [], [])[0]:
        if c is s: own.append(s.accept()[0]); continue
        d = c.recv(9999)
        if d: c.sendall(d)
        else: own.remove(c); c.close()
",
    ),
    (
        "poll",
        "
import select
p, own = select.poll(), {s.fileno(): s}
p.register(s, select.POLLIN)
while True:
    for fd, _ in p.poll():
        c = own[fd]
        if c is s: c = s.accept()[0]; own[c.fileno()] = c; p.register(c, select.POLLIN); continue
        d = c.recv(9999)
        if d: c.sendall(d)
        else: p.unregister(c); del own[fd]; c.close()
",
    ),
    (
        "asyncio",
        "
import asyncio
async def talk(r, w):
    while d := await r.read(9999): w.write(d); await w.drain()
    w.close()
async def main():
    await (await asyncio.start_server(talk, sock=s)).serve_forever()
asyncio.run(main())
",
    ),
    (
        "a listener that its child serves",
        "
import os
if os.fork(): os.wait()
while True:
    c = s.accept()[0]
    while d := c.recv(9999): c.sendall(d)
    c.close()
",
    ),
];

#[test]
fn servers_of_all_ways_to_wait_echo_on_the_stack() {
    let python = "/usr/bin/python3";
    if !Path::new(python).exists() {
        println!("not tested: there is no python3");
        return;
    }
    let said: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    for (name, script) in ECHOES {
        between(1500, |topology| {
            let script = format!(
                "import socket\ns = socket.create_server(('0.0.0.0', 7000), backlog=50)\n{script}"
            );
            let server = Accelerated::start(&[python, "-c", &script]);
            topology.at_client(|| {
                wait_for(|| Client::connect(address(7000)).is_ok());
                for _ in 0..3 {
                    echo(7000, &said);
                }
            });
            // A connection that is open, and that the kernel does not know.
            let open = topology.at_client(|| Client::connect(address(7000)).unwrap());
            assert_eq!(kernel_connections(7000), "", "{name}");
            drop(open);
            drop(server);
            wait_for(|| !is_steered());
        });
    }
}

#[test]
fn a_program_that_is_killed_leaves_the_interface_to_the_kernel() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let (nginx, kept) = nginx(topology, &site, "server { listen 80; }");
        drop(nginx);
        wait_for(|| !is_steered());
        drop(kept);
        // The next one has it.
        let (nginx, _kept) = self::nginx(topology, &site, "server { listen 80; }");
        nginx.end(Signal::Terminate);
    });
}

/// What `millstream run` says to a program that it does not start.
pub(crate) fn complaint(words: &[&str]) -> String {
    let output = output_of(BINARY, &[&["run"], words].concat());
    assert!(!output.status.success(), "{words:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_can_not_be_run_is_refused_in_words() {
    between(1500, |_| {
        let site = Site::new();
        let tap = "tap:t0,address=10.9.9.2/24,host=10.9.9.1/24,loss=1%";
        let static_program = site.path("static");
        // The least that is an ELF file of 64 bits without a dynamic linker.
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        fs::write(&static_program, elf).unwrap();
        let static_program = static_program.to_str().unwrap();
        for (words, said) in [
            (
                &["--stack", STACK, "--", "no-such-program"][..],
                "was not found",
            ),
            (&["--stack", "af_xdp:none", "--", "true"], "af_xdp:none"),
            (
                &["--stack", tap, "--", "true"],
                "can't go from process to process: its wire is impaired",
            ),
            (
                &["--stack", STACK, "--", static_program],
                "linked statically",
            ),
            (
                &["--stack", STACK, "--library", "/none", "--", "true"],
                "/none",
            ),
            (&["--", "true"], "\"--stack\" is missing"),
        ] {
            let found = complaint(words);
            assert!(found.contains(said), "{words:?}: {found}");
        }
        assert!(!is_steered(), "{INTERFACE} is the kernel's");
    });
}
