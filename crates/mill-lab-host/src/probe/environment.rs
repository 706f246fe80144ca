//! Unrelated load on the machine: services, CPUs that handle interrupts, memory by node, the busiest processes.

use super::tool::{self, GRACE};
use super::{Looked, Scene};
use crate::host::{Host, Line};
use crate::process_stat::ProcessStat;
use std::fmt::Write as _;
use std::fs;

/// Takes one sample, and writes it as text.
pub(super) fn look(scene: &Scene, looked: &mut Looked) {
    let mut text = String::new();
    for (title, part) in [
        ("Running services", services(looked)),
        ("Interrupts by CPU", interrupts(scene)),
        ("Memory by node", nodes()),
        ("Busiest processes since they began", busiest()),
    ] {
        let _ = write!(text, "{title}\n\n");
        match part {
            Ok(part) => text.push_str(&part),
            Err(reason) => {
                let _ = writeln!(text, "absent: {reason}");
                looked.miss(format!("environment.{}", key(title)), reason);
            }
        }
        text.push('\n');
    }
    looked.keep(scene, "environment.txt", text);
}

/// `running_services`.
fn key(title: &str) -> String {
    title.to_ascii_lowercase().replace(' ', "_")
}

fn services(looked: &mut Looked) -> Result<String, String> {
    let line = Line::new([
        "systemctl",
        "list-units",
        "--type=service",
        "--state=running",
        "--no-legend",
        "--no-pager",
        "--plain",
    ]);
    // sd_booted(3): where systemd is the manager, this folder is there.
    if !std::path::Path::new("/run/systemd/system").is_dir() {
        return Err(String::from(
            "systemd does not run here; see the busiest processes instead",
        ));
    }
    looked.ran(&Host::Local, &line);
    let printed = tool::run(&Host::Local, &line, GRACE)?.or_complaint("systemctl")?;
    Ok(printed.out().into_owned())
}

/// Lines of /proc/interrupts that belong to the sides' interfaces; if none does (a virtual interface has no interrupt
/// of its own), all lines with a count.
fn interrupts(scene: &Scene) -> Result<String, String> {
    let text = fs::read_to_string("/proc/interrupts")
        .map_err(|error| format!("/proc/interrupts: {error}"))?;
    let testbed = &scene.testbed;
    Ok(chosen(
        &text,
        &[&testbed.server_interface, &testbed.client_interface],
    ))
}

fn chosen(text: &str, interfaces: &[&str]) -> String {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let cpus = head.split_ascii_whitespace().count();
    let happened = |line: &&str| {
        let mut counts = line.split_ascii_whitespace().skip(1).take(cpus);
        counts.any(|word| word.parse::<u64>().is_ok_and(|count| count > 0))
    };
    let lines: Vec<&str> = lines.filter(happened).collect();
    let named: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| {
            let mut words = line.split_ascii_whitespace().skip(cpus);
            words.any(|word| interfaces.iter().any(|name| belongs(word, name)))
        })
        .collect();
    let shown = if named.is_empty() { lines } else { named };
    format!("{head}\n{}\n", shown.join("\n"))
}

/// `eth0`, `eth0-TxRx-3`, `i40e-eth0-TxRx-3`.
fn belongs(word: &str, interface: &str) -> bool {
    word.split(['-', '@', ':']).any(|part| part == interface)
}

/// As `numactl -H` shows it.
fn nodes() -> Result<String, String> {
    let folder = "/sys/devices/system/node";
    let entries = fs::read_dir(folder)
        .map_err(|_| format!("{folder} is not there: the kernel was built without CONFIG_NUMA"))?;
    let mut numbers: Vec<u32> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            name.to_str()?.strip_prefix("node")?.parse().ok()
        })
        .collect();
    numbers.sort_unstable();
    let mut text = String::new();
    for number in numbers {
        let read = |file: &str| fs::read_to_string(format!("{folder}/node{number}/{file}"));
        let memory = read("meminfo").unwrap_or_default();
        let megabytes = |name: &str| {
            let found = memory.lines().find_map(|line| {
                let (_, rest) = line.split_once(name)?;
                rest.split_ascii_whitespace().next()?.parse::<u64>().ok()
            });
            found.map_or_else(|| String::from("?"), |kib| (kib / 1024).to_string())
        };
        let _ = writeln!(
            text,
            "node {number} cpus: {}\nnode {number} size: {} MB\nnode {number} free: {} MB",
            read("cpulist").unwrap_or_default().trim(),
            megabytes("MemTotal:"),
            megabytes("MemFree:"),
        );
    }
    Ok(text)
}

/// Processes that are shown.
const BUSIEST: usize = 20;

fn busiest() -> Result<String, String> {
    let mut rows: Vec<(u64, u32, String)> = ProcessStat::all()
        .map(|stat| (stat.ticks, stat.process, stat.name))
        .collect();
    if rows.is_empty() {
        return Err(String::from("/proc shows no process"));
    }
    rows.sort_by(|left, right| right.cmp(left));
    let mut text = String::from("    PID  CPU seconds COMMAND\n");
    for (ticks, number, name) in rows.into_iter().take(BUSIEST) {
        let _ = writeln!(
            text,
            "{number:>7} {:>9}.{:02} {name}",
            ticks / 100,
            ticks % 100
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU1
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 27:          0          0 PCI-MSIX-0000:00:01.0   0-edge      virtio0-config
122:     500000          7  PCI-MSI 524288-edge      eth0-TxRx-0
123:          9     600000  PCI-MSI 524289-edge      i40e-eth0-TxRx-1
124:          9     600000  PCI-MSI 524289-edge      eth01-TxRx-1
ERR:          0
";

    fn check(interface: &str, expected: &[&str]) {
        let text = chosen(INTERRUPTS, &[interface]);
        let numbers: Vec<&str> = text
            .lines()
            .skip(1)
            .filter_map(|line| line.trim().split(':').next())
            .collect();
        assert_eq!(numbers, expected, "{interface}");
    }

    #[test]
    fn interrupts_of_an_interface_are_known_by_their_names() {
        check("eth0", &["122", "123"]);
        // An interface without interrupts gets the whole table.
        check("lo", &["24", "122", "123", "124"]);
    }

    #[test]
    fn this_machine_has_processes_and_a_key_has_no_blanks() {
        assert!(busiest().unwrap().lines().count() > 1);
        assert_eq!(key("Running services"), "running_services");
    }
}
