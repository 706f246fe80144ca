//! CPU by process over a time, as `top -b` shows it.

use super::{Looked, Scene};
use crate::monitor::cpu::{self, TICKS_PER_SECOND, float};
use crate::patience;
use crate::process_stat::ProcessStat;
use mill_sys::clock;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

/// Takes two samples, `seconds` apart.
pub(super) fn look(scene: &Scene, seconds: f64, looked: &mut Looked) {
    let before = Moment::now();
    patience::pause(Duration::from_secs_f64(seconds));
    let after = Moment::now();
    let rows = rows(&before, &after);
    looked.keep(scene, "top.txt", text(&before, &after, &rows));
    if let (Some(earlier), Some(later)) = (&before.stat, &after.stat) {
        for (class, percent) in later.all.since(&earlier.all).percentages() {
            looked.figure(format!("cpu.machine.{class}"), percent);
        }
    }
}

/// The most processes in a table; idle ones are left out.
const ROWS_MAX: usize = 40;

/// The state at an instant.
#[derive(Clone, Debug, Default)]
struct Moment {
    at: Duration,
    stat: Option<cpu::Stat>,
    /// By process id and start time.
    processes: BTreeMap<(u32, u64), ProcessStat>,
}

impl Moment {
    fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").ok();
        let processes = ProcessStat::all().map(|stat| ((stat.process, stat.start), stat));
        Self {
            at: clock::monotonic(),
            stat: stat.and_then(|text| cpu::parse(&text)),
            processes: processes.collect(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    number: u32,
    name: String,
    threads: u64,
    /// Of one CPU.
    percent: f64,
}

/// Processes that used CPU time, the busiest first.
fn rows(before: &Moment, after: &Moment) -> Vec<Row> {
    let seconds = after.at.saturating_sub(before.at).as_secs_f64();
    let mut rows: Vec<Row> = after
        .processes
        .iter()
        .filter_map(|(key, stat)| {
            let earlier = before.processes.get(key).map_or(0, |stat| stat.ticks);
            let ticks = stat.ticks.saturating_sub(earlier);
            (ticks > 0 && seconds > 0.0).then(|| Row {
                number: key.0,
                name: stat.name.clone(),
                threads: stat.threads,
                percent: float(ticks) / TICKS_PER_SECOND * 100.0 / seconds,
            })
        })
        .collect();
    rows.sort_by(|left, right| right.percent.total_cmp(&left.percent));
    rows
}

fn text(before: &Moment, after: &Moment, rows: &[Row]) -> String {
    let mut text = String::new();
    if let (Some(before), Some(after)) = (&before.stat, &after.stat) {
        let classes = after.all.since(&before.all).percentages();
        let percent = |wanted: &str| {
            let class = classes.iter().find(|(class, _)| *class == wanted);
            class.map_or(0.0, |(_, percent)| *percent)
        };
        // top counts guest time as user time.
        let shown = [
            ("us", percent("usr") + percent("guest")),
            ("sy", percent("sys")),
            ("ni", percent("nice") + percent("gnice")),
            ("id", percent("idle")),
            ("wa", percent("iowait")),
            ("hi", percent("irq")),
            ("si", percent("soft")),
            ("st", percent("steal")),
        ];
        let shown: Vec<String> = shown
            .iter()
            .map(|(name, percent)| format!("{percent:4.1} {name}"))
            .collect();
        let _ = writeln!(text, "%Cpu(s): {}\n", shown.join(", "));
    }
    text.push_str("    PID  %CPU  THREADS COMMAND\n");
    for row in rows.iter().take(ROWS_MAX) {
        let _ = writeln!(
            text,
            "{:>7} {:>5.1} {:>8} {}",
            row.number, row.percent, row.threads, row.name
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(second: u64, stat: &str, processes: &[(u32, u64, u64)]) -> Moment {
        let processes = processes.iter().map(|(number, start, ticks)| {
            let stat = ProcessStat {
                name: format!("p{number}"),
                ticks: *ticks,
                threads: 2,
                start: *start,
                ..ProcessStat::default()
            };
            ((*number, *start), stat)
        });
        Moment {
            at: Duration::from_secs(second),
            stat: cpu::parse(stat),
            processes: processes.collect(),
        }
    }

    #[test]
    fn the_busiest_go_first_and_the_idle_are_left_out() {
        let before = moment(0, "cpu 0 0 0 0\n", &[(1, 5, 100), (2, 6, 0), (4, 7, 900)]);
        let after = moment(
            2,
            "cpu 100 0 50 40 0 0 10\n",
            &[(1, 5, 150), (2, 6, 550), (3, 9, 20), (4, 7, 900)],
        );
        let rows = rows(&before, &after);
        let found: Vec<(u32, f64)> = rows.iter().map(|row| (row.number, row.percent)).collect();
        assert_eq!(found, [(2, 275.0), (1, 25.0), (3, 10.0)]);
        let text = text(&before, &after, &rows);
        assert!(
            text.starts_with("%Cpu(s): 50.0 us, 25.0 sy,  0.0 ni, 20.0 id,"),
            "{text}"
        );
        assert!(text.contains("      2 275.0        2 p2\n"), "{text}");
    }

    #[test]
    fn a_reused_process_id_is_another_process() {
        let before = moment(0, "", &[(1, 5, 100)]);
        let after = moment(1, "", &[(1, 8, 50)]);
        assert_eq!(rows(&before, &after)[0].percent, 50.0);
    }
}
