//! The path between the two sides without the server: round trips, and bulk throughput of TCP.
//!
//! ping(8) and iperf3(1) where they are installed, because they are well known; else the lab's own pair of processes,
//! which needs only this program on both sides.

use super::tool::{self, GRACE, Running};
use super::{Looked, Scene};
use crate::host::{Host, Line};
use crate::monitor::namespace_files::NamespaceFiles;
use std::io::{BufRead as _, BufReader, Write};
use std::time::Duration;

/// The lab's own pair of processes.
mod pair;

/// `millstream lab probe …`: what the lab starts on both sides. Returns the process's exit status.
pub fn tool(args: &[String], out: &mut dyn Write) -> u8 {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["serve", address, seconds] => pair::serve(address, seconds, out),
        ["rtt", address, count] => pair::round_trips(address, count, out),
        ["bulk", address, seconds] => pair::bulk(address, seconds, out),
        _ => Err(String::from(
            "usage: probe serve ADDRESS:PORT SECONDS | rtt ADDRESS:PORT COUNT | bulk ADDRESS:PORT SECONDS",
        )),
    };
    match result {
        Ok(()) => 0,
        Err(reason) => {
            let _ = writeln!(out, "error: {reason}");
            1
        }
    }
}

/// Round trips first, then bulk for `seconds`.
pub(super) fn look(scene: &Scene, seconds: f64, looked: &mut Looked) {
    let mut text = String::new();
    if let Err(reason) = round_trips(scene, &mut text, looked) {
        looked.miss("path.round_trip", reason);
    }
    if let Err(reason) = bulk(scene, seconds, &mut text, looked) {
        looked.miss("path.bulk_gbit_per_s", reason);
    }
    if !text.is_empty() {
        looked.keep(scene, "path.txt", text);
    }
}

/// As in the document: `ping -qc 5`, but five pings a second.
const PINGS: [&str; 4] = ["ping", "-qc", "5", "-i"];

/// Seconds between pings; 0.2 is the least for users other than root.
const PING_INTERVAL: &str = "0.2";

/// Exchanges of one byte: some 100 ms of them, and more than five because they are not a second apart.
const EXCHANGES: &str = "1000";

fn round_trips(scene: &Scene, text: &mut String, looked: &mut Looked) -> Result<(), String> {
    let client = client(scene);
    if has(client, "ping") {
        let mut line = Line::new(PINGS);
        line.argv
            .extend([PING_INTERVAL, &scene.testbed.address].map(String::from));
        let printed = run(client, line, GRACE, text, looked)?;
        if let Some(trips) = ping(&printed) {
            trips.add(looked);
            return Ok(());
        }
    }
    let (_serving, address) = serve(scene, GRACE, looked)?;
    let mut line = own(["rtt", &address, EXCHANGES])?;
    line.cpus = cpus(&scene.testbed.client_cpus);
    let printed = run(client, line, GRACE, text, looked)?;
    let trips = Trips::parse(&printed).ok_or_else(|| first_line(&printed))?;
    trips.add(looked);
    looked.notes.push(String::from(
        "round trips are of one byte over TCP between two processes, which adds their waking to what ping would see",
    ));
    Ok(())
}

fn bulk(scene: &Scene, seconds: f64, text: &mut String, looked: &mut Looked) -> Result<(), String> {
    let client = client(scene);
    let server = &scene.testbed.server;
    let patience = Duration::from_secs_f64(seconds) + GRACE;
    let mut place = NamespaceFiles::open(client).ok();
    let mut resent = || {
        let tcp = place.as_mut()?.tcp();
        tcp.counters.get("retransmitted_segments").copied()
    };
    let before = resent();
    let gbit = if has(client, "iperf3") && has(server, "iperf3") {
        iperf(scene, seconds, patience, text, looked)?
    } else {
        let (_serving, address) = serve(scene, patience, looked)?;
        let mut line = own(["bulk", &address, &format!("{seconds:.1}")])?;
        line.cpus = cpus(&scene.testbed.client_cpus);
        let printed = run(client, line, patience, text, looked)?;
        total(&printed).ok_or_else(|| first_line(&printed))?
    };
    looked.figure("path.bulk_gbit_per_s", gbit);
    match (before, resent()) {
        (Some(before), Some(after)) => {
            let count = u32::try_from(after.saturating_sub(before)).unwrap_or(u32::MAX);
            looked.figure("path.bulk_retransmissions", f64::from(count));
        }
        _ => looked.miss(
            "path.bulk_retransmissions",
            "the client's TCP counters can't be read",
        ),
    }
    Ok(())
}

/// iperf3 as server for one test, then as client.
fn iperf(
    scene: &Scene,
    seconds: f64,
    patience: Duration,
    text: &mut String,
    looked: &mut Looked,
) -> Result<f64, String> {
    let server = &scene.testbed.server;
    let port = IPERF_PORT.to_string();
    // Its first line would stay in a buffer without --forceflush.
    let mut line = Line::new(["iperf3", "-s", "-1", "--forceflush", "-p", &port]);
    line.cpus = cpus(&scene.testbed.server_cpus);
    looked.ran(server, &line);
    let mut serving = Running::start(server.command(&line))
        .map_err(|error| format!("iperf3 can't be started: {error}"))?;
    heard(&mut serving, patience, |line| {
        line.contains("listening").then(String::new)
    })
    .ok_or_else(|| format!("iperf3 does not listen on port {IPERF_PORT}; is it taken?"))?;
    // Older versions take whole seconds only.
    let span = format!("{:.0}", seconds.ceil());
    let mut line = Line::new(["iperf3", "-c", &scene.testbed.address, "-p", &port, "-t"]);
    line.argv
        .extend([span.as_str(), "-i", "1", "-f", "g"].map(String::from));
    line.cpus = cpus(&scene.testbed.client_cpus);
    let printed = run(client(scene), line, patience, text, looked)?;
    received(&printed).ok_or_else(|| first_line(&printed))
}

/// iperf3's own.
const IPERF_PORT: u16 = 5201;

fn client(scene: &Scene) -> &Host {
    scene
        .testbed
        .clients
        .first()
        .unwrap_or(&scene.testbed.server)
}

/// Whether a program is installed; on another machine that is found out by running it.
fn has(host: &Host, program: &str) -> bool {
    matches!(host, Host::Remote(_)) || tool::find(program).is_some()
}

fn cpus(cpus: &[u32]) -> Option<String> {
    let words: Vec<String> = cpus.iter().map(u32::to_string).collect();
    (!words.is_empty()).then(|| words.join(","))
}

/// Runs on a side, and keeps the command and all that it printed.
fn run(
    host: &Host,
    line: Line,
    patience: Duration,
    text: &mut String,
    looked: &mut Looked,
) -> Result<String, String> {
    looked.ran(host, &line);
    let printed = tool::run(host, &line, patience)?;
    let out = printed.out().into_owned();
    text.push_str(&format!("$ {}\n{out}{}\n", host.text(&line), printed.err));
    if !printed.success && out.is_empty() {
        let program = line.argv.first().map_or("", String::as_str);
        return Err(format!("{program}: {}", printed.complaint()));
    }
    Ok(out)
}

/// This program with the words of `tool`.
fn own<const N: usize>(words: [&str; N]) -> Result<Line, String> {
    let program = std::env::current_exe()
        .map_err(|error| format!("the running program can't be found: {error}"))?;
    let mut argv = vec![program.display().to_string()];
    argv.extend(["lab", "probe"].map(String::from));
    argv.extend(words.map(String::from));
    Ok(Line::new(argv))
}

/// The lab's own server on the host of the system under test, on a port of its choice, and its address for clients.
fn serve(
    scene: &Scene,
    patience: Duration,
    looked: &mut Looked,
) -> Result<(Running, String), String> {
    let host = &scene.testbed.server;
    let any = if scene.testbed.address.contains(':') {
        "[::]:0"
    } else {
        "0.0.0.0:0"
    };
    let mut line = own(["serve", any, &patience.as_secs().to_string()])?;
    line.cpus = cpus(&scene.testbed.server_cpus);
    looked.ran(host, &line);
    let mut serving = Running::start(host.command(&line))
        .map_err(|error| format!("the probe's server can't be started: {error}"))?;
    let port = heard(&mut serving, patience, |line| {
        Some(line.trim().strip_prefix("listening ")?.to_owned())
    })
    .ok_or_else(|| String::from("the probe's server does not listen"))?;
    let address = if scene.testbed.address.contains(':') {
        format!("[{}]:{port}", scene.testbed.address)
    } else {
        format!("{}:{port}", scene.testbed.address)
    };
    Ok((serving, address))
}

/// Reads a server's output until a line matches. Ends when the server does; a server without output is killed.
fn heard(
    serving: &mut Running,
    patience: Duration,
    wanted: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let mut lines = BufReader::new(serving.output()?);
    let deadline = mill_sys::clock::monotonic() + patience;
    loop {
        let left = deadline.checked_sub(mill_sys::clock::monotonic())?;
        let ready = mill_sys::descriptor::wait_readable(
            &[std::os::fd::AsFd::as_fd(lines.get_ref())],
            Some(left),
        );
        let has_more = !lines.buffer().is_empty() || ready.is_ok_and(|ready| ready == [true]);
        let mut line = String::new();
        if !has_more || lines.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(found) = wanted(&line) {
            return Some(found);
        }
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("nothing was printed").to_owned()
}

/// Of round trips, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trips {
    min: f64,
    mean: f64,
    max: f64,
    stdev: f64,
}

impl Trips {
    fn add(self, looked: &mut Looked) {
        looked.figure("path.round_trip.min", self.min);
        looked.figure("path.round_trip.mean", self.mean);
        looked.figure("path.round_trip.max", self.max);
        looked.figure("path.round_trip.stdev", self.stdev);
    }

    /// The last line of ping: `rtt min/avg/max/mdev = 0.043/0.060/0.068/0.012 ms`; busybox prints `round-trip
    /// min/avg/max`.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find(|line| line.contains("min/avg/max"))?;
        let (numbers, _) = line.split_once('=')?.1.split_once("ms")?;
        let numbers: Vec<f64> = numbers
            .trim()
            .split('/')
            .map(|number| number.parse::<f64>().map(|ms| ms / 1e3))
            .collect::<Result<_, _>>()
            .ok()?;
        Some(Self {
            min: *numbers.first()?,
            mean: *numbers.get(1)?,
            max: *numbers.get(2)?,
            stdev: numbers.get(3).copied().unwrap_or(f64::NAN),
        })
    }
}

fn ping(text: &str) -> Option<Trips> {
    Trips::parse(text).filter(|trips| trips.stdev.is_finite())
}

/// The own client's last line: `total 9.33 Gb/s`.
fn total(text: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix("total "))?;
    rest.split(' ').next()?.parse().ok()
}

/// One of iperf3's last lines: `[  5]   0.00-10.00  sec  10.9 GBytes  9.33 Gbits/sec                  receiver`.
fn received(text: &str) -> Option<f64> {
    let line = text
        .lines()
        .find(|line| line.trim_end().ends_with("receiver"))?;
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let unit = words.iter().position(|word| *word == "Gbits/sec")?;
    words.get(unit.checked_sub(1)?)?.parse().ok()
}

#[cfg(test)]
mod tests;
