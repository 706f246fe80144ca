//! What it says, letter by letter.

use super::*;
use crate::accelerated::text::tests::example;

/// Two processes of one `millstream run`, and one of another.
fn three() -> Vec<Found> {
    let found = |process, run, has_interface| {
        let mut shown = example();
        (shown.run, shown.has_interface) = (run, has_interface);
        shown.cluster = (run == 1).then(|| String::from("webs"));
        Found { process, shown }
    };
    vec![found(11, 1, false), found(12, 1, true), found(9, 2, true)]
}

fn dumped(line: &str, found: &[Found]) -> String {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match parse(&words).unwrap() {
        Asked::Dump(dump) => dump.text(found),
        Asked::Help => HELP.to_owned(),
    }
}

#[test]
fn stacks_are_named_by_their_cluster_and_nothing_is_said_of_none() {
    let expected = "\
#stack-id stack-name      pids
11        webs-c0         11
12        webs-c1         12
9         my nginx-c0     9
";
    assert_eq!(dumped("", &three()), expected);
    assert_eq!(dumped("stacks", &three()), expected);
    let expected = "\
#stack-id stack-name
11        webs-c0
12        webs-c1
9         my nginx-c0
";
    assert_eq!(dumped("--nopids stacks", &three()), expected);
    for line in [
        "",
        "--nopids stacks",
        "clusters",
        "lots",
        "netstat",
        "stats",
        "opts",
    ] {
        assert_eq!(dumped(line, &[]), "", "{line}");
    }
}

#[test]
fn a_cluster_is_a_run_and_tells_its_size() {
    let expected = "\
cluster webs: size=2 interface=eth0
  stack 11: name=webs-c0 program=my nginx listeners=1 connections=2 new-connections=elsewhere
  stack 12: name=webs-c1 program=my nginx listeners=1 connections=2 new-connections=here
cluster my nginx: size=1 interface=eth0
  stack 9: name=my nginx-c0 program=my nginx listeners=1 connections=2 new-connections=here
";
    assert_eq!(dumped("clusters", &three()), expected);
}

#[test]
fn the_tables_of_one_stack() {
    let head = "-------------------- stack 12 webs-c1 (my nginx, eth0) --------------------\n";
    let netstat = "\
Proto Recv-Q Send-Q Local Address           Foreign Address         State
tcp6       2    511 [::]:80                 [::]:*                  LISTEN
tcp        0   1448 10.50.0.1:80            10.50.0.2:5555          ESTABLISHED
tcp        7   1448 10.50.0.1:80            [fd50::2]:6             ESTABLISHED
";
    let stats = format!("segments_received: {}\n", u64::MAX);
    let opts = "EF_TCP_FIN_TIMEOUT: 15\n";
    let all = three();
    assert_eq!(dumped("netstat 12", &all), format!("{head}{netstat}"));
    assert_eq!(dumped("12 stats", &all), format!("{head}{stats}"));
    assert_eq!(dumped("12 opts", &all), format!("{head}{opts}"));
    let lots = format!("{head}{netstat}{stats}{opts}");
    assert_eq!(dumped("lots 12", &all), lots);
    assert_eq!(dumped("12", &all), lots);
}

#[test]
fn a_list_of_connections_that_is_cut_says_so() {
    let mut found = three();
    found[0].shown.connections_total = 5000;
    let text = dumped("netstat 11", &found);
    assert!(text.ends_with("(2 of 5000 connections)\n"), "{text}");
}

#[test]
fn states_have_the_names_of_netstat() {
    for (ours, theirs) in [
        ("established", "ESTABLISHED"),
        ("syn-sent", "SYN_SENT"),
        ("syn-recv", "SYN_RECV"),
        ("fin-wait-1", "FIN_WAIT1"),
        ("fin-wait-2", "FIN_WAIT2"),
        ("time-wait", "TIME_WAIT"),
        ("closed", "CLOSE"),
        ("close-wait", "CLOSE_WAIT"),
        ("last-ack", "LAST_ACK"),
        ("closing", "CLOSING"),
    ] {
        let mut connection = example().connections.remove(0);
        connection.state = ours.to_owned();
        assert_eq!(state(&connection), theirs);
    }
}

#[test]
fn an_unknown_word_is_answered_by_those_that_there_are() {
    let error = parse(&[String::from("netstats")]).unwrap_err();
    let expected = "\"netstats\" is not known; there are stacks, clusters, netstat, stats, opts, lots, help, and --nopids";
    assert_eq!(error, expected);
    assert_eq!(parse(&[String::from("help")]), Ok(Asked::Help));
}

#[test]
fn stacks_that_are_not_there_are_named() {
    let words = ["12", "13"].map(String::from);
    let Ok(Asked::Dump(dump)) = parse(&words) else {
        panic!("{words:?}");
    };
    assert_eq!(dump.missing(&three()), [13]);
}
