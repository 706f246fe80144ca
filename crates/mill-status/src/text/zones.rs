//! The tables of zones: servers and locations with a `status_zone`, and those of limits.

use super::columns::{Columns, Side};
use super::limits;
use super::number::{bytes, micros, short};
use crate::document::Status;
use crate::tables::Zone;

/// Each zone in one line, those of limits in a table of their own; classes of answers that there were none of are left out.
pub fn zones(status: &Status) -> String {
    let parts = status.parts.iter();
    let mut zones = parts.clone().flat_map(|part| &part.zones).peekable();
    let mut limits = parts.flat_map(|part| &part.limits).peekable();
    let is_limited = limits.peek().is_some();
    let limits = is_limited.then(|| limits::limits(limits));
    if zones.peek().is_none() {
        let none = || String::from("no servers or locations with a status_zone\n");
        return limits.unwrap_or_else(none);
    }
    let right = Side::Right;
    let mut table = Columns::new(&[
        ("ZONE", Side::Left),
        ("OF", Side::Left),
        ("ACTIVE", right),
        ("REQUESTS", right),
        ("CUT", right),
        ("RECEIVED", right),
        ("SENT", right),
        ("P50", right),
        ("P99", right),
        ("ANSWERS", Side::Left),
    ]);
    zones.for_each(|zone| table.push(row(zone)));
    let limits = limits.map(|limits| format!("\n{limits}"));
    table.render() + &limits.unwrap_or_default()
}

fn row(zone: &Zone) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| String::from("-"));
    let answers = (1..).zip(zone.answers).filter(|(_, count)| *count > 0);
    let answers: Vec<String> = answers
        .map(|(class, count)| format!("{class}xx:{}", short(count)))
        .collect();
    vec![
        zone.name.clone(),
        zone.kind.clone(),
        or_dash(zone.processing.map(short)),
        short(zone.requests),
        short(zone.discarded),
        bytes(zone.received_bytes),
        bytes(zone.sent_bytes),
        or_dash(zone.p50_us.map(micros)),
        or_dash(zone.p99_us.map(micros)),
        answers.join(" "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Limit, Part};

    #[test]
    fn zones_of_servers_and_locations_stand_in_one_table() {
        let site = Zone {
            name: "site".into(),
            kind: "server".into(),
            processing: Some(3),
            requests: 1_234_567,
            answers: [0, 1_230_000, 4, 0, 7],
            discarded: 2,
            received_bytes: 5_000_000,
            sent_bytes: 7_000_000_000,
            p50_us: Some(820),
            p99_us: Some(12_000),
        };
        let shop = Zone {
            name: "shop".into(),
            kind: "location".into(),
            ..Zone::default()
        };
        let status = Status {
            parts: vec![Part {
                zones: vec![site, shop],
                ..Part::default()
            }],
            ..Status::default()
        };
        let text = zones(&status);
        let expected = "\
ZONE  OF        ACTIVE  REQUESTS  CUT  RECEIVED      SENT    P50   P99  ANSWERS
site  server         3    1.23 M    2  4.77 MiB  6.52 GiB  820us  12ms  2xx:1.23 M 3xx:4 5xx:7
shop  location       -         0    0       0 B       0 B      -     -
";
        assert_eq!(text, expected);
        let limit = |name: &str, kind: &str, delayed| Limit {
            name: name.into(),
            kind: kind.into(),
            keys: 12,
            passed: 1_000_000,
            delayed,
            rejected: 5,
            dry_run: 0,
        };
        let clients = limit("clients", "limit_req", Some(7));
        let many = limit("many", "limit_conn", None);
        let part = Part {
            limits: vec![clients, many],
            ..Part::default()
        };
        let expected_limits = "\
LIMIT    OF          KEYS  PASSED  DELAYED  REJECTED  DRY RUN
clients  limit_req     12  1.00 M        7         5        0
many     limit_conn    12  1.00 M        -         5        0
";
        let mut limited = status.clone();
        limited.parts.push(part.clone());
        assert_eq!(zones(&limited), format!("{expected}\n{expected_limits}"));
        limited.parts = vec![part];
        assert_eq!(zones(&limited), expected_limits);
        assert_eq!(
            zones(&Status::default()),
            "no servers or locations with a status_zone\n"
        );
    }
}
