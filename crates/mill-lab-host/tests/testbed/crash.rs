//! A lab that is killed in the middle, and restored: nothing is left of it.
//!
//! The lab is this test program again, selected by its environment. RLIMIT_FSIZE chooses the point of the crash: the
//! kernel kills a process (SIGXFSZ) that would write its journal further than that, in the middle of a line.

use crate::stage::{Folder, has_root, on, turn};
use mill_lab::recipe::{Topology, TopologyKind, Tune};
use mill_lab_host::host::{Host, Line};
use mill_lab_host::interrupt::Interrupt;
use mill_lab_host::journal::{self, Entry, Journal};
use mill_lab_host::process_stat::ProcessStat;
use mill_lab_host::topology::{self, Testbed};
use mill_lab_host::tune;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Selects the role: unset in an ordinary test run.
const PART: &str = "MILL_RIG_TEST_PART";
const STATE: &str = "MILL_RIG_TEST_STATE";
/// The namespaces that are tuned: the test's, which stay when the lab's are removed.
const TUNED: &str = "MILL_RIG_TEST_TUNED";

const KEYS: &str = "[sysctl]\n'net.ipv4.tcp_fin_timeout' = 7\n'net.ipv4.tcp_sack' = 0\n\
    'net.ipv4.tcp_timestamps' = 0\n'net.ipv4.tcp_syncookies' = 0\n'net.ipv4.tcp_max_tw_buckets' = 32\n\
    'net.ipv4.ip_local_port_range' = '9000 65000'\n'net.ipv4.tcp_slow_start_after_idle' = 0\n\
    'net.ipv4.tcp_rmem' = '4096 87380 4194304'\n'net.core.somaxconn' = 1234\n'net.ipv4.tcp_tw_recycle' = 1\n\
    'net.ipv4.tcp_autocorking' = 0";

/// No test of its own: the child process of the other tests.
#[test]
fn the_part_that_a_child_plays() {
    let Some(part) = std::env::var_os(PART) else {
        return;
    };
    let state = std::env::var_os(STATE).unwrap();
    let state = Path::new(&state);
    if part == "restore" {
        journal::restore_all(state, &mut std::io::stdout()).unwrap();
        return;
    }
    let mut journal = Journal::begin(state, "crash").unwrap();
    let topology = Topology {
        kind: TopologyKind::Veth,
        ..Topology::default()
    };
    let own = topology::raise(&topology, &mut journal, &Interrupt::default()).unwrap();
    let tuned: Vec<String> = std::env::var(TUNED)
        .unwrap()
        .split(' ')
        .map(String::from)
        .collect();
    let testbed = Testbed {
        server: Host::Namespace(tuned[0].clone()),
        clients: vec![Host::Namespace(tuned[1].clone())],
        ..own.clone()
    };
    let tune: Tune = toml::from_str(KEYS).unwrap();
    tune::apply(&tune, &testbed, &mut journal);
    let line = Line::new(["sleep", "1000"]);
    let mut server = own.server.command(&line);
    let mut server = server.stdout(Stdio::null()).spawn().unwrap();
    journal
        .note(&Entry::Started {
            process: server.id(),
            process_start: ProcessStat::of(server.id()).unwrap().start,
            what: String::from("server"),
        })
        .unwrap();
    // Reports that everything is in place; then it waits for the parent to kill it.
    println!("\nstands");
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    // Only a process that was not killed gets here, by mistake.
    server.kill().unwrap();
    server.wait().unwrap();
}

/// A lab's process, killed when its journal has this many bytes.
fn play(part: &str, state: &Path, tuned: &str, journal_bytes: Option<u64>) -> Child {
    let limit = journal_bytes.map_or_else(|| String::from("unlimited"), |bytes| bytes.to_string());
    Command::new("prlimit")
        .args(["--core=0", &format!("--fsize={limit}")])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "crash::the_part_that_a_child_plays",
            "--nocapture",
        ])
        .env(PART, part)
        .env(STATE, state)
        .env(TUNED, tuned)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Two namespaces with a link, and their keys as they were.
struct Scene {
    folder: Folder,
    /// Holds the namespaces.
    journal: Journal,
    testbed: Testbed,
    tuned: String,
    before: Vec<String>,
}

impl Scene {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let mut journal = folder.journal("scene");
        let topology = Topology {
            kind: TopologyKind::Veth,
            ..Topology::default()
        };
        let testbed = topology::raise(&topology, &mut journal, &Interrupt::default()).unwrap();
        let names: Vec<&str> = [&testbed.server, &testbed.clients[0]]
            .into_iter()
            .map(|host| match host {
                Host::Namespace(name) => name.as_str(),
                _ => panic!("a veth topology has namespaces"),
            })
            .collect();
        let tuned = names.join(" ");
        let before = values(&testbed);
        Self {
            folder,
            journal,
            testbed,
            tuned,
            before,
        }
    }

    fn state(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    fn play(&self, part: &str, journal_bytes: Option<u64>) -> Child {
        play(part, &self.state(), &self.tuned, journal_bytes)
    }

    /// After a restore nothing is left of the lab.
    fn check_restored(&self, process: u32, place: &str) {
        let mut out = Vec::new();
        let restored = journal::restore_all(&self.state(), &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(
            restored.left.is_empty() && restored.living.is_empty(),
            "{place}: {out}"
        );
        assert_eq!(values(&self.testbed), self.before, "{place}: {out}");
        assert_eq!(names_of(process), Vec::<String>::new(), "{place}");
        assert!(journals(&self.state()).is_empty(), "{place}");
    }
}

fn values(testbed: &Testbed) -> Vec<String> {
    let tune: Tune = toml::from_str(KEYS).unwrap();
    let mut values = Vec::new();
    for host in [&testbed.server, &testbed.clients[0]] {
        for key in tune.sysctl.keys() {
            let path = format!("/proc/sys/{}", key.replace('.', "/"));
            let value = on(host, || std::fs::read_to_string(&path).unwrap_or_default());
            values.push(format!("{key} = {value}"));
        }
    }
    values
}

/// Namespaces of a lab.
fn names_of(process: u32) -> Vec<String> {
    let prefix = format!("ms{process}-");
    let folder = std::fs::read_dir("/run/netns").unwrap();
    let names = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&prefix)).collect()
}

fn journals(state: &Path) -> Vec<std::path::PathBuf> {
    let folder = std::fs::read_dir(state).into_iter().flatten();
    folder
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

/// Starts a lab until everything is in place, then kills it; returns the length of its journal.
fn killed(scene: &Scene) -> (u32, u64) {
    let mut child = scene.play("lab", None);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let stands = lines.map_while(Result::ok).any(|line| line == "stands");
    assert!(stands);
    let bytes = std::fs::metadata(&journals(&scene.state())[0])
        .unwrap()
        .len();
    child.kill().unwrap();
    child.wait().unwrap();
    (child.id(), bytes)
}

#[test]
fn a_killed_lab_is_restored() {
    if !has_root() {
        return;
    }
    let _turn = turn();
    let scene = Scene::new("killed");
    let (process, _) = killed(&scene);
    // It must have left something, or the test would prove nothing.
    assert_ne!(values(&scene.testbed), scene.before);
    assert_eq!(names_of(process).len(), 2);
    let left = journal::left_behind(&scene.state());
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].run.as_str(), left[0].process), ("crash", process));
    scene.check_restored(process, "killed");
    assert_eq!(scene.journal.restore(), Vec::<String>::new());
}

#[test]
fn a_lab_killed_anywhere_in_its_tuning_is_restored() {
    if !has_root() {
        return;
    }
    let _turn = turn();
    let scene = Scene::new("anywhere");
    let (process, whole) = killed(&scene);
    scene.check_restored(process, "whole");
    // A prime step: breaks fall at other places of their lines each time.
    let mut changed = 0;
    for bytes in (61..whole).step_by(311) {
        let mut child = scene.play("lab", Some(bytes));
        drop(child.stdin.take());
        // prlimit(1) becomes the program that it starts: the child's number is the lab's.
        let process = child.id();
        let output = child.wait_with_output().unwrap();
        assert!(!output.status.success(), "{bytes} of {whole}");
        changed += usize::from(values(&scene.testbed) != scene.before);
        scene.check_restored(process, &format!("at byte {bytes}"));
    }
    assert!(changed > 5, "{changed}");
}

#[test]
fn a_restore_killed_anywhere_is_restored() {
    if !has_root() {
        return;
    }
    let _turn = turn();
    let scene = Scene::new("restore");
    let mut cut = 0;
    for step in 0..7_u64 {
        let (process, whole) = killed(&scene);
        let mut child = scene.play("restore", Some(whole + 5 + step * 67));
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        cut += usize::from(!output.status.success());
        scene.check_restored(process, &format!("step {step}"));
    }
    assert!(cut > 4, "{cut}");
}
