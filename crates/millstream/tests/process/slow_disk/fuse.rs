//! A disk whose answers can be delayed: a file system of the kernel's FUSE, served by threads of the test.
//!
//! All requests for files and listings are held while the gate is closed, and take a fixed time otherwise. The kernel
//! caches no name and no attribute, so that each opening asks again. Formats: include/uapi/linux/fuse.h, version 7.31.

use mill_sys::namespace;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// A mounted disk whose files `0`, `1`, … have `len` bytes each, the name's first letter.
pub(crate) struct Disk {
    shared: Arc<Shared>,
    path: PathBuf,
}

struct Shared {
    device: File,
    len: usize,
    delay: Duration,
    gate: Mutex<Gate>,
    changed: Condvar,
}

struct Gate {
    is_open: bool,
    /// Reads that are answered before it closes.
    reads_left: Option<u32>,
    /// Requests that wait for it to open.
    waiting: u32,
}

impl Disk {
    /// Mounts one at `path`, in a mount namespace of the calling thread's own, which child processes inherit. `None`,
    /// with a message, without the rights or a kernel that supports it.
    pub(crate) fn mount(path: &Path, len: usize, delay: Duration) -> Option<Self> {
        let mounted = namespace::leave_mounts()
            .map_err(|error| error.to_string())
            .and_then(|()| run(Command::new("mount").args(["--make-rprivate", "/"])))
            .and_then(|()| {
                File::options()
                    .read(true)
                    .write(true)
                    .open("/dev/fuse")
                    .map_err(|error| error.to_string())
            })
            .and_then(|device| {
                let options = "fd=0,rootmode=40000,user_id=0,group_id=0,allow_other";
                let mut mount = Command::new("mount");
                mount
                    .args(["-i", "-t", "fuse", "-o", options, "disk"])
                    .arg(path);
                mount.stdin(Stdio::from(
                    device.try_clone().map_err(|error| error.to_string())?,
                ));
                run(&mut mount).map(|()| device)
            });
        let device = match mounted {
            Ok(device) => device,
            Err(error) => {
                println!("not tested: no FUSE ({error})");
                return None;
            }
        };
        let shared = Arc::new(Shared {
            device,
            len,
            delay,
            gate: Mutex::new(Gate {
                is_open: true,
                reads_left: None,
                waiting: 0,
            }),
            changed: Condvar::new(),
        });
        let served = Arc::clone(&shared);
        thread::spawn(move || serve(&served));
        Some(Self {
            shared,
            path: path.into(),
        })
    }

    /// Opens or closes the gate.
    pub(crate) fn set_answering(&self, answers: bool) {
        let mut gate = self.shared.gate.lock().unwrap();
        (gate.is_open, gate.reads_left) = (answers, None);
        drop(gate);
        self.shared.changed.notify_all();
    }

    /// After so many reads it answers no more.
    pub(crate) fn set_reads_left(&self, reads: u32) {
        self.shared.gate.lock().unwrap().reads_left = Some(reads);
    }

    /// Waits until something waits for an answer.
    pub(crate) fn wait_until_asked(&self) {
        let gate = self.shared.gate.lock().unwrap();
        let changed = &self.shared.changed;
        drop(changed.wait_while(gate, |gate| gate.waiting == 0).unwrap());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.set_answering(true);
        let _ = run(Command::new("umount").arg("-l").arg(&self.path));
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        Ok(())
    } else {
        Err(text)
    }
}

/// Answers until the file system is unmounted.
fn serve(shared: &Arc<Shared>) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(len) = (&shared.device).read(&mut buffer) {
        let request = Request::parse(&buffer[..len]);
        if matches!(request.opcode, FORGET | BATCH_FORGET | INTERRUPT) {
            continue;
        }
        if !request.is_slow() {
            shared.answer(&request);
            continue;
        }
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            shared.pass(&request);
            thread::park_timeout(shared.delay);
            shared.answer(&request);
        });
    }
}

struct Request {
    opcode: u32,
    unique: u64,
    node: u64,
    body: Vec<u8>,
}

impl Request {
    fn parse(bytes: &[u8]) -> Self {
        Self {
            opcode: u32_at(bytes, 4),
            unique: u64_at(bytes, 8),
            node: u64_at(bytes, 16),
            body: bytes[40..].to_vec(),
        }
    }

    /// Whether a real disk would be read.
    fn is_slow(&self) -> bool {
        match self.opcode {
            LOOKUP | OPEN | READ | READDIR => true,
            GETATTR => self.node != ROOT,
            _ => false,
        }
    }

    /// Offset and length of a read.
    fn range(&self) -> (usize, usize) {
        let offset = usize::try_from(u64_at(&self.body, 8)).unwrap();
        (offset, u32_at(&self.body, 16) as usize)
    }
}

impl Shared {
    /// Waits until the gate is open.
    fn pass(&self, request: &Request) {
        let mut gate = self.gate.lock().unwrap();
        if request.opcode == READ {
            match &mut gate.reads_left {
                Some(0) => gate.is_open = false,
                Some(left) => *left -= 1,
                None => {}
            }
        }
        gate.waiting += 1;
        self.changed.notify_all();
        let mut gate = self.changed.wait_while(gate, |gate| !gate.is_open).unwrap();
        gate.waiting -= 1;
    }

    fn answer(&self, request: &Request) {
        let content = match request.opcode {
            INIT => Ok(init()),
            LOOKUP => self.lookup(&request.body),
            GETATTR => Ok([&[0; 16][..], &self.attributes(request.node)].concat()),
            OPEN | OPENDIR => Ok(vec![0; 16]),
            READ => Ok(self.read(request)),
            READDIR => Ok(list(request)),
            RELEASE | RELEASEDIR | FLUSH => Ok(Vec::new()),
            _ => Err(ENOSYS),
        };
        let (error, content) = match content {
            Ok(content) => (0, content),
            Err(error) => (-error, Vec::new()),
        };
        let len = u32::try_from(16 + content.len()).unwrap();
        let mut answer = Vec::new();
        answer.extend(len.to_ne_bytes());
        answer.extend(error.to_ne_bytes());
        answer.extend(request.unique.to_ne_bytes());
        answer.extend(content);
        // The process that asked may have exited.
        let _ = (&self.device).write(&answer);
    }

    fn lookup(&self, name: &[u8]) -> Result<Vec<u8>, i32> {
        let name = str::from_utf8(&name[..name.len() - 1]).map_err(|_| ENOENT)?;
        let number: u64 = name.parse().map_err(|_| ENOENT)?;
        let node = ROOT + 1 + number;
        // Generation and validity are zero.
        Ok([&node.to_ne_bytes()[..], &[0; 32], &self.attributes(node)].concat())
    }

    fn attributes(&self, node: u64) -> Vec<u8> {
        let (mode, len) = if node == ROOT {
            (0o040_755_u32, 0)
        } else {
            (0o100_644, self.len as u64)
        };
        let mut all = Vec::new();
        all.extend(node.to_ne_bytes());
        all.extend(len.to_ne_bytes());
        // Blocks and times.
        all.extend([0; 32]);
        all.extend([0; 12]);
        all.extend(mode.to_ne_bytes());
        all.extend(1_u32.to_ne_bytes());
        all.extend([0; 20]);
        assert_eq!(all.len(), 88);
        all
    }

    fn read(&self, request: &Request) -> Vec<u8> {
        let (offset, len) = request.range();
        let len = len.min(self.len.saturating_sub(offset));
        let number = (request.node - ROOT - 1).to_string();
        vec![number.as_bytes()[0]; len]
    }
}

/// Version 7.31; reads of up to 128 KiB, written to in pieces of a page.
fn init() -> Vec<u8> {
    let words: [u32; 16] = [7, 31, 0x2_0000, 0, 0, 4096, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// A directory with one file.
fn list(request: &Request) -> Vec<u8> {
    if request.range().0 > 0 {
        return Vec::new();
    }
    let mut entry = Vec::new();
    entry.extend((ROOT + 1).to_ne_bytes());
    entry.extend(1_u64.to_ne_bytes());
    entry.extend(1_u32.to_ne_bytes());
    entry.extend(REGULAR.to_ne_bytes());
    entry.extend(*b"0\0\0\0\0\0\0\0");
    entry
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

const ROOT: u64 = 1;
const REGULAR: u32 = 8;
const ENOENT: i32 = 2;
const ENOSYS: i32 = 38;

/// Requests of the kernel.
const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
const INTERRUPT: u32 = 36;
const BATCH_FORGET: u32 = 42;
