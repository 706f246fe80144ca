//! `millstream load` from the command line to its report, over the simulated world.

use crate::command::{Said, run};
use crate::server::Act;
use crate::sim_platform::SimPlatform;
use mill_load::native::terminal::Terminal;
use mill_load::native::{self, json};
use mill_runtime::time::Duration;
use std::io::{self, Write};

fn load(platform: &SimPlatform, line: &str) -> Said {
    run(platform, &format!("load {line}"))
}

fn answering(millis: u64) -> SimPlatform {
    SimPlatform::new(move |_| Act::answer("hello").after(Duration::from_millis(millis)))
}

#[track_caller]
fn check(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}\nis not in\n{text}");
    }
}

#[test]
fn a_closed_loop_ends_in_a_summary() {
    let said = load(
        &answering(10),
        "-c 4 -t 2 -d 3s --max-p99 11ms http://10.0.0.1/x",
    );
    check(
        &said.out,
        &[
            "GET http://10.0.0.1/x\n4 connections, 2 threads, closed loop, 3.00 s\n",
            " answered + 0 failed + ",
            "  total         10.0 ms    10.0 ms    10.0 ms    10.0 ms    10.0 ms    10.0 ms\n",
            "  held    --max-p99 11.0 ms: p99 10.0 ms\n",
        ],
    );
    check(
        &said.err,
        &["    1 s ", "    2 s ", "p50  10.0 ms", "errors 0  open 4"],
    );
}

#[test]
fn a_stall_shows_in_the_latency_and_not_in_the_raw_time() {
    let platform = SimPlatform::new(|nth| {
        let stall = if nth == 500 { 1000 } else { 1 };
        Act::answer("hello").after(Duration::from_millis(stall))
    });
    let line = "-c 1 -t 1 -d 10s -r 100 --json - http://10.0.0.1/";
    let said = load(&platform, line);
    let results = json::parse(said.out.as_bytes()).expect("standard output is the document");
    let (latency, raw) = (&results.measures.latency, results.measures.raw());
    assert!(raw.percentile(99.0) < Duration::from_millis(2), "{raw:?}");
    let hidden = latency.percentile(99.0);
    assert!(hidden > Duration::from_millis(850), "{hidden:?}");
    let tally = &results.tally;
    assert_eq!(
        tally.started,
        tally.answered + tally.failed() + tally.unfinished()
    );
    check(&said.err, &["The gap at p99", "raw alone does not show it"]);
}

#[test]
fn the_request_is_what_the_options_say() {
    let platform = answering(1);
    let line = "-n 1 -c 1 -X PUT --body a=b -H X-A:1 --user n:p http://10.0.0.1/x?y";
    load(&platform, line);
    let requests = platform.log.requests.borrow();
    let request =
        String::from_utf8(requests.first().expect("one was sent").clone()).unwrap_or_default();
    check(
        &request,
        &[
            "PUT /x?y HTTP/1.1\r\nHost: 10.0.0.1\r\n",
            "Authorization: Basic bjpw\r\nContent-Length: 3\r\nX-A: 1\r\n\r\n",
        ],
    );
}

#[test]
fn invalid_figures_are_status_3_and_reported_even_when_quiet() {
    let said = load(&answering(10), "-q -d 100ms http://10.0.0.1/");
    assert_eq!((said.status, said.out.as_str()), (3, ""));
    check(
        &said.err,
        &["millstream load: the verdict is invalid: 0.10 s were measured: too short"],
    );
}

#[test]
fn a_missed_requirement_is_status_2_and_reported_even_when_quiet() {
    let said = load(
        &answering(10),
        "-q -d 1s --max-p50 5ms --min-rate 1 http://10.0.0.1/",
    );
    assert_eq!((said.status, said.out.as_str()), (2, ""));
    assert_eq!(
        said.err,
        "millstream load: --max-p50 5.00 ms did not hold: p50 10.0 ms\n"
    );
}

#[test]
fn without_a_listener_all_requests_are_counted_as_failed_and_status_is_3() {
    let mut platform = answering(1);
    platform.listens = false;
    let said = load(&platform, "-c 2 -t 1 -d 1s http://10.0.0.1/");
    assert_eq!(said.status, 3);
    check(
        &said.out,
        &[
            " = 0 answered + ",
            "failed (connect): connect failed: ",
            "verdict: invalid",
        ],
    );
}

#[test]
fn a_search_finds_what_a_server_can_do() {
    // One connection and 10 ms an answer: a hundred a second at most.
    let line = "-c 1 -t 1 -d 10s --rate 20 --search p99<200ms http://10.0.0.1/";
    let said = load(&answering(10), line);
    let found = said
        .out
        .split(" was kept at up to ")
        .nth(1)
        .expect("something was found");
    let rate: f64 = found
        .split("/s")
        .next()
        .and_then(|rate| rate.parse().ok())
        .expect("it is a rate");
    assert!((90.0..102.0).contains(&rate), "{rate}");
    check(&said.out, &["open loop at ", "objective\n"]);
    check(&said.err, &["20.0/s", "kept"]);
}

#[test]
fn a_search_without_a_server_ends_at_once_with_a_message() {
    let mut platform = answering(1);
    platform.listens = false;
    let said = load(
        &platform,
        "-c 2 -t 1 -d 2s --search p99<5ms http://10.0.0.1/",
    );
    assert_eq!(said.status, 2);
    assert_eq!(
        said.err.matches("no request was answered").count(),
        2,
        "{}",
        said.err
    );
    check(
        &said.out,
        &["no request was answered, so nothing was found"],
    );
}

#[test]
fn a_search_tries_no_rate_at_which_a_percentile_means_nothing() {
    // An answer takes 10 ms, so the objective is never met.
    let said = load(
        &answering(10),
        "-c 2 -t 1 -d 2s --search p99<5ms http://10.0.0.1/",
    );
    assert_eq!(said.status, 2);
    check(&said.err, &[" 62.5/s", "missed"]);
    // 100 answers in two seconds.
    assert!(!said.err.contains(" 31.2/s"), "{}", said.err);
    check(&said.out, &["was kept at no rate that was tried"]);
}

#[test]
fn the_seconds_of_a_search_are_those_of_its_last_trial() {
    let said = load(
        &answering(1),
        "-c 2 -t 1 -d 900ms --warm-up 0 --search p99<5ms http://10.0.0.1/",
    );
    assert_eq!(said.status, 3);
    let text = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    check(
        &text,
        &[
            "; but the verdict of the trial that confirms it is invalid, see below",
            "0.90 s were measured in the trial that confirms what the search found: too short",
        ],
    );
}

#[test]
fn a_url_without_a_scheme_is_http() {
    let platform = answering(1);
    let said = load(&platform, "-n 1 -c 1 10.0.0.1:80/x");
    check(&said.out, &["GET http://10.0.0.1:80/x"]);
    let said = load(&platform, "-z 2s -c 1 10.0.0.1");
    check(&said.out, &["GET http://10.0.0.1/", "closed loop, 2.00 s"]);
}

#[test]
fn impossible_runs_are_status_1_with_a_message() {
    for case in IMPOSSIBLE.lines() {
        let (line, sentence) = case.split_once(" => ").expect("two parts");
        let said = load(&answering(1), line);
        assert_eq!((said.status, said.out.as_str()), (1, ""), "{line}");
        check(&said.err, &[&format!("millstream load: {sentence}")]);
    }
}

/// Command lines, and how their messages begin.
const IMPOSSIBLE: &str = "http://nowhere.example/ => nowhere.example: no such name in this world
--json /nowhere/a.json http://10.0.0.1/ => --json /nowhere/a.json: No such file
--replay /nowhere http://10.0.0.1/ => --replay /nowhere: No such file
--source fd00::1 http://10.0.0.1/ => --source: 10.0.0.1 has no address of the IP version
--processes 2 http://10.0.0.1/ => several processes are not possible here
--rte 5 http://10.0.0.1/ => --rte is not an option, did you mean --rate?";

#[test]
fn a_closed_pipe_ends_quietly() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let platform = answering(1);
    for line in [
        "-n 20000 http://10.0.0.1/",
        "--help",
        "-n 20000 --csv - http://10.0.0.1/",
    ] {
        let arguments: Vec<Vec<u8>> = line
            .split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect();
        let mut err = Vec::new();
        let status = native::main(
            &arguments,
            &platform,
            &mut Closed,
            &mut err,
            Terminal::default(),
        );
        let err = String::from_utf8_lossy(&err);
        assert_ne!(status, 1, "{line}: {err}");
        assert!(!err.contains("millstream load:"), "{line}: {err}");
    }
}
