//! The machine as a report describes it, and what to fix before its figures can be trusted.

mod busy;
mod hardware;
mod tools;
mod warnings;

use mill_lab::record::Environment;
use std::path::Path;

/// Reads all of it. Takes a quarter of a second: CPU use is the difference of two samples.
pub fn gather() -> Environment {
    let mut environment = Environment {
        host: line("/proc/sys/kernel/hostname").unwrap_or_default(),
        kernel: line("/proc/sys/kernel/osrelease").unwrap_or_default(),
        distribution: tools::distribution(),
        cpu: hardware::model(),
        cores: hardware::cores(),
        memory_bytes: hardware::memory_bytes(),
        nodes: hardware::nodes(),
        hypervisor: hardware::hypervisor(),
        governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clocksource: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        transparent_hugepage: line("/sys/kernel/mm/transparent_hugepage/enabled")
            .map(|text| chosen(&text)),
        congestion_control: line("/proc/sys/net/ipv4/tcp_congestion_control"),
        mitigations: hardware::mitigations(),
        open_files_max: hardware::open_files_max(),
        versions: tools::versions(),
        interfaces: hardware::interfaces(),
        running: busy::running(),
        warnings: Vec::new(),
        absent: tools::absent(),
    };
    environment.warnings = warnings::of(&environment);
    environment
}

/// CPUs that are online.
pub fn cores() -> u32 {
    hardware::cores()
}

/// The description for a terminal.
pub fn text(environment: &Environment) -> String {
    let mut lines = Vec::new();
    let mut say = |name: &str, value: &str| lines.push(format!("{name:<22} {value}"));
    let optional = |value: &Option<String>| {
        value
            .clone()
            .unwrap_or_else(|| String::from("not said by this kernel"))
    };
    say("host", &environment.host);
    say(
        "kernel",
        &format!("{} ({})", environment.kernel, environment.distribution),
    );
    let plural = if environment.nodes == 1 { "" } else { "s" };
    say(
        "processor",
        &format!(
            "{}, {} cores, {} node{plural}",
            environment.cpu, environment.cores, environment.nodes
        ),
    );
    say("hypervisor", &environment.hypervisor);
    say(
        "memory",
        &format!("{:.1} GiB", bytes_gib(environment.memory_bytes)),
    );
    say("governor", &optional(&environment.governor));
    say("clock source", &optional(&environment.clocksource));
    say(
        "transparent hugepages",
        &optional(&environment.transparent_hugepage),
    );
    say(
        "congestion control",
        &optional(&environment.congestion_control),
    );
    say(
        "open files, at most",
        &environment.open_files_max.to_string(),
    );
    for interface in &environment.interfaces {
        say("interface", interface);
    }
    for (tool, version) in &environment.versions {
        say(tool, version);
    }
    for running in &environment.running {
        say("running", running);
    }
    for (what, reason) in &environment.absent {
        say(&format!("no {what}"), reason);
    }
    for warning in &environment.warnings {
        lines.push(format!("warning: {warning}"));
    }
    lines.join("\n") + "\n"
}

#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn bytes_gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

/// The first line of a file, trimmed; none if it cannot be read or is empty.
fn line(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| String::from(line))
}

/// `always [madvise] never` gives madvise.
fn chosen(text: &str) -> String {
    let inside = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    String::from(inside.map_or(text, |(word, _)| word))
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn the_choice_stands_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("tsc"), "tsc");
    }
}
