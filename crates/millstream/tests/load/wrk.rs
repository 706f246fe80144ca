//! `millstream wrk` beside Debian's wrk: the same server, the same options, the same lines and columns.

/// The server of both.
mod server;

use crate::assert_contains;
use server::Server;
use std::process::{Command, Output};

const WRK: &str = "/usr/bin/wrk";

/// The output of one of the two.
struct Trial {
    status: Option<i32>,
    out: String,
    err: String,
}

/// A report's totals of the whole run.
#[derive(Debug)]
pub(crate) struct Totals {
    pub(crate) requests: f64,
    pub(crate) bytes: f64,
}

/// Runs both for a second with `options` and a URL of a server, and compares everything that does not depend on speed.
#[track_caller]
fn check(path: &str, options: &[&str]) -> [Trial; 2] {
    let server = Server::start();
    let url = format!("http://{}{path}", server.address);
    let trials = both(&[&["-t2", "-c4", "-d1"], options, &[&url]].concat());
    let [theirs, ours] = &trials;
    assert_eq!(ours.status, theirs.status, "{}{}", ours.err, theirs.err);
    assert_eq!(theirs.err, "");
    assert!(
        ours.err
            .lines()
            .all(|line| line.starts_with("millstream: ")),
        "{}",
        ours.err
    );
    assert_eq!(
        shapes(&ours.out),
        shapes(&theirs.out),
        "{}{}",
        ours.out,
        theirs.out
    );
    trials
}

/// The same, and checks that the figures are plausible for one server.
#[track_caller]
fn check_plausible(path: &str, options: &[&str]) -> [Trial; 2] {
    let trials = check(path, options);
    let [theirs, ours] = [&trials[0], &trials[1]].map(|trial| totals(&trial.out));
    let factor = ours.requests / theirs.requests;
    assert!((0.05..20.0).contains(&factor), "{ours:?} {theirs:?}");
    // Sizes are printed to three digits and more, and a run may end within an answer.
    let [ours_each, theirs_each] = [ours, theirs].map(|totals| totals.bytes / totals.requests);
    assert!(
        (ours_each / theirs_each - 1.0).abs() < 0.02,
        "{ours_each} {theirs_each}"
    );
    trials
}

fn both(arguments: &[&str]) -> [Trial; 2] {
    let mut ours = Command::new(env!("CARGO_BIN_EXE_millstream"));
    ours.arg("wrk");
    [&mut Command::new(WRK), &mut ours].map(|command| {
        let output = run(command.args(arguments));
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Trial {
            status: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    })
}

fn run(command: &mut Command) -> Output {
    match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{command:?}: {error}. wrk is in the package wrk"),
    }
}

/// Each line without its figures; of a line in columns also its length.
fn shapes(text: &str) -> Vec<(String, Option<usize>)> {
    text.lines()
        .map(|line| {
            let words: Vec<String> = line
                .split(' ')
                .filter(|word| !word.is_empty())
                .map(shape)
                .collect();
            let is_in_columns = line.starts_with("    ") || line.starts_with("Requests/sec");
            (words.join(" "), is_in_columns.then_some(line.len()))
        })
        .collect()
}

/// A word without its figure and unit.
fn shape(word: &str) -> String {
    let rest = word.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let rest = word.strip_prefix("-nan").unwrap_or(rest);
    if rest == word {
        return String::from(word);
    }
    let rest = rest.trim_start_matches(|letter: char| "usmkKMG".contains(letter));
    format!("#{rest}")
}

/// From "  1234 requests in 1.00s, 5.67MB read".
pub(crate) fn totals(text: &str) -> Totals {
    let line = text.lines().find(|line| line.contains(" requests in "));
    let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    let [requests, _, _, _, bytes, _] = words[..] else {
        panic!("no totals in {text}");
    };
    let bytes = bytes.trim_end_matches('B');
    let (number, factor) = match bytes.trim_end_matches(['K', 'M', 'G']) {
        number if bytes.ends_with('K') => (number, 1024.0),
        number if bytes.ends_with('M') => (number, 1024.0 * 1024.0),
        number if bytes.ends_with('G') => (number, 1024.0 * 1024.0 * 1024.0),
        number => (number, 1.0),
    };
    let parse = |text: &str| text.parse::<f64>().expect("a number");
    Totals {
        requests: parse(requests),
        bytes: parse(number) * factor,
    }
}

#[test]
fn a_plain_run_has_the_same_lines_and_columns() {
    let [_, ours] = check_plausible("/", &["--latency"]);
    assert_contains(&ours.out, "\n  Latency Distribution\n");
}

#[test]
fn bad_answers_have_their_line() {
    let [_, ours] = check_plausible("/missing", &[]);
    assert_contains(&ours.out, "\n  Non-2xx or 3xx responses: ");
}

#[test]
fn a_connection_for_each_request_has_the_same_lines() {
    check_plausible("/", &["-H", "Connection: close"]);
}

#[test]
fn answers_that_are_cut_off_are_errors_of_reading() {
    let [theirs, ours] = check("/cut", &[]);
    for trial in [&theirs.out, &ours.out] {
        let line = trial
            .lines()
            .find(|line| line.contains("Socket errors"))
            .unwrap_or_default();
        assert!(
            line.starts_with("  Socket errors: connect 0, read ") && !line.contains("read 0"),
            "{trial}"
        );
    }
}

#[test]
fn without_a_latency_that_counts_the_columns_are_as_empty() {
    let [_, ours] = check("/", &["--timeout", "0"]);
    assert_contains(
        &ours.out,
        "    Latency     0.00us    0.00us   0.00us    -nan%\n",
    );
    assert_contains(&ours.err, "wrk counts them as timeouts");
}

#[test]
fn scripts_do_the_same() {
    let path = std::env::temp_dir().join(format!("millstream-wrk-{}.lua", std::process::id()));
    let script = "wrk.method = 'POST'\nwrk.body = 'a=1'\n\
        function done(summary, latency, requests)\n\
          io.write(string.format('%d done %d\\n', summary.requests, latency:percentile(99)))\n\
        end\n";
    std::fs::write(&path, script).unwrap();
    let [_, ours] = check_plausible("/", &["-s", path.to_str().unwrap()]);
    std::fs::remove_file(&path).unwrap();
    assert!(
        ours.out.lines().last().unwrap().contains(" done "),
        "{}",
        ours.out
    );
}

#[test]
fn command_lines_are_refused_with_the_same_messages() {
    let check = |arguments: &[&str]| {
        let [theirs, ours] = both(arguments);
        assert_eq!(ours.status, theirs.status, "{arguments:?}");
        let without_ours: String = ours
            .err
            .lines()
            .filter(|line| !line.starts_with("millstream: "))
            .map(|line| format!("{line}\n"))
            .collect();
        // Theirs is called by a path.
        assert_eq!(
            without_ours,
            theirs.err.replace("/usr/bin/wrk: ", "wrk: "),
            "{arguments:?}"
        );
        let usage = |trial: &Trial| {
            trial
                .out
                .lines()
                .take(12)
                .map(String::from)
                .collect::<Vec<_>>()
        };
        assert_eq!(usage(&ours), usage(&theirs), "{arguments:?}");
    };
    check(&[]);
    check(&["-h"]);
    check(&["--help"]);
    check(&["-r", "http://a/"]);
    check(&["-q", "http://a/"]);
    check(&["-c"]);
    check(&["--thr"]);
    check(&["--t=4", "http://a/"]);
    check(&["--latency=1", "http://a/"]);
    check(&["--bogus=1"]);
    check(&["-c", "1.5k", "http://a/"]);
    check(&["-d10ms", "http://a/"]);
    check(&["-c1", "-t2", "http://a/"]);
    check(&["127.0.0.1"]);
    check(&["http://nowhere.invalid/"]);
    let unlistened = format!("http://{}/", Server::unlistened());
    check(&[&unlistened]);
}
