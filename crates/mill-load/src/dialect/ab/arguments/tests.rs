//! Command lines: those of the experiments, every letter, every error message of ab.

use super::*;

fn read(path: &[u8]) -> io::Result<Vec<u8>> {
    match path {
        b"body" => Ok(b"a=1".to_vec()),
        b"dir" => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::from_raw_os_error(2)),
    }
}

fn parsed(line: &[&str]) -> Parsed {
    let arguments: Vec<Vec<u8>> = line.iter().copied().map(Vec::from).collect();
    parse(&arguments, &read)
}

/// Command lines, and what is said of them.
fn cases(text: &'static str) -> impl Iterator<Item = (Vec<&'static str>, &'static str)> {
    text.lines().map(|case| {
        let (line, said) = case.split_once(" => ").unwrap();
        (line.split_whitespace().collect(), said)
    })
}

#[track_caller]
fn options(line: &str) -> Options {
    let words: Vec<&str> = line.split_whitespace().collect();
    *parsed(&words).outcome.expect("a command line with a run")
}

#[test]
fn the_command_lines_of_the_experiments_are_understood() {
    let check = |line: &str, requests, concurrency, host_field: &str| {
        let options = options(line);
        assert_eq!(
            (options.requests, options.concurrency),
            (requests, concurrency)
        );
        assert_eq!(options.url.host_field, host_field.as_bytes());
        assert!(!options.keep_alive);
    };
    let url = "http://www.example.com/logo.svg";
    let n1 = format!("-n 800000 -c 100 {url}");
    check(&n1, 800_000, 100, "www.example.com");
    let n2 = format!("-n 800000 -c 300 {url}");
    check(&n2, 800_000, 300, "www.example.com");
    let many = "-n 100000 -c 10000 http://192.168.200.80:9090/";
    check(many, 100_000, 10_000, "192.168.200.80:9090");
}

#[test]
fn without_options_ab_asks_once_on_one_connection() {
    let options = options("a/");
    assert_eq!((options.requests, options.concurrency), (1, 1));
    assert_eq!(options.timeout, Some(Duration::from_secs(30)));
    assert_eq!(options.time_limit, None);
    assert_eq!(options.method, Method::Get);
    assert!(options.percentiles && options.confidence && options.progress);
    assert!(!options.any_length && !options.goes_on && options.html.is_none());
}

#[test]
fn letters_set_what_they_stand_for() {
    let all = options(
        "-klrdSq -v3 -b 4096 -B 10.0.0.1 -s 5 -T t/x -C a=1 -C b=2 -g plot -e csv -X proxy:3128 -p body a/",
    );
    assert!(all.keep_alive && all.any_length && all.goes_on);
    assert!(!all.percentiles && !all.confidence && !all.progress);
    assert_eq!((all.verbosity, all.window_bytes), (3, 4096));
    assert_eq!(all.source.as_deref(), Some(&b"10.0.0.1"[..]));
    assert_eq!(all.timeout, Some(Duration::from_secs(5)));
    assert_eq!(all.content_type.as_deref(), Some(&b"t/x"[..]));
    assert_eq!(all.cookie.as_deref(), Some(&b"b=2"[..]));
    assert_eq!(all.gnuplot.as_deref(), Some(&b"plot"[..]));
    assert_eq!(all.csv.as_deref(), Some(&b"csv"[..]));
    assert_eq!(all.proxy, Some((b"proxy".to_vec(), 3128)));
    assert_eq!(
        (all.method, all.body),
        (Method::Post, Some(b"a=1".to_vec()))
    );
}

#[test]
fn a_time_limit_implies_a_number_that_a_later_one_replaces() {
    let check = |line: &str, limit: Option<u64>, requests| {
        let options = options(line);
        assert_eq!(options.time_limit, limit.map(Duration::from_secs));
        assert_eq!(options.requests, requests);
    };
    check("-t 10 a/", Some(10), 50_000);
    check("-n 7 -t 10 a/", Some(10), 50_000);
    check("-t 10 -n 7 a/", Some(10), 7);
    check("-t 0 a/", None, 50_000);
    check("-t -1 a/", Some(0), 50_000);
    assert_eq!(options("-s -1 a/").timeout, None);
}

#[test]
fn html_is_asked_for_by_four_letters() {
    let html = |line: &str| options(line).html.expect("HTML");
    assert_eq!(html("-w a/").cell, b"bgcolor=white");
    let all = html("-x border=1 -y r -z c a/");
    let expected = Html {
        table: b"border=1".to_vec(),
        row: b"r".to_vec(),
        cell: b"c".to_vec(),
    };
    assert_eq!(all, expected);
    let version = |line: &[&str]| parsed(line).outcome.unwrap_err();
    assert_eq!(version(&["-V"]), Refusal::Version { html: false });
    assert_eq!(version(&["-wV"]), Refusal::Version { html: true });
}

#[test]
fn numbers_are_read_as_c_reads_them() {
    for (text, expected) in [
        ("12", 12),
        (" \t+12x", 12),
        ("-3", -3),
        ("x", 0),
        ("", 0),
        ("2147483648", i32::MIN),
        ("99999999999999999999", -1),
        ("-99999999999999999999", 0),
    ] {
        assert_eq!(atoi(text.as_bytes()), expected, "{text:?}");
    }
}

#[test]
fn wrong_use_is_answered_with_the_usage() {
    for (line, reason) in cases(WRONG_USE) {
        let outcome = parsed(&line).outcome;
        assert_eq!(outcome, Err(Refusal::Usage(Some(reason))), "{line:?}");
    }
    let none = Refusal::Usage(Some("wrong number of arguments"));
    assert_eq!(parsed(&[]).outcome, Err(none));
    assert_eq!(parsed(&["-h"]).outcome, Err(Refusal::Usage(None)));
}

const WRONG_USE: &str = "a/ -n 5 => wrong number of arguments
-n 5 => wrong number of arguments
http://a => invalid URL
- => invalid URL
-c -1 a/ => Invalid Concurrency [Range 0..200000]
-n 300000 -c 200001 a/ => Invalid Concurrency [Range 0..200000]
-c 2 a/ => Cannot use concurrency level greater than total number of requests";

#[test]
fn impossible_options_have_abs_messages() {
    let check = |line: &[&str], text: &str| {
        let expected = Err(Refusal::Fatal(text.replace(r"\n", "\n")));
        assert_eq!(parsed(line).outcome, expected, "{line:?}");
    };
    for (line, text) in cases(IMPOSSIBLE) {
        check(&line, text);
    }
    let long = "x".repeat(1000);
    check(
        &["-A", &long, "a/"],
        "Authentication credentials too long\n",
    );
    check(&["-P", &long, "a/"], "Proxy credentials too long\n");
}

const IMPOSSIBLE: &str = r"-n 0 a/ => Invalid number of requests\n
-n x a/ => Invalid number of requests\n
-i -p body a/ => Cannot mix POST with other methods\n
-p body -u body a/ => Cannot mix PUT with other methods\n
-m X -i a/ => Cannot mix HEAD with other methods\n
-p gone a/ => ab: Could not open POST data file (gone): No such file or directory
-u dir a/ => ab: Could not read POST data file: is a directory";

#[test]
fn options_of_tls_are_kept() {
    let line = [
        "-f",
        "TLS1.2",
        "-Z",
        "HIGH",
        "-E",
        "file",
        "-I",
        "https://a/",
    ];
    let tls = parsed(&line).outcome.unwrap().tls;
    assert_eq!(tls.protocol, Protocol::Tls12);
    assert_eq!(tls.ciphers.as_deref(), Some(&b"HIGH"[..]));
    assert_eq!(tls.certificate.as_deref(), Some(&b"file"[..]));
    assert!(tls.is_nameless);
    for version in ["TLS1", "tls1.1"] {
        let Err(Refusal::Fatal(text)) = parsed(&["-f", version, "https://a/"]).outcome else {
            panic!("{version} is refused");
        };
        assert!(text.contains("TLS 1.0 and 1.1 are not there"), "{text}");
    }
}

#[test]
fn after_an_unknown_letter_ab_goes_on_with_what_follows() {
    let alone = parsed(&["-Q", "a/"]);
    assert_eq!(
        alone.complaint.as_deref(),
        Some(&b"ab: illegal option -- Q"[..])
    );
    assert!(alone.outcome.is_ok());
    let followed = parsed(&["-Q", "-n", "5", "a/"]);
    assert!(matches!(followed.outcome, Err(Refusal::Usage(Some(_)))));
}

#[test]
fn credentials_are_encoded_as_rfc_4648_says() {
    for (plain, encoded) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foobar", "Zm9vYmFy"),
        ("\u{fb}\u{ff}", "w7vDvw=="),
        ("~~>>??", "fn4+Pj8/"),
    ] {
        assert_eq!(base64(plain.as_bytes()), encoded.as_bytes());
    }
}
