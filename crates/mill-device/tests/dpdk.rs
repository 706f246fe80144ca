//! memif against DPDK's implementation: testpmd swaps the Ethernet addresses of each frame and sends it back.
//!
//! Skipped, with the reason printed, where the program is missing (Debian: `dpdk-dev`).
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking and says why it is skipped, in its helping functions as well"
)]

use mill_device::memif::{MemifChange, MemifLink, MemifOptions};
use mill_stack::link::{Burst, Link, Offload};
use mill_sys::descriptor::wait_readable;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running testpmd, killed on drop.
struct Testpmd {
    child: Child,
    log: PathBuf,
}

impl Testpmd {
    /// With one memif port. `None` if there is no such program.
    fn start(folder: &Path, device: &str) -> Option<Self> {
        let log = folder.join("log");
        let output = fs::File::create(&log).unwrap();
        let prefix = format!("mill{}", std::process::id());
        let started = Command::new("dpdk-testpmd")
            // Threads, as there may be a single processor.
            .args(["--lcores", "0@0,1@0", "--no-pci", "--no-huge", "-m", "256"])
            .args(["--no-shconf", "--no-telemetry", "--file-prefix", &prefix])
            .arg(format!("--vdev=net_memif0,{device},zero-copy=no"))
            .args(["--", "--forward-mode=macswap", "--auto-start"])
            .args(["--port-topology=loop", "--total-num-mbufs=8192"])
            .stdin(Stdio::piped())
            .stderr(output.try_clone().unwrap())
            .stdout(output)
            .spawn();
        match started {
            Ok(child) => Some(Self { child, log }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                println!("skipped: there is no dpdk-testpmd here (Debian: dpdk-dev)");
                None
            }
            Err(error) => panic!("dpdk-testpmd: {error}"),
        }
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Whether DPDK 22.11 has ended by its own fault: when a slave leaves, one thread of it probably unmaps the rings that
    /// another one is reading (it ends by SIGSEGV in `librte_net_memif`, at the offset of a ring's head).
    fn has_read_unmapped_rings(&mut self) -> bool {
        let status = self.child.try_wait().unwrap();
        status.is_some_and(|status| status.signal() == Some(SIGSEGV))
    }

    /// Waits until its port is set up: before that, a DPDK master knows no interface, and a slave that connects and is
    /// refused at once may end it (22.11: "Error adding fd" in its interrupt thread).
    fn wait_until_set_up(&mut self) {
        while !self.said().contains("Checking link statuses") {
            assert!(!self.has_ended(), "{}", self.said());
            wait_readable(&[], Some(Duration::from_millis(20))).unwrap();
        }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder of this test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("mill-dpdk-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("memif.sock")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn wait(link: &MemifLink) {
    wait_readable(&[link.as_fd()], Some(Duration::from_millis(100))).unwrap();
}

/// Waits until frames pass; false if testpmd has ended.
fn is_up(link: &mut MemifLink, testpmd: &mut Testpmd) -> bool {
    while !link.is_up() {
        if testpmd.has_ended() {
            return false;
        }
        link.receive(&mut Burst::new(0));
        if !link.is_up() {
            wait(link);
        }
    }
    // Earlier refusals are retries while the program was starting.
    let mut last = None;
    while let Some(change) = link.take_change() {
        last = Some(change);
    }
    assert_eq!(last, Some(MemifChange::Up { offload: false }));
    // testpmd drops frames that arrive before it forwards.
    while !send(link, PROBE, 60) || !has_come_back(link) {
        if testpmd.has_ended() {
            return false;
        }
        wait(link);
    }
    true
}

/// Whether a frame came back; receives all there are.
fn has_come_back(link: &mut MemifLink) -> bool {
    let mut burst = Burst::new(64);
    link.receive(&mut burst);
    for received in burst.as_slice() {
        link.release(received.id);
    }
    !burst.as_slice().is_empty()
}

fn send(link: &mut MemifLink, number: u32, len: usize) -> bool {
    let frame = frame(number, len);
    let Some(room) = link.reserve(len) else {
        return false;
    };
    room.copy_from_slice(&frame);
    link.transmit(len, Offload::default());
    link.flush();
    true
}

/// From 02:…:aa to 02:…:bb, an experimental EtherType, a number, and bytes that are derived from it.
fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 0xbb, 2, 0, 0, 0, 0, 0xaa, 0x88, 0xb5];
    frame.extend_from_slice(&number.to_be_bytes());
    let first = number.to_le_bytes()[0];
    frame.extend((18..len).map(|at| first.wrapping_add(at.to_le_bytes()[0])));
    frame
}

fn swapped(frame: &[u8]) -> Vec<u8> {
    [&frame[6..12], &frame[..6], &frame[12..]].concat()
}

/// Sends frames of all lengths, as many at once as there is room for, and expects each back once.
fn exchange(link: &mut MemifLink, testpmd: &mut Testpmd, lens: &[usize]) {
    let len_of = |number: u32| lens[usize::try_from(number).unwrap() % lens.len()];
    let (mut sent, mut taken) = (0, 0);
    let mut burst = Burst::new(64);
    let mut pauses = 0;
    while taken < FRAMES {
        // testpmd drops frames beyond the room that it has; it has room for this many.
        while sent < FRAMES && sent - taken < IN_FLIGHT {
            if !send(link, sent, len_of(sent)) {
                break;
            }
            sent += 1;
        }
        link.receive(&mut burst);
        pauses = if burst.as_slice().is_empty() {
            pauses + 1
        } else {
            0
        };
        assert!(!testpmd.has_ended(), "{}", testpmd.said());
        assert!(
            pauses < 100,
            "{taken} of {sent} came back\n{}",
            testpmd.said()
        );
        for received in burst.as_slice() {
            let bytes = link.frame(received.id).to_vec();
            link.release(received.id);
            if bytes != swapped(&frame(PROBE, 60)) {
                let expected = swapped(&frame(taken, len_of(taken)));
                assert_eq!(bytes, expected, "frame {taken}");
                taken += 1;
            }
        }
        if burst.as_slice().is_empty() {
            wait(link);
        }
        burst.clear();
    }
    assert_eq!(link.counters().refused, 0);
}

fn options() -> MemifOptions {
    MemifOptions {
        secret: "sesame".to_owned(),
        id: 5,
        ..MemifOptions::default()
    }
}

#[test]
fn our_master_serves_dpdks_slave_again_and_again() {
    let folder = Folder::new("slave");
    let mut link = MemifLink::listen(&folder.socket(), &options()).unwrap();
    let path = folder.socket().display().to_string();
    for round in 0..2 {
        let device = format!("role=client,socket={path},socket-abstract=no,id=5,secret=sesame");
        let Some(mut testpmd) = Testpmd::start(&folder.0, &device) else {
            return;
        };
        assert!(is_up(&mut link, &mut testpmd), "{}", testpmd.said());
        exchange(&mut link, &mut testpmd, &[60, 61, 1514, 64, 2047, 2048]);
        drop(testpmd);
        while link.is_up() {
            link.receive(&mut Burst::new(0));
        }
        assert_eq!(link.counters().connected, round + 1);
    }
}

#[test]
fn our_slave_connects_to_dpdks_master_again_and_again() {
    let folder = Folder::new("master");
    let path = folder.socket().display().to_string();
    let device = format!("role=server,socket={path},socket-abstract=no,id=5,secret=sesame");
    let Some(mut testpmd) = Testpmd::start(&folder.0, &device) else {
        return;
    };
    testpmd.wait_until_set_up();
    for _ in 0..3 {
        let mut link = MemifLink::connect(&folder.socket(), &options()).unwrap();
        while !is_up(&mut link, &mut testpmd) {
            assert!(testpmd.has_read_unmapped_rings(), "{}", testpmd.said());
            println!("DPDK has read rings that it had unmapped, and is started again");
            fs::remove_file(folder.socket()).unwrap();
            testpmd = Testpmd::start(&folder.0, &device).unwrap();
            testpmd.wait_until_set_up();
        }
        exchange(&mut link, &mut testpmd, &[60, 61, 1514, 64, 2047, 2048]);
    }
}

#[test]
fn dpdks_master_tells_our_slave_what_is_wrong() {
    let folder = Folder::new("secret");
    let path = folder.socket().display().to_string();
    let device = format!("role=server,socket={path},socket-abstract=no,id=5,secret=other");
    let Some(mut testpmd) = Testpmd::start(&folder.0, &device) else {
        return;
    };
    testpmd.wait_until_set_up();
    let mut link = MemifLink::connect(&folder.socket(), &options()).unwrap();
    while link.counters().failed == 0 {
        assert!(!testpmd.has_ended(), "{}", testpmd.said());
        link.receive(&mut Burst::new(0));
        wait(&link);
    }
    let Some(MemifChange::Failed(reason)) = link.take_change() else {
        panic!("nothing failed");
    };
    assert!(reason.contains("Incorrect secret"), "{reason}");
}

/// The number of the frames that probe whether testpmd forwards.
const PROBE: u32 = u32::MAX;

/// The number of the signal (signal(7)).
const SIGSEGV: i32 = 11;

/// Frames of each round: rings of 1024 wrap several times.
const FRAMES: u32 = 10_000;

/// Frames that are under way at once; testpmd has queues of 512 at least.
const IN_FLIGHT: u32 = 200;
