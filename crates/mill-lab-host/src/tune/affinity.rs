//! The CPUs that handle interrupts and packets of the server's interface.

use super::interface::guarded;
use super::{Tuner, problem_of, sides};
use crate::host::Host;
use crate::journal::{errand, setting};
use crate::topology::{Testbed, parse_cpus};
use mill_lab::recipe::Affinity;
use std::collections::BTreeMap;

pub(super) fn apply(tuner: &mut Tuner<'_>, wanted: &Affinity, testbed: &Testbed) {
    if *wanted == Affinity::default() {
        return;
    }
    let (host, interface) = (&testbed.server, &testbed.server_interface);
    if let Some(problem) = guarded(tuner, host, interface) {
        tuner.refuse(format!("affinity ({interface} server)"), "", problem);
        return;
    }
    if let Some(cpus) = &wanted.irq {
        interrupts(tuner, cpus, testbed, interface);
    }
    for (queues, prefix, file) in [
        (&wanted.rps, "rx", "rps_cpus"),
        (&wanted.xps, "tx", "xps_cpus"),
    ] {
        for (queue, cpus) in each_queue(tuner, queues, prefix, testbed) {
            let cpus = cpus.as_str();
            let name = format!("{prefix}-{queue}/{file}");
            let key = format!("{name} ({interface} server)");
            match list_of(cpus, testbed) {
                Ok(list) => {
                    let path = format!("/sys/class/net/{interface}/queues/{name}");
                    tuner.set(key, host, &path, &mask(&list));
                }
                Err(problem) => tuner.refuse(key, cpus, format!("refused: {problem}")),
            }
        }
    }
}

/// The queues of one direction by number, `all` in place of which are those that there are.
fn each_queue(
    tuner: &Tuner<'_>,
    wanted: &BTreeMap<String, String>,
    prefix: &str,
    testbed: &Testbed,
) -> BTreeMap<String, String> {
    let mut queues = wanted.clone();
    let Some(cpus) = queues.remove("all") else {
        return queues;
    };
    let interface = &testbed.server_interface;
    let folder = tuner.path(
        &testbed.server,
        &format!("/sys/class/net/{interface}/queues"),
    );
    let names = errand::run(&testbed.server, &["ls", &folder], None).unwrap_or_default();
    for name in names.split_whitespace() {
        let number = name.split_once('-').filter(|(kind, _)| *kind == prefix);
        if let Some((_, number)) = number {
            queues
                .entry(String::from(number))
                .or_insert_with(|| cpus.clone());
        }
    }
    queues
}

/// One CPU for each interrupt in turn: the seeds' two interrupts on CPUs 0 and 16, their one interrupt on CPU 2.
fn interrupts(tuner: &mut Tuner<'_>, cpus: &str, testbed: &Testbed, interface: &str) {
    let host = &testbed.server;
    let key = format!("irq ({interface} server)");
    let list = match list_of(cpus, testbed) {
        Ok(list) => list,
        Err(problem) => return tuner.refuse(key, cpus, format!("refused: {problem}")),
    };
    // A namespace's interfaces have interrupts only if they are physical cards.
    let machine = sides::machine(host);
    let path = tuner.path(&machine, "/proc/interrupts");
    let table = match setting::read_text(&machine, &path) {
        Ok(table) => table,
        Err(error) => return tuner.refuse(key, cpus, problem_of(&error)),
    };
    let numbers = numbers_of(&table, interface, &device(tuner, &machine, interface));
    if numbers.is_empty() {
        return tuner.refuse(
            key,
            cpus,
            "absent: the interface has no interrupts of its own",
        );
    }
    for (number, cpu) in numbers.iter().zip(list.iter().cycle()) {
        let path = format!("/proc/irq/{number}/smp_affinity_list");
        tuner.set(
            format!("irq {number} ({interface} server)"),
            &machine,
            &path,
            &cpu.to_string(),
        );
    }
}

/// CPUs as a recipe names them; `${cpus}` are those of the server, known on the machine only.
fn list_of(cpus: &str, testbed: &Testbed) -> Result<Vec<u32>, String> {
    if cpus.trim() == "${cpus}" {
        return Ok(testbed.server_cpus.clone());
    }
    parse_cpus(cpus)
}

/// The bus's name of the interface's card: virtio cards' interrupts are named by it.
fn device(tuner: &Tuner<'_>, machine: &Host, interface: &str) -> String {
    let path = format!("/sys/class/net/{interface}/device");
    let target = match machine {
        Host::Remote(_) => errand::run(machine, &["readlink", &path], None).ok(),
        _ => std::fs::read_link(tuner.path(machine, &path))
            .ok()
            .map(|target| target.display().to_string()),
    };
    let target = target.unwrap_or_default();
    let name = target.trim().rsplit('/').next().unwrap_or_default();
    String::from(name)
}

/// Of /proc/interrupts: the lines whose name is the interface, or begins with it or its device and a dash.
fn numbers_of(table: &str, interface: &str, device: &str) -> Vec<u32> {
    let is_its = |name: &str| {
        name == interface
            || name
                .strip_prefix(interface)
                .is_some_and(|rest| rest.starts_with('-'))
            || (!device.is_empty()
                && name.strip_prefix(device).is_some_and(|rest| rest.starts_with('-'))
                // A virtio card's configuration interrupt happens once and is no traffic.
                && !name.ends_with("-config"))
    };
    let lines = table.lines().filter_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let name = rest.split_whitespace().last()?;
        is_its(name).then(|| number.trim().parse().ok())?
    });
    lines.collect()
}

/// As rps_cpus takes it: 32 bits a group, the highest first.
fn mask(cpus: &[u32]) -> String {
    let highest = cpus.iter().max().copied().unwrap_or(0);
    let words = (0..=highest / 32).rev().map(|word| {
        let bits = cpus.iter().filter(|&&cpu| cpu / 32 == word);
        bits.fold(0_u32, |mask, cpu| mask | 1 << (cpu % 32))
    });
    let text: Vec<String> = words.map(|word| format!("{word:08x}")).collect();
    text.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_in_groups_of_32_bits() {
        for (cpus, expected) in [
            (vec![0], "00000001"),
            (vec![1, 2, 3, 4, 5, 6, 7], "000000fe"),
            (vec![17, 18, 19, 20, 21, 22, 23], "00fe0000"),
            (vec![0, 33], "00000002,00000001"),
        ] {
            assert_eq!(mask(&cpus), expected, "{cpus:?}");
        }
    }

    #[test]
    fn interrupts_are_found_by_the_names_of_interface_and_device() {
        let table = "           CPU0       CPU1\n\
             123:   9   0  PCI-MSI 520192-edge      eno1\n\
             242:   9   0  PCI-MSI 1-edge      eth0-TxRx-0\n\
             243:   0   9  PCI-MSI 2-edge      eth0-TxRx-1\n\
             37:    0   0  PCI-MSIX-0000:00:03.0   0-edge      virtio2-config\n\
             38:    0   9  PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n\
             NMI:   0   0   Non-maskable interrupts\n";
        for (interface, device, expected) in [
            ("eno1", "0000:00:1f.6", vec![123]),
            ("eth0", "", vec![242, 243]),
            ("eth1", "virtio2", vec![38]),
            ("eth", "virtio", vec![]),
        ] {
            assert_eq!(
                numbers_of(table, interface, device),
                expected,
                "{interface}"
            );
        }
    }
}
