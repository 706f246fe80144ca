//! One line a second: what clients receive and send, as seed 003's monitor of the card printed it.

use super::{Looked, Scene};
use crate::monitor::namespace_files::NamespaceFiles;
use crate::monitor::network::Traffic;
use crate::monitor::steady::steady_part;
use crate::patience;
use mill_sys::clock;
use mill_sys::local_time::local_time;
use std::fmt::Write as _;
use std::time::Duration;

/// Samples once a second, whole seconds only, the first client host's interface.
pub(super) fn look(scene: &Scene, seconds: f64, looked: &mut Looked) {
    let testbed = &scene.testbed;
    let host = testbed.clients.first().unwrap_or(&testbed.server);
    let interface = &testbed.client_interface;
    let mut place = match NamespaceFiles::open(host) {
        Ok(place) => place,
        Err(reason) => return looked.miss("rate_mbit_per_s", reason),
    };
    let began = clock::monotonic();
    let mut before: Option<(Duration, Traffic)> = None;
    let mut rates: Vec<(f64, f64)> = Vec::new();
    let mut text = String::new();
    let mut due = began;
    loop {
        let at = clock::monotonic();
        let Some(traffic) = place.traffic(interface) else {
            return looked.miss("rate_mbit_per_s", format!("{interface} is gone"));
        };
        if let Some((earlier, counted)) = before {
            let span = at.saturating_sub(earlier).as_secs_f64().max(f64::EPSILON);
            let went = traffic.since(&counted);
            let rate = (bits(went.rx_bytes) / span, bits(went.tx_bytes) / span);
            let _ = writeln!(text, "{}", line(&clock_time(), interface, rate));
            rates.push(rate);
        }
        before = Some((at, traffic));
        due += SECOND;
        if (due - began).as_secs_f64() > seconds.max(1.0) {
            break;
        }
        patience::pause(due.saturating_sub(clock::monotonic()));
    }
    let down: Vec<f64> = rates.iter().map(|(down, _)| *down).collect();
    let steady = &rates[steady_part(&down)];
    let mean = |of: fn(&(f64, f64)) -> f64| {
        let count = u32::try_from(steady.len()).unwrap_or(u32::MAX);
        steady.iter().map(of).sum::<f64>() / f64::from(count.max(1)) / 1e6
    };
    looked.figure("rate_mbit_per_s.down", mean(|rate| rate.0));
    looked.figure("rate_mbit_per_s.up", mean(|rate| rate.1));
    looked.keep(scene, "rate.txt", text);
}

const SECOND: Duration = Duration::from_secs(1);

#[expect(
    clippy::cast_precision_loss,
    reason = "bytes of a second are far below 2⁵³"
)]
fn bits(bytes: u64) -> f64 {
    bytes as f64 * 8.0
}

/// As in the seed: `12:37:40 eth0 DOWN:3925 Mb/s   UP:767 Mb/s`, rates of bits a second.
fn line(time: &str, interface: &str, (down, up): (f64, f64)) -> String {
    format!(
        "{time} {interface} DOWN:{}   UP:{}",
        amount(down),
        amount(up)
    )
}

/// In the largest unit that leaves a whole number, up to the megabit.
fn amount(bits_per_s: f64) -> String {
    for (unit, size) in [("Mb/s", 1e6), ("Kb/s", 1e3)] {
        if bits_per_s >= size {
            return format!("{:.0} {unit}", (bits_per_s / size).floor());
        }
    }
    format!("{:.0} b/s", bits_per_s.floor())
}

fn clock_time() -> String {
    let seconds = i64::try_from(clock::realtime().as_secs()).unwrap_or(0);
    local_time(seconds).map_or_else(String::new, |time| {
        format!("{:02}:{:02}:{:02}", time.hour, time.minute, time.second)
    })
}

#[cfg(test)]
mod tests;
