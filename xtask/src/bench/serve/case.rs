//! What is asked of the servers: a named case is a size, a kind of connection and how many of them.

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) body_bytes: usize,
    pub(super) connections: Connections,
    /// Open at any time.
    pub(super) concurrency: u32,
    pub(super) gzip: bool,
    pub(super) access_log: bool,
}

/// What the server's CPU time per request may be, as a multiple of nginx's or of the floor's.
/// Source: the targets of docs/measurements, set from measurements of what kernel sockets allow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    CpuOfNginx(f64),
    CpuOfFloor(f64),
    RateOfNginx(f64),
}

/// The cases that are run unless others are asked for, in under six minutes.
pub(super) fn usual() -> Vec<Case> {
    vec![
        Case::plain(Connections::KeepAlive, 0, FEW),
        Case::plain(Connections::KeepAlive, 1000, FEW),
        Case::plain(Connections::KeepAlive, 100_000, FEW),
        Case::plain(Connections::KeepAlive, 1_000_000, FEW),
        Case::plain(Connections::PerRequest, 600, FEW),
        Case::plain(FOURTEEN, 600, FEW),
        Case::gzip(10_000),
        Case::access_log(Connections::KeepAlive, 600),
    ]
}

/// Every size, kind of connection and number of connections; gzip; access log.
pub(super) fn full() -> Vec<Case> {
    let mut cases = Vec::new();
    for concurrency in [FEW, MANY] {
        for connections in [Connections::KeepAlive, Connections::PerRequest, FOURTEEN] {
            for body_bytes in [0, 600, 1000, 10_000, 100_000, 1_000_000, 10_000_000] {
                cases.push(Case::plain(connections, body_bytes, concurrency));
            }
        }
    }
    cases.extend([1000, 10_000, 100_000].map(Case::gzip));
    cases.push(Case::access_log(Connections::KeepAlive, 600));
    cases.push(Case::access_log(Connections::PerRequest, 600));
    cases
}

/// wrk's and ab's users' habit.
const FEW: u32 = 64;

/// Many enough that neither connections nor their buffers stay in the CPU's caches.
const MANY: u32 = 4096;

/// How many requests a browser of the published measurements makes on a connection.
const FOURTEEN: Connections = Connections::OfRequests(14);

/// From here on what was read of unfinished answers counts as a fraction of an answer: few of them
/// are finished within a block.
const LARGE_BODY_BYTES: usize = 100_000;

impl Case {
    fn plain(connections: Connections, body_bytes: usize, concurrency: u32) -> Self {
        let kind = match connections {
            Connections::KeepAlive => "keep-alive".to_owned(),
            Connections::PerRequest => "close".to_owned(),
            Connections::OfRequests(count) => format!("close-after-{count}"),
        };
        let suffix = if concurrency == FEW {
            String::new()
        } else {
            format!("-x{concurrency}")
        };
        Self {
            name: format!("{kind}-{}{suffix}", size_name(body_bytes)),
            body_bytes,
            connections,
            concurrency,
            gzip: false,
            access_log: false,
        }
    }

    fn gzip(body_bytes: usize) -> Self {
        Self {
            name: format!("gzip-{}", size_name(body_bytes)),
            gzip: true,
            ..Self::plain(Connections::KeepAlive, body_bytes, FEW)
        }
    }

    fn access_log(connections: Connections, body_bytes: usize) -> Self {
        let plain = Self::plain(connections, body_bytes, FEW);
        Self {
            name: format!("log-{}", plain.name),
            access_log: true,
            ..plain
        }
    }

    /// As many connections a second as possible.
    pub(super) fn filling() -> Self {
        Self::plain(Connections::PerRequest, 0, FEW)
    }

    /// The same without an end to its connections, a log or compression.
    pub(super) fn kept_alive(&self) -> Self {
        Self::plain(Connections::KeepAlive, self.body_bytes, self.concurrency)
    }

    /// The floor answers without a body, and may only be held against such answers.
    pub(super) fn has_floor(&self) -> bool {
        self.body_bytes == 0
    }

    pub(super) fn counts_fractions(&self) -> bool {
        self.body_bytes >= LARGE_BODY_BYTES
    }

    /// The field lines of a request besides Host.
    pub(super) fn field_lines(&self) -> Vec<&'static str> {
        let mut lines = Vec::new();
        if self.gzip {
            lines.push("Accept-Encoding: gzip");
        }
        if self.connections == Connections::PerRequest {
            lines.push("Connection: close");
        }
        lines
    }

    pub(super) fn targets(&self) -> Vec<Target> {
        if self.gzip || self.access_log {
            return Vec::new();
        }
        match (self.connections, self.body_bytes) {
            (Connections::KeepAlive, 0) => {
                vec![Target::CpuOfNginx(0.92), Target::CpuOfFloor(1.15)]
            }
            (Connections::KeepAlive, 1000) => vec![Target::CpuOfNginx(0.70)],
            (Connections::PerRequest, 0..LARGE_BODY_BYTES) => vec![Target::CpuOfNginx(0.91)],
            (_, LARGE_BODY_BYTES..) => vec![Target::RateOfNginx(1.0)],
            _ => Vec::new(),
        }
    }
}

/// 1000 is "1k", as wrk counts.
fn size_name(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1_000_000 && bytes % 1_000_000 == 0 => format!("{}m", bytes / 1_000_000),
        bytes if bytes >= 1000 && bytes % 1000 == 0 => format!("{}k", bytes / 1000),
        bytes => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Case, full, usual};

    fn names(cases: &[Case]) -> Vec<&str> {
        cases.iter().map(|case| case.name.as_str()).collect()
    }

    #[test]
    fn eight_cases_are_usual_and_all_of_them_are_in_the_full_list() {
        let usual = usual();
        assert_eq!(
            names(&usual),
            [
                "keep-alive-0",
                "keep-alive-1k",
                "keep-alive-100k",
                "keep-alive-1m",
                "close-600",
                "close-after-14-600",
                "gzip-10k",
                "log-keep-alive-600",
            ]
        );
        let full = full();
        assert!(usual.iter().all(|case| full.contains(case)));
    }

    #[test]
    fn the_full_list_names_each_case_once() {
        let full = full();
        let mut names = names(&full);
        assert_eq!(names.len(), 47);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 47);
    }
}
