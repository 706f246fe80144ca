//! A download as a client sees it: when how many bytes had come. On kernel sockets, for all that send.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use mill_lab_host::interrupt::Interrupt;
use mill_sys::{clock, descriptor, socket};

/// How far a download was at which time.
#[derive(Debug)]
pub(super) struct Progress {
    /// When the client began to connect.
    begun: Duration,
    /// Bytes since, with the head of the answer.
    steps: Vec<(Duration, u64)>,
}

impl Progress {
    /// Bytes that had come by then.
    fn bytes_at(&self, at: Duration) -> u64 {
        let behind = self.steps.partition_point(|(step, _)| *step <= at);
        let last = behind.checked_sub(1).and_then(|last| self.steps.get(last));
        last.map_or(0, |(_, bytes)| *bytes)
    }

    /// Bits a second between two times.
    pub(super) fn rate(&self, from: Duration, to: Duration) -> f64 {
        let bytes = self.bytes_at(to) - self.bytes_at(from);
        bytes as f64 * 8.0 / to.saturating_sub(from).as_secs_f64()
    }

    /// Since the client began to connect, until so many bytes had come.
    pub(super) fn time_of(&self, bytes: u64) -> Option<Duration> {
        let step = self.steps.iter().find(|(_, came)| *came >= bytes);
        step.map(|(at, _)| at.saturating_sub(self.begun))
    }

    pub(super) const fn begun(&self) -> Duration {
        self.begun
    }
}

/// Asks for the empty file until it is served.
pub(super) fn wait_until_served(target: SocketAddr, patience: Duration) -> io::Result<()> {
    let deadline = clock::monotonic() + patience;
    loop {
        let tried = try_once(target, patience);
        match tried {
            Ok(()) => return Ok(()),
            Err(error) if clock::monotonic() >= deadline => return Err(error),
            Err(_) => descriptor::wait_readable(&[], Some(Duration::from_millis(20)))?,
        };
    }
}

fn try_once(target: SocketAddr, patience: Duration) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&target, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(&request("small"))?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    if head.ends_with(b"200") {
        return Ok(());
    }
    Err(io::Error::other("the server does not answer with 200"))
}

/// Downloads the large file until then, or until an interrupt; and leaves by a reset.
pub(super) fn download(
    target: SocketAddr,
    until: Duration,
    interrupt: &Interrupt,
) -> io::Result<Progress> {
    let mut progress = Progress {
        begun: clock::monotonic(),
        steps: Vec::new(),
    };
    let mut stream = TcpStream::connect_timeout(&target, CONNECT)?;
    socket::set_reset_on_close(stream.as_fd())?;
    stream.set_read_timeout(Some(LOOK))?;
    stream.write_all(&request("large"))?;
    let mut buffer = vec![0; 1 << 18];
    let mut bytes = 0;
    loop {
        let read = stream.read(&mut buffer);
        let now = clock::monotonic();
        match read {
            Ok(0) => return Err(io::Error::other("the large file is too small")),
            Ok(len) => {
                bytes += len as u64;
                progress.steps.push((now, bytes));
            }
            Err(error) if is_patience(&error) => {}
            Err(error) => return Err(error),
        }
        if now >= until {
            return Ok(progress);
        }
        if interrupt.is_asked() {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
    }
}

fn is_patience(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn request(file: &str) -> Vec<u8> {
    format!("GET /{file} HTTP/1.1\r\nHost: path\r\nConnection: close\r\n\r\n").into_bytes()
}

/// A SYN may be lost, twice.
const CONNECT: Duration = Duration::from_secs(10);

/// The longest time until an interrupt is noticed.
const LOOK: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn progress() -> Progress {
        let ms = Duration::from_millis;
        Progress {
            begun: ms(100),
            steps: vec![(ms(110), 1_000), (ms(150), 3_000), (ms(300), 50_000)],
        }
    }

    #[test]
    fn a_rate_is_what_came_between_two_times() {
        let ms = Duration::from_millis;
        for (from, to, expected) in [
            (100, 300, 2_000_000.0),
            (110, 210, 160_000.0),
            (310, 410, 0.0),
        ] {
            let rate = progress().rate(ms(from), ms(to));
            assert!((rate - expected).abs() < 1e-6, "{from} {to}: {rate}");
        }
    }

    #[test]
    fn bytes_have_come_with_the_step_that_brings_the_last_of_them() {
        for (bytes, expected) in [
            (1, Some(10)),
            (1_000, Some(10)),
            (1_001, Some(50)),
            (50_001, None),
        ] {
            let time = progress().time_of(bytes);
            assert_eq!(time, expected.map(Duration::from_millis), "{bytes}");
        }
    }
}
