//! wrk's command lines: those of the experiments, unusual ones, and refused ones.

use super::*;

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

fn read(line: &str) -> Arguments {
    parse(Tool::Wrk, &words(line))
        .result
        .unwrap_or_else(|refusal| panic!("{line}: {refusal:?}"))
}

fn refused(tool: Tool, line: &str) -> Refusal {
    parse(tool, &words(line)).result.unwrap_err()
}

/// Threads, connections, seconds, `--latency`, the first header.
#[track_caller]
fn check(line: &str, expected: (u32, u32, u64, bool, Option<&str>)) -> Arguments {
    let read = read(line);
    let header = read
        .headers
        .first()
        .map(|line| String::from_utf8_lossy(line).into_owned());
    let found = (
        read.threads,
        read.connections,
        read.duration_s,
        read.latency,
        header.as_deref(),
    );
    assert_eq!(found, expected, "{line}");
    read
}

#[test]
fn options_not_given_have_wrks_defaults() {
    let read = check("http://a/", (2, 10, 10, false, None));
    assert_eq!((read.timeout_s, read.script), (2, None));
    assert_eq!(
        read.beyond,
        Beyond {
            connreqs: None,
            nodelay: true,
            bind_cpu: false
        }
    );
}

#[test]
fn the_command_lines_of_the_experiments_are_read() {
    let close = Some("Connection:_close");
    let line = "--latency -H Connection:_close -c 8192 -d 30 -t 8 http://192.168.200.80:9090/";
    check(line, (8, 8192, 30, true, close));
    let line = "--latency -H Connection:_close -c 16384 -d 30 -t 16 http://172.16.0.200/";
    check(line, (16, 16384, 30, true, close));
    check(
        "-t 1 -c 50 -d 180s http://192.168.105.10/1kb.bin",
        (1, 50, 180, false, None),
    );
    let line = "-t 1 -c 50 -d 180s -H Connection:_close http://192.168.105.10/0kb.bin";
    check(line, (1, 50, 180, false, close));
    let line = "-c 15000 --connreqs 14 -d 600s -t 8 --latency --delay http://192.168.3.254/1K.bin";
    let read = check(line, (8, 15000, 600, true, None));
    assert_eq!(
        (read.beyond.connreqs, read.beyond.nodelay),
        (Some(14), false)
    );
    let line = "-t20 -c1000 -d30s http://10.0.1.189:8091/favicon.ico";
    check(line, (20, 1000, 30, false, None));
    check(
        "-t28 -c50000 -d30s http://127.0.0.1:8091/favicon.ico",
        (28, 50000, 30, false, None),
    );
}

#[test]
fn options_may_stand_anywhere_and_what_follows_the_url_is_the_scripts() {
    let read = check(
        "-t1 http://a/ x -c1k --dur 2m -- -y",
        (1, 1000, 120, false, None),
    );
    assert_eq!(read.operands, words("x -y"));
    let read = check("-s f.lua -Lt1 -T 3s http://a/", (1, 10, 10, true, None));
    assert_eq!((read.script, read.timeout_s), (Some(b"f.lua".to_vec()), 3));
}

#[test]
fn unusable_options_are_refused_with_wrks_messages() {
    let check = |line: &str, expected: Option<&str>| {
        let expected = Refusal::Usage(expected.map(String::from));
        assert_eq!(refused(Tool::Wrk, line), expected, "{line}");
    };
    check("-c2", None);
    check("-h", Some("wrk: invalid option -- 'h'"));
    check("--help http://a/", None);
    check("-r http://a/", None);
    check("-? http://a/", None);
    check("-c x http://a/", None);
    check("-c 1.5k http://a/", None);
    check("-d 10ms http://a/", None);
    check("-d0 http://a/", None);
    check("-t0 http://a/", None);
    check(
        "http://a/ -c",
        Some("wrk: option requires an argument -- 'c'"),
    );
    check(
        "-c1 -t2 http://a/",
        Some("number of connections must be >= threads"),
    );
    check("-c0 -t0 http://a/", None);
    check(
        "-c0 http://a/",
        Some("number of connections must be >= threads"),
    );
    check(
        "127.0.0.1",
        Some("invalid URL: 127.0.0.1\nmillstream: a URL begins with \"http://\" or \"https://\""),
    );
    check("--bogus x", Some("wrk: unrecognized option '--bogus'"));
}

#[test]
fn sephes_options_lower_the_threads_to_the_connections() {
    check("-C1 -t8 -c3 http://a/", (3, 3, 10, false, None));
    check("--delay -t8 -c3 http://a/", (3, 3, 10, false, None));
    let none = Refusal::Usage(Some(String::from("number of connections is 0")));
    assert_eq!(refused(Tool::Wrk, "-B -c0 http://a/"), none);
}

#[test]
fn the_remainder_of_the_connections_is_not_opened() {
    let check = |line, expected| assert_eq!(read(line).connections_opened(), expected);
    check("-t3 -c100 http://a/", 99);
    check("-t8 -c15000 http://a/", 15000);
}

#[test]
fn too_many_to_count_is_a_sentence() {
    assert!(matches!(
        refused(Tool::Wrk, "-c 5G http://a/"),
        Refusal::Sentence(_)
    ));
    assert!(matches!(
        refused(Tool::Wrk, "-c -1 http://a/"),
        Refusal::Sentence(_)
    ));
}

#[test]
fn the_version_is_counted_until_reading_ends() {
    let check = |line, versions| assert_eq!(parse(Tool::Wrk, &words(line)).versions, versions);
    check("-v", 1);
    check("-vv --version http://a/", 3);
    check("-v -h -v", 1);
}

#[test]
fn wrk2s_options_mean_wrk2() {
    let check = |line| assert_eq!(refused(Tool::Wrk, line), Refusal::ConstantRate, "{line}");
    check("-t2 -c100 -d30s -R2000 http://a/");
    check("--rate 2k http://a/");
    check("-U http://a/");
    check("--batch_latency http://a/");
}

#[test]
fn a_command_line_of_wrk2_is_read() {
    let check = |line, expected: (u64, bool, bool, bool)| {
        let read = parse(Tool::Wrk2, &words(line)).result.unwrap();
        let constant = read.constant;
        let found = (
            constant.rate,
            read.latency,
            constant.uncorrected,
            constant.batch,
        );
        assert_eq!(found, expected, "{line}");
    };
    check(
        "-t2 -c100 -d30s -R2000 http://a/",
        (2000, false, false, false),
    );
    check("--rate 2k -L -B http://a/", (2000, true, false, true));
    check("-R1 -U --batch http://a/", (1, true, true, true));
    let check = |line, expected: &str| {
        let expected = Refusal::Usage(Some(String::from(expected)));
        assert_eq!(refused(Tool::Wrk2, line), expected);
    };
    check(
        "http://a/",
        "Throughput MUST be specified with the --rate or -R option",
    );
    check(
        "-R0 http://a/",
        "Throughput MUST be specified with the --rate or -R option",
    );
    check("-C1 -R2 http://a/", "wrk: invalid option -- 'C'");
}
