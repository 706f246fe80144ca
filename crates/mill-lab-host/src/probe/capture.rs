//! A capture on the server's interface, read at once: retransmissions, reordering, duplicate acknowledgments.

use super::tool::{self, GRACE};
use super::{Looked, Scene};
use super::{pcap, segments};
use crate::host::Line;
use std::time::Duration;

/// Captures for `seconds`, or until there is enough.
pub(super) fn look(scene: &Scene, seconds: f64, looked: &mut Looked) {
    match capture(scene, seconds, looked) {
        Err(reason) => looked.miss("capture", reason),
        Ok((bytes, dropped)) => match pcap::parse(&bytes) {
            Err(reason) => looked.miss("capture", reason),
            Ok((found, others)) => {
                let analysis = segments::analyse(&found);
                figures(&analysis, dropped, looked);
                let mut text = analysis.text(others);
                text.push_str(&format!(
                    "{:<36}{dropped:>14}\n",
                    "packets the capture missed"
                ));
                looked.keep(scene, "capture.txt", text);
                looked.keep(scene, "capture.pcap", bytes);
            }
        },
    }
}

/// Bytes of each packet: headers of Ethernet, IPv6 and TCP with all options.
const SNAPSHOT: &str = "96";

/// With 96 bytes and 16 of a record's head each, not more than 4.5 MB: a run's folder holds many trials.
const PACKETS_MAX: &str = "40000";

/// KiB of tcpdump's buffer in the kernel: half a second of a busy link.
const BUFFER_KIB: &str = "8192";

/// The capture, and how many packets did not fit into tcpdump's buffer.
fn capture(scene: &Scene, seconds: f64, looked: &mut Looked) -> Result<(Vec<u8>, u64), String> {
    let host = &scene.testbed.server;
    if tool::find("tcpdump").is_none() {
        return Err(tool::missing("tcpdump"));
    }
    // To standard output: tcpdump drops its privileges before it opens a file, and could not write to ours.
    let interface = &scene.testbed.server_interface;
    let words = format!(
        "timeout --signal=INT {seconds:.1} tcpdump -i {interface} -nn -s {SNAPSHOT} -B {BUFFER_KIB} -c {PACKETS_MAX} -w -"
    );
    let mut line = Line::new(words.split(' '));
    line.argv.push(format!("tcp port {}", scene.port));
    looked.ran(host, &line);
    let printed = tool::run(host, &line, Duration::from_secs_f64(seconds) + GRACE)?;
    // timeout(1) exits with a status of its own if it ended the command.
    if printed.bytes.is_empty() {
        return Err(format!("tcpdump: {}", printed.complaint()));
    }
    Ok((printed.bytes, dropped(&printed.err)))
}

/// `12 packets dropped by kernel`.
fn dropped(text: &str) -> u64 {
    let count = text.lines().find_map(|line| {
        let (count, _) = line.split_once(" packet")?;
        line.contains("dropped by kernel")
            .then(|| count.trim().parse().ok())?
    });
    count.unwrap_or(0)
}

fn figures(analysis: &segments::Analysis, dropped: u64, looked: &mut Looked) {
    let counts = [
        ("segments", analysis.segments),
        ("retransmitted", analysis.retransmitted),
        ("out_of_order", analysis.out_of_order),
        ("duplicate_acks", analysis.duplicate_acks),
        ("connections", analysis.connections),
        ("opened", analysis.opened),
        ("resets", analysis.resets),
        ("missed", dropped),
    ];
    for (name, count) in counts {
        // Not more than 40 000 of each.
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        looked.figure(format!("capture.{name}"), f64::from(count));
    }
    if dropped > 0 {
        looked.notes.push(format!(
            "the capture missed {dropped} packets, which look like gaps in it: read its counts as upper bounds"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_packets_are_read_from_tcpdumps_last_lines() {
        let words = "tcpdump: listening on lo\n10 packets captured\n20 packets received by filter\n7 packets dropped by kernel\n";
        assert_eq!(dropped(words), 7);
        assert_eq!(dropped("0 packets dropped by kernel"), 0);
        for text in ["", "x packets dropped by kernel", "packet"] {
            assert_eq!(dropped(text), 0, "{text:?}");
        }
    }
}
