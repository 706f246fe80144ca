//! Tuning over a folder in place of `/`.

use super::*;
use crate::scratch::Scratch;
use std::path::PathBuf;

/// A machine in a folder, with a journal beside it.
struct Machine {
    /// Dropped before the folder.
    journal: Option<Journal>,
    folder: PathBuf,
    _scratch: Scratch,
}

impl Machine {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let scratch = Scratch::new(&format!("tune-{name}"));
        let folder = scratch.0.clone();
        for (path, text) in files {
            let path = folder.join("root").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }
        std::fs::create_dir_all(folder.join("root")).unwrap();
        let journal = Journal::begin(&folder.join("state"), "run").unwrap();
        Self {
            journal: Some(journal),
            folder,
            _scratch: scratch,
        }
    }

    /// Tunes by a recipe's words; a line for each key.
    fn tune(&mut self, text: &str, is_root: bool) -> Vec<String> {
        let tune: Tune = toml::from_str(text).unwrap();
        let root = self.folder.join("root");
        let journal = self.journal.as_mut().unwrap();
        apply_below(
            &root,
            is_root,
            &tune,
            &Testbed::loopback(vec![1], vec![0]),
            journal,
        )
        .into_iter()
        .map(|key| {
            let before = key.before.unwrap_or_else(|| String::from("?"));
            let problem = key.problem.map(|problem| format!(": {problem}"));
            format!(
                "{} {before} -> {}{}",
                key.key,
                key.wanted,
                problem.unwrap_or_default()
            )
        })
        .collect()
    }

    fn value(&self, path: &str) -> String {
        let text = std::fs::read_to_string(self.folder.join("root").join(path)).unwrap();
        String::from(text.trim())
    }

    fn restore(&mut self) -> Vec<String> {
        self.journal.take().unwrap().restore()
    }
}

const REUSE: &str = "proc/sys/net/ipv4/tcp_tw_reuse";
const RANGE: &str = "proc/sys/net/ipv4/ip_local_port_range";

#[test]
fn keys_are_set_reported_and_restored() {
    let mut machine = Machine::new(
        "keys",
        &[
            (REUSE, "2"),
            (RANGE, "32768\t60999"),
            ("proc/sys/vm/x", "7"),
        ],
    );
    let said = machine.tune(
        "[sysctl]\n'net.ipv4.tcp_tw_reuse' = true\n'net.ipv4.ip_local_port_range' = '9000 65000'\n'vm.x' = 7",
        true,
    );
    assert_eq!(
        said,
        [
            "net.ipv4.ip_local_port_range 32768 60999 -> 9000 65000",
            "net.ipv4.tcp_tw_reuse 2 -> 1",
            "vm.x 7 -> 7",
        ]
    );
    assert_eq!(
        (machine.value(REUSE).as_str(), machine.value(RANGE).as_str()),
        ("1", "9000 65000")
    );
    assert_eq!(machine.restore(), Vec::<String>::new());
    assert_eq!(
        (machine.value(REUSE).as_str(), machine.value(RANGE).as_str()),
        ("2", "32768 60999")
    );
}

#[test]
fn what_cannot_be_changed_is_reported() {
    let mut machine = Machine::new("problems", &[(REUSE, "2"), ("proc/sys/vm/folder/x", "1")]);
    let deaf = machine.folder.join("root/proc/sys/vm/deaf");
    std::os::unix::fs::symlink("/dev/null", deaf).unwrap();
    let said = machine.tune(
        "[sysctl]\n'net.ipv4.tcp_tw_recycle' = 1\n'net.ipv4.tcp_tw_reuse' = {a = 1}\n'vm.deaf' = 5\n'vm.folder' = 1\n'vm/../x' = 1",
        true,
    );
    assert_eq!(
        said,
        [
            "net.ipv4.tcp_tw_recycle ? -> 1: absent on this kernel",
            "net.ipv4.tcp_tw_reuse ? -> : refused: a number, text or a list is wanted",
            "vm.deaf  -> 5: the kernel made it ",
            "vm.folder ? -> 1: refused: Is a directory",
            "vm/../x ? -> 1: refused: no key of sysctl",
        ]
    );
    assert_eq!(machine.restore(), Vec::<String>::new());
}

#[test]
fn without_root_nothing_is_changed_and_what_is_right_is_right() {
    let mut machine = Machine::new("rootless", &[(REUSE, "2"), ("proc/sys/vm/x", "7")]);
    let said = machine.tune("[sysctl]\n'net.ipv4.tcp_tw_reuse' = 1\n'vm.x' = 7", false);
    assert_eq!(
        said,
        ["net.ipv4.tcp_tw_reuse 2 -> 1: needs root", "vm.x 7 -> 7"]
    );
    assert_eq!(machine.value(REUSE), "2");
}

#[test]
fn on_a_shared_namespace_the_servers_value_holds() {
    let mut machine = Machine::new("shared", &[(REUSE, "2"), (RANGE, "1 2")]);
    let said = machine.tune(
        "[sysctl]\n'net.ipv4.ip_local_port_range' = '3 4'\n[server_sysctl]\n'net.ipv4.tcp_tw_reuse' = 1\n\
         [client_sysctl]\n'net.ipv4.tcp_tw_reuse' = 0",
        true,
    );
    assert_eq!(
        said,
        [
            "net.ipv4.ip_local_port_range 1 2 -> 3 4",
            "net.ipv4.tcp_tw_reuse 2 -> 1",
            "net.ipv4.tcp_tw_reuse (client) ? -> 0: refused: server and client share it, and the server's 1 holds",
        ]
    );
}

#[test]
fn files_are_set_by_path_and_by_pattern() {
    let huge = "sys/kernel/mm/transparent_hugepage/enabled";
    let governor = |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    let mut machine = Machine::new(
        "files",
        &[
            (huge, "madvise"),
            (&governor(0), "powersave"),
            (&governor(1), "performance"),
            ("sys/devices/system/cpu/cpuidle/x", "1"),
        ],
    );
    let said = machine.tune(
        "[files]\n'/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor' = 'performance'\n\
         '/sys/kernel/mm/transparent_hugepage/enabled' = 'never'\n'/sys/no*/x' = 1\n'/etc/passwd' = ''\n'/sys/../etc/x' = 1",
        true,
    );
    assert_eq!(
        said,
        [
            "/etc/passwd ? -> : refused: only files below /proc and /sys are tuned",
            "/sys/../etc/x ? -> 1: refused: only files below /proc and /sys are tuned",
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor powersave -> performance",
            "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor performance -> performance",
            "/sys/kernel/mm/transparent_hugepage/enabled madvise -> never",
            "/sys/no*/x ? -> 1: absent on this kernel",
        ]
    );
    assert_eq!(machine.restore(), Vec::<String>::new());
    assert_eq!(
        (
            machine.value(huge).as_str(),
            machine.value(&governor(0)).as_str()
        ),
        ("madvise", "powersave")
    );
}

#[test]
fn interrupts_and_packets_are_assigned_to_cpus() {
    let mut machine = Machine::new(
        "affinity",
        &[
            (
                "proc/interrupts",
                "  7:  0  0  PCI-MSI 1-edge  lo-TxRx-0\n  8:  0  0  PCI-MSI 2-edge  lo-TxRx-1",
            ),
            ("proc/irq/7/smp_affinity_list", "0-1"),
            ("proc/irq/8/smp_affinity_list", "0-1"),
            ("sys/class/net/lo/queues/rx-0/rps_cpus", "00000000"),
        ],
    );
    let said = machine.tune(
        "[affinity]\nirq = '0,16'\nrps = { 0 = '1-7', 1 = 'x' }\nxps = { 0 = '0' }",
        true,
    );
    assert_eq!(
        said,
        [
            "irq 7 (lo server) 0-1 -> 0",
            "irq 8 (lo server) 0-1 -> 16",
            "rx-0/rps_cpus (lo server) 00000000 -> 000000fe",
            "rx-1/rps_cpus (lo server) ? -> x: refused: \"x\" is no CPU list: write 0, 0-3 or 1,3",
            "tx-0/xps_cpus (lo server) ? -> 00000001: absent on this kernel",
        ]
    );
    assert_eq!(machine.restore(), Vec::<String>::new());
}

#[test]
fn an_interface_without_interrupts_is_absent() {
    let mut machine = Machine::new(
        "no-irq",
        &[("proc/interrupts", "  7:  0  0  PCI-MSI 1-edge  eth0")],
    );
    let said = machine.tune("[affinity]\nirq = '0'", true);
    assert_eq!(
        said,
        ["irq (lo server) ? -> 0: absent: the interface has no interrupts of its own"]
    );
}

#[test]
fn files_of_the_interface_are_set_on_each_end_once() {
    let threaded = "sys/class/net/lo/threaded";
    let mut machine = Machine::new("interface", &[(threaded, "0")]);
    let said = machine.tune("[interface.files]\nthreaded = 1\n'../../x' = 1", true);
    assert_eq!(
        said,
        [
            "../../x (lo) ? -> 1: refused: no file of an interface",
            "threaded (lo) 0 -> 1",
        ]
    );
}
