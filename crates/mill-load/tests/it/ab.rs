//! ab from the command line to the report, in virtual time: every figure is known.

use crate::closed_loop::MS;
use crate::command::{Said, run};
use crate::server::{Act, Then};
use crate::sim_platform::SimPlatform;

const ANSWER: &str = "HTTP/1.1 200 OK\r\nServer: sim/1 (x)\r\nContent-Length: 5\r\n\r\nhello";

/// The report from `first` on.
#[track_caller]
fn check(platform: &SimPlatform, line: &str, first: &str, expected: &str) {
    let Said { status, out, err } = run(platform, line);
    let start = out.find(first).unwrap_or_else(|| panic!("{out}{err}"));
    assert_eq!(&out[start..], expected);
    assert_eq!(status, 0);
}

#[test]
fn connections_of_one_request_have_the_handshake_in_their_time() {
    let platform =
        SimPlatform::new(|_| Act::raw(ANSWER).after(8 * MS).then(Then::Close)).with_delay(MS);
    let expected = "Complete requests:      3
Failed requests:        0
Total transferred:      186 bytes
HTML transferred:       15 bytes
Requests per second:    83.33 [#/sec] (mean)
Time per request:       12.000 [ms] (mean)
Time per request:       12.000 [ms] (mean, across all concurrent requests)
Transfer rate:          5.05 [Kbytes/sec] received

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        2    2   0.0      2       2
Processing:    10   10   0.0     10      10
Waiting:       10   10   0.0     10      10
Total:         12   12   0.0     12      12

Percentage of the requests served within a certain time (ms)
  50%     12
  66%     12
  75%     12
  80%     12
  90%     12
  95%     12
  98%     12
  99%     12
 100%     12 (longest request)
";
    check(
        &platform,
        "ab -n 3 10.0.0.1/",
        "Complete requests",
        expected,
    );
    let requests = platform.log.requests.borrow();
    let request =
        b"GET / HTTP/1.0\r\nHost: 10.0.0.1\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n";
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|requests| requests == request));
}

#[test]
fn a_kept_connection_is_opened_once() {
    let platform = SimPlatform::new(|_| Act::raw(ANSWER).after(8 * MS)).with_delay(MS);
    let expected = "Connection Times (ms)
              min   avg   max
Connect:        0     1    2
Processing:    10    10   10
Waiting:       10    10   10
Total:         10    11   12
";
    let line = "ab -k -d -S -n 3 10.0.0.1/";
    check(&platform, line, "Connection Times", expected);
    assert_eq!(platform.log.connections.get(), 1);
}

#[test]
fn without_k_a_response_lasts_until_its_connection_ends() {
    // The server keeps the connection; only our timeout ends it.
    let platform = SimPlatform::new(|_| Act::raw(ANSWER));
    let Said { status, out, err } = run(&platform, "ab -s 1 -n 3 10.0.0.1/");
    assert!(out.ends_with("(be patient)..."), "{out}");
    let timeout = "apr_pollset_poll: The timeout specified has expired (70007)\n";
    assert_eq!((err.as_str(), status), (timeout, 119));
}

#[test]
fn failures_end_a_run_or_are_counted() {
    let every_third = || {
        SimPlatform::new(|number| {
            if number % 3 == 2 {
                Act::raw("").then(Then::Reset)
            } else {
                Act::raw(ANSWER).then(Then::Close)
            }
        })
    };
    let Said { status, out, err } = run(&every_third(), "ab -n 9 10.0.0.1/");
    assert!(out.ends_with("Total of 2 requests completed\n"), "{out}");
    let reset = "apr_socket_recv: Connection reset by peer (104)\n";
    assert!(err.starts_with(reset), "{err}");
    assert_eq!(status, 104);

    let Said { status, out, err } = run(&every_third(), "ab -r -v 1 -n 9 10.0.0.1/");
    let counts = "Complete requests:      9\nFailed requests:        3\n   \
                  (Connect: 0, Receive: 3, Length: 0, Exceptions: 0)\n";
    assert!(out.contains(counts), "{out}");
    assert!(err.starts_with(&reset.repeat(3)), "{err}");
    assert_eq!(status, 0);
}

#[test]
fn a_refused_port_ends_a_run_at_once_and_with_r_after_all_attempts() {
    let mut platform = SimPlatform::new(|_| Act::raw(ANSWER));
    platform.listens = false;
    let Said { status, err, .. } = run(&platform, "ab -n 9 10.0.0.1/");
    assert!(err.starts_with("apr_socket_recv: Connection refused (111)\n"));
    assert_eq!(status, 111);
    let Said { status, out, .. } = run(&platform, "ab -r -n 9 -c 3 10.0.0.1/");
    assert!(out.contains("   (Connect: 9, Receive: 0,"), "{out}");
    assert_eq!(status, 0);
}

#[test]
fn a_time_limit_ends_a_run() {
    let platform = SimPlatform::new(|_| Act::raw(ANSWER).after(100 * MS));
    let Said { status, out, err } = run(&platform, "ab -k -t 2 10.0.0.1/");
    assert!(out.contains("Complete requests:      19\n"), "{out}");
    assert!(err.contains("Finished 19 requests\n"), "{err}");
    assert_eq!(status, 0);
}
