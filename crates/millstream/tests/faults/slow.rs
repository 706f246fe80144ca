//! Two thousand slow clients, beside one that is not.

use crate::processes::all_are_answered;
use crate::stage::{MAIN, Stage, on_each, pause};
use crate::transport::Transport;
use mill_sys::signal::Signal;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What such clients do slowly.
#[derive(Clone, Copy, Debug)]
enum Habit {
    SendHeads,
    SendBodies,
    ReadAnswers,
}

/// The clients, and their results.
#[derive(Debug, Default)]
struct Crowd {
    streams: Vec<TcpStream>,
    started: usize,
    /// An answer with another status than 200, or any answer to a head that was not finished.
    answered: usize,
    closed: usize,
    reset: usize,
}

impl Crowd {
    fn connect(habit: Habit, host: &str) -> Self {
        let address: SocketAddr = format!("{host}:80").parse().unwrap();
        let request: &[u8] = match habit {
            Habit::SendHeads => b"GET / HTTP/1.1\r\nHost: slow\r\nX-Slow: ",
            Habit::SendBodies => b"POST / HTTP/1.1\r\nHost: slow\r\nContent-Length: 100000\r\n\r\n",
            Habit::ReadAnswers => b"GET /large.bin HTTP/1.1\r\nHost: slow\r\n\r\n",
        };
        let mut crowd = Self {
            started: CROWD,
            ..Self::default()
        };
        for _ in 0..CROWD {
            let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).unwrap();
            stream.write_all(request).unwrap();
            stream.set_nonblocking(true).unwrap();
            crowd.streams.push(stream);
        }
        crowd
    }

    /// Sends a byte more on each, or reads a thousand.
    fn go_on(&mut self, habit: Habit) {
        let mut streams = std::mem::take(&mut self.streams);
        streams.retain_mut(|stream| {
            let sent = match habit {
                Habit::SendHeads | Habit::SendBodies => stream.write(b"x").map(|_| ()),
                Habit::ReadAnswers => Ok(()),
            };
            // Bytes sent before the end are read first; a write after it may fail.
            let mut bytes = [0; 1000];
            match (habit, stream.read(&mut bytes), sent) {
                (_, Ok(0), _) => self.closed += 1,
                (Habit::ReadAnswers, Ok(_), _) => return true,
                (_, Ok(_), _) => self.answered += 1,
                (_, Err(error), Ok(())) if error.kind() == ErrorKind::WouldBlock => return true,
                (_, Err(_), _) => self.reset += 1,
            }
            false
        });
        self.streams = streams;
    }
}

/// Runs the clients until every timeout of the server has passed.
fn check(habit: Habit, what: &str, ends: bool) {
    let crowd = |stage: &mut Stage<'_>| {
        let timeouts = "client_header_timeout 2s; client_body_timeout 2s; send_timeout 2s;";
        let http = format!("{timeouts} keepalive_requests 1000000; server {{ listen 80; }}");
        stage.site.configure_for(8000, MAIN, &http);
        stage.server().signal(Signal::Hangup);
        stage.wait_until("a reload", |stage| stage.in_force(2) == 1);
        let mut crowd = stage.at_client(|| Crowd::connect(habit, stage.transport.host()));
        for _ in 0..TICKS {
            crowd.go_on(habit);
            pause(TICK_MS);
        }
        let Crowd {
            streams,
            started,
            answered,
            closed,
            reset,
        } = crowd;
        let held = streams.len();
        assert_eq!(started, held + answered + closed + reset);
        assert_eq!(held == 0, ends, "{held} of {started} go on");
        format!(
            "{started} of them: {answered} answered, {closed} closed, {reset} reset, {held} held"
        )
    };
    on_each(&Transport::OPEN, what, crowd, all_are_answered);
}

#[test]
fn slow_heads_end_by_the_timeout_and_disturb_no_other_client() {
    check(Habit::SendHeads, "slow heads", true);
}

#[test]
fn slow_bodies_disturb_no_other_client() {
    check(Habit::SendBodies, "slow bodies", true);
}

#[test]
fn slow_readers_are_waited_for_and_disturb_no_other_client() {
    check(Habit::ReadAnswers, "slow reads", false);
}

const CROWD: usize = 2000;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Pauses between bytes, and how many: five seconds in all.
const TICK_MS: u64 = 100;
const TICKS: u32 = 50;
