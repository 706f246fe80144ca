//! wrk and wrk2 from the command line to the report, in a simulated world.

use crate::command::{Said, run};
use crate::server::{Act, Then};
use crate::sim_platform::SimPlatform;
use mill_load::dialect::wrk;
use mill_runtime::time::Duration;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

const MS: Duration = Duration::from_millis(1);

#[track_caller]
fn check(platform: &SimPlatform, line: &str, out: &str, err: &str) {
    let said = run(platform, line);
    assert_eq!((said.out.as_str(), said.err.as_str()), (out, err));
    assert_eq!(said.status, 0);
}

#[test]
fn a_steady_server_gives_an_even_report() {
    let platform = SimPlatform::new(|_| Act::answer("hello").after(10 * MS));
    let expected = "\
Running 2s test @ http://10.0.0.1/
  2 threads and 4 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    10.00ms    0.00us  10.00ms  100.00%
    Req/Sec   199.00      4.41   200.00     95.00%
  Latency Distribution
     50%   10.00ms
     75%   10.00ms
     90%   10.00ms
     99%   10.00ms
  796 requests in 2.00s, 33.43KB read
Requests/sec:    398.00
Transfer/sec:     16.71KB
";
    check(
        &platform,
        "wrk -t2 -c4 -d2 --latency http://10.0.0.1/",
        expected,
        "",
    );
}

#[test]
fn each_misleading_figure_has_a_line_on_the_error_output() {
    // Every tenth answer takes 3 s, more than the two that wrk keeps.
    let platform = SimPlatform::new(|request| {
        let delay = if request % 10 == 9 { 3000 * MS } else { MS };
        Act::answer("x").after(delay)
    });
    let Said { status, out, err } = run(&platform, "wrk -t2 -c3 -d20 http://10.0.0.1/");
    assert_eq!(status, 0);
    assert!(out.contains("  2 threads and 3 connections\n"), "{out}");
    assert!(
        out.contains("  Socket errors: connect 0, read 0, write 0, timeout 12\n"),
        "{out}"
    );
    let expected = "\
millstream: 2 connections are opened, not 3: wrk gives each of 2 threads the same number and drops the rest
millstream: 12 answers took longer than 2s; wrk counts them as timeouts and leaves their latency out
";
    assert_eq!(err, expected);
}

#[test]
fn a_stall_that_the_correction_spreads_is_reported() {
    let platform = SimPlatform::new(|request| {
        let delay = if request == 50 { 1000 * MS } else { MS };
        Act::answer("x").after(delay)
    });
    let Said { out, err, .. } = run(&platform, "wrk -t1 -c1 -d2 http://10.0.0.1/");
    assert!(out.contains("    Latency   "), "{out}");
    let [silence, correction] = err.lines().collect::<Vec<_>>()[..] else {
        panic!("{err}")
    };
    assert!(
        silence.contains("no answer came for 1.00 s, from 0.05 s to 1.05 s"),
        "{err}"
    );
    assert!(
        correction.starts_with("millstream: wrk's correction fills in"),
        "{err}"
    );
}

#[test]
fn bad_answers_and_lost_connections_have_their_lines() {
    let platform = SimPlatform::new(|request| match request % 4 {
        0 => Act::raw("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n").after(100 * MS),
        1 => Act::raw("HTTP/1.1 200").then(Then::Close).after(100 * MS),
        _ => Act::answer("").after(100 * MS),
    });
    let Said { status, out, err } = run(&platform, "wrk -t1 -c1 -d1 http://10.0.0.1/");
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(
        out.contains("  Socket errors: connect 0, read 2, write 0, timeout 0\n"),
        "{out}"
    );
    assert!(out.contains("  Non-2xx or 3xx responses: 3\n"), "{out}");
}

#[test]
fn bytes_beyond_a_response_are_read_errors() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloEXTRA";
    let platform = SimPlatform::new(move |_| Act::raw(answer).after(100 * MS));
    let Said { status, out, err } = run(&platform, "wrk -t1 -c1 -d1 http://10.0.0.1/");
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    let errors = "  Socket errors: connect 0, read 9, write 0, timeout 0\n";
    assert!(
        out.contains("  9 requests in ") && out.contains(errors),
        "{out}"
    );
}

#[test]
fn a_thread_that_its_script_stops_is_no_outage() {
    let platform = SimPlatform::new(|_| Act::answer("x").after(10 * MS));
    let text = "local n = 0 function response() n = n + 1 if n == 3 then wrk.thread:stop() end end";
    let script = File::new("stop", text);
    let Said { status, out, err } = run(
        &platform,
        &script.line("wrk -t1 -c1 -d3", "http://10.0.0.1/"),
    );
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    assert!(
        out.contains("    Req/Sec     0.00      0.00     0.00      -nan%"),
        "{out}"
    );
    assert!(out.contains("  3 requests in "), "{out}");
}

#[test]
fn requests_per_connection_are_in_the_banner_and_held() {
    let platform = SimPlatform::new(|_| Act::answer("x").after(10 * MS));
    let line = "wrk -t1 -c2 -d1 --connreqs 4 --delay --latency http://10.0.0.1/";
    let Said { status, out, err } = run(&platform, line);
    assert_eq!((status, err.as_str()), (0, ""));
    let banner = "Running 1s test @ http://10.0.0.1/\n  1 threads and 2 connections, 4 requests/connection\n";
    assert!(out.starts_with(banner), "{out}");
    let answered = platform.log.requests.borrow().len();
    assert_eq!(
        platform.log.connections.get() as usize,
        answered.div_ceil(4) + answered.div_ceil(4) % 2
    );
}

#[test]
fn an_unreachable_server_ends_the_run_before_the_banner() {
    let mut platform = SimPlatform::new(|_| Act::answer("x"));
    let check = |platform: &SimPlatform, line, out: &str, err: &str| {
        let said = run(platform, line);
        assert_eq!((said.status, &*said.out, &*said.err), (1, out, err));
    };
    let err = "unable to resolve nowhere.invalid:http no such name in this world\n";
    check(&platform, "wrk http://nowhere.invalid/", "", err);
    platform.listens = false;
    let err = "unable to connect to 10.0.0.1:80 Connection refused\n";
    check(&platform, "wrk http://10.0.0.1:80/", "", err);
    assert!(
        run(&platform, "wrk")
            .out
            .starts_with("Usage: wrk <options> <url>   ")
    );
}

#[test]
fn connections_beyond_the_descriptors_are_counted_once_and_reported() {
    let mut platform = SimPlatform::new(|_| Act::answer("x").after(10 * MS));
    platform.streams_max = 2;
    let Said { status, out, err } = run(&platform, "wrk -t1 -c5 -d1 http://10.0.0.1/");
    assert_eq!(status, 0);
    assert!(
        out.contains("  Socket errors: connect 3, read 0, write 0, timeout 0\n"),
        "{out}"
    );
    let expected =
        "millstream: 3 connections could not be opened and, as wrk does it, were not tried again\n";
    assert_eq!(err, expected);
}

/// A script in a temporary file.
struct File(PathBuf);

impl File {
    /// `name` distinguishes tests that run at the same time.
    fn new(name: &str, text: &str) -> Self {
        let name = format!("millstream-wrk-{}-{name}.lua", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, text).expect("the temporary directory can be written");
        Self(path)
    }

    fn line(&self, before: &str, after: &str) -> String {
        format!("{before} -s {} {after}", self.0.display())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // A leftover file does no harm.
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_script_makes_the_requests_and_has_the_last_word() {
    let platform = SimPlatform::new(|_| Act::answer("x").after(10 * MS));
    let report = std::env::temp_dir().join(format!("millstream-wrk-{}.txt", std::process::id()));
    let text = format!(
        r#"
        local number = 0
        function init(args) word = args[1] end
        function delay() return 40 end
        function request()
           number = number + 1
           return wrk.format("POST", "/" .. word .. number, nil, "body")
        end
        function done(summary, latency, requests)
           local file = io.open("{}", "w")
           file:write(string.format("%d %d %d %g %d %d", summary.duration, summary.requests,
              summary.errors.status, latency:percentile(50), #latency, latency.max))
           file:close()
        end
        "#,
        report.display()
    );
    let script = File::new("done", &text);
    let line = script.line("wrk -t1 -c1 -d1", "http://10.0.0.1/ -- page");
    let Said { status, out, err } = run(&platform, &line);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    let figures = fs::read_to_string(&report).unwrap();
    fs::remove_file(&report).unwrap();
    // 40 ms of delay and 10 of latency: the answers arrive at 50, 100, … and the run ends as the last one would.
    assert_eq!(figures, "1000000 19 0 10000 1 10000");
    let sent = platform.log.requests.borrow().concat();
    let sent = String::from_utf8(sent).unwrap();
    assert!(sent.starts_with("POST /page1 HTTP/1.1\r\n"), "{sent}");
    assert!(
        sent.contains("\r\n\r\nbodyPOST /page2 HTTP/1.1\r\n"),
        "{sent}"
    );
}

#[test]
fn a_script_with_an_error_is_reported_with_its_line() {
    let platform = SimPlatform::new(|_| Act::answer("x").after(10 * MS));
    let check = |name: &str, text: &str, expected: &str, begins: bool| {
        let script = File::new(name, text);
        let Said { status, out, err } = run(
            &platform,
            &script.line("wrk -t1 -c1 -d1", "http://10.0.0.1/"),
        );
        assert_eq!((status, out.is_empty()), (1, !begins), "{out}");
        assert!(
            err.starts_with("millstream: ") && err.contains(expected),
            "{err}"
        );
        assert_eq!(err.lines().count(), 1);
    };
    check("syntax", "x = = 1", "syntax.lua:1:", false);
    check(
        "setup",
        "\nfunction setup(thread) error('no') end",
        "setup.lua:2:",
        false,
    );
    check(
        "done",
        "\n\nfunction done() local x = nil + 1 end",
        "done.lua:3:",
        true,
    );
}

/// Of answers that all took 2 ms.
const DISTRIBUTION: &str = " 50.000%    2.00ms
 75.000%    2.00ms
 90.000%    2.00ms
 99.000%    2.00ms
 99.900%    2.00ms
 99.990%    2.00ms
 99.999%    2.00ms
100.000%    2.00ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       2.000     0.000000          398         1.00
       2.000     1.000000          398          inf
#[Mean    =        2.000, StdDeviation   =        0.000]
#[Max     =        2.000, Total count    =          398]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------
";

#[test]
fn a_constant_rate_is_held_and_reported_in_wrk2s_form() {
    let platform = SimPlatform::new(|_| Act::answer("x").after(2 * MS));
    let line = "wrk -t1 -c2 -d14 -R100 -L -U http://10.0.0.1/";
    let Said { status, out, err } = run(&platform, line);
    assert_eq!((status, err.as_str()), (0, ""));
    let expected = format!(
        "\
Running 14s test @ http://10.0.0.1/
  1 threads and 2 connections
  Thread calibration: mean lat.: 2.000ms, rate sampling interval: 10ms
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.00ms    0.00us   2.00ms  100.00%
    Req/Sec   100.00    100.00   200.00    100.00%
  Latency Distribution (HdrHistogram - Recorded Latency)
{DISTRIBUTION}
  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))
{DISTRIBUTION}  1400 requests in 14.00s, 53.32KB read
Requests/sec:    100.00
Transfer/sec:      3.81KB
"
    );
    assert_eq!(out, expected);
    assert_eq!(
        run(&platform, &line.replacen("wrk", "wrk2", 1)).out,
        expected
    );
}

#[test]
fn a_run_too_short_for_a_calibration_has_no_rate() {
    let platform = SimPlatform::new(|_| Act::answer("x").after(2 * MS));
    let Said { status, out, err } = run(&platform, "wrk2 -t1 -c2 -d1 -R100 http://10.0.0.1/");
    assert_eq!((status, err.as_str()), (0, ""));
    let expected = "\
Running 1s test @ http://10.0.0.1/
  1 threads and 2 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.00ms    0.00us   2.00ms  100.00%
    Req/Sec       -nan      -nan   0.00      0.00%
  100 requests in 1.00s, 3.81KB read
Requests/sec:    100.00
Transfer/sec:      3.81KB
";
    assert_eq!(out, expected);
}

/// An output that is closed.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_output_ends_the_run() {
    let platform = SimPlatform::new(|_| Act::answer("x").after(10 * MS));
    let line = ["-t1", "-c1", "-d1000", "http://10.0.0.1/"].map(Vec::from);
    assert_eq!(wrk::main(&line, &platform, &mut Closed, &mut Vec::new()), 0);
    assert_eq!(platform.log.requests.borrow().len(), 0);
}

#[test]
fn a_connection_that_lags_behind_catches_up_at_twice_its_rate() {
    // 100 a second for a second, a stall of two, and then 200 a second for the last one.
    let platform = SimPlatform::new(|request| {
        let delay = if request == 100 { 2000 * MS } else { 2 * MS };
        Act::answer("x").after(delay)
    });
    let Said { out, .. } = run(&platform, "wrk2 -t1 -c1 -d4 -R100 http://10.0.0.1/");
    assert!(out.contains("  301 requests in 4.00s"), "{out}");
    assert!(out.contains("    Latency   "), "{out}");
}
