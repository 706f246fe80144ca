//! What a seed decides.

/// SYNs with forged addresses.
mod flood;
/// Cards and the stack's settings.
pub(crate) mod hosts;
/// A host with another TCP.
mod plain;
/// Routers that do not tell the truth.
mod routers;
/// Settings that not every world has.
mod settings;
/// What clients do, and when.
mod talks;
/// Wires, and what happens to them.
pub(crate) mod wires;

pub use flood::FloodPlan;
pub use plain::{Cut, Parting, PlainPlan, PlainTalk};
pub use settings::Settings;

use mill_runtime::time::Duration;
use mill_sim::packet::ethernet::StationOptions;
use mill_sim::packet::wire::{Router, Wire};
use mill_sim::random::Random;
use mill_stack::link::ReceivedChecksum;
use mill_tcp::config::Config;
use std::fmt;

/// A world before it begins. Station 0 is the server's, 1 that of the servers of bytes, the others are clients'.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub is_ipv6: bool,
    pub stations: Vec<StationPlan>,
    /// Of the clients, in the order of their stations.
    pub talks: Vec<Vec<TalkPlan>>,
    /// The load generator is one more client, with so many requests over so many connections.
    pub load: Option<(u64, u32)>,
    pub changes: Vec<Change>,
    pub settings: Settings,
    /// One more host, with another TCP.
    pub plain: Option<PlainPlan>,
    pub flood: Option<FloodPlan>,
}

/// One host.
#[derive(Clone, Debug)]
pub struct StationPlan {
    pub card: CardPlan,
    pub tcp: Config,
    pub outward: Wire,
    pub inward: Wire,
}

/// [`StationOptions`], as values.
#[derive(Clone, Copy, Debug)]
pub struct CardPlan {
    pub mtu: u16,
    pub completes_checksums: bool,
    pub segment_bytes_max: u32,
    pub vouches: ReceivedChecksum,
    pub merges: bool,
    pub card_bytes: Option<u64>,
}

/// Something happens to a station's wires.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub at: Duration,
    pub station: usize,
    pub what: WireChange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireChange {
    /// Nothing gets through any more, outwards, inwards, or both.
    Cut { outward: bool, inward: bool },
    /// Both wires are again as they were at first.
    Heal,
    /// Both carry no more than this; their routers say so, or something else.
    Mtu(u16),
}

/// One connection or a series of them.
#[derive(Clone, Debug)]
pub struct TalkPlan {
    /// When it begins.
    pub at: Duration,
    pub what: Talk,
    pub leaves: Leave,
    /// The client waits so long before it reads at all, and again halfway: windows close.
    pub pause: Duration,
    /// The server is the host with another TCP, not ours.
    pub is_for_plain: bool,
}

/// What a client does.
#[derive(Clone, Debug)]
pub enum Talk {
    /// Asks the server for files of these numbers and sizes.
    Get {
        files: Vec<(u32, usize)>,
        how: Asking,
    },
    /// Posts content to the server, which discards it.
    Post { number: u32, len: usize },
    /// Sends bytes to a server that answers with their hash.
    Hash { number: u32, len: usize },
    /// Sends bytes to a server that sends them back.
    Echo { number: u32, len: usize },
}

/// How a client asks for several files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// One after the other on one connection.
    Kept,
    /// Each on a connection of its own.
    Apart,
    /// All at once on one connection.
    Pipelined,
    /// All at once, and FIN behind them.
    HalfClosed,
}

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// When it has everything.
    Whole,
    /// After so many bytes, by RST.
    Reset(usize),
    /// After so many bytes, by closing.
    Close(usize),
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let is_ipv6 = random.happens(400_000);
        let clients = 1 + usize::try_from(random.up_to(2)).unwrap_or(0);
        let mtu = hosts::mtu(is_ipv6, &mut random);
        let profile = wires::Profile::draw(&mut random);
        let mut stations = Vec::new();
        for index in 0..2 + clients {
            let wires = if index < 2 {
                (Wire::IDEAL, Wire::IDEAL)
            } else {
                profile.wires(mtu, &mut random)
            };
            stations.push(StationPlan {
                card: hosts::card(mtu, &mut random),
                tcp: hosts::tcp(&mut random),
                outward: wires.0,
                inward: wires.1,
            });
        }
        let talks = talks::draw(clients, &mut random);
        let load = random
            .happens(200_000)
            .then(|| (10 + random.up_to(50), 1 + small(random.up_to(7))));
        let changes = wires::changes(clients, mtu, is_ipv6, &mut random);
        let mut plan = Self {
            seed,
            is_ipv6,
            stations,
            talks,
            load,
            changes,
            settings: Settings::default(),
            plain: None,
            flood: None,
        };
        plan.add(mtu);
        plan
    }

    /// What came later than the first worlds is drawn by numbers of its own, so that seeds keep their worlds.
    fn add(&mut self, mtu: u16) {
        let mut random = Random::new(self.seed ^ ADDITIONS);
        Settings::draw(self, &mut random);
        plain::draw(self, mtu, &mut random);
        self.flood = FloodPlan::draw(&mut random);
        routers::draw(self, mtu, &mut Random::new(self.seed ^ ROUTERS));
        self.settings
            .draw_fast_open(&mut Random::new(self.seed ^ FAST_OPEN));
    }

    /// When a station vanishes for good, if it does.
    pub fn vanishes(&self, station: usize) -> bool {
        let mut own = self.changes.iter().filter(|it| it.station == station);
        let last = own.next_back().map(|it| it.what);
        matches!(last, Some(WireChange::Cut { .. }))
    }

    /// Whether nothing ever happens to a station's frames, but for the time they take.
    pub fn is_faithful(&self, station: usize) -> bool {
        let plan = &self.stations[station];
        plan.outward.is_faithful()
            && plan.inward.is_faithful()
            && !self.changes.iter().any(|it| it.station == station)
    }

    /// Whether a connection of this station may break although both ends do as they should: limits of time, and frames
    /// that do not get through.
    pub fn may_break(&self, station: usize, with_plain: bool) -> bool {
        let is_plain_faithful = self.plain.as_ref().is_none_or(PlainPlan::is_faithful);
        let is_patient = self
            .plain
            .as_ref()
            .and_then(|it| it.serves)
            .is_none_or(|it| it.is_patient());
        let is_faithful =
            self.is_faithful(station) && (!with_plain || is_plain_faithful && is_patient);
        // A flood fills a small table of neighbours, and an entry that is pushed out of it has to be resolved again.
        self.settings.limits_time && !(is_faithful && self.is_ample())
    }

    /// Whether our servers may forget or reset a connection before it has carried anything: more than they take, or a SYN
    /// cookie whose first acknowledgement was lost or overtaken (RFC 4987 3.6: what comes later does not prove it).
    pub fn may_refuse(&self, is_faithful: bool) -> bool {
        let settings = &self.settings;
        let is_full = settings.is_tight && settings.limits.connections_max < MANY_CONNECTIONS;
        let has_cookies = self.has_cookies();
        is_full || settings.backlog.is_some() || has_cookies && !is_faithful
    }

    /// Whether our servers answer some SYNs with cookies.
    pub fn has_cookies(&self) -> bool {
        self.flood.is_some() || self.settings.is_tight
    }

    /// Whether what is there suffices for all at once, so that nothing takes longer than the wires do.
    pub fn is_ample(&self) -> bool {
        self.flood.is_none() && !self.settings.is_tight
    }

    /// What kinds of worlds this is one of, for counting.
    pub fn kinds(&self) -> Vec<&'static str> {
        let plain = self.plain.as_ref();
        let kinds = [
            (self.is_ipv6, "IPv6"),
            (self.load.is_some(), "load generator"),
            (!self.changes.is_empty(), "changing wires"),
            (plain.is_some_and(|it| !it.talks.is_empty()), "plain client"),
            (plain.is_some_and(|it| it.serves.is_some()), "plain server"),
            (
                self.stations.iter().any(|it| it.tcp.mtu_probing),
                "path MTU probing",
            ),
            (
                self.stations.iter().any(|it| it.tcp.mss_max.is_some()),
                "mss_max",
            ),
            (self.settings.limits_time, "user timeout and keep-alive"),
            (self.settings.fast_open.is_some(), "Fast Open"),
            (self.settings.asks_fast_open, "Fast Open of clients"),
            (self.settings.is_tight, "small limits"),
            (self.flood.is_some(), "flood"),
            (self.has_bad_routers(), "bad routers"),
        ];
        let holding = kinds.into_iter().filter(|(holds, _)| *holds);
        holding.map(|(_, name)| name).collect()
    }

    fn has_bad_routers(&self) -> bool {
        let mut stations = self.stations.iter();
        stations.any(|it| {
            let wires = [it.outward, it.inward];
            wires.iter().any(|wire| wire.router != Router::TRUTHFUL)
        })
    }

    /// Bytes that all clients together ask for or send.
    pub fn bytes(&self) -> usize {
        self.talks.iter().flatten().map(|it| it.what.bytes()).sum()
    }
}

impl Talk {
    pub fn bytes(&self) -> usize {
        match self {
            Self::Get { files, .. } => files.iter().map(|(_, len)| len).sum(),
            Self::Post { len, .. } | Self::Hash { len, .. } => *len,
            Self::Echo { len, .. } => 2 * len,
        }
    }
}

impl CardPlan {
    pub fn options(&self) -> StationOptions {
        let mut options = StationOptions::new(self.mtu);
        options.completes_checksums = self.completes_checksums;
        options.segment_bytes_max = self.segment_bytes_max;
        options.vouches = self.vouches;
        options.merges = self.merges;
        options.card_bytes = self.card_bytes;
        options
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = if self.is_ipv6 { "IPv6" } else { "IPv4" };
        writeln!(
            formatter,
            "seed {}: {family}, {} bytes, load generator {:?}",
            self.seed,
            self.bytes(),
            self.load
        )?;
        for (index, station) in self.stations.iter().enumerate() {
            writeln!(formatter, "station {index}: {:?}", station.card)?;
            writeln!(formatter, "  tcp {:?}", station.tcp)?;
            writeln!(formatter, "  out {:?}", station.outward)?;
            writeln!(formatter, "  in  {:?}", station.inward)?;
        }
        for change in &self.changes {
            writeln!(
                formatter,
                "at {:?} station {}: {:?}",
                change.at, change.station, change.what
            )?;
        }
        writeln!(formatter, "{:?}", self.settings)?;
        if let Some(flood) = &self.flood {
            writeln!(formatter, "{flood:?}")?;
        }
        if let Some(plain) = &self.plain {
            write!(formatter, "{plain}")?;
        }
        for (client, talks) in self.talks.iter().enumerate() {
            for talk in talks {
                writeln!(formatter, "client {client} {talk:?}")?;
            }
        }
        Ok(())
    }
}

/// A drawn number that its bound keeps small.
fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Mixed into the seed for what was added to worlds later.
const ADDITIONS: u64 = 0xadd1_7105_0000_0003;

const ROUTERS: u64 = 0xadd1_7105_0000_0006;
const FAST_OPEN: u64 = 0xadd1_7105_0000_0007;

/// Connections that no world has at once.
const MANY_CONNECTIONS: u32 = 1_000;
