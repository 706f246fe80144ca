//! Probes on real processes. Without root or perf these tests print what is missing and pass: they cannot do
//! anything.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "a skipped test says why")]

use mill_lab::recipe::{Allocator, Counter, Probe, ProbeKind, Profile, Where};
use mill_lab_host::allocator;
use mill_lab_host::probe::{self, Looked, Scene};
use mill_lab_host::topology::Testbed;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A shell that allocates for ever; ended when dropped.
struct Busy(Child);

impl Busy {
    fn start(preload: Option<&str>) -> Self {
        let mut command = Command::new("sh");
        // Each assignment frees what x had and takes memory anew.
        command.args(["-c", "while :; do x=$x; x=some$$; done"]);
        if let Some(library) = preload {
            command.env("LD_PRELOAD", library);
        }
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A private folder; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn make(name: &str) -> Self {
        let name = format!("millstream-looking-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn scene(folder: &Folder, server: Option<u32>, port: u16) -> Scene {
    Scene {
        testbed: Testbed::loopback(Vec::new(), Vec::new()),
        server,
        clients: Vec::new(),
        port,
        folder: folder.0.clone(),
    }
}

fn probe(kind: ProbeKind, counters: &[Counter]) -> Probe {
    Probe {
        kind,
        seconds: 0.5,
        counters: counters.to_vec(),
        profile: Profile::All,
        systems: Vec::new(),
        at: Where::Server,
        points: std::collections::BTreeMap::new(),
        loads: Vec::new(),
    }
}

/// Prints why a test cannot do anything, if so.
fn unable(programs: &[&str]) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let missing = programs.iter().find(|program| {
        !path
            .split(':')
            .any(|folder| PathBuf::from(folder).join(program).is_file())
    });
    let root = mill_sys::account::is_super_user();
    match missing {
        Some(program) => println!("skipped: {program} is not installed"),
        None if !root => println!("skipped: needs root"),
        None => return false,
    }
    true
}

fn uprobes() -> Option<String> {
    fs::read_to_string("/sys/kernel/tracing/uprobe_events").ok()
}

/// Missing rights or counters of perf are no failure of the lab.
fn excused(looked: &Looked, metric: &str) -> bool {
    let reason = looked.absent.iter().find(|(name, _)| name == metric);
    if let Some((_, reason)) = reason {
        assert!(!reason.is_empty());
        println!("skipped: {reason}");
    }
    reason.is_some()
}

#[test]
fn malloc_is_counted_in_the_library_that_is_mapped() {
    if unable(&["perf"]) || uprobes().is_none() {
        return;
    }
    let Ok(Some(library)) = allocator::library(Allocator::Jemalloc) else {
        println!("skipped: jemalloc is not installed");
        return;
    };
    let folder = Folder::make("malloc");
    let library = library.display().to_string();
    for (preload, expected) in [(Some(library.as_str()), "jemalloc"), (None, "libc")] {
        let busy = Busy::start(preload);
        let counters = [Counter::Malloc, Counter::PageFaults];
        let looked = probe::look(
            &probe(ProbeKind::Counters, &counters),
            &scene(&folder, Some(busy.0.id()), 0),
        );
        if excused(&looked, "malloc_per_s") {
            return;
        }
        let rate = looked.figures["malloc_per_s"];
        assert!(rate > 1000.0, "{preload:?}: {rate} a second");
        assert!(looked.figures["allocations_per_s"] >= rate);
        let said =
            |note: &String| note.starts_with("malloc was counted in") && note.contains(expected);
        assert!(looked.notes.iter().any(said), "{:?}", looked.notes);
        assert!(
            looked
                .commands
                .iter()
                .any(|command| command.line.contains("perf probe"))
        );
    }
    let own = format!("millstream_{}/", std::process::id());
    let left = uprobes().unwrap();
    assert!(!left.contains(&own), "left behind: {left}");
}

#[test]
fn a_profile_names_the_program_that_was_busy() {
    if unable(&["perf"]) {
        return;
    }
    let folder = Folder::make("profile");
    let busy = Busy::start(None);
    let looked = probe::look(
        &probe(ProbeKind::Profile, &[]),
        &scene(&folder, Some(busy.0.id()), 0),
    );
    if excused(&looked, "profile") {
        return;
    }
    assert_eq!(looked.artefacts, ["profile.folded", "profile.txt"]);
    let folded = folder.text("profile.folded");
    assert!(
        folded.lines().all(|line| line.starts_with("sh")),
        "{folded}"
    );
    assert!(folder.text("profile.txt").contains("Command"));
    assert!(!folder.0.join("perf.data").exists());
}

#[test]
fn a_capture_sees_the_connections_of_its_port() {
    if unable(&["tcpdump"]) {
        return;
    }
    let folder = Folder::make("capture");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::Relaxed;
    let looked = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(order) {
                let mut client = TcpStream::connect(address).unwrap();
                let (mut server, _) = listener.accept().unwrap();
                client.write_all(b"question").unwrap();
                drop(client);
                let mut text = String::new();
                server.read_to_string(&mut text).unwrap();
            }
        });
        let looked = probe::look(
            &probe(ProbeKind::Capture, &[]),
            &scene(&folder, None, address.port()),
        );
        done.store(true, order);
        looked
    });
    if excused(&looked, "capture") {
        return;
    }
    assert!(
        looked.figures["capture.opened"] > 1.0,
        "{:?}",
        looked.figures
    );
    if looked.figures["capture.missed"] == 0.0 {
        assert_eq!(looked.figures["capture.retransmitted"], 0.0);
    }
    assert!(folder.text("capture.txt").contains("connections opened"));
    let size = fs::metadata(folder.0.join("capture.pcap")).unwrap().len();
    assert!(size < 5_000_000, "{size}");
}

#[test]
fn looks_without_tools_leave_their_texts() {
    let folder = Folder::make("texts");
    let busy = Busy::start(None);
    let scene = scene(&folder, Some(busy.0.id()), 0);
    let looked = probe::look(&probe(ProbeKind::Top, &[]), &scene);
    assert_eq!(looked.artefacts, ["top.txt"]);
    let busiest = format!("{:>7} ", busy.0.id());
    assert!(folder.text("top.txt").contains(&busiest));
    let looked = probe::look(&probe(ProbeKind::Rate, &[]), &scene);
    assert!(looked.figures.contains_key("rate_mbit_per_s.down"));
    assert!(folder.text("rate.txt").contains(" lo DOWN:"));
    let looked = probe::look(&probe(ProbeKind::Environment, &[]), &scene);
    assert_eq!(looked.artefacts, ["environment.txt"]);
    assert!(folder.text("environment.txt").contains("Interrupts by CPU"));
}

#[test]
fn a_missing_process_is_reported_as_absent() {
    let folder = Folder::make("absent");
    let scene = scene(&folder, None, 0);
    for kind in [ProbeKind::Counters, ProbeKind::Profile] {
        let looked = probe::look(&probe(kind, &[Counter::Malloc]), &scene);
        assert!(looked.figures.is_empty());
        assert_eq!(looked.absent.len(), 1, "{kind:?}");
    }
}
