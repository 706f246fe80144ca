//! A path between two interfaces: frames that the kernel, or a stack, sends by one come out of the other, when and if the path's
//! wires let them.
//!
//! What a wire does is decided by `Lane`, which knows no clock; here is only the clock, and the reading and writing of frames.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use mill_sim::packet::lane::{Lane, LaneCounts};
use mill_sys::tap::{self, VNET_HEADER_LEN};
use mill_sys::timerfd::Timer;
use mill_sys::{clock, descriptor, eventfd, process};

use super::standing::Standing;
use mill_simtest::standard_paths::StandardPath as Path;

/// The interfaces of the server and of the client, each a TAP device that leaves nothing to its reader.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) server: OwnedFd,
    pub(super) client: OwnedFd,
}

/// At work, on a thread of its own. If it is dropped it ends too, a moment later.
#[derive(Debug)]
pub(super) struct Emulator {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<io::Result<Passed>>>,
}

/// What it has seen.
#[derive(Debug)]
pub(super) struct Passed {
    /// Before the wire to the client.
    pub(super) queue: Standing,
    pub(super) down: LaneCounts,
    pub(super) lateness: Lateness,
}

/// How far frames were behind their time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Lateness {
    frames: u64,
    late: u64,
    pub(super) most: Duration,
}

impl Emulator {
    /// Nothing is on the path yet; what the interfaces still had is dropped.
    pub(super) fn start(ends: &Arc<Ends>, path: Path, seed: u64) -> io::Result<Self> {
        let stop = Arc::new(eventfd::create()?);
        let (ends, told) = (Arc::clone(ends), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name(String::from("path"))
            .spawn(move || Loop::new(&ends, path, seed)?.run(&told))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Ends it.
    pub(super) fn stop(mut self) -> io::Result<Passed> {
        eventfd::signal(self.stop.as_fd())?;
        let thread = self.thread.take().expect("it is stopped once");
        let passed = thread.join();
        passed.unwrap_or_else(|_| Err(io::Error::other("the emulator's thread panicked")))
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = eventfd::signal(self.stop.as_fd());
    }
}

struct Loop<'a> {
    ends: &'a Ends,
    down: Lane,
    up: Lane,
    queue: Standing,
    lateness: Lateness,
    timer: Timer,
    buffer: Vec<u8>,
}

impl<'a> Loop<'a> {
    fn new(ends: &'a Ends, path: Path, seed: u64) -> io::Result<Self> {
        // Without the right to it the emulator is later at times, which is counted.
        let _ = process::set_real_time(PRIORITY);
        let mut made = Self {
            ends,
            down: Lane::new(path.down(), seed),
            up: Lane::new(path.up(), !seed),
            queue: Standing::since(clock::monotonic()),
            lateness: Lateness::default(),
            timer: Timer::new()?,
            buffer: vec![0; FRAME_BYTES_MAX],
        };
        for end in [&ends.server, &ends.client] {
            while made.read(end)?.is_some() {}
        }
        Ok(made)
    }

    fn run(mut self, stop: &OwnedFd) -> io::Result<Passed> {
        loop {
            self.deliver()?;
            if !self.take()? {
                self.arm()?;
                let (ends, timer) = (self.ends, &self.timer);
                let sources = [
                    stop.as_fd(),
                    ends.server.as_fd(),
                    ends.client.as_fd(),
                    timer.as_fd(),
                ];
                if descriptor::wait_readable(&sources, None)?[0] {
                    break;
                }
            }
        }
        let now = clock::monotonic();
        let down = self.down;
        self.queue.pass(now, |at| down.backlog_bytes(at));
        Ok(Passed {
            queue: self.queue,
            down: down.counts(),
            lateness: self.lateness,
        })
    }

    /// Gives out what has arrived.
    fn deliver(&mut self) -> io::Result<()> {
        let ends = self.ends;
        for (lane, end) in [(&mut self.down, &ends.client), (&mut self.up, &ends.server)] {
            loop {
                let now = clock::monotonic();
                let Some((due, frame)) = lane.arrived(now) else {
                    break;
                };
                self.lateness.note(now.saturating_sub(due));
                match tap::write(end.as_fd(), &frame_with_header(&frame)) {
                    // A corrupted frame may be none that the interface takes.
                    Err(error) if error.kind() != io::ErrorKind::InvalidInput => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Takes a burst of each interface; says whether there was anything.
    fn take(&mut self) -> io::Result<bool> {
        let ends = self.ends;
        let mut any = false;
        for is_down in [true, false] {
            let end = if is_down { &ends.server } else { &ends.client };
            for _ in 0..BURST {
                let Some(frame) = self.read(end)? else {
                    break;
                };
                any = true;
                let now = clock::monotonic();
                if is_down {
                    let down = &self.down;
                    self.queue.pass(now, |at| down.backlog_bytes(at));
                    self.down.enter(now, frame);
                } else {
                    self.up.enter(now, frame);
                }
            }
        }
        Ok(any)
    }

    fn read(&mut self, end: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
        match tap::read(end.as_fd(), &mut self.buffer) {
            Ok(len) => Ok(self.buffer.get(VNET_HEADER_LEN..len).map(<[u8]>::to_vec)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Until the next frame arrives.
    fn arm(&self) -> io::Result<()> {
        let next = [&self.down, &self.up]
            .into_iter()
            .filter_map(Lane::next_arrival);
        let now = clock::monotonic();
        self.timer.set(next.min().map(|at| at.saturating_sub(now)))
    }
}

impl Lateness {
    fn note(&mut self, late: Duration) {
        self.frames += 1;
        self.late += u64::from(late > LATE);
        self.most = self.most.max(late);
    }

    /// Frames of a thousand that were more than a millisecond behind.
    pub(super) fn per_mille(self) -> f64 {
        self.late as f64 * 1e3 / self.frames.max(1) as f64
    }
}

/// A header that says that nothing is left to do (virtio 1.2, 5.1.6), and the frame.
fn frame_with_header(frame: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; VNET_HEADER_LEN];
    bytes.extend_from_slice(frame);
    bytes
}

/// The emulator comes before all that it measures, and before what else runs: of 1 to 99.
const PRIORITY: i32 = 10;

/// From here on a frame is late.
const LATE: Duration = Duration::from_millis(1);

/// Frames of one interface before the other's turn.
const BURST: usize = 32;

/// The header, two tags of Ethernet, and more than any MTU of these interfaces.
const FRAME_BYTES_MAX: usize = VNET_HEADER_LEN + 22 + 1_600;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::bench::paths::testbed::{SERVER, Testbed};

    #[test]
    fn frames_that_are_more_than_a_millisecond_behind_are_late() {
        let mut lateness = Lateness::default();
        for micros in [0, 1_000, 1_001, 30_000] {
            lateness.note(Duration::from_micros(micros));
        }
        assert!((lateness.per_mille() - 500.0).abs() < 1e-9);
        assert_eq!(lateness.most, Duration::from_millis(30));
        assert!(Lateness::default().per_mille().abs() < 1e-9);
    }

    /// Of the whole: two namespaces, their interfaces, and the path between.
    #[test]
    fn what_one_namespace_sends_arrives_in_the_other() {
        // A thread of its own, which is in the server's namespace from then on.
        let thread = std::thread::spawn(|| {
            let testbed = match Testbed::raise() {
                Ok(testbed) => testbed,
                Err(error) => {
                    let kinds = [io::ErrorKind::PermissionDenied, io::ErrorKind::NotFound];
                    assert!(kinds.contains(&error.kind()), "{error}");
                    return println!(
                        "not tested, for lack of rights, TAP devices or ip(8): {error}"
                    );
                }
            };
            let path = Path::named("lan").unwrap();
            let emulator = Emulator::start(&testbed.ends, path, 1).unwrap();
            let listener = TcpListener::bind((SERVER, 0)).unwrap();
            let target = listener.local_addr().unwrap();
            let asked = std::thread::scope(|scope| {
                let client = testbed.at_client(scope, move || {
                    let mut stream = TcpStream::connect(target)?;
                    let mut answer = Vec::new();
                    stream.read_to_end(&mut answer)?;
                    Ok(answer)
                });
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(&[7; 100_000]).unwrap();
                drop(stream);
                client.join().unwrap()
            });
            assert_eq!(asked.unwrap(), [7; 100_000]);
            let passed = emulator.stop().unwrap();
            assert!(
                passed.down.entered >= 70,
                "frames as long as the MTU: {:?}",
                passed.down
            );
            assert_eq!(passed.down.lost + passed.down.queue_full, 0);
        });
        thread.join().unwrap();
    }

    #[test]
    fn a_frame_has_an_empty_header_before_it() {
        let bytes = frame_with_header(&[7, 8]);
        assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 8]);
    }
}
