//! Every client command of the published experiments: the command as it was printed, its changes for a short run, and
//! the run.

/// Commands in words.
mod line;
/// The server.
mod site;
/// The commands.
mod table;

use crate::wrk::totals;
use line::{Line, Printed};
use site::Site;
use table::{AB, DRAGONFLY, ONLOAD, RUBRIS, RUBRIS_ALONE, TEMPESTA};

/// How many seconds wrk runs until there is an answer: on a busy machine opening thousands of connections may take the
/// first second.
const SECONDS: [&str; 4] = ["1", "2", "4", "8"];

/// Runs a command of wrk's and checks its report.
#[track_caller]
fn check_wrk(site: &Site, row: &str) {
    let mut line = short(site, row);
    let printed = SECONDS
        .iter()
        .find_map(|seconds| {
            line.set("-d", seconds);
            let printed = Printed::from(line.command(site).output().unwrap());
            let is_last = Some(seconds) == SECONDS.last();
            (is_last || totals(&printed.out).requests > 0.0).then_some(printed)
        })
        .unwrap();
    assert_eq!(printed.status, Some(0), "{row}: {}", printed.err);
    check_wrk_lines(&line, &printed);
    check_wrk_figures(site, &line, &printed.out);
}

/// The command of a row as it is run here.
#[track_caller]
fn short(site: &Site, row: &str) -> Line {
    let mut parts = row.split(" => ");
    let mut line = Line::parse(parts.next().unwrap_or_default());
    for changed in parts {
        let (option, value) = changed.split_once(' ').unwrap();
        line.set(option, value);
    }
    line.aim(site);
    line
}

#[track_caller]
fn check_wrk_lines(line: &Line, printed: &Printed) {
    let [threads, connections, seconds] = ["-t", "-c", "-d"].map(|option| line.number(option));
    let life = match line.has("--connreqs") {
        true => format!(", {} requests/connection", line.number("--connreqs")),
        false => String::new(),
    };
    let mut expected = vec![
        format!("Running {seconds}s test @ {}", line.url()),
        format!("  {threads} threads and {connections} connections{life}"),
    ];
    let mut more = |text: &str| expected.push(String::from(text));
    more("  Thread Stats   Avg      Stdev     Max   +/- Stdev");
    more("    Latency ");
    more("    Req/Sec ");
    if line.has("--latency") {
        more("  Latency Distribution");
        for start in ["     50% ", "     75% ", "     90% ", "     99% "] {
            more(start);
        }
    }
    more("  ");
    // The client closes first and keeps each port in TIME_WAIT: there may be none left. On a busy machine thousands of new connections may
    // take longer than the two seconds of a timeout.
    if line.has("--connreqs") && printed.out.contains("Socket errors: ") {
        more("  Socket errors: connect ");
        assert!(
            printed.out.contains(", read 0, write 0, timeout "),
            "{}",
            printed.out
        );
    }
    more("Requests/sec: ");
    more("Transfer/sec: ");
    let lines: Vec<&str> = printed.out.lines().collect();
    let are_expected = lines
        .iter()
        .zip(&expected)
        .all(|(line, start)| line.starts_with(start.as_str()));
    assert!(
        are_expected && lines.len() == expected.len(),
        "{}{expected:#?}",
        printed.out
    );
    assert_eq!(&lines[..3], &expected[..3]);
    let ours = |line: &str| line.starts_with("millstream: ");
    assert!(printed.err.lines().all(ours), "{}", printed.err);
}

#[track_caller]
fn check_wrk_figures(site: &Site, line: &Line, report: &str) {
    let totals = totals(report);
    assert!(totals.requests > 0.0, "{report}");
    let path = line.url().rsplit_once(':').unwrap().1;
    let path = &path[path.find('/').unwrap()..];
    let close = if line.has("Connection: close") {
        "Connection: close\r\n"
    } else {
        ""
    };
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\n{close}\r\n",
        site.address
    );
    let each = site.answer_bytes(&request) as f64;
    // Of each connection one answer may be incomplete, and sizes are printed with three digits or more.
    let most = (totals.requests + line.number("-c") as f64) * each;
    let bytes = totals.requests * each * 0.99..most * 1.01;
    assert!(bytes.contains(&totals.bytes), "{bytes:?} {report}");
    let rate: f64 = figure(report, "Requests/sec:").parse().unwrap();
    let seconds = line.number("-d") as f64;
    let ran = totals.requests / rate;
    assert!(
        (seconds * 0.9..seconds * 10.0).contains(&ran),
        "{ran} {report}"
    );
}

/// The word after a label.
fn figure<'a>(report: &'a str, label: &str) -> &'a str {
    let line = report.lines().find_map(|line| line.strip_prefix(label));
    line.unwrap_or_else(|| panic!("no {label} in {report}"))
        .split_whitespace()
        .next()
        .unwrap_or_default()
}

/// Checks ab's output, and returns its requests per second.
#[track_caller]
fn check_ab(site: &Site, line: &Line, printed: &Printed) -> f64 {
    let report = &printed.out;
    assert_eq!(printed.status, Some(0), "{line:?} {} {report}", printed.err);
    let [requests, concurrency] = ["-n", "-c"].map(|option| line.number(option));
    let path = &line.url()[line.url().rfind('/').unwrap()..];
    let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", site.address);
    let each = site.answer_bytes(&request);
    let check =
        |label: &str, expected: &str| assert_eq!(figure(report, label), expected, "{report}");
    check(
        "Server Software:",
        concat!("millstream/", env!("CARGO_PKG_VERSION")),
    );
    check("Server Port:", &site.address.port().to_string());
    check("Document Path:", path);
    check("Concurrency Level:", &concurrency.to_string());
    check("Complete requests:", &requests.to_string());
    check("Failed requests:", "0");
    check("Total transferred:", &(requests * each).to_string());
    let content: u64 = figure(report, "Document Length:").parse().unwrap();
    check("HTML transferred:", &(requests * content).to_string());
    assert!(!report.contains("Non-2xx responses"), "{report}");
    for row in [
        "Connect:",
        "Processing:",
        "Waiting:",
        "Total:",
        "  50% ",
        " 100% ",
    ] {
        assert!(figure(report, row).parse::<u32>().is_ok(), "{row} {report}");
    }
    let took: f64 = figure(report, "Time taken for tests:").parse().unwrap();
    let rate: f64 = figure(report, "Requests per second:").parse().unwrap();
    assert!(
        (rate * took / requests as f64 - 1.0).abs() < 0.05,
        "{report}"
    );
    rate
}

fn check_all_wrk(rows: &str) {
    for row in rows.lines() {
        // A server each: ports that an earlier row left in TIME_WAIT are free towards another address.
        check_wrk(&Site::start(), row);
    }
}

#[test]
fn tempesta_s_commands_run() {
    check_all_wrk(TEMPESTA);
}

#[test]
fn onload_s_commands_run() {
    check_all_wrk(ONLOAD);
}

#[test]
fn dragonfly_s_commands_run() {
    check_all_wrk(DRAGONFLY);
}

#[test]
fn rubris_s_commands_run() {
    check_all_wrk(RUBRIS);
}

#[test]
fn rubris_s_commands_on_one_host_run() {
    check_all_wrk(RUBRIS_ALONE);
}

/// No published experiment ran wrk2; this is the first command of its own README.
#[test]
fn wrk2_s_first_command_runs_through_its_link() {
    let site = Site::start();
    let command = "wrk2 -t2 -c100 -d30s -R2000 http://127.0.0.1:80/index.html => -d 1";
    let line = short(&site, command);
    let printed = Printed::from(line.command(&site).output().unwrap());
    assert_eq!(printed.status, Some(0), "{}", printed.err);
    let banner = format!("Running 1s test @ {}\n", line.url());
    assert!(printed.out.starts_with(&banner), "{}", printed.out);
    let requests = totals(&printed.out).requests;
    assert!((1.0..2100.0).contains(&requests), "{}", printed.out);
}

#[test]
fn ab_s_commands_run() {
    let site = Site::start();
    for row in AB.lines() {
        let line = short(&site, row);
        let printed = Printed::from(line.command(&site).output().unwrap());
        check_ab(&site, &line, &printed);
    }
}

/// The F-Stack experiment added up what 10 to 40 processes of ab printed.
#[test]
fn many_processes_of_ab_run_at_a_time() {
    let site = Site::start();
    let command = "ab -n 800000 -c 100 http://www.example.com/logo.svg => -n 200";
    let line = short(&site, command);
    for processes in [10, 20, 30, 40] {
        let spawn = |_| {
            let mut command = line.command(&site);
            command.stdout(std::process::Stdio::piped());
            command.stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        };
        let children: Vec<_> = (0..processes).map(spawn).collect();
        for child in children {
            let printed = Printed::from(child.wait_with_output().unwrap());
            assert!(check_ab(&site, &line, &printed) > 0.0);
        }
    }
}

/// dpdk-httpperf's table: processes times connections, without the cells that have fewer connections than processes.
#[test]
fn the_sweep_of_processes_and_connections_has_the_published_rows() {
    let site = Site::start();
    let command = "millstream load --sweep 'processes=1,2,4,6,8 connections=1..128' -d 10s http://10.0.0.2/favicon.ico => -d 50ms";
    let line = short(&site, command);
    let printed = Printed::from(line.command(&site).output().unwrap());
    assert_eq!(printed.status, Some(0), "{}", printed.err);
    let mut lines = printed.out.lines();
    let head = "PROC\tCONN\tRPSavg\tRPSmax\tLAT50\tLAT75\tLAT90\tLAT99\tLATmax\tCPUc\tCPUs";
    assert_eq!(lines.next(), Some(head), "{}", printed.out);
    let mut cells = Vec::new();
    for line in lines {
        let columns: Vec<&str> = line.split('\t').collect();
        assert_eq!(columns.len(), 11, "{line}");
        assert_ne!(columns[2], "0.00", "{line}");
        for time in &columns[4..9] {
            assert!(time.ends_with('s'), "{line}");
        }
        cells.push((columns[0].parse().unwrap(), columns[1].parse().unwrap()));
    }
    let connections = [128, 64, 32, 16, 8, 4, 2, 1];
    let expected: Vec<(u32, u32)> = [1, 2, 4, 6, 8]
        .into_iter()
        .flat_map(|processes| connections.map(|connections| (processes, connections)))
        .filter(|(processes, connections)| processes <= connections)
        .collect();
    assert_eq!(expected.len(), 31);
    assert_eq!(cells, expected);
}
