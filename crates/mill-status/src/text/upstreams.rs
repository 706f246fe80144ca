//! The table of groups of servers.

use super::columns::{Columns, Side};
use super::number::{micros, short};
use crate::document::Status;
use crate::tables::UpstreamServer;

/// Each server in two lines, a group's servers below its name.
pub fn upstreams(status: &Status) -> String {
    let parts = status.parts.iter();
    let servers: Vec<&UpstreamServer> = parts.flat_map(|part| &part.upstreams).collect();
    if servers.is_empty() {
        return String::from("no groups of upstream servers\n");
    }
    let right = Side::Right;
    let mut table = Columns::new(&[
        ("GROUP, SERVER", Side::Left),
        ("STATE", Side::Left),
        ("WEIGHT", right),
        ("ACTIVE", right),
        ("REQUESTS", right),
        ("FAILS", right),
        ("CHECKS", right),
        ("FAILED", right),
        ("LAST CHECK", Side::Left),
    ]);
    for server in &servers {
        table.push(row(server));
    }
    let text = table.render();
    let mut lines = text.lines();
    let mut page = format!("{}\n", lines.next().unwrap_or_default());
    let mut group = None;
    for (server, line) in servers.iter().zip(lines) {
        if group != Some(&server.group) {
            page.push_str(&format!("{}\n", server.group));
            group = Some(&server.group);
        }
        page.push_str(&format!("{line}\n{}", detail(server)));
    }
    page
}

fn row(server: &UpstreamServer) -> Vec<String> {
    let backup = if server.is_backup { " (backup)" } else { "" };
    let last = match server.last_check_passed {
        None => "-",
        Some(true) => "passed",
        Some(false) => "FAILED",
    };
    vec![
        format!("  {}{backup}", server.server),
        server.state.clone(),
        server.weight.to_string(),
        server.active.to_string(),
        short(server.requests),
        short(server.fails),
        short(server.checks),
        short(server.checks_failed),
        String::from(last),
    ]
}

/// The second line: answers by class, and times; none before the first answer.
fn detail(server: &UpstreamServer) -> String {
    let answers = (1..).zip(server.answers).filter(|(_, count)| *count > 0);
    let mut words: Vec<String> = answers
        .map(|(class, count)| format!("{class}xx:{}", short(count)))
        .collect();
    let times = [
        ("head", server.header_p50_us, server.header_p99_us),
        ("end", server.response_p50_us, server.response_p99_us),
    ];
    for (name, p50, p99) in times {
        if let (Some(p50), Some(p99)) = (p50, p99) {
            words.push(format!("{name} p50:{} p99:{}", micros(p50), micros(p99)));
        }
    }
    match words.is_empty() {
        true => String::new(),
        false => format!("        {}\n", words.join("  ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Part;

    #[test]
    fn each_server_stands_below_its_group() {
        let server = |group: &str, server: &str| UpstreamServer {
            group: group.into(),
            server: server.into(),
            state: "up".into(),
            weight: 1,
            ..UpstreamServer::default()
        };
        let busy = UpstreamServer {
            is_backup: true,
            active: 3,
            requests: 1_234_567,
            answers: [0, 1_230_000, 4, 56, 7],
            fails: 1,
            checks: 10,
            checks_failed: 2,
            last_check_passed: Some(false),
            header_p50_us: Some(820),
            header_p99_us: Some(5200),
            response_p50_us: Some(900),
            response_p99_us: Some(12_000),
            ..server("app", "10.0.0.2:8080")
        };
        let upstreams = vec![
            server("app", "10.0.0.1:8080"),
            busy,
            server("b", "unix:/b.sock"),
        ];
        let status = Status {
            parts: vec![Part {
                upstreams,
                ..Part::default()
            }],
            ..Status::default()
        };
        let text = super::upstreams(&status);
        let expected = "\
GROUP, SERVER             STATE  WEIGHT  ACTIVE  REQUESTS  FAILS  CHECKS  FAILED  LAST CHECK
app
  10.0.0.1:8080           up          1       0         0      0       0       0  -
  10.0.0.2:8080 (backup)  up          1       3    1.23 M      1      10       2  FAILED
        2xx:1.23 M  3xx:4  4xx:56  5xx:7  head p50:820us p99:5.20ms  end p50:900us p99:12ms
b
  unix:/b.sock            up          1       0         0      0       0       0  -
";
        assert_eq!(text, expected);
        let width = text.lines().map(|line| line.chars().count()).max();
        assert!(width <= Some(100), "{width:?}");
    }
}
