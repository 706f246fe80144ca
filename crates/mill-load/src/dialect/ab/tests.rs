//! Whole command lines over a platform that replays events: no load is run, everything is printed.

use super::main;
use crate::failure::{Failure, FailureKind};
use crate::generator::Part;
use crate::local::Abort;
use crate::plan::{AfterFailure, Ending, Life, Plan};
use crate::platform::{Machine, Platform, PlatformError, RunOutcome, ThreadInput, Watch};
use crate::record::Record;
use crate::request::Requests;
use crate::sample::Sample;
use crate::tally::Tally;
use crate::target::Endpoint;
use core::cell::RefCell;
use core::net::SocketAddr;
use mill_runtime::stream::StreamError;
use mill_runtime::time::{Duration, Instant, UnixTime};

/// An event of a run; times in µs after its beginning.
#[derive(Clone, Copy)]
enum Event {
    /// Start, connect, wait, total; content; status.
    Answer([u64; 4], u64, u16),
    Fail(Failure, u64),
}

/// Replays `events`; keeps the plan and the bytes that would have been sent.
struct Played {
    events: Vec<Event>,
    head: &'static [u8],
    keep_alive: bool,
    interrupted: bool,
    aborted: Option<Failure>,
    /// Addresses that refuse connections.
    refusing: Vec<SocketAddr>,
    seen: RefCell<Option<(Plan, Vec<u8>, bool)>>,
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nServer: mill/1 (x)\r\n\r\n";

impl Played {
    fn new(events: &[Event]) -> Self {
        Self {
            events: events.to_vec(),
            head: HEAD,
            keep_alive: false,
            interrupted: false,
            aborted: None,
            refusing: Vec::new(),
            seen: RefCell::new(None),
        }
    }
}

impl Platform for Played {
    fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        match host {
            "nowhere" => Err(String::from("Name or service not known")),
            "both" => Ok(vec![
                SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port)),
                SocketAddr::from(([127, 0, 0, 1], port)),
            ]),
            "10.1.1.1" => Ok(vec![SocketAddr::from(([10, 1, 1, 1], port))]),
            _ => Ok(vec![SocketAddr::from(([192, 0, 2, 7], port))]),
        }
    }

    fn accepts(&self, address: SocketAddr) -> bool {
        !self.refusing.contains(&address)
    }

    fn wall_clock(&self) -> UnixTime {
        UnixTime::from_seconds(1_795_237_723)
    }

    fn cpus(&self) -> u32 {
        1
    }

    fn run<R: Record>(
        &self,
        plan: &Plan,
        mut inputs: Vec<ThreadInput<R>>,
        watch: &mut dyn Watch<R::Interval>,
    ) -> Result<RunOutcome<R>, PlatformError> {
        let ThreadInput {
            requests,
            mut recorder,
        } = inputs.pop().expect("one thread");
        let Requests::Mix(mix) = requests else {
            panic!("ab sends the same request always");
        };
        let (rendered, _) = &mix[0];
        let seen = (
            plan.clone(),
            rendered.bytes.to_vec(),
            rendered.batch.is_head,
        );
        *self.seen.borrow_mut() = Some(seen);
        let at = |us: u64| Instant::from_nanos(7_000_000 + us * 1000);
        recorder.on_begin(at(0));
        watch.on_begin();
        let mut tally = Tally::default();
        for event in &self.events {
            match *event {
                Event::Answer([start, connect, wait, total], content, status) => {
                    if recorder.wants_head() {
                        recorder.on_head(self.head, self.head.len());
                    }
                    let sent = at(start + connect);
                    recorder.on_sample(&Sample {
                        connection: 0,
                        intended: at(start),
                        started: at(start),
                        connected: (!self.keep_alive).then_some(sent),
                        sent,
                        first_byte: at(start + connect + wait),
                        done: at(start + total),
                        status,
                        head_bytes: self.head.len() as u64,
                        content_bytes: content,
                        bytes: self.head.len() as u64 + content,
                        keep_alive: self.keep_alive,
                    });
                    tally.answered += 1;
                    tally.bytes_received += self.head.len() as u64 + content;
                    tally.content_bytes += content;
                }
                Event::Fail(failure, us) => recorder.on_failure(failure, at(us)),
            }
            tally.bytes_sent += rendered.bytes.len() as u64;
            let interval = recorder.cut(at(0), &tally);
            watch.on_interval(0, Duration::ZERO, interval);
        }
        Ok(RunOutcome {
            parts: vec![Part {
                recorder,
                tally,
                measured: Duration::from_millis(1500),
                aborted: self.aborted.map(Abort::Failure),
                gaps: Vec::new(),
                longest: Duration::ZERO,
                script: None,
            }],
            measured: Duration::from_millis(1500),
            interrupted: self.interrupted,
            machine: Machine::default(),
        })
    }
}

/// Output, errors, status.
fn outcome(platform: &Played, line: &[&str]) -> (String, String, u8) {
    let arguments: Vec<Vec<u8>> = line.iter().copied().map(Vec::from).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = main(&arguments, platform, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(out), text(err), status)
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

const BANNER: &str = "\
This is ApacheBench, Version 2.3 <$Revision$>
Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/
Licensed to The Apache Software Foundation, http://www.apache.org/

";

/// Four answers, one after the other: 12 bytes each, the third one shorter.
fn four() -> Played {
    Played::new(&[
        Event::Answer([0, 1_000, 3_000, 10_000], 12, 200),
        Event::Answer([10_000, 2_000, 20_000, 30_000], 12, 200),
        Event::Answer([40_000, 1_000, 5_000, 20_000], 5, 404),
        Event::Answer([60_000, 1_400, 7_000, 40_000], 12, 200),
    ])
}

#[test]
fn a_report_is_abs_to_the_byte() {
    let (out, err, status) = outcome(&four(), &words("-n 4 -c 2 http://a.example:8080/x?y"));
    let report = "\
Benchmarking a.example (be patient).....done


Server Software:        mill/1
Server Hostname:        a.example
Server Port:            8080

Document Path:          /x?y
Document Length:        12 bytes

Concurrency Level:      2
Time taken for tests:   0.100 seconds
Complete requests:      4
Failed requests:        1
   (Connect: 0, Receive: 0, Length: 1, Exceptions: 0)
Non-2xx responses:      1
Total transferred:      197 bytes
HTML transferred:       41 bytes
Requests per second:    40.00 [#/sec] (mean)
Time per request:       50.000 [ms] (mean)
Time per request:       25.000 [ms] (mean, across all concurrent requests)
Transfer rate:          1.92 [Kbytes/sec] received

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        1    1   0.5      1       2
Processing:     9   24  12.6     28      39
Waiting:        3    9   7.7      7      20
Total:         10   25  12.9     30      40

Percentage of the requests served within a certain time (ms)
  50%     30
  66%     30
  75%     40
  80%     40
  90%     40
  95%     40
  98%     40
  99%     40
 100%     40 (longest request)
";
    assert_eq!(out, format!("{BANNER}{report}"));
    // Even numbers: ab's median is the upper of two, ours lies between them.
    assert_eq!(
        err,
        "millstream: ab's median lies beyond the middle, that of the total times is 25.000 ms\n"
    );
    assert_eq!(status, 0);
}

#[test]
fn the_plan_is_what_the_options_say() {
    let plan = |line: &str| {
        let platform = four();
        outcome(&platform, &words(line));
        platform.seen.take().expect("a run").0
    };
    let plain = plan("-n 9 -c 3 a.example:81/");
    assert_eq!((plain.connections, plain.threads), (3, 1));
    assert_eq!(plain.stop.requests, Some(9));
    assert_eq!(plain.stop.after, None);
    assert_eq!(
        (plain.life, plain.ending),
        (Life::Requests(1), Ending::Close)
    );
    assert_eq!(plain.timeout, Some(Duration::from_secs(30)));
    assert!(!plain.nodelay);
    let address = SocketAddr::from(([192, 0, 2, 7], 81));
    assert_eq!(plain.endpoints, [Endpoint::Ip(address)]);
    let AfterFailure::AbortOn(kinds) = plain.after_failure else {
        panic!("failures end ab's runs");
    };
    assert!(kinds.contains(&FailureKind::Reset));
    assert!(!kinds.contains(&FailureKind::Garbage));

    let kept = plan("-k -r -t 3 -s 7 -B 10.1.1.1 -X proxy:3128 a.example/");
    assert_eq!(
        (kept.life, kept.ending),
        (Life::Unlimited, Ending::FramedOrClose)
    );
    assert_eq!(kept.stop.requests, Some(50_000));
    assert_eq!(kept.stop.after, Some(Duration::from_secs(3)));
    assert_eq!(kept.timeout, Some(Duration::from_secs(7)));
    let source: core::net::IpAddr = "10.1.1.1".parse().unwrap();
    assert_eq!(kept.sources.addresses, [source]);
    let proxy = SocketAddr::from(([192, 0, 2, 7], 3128));
    assert_eq!(kept.endpoints, [Endpoint::Ip(proxy)]);
    let AfterFailure::AbortOn(kinds) = kept.after_failure else {
        panic!("some failures end ab's runs always");
    };
    assert!(!kinds.contains(&FailureKind::Reset));
}

#[test]
fn a_name_with_several_addresses_is_tried_in_their_order() {
    let chosen = |line: &str, refusing: &[&str]| {
        let mut platform = four();
        platform.refusing = refusing.iter().map(|text| text.parse().unwrap()).collect();
        outcome(&platform, &words(line));
        platform.seen.take().expect("a run").0.endpoints[0].to_string()
    };
    assert_eq!(chosen("both/", &[]), "[::1]:80");
    assert_eq!(chosen("both/", &["[::1]:80"]), "127.0.0.1:80");
    let all = ["[::1]:80", "127.0.0.1:80"];
    assert_eq!(chosen("both/", &all), "127.0.0.1:80");
    assert_eq!(chosen("-B 10.1.1.1 both/", &[]), "127.0.0.1:80");
}

#[test]
fn the_first_failure_ends_a_run_and_is_not_counted() {
    let reset = Failure::Stream(StreamError::Reset);
    let mut platform = Played::new(&[
        Event::Answer([0, 1_000, 1_000, 3_000], 12, 200),
        Event::Answer([3_000, 1_000, 1_000, 3_000], 12, 200),
        Event::Fail(reset, 7_000),
    ]);
    platform.aborted = Some(reset);
    let (out, err, status) = outcome(&platform, &words("-n 9 a.example/"));
    let rest = "Benchmarking a.example (be patient)...Total of 2 requests completed\n";
    assert_eq!(out, format!("{BANNER}{rest}"));
    let (said, ours) = err.split_once("millstream: ").expect("a line of ours");
    assert_eq!(said, "apr_socket_recv: Connection reset by peer (104)\n");
    assert_eq!(ours.lines().count(), 1);
    assert_eq!(status, 104);

    let refused = Failure::Connect(StreamError::Refused);
    let mut platform = Played::new(&[Event::Fail(refused, 100)]);
    platform.aborted = Some(refused);
    let (out, err, status) = outcome(&platform, &words("-n 9 a.example/"));
    assert_eq!(
        out,
        format!("{BANNER}Benchmarking a.example (be patient)...")
    );
    assert!(err.starts_with("apr_socket_recv: Connection refused (111)\n"));
    assert_eq!(status, 111);
}

#[test]
fn a_run_that_goes_on_counts_failures_once_and_leaves_them_out_of_the_times() {
    let platform = Played::new(&[
        Event::Answer([0, 10_000, 10_000, 30_000], 12, 200),
        Event::Fail(Failure::Stream(StreamError::Reset), 40_000),
        Event::Fail(Failure::Connect(StreamError::Refused), 50_000),
    ]);
    let (out, err, status) = outcome(&platform, &words("-r -n 3 a.example/"));
    let counts = "Complete requests:      3\nFailed requests:        2\n   \
                  (Connect: 1, Receive: 1, Length: 0, Exceptions: 0)\n";
    assert!(out.contains(counts), "{out}");
    let times = "Total:         30   30   0.0     30      30\n";
    assert!(out.ends_with(times), "one sample has no percentiles: {out}");
    assert!(err.starts_with("millstream: 2 requests failed without an answer"));
    assert_eq!(status, 0);
}

#[test]
fn an_interrupted_run_is_reported_and_fails() {
    let mut platform = four();
    platform.interrupted = true;
    let (out, err, status) = outcome(&platform, &words("-n 500 -w a.example/"));
    assert!(out.starts_with("<p>\n This is ApacheBench"), "{out}");
    assert!(
        out.contains("</p>\n<p>\n\n\nServer Software:        mill/1\n"),
        "{out}"
    );
    assert!(out.contains("Time taken for tests:   1.500 seconds\n"));
    assert!(!err.contains("Finished"), "{err}");
    assert_eq!(status, 1);
}

#[test]
fn long_runs_tell_their_progress_on_stderr() {
    let platform = Played::new(&[Event::Answer([0, 0, 0, 50_000], 1, 200); 250]);
    let (out, err, _) = outcome(&platform, &words("-n 250 a.example/"));
    assert!(out.contains("(be patient)\n\n\nServer"), "{out}");
    let expected = "Completed 100 requests\nCompleted 200 requests\nFinished 250 requests\n";
    assert_eq!(err, expected);
    let (out, err, _) = outcome(&platform, &words("-q -n 250 a.example/"));
    assert!(out.contains("(be patient).....done\n"), "{out}");
    assert_eq!(err, "");
}

#[test]
fn requests_and_responses_are_shown_with_verbosity() {
    let platform = Played::new(&[Event::Answer([0, 0, 0, 50_000], 1, 404)]);
    let (out, _, _) = outcome(&platform, &words("-v 2 a.example/"));
    let request =
        "GET / HTTP/1.0\r\nHost: a.example\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n";
    let head = std::str::from_utf8(HEAD).unwrap();
    let shown = format!(
        "(be patient)...INFO: GET header == \n---\n{request}\n---\n\
         LOG: header received:\n{head}\nWARNING: Response code not 2xx (404)\n..done\n"
    );
    assert!(out.contains(&shown), "{out}");
}

#[test]
fn a_body_is_sent_and_its_bytes_are_reported() {
    let path = std::env::temp_dir().join(format!("mill-load-ab-body-{}", std::process::id()));
    std::fs::write(&path, "a=1").unwrap();
    let platform = Played::new(&[Event::Answer([0, 0, 0, 1_000_000], 985, 200)]);
    let file = path.to_str().unwrap();
    let (out, _, _) = outcome(&platform, &["-p", file, "a.example/"]);
    std::fs::remove_file(&path).unwrap();
    let (_, sent, is_head) = platform.seen.take().unwrap();
    assert!(sent.ends_with(b"\r\n\r\na=1"));
    assert!(!is_head);
    assert!(out.contains(&format!("Total body sent:        {}\n", sent.len())));
    let rates = "Transfer rate:          1.00 [Kbytes/sec] received\n                        \
                 0.12 kb/s sent\n                        1.12 kb/s total\n";
    assert!(out.contains(rates), "{out}");
}

#[test]
fn files_are_written_where_they_are_asked_for() {
    let folder = std::env::temp_dir().join(format!("mill-load-ab-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (csv, plot) = (path("csv"), path("plot"));
    let line = ["-n", "4", "-e", &csv, "-g", &plot, "a.example/"];
    assert_eq!(outcome(&four(), &line).2, 0);
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(csv.starts_with("Percentage served,Time in ms\n0,10.000\n1,10.000\n"));
    let plot = std::fs::read_to_string(plot).unwrap();
    let first = plot.lines().nth(1).unwrap();
    assert_eq!(first, "Sat Nov 21 05:08:43 2026\t1795237723\t1\t9\t10\t3");
    let nowhere = path("no/where");
    let (_, err, status) = outcome(&four(), &["-n", "4", "-e", &nowhere, "a.example/"]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(
        err,
        "Cannot open CSV output file: No such file or directory\n"
    );
    assert_eq!(status, 1);
}

#[test]
fn command_lines_without_a_run_have_abs_messages_and_status() {
    let check = |line: &str, said: &str, status: u8| {
        let platform = four();
        let (_, err, exit) = outcome(&platform, &words(line));
        assert_eq!((err.lines().next(), exit), (Some(said), status), "{line}");
        assert!(platform.seen.take().is_none());
    };
    check("", "ab: wrong number of arguments", 22);
    check("-n", "ab: option requires an argument -- n", 22);
    check("-n 0 a/", "Invalid number of requests", 1);
    check("-c 0 a/", "apr_pollset_poll: Invalid argument (22)", 22);
    let unknown = "apr_sockaddr_info_get() for nowhere: Name or service not known (670002)";
    check("nowhere/", unknown, 50);
    check("-B nowhere a/", unknown, 50);
    let long = format!("-H {} a/", "x".repeat(8200));
    check(&long, "Request too long", 1);
    let (out, err, status) = outcome(&four(), &["-V"]);
    assert_eq!((out.as_str(), err.as_str(), status), (BANNER, "", 0));
}
