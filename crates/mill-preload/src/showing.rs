//! What the stack does, shown to `onload_stackdump` and `millstream status`.
//!
//! The thread that turns the stack while its program computes (turner.rs) does it ten times a second, so calls of the program
//! have no part in it. The lock is held for some microseconds; with many connections for a tenth of a millisecond, once a second.

use crate::descriptors::own;
use crate::refused_options;
use crate::stack::{self, Stack};
use crate::stacks::{self, COUNT_MAX, turns};
use core::ffi::c_int;
use core::fmt::Debug;
use core::sync::atomic::{AtomicI32, Ordering};
use mill_device::AnyLink;
use mill_device::specification::Specification;
use mill_device::specification::device::Device;
use mill_device::standby::StandbyLink;
use mill_keeper::accelerated::sheet::Sheet;
use mill_keeper::accelerated::{Accelerated, CONNECTIONS_MAX, Connection, LISTENERS_MAX, Listener};
use mill_keeper::request::CLUSTER;
use mill_stack::flow::Flow;
use mill_sys::file;
use mill_tcp::state::State;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

/// What is shown, and when it was last.
#[derive(Debug)]
pub(crate) struct Showing {
    /// The stack's number.
    number: u8,
    sheet: Sheet,
    shown: Accelerated,
    /// Calls of [`Self::now_and_then`] since then.
    calls: u32,
    turns: Option<u32>,
}

/// What the processes of this `millstream run` are called, if its user has said so.
static CLUSTER_NAME: OnceLock<String> = OnceLock::new();

/// At the beginning of the process: nginx empties its environment later.
pub(crate) fn begin() {
    let name = std::env::var(CLUSTER).ok();
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        CLUSTER_NAME.get_or_init(|| name);
    }
}

/// The sheets of this process's stacks, by number.
static SHEETS: [AtomicI32; COUNT_MAX as usize] =
    [const { AtomicI32::new(NO_SHEET) }; COUNT_MAX as usize];

const NO_SHEET: c_int = -1;

/// In a child: what its parent has shown of a stack is not this process's.
pub(crate) fn leave(number: u8) {
    let sheet = SHEETS[usize::from(number % COUNT_MAX)].swap(NO_SHEET, Ordering::Relaxed);
    if sheet != NO_SHEET {
        // SAFETY: the thread that owned it is the parent's.
        own::close(unsafe { OwnedFd::from_raw_fd(sheet) });
    }
}

impl Showing {
    /// For the stack of this number, which this process has made with these options. `None` without memory or descriptors: nothing is shown then.
    pub(crate) fn new(
        number: u8,
        keeper: BorrowedFd<'_>,
        specification: &Specification,
    ) -> Option<Self> {
        let sheet = own::during(Sheet::new).ok()?;
        let place = &SHEETS[usize::from(number % COUNT_MAX)];
        place.store(sheet.as_fd().as_raw_fd(), Ordering::Relaxed);
        let program = std::fs::read_to_string("/proc/self/comm").unwrap_or_else(|_| thread_name());
        let interface = match &specification.device {
            Device::AfXdp { interface } => interface.clone(),
            Device::Tap { name } => name.clone(),
            Device::Memif { socket } => socket.display().to_string(),
            Device::Dpdk { port } => port.name.clone(),
        };
        let options = specification.in_force().into_iter();
        let options = options.map(|option| (option.name.to_owned(), option.value));
        let shown = Accelerated {
            process: std::process::id(),
            program: program.trim_end().to_owned(),
            run: number_of(keeper),
            cluster: CLUSTER_NAME.get().cloned(),
            interface,
            made_at_ns: stack::now().as_nanos(),
            options: options.collect(),
            ..Accelerated::default()
        };
        Some(Self {
            number,
            sheet,
            shown,
            calls: u32::MAX,
            turns: None,
        })
    }

    /// Shows the present state, unless that was done a moment ago, nothing has happened, or another thread is in a call.
    pub(crate) fn now_and_then(&mut self) {
        self.calls = self.calls.saturating_add(1);
        let is_long = self.shown.connections_total > FEW_CONNECTIONS;
        let interval = if is_long { CALLS_LONG } else { CALLS };
        let turned = turns(self.number).load(Ordering::Relaxed);
        if self.calls < interval || self.turns == Some(turned) {
            return;
        }
        // A program that spins gives it back between two turns: at last this thread waits for that.
        let mut guard = match stacks::try_visit(self.number) {
            Some(guard) => guard,
            None if self.calls < interval.saturating_add(CALLS_LONG) => return,
            None => stacks::visit(self.number),
        };
        let Some(stack) = guard.stack() else { return };
        gather(stack, &mut self.shown);
        drop(guard);
        self.sheet.write(&self.shown.emit());
        (self.calls, self.turns) = (0, Some(turned));
    }
}

/// Where there is no /proc: nearly always the program's, as that of the thread that first needs a stack.
fn thread_name() -> String {
    let mut name = [0_u8; 16];
    // SAFETY: there is room for the name and its end.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// The socket to the keeper is the same for all processes of a `millstream run`.
fn number_of(keeper: BorrowedFd<'_>) -> u64 {
    file::status_of(keeper).map_or(0, |status| status.inode)
}

fn gather(stack: &Stack, into: &mut Accelerated) {
    let (host, link) = (stack.sockets.host(), stack.sockets.link());
    into.has_interface = link.interface().is_some();
    into.figures.clear();
    figures(stack, &mut |name, value| into.figures.push((name, value)));
    let listeners = host.listening().take(LISTENERS_MAX).map(|found| Listener {
        address: found.address,
        backlog: found.backlog,
        waiting: u32::try_from(found.waiting).unwrap_or(u32::MAX),
        half_open: found.half_open,
    });
    into.listeners.clear();
    into.listeners.extend(listeners);
    let usage = host.usage();
    into.connections_total = usage.connections + usage.half_open + usage.time_wait;
    let (open, _) = host.connections_from(0, LOOK_MAX);
    let open = open.map(|found| Connection {
        state: word(found.info.state).to_owned(),
        local: found.flow.local(),
        remote: found.flow.remote(),
        unread: found.unread as u64,
        queued: found.queued,
    });
    let (half_open, _) = host.half_open_from(0, LOOK_MAX);
    let half_open = half_open.map(|flow| without_bytes("syn-recv", flow));
    let (time_wait, _) = host.time_wait_from(0, LOOK_MAX);
    let time_wait = time_wait.map(|flow| without_bytes("time-wait", flow));
    let all = open.chain(half_open).chain(time_wait);
    into.connections.clear();
    into.connections.extend(all.take(CONNECTIONS_MAX));
}

fn without_bytes(state: &str, flow: Flow) -> Connection {
    Connection {
        state: state.to_owned(),
        local: flow.local(),
        remote: flow.remote(),
        unread: 0,
        queued: 0,
    }
}

/// The names are those of `millstream status --counters`.
fn figures(stack: &Stack, take: &mut dyn FnMut(String, u64)) {
    let host = stack.sockets.host();
    let (own, tcp, usage) = (host.counters(), host.tcp_counters(), host.usage());
    let link = stack.sockets.link();
    let (received, transmitted) = bytes(link);
    let each = [
        ("partitions_owned", u64::from(link.owned_count())),
        ("connections", usage.connections as u64),
        ("half_open", usage.half_open as u64),
        ("time_wait", usage.time_wait as u64),
        ("sockets", stack.sockets.count() as u64),
        ("unread_bytes", usage.unread_bytes),
        ("opens_passive", own.passive_opens),
        ("opens_active", own.active_opens),
        ("opens_failed", own.failed_opens),
        ("moved_in", own.moved_in),
        ("moved_out", own.moved_out),
        ("syns_received", own.syns_in),
        ("syn_cookies_sent", own.cookies_sent),
        ("syn_cookies_taken", own.cookies_taken),
        ("time_waits", own.time_waits),
        ("frames_received", own.frames_in),
        ("frames_transmitted", own.frames_out),
        ("frames_handed_over", own.handed_over),
        ("segments_received", tcp.segments_in),
        ("segments_sent", tcp.segments_out),
        ("segments_retransmitted", tcp.retransmitted),
        ("timeouts", tcp.timeouts),
        ("loss_probes", tcp.loss_probes),
        ("fast_retransmits", tcp.fast_retransmits),
        ("out_of_order", tcp.out_of_order),
        ("acks_sent", tcp.acks_out),
        ("delayed_acks", tcp.delayed_acks),
        ("keepalive_probes", tcp.keepalive_probes),
        ("window_probes", tcp.window_probes),
        ("resets_received", tcp.resets_in),
        ("resets_sent", tcp.resets_out),
        ("bytes_delivered", tcp.delivered_bytes),
        ("link_received_bytes", received),
        ("link_transmitted_bytes", transmitted),
        ("drops_received", own.received_drops()),
        ("options_refused", refused_options::count()),
    ];
    for (name, value) in each {
        take(name.to_owned(), value);
    }
    for (reason, count) in own.drops() {
        take(format!("dropped_{}", snake(&reason)), count);
    }
}

/// Bytes of frames that came and went by the device, and through processes that have it.
fn bytes(link: &AnyLink) -> (u64, u64) {
    let owned = link.interfaces().map(|it| it.queues().counters());
    let owned = owned.map(|it| (it.received_bytes, it.transmitted_bytes));
    let tap = link.tap().map(|tap| tap.counters());
    let tap = tap.map(|it| (it.received_bytes, it.transmitted_bytes));
    let memif = link.memif().map(|memif| memif.counters());
    let memif = memif.map(|it| (it.received_bytes, it.transmitted_bytes));
    let relayed = link.standbys().filter_map(StandbyLink::relayed);
    let relayed = relayed.map(|it| (it.received_bytes, it.transmitted_bytes));
    owned
        .chain(tap)
        .chain(memif)
        .chain(relayed)
        .fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
}

/// `Segment(OutsideWindow)` is `outside_window`.
fn snake(reason: &impl Debug) -> String {
    let shown = format!("{reason:?}");
    let name = shown.split(['(', ')']).nth(1).unwrap_or(&shown);
    let mut word = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(letter.to_ascii_lowercase());
    }
    word
}

/// The name that ss(8) uses.
const fn word(state: State) -> &'static str {
    match state {
        State::Closed => "closed",
        State::SynSent => "syn-sent",
        State::SynReceived => "syn-recv",
        State::Established => "established",
        State::FinWait1 => "fin-wait-1",
        State::FinWait2 => "fin-wait-2",
        State::CloseWait => "close-wait",
        State::Closing => "closing",
        State::LastAck => "last-ack",
    }
}

/// Calls between two times that it is shown: the thread makes one every four milliseconds.
const CALLS: u32 = 25;

/// The same with more than [`FEW_CONNECTIONS`].
const CALLS_LONG: u32 = 250;
const FEW_CONNECTIONS: usize = 64;

/// Places of connections that are looked at.
const LOOK_MAX: u32 = 16 * 1024;
