//! What the seed of a world with a proxy decides.

use super::secured::{self, Secured};
use crate::plan::hosts;
use crate::plan::wires::Profile;
use crate::plan::{Change, StationPlan, WireChange};
use mill_runtime::time::Duration;
use mill_sim::packet::wire::Wire;
use mill_sim::random::Random;
use mill_stack::config::Prefix;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

/// A world with a proxy before it begins. Station 0 is the proxy's, then come those of origins, then those of clients.
#[derive(Clone, Debug)]
pub struct ProxiedPlan {
    pub seed: u64,
    pub is_ipv6: bool,
    pub stations: Vec<StationPlan>,
    pub origins: usize,
    /// By client.
    pub talks: Vec<Vec<TalkPlan>>,
    pub changes: Vec<Change>,
    /// How many of a million requests origins do not answer as they should.
    pub faults_per_million: u32,
    /// Parameters of each `server`.
    pub server: &'static str,
    /// The other directives of the group, and those of the location.
    pub group: String,
    pub location: String,
    /// Clients speak HTTP/2: each has one connection for all that it asks for.
    pub is_http2: bool,
    /// Clients speak TLS.
    pub secured: Option<Secured>,
    /// The proxy speaks TLS with origins.
    pub has_secured_origins: bool,
}

/// Requests that a client makes one after the other, on one connection as long as it lasts.
#[derive(Clone, Debug)]
pub struct TalkPlan {
    pub at: Duration,
    pub is_http10: bool,
    pub requests: Vec<RequestPlan>,
}

/// One request. Its number tells it, and its contents, from all others of the world.
#[derive(Clone, Copy, Debug)]
pub struct RequestPlan {
    pub number: u32,
    /// Bytes of the answer's content.
    pub len: usize,
    /// A POST, with content of its own.
    pub posted: Option<Posted>,
    /// The client waits so long before it reads.
    pub pause: Duration,
    /// The client leaves after so many bytes of the answer's content, maybe by RST.
    pub leaves: Option<(usize, bool)>,
}

/// Content of a request.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    pub len: usize,
    pub is_chunked: bool,
}

impl ProxiedPlan {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ PROXIED);
        let is_ipv6 = random.happens(300_000);
        let origins = 1 + index(random.up_to(2));
        let clients = 1 + index(random.up_to(2));
        let mtu = hosts::mtu(is_ipv6, &mut random);
        // Trouble in front of the proxy, behind it, or on both sides.
        let profiles = [Profile::draw(&mut random), Profile::draw(&mut random)];
        let is_bad = random.one_of(&[(false, false), (true, false), (false, true), (true, true)]);
        let mut stations = Vec::new();
        for index in 0..=origins + clients {
            let (profile, is_bad) = if index <= origins {
                (profiles[0], is_bad.0 && index > 0)
            } else {
                (profiles[1], is_bad.1)
            };
            let wires = if is_bad {
                profile.wires(mtu, &mut random)
            } else {
                (Wire::IDEAL, Wire::IDEAL)
            };
            stations.push(StationPlan {
                card: hosts::card(mtu, &mut random),
                tcp: hosts::tcp(&mut random),
                outward: wires.0,
                inward: wires.1,
            });
        }
        let mut number = 0;
        let talks = (0..clients).map(|_| talks(&mut number, &mut random));
        Self {
            seed,
            is_ipv6,
            origins,
            talks: talks.collect(),
            changes: changes(&stations, &mut random),
            stations,
            faults_per_million: random.one_of(&[0, 0, 100_000, 300_000]),
            server: random.one_of(&["", "max_fails=0", "fail_timeout=1s", "max_conns=2"]),
            group: group(&mut random),
            location: location(&mut random),
            is_http2: random.happens(350_000),
            secured: random.happens(350_000).then(|| Secured {
                is_tls12: random.happens(300_000),
                resumes: random.happens(500_000),
            }),
            has_secured_origins: random.happens(250_000),
        }
    }

    /// Where a station's server listens.
    pub fn socket(&self, station: usize) -> SocketAddr {
        SocketAddr::new(self.prefix(station).address, 80)
    }

    pub fn prefix(&self, station: usize) -> Prefix {
        let last = u8::try_from(station + 1).unwrap_or(u8::MAX);
        let address: IpAddr = if self.is_ipv6 {
            Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(last)).into()
        } else {
            Ipv4Addr::new(10, 0, 0, last).into()
        };
        Prefix {
            address,
            len: if self.is_ipv6 { 64 } else { 24 },
        }
    }

    /// Whether nothing ever happens to a station's frames, but for the time they take.
    pub fn is_faithful(&self, station: usize) -> bool {
        let plan = &self.stations[station];
        plan.outward.is_faithful()
            && plan.inward.is_faithful()
            && !self.changes.iter().any(|it| it.station == station)
    }

    /// Whether every request must be answered: origins do as they should, and all that is sent arrives.
    pub fn must_answer(&self, client: usize) -> bool {
        let origins = 1..=self.origins;
        self.faults_per_million == 0
            && self.server != "max_conns=2"
            && origins
                .chain([self.station_of(client)])
                .all(|it| self.is_faithful(it))
    }

    /// Whether the time limit for an answer may end before a request's content has come to its origin. The limit begins
    /// when the proxy's host has taken all of the content, and an origin with a small window takes a window in a round trip.
    pub fn may_time_out(&self, number: u32) -> bool {
        let posted = self.requests().find(|it| it.number == number);
        let Some(posted) = posted.and_then(|it| it.posted) else {
            return false;
        };
        let has_short_limit = self.location.contains("proxy_read_timeout 20s");
        let is_slow = |origin: &StationPlan| {
            let round_trip = origin.outward.delay + origin.inward.delay + origin.tcp.delayed_ack;
            let window = (origin.tcp.receive_buffer_bytes_max / 2).max(1);
            let windows = u32::try_from(posted.len).unwrap_or(u32::MAX) / window;
            round_trip * windows > HALF_OF_SHORT_LIMIT
        };
        has_short_limit && self.stations[1..=self.origins].iter().any(is_slow)
    }

    pub const fn station_of(&self, client: usize) -> usize {
        1 + self.origins + client
    }

    /// What kinds of worlds this is one of, for counting.
    pub fn kinds(&self) -> Vec<&'static str> {
        let clients = self.station_of(0)..self.stations.len();
        let all_faithful =
            |stations: Range<usize>| stations.into_iter().all(|it| self.is_faithful(it));
        let has = |directive: &str| self.location.contains(directive);
        let kinds = [
            (self.is_ipv6, "IPv6"),
            (self.is_http2, "HTTP/2"),
            (self.secured.is_some(), "TLS of clients"),
            (self.has_secured_origins, "TLS of origins"),
            (!self.changes.is_empty(), "cut wires"),
            (self.faults_per_million > 0, "faults of origins"),
            (!all_faithful(clients), "bad wires before the proxy"),
            (
                !all_faithful(1..1 + self.origins),
                "bad wires behind the proxy",
            ),
            (
                self.group.contains("keepalive") && has("Connection ''"),
                "kept connections",
            ),
            (has("proxy_buffering off"), "answers not buffered"),
            (has("proxy_request_buffering off"), "requests not buffered"),
        ];
        let holding = kinds.into_iter().filter(|(holds, _)| *holds);
        holding.map(|(_, name)| name).collect()
    }

    pub fn requests(&self) -> impl Iterator<Item = &RequestPlan> {
        let talks = self.talks.iter().flatten();
        talks.flat_map(|talk| &talk.requests)
    }

    /// The configuration of the proxy.
    pub fn configuration(&self) -> String {
        let servers = (1..=self.origins).map(|origin| {
            let address = self.socket(origin);
            format!("server {address} {};", self.server)
        });
        format!(
            "error_log /error.log info; events {{ }} http {{ access_log off; client_max_body_size 0;
             client_header_timeout 3000s; client_body_timeout 3000s; send_timeout 3000s; lingering_time 300s;
             upstream app {{ {} {} }}
             server {{ listen {} {}; {} http2 {}; location / {{ proxy_pass {}://app; proxy_temp_path /temp;
             client_body_temp_path /temp; {} }} }} }}",
            self.group,
            servers.collect::<String>(),
            self.socket(0),
            if self.secured.is_some() { "ssl" } else { "" },
            self.secured.map(|_| secured::directives()).unwrap_or_default(),
            if self.is_http2 { "on" } else { "off" },
            if self.has_secured_origins { "https" } else { "http" },
            self.location,
        )
    }
}

/// Talks of one client. The numbers of requests go on from `number`.
fn talks(number: &mut u32, random: &mut Random) -> Vec<TalkPlan> {
    let count = 1 + random.up_to(4);
    let talks = (0..count).map(|_| TalkPlan {
        at: Duration::from_micros(random.up_to(5_000_000)),
        is_http10: random.happens(200_000),
        requests: (0..1 + random.up_to(4))
            .map(|_| {
                *number += 1;
                request(*number, random)
            })
            .collect(),
    });
    talks.collect()
}

fn request(number: u32, random: &mut Random) -> RequestPlan {
    let len = size(random);
    RequestPlan {
        number,
        len,
        posted: random.happens(350_000).then(|| Posted {
            len: size(random),
            is_chunked: random.happens(400_000),
        }),
        pause: match random.up_to(6) {
            0 => Duration::from_millis(random.up_to(3_000)),
            _ => Duration::ZERO,
        },
        leaves: random.happens(80_000).then(|| {
            let after = random.up_to(u64::try_from(len).unwrap_or(0));
            (index(after), random.happens(500_000))
        }),
    }
}

/// Mostly small; at times more than all buffers hold.
fn size(random: &mut Random) -> usize {
    let most = random.one_of(&[0, 100, 5_000, 30_000, 30_000, 300_000]);
    index(random.up_to(most))
}

/// In half of the worlds a wire is cut, for a while or, behind the proxy, for ever.
fn changes(stations: &[StationPlan], random: &mut Random) -> Vec<Change> {
    if random.happens(500_000) {
        return Vec::new();
    }
    let station = 1 + index(random.up_to(stations.len() as u64 - 2));
    let at = Duration::from_millis(random.up_to(6_000));
    let (outward, inward) = random.one_of(&[(true, true), (true, false), (false, true)]);
    let what = WireChange::Cut { outward, inward };
    let mut changes = vec![Change { at, station, what }];
    if station > 1 || random.happens(500_000) {
        changes.push(Change {
            at: at + Duration::from_millis(random.up_to(30_000)),
            station,
            what: WireChange::Heal,
        });
    }
    changes
}

fn group(random: &mut Random) -> String {
    let method = random.one_of(&[
        "",
        "least_conn;",
        "ip_hash;",
        "hash $uri;",
        "hash $uri consistent;",
        "random two;",
    ]);
    let kept = random.one_of(&["", "keepalive 1;", "keepalive 8;"]);
    [method, kept].join(" ")
}

fn location(random: &mut Random) -> String {
    let drawn = [
        random.one_of(&[
            "",
            "proxy_http_version 1.1;",
            "proxy_http_version 1.1; proxy_set_header Connection '';",
            "proxy_http_version 1.1; proxy_set_header Connection '';",
        ]),
        random.one_of(&[
            "",
            "proxy_buffering off;",
            "proxy_buffers 4 4k; proxy_buffer_size 4k;",
        ]),
        random.one_of(&["", "proxy_max_temp_file_size 0;"]),
        random.one_of(&["", "proxy_request_buffering off;"]),
        random.one_of(&["", "client_body_buffer_size 1k;"]),
        random.one_of(&[
            "",
            "proxy_next_upstream error timeout invalid_header http_503;",
        ]),
        random.one_of(&["", "proxy_ignore_client_abort on;"]),
        random.one_of(&["", "proxy_read_timeout 20s; proxy_connect_timeout 5s;"]),
    ];
    drawn.join(" ")
}

/// A drawn number that its bound keeps small.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl fmt::Display for ProxiedPlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, origins, .. } = self;
        writeln!(out, "seed {seed}: a proxy before {origins} origins")?;
        writeln!(out, "{}", self.configuration())?;
        writeln!(out, "faults per million: {}", self.faults_per_million)?;
        for (index, station) in self.stations.iter().enumerate() {
            writeln!(out, "station {index}: {:?}", station.card)?;
            writeln!(out, "  tcp {:?}", station.tcp)?;
            writeln!(out, "  out {:?}", station.outward)?;
            writeln!(out, "  in  {:?}", station.inward)?;
        }
        for change in &self.changes {
            writeln!(out, "{change:?}")?;
        }
        for (client, talks) in self.talks.iter().enumerate() {
            for talk in talks {
                writeln!(out, "client {client} {talk:?}")?;
            }
        }
        Ok(())
    }
}

/// Half of the short `proxy_read_timeout`: an estimate within a factor of two is good enough.
const HALF_OF_SHORT_LIMIT: Duration = Duration::from_secs(10);

/// Mixed into the seed, so that these worlds are not drawn as the others are.
const PROXIED: u64 = 0x9a0c_1ed0_0000_0001;
