//! What is asked: a named cell is a size, a kind of connection, how many of them, a pace, and an MTU.

/// How long a connection lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connections {
    /// Until the block ends.
    KeepAlive,
    /// One request each: the client says `Connection: close`.
    PerRequest,
    /// The server closes after this many requests, and the client connects anew.
    OfRequests(u32),
}

/// When requests are begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Once the one before was answered.
    Closed,
    /// So many a second, answered or not.
    PerSecond(u32),
    /// Half as many a second as nginx can answer, which has to be found out first.
    HalfOfNginx,
    /// Four times as many a second as the server can answer, which has a share of its CPU only.
    Overload,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) name: String,
    pub(super) body_bytes: usize,
    pub(super) connections: Connections,
    /// Open at any time.
    pub(super) concurrency: u32,
    pub(super) mtu: u16,
    pub(super) pace: Pace,
    /// How long connections are opened one after the other, before requests count; 0 for all at once. Each has its turn then, whichever has
    /// been idle longest.
    pub(super) ramp_seconds: u32,
}

/// What Millstream is to reach. Source: section 7 of the design, from what the raw path allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    /// Over AF_XDP, as a multiple of what raw frames reach.
    XdpOfRaw(f64),
    /// Over AF_XDP, as a multiple of nginx's, asked by the same client over AF_XDP.
    XdpOfNginx(f64),
    /// Over AF_XDP, as a multiple of nginx's with whichever client brings more out of it.
    XdpOfBetterNginx(f64),
    /// Over memif, requests a second.
    MemifRate(f64),
    /// Over AF_XDP, the median of the 99th percentiles, as a multiple of nginx's with whichever client finds the lower.
    XdpP99OfNginx(f64),
    /// Over memif, how late 99.9 % of the requests are begun at most, in milliseconds.
    MemifLateness(f64),
    /// Over memif, bytes of the server's memory for each connection at most.
    MemifServerBytes(f64),
    /// Over memif, bytes of the client's memory for each connection at most.
    MemifClientBytes(f64),
    /// Over memif, requests a second that are answered while connections are held, as a multiple of those that are due.
    MemifPaceKept(f64),
    /// Over AF_XDP, answers a second under overload, as a multiple of those without.
    XdpGoodput(f64),
}

/// Of Ethernet.
pub(super) const MTU: u16 = 1500;

/// Of Ethernet with jumbo frames.
const MTU_JUMBO: u16 = 9000;

/// wrk's and ab's users' habit.
const FEW: u32 = 64;

/// Where the answers are large, a few connections fill any path.
const SOME: u32 = 16;

/// So many wait for an answer of a server that can do no more.
const MANY: u32 = 1024;

/// From here on what was read of unfinished answers counts as a fraction of an answer.
const LARGE_BODY_BYTES: usize = 100_000;

/// The cells that are run unless others are asked for: each target has one, but for that of a million connections, which takes a minute.
pub(super) fn usual() -> Vec<Cell> {
    let megabyte = Cell::new(Connections::KeepAlive, 1_000_000, SOME);
    let small = Cell::new(Connections::KeepAlive, 1000, FEW);
    vec![
        Cell::new(Connections::KeepAlive, 0, 1),
        Cell::new(Connections::KeepAlive, 0, FEW),
        Cell::new(Connections::KeepAlive, 1000, FEW),
        Cell::new(Connections::KeepAlive, 1000, 1024),
        Cell::new(Connections::PerRequest, 1000, FEW),
        Cell::new(Connections::OfRequests(4), 1000, FEW),
        Cell::new(Connections::KeepAlive, 100_000, FEW),
        megabyte.clone(),
        Cell::new(Connections::KeepAlive, 10_000_000, 4),
        megabyte.jumbo(),
        Cell {
            name: "half-1k-64".to_owned(),
            pace: Pace::HalfOfNginx,
            ..small.clone()
        },
        Cell {
            name: "100k/s-1k-64".to_owned(),
            pace: Pace::PerSecond(100_000),
            ..small.clone()
        },
        Cell {
            name: "overload".to_owned(),
            concurrency: MANY,
            pace: Pace::Overload,
            ..small
        },
    ]
}

/// What takes longer than a usual cell: connections that are held, and an overload of connections.
fn long() -> [Cell; 2] {
    let per_request = Cell::new(Connections::PerRequest, 1000, MANY);
    [
        Cell {
            name: "idle-1m".to_owned(),
            pace: Pace::PerSecond(100_000),
            ramp_seconds: 25,
            ..Cell::new(Connections::KeepAlive, 0, 1_000_000)
        },
        Cell {
            name: "overload-conn".to_owned(),
            pace: Pace::Overload,
            ..per_request
        },
    ]
}

/// Every size, kind of connection and number of connections; the cells of published measurements; jumbo frames.
pub(super) fn full() -> Vec<Cell> {
    let mut cells = usual();
    cells.extend(long());
    let kinds = [
        Connections::KeepAlive,
        Connections::PerRequest,
        Connections::OfRequests(4),
        Connections::OfRequests(14),
    ];
    for concurrency in [1, FEW, 1024, 16_384] {
        for connections in kinds {
            for body_bytes in [0, 1000, 10_000, 100_000, 1_000_000, 10_000_000] {
                cells.push(Cell::new(connections, body_bytes, concurrency));
            }
        }
    }
    cells.extend(kinds.map(|connections| Cell::new(connections, 600, FEW)));
    cells.push(Cell::new(Connections::KeepAlive, 318, 50_000));
    for (body_bytes, concurrency) in [(100_000, FEW), (10_000_000, 4)] {
        cells.push(Cell::new(Connections::KeepAlive, body_bytes, concurrency).jumbo());
    }
    let mut seen = Vec::new();
    cells.retain(|cell| {
        let is_new = !seen.contains(&cell.name);
        seen.push(cell.name.clone());
        is_new
    });
    cells
}

impl Cell {
    fn new(connections: Connections, body_bytes: usize, concurrency: u32) -> Self {
        let kind = match connections {
            Connections::KeepAlive => "ka".to_owned(),
            Connections::PerRequest => "conn".to_owned(),
            Connections::OfRequests(count) => format!("req{count}"),
        };
        Self {
            name: format!("{kind}-{}-{concurrency}", size_name(body_bytes)),
            body_bytes,
            connections,
            concurrency,
            mtu: MTU,
            pace: Pace::Closed,
            ramp_seconds: 0,
        }
    }

    /// The same, so many requests a second.
    pub(super) fn at(&self, pace: Pace) -> Self {
        Self {
            pace,
            ..self.clone()
        }
    }

    /// Whether it is about connections that are there and mostly idle.
    pub(super) const fn is_held(&self) -> bool {
        self.ramp_seconds > 0
    }

    /// How long a block of it is measured, where others are for `seconds`: as many seconds as give each connection that is held a turn.
    pub(super) fn seconds(&self, seconds: u32) -> u32 {
        match self.pace {
            Pace::PerSecond(rate) if self.is_held() => {
                seconds.max(self.concurrency.div_ceil(rate.max(1)))
            }
            Pace::Overload => seconds.max(OVERLOAD_SECONDS_MIN),
            _ if self.concurrency >= CROWD => seconds.max(CROWD_SECONDS_MIN),
            _ => seconds,
        }
    }

    fn jumbo(mut self) -> Self {
        self.name += "-jumbo";
        self.mtu = MTU_JUMBO;
        self
    }

    pub(super) fn counts_fractions(&self) -> bool {
        self.body_bytes >= LARGE_BODY_BYTES
    }

    pub(super) fn requests_per_connection(&self) -> Option<u32> {
        match self.connections {
            Connections::KeepAlive => None,
            Connections::PerRequest => Some(1),
            Connections::OfRequests(count) => Some(count),
        }
    }

    pub(super) fn targets(&self) -> Vec<Target> {
        let is_jumbo = self.mtu == MTU_JUMBO;
        match self.pace {
            Pace::Closed => {}
            Pace::HalfOfNginx => return vec![Target::XdpP99OfNginx(0.5)],
            Pace::PerSecond(_) if self.is_held() => {
                return vec![
                    Target::MemifServerBytes(1024.0),
                    Target::MemifClientBytes(1024.0),
                    Target::MemifPaceKept(0.99),
                ];
            }
            Pace::PerSecond(_) => return vec![Target::MemifLateness(0.02)],
            Pace::Overload => return vec![Target::XdpGoodput(0.9)],
        }
        match (self.connections, self.body_bytes) {
            (Connections::KeepAlive, 0..=1000) if self.concurrency == 1 => {
                vec![Target::XdpOfRaw(0.5)]
            }
            (Connections::KeepAlive, 0..=1000) => vec![
                Target::XdpOfRaw(0.7),
                Target::XdpOfNginx(3.5),
                Target::MemifRate(2e6),
            ],
            (Connections::PerRequest, 0..=1000) if self.concurrency > 1 => {
                vec![Target::XdpOfNginx(4.0), Target::MemifRate(5e5)]
            }
            (Connections::KeepAlive, 100_000..1_000_000) => vec![Target::XdpOfBetterNginx(1.0)],
            (Connections::KeepAlive, 1_000_000..) if is_jumbo => {
                vec![Target::XdpOfBetterNginx(1.0)]
            }
            (Connections::KeepAlive, 1_000_000..) => vec![Target::XdpOfRaw(0.7)],
            _ => Vec::new(),
        }
    }
}

/// Of an overload: a server that breaks down does so within some of them.
const OVERLOAD_SECONDS_MIN: u32 = 3;

/// So many connections take a client of the kernel some seconds to open; within one it has not had an answer.
const CROWD: u32 = 50_000;
const CROWD_SECONDS_MIN: u32 = 5;

/// 1000 is "1k", as wrk counts.
fn size_name(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1_000_000 && bytes % 1_000_000 == 0 => format!("{}M", bytes / 1_000_000),
        bytes if bytes >= 1000 && bytes % 1000 == 0 => format!("{}k", bytes / 1000),
        bytes => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Pace, Target, full, usual};

    fn names(cells: &[Cell]) -> Vec<&str> {
        cells.iter().map(|cell| cell.name.as_str()).collect()
    }

    #[test]
    fn each_target_has_a_usual_cell() {
        let usual = usual();
        let expected = [
            "ka-0B-1",
            "ka-0B-64",
            "ka-1k-64",
            "ka-1k-1024",
            "conn-1k-64",
            "req4-1k-64",
            "ka-100k-64",
            "ka-1M-16",
            "ka-10M-4",
            "ka-1M-16-jumbo",
            "half-1k-64",
            "100k/s-1k-64",
            "overload",
        ];
        assert_eq!(names(&usual), expected);
        let targets: Vec<Target> = usual.iter().flat_map(Cell::targets).collect();
        for target in [
            Target::XdpOfRaw(0.5),
            Target::XdpOfRaw(0.7),
            Target::XdpOfNginx(4.0),
            Target::XdpOfBetterNginx(1.0),
            Target::MemifRate(2e6),
            Target::MemifRate(5e5),
            Target::XdpP99OfNginx(0.5),
            Target::MemifLateness(0.02),
            Target::XdpGoodput(0.9),
        ] {
            assert!(targets.contains(&target), "{target:?}");
        }
    }

    #[test]
    fn every_held_connection_has_a_turn_in_a_block() {
        let all = full();
        let find = |name: &str| all.iter().find(|cell| cell.name == name).unwrap();
        assert_eq!(find("idle-1m").seconds(1), 10);
        assert_eq!(find("idle-1m").seconds(20), 20);
        assert_eq!(find("overload").seconds(1), 3);
        assert_eq!(find("ka-318B-50000").seconds(1), 5);
        assert_eq!(find("100k/s-1k-64").seconds(1), 1);
        let Pace::PerSecond(rate) = find("idle-1m").pace else {
            panic!("it has a pace");
        };
        assert_eq!(rate, 100_000);
    }

    #[test]
    fn the_full_list_names_each_cell_once() {
        let full = full();
        let mut names = names(&full);
        for name in [
            "req14-10k-16384",
            "ka-318B-50000",
            "conn-600B-64",
            "idle-1m",
            "overload-conn",
        ] {
            assert!(names.contains(&name), "{name}");
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
