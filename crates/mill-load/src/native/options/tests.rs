//! Command lines, good and bad.

use super::*;
use crate::native::requirements::MostErrors;
use crate::native::sample_results::options;

fn parse_words(words: &[&str]) -> Result<LoadCommand, Refused> {
    let arguments: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    parse(&arguments)
}

#[track_caller]
fn check(line: &str, change: impl FnOnce(&mut Options)) {
    let mut expected = options("http://a/");
    change(&mut expected);
    assert_eq!(options(&format!("{line} http://a/")), expected, "{line}");
}

#[track_caller]
fn check_refused(line: &str, expected: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let Refused(why) = parse_words(&words).unwrap_err();
    assert!(why.contains(expected), "{line}: {why}");
}

#[test]
fn without_options_it_is_ten_connections_for_ten_seconds() {
    let plain = options("http://a/");
    assert_eq!(plain.connections, 10);
    assert_eq!(plain.duration, Some(Duration::from_secs(10)));
    assert_eq!(
        (plain.requests, plain.rate, plain.threads),
        (None, None, None)
    );
    assert_eq!(plain.timeout, Some(Duration::from_secs(30)));
    assert_eq!(plain.message.method, "GET");
    assert!(plain.nodelay && plain.message.keep_alive && plain.colour && !plain.quiet);
}

#[test]
fn how_much() {
    check("-d 1.5m", |options| {
        options.duration = Some(Duration::from_secs(90))
    });
    check("-n 1k", |options| {
        (options.requests, options.duration) = (Some(1000), None)
    });
    check("-n 5 -d 3", |options| {
        (options.requests, options.duration) = (Some(5), Some(Duration::from_secs(3)));
    });
    check("--rate 20k --arrivals poisson", |options| {
        options.rate = Some(20_000.0);
        options.arrivals = Arrivals::Poisson;
        options.spin = Duration::from_micros(50);
        options.warm_up = Duration::from_secs(1);
    });
    check("--rate=5 --spin 0 --warm-up 0", |options| {
        options.rate = Some(5.0);
    });
    check("--think 5ms", |options| {
        options.think = Duration::from_millis(5)
    });
    check("--send-delay 5ms", |options| {
        options.think = Duration::from_millis(5)
    });
    check("--warm-up 2s", |options| {
        options.warm_up = Duration::from_secs(2)
    });
}

#[test]
fn connections() {
    for line in ["-d 5s", "-z 5s", "-z5s"] {
        check(line, |options| {
            options.duration = Some(Duration::from_secs(5))
        });
    }
    for line in ["-c 400", "-c400", "--connections 400", "--connections=400"] {
        check(line, |options| options.connections = 400);
    }
    check("-t 2", |options| options.threads = Some(2));
    check("--no-keepalive", |options| {
        options.life = Life::Requests(1);
        options.message.keep_alive = false;
    });
    check("--requests-per-connection 4", |options| {
        options.life = Life::Requests(4)
    });
    check("--connection-rate 50", |options| {
        options.connection_rate = Some(50.0)
    });
    check("--ramp 30s", |options| {
        options.ramp = Some(Duration::from_secs(30))
    });
    check("--timeout 0", |options| options.timeout = None);
}

#[test]
fn requests() {
    check("-X PUT --body a", |options| {
        options.message.method = String::from("PUT");
        options.message.body = Body::Text(String::from("a"));
    });
    check("--body-file f", |options| {
        options.message.method = String::from("POST");
        options.message.body = Body::File(String::from("f"));
    });
    check("-H A:1 -HB:2", |options| {
        let field = |name: &str, value: &str| (String::from(name), String::from(value));
        options.message.headers = vec![field("A", "1"), field("B", "2")];
    });
    check("--user n:p", |options| {
        options.message.user = Some(String::from("n:p"))
    });
    check("--http 1.0", |options| {
        options.message.version = Version::Http10
    });
    check("--replay f", |options| {
        options.message.replay = Some(String::from("f"))
    });
}

#[test]
fn network_and_processes() {
    check(
        "--source 10.0.0.1,10.0.1.0/30 --source-ports 2000-3000",
        |options| {
            let addresses = ["10.0.0.1", "10.0.1.1", "10.0.1.2"];
            options.sources.addresses = addresses.map(|text| text.parse().unwrap()).to_vec();
            options.sources.ports = Some(2000..=3000);
        },
    );
    check("--no-nodelay", |options| options.nodelay = false);
    check("--pin --seed 7", |options| {
        (options.pin, options.seed) = (true, 7)
    });
    check("--server-pid 12", |options| options.server_pid = Some(12));
    check("--processes 4", |options| options.processes = 4);
    check("--part 2/4", |options| {
        options.part = PartIndex::parse("2/4")
    });
    check("--search p99<5ms", |options| {
        options.search = Objective::parse("p99<5ms").ok();
        options.warm_up = Duration::from_secs(1);
        options.spin = Duration::from_micros(50);
    });
    check("--sweep connections=1..8", |options| {
        options.sweep = Sweep::parse("connections=1..8").ok();
    });
    check("--origin 8081,1000", |options| {
        let origin = Origin {
            port: 8081,
            content_bytes: 1000,
        };
        (options.origin, options.threads) = (Some(origin), Some(1));
    });
    check("--start-at 1700000000.5", |options| {
        options.start_at = Some(UnixTime {
            seconds: 1_700_000_000,
            nanos: 500_000_000,
        });
    });
}

#[test]
fn success_and_output() {
    let line = "--max-p50 1ms --max-p90 2ms --max-p99 3ms --max-p999 4ms --max-latency 5ms \
                --max-errors 0.1% --min-rate 10k";
    check(line, |options| {
        options.requirements = (1..)
            .zip([50.0, 90.0, 99.0, 99.9, 100.0])
            .map(|(millis, percent)| Requirement::Latency {
                percent,
                most: Duration::from_millis(millis),
            })
            .chain([
                Requirement::Errors(MostErrors::Percent(0.1)),
                Requirement::Rate { least: 10_000.0 },
            ])
            .collect();
    });
    check("--threshold client_cpu=80:90", |options| {
        options.thresholds.set("client_cpu=80:90").unwrap();
    });
    check("--json a --hlog b --csv - --svg d", |options| {
        let file = |name: &str| Some(String::from(name));
        options.outputs = Outputs {
            json: file("a"),
            hlog: file("b"),
            csv: file("-"),
            svg: file("d"),
        };
    });
    check("-q --no-color --interval 100ms", |options| {
        options.quiet = true;
        options.colour = false;
        options.interval = Duration::from_millis(100);
    });
}

#[test]
fn several_urls_have_weights() {
    let urls = |line: &str| -> Vec<(String, f64)> {
        let urls = options(line).urls.into_iter();
        urls.map(|(url, weight)| (url.target, weight)).collect()
    };
    assert_eq!(
        urls("3=http://a/x?b=c 0.5=http://a:80/y http://a/z"),
        [
            ("/x?b=c".into(), 3.0),
            ("/y".into(), 0.5),
            ("/z".into(), 1.0)
        ]
    );
    assert_eq!(urls("-q -- http://a/x"), [("/x".into(), 1.0)]);
}

#[test]
fn a_url_may_lack_its_scheme() {
    let check = |line: &str, authority: &str, target: &str| {
        let url = &options(line).urls[0].0;
        assert_eq!(
            (url.authority().as_str(), url.target.as_str()),
            (authority, target)
        );
    };
    check("a.example", "a.example", "/");
    check("a.example/x?y", "a.example", "/x?y");
    check("localhost:8080", "localhost:8080", "/");
    check("[::1]:81/x", "[::1]:81", "/x");
    check("3=localhost:8080/y", "localhost:8080", "/y");
    check("localhost:80/?u=http://b/", "localhost:80", "/?u=http://b/");
}

#[test]
fn handshakes_are_of_one_kind() {
    for (line, expected) in [
        ("https://a/", Handshakes::Full),
        ("--tls-resume https://a/", Handshakes::Resumed),
        ("--tls-early https://a/", Handshakes::Early),
        (
            "--tls-early --tls-resume -X HEAD https://a/",
            Handshakes::Early,
        ),
        (
            "--tls-resume --tls-early --replay f https://a/",
            Handshakes::Early,
        ),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let Ok(LoadCommand::Load(options)) = parse_words(&words) else {
            panic!("{line}");
        };
        assert_eq!(options.handshakes, expected, "{line}");
    }
}

#[test]
fn slips_get_a_sentence() {
    check_refused("", "there is no URL");
    for slip in SLIPS.lines() {
        let (line, expected) = slip.split_once(" => ").unwrap();
        check_refused(line, expected);
    }
}

/// Command lines, and what their refusals contain.
const SLIPS: &str = r#"x=http://a/ => x=http://a/: "x" is not a positive number
0=http://a/ => is not a positive number
https://a/ http://a/ => some URLs are https:// and others http://; start one run for each
--tls 1.1 https://a/ => --tls: "1.1" is no version of TLS that is here; there are 1.2 and 1.3
--tls-early http://a/ => --tls-early is of https://
--tls-early --tls 1.2 https://a/ => --tls-early is of TLS 1.3
--tls-early --h2 https://a/ => leave out --h2
--tls-early -X PUT https://a/ => only safe requests
--tls-early --body a https://a/ => only safe requests
http://a/ http://b/ => a and b are two servers
http://a/ http://a:81/ => a and a:81 are two servers
--conections 5 http://a/ => --conections is not an option, did you mean --connections?
-y http://a/ => -y is not an option
ftp://a/ => ftp://a/: the scheme "ftp" is not known
a:x/ => a:x/: 
--rate => --rate needs a value: --rate N
--rate 0 http://a/ => --rate: "0" is not a positive number
-c 0 http://a/ => -c: "0" is too small, it is at least 1
--quiet=1 http://a/ => --quiet takes no value
-d 0 http://a/ => -d: "0" is no time at all
--interval 1ms http://a/ => at least 10ms
--http 2 http://a/ => HTTP/2 is not in this version
--http 3 http://a/ => HTTP/3 is not in this version
--http 4 http://a/ => no version of HTTP
--arrivals normal -r 5 http://a/ => neither uniform nor poisson
-H broken http://a/ => has no colon
-H : http://a/ => is no field name
-X G(T http://a/ => is no method
--body a --body-file b http://a/ => one content
--user nobody http://a/ => NAME:PASSWORD
-c 2 -t 4 http://a/ => --threads is more than --connections
-r 5 --think 1s http://a/ => --think is for a closed loop
--arrivals poisson http://a/ => give --rate, too
--ramp 1s --connection-rate 5 http://a/ => give one of them
--no-keepalive --requests-per-connection 4 http://a/ => leave out
--replay f -X PUT http://a/ => takes methods and targets from its file
--replay f http://a/ http://a/b => give one URL
--processes 20 http://a/ => --processes is more than --connections
--start-at 5 --processes 2 http://a/ => begin together by themselves
--origin 8081 http://a/ => --origin: "8081" is not PORT,BYTES
--origin 0,10 http://a/ => is not PORT,BYTES
--origin 8081,10 -t 2 http://a/ => --origin answers in the thread that sends
--origin 8081,10 --processes 2 http://a/ => --origin is for one process and one run
--search p99<5 http://a/ => --search: p99<5: no goal
--search p99<5ms -n 5 http://a/ => leave out --requests
--search p99<5ms --think 1s http://a/ => closed loop
--sweep connections=1..8 -c 5 http://a/ => leave out --connections
--sweep connections=1..8 --csv x http://a/ => no files
--sweep connections=x http://a/ => --sweep: 
--json - --csv - http://a/ => only one of
--threshold x=1:2 http://a/ => x: no such threshold
--max-errors -1 http://a/ => --max-errors: "-1""#;

#[test]
fn control_characters_and_other_encodings_are_refused() {
    let refusal = |argument: &[u8]| parse(&[argument.to_vec()]).unwrap_err().0;
    assert_eq!(refusal(b"http://a/\xFF"), "\"http://a/\\xff\" is not UTF-8");
    let refused = parse_words(&["-H", "A: 1\r\nB: 2", "http://a/"]).unwrap_err();
    assert!(refused.0.contains("control character"), "{refused}");
}

#[test]
fn the_help_fits_and_the_long_one_has_everything() {
    let text = |word: &str| match parse_words(&[word, "--nonsense"]) {
        Ok(LoadCommand::Help(text)) => text,
        other => panic!("{other:?}"),
    };
    let (screen, everything) = (text("--help"), text("--help-all"));
    assert!(screen.lines().count() <= 40, "{}", screen.lines().count());
    for line in screen.lines().chain(everything.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for entry in entries().filter(|entry| !entry.heading.is_empty()) {
        assert!(everything.contains(entry.usage), "{}", entry.usage);
        assert!(entry.long().starts_with("--"), "{}", entry.usage);
    }
    assert_eq!(text("-h"), screen);
}

#[test]
fn every_option_of_the_list_is_carried_out() {
    for entry in entries() {
        let refusal = entry.set(&mut Draft::default(), "").err();
        let is_known = refusal.is_none_or(|why| !why.contains("nothing carries it out"));
        assert!(is_known, "{}", entry.usage);
    }
}

#[test]
fn no_two_options_have_one_name() {
    let mut names: Vec<&str> = entries()
        .flat_map(|entry| [Some(entry.long()), entry.short()])
        .flatten()
        .collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
