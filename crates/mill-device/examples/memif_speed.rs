//! Measures memif between two threads, each on a core of its own, without a stack: round trips of small frames, one at
//! a time and many, and bytes of large ones.
//!
//! ```text
//! cargo run --release -p mill-device --example memif_speed
//! ```
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use mill_device::memif::{MemifLink, MemifOptions};
use mill_stack::link::{Burst, Link, Offload};
use mill_sys::{affinity, clock};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Duration of each measurement.
const TIME: Duration = Duration::from_secs(1);

/// Calls between two reads of the clock.
const CALLS: u32 = 64;

fn main() -> std::io::Result<()> {
    let options = MemifOptions {
        polling: true,
        ..MemifOptions::default()
    };
    let sleeping = MemifOptions {
        polling: false,
        ..options.clone()
    };
    for (name, frame_len, in_flight, options) in [
        ("60 B, one at a time", 60, 1, &options),
        ("60 B, one at a time, sleeping", 60, 1, &sleeping),
        ("60 B, 64 in flight", 60, 64, &options),
        ("300 B, 64 in flight", 300, 64, &options),
        ("1514 B, 64 in flight", 1514, 64, &options),
    ] {
        let (mut near, far) = ends(options)?;
        let count = with_echo(far, &mut near, |link| {
            round_trips(link, frame_len, in_flight)
        });
        println!("{name}: {:.2} M round trips/s", count / 1e6);
    }
    for frame_len in [1514, 16_384, 65_549] {
        let (mut near, far) = ends(&options)?;
        let bytes = with_sink(far, &mut near, |link| stream(link, frame_len));
        println!("{frame_len} B, one way: {:.2} GB/s", bytes / 1e9);
    }
    Ok(())
}

fn ends(options: &MemifOptions) -> std::io::Result<(MemifLink, MemifLink)> {
    let place = format!("@memif-speed-{}", std::process::id());
    let mut master = MemifLink::listen(Path::new(&place), options)?;
    let mut slave = MemifLink::connect(Path::new(&place), options)?;
    while !(master.is_up() && slave.is_up()) {
        master.receive(&mut Burst::new(0));
        slave.receive(&mut Burst::new(0));
    }
    Ok((master, slave))
}

/// Runs `act` here, beside a thread that sends every frame back.
fn with_echo<T>(far: MemifLink, near: &mut MemifLink, act: impl FnOnce(&mut MemifLink) -> T) -> T {
    beside(far, near, act, |link, burst| {
        for received in burst.as_slice() {
            // As a stack does: the answer is written anew.
            let len = link.frame(received.id).len();
            if let Some(room) = link.reserve(len) {
                room.fill(1);
                link.transmit(len, Offload::default());
            }
            link.release(received.id);
        }
        link.flush();
    })
}

fn with_sink<T>(far: MemifLink, near: &mut MemifLink, act: impl FnOnce(&mut MemifLink) -> T) -> T {
    beside(far, near, act, |link, burst| {
        for received in burst.as_slice() {
            link.release(received.id);
        }
    })
}

fn beside<T>(
    mut far: MemifLink,
    near: &mut MemifLink,
    act: impl FnOnce(&mut MemifLink) -> T,
    each: impl Fn(&mut MemifLink, &Burst) + Sync,
) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = affinity::bind_to(&[1]);
            let mut burst = Burst::new(64);
            while !is_over.load(Ordering::Relaxed) {
                burst.clear();
                far.receive(&mut burst);
                if burst.as_slice().is_empty() {
                    rest(&far);
                } else {
                    each(&mut far, &burst);
                }
            }
        });
        let _ = affinity::bind_to(&[0]);
        let done = act(near);
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

/// Sleeps until there is something to receive, if the link is not polled.
fn rest(link: &MemifLink) {
    if link.is_polling() {
        std::hint::spin_loop();
    } else {
        let wait = Some(Duration::from_millis(1));
        let _ = mill_sys::descriptor::wait_readable(&[link.as_fd()], wait);
    }
}

/// Round trips a second.
fn round_trips(link: &mut MemifLink, frame_len: usize, in_flight: u32) -> f64 {
    let mut burst = Burst::new(64);
    let (mut sent, mut taken) = (0_u32, 0_u32);
    let begin = clock::monotonic();
    loop {
        for _ in 0..CALLS {
            while sent.wrapping_sub(taken) < in_flight {
                let Some(room) = link.reserve(frame_len) else {
                    break;
                };
                room.fill(1);
                link.transmit(frame_len, Offload::default());
                sent = sent.wrapping_add(1);
            }
            link.flush();
            burst.clear();
            link.receive(&mut burst);
            for received in burst.as_slice() {
                link.release(received.id);
                taken = taken.wrapping_add(1);
            }
            if burst.as_slice().is_empty() {
                rest(link);
            }
        }
        let passed = clock::monotonic() - begin;
        if passed >= TIME {
            return f64::from(taken) / passed.as_secs_f64();
        }
    }
}

/// Bytes a second.
fn stream(link: &mut MemifLink, frame_len: usize) -> f64 {
    let mut burst = Burst::new(64);
    let begin = clock::monotonic();
    let mut frames = 0_u32;
    loop {
        for _ in 0..CALLS {
            if let Some(room) = link.reserve(frame_len) {
                room.fill(1);
                link.transmit(frame_len, Offload::default());
                frames = frames.wrapping_add(1);
            }
            link.flush();
            link.receive(&mut burst);
        }
        let passed = clock::monotonic() - begin;
        if passed >= TIME {
            let bytes = f64::from(frames) * f64::from(u32::try_from(frame_len).unwrap_or(0));
            return bytes / passed.as_secs_f64();
        }
    }
}
