//! `perf record`: where the time goes, as folded stacks for a flame graph and as a table.

use super::stack::Stacks;
use super::tool::{self, GRACE};
use super::{Looked, Scene};
use crate::host::{Host, Line};
use mill_lab::recipe::{Probe, Profile};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Samples for `seconds`.
pub(super) fn look(probe: &Probe, scene: &Scene, seconds: f64, looked: &mut Looked) {
    let data = scene.folder.join(DATA);
    let result = record(probe, scene, seconds, &data, looked).and_then(|()| read(&data, looked));
    // Many megabytes that only this machine's perf can read.
    let _ = fs::remove_file(&data);
    match result {
        Err(reason) => looked.miss("profile", reason),
        Ok(stacks) if stacks.samples == 0 => {
            looked.miss("profile", "no sample: nothing ran while perf looked");
        }
        Ok(stacks) => {
            looked.keep(scene, "profile.folded", stacks.folded(FOLDED_BYTES_MAX));
            looked.keep(scene, "profile.txt", stacks.table(TABLE_ROWS));
            for (symbol, percent) in stacks.hottest(HOTTEST) {
                // A dot would make a family of it.
                looked.figure(format!("profile.{}", symbol.replace('.', "·")), percent);
            }
        }
    }
}

const DATA: &str = "perf.data";

/// Samples a second: a prime, so that a periodic event is not hit by every sample or by none.
const FREQUENCY: &str = "997";

/// perf stops there: some 100 000 stacks, and half a minute of perf script.
const DATA_SIZE_MAX: &str = "--max-size=64M";

/// What a report can draw; the stacks left out are the rarest.
const FOLDED_BYTES_MAX: usize = 1 << 20;

const TABLE_ROWS: usize = 60;

/// Symbols that become figures of the trial.
const HOTTEST: usize = 10;

fn record(
    probe: &Probe,
    scene: &Scene,
    seconds: f64,
    data: &Path,
    looked: &mut Looked,
) -> Result<(), String> {
    let target = scene.target(probe.at)?;
    // Without -e perf takes cycles, and where the processor has none to count the clock.
    let mut line = Line::new(["perf", "record", "-q", "-F", FREQUENCY, "-g", DATA_SIZE_MAX]);
    match probe.profile {
        Profile::All => {}
        Profile::AllKernel => line.argv.push(String::from("--all-kernel")),
        Profile::AllUser => line.argv.push(String::from("--all-user")),
    }
    line.argv.extend(target.arguments());
    let span = format!("{seconds:.1}");
    let path = data.display().to_string();
    line.argv
        .extend(["-o", &path, "--", "sleep", &span].map(String::from));
    looked.ran(&Host::Local, &line);
    let patience = Duration::from_secs_f64(seconds) + GRACE;
    let printed = tool::run(&Host::Local, &line, patience)?;
    // perf ends with the workload's status or with a signal's when it was stopped by --max-size.
    if data.is_file() {
        Ok(())
    } else {
        Err(format!("perf record: {}", printed.complaint()))
    }
}

fn read(data: &Path, looked: &mut Looked) -> Result<Stacks, String> {
    let path = data.display().to_string();
    let line = Line::new([
        "perf",
        "script",
        "-F",
        "comm,pid,ip,sym,dso",
        "-i",
        path.as_str(),
    ]);
    looked.ran(&Host::Local, &line);
    let printed = tool::run(&Host::Local, &line, SCRIPT_TIMEOUT)?;
    if printed.bytes.is_empty() && !printed.success {
        return Err(format!("perf script: {}", printed.complaint()));
    }
    Ok(Stacks::parse(&printed.out()))
}

/// perf script looks up the symbols of every sample.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(120);
