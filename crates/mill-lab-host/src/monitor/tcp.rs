//! /proc/net/snmp, netstat and sockstat: TCP's counters of a namespace.

use std::collections::{BTreeMap, BTreeSet};

/// Of one namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tcp {
    /// Since the namespace was made, by our names; without those that the kernel does not count.
    pub counters: BTreeMap<&'static str, u64>,
    /// Sockets that have a port now, without those in TIME_WAIT.
    pub in_use: u64,
    pub time_wait: u64,
    pub orphans: u64,
}

/// The kernel's group and name, and ours. Names of the kernel: RFC 4022 and snmp_mib in net/ipv4/proc.c.
const COUNTERS: [(&str, &str, &str); 25] = [
    ("Tcp", "ActiveOpens", "active_opens"),
    ("Tcp", "PassiveOpens", "passive_opens"),
    ("Tcp", "AttemptFails", "failed_attempts"),
    ("Tcp", "EstabResets", "resets"),
    ("Tcp", "InSegs", "segments_in"),
    ("Tcp", "OutSegs", "segments_out"),
    ("Tcp", "RetransSegs", "retransmitted_segments"),
    ("Tcp", "InErrs", "input_errors"),
    ("Tcp", "OutRsts", "resets_sent"),
    ("TcpExt", "ListenOverflows", "listen_overflows"),
    ("TcpExt", "ListenDrops", "listen_drops"),
    ("TcpExt", "TCPReqQFullDrop", "request_queue_drops"),
    ("TcpExt", "SyncookiesSent", "syn_cookies_sent"),
    ("TcpExt", "TCPBacklogDrop", "backlog_drops"),
    ("TcpExt", "TCPRcvQDrop", "receive_queue_drops"),
    ("TcpExt", "TCPSynRetrans", "syn_retransmits"),
    ("TcpExt", "TCPTimeouts", "timeouts"),
    ("TcpExt", "TCPFastRetrans", "fast_retransmits"),
    ("TcpExt", "TCPLostRetransmit", "lost_retransmits"),
    ("TcpExt", "TCPOFOQueue", "out_of_order"),
    ("TcpExt", "TCPDSACKRecv", "duplicates_reported"),
    ("TcpExt", "TCPAbortOnTimeout", "aborts_on_timeout"),
    ("TcpExt", "TCPTimeWaitOverflow", "time_wait_overflows"),
    ("TcpExt", "TW", "time_waits_ended"),
    ("TcpExt", "TCPSACKReorder", "reorderings"),
];

impl Tcp {
    /// From the three files' text; an empty text leaves its part out.
    pub(crate) fn parse(snmp: &str, netstat: &str, sockstat: &str) -> Self {
        let mut tcp = Self::default();
        for text in [snmp, netstat] {
            counters(text, &mut tcp.counters);
        }
        if let Some(line) = sockstat.lines().find_map(|line| line.strip_prefix("TCP:")) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            for pair in words.chunks_exact(2) {
                let value = pair[1].parse().unwrap_or(0);
                match pair[0] {
                    "inuse" => tcp.in_use = value,
                    "tw" => tcp.time_wait = value,
                    "orphan" => tcp.orphans = value,
                    _ => {}
                }
            }
        }
        tcp
    }

    /// The sum of several namespaces.
    pub(crate) fn add(&mut self, other: &Self) {
        for (name, value) in &other.counters {
            *self.counters.entry(name).or_insert(0) += value;
        }
        self.in_use += other.in_use;
        self.time_wait += other.time_wait;
        self.orphans += other.orphans;
    }
}

/// The clients' share of TIME_WAIT where client and server share a namespace: the share of its sockets that wait
/// towards a listening port, from the texts of /proc/net/tcp and tcp6. All of it if no socket listens or none waits.
pub(crate) fn waits_of_clients(tables: &str) -> f64 {
    let sockets: Vec<(u16, u16, &str)> = tables.lines().filter_map(socket).collect();
    let listening: BTreeSet<u16> = sockets
        .iter()
        .filter(|(.., state)| *state == LISTEN)
        .map(|(local, ..)| *local)
        .collect();
    let (mut servers, mut clients) = (0_u32, 0_u32);
    for (local, remote, _) in sockets.iter().filter(|(.., state)| *state == TIME_WAIT) {
        if listening.contains(local) {
            servers += 1;
        } else if listening.contains(remote) {
            clients += 1;
        }
    }
    if servers + clients == 0 {
        return 1.0;
    }
    f64::from(clients) / f64::from(servers + clients)
}

/// States as the kernel numbers them, in tcp_states.h.
const TIME_WAIT: &str = "06";
const LISTEN: &str = "0A";

/// `   0: 0100007F:0050 00000000:0000 0A …`: local port, remote port, state.
fn socket(line: &str) -> Option<(u16, u16, &str)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let mut port = || u16::from_str_radix(words.next()?.rsplit_once(':')?.1, 16).ok();
    let (local, remote) = (port()?, port()?);
    Some((local, remote, words.next()?))
}

/// Files of two lines per group: names, then values.
fn counters(text: &str, into: &mut BTreeMap<&'static str, u64>) {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((group, names)), Some((_, values))) =
            (names.split_once(':'), values.split_once(':'))
        else {
            continue;
        };
        let pairs = names
            .split_ascii_whitespace()
            .zip(values.split_ascii_whitespace());
        for (name, value) in pairs {
            let known = COUNTERS
                .iter()
                .find(|(of, theirs, _)| *of == group && *theirs == name);
            if let (Some((.., ours)), Ok(value)) = (known, value.parse()) {
                into.insert(ours, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "\
Ip: Forwarding DefaultTTL InReceives
Ip: 2 64 463105305
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors
Tcp: 1 200 120000 -1 11302010 10936039 279524 1592117 0 463104257 463467701 262999 2226 1684499 0
";
    const NETSTAT: &str = "\
TcpExt: SyncookiesSent TW ListenOverflows ListenDrops TCPTimeouts TCPOFOQueue TCPSynRetrans
TcpExt: 12846 7561270 170205 170206 96538 1640 161096
IpExt: InNoRoutes OutSegs
IpExt: 7 8
";
    const SOCKSTAT: &str = "\
sockets: used 21
TCP: inuse 3 orphan 1 tw 28000 alloc 3 mem 67
UDP: inuse 9 mem 0
";

    #[test]
    fn counters_are_found_by_group_and_name() {
        let tcp = Tcp::parse(SNMP, NETSTAT, SOCKSTAT);
        let check = |name: &str, expected: u64| assert_eq!(tcp.counters[name], expected, "{name}");
        check("retransmitted_segments", 262_999);
        check("segments_out", 463_467_701);
        check("resets", 1_592_117);
        check("listen_overflows", 170_205);
        check("listen_drops", 170_206);
        check("syn_retransmits", 161_096);
        check("out_of_order", 1640);
        assert_eq!(tcp.counters.get("backlog_drops"), None);
        assert_eq!((tcp.in_use, tcp.time_wait, tcp.orphans), (3, 28000, 1));
    }

    #[test]
    fn namespaces_add_up() {
        let mut both = Tcp::parse(SNMP, "", SOCKSTAT);
        both.add(&Tcp::parse(SNMP, NETSTAT, SOCKSTAT));
        assert_eq!(both.counters["retransmitted_segments"], 525_998);
        assert_eq!(both.counters["listen_drops"], 170_206);
        assert_eq!(both.time_wait, 56000);
    }

    #[test]
    fn waiting_sockets_belong_to_the_side_that_closed_first() {
        let table = |rows: &[&str]| {
            let rows: Vec<String> = rows
                .iter()
                .map(|row| format!("   0: {row} 00000000:00000000 00:00000000\n"))
                .collect();
            format!(
                "  sl  local_address rem_address   st tx_queue rx_queue\n{}",
                rows.concat()
            )
        };
        let listens = "0100007F:0050 00000000:0000 0A";
        let of_server = "0100007F:0050 0100007F:9C40 06";
        let of_client = "0100007F:9C41 0100007F:0050 06";
        let open = "0100007F:9C42 0100007F:0050 01";
        let check = |rows: &[&str], expected: f64| {
            assert_eq!(waits_of_clients(&table(rows)), expected, "{rows:?}");
        };
        check(&[listens, of_server, of_server, of_client, open], 1.0 / 3.0);
        check(&[listens, of_server], 0.0);
        check(&[listens, of_client], 1.0);
        check(&[listens, open], 1.0);
        check(&[of_server], 1.0);
        assert_eq!(waits_of_clients("nonsense\n1 2 3 4\n"), 1.0);
    }

    #[test]
    fn mangled_text_is_nothing() {
        for text in ["", "Tcp", "Tcp: RetransSegs\nTcp: x", "TCP: tw", "a\nb\nc"] {
            assert_eq!(Tcp::parse(text, text, text), Tcp::default(), "{text:?}");
        }
    }
}
