//! Samples /proc at each interval while a load runs; afterwards only the steady part counts.

use crate::topology::Testbed;
use mill_lab::record::Figures;
use sample::{Facts, Sample, Sampler};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// CPU time by class.
pub(crate) mod cpu;
/// Samples to figures.
mod figures;
/// The files that describe a side's network.
pub(crate) mod namespace_files;
/// Traffic of an interface.
pub(crate) mod network;
/// Resources that processes used.
pub(crate) mod process;
/// One sample of all counters.
mod sample;
/// Which part of a series is steady.
pub mod steady;
/// TCP's counters.
pub(crate) mod tcp;
/// What to observe.
#[derive(Clone, Debug)]
pub struct Watched {
    /// First processes of the server and of the systems behind it; descendants are found as they start.
    pub server: Vec<u32>,
    /// First processes of clients.
    pub clients: Vec<u32>,
    pub testbed: Testbed,
    pub interval: Duration,
    pub link_mbit: Option<f64>,
    /// The load does not pass through the server's interface, but through memory or a device of its own.
    pub beside_interface: bool,
}

/// A running observer, on a thread of its own.
#[derive(Debug)]
pub struct Monitor {
    /// Dropping it ends the thread.
    stop: Sender<()>,
    thread: JoinHandle<Observed>,
}

/// Seconds of CPU that processes and all their descendants use while `act` runs.
pub fn cpu_of(first: Vec<u32>, meanwhile: impl FnOnce()) -> f64 {
    let mut tree = process::Tree::new(first);
    let parents = process::parents();
    let before = tree.look(Some(&parents));
    meanwhile();
    tree.look(None).cpu_seconds - before.cpu_seconds
}

/// What the monitor saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    samples: Vec<Sample>,
    facts: Facts,
}

impl Monitor {
    pub fn start(watched: Watched) -> io::Result<Self> {
        let (mut sampler, mut facts) = Sampler::open(&watched)?;
        let (stop, stopped) = mpsc::channel();
        let interval = watched.interval.max(INTERVAL_MIN);
        let thread = std::thread::Builder::new()
            .name(String::from("monitor"))
            .spawn(move || {
                let samples = watch(&mut sampler, interval, |patience| {
                    stopped.recv_timeout(patience) == Err(RecvTimeoutError::Timeout)
                });
                if facts.shared_network {
                    facts.client_waits = sampler.client_waits();
                }
                facts.ended = sampler.ended();
                Observed { samples, facts }
            })?;
        Ok(Self { stop, thread })
    }

    /// Takes a last sample, and returns the result.
    pub fn stop(self) -> Observed {
        drop(self.stop);
        // A thread that panicked has no samples.
        self.thread.join().unwrap_or_default()
    }
}

/// Ticks in /proc are 10 ms long: shorter intervals would contain none or one.
const INTERVAL_MIN: Duration = Duration::from_millis(20);

/// Samples at each interval, as long as `wait` returns that the interval is over.
fn watch(
    sampler: &mut Sampler,
    interval: Duration,
    wait: impl Fn(Duration) -> bool,
) -> Vec<Sample> {
    let mut samples = vec![sampler.take()];
    let mut due = samples[0].at + interval;
    loop {
        let goes_on = wait(due.saturating_sub(mill_sys::clock::monotonic()));
        let sample = sampler.take();
        // Late, because the machine was too busy: go on from here instead of catching up.
        due = (due + interval).max(sample.at);
        samples.push(sample);
        if !goes_on {
            return samples;
        }
    }
}

impl Observed {
    /// Workers of the server that ended while it was observed.
    pub(crate) fn ended(&self) -> &[process::Ended] {
        &self.facts.ended
    }

    /// Resident memory: the server's maximum less its first sample, and the clients' maximum.
    pub(crate) fn memory_taken(&self) -> (u64, u64) {
        let server = || {
            self.samples
                .iter()
                .map(|sample| sample.server.usage.resident_bytes)
        };
        let first = server().next().unwrap_or(0);
        let clients = self
            .samples
            .iter()
            .map(|sample| sample.client.usage.resident_bytes);
        let grown = server().max().unwrap_or(0).saturating_sub(first);
        (grown, clients.max().unwrap_or(0))
    }

    /// One line per interval.
    pub fn csv(&self) -> String {
        let Some(first) = self.samples.first() else {
            return String::new();
        };
        let lines: Vec<(f64, Figures)> = self
            .samples
            .windows(2)
            .map(|pair| {
                let second = pair[1].at.saturating_sub(first.at).as_secs_f64();
                let mut figures = figures::between(pair, &self.facts);
                figures.extend(figures::tcp(pair));
                (second, figures)
            })
            .collect();
        let names: BTreeSet<&String> = lines.iter().flat_map(|(_, line)| line.keys()).collect();
        let mut text = String::from("second");
        for name in &names {
            text.push(',');
            text.push_str(name);
        }
        text.push('\n');
        for (second, figures) in &lines {
            let _ = write!(text, "{second:.3}");
            for name in &names {
                text.push(',');
                if let Some(value) = figures.get(*name) {
                    let _ = write!(text, "{}", rounded(*value));
                }
            }
            text.push('\n');
        }
        text
    }

    /// Figures of the part from `ramp` after the first to `ramp` before the last interval, without what is below four
    /// fifths of the usual traffic at its ends; and what is absent, with the reason. Counts of TCP cover all samples.
    pub fn steady(&self, ramp: Duration) -> (Figures, Vec<(String, String)>) {
        let mut absent = self.facts.absent.clone();
        let part = self.part(ramp);
        let samples = self.samples.get(part).unwrap_or_default();
        let mut figures = figures::between(samples, &self.facts);
        figures.extend(figures::tcp(&self.samples));
        if let (Some(first), Some(last)) = (samples.first(), samples.last()) {
            let seconds = last.at.saturating_sub(first.at).as_secs_f64();
            figures.insert(String::from("steady_seconds"), seconds);
        }
        if samples.len() < 2 {
            let reason = "the load was over before two looks; give it more seconds";
            for stem in ["cpu", "process_cpu", "interface"] {
                absent.push((String::from(stem), String::from(reason)));
            }
        }
        (figures, absent)
    }

    /// Indices of the samples of the steady part.
    fn part(&self, ramp: Duration) -> std::ops::Range<usize> {
        let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) else {
            return 0..0;
        };
        let traffic: Vec<f64> = self
            .samples
            .windows(2)
            .map(|pair| moved(&pair[0], &pair[1], self.facts.beside_interface))
            .collect();
        let busy = steady::steady_part(&traffic);
        // Interval i lies between samples i and i + 1.
        let busy = busy.start..busy.end + 1;
        let from = first.at + ramp;
        let to = last.at.saturating_sub(ramp);
        let start = self.samples.partition_point(|sample| sample.at < from);
        let end = self.samples.partition_point(|sample| sample.at <= to);
        let part = start.max(busy.start)..end.min(busy.end);
        // A load shorter than its ramps is better measured whole than not at all; `steady_seconds` shows it.
        if part.len() < 2 { busy } else { part }
    }
}

/// Bytes a second on the server's interface; if the load does not pass there, or no traffic is seen, CPU time of the
/// clients.
fn moved(before: &Sample, after: &Sample, beside_interface: bool) -> f64 {
    let seconds = after.at.saturating_sub(before.at).as_secs_f64();
    if seconds <= 0.0 {
        return 0.0;
    }
    let moved = match (&before.server.traffic, &after.server.traffic) {
        (Some(before), Some(after)) if !beside_interface => {
            let went = after.since(before);
            cpu::float(went.rx_bytes + went.tx_bytes)
        }
        _ => after.client.usage.cpu_seconds - before.client.usage.cpu_seconds,
    };
    moved / seconds
}

/// To six decimals: what is finer is below any clock here, and files stay small.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests;
