//! What handshakes are refused for, and what comes before their end.

use crate::site::{Site, free_address, wait_for};
use crate::tls::{ECDSA, certify, counters, curl, millstream, s_client};
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// A client of OpenSSL that sends `early` before the handshake is over, with the session of a file, and `late` behind it.
fn early(site: &Site, address: SocketAddr, early: &str, late: &str) -> String {
    let file = site.path("early.txt");
    fs::write(&file, early).unwrap();
    let mut child = Command::new("openssl")
        .args(["s_client", "-tls1_3", "-ign_eof", "-connect"])
        .arg(address.to_string())
        .arg("-sess_in")
        .arg(site.path("session.pem"))
        .arg("-early_data")
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    (child.stdin.as_mut().unwrap())
        .write_all(late.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Has OpenSSL write a session to that file.
fn keep_session(site: &Site, address: SocketAddr) {
    let session = site.path("session.pem");
    let options = ["-tls1_3", "-sess_out", session.to_str().unwrap()];
    let (said, _) = s_client(address, &options, &request("/early"));
    assert!(said.ends_with("early=\n"), "{said}");
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
}

#[test]
fn a_request_before_the_end_of_a_handshake_is_taken_once_and_marked() {
    let site = Site::new();
    let [address, behind, without] = [(); 3].map(|()| free_address());
    certify(&site, "a.example", &ECDSA);
    fs::write(site.path("large"), vec![b'x'; 300_000]).unwrap();
    site.configure(
        "",
        &format!(
            "ssl_certificate a.example.pem; ssl_certificate_key a.example.key;
             server {{ listen {behind}; location / {{
                 if ($http_early_data = 1) {{ return 425; }} return 200 \"passed\\n\"; }} }}
             server {{ listen {address} ssl; ssl_early_data on;
                 location = /early {{ return 200 \"early=$ssl_early_data\\n\"; }}
                 location / {{ }}
                 location /passed {{ proxy_pass http://{behind}; proxy_set_header Early-Data $ssl_early_data; }} }}
             server {{ listen {without} ssl; return 200 \"early=$ssl_early_data\\n\"; }}"
        ),
    );
    site.start();
    keep_session(&site, address);
    let first = early(&site, address, &request("/early"), "");
    assert!(
        first.contains("Early data was accepted") && first.contains("early=1\n"),
        "{first}"
    );
    // A session is good once.
    let again = early(&site, address, &request("/early"), &request("/early"));
    assert!(
        again.contains("Early data was rejected") && again.contains("early=\n"),
        "{again}"
    );
    // A server behind that wants to be safe.
    keep_session(&site, address);
    let passed = early(&site, address, &request("/passed"), "");
    assert!(
        passed.contains("Early data was accepted") && passed.contains("HTTP/1.1 425"),
        "{passed}"
    );
    let late = curl(&site, "a.example", address, "/passed", &[]);
    assert_eq!(late, b"passed\n");
    // An answer that goes on behind the handshake.
    keep_session(&site, address);
    let large = early(&site, address, &request("/large"), "");
    assert_eq!(
        large.matches('x').count() / 1000,
        300,
        "{}",
        site.error_log()
    );
    // Half of the request, and the rest behind the handshake.
    keep_session(&site, address);
    let (start, _) = counters_of(&site);
    let half = early(
        &site,
        address,
        "GET /early HTTP/1.1\r\nHost:",
        " a\r\nConnection: close\r\n\r\n",
    );
    assert!(
        half.contains("Early data was accepted") && half.contains("early=\n"),
        "{half}"
    );
    let (taken, refused) = counters_of(&site);
    assert_eq!((taken - start, refused), (1, 1));
    // Where it is off, sessions do not offer it.
    let session = site.path("session.pem");
    let options = ["-tls1_3", "-sess_out", session.to_str().unwrap()];
    s_client(without, &options, &request("/"));
    let off = early(&site, without, &request("/"), &request("/"));
    assert!(!off.contains("Early data was accepted"), "{off}");
}

/// Handshakes whose early data was taken, and was refused.
fn counters_of(site: &Site) -> (u64, u64) {
    (
        counter(site, "tls_early_data_accepted"),
        counter(site, "tls_early_data_rejected"),
    )
}

/// What the server counted, as `status` shows it.
fn counter(site: &Site, name: &str) -> u64 {
    let all = millstream(&["status", &site.master().unwrap().to_string(), "--json"]);
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    find(&all, name).unwrap_or_else(|| panic!("{name}: {all}"))
}

fn find(value: &serde_json::Value, name: &str) -> Option<u64> {
    match value {
        serde_json::Value::Object(all) => match all.get(name) {
            Some(found) => found.as_u64(),
            None => all.values().find_map(|inner| find(inner, name)),
        },
        serde_json::Value::Array(all) => all.iter().find_map(|inner| find(inner, name)),
        _ => None,
    }
}

#[test]
fn a_default_server_without_a_certificate_refuses_the_handshakes_of_other_names() {
    let (site, address) = (Site::new(), free_address());
    certify(&site, "a.example", &ECDSA);
    site.configure(
        "",
        &format!(
            "server {{ listen {address} ssl default_server; ssl_reject_handshake on; }}
             server {{ listen {address} ssl; server_name a.example;
                 ssl_certificate a.example.pem; ssl_certificate_key a.example.key; return 200 named; }}"
        ),
    );
    site.start();
    assert_eq!(curl(&site, "a.example", address, "/", &[]), b"named");
    for options in [&["-servername", "b.example"][..], &["-noservername"]] {
        let (answer, said) = s_client(address, options, &request("/"));
        assert!(
            answer.is_empty() && said.contains("unrecognized name"),
            "{said}"
        );
    }
    site.wait_for_log("(SSL: handshake rejected) while SSL handshaking");
}

#[test]
fn records_are_no_longer_than_the_configuration_says() {
    let (site, address) = (Site::new(), free_address());
    certify(&site, "a.example", &ECDSA);
    fs::write(site.path("large"), vec![b'x'; 300_000]).unwrap();
    site.configure(
        "",
        &format!(
            "server {{ listen {address} ssl; ssl_buffer_size 4k;
             ssl_certificate a.example.pem; ssl_certificate_key a.example.key; }}"
        ),
    );
    site.start();
    let (answer, said) = s_client(address, &["-msg", "-tls1_3"], &request("/large"));
    // Each record's head stands alone: `<<< TLS 1.3, RecordHeader [length 0005]`, and its five bytes.
    let records = answer.lines().chain(said.lines()).filter_map(|line| {
        let length = line.trim().strip_prefix("17 03 03 ")?.replace(' ', "");
        usize::from_str_radix(&length, 16).ok()
    });
    let longest = records.max().unwrap();
    assert!((4096..4096 + 64).contains(&longest), "{longest}");
}

#[test]
fn handshakes_that_come_together_wait_for_each_other_and_all_are_answered() {
    let (site, address) = (Site::new(), free_address());
    certify(&site, "a.example", &ECDSA);
    site.configure(
        "",
        &format!(
            "server {{ listen {address} ssl; return 200 \"answer\";
             ssl_certificate a.example.pem; ssl_certificate_key a.example.key; }}"
        ),
    );
    site.start();
    let counted = counters(&format!("--no-keepalive -c 100 -n 1000 https://{address}/"));
    let found = ["answered", "handshakes"].map(|name| counted[name].as_u64());
    assert_eq!(found, [Some(1000), Some(1000)], "{counted}");
    assert!(counter(&site, "tls_handshakes_deferred") > 0);
    assert_eq!(counter(&site, "tls_handshakes"), 1000);
}

#[test]
fn secrets_are_logged_for_programs_that_look_at_packets() {
    let (site, address) = (Site::new(), free_address());
    certify(&site, "a.example", &ECDSA);
    let log = site.path("keys.log");
    site.configure(
        "",
        &format!(
            "server {{ listen {address} ssl; return 200 \"answer\"; ssl_key_log {};
             ssl_certificate a.example.pem; ssl_certificate_key a.example.key; }}",
            log.display()
        ),
    );
    site.start();
    let theirs = site.path("theirs.log");
    let options = ["-tls1_3", "-keylogfile", theirs.to_str().unwrap()];
    s_client(address, &options, &request("/"));
    let lines = |path: &std::path::Path| -> std::collections::BTreeSet<String> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let of_traffic = text.lines().filter(|line| line.contains("_TRAFFIC_SECRET"));
        of_traffic.map(str::to_lowercase).collect()
    };
    let expected = lines(&theirs);
    assert_eq!(expected.len(), 4);
    wait_for("the secrets", || (lines(&log) == expected).then_some(()));
    let mode = fs::metadata(&log).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn signatures_and_sessions_are_shown() {
    let (site, address) = (Site::new(), free_address());
    certify(&site, "a.example", &ECDSA);
    certify(&site, "b.example", &["rsa:2048"]);
    site.configure(
        "",
        &format!(
            "ssl_session_tickets off; ssl_session_cache shared:a:1m;
             ssl_verify_client optional_no_ca; server {{ listen {address} ssl;
             return 200 \"$ssl_sigalg|$ssl_client_sigalg|$ssl_session_id|\";
             ssl_certificate a.example.pem; ssl_certificate_key a.example.key;
             ssl_certificate b.example.pem; ssl_certificate_key b.example.key; }}"
        ),
    );
    site.start();
    let ask = |options: &str| {
        let options: Vec<&str> = options.split(' ').collect();
        let mut child = Command::new("openssl")
            .args(["s_client", "-ign_eof", "-connect", &address.to_string()])
            .args(options)
            .current_dir(site.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let request = request("/");
        (child.stdin.as_mut().unwrap())
            .write_all(request.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let answer = said.lines().find(|line| line.matches('|').count() == 3);
        let answer: Vec<String> = answer.unwrap().split('|').map(String::from).collect();
        let id = said
            .lines()
            .find_map(|line| line.trim().strip_prefix("Session-ID: "));
        (answer, id.unwrap_or_default().to_lowercase())
    };
    let (answer, id) = ask("-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256");
    assert_eq!(answer[..2], ["ecdsa_secp256r1_sha256", ""]);
    assert_eq!((&answer[2], id.len()), (&id, 64));
    let (answer, _) = ask("-tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256 -sigalgs RSA+SHA384");
    assert_eq!(answer[0], "rsa_pkcs1_sha384");
    let (answer, _) = ask("-tls1_3 -sigalgs rsa_pss_rsae_sha512");
    assert_eq!(answer[0], "rsa_pss_rsae_sha512");
    let (answer, _) = ask("-tls1_3 -cert b.example.pem -key b.example.key");
    assert_eq!(answer[0], "ecdsa_secp256r1_sha256");
    assert!(answer[1].starts_with("rsa_pss_rsae_sha"), "{answer:?}");
    assert_eq!(answer[2], "");
    // A resumed session has no signature, and its first one's id.
    let (first, _) = ask("-tls1_2 -sess_out s.pem");
    let (second, _) = ask("-tls1_2 -sess_in s.pem");
    assert_eq!((&second[0], &second[2]), (&String::new(), &first[2]));
}

/// A server on which the generator's three kinds of handshakes can be told apart.
fn early_server(address: SocketAddr, without: SocketAddr) -> String {
    format!(
        "ssl_certificate a.example.pem; ssl_certificate_key a.example.key; ssl_protocols TLSv1.2 TLSv1.3;
         server {{ listen {address} ssl; ssl_early_data on;
             location / {{ return 200 \"early=$ssl_early_data\\n\"; }}
             location = /late {{ if ($ssl_early_data) {{ return 425; }} return 200 \"late\\n\"; }} }}
         server {{ listen {without} ssl; location / {{ return 200 \"late\\n\"; }} }}"
    )
}

/// Runs the generator with one connection at a time, and checks its counters: requests that were answered, handshakes, those
/// that resumed a session, and of early data what was accepted, what was rejected, and what was answered 425.
#[track_caller]
fn check_load(arguments: &str, expected: [u64; 6]) {
    let counted = counters(&format!("-c 1 --max-errors 0 {arguments}"));
    let names = [
        "answered",
        "handshakes",
        "handshakes_resumed",
        "early_accepted",
        "early_rejected",
        "early_too_early",
    ];
    let found = names.map(|name| counted[name].as_u64().unwrap_or(u64::MAX));
    assert_eq!(found, expected, "{arguments}: {counted}");
    assert_eq!(counted["statuses_bad"].as_u64(), Some(0), "{counted}");
}

/// What the generator does with a server of early data, whichever it is.
fn check_early_loads(address: SocketAddr, without: SocketAddr) {
    let one = "--requests-per-connection 1";
    let url = format!("https://{address}/");
    // The first handshake is a full one, and each later one brings the ticket of the next.
    check_load(
        &format!("-n 40 --tls-early {one} {url}"),
        [40, 40, 39, 39, 0, 0],
    );
    check_load(
        &format!("-n 40 --tls-early --requests-per-connection 4 {url}"),
        [40, 10, 9, 9, 0, 0],
    );
    check_load(&format!("-n 10 --tls-early {url}"), [10, 1, 0, 0, 0, 0]);
    check_load(
        &format!("-n 40 --tls-resume {one} {url}"),
        [40, 40, 39, 0, 0, 0],
    );
    // At a rate the first connection is opened before its first request is due.
    check_load(
        &format!("-n 20 -r 100 --tls-early --requests-per-connection 2 {url}"),
        [20, 10, 9, 9, 0, 0],
    );
    // Requests that are not safe wait for the end of the handshake.
    let file =
        std::env::temp_dir().join(format!("replay-{}-{}", std::process::id(), address.port()));
    fs::write(&file, "GET /\nPOST /\n").unwrap();
    let replay = format!("--replay {}", file.display());
    check_load(
        &format!("-n 20 --tls-early {one} {replay} {url}"),
        [20, 20, 19, 9, 0, 0],
    );
    fs::remove_file(&file).unwrap();
    check_answers_too_early(&format!("-c 1 -n 20 --tls-early {one} {url}late"));
    check_load(
        &format!("-n 10 --tls-early {one} https://{without}/"),
        [10, 10, 9, 0, 0, 0],
    );
}

/// What is answered 425 is sent again behind the handshake. A server that has seen the handshake's end when it comes to
/// the request answers at once, which a whole load may meet, so that loads are run until one was told 425.
fn check_answers_too_early(load: &str) {
    let again = (0..20).find_map(|_| {
        let late = counters(load);
        let count = |name: &str| late[name].as_u64().unwrap();
        assert_eq!(
            (count("answered"), count("statuses_bad")),
            (20, 0),
            "{late}"
        );
        let again = count("early_too_early");
        assert!(again <= count("early_accepted"), "{late}");
        (again > 0).then_some(again)
    });
    assert!(again.is_some(), "no load was told 425: {load}");
}

#[test]
fn the_load_generator_sends_early_data_to_a_server_of_ours() {
    let site = Site::new();
    let [address, without] = [(); 2].map(|()| free_address());
    certify(&site, "a.example", &ECDSA);
    site.configure("", &early_server(address, without));
    site.start();
    check_early_loads(address, without);
    let url = format!("https://{address}/");
    let arguments = format!("load -t 1 -n 40 -c 1 --tls-early --requests-per-connection 1 {url}");
    let words: Vec<&str> = arguments.split(' ').collect();
    let summary = millstream(&words);
    for expected in [
        "  handshakes  1 full (",
        ", 39 resumed (",
        "  early data  39 accepted (",
        "), 0 rejected (0/s), 0 answered 425\n",
        "  TTFB      ",
    ] {
        assert!(summary.contains(expected), "{expected}: {summary}");
    }
    let json = [&words[..], &["--quiet", "--json", "-"]].concat();
    let document: serde_json::Value = serde_json::from_str(&millstream(&json)).unwrap();
    let summary = &document["summary"];
    let accepted = &summary["handshakes"]["early_accepted"];
    assert_eq!(accepted["count"].as_u64(), Some(39), "{summary}");
    assert!(accepted["per_s"].as_f64() > Some(0.0), "{summary}");
    for figures in ["connect", "tls_handshake", "first_byte", "ttfb"] {
        let figures = &summary[figures];
        assert_eq!(figures["count"].as_u64(), Some(40), "{summary}");
        assert!(figures["p99_ns"].as_u64() > Some(0), "{summary}");
    }
}

/// A process that ends with the test.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_load_generator_sends_early_data_to_nginx() {
    let site = Site::new();
    let [address, without] = [(); 2].map(|()| free_address());
    certify(&site, "a.example", &ECDSA);
    let servers = early_server(address, without);
    let text = format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr;
         events {{}} http {{ access_log off; {servers} }}"
    );
    fs::write(site.path("early.conf"), text).unwrap();
    let started = Command::new("nginx")
        .arg("-p")
        .arg(site.path(""))
        .arg("-c")
        .arg(site.path("early.conf"))
        .stderr(Stdio::null())
        .spawn();
    let Ok(started) = started else {
        println!("there is no nginx: not tested");
        return;
    };
    let _nginx = Ended(started);
    wait_for("nginx", || std::net::TcpStream::connect(address).ok());
    check_early_loads(address, without);
}

#[test]
fn the_load_generator_sends_early_data_to_openssl() {
    use std::io::{BufRead, BufReader};
    let site = Site::new();
    let address = free_address();
    certify(&site, "a.example", &ECDSA);
    let server = Command::new("openssl")
        .args(["s_server", "-quiet", "-early_data", "-accept"])
        .arg(address.to_string())
        .arg("-cert")
        .arg(site.path("a.example.pem"))
        .arg("-key")
        .arg(site.path("a.example.key"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut server = Ended(server);
    let asked = BufReader::new(server.0.stdout.take().unwrap());
    let mut answers = server.0.stdin.take().unwrap();
    let answering = std::thread::spawn(move || {
        for line in asked.lines().map_while(Result::ok) {
            if line.trim().is_empty() {
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                let _ = answers.write_all(answer).and_then(|()| answers.flush());
            }
        }
    });
    // A refused connect is tried again.
    let url = format!("https://{address}/");
    let counted = counters(&format!(
        "-c 1 -d 10 -n 6 --timeout 5s --tls-early --requests-per-connection 1 {url}"
    ));
    drop(server);
    let _ = answering.join();
    let handshakes = counted["handshakes"].as_u64().unwrap();
    let accepted = counted["early_accepted"].as_u64().unwrap();
    assert!(handshakes >= 2 && accepted == handshakes - 1, "{counted}");
    assert_eq!(counted["answered"].as_u64(), Some(handshakes), "{counted}");
}
