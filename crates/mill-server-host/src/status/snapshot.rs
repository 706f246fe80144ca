//! A worker's answer about its stack, at the end of a turn.

use super::inspect::{Ask, Reply, What};
use super::rings::rings;
use mill_device::AnyLink;
use mill_engine::combined::CombinedEngine;
use mill_runtime::address::Address;
use mill_stack::flow::Flow;
use mill_stack::host::status::ConnectionStatus;
use mill_stack::host::tables::ListenerStatus;
use mill_stack::neighbor::NeighborStatus;
use mill_stack::route::RouteStatus;
use mill_status::tables::{Connection, Fact, Listener, Neighbor, Route};
use mill_status::{Part, Request, TableName};
use mill_sys::address::Peer;
use mill_sys::socket::{self, TcpState};
use mill_tcp::info::CongestionState;
use mill_tcp::state::State;
use std::net::SocketAddr;
use std::time::Duration;

/// Where a later turn goes on with the connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) among: Among,
    pub(crate) index: u32,
}

/// The tables with connections, in the order of the walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Among {
    /// On kernel sockets.
    #[default]
    Kernel,
    Open,
    HalfOpen,
    TimeWait,
}

/// Does one turn's slice of a request.
pub(crate) fn answer(engine: &CombinedEngine, worker: u32, ask: &Ask) {
    let mut part = Part::default();
    let next = match &ask.what {
        What::Tables => {
            tables(engine, &ask.request, &mut part);
            let usage = engine.usage().unwrap_or_default();
            let of_stack = usage.connections + usage.half_open + usage.time_wait;
            let total = of_stack + engine.inner().connections_count();
            part.connections_total = total as u64;
            Some(Position::default())
        }
        What::Connections { from, room } => {
            connections(engine, &ask.request, *from, *room, &mut part)
        }
        // A next position tells the asker that the capture has begun.
        What::BeginCapture(frames) => {
            let begun = engine.with_link(|link| link.begin_capture(frames.clone()));
            begun.unwrap_or(false).then(Position::default)
        }
        What::EndCapture => {
            engine.with_link(AnyLink::end_capture);
            None
        }
    };
    // The asker may have stopped waiting.
    let _ = ask.reply.send(Reply { worker, part, next });
}

fn tables(engine: &CombinedEngine, request: &Request, into: &mut Part) {
    let limit = request.limit as usize;
    for table in &request.tables {
        match table {
            // The latter are no worker's own.
            TableName::Connections
            | TableName::Upstreams
            | TableName::Zones
            | TableName::Caches
            | TableName::Blocks
            | TableName::Certificates => {}
            TableName::Listeners => {
                let rows = engine.with_host(|host| host.listening().map(listener).collect());
                into.listeners = rows.unwrap_or_default();
            }
            TableName::Neighbors => {
                let rows =
                    engine.with_host(|host| host.neighbors().take(limit).map(neighbor).collect());
                into.neighbors = rows.unwrap_or_default();
            }
            TableName::Routes => {
                let rows = engine.with_host(|host| host.routes().take(limit).map(route).collect());
                into.routes = rows.unwrap_or_default();
            }
            TableName::Rings => {
                into.rings = engine.with_link(rings).unwrap_or_default();
            }
            TableName::Timers => {
                into.timers = timers(engine);
            }
        }
    }
}

/// At most `room` rows from a position on; the position to go on at, if there is more to look at.
fn connections(
    engine: &CombinedEngine,
    request: &Request,
    from: Position,
    room: u32,
    into: &mut Part,
) -> Option<Position> {
    let filter = &request.filter;
    let wants = |state: &str, flow: &Flow| {
        filter.has(flow.local(), flow.remote())
            && filter.state.as_deref().is_none_or(|wanted| wanted == state)
    };
    if from.among == Among::Kernel {
        let next = kernel_connections(engine, request, from.index, room, into);
        return match next {
            Some(index) => Some(Position { index, ..from }),
            None => engine.with_host(|_| Position {
                among: Among::Open,
                index: 0,
            }),
        };
    }
    let look_max = room.clamp(1, ROWS_PER_TURN);
    let next = engine.with_host(|host| match from.among {
        Among::Kernel => None,
        Among::Open => {
            // Without a filter every slot may give a row; with one, few do.
            let look_max = if filter.is_empty() {
                look_max
            } else {
                LOOKS_PER_TURN
            };
            let (found, next) = host.connections_from(from.index, look_max);
            let found = found.filter(|found| wants(state_word(found.info.state), &found.flow));
            into.connections
                .extend(found.map(|found| connection(&found)));
            next
        }
        Among::HalfOpen => {
            let (found, next) = host.half_open_from(from.index, look_max);
            let found = found.filter(|flow| wants(SYN_RECEIVED, flow));
            into.connections
                .extend(found.map(|flow| bare(SYN_RECEIVED, &flow)));
            next
        }
        Among::TimeWait => {
            let (found, next) = host.time_wait_from(from.index, look_max);
            let found = found.filter(|flow| wants(TIME_WAIT, flow));
            into.connections
                .extend(found.map(|flow| bare(TIME_WAIT, &flow)));
            next
        }
    })?;
    let (among, index) = match (next, from.among) {
        (Some(index), among) => (among, index),
        (None, Among::Kernel | Among::Open) => (Among::HalfOpen, 0),
        (None, Among::HalfOpen) => (Among::TimeWait, 0),
        (None, Among::TimeWait) => return None,
    };
    Some(Position { among, index })
}

/// The same for kernel sockets, each of which takes four system calls.
fn kernel_connections(
    engine: &CombinedEngine,
    request: &Request,
    from: u32,
    room: u32,
    into: &mut Part,
) -> Option<u32> {
    let filter = &request.filter;
    let look_max = room.clamp(1, SOCKETS_PER_TURN);
    engine
        .inner()
        .connections_from(from, look_max, |socket, peer| {
            let Address::Ip(remote) = peer else {
                if filter.is_empty() {
                    into.connections.push(Connection {
                        state: String::from("established"),
                        by: String::from(BY_KERNEL),
                        local: String::from("unix"),
                        remote: String::from("unix"),
                        ..Connection::default()
                    });
                }
                return;
            };
            let (Ok(Peer::Ip(local)), Ok(found)) =
                (socket::local_address(socket), socket::tcp_state(socket))
            else {
                return;
            };
            let state = kernel_state_word(found.state);
            let is_wanted = filter.state.as_deref().is_none_or(|wanted| wanted == state);
            if is_wanted && filter.has(local, remote) {
                into.connections
                    .push(of_kernel(state, (local, remote), &found));
            }
        })
}

fn of_kernel(
    state: &str,
    (local, remote): (SocketAddr, SocketAddr),
    found: &TcpState,
) -> Connection {
    let bytes = |segments: u32| segments.saturating_mul(found.mss);
    let options = [(1, "ts"), (2, "sack"), (4, "wscale"), (8, "ecn")];
    let options = options
        .into_iter()
        .filter(|(bit, _)| found.options & bit != 0);
    let recovery = ["open", "disorder", "cwr", "recovery", "loss"];
    Connection {
        state: String::from(state),
        by: String::from(BY_KERNEL),
        local: local.to_string(),
        remote: remote.to_string(),
        receive_queue: u64::from(found.receive_queue),
        send_queue: u64::from(found.send_queue),
        rtt_us: u64::from(found.rtt_us),
        rttvar_us: u64::from(found.rttvar_us),
        rto_us: u64::from(found.rto_us),
        mss: u16::try_from(found.mss).unwrap_or(u16::MAX),
        cwnd: bytes(found.cwnd),
        ssthresh: (found.ssthresh < KERNEL_NO_SSTHRESH).then(|| bytes(found.ssthresh)),
        receive_window: found.receive_space,
        in_flight: bytes(found.in_flight),
        sacked: bytes(found.sacked),
        lost: bytes(found.lost),
        retransmitted: bytes(found.retransmitted),
        backoff: found.backoff,
        recovery: recovery
            .get(usize::from(found.recovery))
            .copied()
            .unwrap_or("open")
            .to_owned(),
        options: options.map(|(_, name)| String::from(name)).collect(),
        ..Connection::default()
    }
}

/// The states of tcp_states.h under the names that `ss` uses.
fn kernel_state_word(state: u8) -> &'static str {
    let words = [
        "unknown",
        "established",
        "syn-sent",
        SYN_RECEIVED,
        "fin-wait-1",
        "fin-wait-2",
        TIME_WAIT,
        "closed",
        "close-wait",
        "last-ack",
        "listening",
        "closing",
    ];
    words.get(usize::from(state)).copied().unwrap_or("unknown")
}

fn connection(found: &ConnectionStatus) -> Connection {
    let info = &found.info;
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let mut options = Vec::new();
    for (is_on, name) in [
        (info.timestamps, "ts"),
        (info.sack, "sack"),
        (info.ecn, "ecn"),
    ] {
        if is_on {
            options.push(String::from(name));
        }
    }
    let (ours, theirs) = (info.rcv_wind_shift, info.snd_wind_shift);
    if ours > 0 || theirs > 0 {
        options.push(format!("wscale:{theirs},{ours}"));
    }
    Connection {
        rtt_us: us(info.rtt),
        rttvar_us: us(info.rtt_variation),
        rto_us: us(info.rto),
        mss: info.mss,
        cwnd: info.cwnd,
        ssthresh: (info.ssthresh < NO_SSTHRESH).then_some(info.ssthresh),
        send_window: info.snd_wnd,
        receive_window: info.rcv_wnd,
        in_flight: info.in_flight,
        sacked: info.sacked,
        lost: info.lost,
        retransmitted: info.retransmitted,
        backoff: info.backoff,
        recovery: String::from(match info.congestion_state {
            CongestionState::Open => "open",
            CongestionState::Disorder => "disorder",
            CongestionState::Cwr => "cwr",
            CongestionState::Recovery => "recovery",
            CongestionState::Loss => "loss",
        }),
        options,
        receive_queue: found.unread as u64,
        send_queue: found.queued,
        bytes_acked: found.acked,
        is_orphan: found.is_orphan,
        ..bare(state_word(info.state), &found.flow)
    }
}

/// A connection whose state is reduced to its addresses.
fn bare(state: &str, flow: &Flow) -> Connection {
    Connection {
        state: String::from(state),
        by: String::from("stack"),
        local: flow.local().to_string(),
        remote: flow.remote().to_string(),
        ..Connection::default()
    }
}

/// The name that `ss` uses.
fn state_word(state: State) -> &'static str {
    match state {
        State::Closed => "closed",
        State::SynSent => "syn-sent",
        State::SynReceived => SYN_RECEIVED,
        State::Established => "established",
        State::FinWait1 => "fin-wait-1",
        State::FinWait2 => "fin-wait-2",
        State::CloseWait => "close-wait",
        State::Closing => "closing",
        State::LastAck => "last-ack",
    }
}

fn listener(found: ListenerStatus) -> Listener {
    Listener {
        address: found.address.to_string(),
        waiting: u32::try_from(found.waiting).unwrap_or(u32::MAX),
        backlog: found.backlog,
        half_open: found.half_open,
        half_open_max: found.half_open_max,
        sends_cookies: found.sends_cookies,
    }
}

fn neighbor(found: NeighborStatus) -> Neighbor {
    Neighbor {
        address: found.address.to_string(),
        mac: found.mac.map_or_else(String::new, |mac| mac.to_string()),
        state: String::from(found.state),
    }
}

fn route(found: RouteStatus) -> Route {
    let (address, len) = (found.target.address, found.target.len);
    Route {
        target: format!("{address}/{len}"),
        gateway: found.gateway.map(|gateway| gateway.to_string()),
        is_elsewhere: found.is_elsewhere,
    }
}

fn timers(engine: &CombinedEngine) -> Vec<Fact> {
    let facts = engine.with_host(|host| {
        let now = host.now();
        let kinds = host.timer_kinds().into_iter().map(|kind| {
            let armed = kind.armed.map(|armed| format!("{armed} armed"));
            let next = kind.next.map(|next| {
                let ms = next.since(now).as_millis();
                format!("next in {ms} ms")
            });
            let both: Vec<String> = armed.into_iter().chain(next).collect();
            let value = if both.is_empty() {
                String::from("none")
            } else {
                both.join(", ")
            };
            fact(kind.name, value)
        });
        kinds.collect()
    });
    facts.unwrap_or_default()
}

pub(super) fn fact(name: &str, value: impl ToString) -> Fact {
    Fact {
        name: String::from(name),
        value: value.to_string(),
    }
}

const SYN_RECEIVED: &str = "syn-recv";
const TIME_WAIT: &str = "time-wait";

/// Rows made in one turn: some 50 us.
pub(crate) const ROWS_PER_TURN: u32 = 128;

/// Kernel sockets looked at in one turn: four system calls each, about as long.
const SOCKETS_PER_TURN: u32 = 16;

const BY_KERNEL: &str = "kernel";

/// `TCP_INFINITE_SSTHRESH` of Linux, in segments.
const KERNEL_NO_SSTHRESH: u32 = i32::MAX as u32;

/// Connections looked at in one turn if few of them match: about as long.
const LOOKS_PER_TURN: u32 = 1024;

/// The initial value of TCP: no threshold.
const NO_SSTHRESH: u32 = 1 << 30;
