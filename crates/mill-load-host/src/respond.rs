//! `millstream load respond`: the responder on kernel sockets, a thread and a listening socket each.

use crate::interrupt::{Interrupts, Stop};
use crate::run::now;
use mill_engine::{CombinedEngine, KernelOptions, combined, offer};
use mill_load::responder::{
    Conduct, HELP, Refused, RespondCommand, RespondOptions, Served, parse, responder,
};
use mill_runtime::address::Address;
use mill_runtime::engine::ListenOptions;
use mill_runtime::time::Duration;
use mill_sys::listener::{self, Endpoint, ListenerOptions};
use mill_sys::{descriptor, passing, process};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

/// Carries out the arguments after `millstream load respond`; returns the exit status.
pub fn respond(
    arguments: &[Vec<u8>],
    interrupts: &Interrupts,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let status = match parse(arguments) {
        Ok(RespondCommand::Help) => out.write_all(HELP.as_bytes()).map(|()| 0),
        Ok(RespondCommand::Respond(options)) => serve(&options, interrupts, out, err),
        Err(Refused(sentence)) => writeln!(err, "millstream: {sentence}").map(|()| 1),
    };
    // An error means that standard output is closed.
    status.unwrap_or(1)
}

fn serve(
    options: &RespondOptions,
    interrupts: &Interrupts,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let responding = match Responding::start(options, interrupts) {
        Ok(responding) => responding,
        Err(sentence) => {
            writeln!(err, "millstream: {sentence}")?;
            return Ok(1);
        }
    };
    writeln!(
        out,
        "answering at http://{}/ until Ctrl-C",
        responding.address
    )?;
    out.flush()?;
    responding.join().emit(out)?;
    Ok(0)
}

/// A running responder.
#[derive(Debug)]
pub struct Responding {
    /// Its address, with the chosen port.
    pub address: SocketAddr,
    threads: Vec<JoinHandle<Served>>,
}

impl Responding {
    /// Starts the threads; they listen when this returns. The error is a message.
    pub fn start(options: &RespondOptions, interrupts: &Interrupts) -> Result<Self, String> {
        crate::run::raise_descriptors();
        let stop = interrupts.begin_run();
        let mut responding = Self {
            address: options.address,
            threads: Vec::new(),
        };
        for number in 0..options.threads {
            if let Err(sentence) = responding.add(number, options, &stop) {
                stop.end_run();
                responding.join();
                return Err(sentence);
            }
        }
        Ok(responding)
    }

    /// Starts one more thread; the first one's port is used for all.
    fn add(&mut self, number: u32, options: &RespondOptions, stop: &Stop) -> Result<(), String> {
        let socket = TcpListener::from(listen(self.address, options.threads > 1)?);
        let bound = socket.local_addr();
        self.address = bound.map_err(|error| format!("no socket to listen at: {error}"))?;
        let thread = start(
            number,
            (socket.into(), self.address),
            &options.conduct,
            stop,
        )
        .map_err(|error| format!("thread {number} could not be started: {error}"))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Waits for the interrupt; returns what its threads served.
    pub fn join(self) -> Served {
        let mut served = Served::default();
        for thread in self.threads {
            // A thread that panicked has printed its message, and its counts are lost.
            if let Ok(part) = thread.join() {
                served.add(&part);
            }
        }
        served
    }
}

pub(crate) fn listen(address: SocketAddr, reuseport: bool) -> Result<OwnedFd, String> {
    let options = ListenerOptions {
        reuseport,
        backlog: BACKLOG,
        deferred: false,
        fastopen: None,
        receive_buffer_bytes: None,
        send_buffer_bytes: None,
        ipv6only: None,
        nodelay: true,
        keepalive: None,
        keepalive_idle_s: None,
        keepalive_interval_s: None,
        keepalive_count: None,
    };
    listener::listen(Endpoint::Ip(address), &options)
        .map_err(|failed| format!("{} at {address} failed: {}", failed.call, failed.error))
}

fn start(
    number: u32,
    (socket, address): (OwnedFd, SocketAddr),
    conduct: &Conduct,
    stop: &Stop,
) -> io::Result<JoinHandle<Served>> {
    let (mailbox, far) = passing::pair()?;
    let key = offer::encode(&Address::Ip(address), Some(number));
    passing::send(mailbox.as_fd(), &key, &[socket.as_fd()])?;
    let mut conduct = conduct.clone();
    conduct.seed = conduct.seed.wrapping_add(u64::from(number));
    let (ready, is_ready) = mpsc::channel();
    let (stop, far_number) = (stop.clone(), far.as_raw_fd());
    let thread = std::thread::Builder::new()
        .name(format!("respond {number}"))
        .spawn(move || {
            let mut listening = ListenOptions::new(Address::Ip(address));
            listening.share = Some(number);
            live(far_number, &listening, &conduct, &ready, &stop)
        })?;
    // The thread has its own duplicate once it is ready.
    is_ready
        .recv()
        .unwrap_or_else(|_| Err(io::Error::other("it panicked")))?;
    Ok(thread)
}

/// Runs the thread.
fn live(
    mailbox: RawFd,
    listening: &ListenOptions,
    conduct: &Conduct,
    ready: &Sender<io::Result<()>>,
    stop: &Stop,
) -> Served {
    let engine = match settle_in(mailbox) {
        Ok(engine) => engine,
        Err(error) => {
            // The starting thread waits for this.
            let _ = ready.send(Err(error));
            return Served::default();
        }
    };
    let mut responder = responder(engine, conduct);
    let listens = responder
        .listen(listening)
        .map_err(|failed| io::Error::from_raw_os_error(failed.code));
    let is_listening = listens.is_ok();
    let _ = ready.send(listens);
    while is_listening && !stop.is_asked() {
        responder.turn(now() + STOP_DELAY_MAX);
    }
    responder.served()
}

/// Makes a descriptor table and an engine of the thread's own. The mailbox has the same number in both tables; the
/// starting thread keeps it open until this one is ready.
fn settle_in(mailbox: RawFd) -> io::Result<CombinedEngine> {
    let has_own_table = descriptor::unshare_table().is_ok();
    let mailbox = descriptor::duplicate(mailbox)?;
    if has_own_table {
        descriptor::close_all_but(&[mailbox.as_fd()])?;
    }
    // A late wake-up shows in the reported lateness.
    let _ = process::set_timer_slack(Duration::from_nanos(1));
    let options = KernelOptions {
        mailbox: Some(mailbox),
        exact_waits: true,
        ..KernelOptions::default()
    };
    combined::engine(options, None)
}

/// The listen backlog: a load's connections arrive all at once. The kernel caps it to `net.core.somaxconn`.
const BACKLOG: u32 = 65_535;

/// How long it may take until a thread checks whether to stop.
const STOP_DELAY_MAX: Duration = Duration::from_millis(20);
