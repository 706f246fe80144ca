//! The processes that use the machine now.

use crate::patience::pause;
use crate::process_stat::ProcessStat;
use std::collections::BTreeMap;
use std::time::Duration;

/// Processes that used more than a twentieth of a CPU between two samples, the busiest first.
pub(super) fn running() -> Vec<String> {
    let before: BTreeMap<u32, u64> = ProcessStat::all()
        .map(|stat| (stat.process, stat.ticks))
        .collect();
    pause(LOOK);
    let mut busy: Vec<(u64, String)> = ProcessStat::all()
        .filter_map(|stat| {
            let used = stat.ticks.saturating_sub(*before.get(&stat.process)?);
            (used >= BUSY_TICKS && stat.process != std::process::id())
                .then(|| (used, format!("{} ({})", stat.name, stat.process)))
        })
        .collect();
    busy.sort_by(|a, b| b.cmp(a));
    let shown = busy.into_iter().take(SHOWN_MAX);
    shown
        .map(|(used, name)| format!("{name} {} % of a CPU", used * 100 / TICKS_IN_LOOK))
        .collect()
}

const LOOK: Duration = Duration::from_millis(250);

/// USER_HZ is 100 on every architecture of Linux.
const TICKS_IN_LOOK: u64 = 25;

const BUSY_TICKS: u64 = 2;

/// Lines of a report.
const SHOWN_MAX: usize = 10;
