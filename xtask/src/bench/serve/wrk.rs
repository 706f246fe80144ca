//! wrk, the load generator: one thread on the client's CPU, exact figures through its `done` hook.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::case::Case;
use crate::bench::accounting::{CpuTime, cpu_time};
use crate::bench::child::Child;
use crate::bench::content::target;
use crate::bench::failure::{Failure, Result};
use crate::bench::lab::Lab;
use crate::bench::patience::{pause, wait_for};

/// What wrk counted in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) requests: u64,
    pub(super) duration: Duration,
    pub(super) bytes: u64,
    /// Failed connects, reads and writes, and answers of 400 and above.
    pub(super) errors: u64,
    pub(super) latency: Latency,
    /// wrk's own, until shortly before its end.
    pub(super) client_time: CpuTime,
}

/// From the first write of a request to its whole answer. The time of connecting is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Latency {
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    pub(super) p999_us: u64,
    pub(super) max_us: u64,
}

/// A script that only has `done` leaves wrk's fast path as it is, and gives the figures unrounded.
const SCRIPT: &str = r#"
function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("FIGURES %d %d %d %d %d %d %d %d %d %d %d\n",
    summary.requests, summary.duration, summary.bytes,
    errors.connect, errors.read, errors.write, errors.status,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max))
end
"#;

/// wrk drops latencies above its timeout. With one past the block's end none is dropped; a longer
/// one costs memory, for wrk has a counter for each microsecond of it.
const TIMEOUT_PAST_END_SECONDS: u32 = 5;

/// How long before its end wrk is looked at; what it does after the last look is not counted.
const LOOKING: Duration = Duration::from_millis(50);

/// Past its duration, wrk answers within a second; then it is stuck.
const PATIENCE: Duration = Duration::from_secs(10);

/// Loads the server on `port` for `seconds`.
pub(super) fn run(lab: &Lab, case: &Case, port: u16, seconds: u32) -> Result<Load> {
    let script = lab.file("done.lua");
    fs::write(&script, SCRIPT).map_err(Failure::during(script.display()))?;
    let output = lab.file("wrk.txt");
    let mut command = Command::new("taskset");
    command
        .args(["-c", &lab.client_cpu.to_string(), "wrk", "-t1"])
        .arg(format!("-c{}", case.concurrency))
        .arg(format!("-d{seconds}s"))
        .arg(format!("--timeout={}s", seconds + TIMEOUT_PAST_END_SECONDS))
        .arg("-s")
        .arg(&script);
    for line in case.field_lines() {
        command.args(["-H", line]);
    }
    command.arg(format!("http://127.0.0.1:{port}{}", target()));
    let mut wrk = Child::start(&lab.caretaker, &mut command, &output)?;
    // Looking costs the measured CPUs a little, hence only near the end.
    pause(Duration::from_secs(u64::from(seconds)).saturating_sub(LOOKING));
    let mut client_time = CpuTime::default();
    let status = wait_for(PATIENCE, || {
        let time = cpu_time(&[wrk.pid()]);
        client_time = client_time.max(time);
        wrk.ended()
    });
    let text = fs::read_to_string(&output).unwrap_or_default();
    if !status.is_some_and(|status| status.success()) {
        return Err(Failure(format!("wrk did not end well: {}", text.trim())));
    }
    let load = parse(&text);
    let load = load.ok_or_else(|| Failure(format!("wrk told no figures: {}", text.trim())))?;
    Ok(Load {
        client_time,
        ..load
    })
}

fn parse(text: &str) -> Option<Load> {
    let figures = text
        .lines()
        .find_map(|line| line.strip_prefix("FIGURES "))?;
    let figures: Vec<u64> = figures
        .split(' ')
        .map(str::parse)
        .collect::<std::result::Result<_, _>>()
        .ok()?;
    let &[
        requests,
        duration_us,
        bytes,
        connect,
        read,
        write,
        status,
        p50_us,
        p99_us,
        p999_us,
        max_us,
    ] = figures.as_slice()
    else {
        return None;
    };
    Some(Load {
        requests,
        duration: Duration::from_micros(duration_us),
        bytes,
        errors: connect + read + write + status,
        latency: Latency {
            p50_us,
            p99_us,
            p999_us,
            max_us,
        },
        client_time: CpuTime::default(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{CpuTime, Latency, Load, parse};

    #[test]
    fn the_figures_are_found_behind_wrks_own_text() {
        let text =
            "Running 2s test\n  Requests/sec: 1\nFIGURES 10 2000000 850 1 2 3 4 50 99 999 1000\n";
        let expected = Load {
            requests: 10,
            duration: Duration::from_secs(2),
            bytes: 850,
            errors: 10,
            latency: Latency {
                p50_us: 50,
                p99_us: 99,
                p999_us: 999,
                max_us: 1000,
            },
            client_time: CpuTime::default(),
        };
        assert_eq!(parse(text), Some(expected));
    }

    #[test]
    fn text_without_all_figures_is_refused() {
        for text in ["", "FIGURES 1 2 3", "FIGURES 1 2 3 4 5 6 7 8 9 10 -1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
