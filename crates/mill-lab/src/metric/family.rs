//! The members of families: the meaning of the parts of a name after its stem, for a table's heading.

use super::Unit::{self, GigabitsPerSecond, PerSecond, Percent, Seconds, Share};

/// What a member has of its own; the family's where it has nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) title: String,
    pub(super) unit: Option<Unit>,
    pub(super) digits: Option<usize>,
}

/// The member `rest` of the family `stem`, whose own title is `title`.
pub(super) fn member(stem: &str, title: &str, rest: &str) -> Member {
    if OWN_NAMES.contains(&stem) {
        // Symbols and exits are names of others: an underscore is part of them.
        let (name, figure) = rest.split_once('.').unwrap_or((rest, ""));
        let plain = match stem {
            // A table of symbols needs no word before each.
            "profile" => named(name, figure),
            _ => named(&format!("{title} {name}"), figure),
        };
        return Member {
            title: plain,
            unit: unit_of(figure),
            digits: None,
        };
    }
    let (side, figure) = match rest.split_once('.') {
        Some((first, figure)) if is_side(first) => (first, figure),
        None if is_side(rest) => (rest, ""),
        _ => ("", rest),
    };
    let mut made = figure_of(stem, title, figure);
    if !side.is_empty() {
        made.title.push_str(", ");
        made.title.push_str(&side_word(side));
    }
    made
}

fn figure_of(stem: &str, title: &str, figure: &str) -> Member {
    let known = KNOWN.iter().filter(|(known, ..)| *known == stem).find_map(
        |&(_, start, words, unit, digits)| {
            let rest = figure.strip_prefix(start)?;
            let rest = match rest.strip_prefix('.') {
                Some(rest) => rest,
                None if rest.is_empty() => "",
                None => return None,
            };
            Some((words, rest, unit, digits))
        },
    );
    match known {
        Some((words, rest, unit, digits)) => Member {
            title: named(words, rest),
            unit: Some(unit),
            digits: Some(digits),
        },
        None => Member {
            title: named(title, figure),
            unit: unit_of(figure),
            digits: None,
        },
    }
}

/// "Latency p99", "Latency, mean", "TCP listen overflows".
fn named(title: &str, figure: &str) -> String {
    if figure.is_empty() {
        return String::from(title);
    }
    if let Some(digits) = figure.strip_prefix('p')
        && !digits.is_empty()
        && digits.bytes().all(|digit| digit.is_ascii_digit())
    {
        let (whole, part) = digits.split_at(digits.len().min(2));
        let point = if part.is_empty() || digits == "100" {
            String::from(digits)
        } else {
            format!("{whole}.{part}")
        };
        return format!("{title} p{point}");
    }
    let between = if title == "TCP" { " " } else { ", " };
    let words = figure
        .trim_end_matches("_percent")
        .trim_end_matches("_share");
    let words = words.replace("_per_s", "/s").replace(['.', '_'], " ");
    format!("{title}{between}{words}")
}

/// Units that the last part of a name contains.
fn unit_of(figure: &str) -> Option<Unit> {
    [
        ("_percent", Percent),
        ("_share", Share),
        ("_per_s", PerSecond),
    ]
    .into_iter()
    .find_map(|(ending, unit)| figure.ends_with(ending).then_some(unit))
}

fn is_side(part: &str) -> bool {
    matches!(part, "server" | "client" | "both" | "machine") || numbered(part).is_some()
}

/// `cpu3` and `node0`.
fn numbered(part: &str) -> Option<(&'static str, &str)> {
    [("cpu", "CPU"), ("node", "node")]
        .into_iter()
        .find_map(|(start, word)| {
            let number = part.strip_prefix(start)?;
            let is_number = number.parse::<u32>().is_ok();
            is_number.then_some((word, number))
        })
}

fn side_word(side: &str) -> String {
    match numbered(side) {
        Some((word, number)) => format!("{word} {number}"),
        None if side == "machine" => String::from("whole machine"),
        None if side == "both" => String::from("both sides"),
        None => String::from(side),
    }
}

/// Families whose members are named by others.
const OWN_NAMES: [&str; 2] = ["profile", "vm_exits"];

/// Stem, the beginning of the rest, title, unit, decimals.
const KNOWN: [(&str, &str, &str, Unit, usize); 17] = [
    (
        "interface",
        "rx_packets_per_s",
        "Packets received/s",
        PerSecond,
        0,
    ),
    (
        "interface",
        "tx_packets_per_s",
        "Packets sent/s",
        PerSecond,
        0,
    ),
    ("interface", "rx_kib_per_s", "KiB received/s", PerSecond, 2),
    ("interface", "tx_kib_per_s", "KiB sent/s", PerSecond, 2),
    (
        "interface",
        "utilisation_percent",
        "Link in use",
        Percent,
        2,
    ),
    (
        "tcp",
        "retransmitted_segments",
        "TCP segments sent again",
        Unit::Count,
        0,
    ),
    (
        "tcp",
        "retransmitted_share",
        "TCP segments sent again, share",
        Share,
        4,
    ),
    ("tcp", "syn_retransmits", "SYNs sent again", Unit::Count, 0),
    ("tcp", "time_wait", "Sockets in TIME_WAIT", Unit::Count, 0),
    ("path", "round_trip", "Round trip", Seconds, 6),
    (
        "path",
        "bulk_gbit_per_s",
        "Bulk TCP, Gb/s",
        GigabitsPerSecond,
        2,
    ),
    (
        "path",
        "bulk_retransmissions",
        "Bulk TCP, segments sent again",
        Unit::Count,
        0,
    ),
    ("hardware", "dtlb_loads", "dTLB loads/s", PerSecond, 0),
    ("hardware", "dtlb_misses", "dTLB misses/s", PerSecond, 0),
    ("hardware", "cache_misses", "Cache misses/s", PerSecond, 0),
    (
        "softirqs_per_s",
        "net_rx",
        "Softirqs/s, NET_RX",
        PerSecond,
        0,
    ),
    (
        "softirqs_per_s",
        "net_tx",
        "Softirqs/s, NET_TX",
        PerSecond,
        0,
    ),
];
