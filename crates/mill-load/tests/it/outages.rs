//! Servers that die, hang, stand still or come back during a run: the messages of each command line.

use crate::command::run;
use crate::server::Act;
use crate::sim_platform::{Fate, SimPlatform};
use mill_runtime::time::Duration;

const S: Duration = Duration::from_secs(1);

/// Answers after 5 ms.
fn server(fate: Fate) -> SimPlatform {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    SimPlatform::new(move |_| Act::raw(answer).after(S / 200)).with_fate(fate)
}

/// One line, one fate: the exit status, and parts of standard output and standard error, as one text without line ends.
#[track_caller]
fn check(fate: Fate, line: &str, status: u8, parts: &[&str]) {
    let said = run(&server(fate), line);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(&format!("{} {}", said.out, said.err));
    for part in parts {
        let (part, wanted) = match part.strip_prefix('!') {
            Some(part) => (part, false),
            None => (*part, true),
        };
        assert_eq!(
            text.contains(part),
            wanted,
            "{part}: {fate:?}, {line}\n{said:#?}"
        );
    }
    assert_eq!(said.status, status, "{fate:?}, {line}\n{said:#?}");
}

#[test]
fn a_run_without_outage_reports_none() {
    for line in [
        "load -c 10 -d 6s http://10.0.0.1/",
        "load -c 10 -d 6s -r 200 http://10.0.0.1/",
        // A request every two seconds: none waits in between.
        "load -c 1 -d 20s -r 0.5 http://10.0.0.1/",
        "load -c 2 -t 1 -d 10s --think 1s http://10.0.0.1/",
        "wrk -t2 -c10 -d6 http://10.0.0.1/",
        "wrk2 -t2 -c10 -d6 -R200 http://10.0.0.1/",
        "ab -k -c 10 -n 999999 -t 6 http://10.0.0.1/",
    ] {
        check(
            Fate::Lives,
            line,
            0,
            &["!no answer", "!could not be served"],
        );
    }
}

#[test]
fn a_server_that_is_slow_but_answers_is_no_outage() {
    let slow = SimPlatform::new(|_| Act::answer("x").after(S * 3));
    for line in [
        "load -c 4 -d 20s http://10.0.0.1/",
        "wrk -t2 -c4 -d20 http://10.0.0.1/",
    ] {
        let said = run(&slow, line);
        assert_eq!(said.status, 0, "{said:#?}");
        assert!(!said.err.contains("no answer for 5"), "{said:#?}");
        assert!(
            !said.out.contains("invalid") && !said.err.contains("table leaves"),
            "{said:#?}"
        );
    }
}

#[test]
fn a_server_that_is_gone_for_a_part_of_a_run_makes_it_invalid() {
    let dies = "no answer came for 2.0";
    let till = "from 2.0";
    for line in [
        "load -c 10 -d 4s http://10.0.0.1/",
        "load -c 10 -t 2 -d 4s --timeout 300ms http://10.0.0.1/",
        "load -c 10 -d 4s --no-keepalive http://10.0.0.1/",
        "load -c 10 -d 4s -r 500 --warm-up 0 http://10.0.0.1/",
    ] {
        let end = "s to the end at 4.0";
        check(
            Fate::Dies(S * 2),
            line,
            3,
            &["verdict: invalid", dies, till, end],
        );
        let hangs = Fate::Stands(S * 2, S * 99);
        check(hangs, line, 3, &["verdict: invalid", dies, till, end]);
    }
    for line in [
        "load -c 10 -d 6s http://10.0.0.1/",
        "load -c 10 -d 6s -r 500 --warm-up 0 http://10.0.0.1/",
    ] {
        let stands = Fate::Stands(S * 2, S * 4);
        check(
            stands,
            line,
            3,
            &["verdict: invalid", dies, till, "s to 4.0"],
        );
        let restarts = Fate::Restarts(S * 2, S * 4);
        check(
            restarts,
            line,
            3,
            &["verdict: invalid", "no answer came for 2.", till],
        );
    }
}

#[test]
fn a_short_standstill_is_reported_and_does_not_decide() {
    let stands = Fate::Stands(S * 2, S * 13 / 5);
    let silence = "no answer came for 0.6";
    let line = "load -c 10 -d 10s http://10.0.0.1/";
    check(stands, line, 0, &[silence, "!verdict: invalid"]);
    check(
        stands,
        &line.replace("load", "load --threshold silence=1:5"),
        3,
        &[silence],
    );
}

#[test]
fn the_lines_of_progress_show_a_lack_of_answers() {
    let line = "load -c 10 -d 6s http://10.0.0.1/";
    let parts = [
        " 4 s 0/s no answer for ",
        " 5 s 0/s no answer for 2 s",
        "!p50 0 ",
    ];
    check(Fate::Stands(S * 29 / 10, S * 99), line, 3, &parts);
    check(Fate::Dies(S * 29 / 10), line, 3, &parts);
}

#[test]
fn a_rate_never_falls_by_more_than_all_of_it() {
    for seconds in [1, 2, 4, 8] {
        let line = "load -c 10 -d 12s http://10.0.0.1/";
        check(
            Fate::Dies(S * seconds),
            line,
            3,
            &["!changed by -", "!% over the run"],
        );
    }
}

#[test]
fn a_share_of_errors_counts_the_time_of_connections_that_could_not_be_served() {
    for fate in [Fate::Dies(S * 2), Fate::Stands(S * 2, S * 99)] {
        let line = "load -c 10 -d 4s --max-errors 1% http://10.0.0.1/";
        check(
            fate,
            line,
            2,
            &[
                "missed --max-errors 1 %: errors 50.",
                "% of the connections' time",
            ],
        );
    }
    let line = "load -c 10 -d 4s --max-errors 5 http://10.0.0.1/";
    check(
        Fate::Stands(S * 2, S * 99),
        line,
        2,
        &["missed --max-errors 5: errors 10"],
    );
    check(Fate::Lives, line, 0, &["held --max-errors 5: errors 0"]);
}

#[test]
fn some_connections_that_are_never_answered_are_reported() {
    // Three of the first ten requests, each on a connection of its own, are never answered.
    let some = |hang: usize| {
        SimPlatform::new(move |number| {
            let delay = if number < hang { S * 3600 } else { S / 200 };
            Act::answer("x").after(delay)
        })
    };
    let said = run(&some(3), "load -c 10 -t 1 -d 6s http://10.0.0.1/");
    assert_eq!(said.status, 3, "{said:#?}");
    let text = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("could not be served for 30.0 % of their time"),
        "{said:#?}"
    );
    assert!(
        text.contains("3 requests still hung at the end"),
        "{said:#?}"
    );
    let said = run(&some(10), "load -c 10 -t 1 -d 6s http://10.0.0.1/");
    assert_eq!(said.status, 3, "{said:#?}");
    assert!(
        said.out.contains("no answer came in all of 6.00 s"),
        "{said:#?}"
    );
    let said = run(&some(1), "wrk -t1 -c10 -d6 http://10.0.0.1/");
    assert!(
        said.err
            .contains("could not be served for 10.0 % of their time"),
        "{said:#?}"
    );
}

#[test]
fn the_forms_of_wrk_and_ab_stay_and_a_line_beside_them_reports_the_outage() {
    let dies = "millstream: no answer came for 2.0";
    let wrks = "; wrk's table leaves that time out";
    for fate in [Fate::Dies(S * 2), Fate::Stands(S * 2, S * 99)] {
        for line in [
            "wrk -t2 -c10 -d4 http://10.0.0.1/",
            "wrk2 -t2 -c10 -d4 -R500 http://10.0.0.1/",
        ] {
            check(
                fate,
                line,
                0,
                &["Requests/sec:", dies, "s to the end at 4.0", wrks],
            );
        }
    }
    // ab's timeout is thirty seconds.
    let line = "ab -k -c 10 -n 999999 -t 4 http://10.0.0.1/";
    check(
        Fate::Stands(S * 2, S * 99),
        line,
        0,
        &["Complete requests:", dies],
    );
    check(
        Fate::Stands(S, S * 3),
        line,
        0,
        &["Complete requests:", dies, "s to 3.0"],
    );
    let line = "ab -r -k -c 10 -n 999999 -t 4 http://10.0.0.1/";
    check(
        Fate::Restarts(S, S * 3),
        line,
        0,
        &["Complete requests:", dies, "s to 3.0"],
    );
}
