//! Servers on kernel sockets, and those that do not answer.

use crate::ask::{figure, json, run, text};
use crate::client::{Client, get};
use crate::server::{Server, Site, wait_for};
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

/// An address of this machine that was unused a moment ago.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

/// A server of two worker threads at a port of its own.
fn serve(site: &Site, more: &str) -> (Server, SocketAddr) {
    let address = free_address();
    let http = format!("server {{ listen {address}; {more} }}");
    let conf = site.configure("worker_processes 2;", &http);
    let server = Server::configured(site, &conf, &[]);
    (server, address)
}

fn number(process: Pid) -> String {
    process.number().to_string()
}

/// Stops or continues a process.
fn send(process: Pid, signal: &str) {
    let command = format!("kill -{signal} {process}");
    crate::namespace::text_of("sh", &["-c", &command]);
}

#[test]
fn a_server_reports_its_clients_requests() {
    let site = Site::new();
    let (server, address) = serve(&site, "location /metrics { millstream_metrics; }");
    for _ in 0..7 {
        assert_eq!(get(address, "/").unwrap().status, 200);
    }
    assert_eq!(get(address, "/nothing").unwrap().status, 404);
    let mut kept = Client::connect(address).unwrap();
    assert_eq!(kept.get("/").unwrap().status, 200);
    let process = number(server.pid());
    // Closed connections are gone a moment later.
    wait_for(|| figure(&json(&[&process]), "total.server.connections_active") == 1);
    let status = json(&[&process]);
    assert_eq!(figure(&status, "format"), 1);
    assert_eq!(figure(&status, "server.pid").to_string(), process);
    assert_eq!(status["server"]["role"], "master");
    assert_eq!(figure(&status, "total.server.requests"), 9);
    assert_eq!(figure(&status, "total.server.connections_accepted"), 9);
    assert_eq!(figure(&status, "total.server.responses_2xx"), 8);
    assert_eq!(figure(&status, "total.server.responses_4xx"), 1);
    assert_eq!(status["workers"].as_array().unwrap().len(), 2);
    for worker in status["workers"].as_array().unwrap() {
        assert!(
            matches!(worker["state"].as_str(), Some("runs" | "sleeps")),
            "{worker}"
        );
        assert!(worker["stack"].is_null());
    }
    assert_eq!(
        status["parts"].as_array().unwrap().len(),
        2,
        "all have answered"
    );
    let of_kernel = json(&[&process, "--connections"]);
    let [row] = crate::ask::rows(&of_kernel, "connections")[..] else {
        panic!("{of_kernel}");
    };
    assert_eq!(
        (&row["state"], &row["by"]),
        (&"established".into(), &"kernel".into())
    );
    assert_eq!(row["local"], address.to_string());
    metrics_tell_the_same(address);
    drop(kept);
    assert!(server.end(Signal::Quit).success());
    let (text, code) = text(&[&process]);
    assert_eq!(
        (text.as_str(), code),
        (
            format!("millstream status: there is no process {process}\n").as_str(),
            Some(1)
        )
    );
}

/// The sums of a scrape; the scraping requests count too.
fn metrics_tell_the_same(address: SocketAddr) {
    let answer = get(address, "/metrics").unwrap();
    let text = String::from_utf8(answer.content).unwrap();
    let sum = |family: &str| -> u64 {
        let samples = text.lines().filter(|line| {
            let rest = line.strip_prefix(family);
            rest.is_some_and(|rest| rest.starts_with('{'))
        });
        samples
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
            .sum()
    };
    assert_eq!(sum("millstream_requests_total"), 10, "{text}");
    assert_eq!(sum("millstream_responses_total"), 9, "{text}");
    assert_eq!(sum("millstream_connections_accepted_total"), 10);
}

#[test]
fn servers_of_groups_are_shown_with_what_they_did() {
    let site = Site::new();
    let origin = free_address();
    let (server, address) = serve(
        &site,
        &format!("location /app/ {{ proxy_pass http://{origin}/; }} }} server {{ listen {origin};"),
    );
    for path in ["/app/", "/app/", "/app/nothing"] {
        get(address, path).unwrap();
    }
    let process = number(server.pid());
    let status = json(&[&process, "upstreams"]);
    let parts = status["parts"].as_array().unwrap().iter();
    let rows: Vec<_> = parts
        .filter_map(|part| part["upstreams"].as_array())
        .flatten()
        .collect();
    let [row] = rows[..] else { panic!("{status}") };
    assert_eq!(row["group"], origin.to_string());
    assert_eq!((&row["requests"], &row["state"]), (&3.into(), &"up".into()));
    assert_eq!(row["answers"], serde_json::json!([0, 2, 0, 1, 0]));
    assert!(row["header_p99_us"].as_u64() > Some(0));
    let (text, _) = text(&[&process, "--upstreams"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("GROUP, SERVER"), "{text}");
    assert_eq!(lines[1], origin.to_string());
    assert!(lines[2].starts_with(&format!("  {origin}  up ")), "{text}");
    assert!(
        lines[3].starts_with("        2xx:2  4xx:1  head p50:"),
        "{text}"
    );
}

#[test]
fn zones_are_shown_with_what_was_counted_in_them() {
    let site = Site::new();
    let (server, address) = serve(
        &site,
        "status_zone all; location /part/ { status_zone part; return 200 hello; }",
    );
    for path in ["/part/", "/part/", "/nothing"] {
        get(address, path).unwrap();
    }
    let process = number(server.pid());
    let asked = || {
        let status = json(&[&process, "zones"]);
        let parts = status["parts"].as_array().unwrap().iter();
        let zones = parts.filter_map(|part| part["zones"].as_array()).flatten();
        zones.cloned().collect::<Vec<_>>()
    };
    // A request is counted a moment after its client has the answer.
    wait_for(|| asked()[0]["answers"] == serde_json::json!([0, 2, 0, 1, 0]));
    let zones = asked();
    let [all, part] = &zones[..] else {
        panic!("{zones:?}")
    };
    assert_eq!(
        (&all["name"], &all["kind"]),
        (&"all".into(), &"server".into())
    );
    assert_eq!(
        (&all["processing"], &all["requests"]),
        (&0.into(), &3.into())
    );
    assert_eq!(
        (&part["name"], &part["kind"]),
        (&"part".into(), &"location".into())
    );
    assert_eq!(part["answers"], serde_json::json!([0, 2, 0, 0, 0]));
    assert!(all["sent_bytes"].as_u64() > part["sent_bytes"].as_u64());
    let (text, _) = text(&[&process, "--zones"]);
    let words = |line: usize| text.lines().nth(line).unwrap().split_whitespace();
    assert!(words(0).eq("ZONE OF ACTIVE REQUESTS CUT RECEIVED SENT P50 P99 ANSWERS".split(' ')));
    assert!(words(1).take(4).eq(["all", "server", "0", "3"]), "{text}");
    assert!(
        words(2).take(4).eq(["part", "location", "-", "2"]),
        "{text}"
    );
    assert_eq!(words(2).last(), Some("2xx:2"), "{text}");
}

#[test]
fn a_server_is_found_by_each_of_its_names() {
    let site = Site::new();
    let (server, _) = serve(&site, "");
    let process = number(server.pid());
    let (pid_file, conf) = (site.path("pid"), site.path("nginx.conf"));
    let worker = number(server.worker());
    for name in [&process, pid_file.to_str().unwrap(), &worker] {
        assert_eq!(
            figure(&json(&[name]), "server.pid").to_string(),
            process,
            "{name}"
        );
    }
    let (text, code) = text(&[&process]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains(&format!("process {process}, the master, up ")),
        "{text}"
    );
    assert!(text.contains(conf.to_str().unwrap()), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    // Its socket is only accessible to its user, and removed with it.
    let socket = mill_socket(&process);
    assert!(socket.exists());
    assert!(server.end(Signal::Terminate).success());
    assert!(!socket.exists());
}

fn mill_socket(process: &str) -> PathBuf {
    mill_server_host::status::socket_path::own_folder().join(format!("{process}.socket"))
}

#[test]
fn a_worker_process_that_is_stopped_is_named_with_its_last_figures() {
    let site = Site::new();
    let (server, address) = serve(&site, "");
    for _ in 0..5 {
        assert_eq!(get(address, "/").unwrap().status, 200);
    }
    let (process, worker) = (number(server.pid()), server.worker());
    wait_for(|| figure(&json(&[&process]), "total.server.requests") == 5);
    send(worker, "STOP");
    let (output, code) = text(&[&process]);
    send(worker, "CONT");
    assert_eq!(code, Some(3), "{output}");
    for worker in 0..2 {
        let named = output.lines().any(|line| {
            line.starts_with(&format!("worker {worker}: no turn for ")) && line.contains("SIGSTOP")
        });
        assert!(named, "{output}");
    }
    assert!(
        output.contains("requests      5, answered with 5 2xx"),
        "{output}"
    );
    wait_for(|| text(&[&process]).1 == Some(0));
}

#[test]
fn a_server_that_does_not_answer_is_reported_from_its_memory() {
    let site = Site::new();
    let (server, address) = serve(&site, "");
    assert_eq!(get(address, "/").unwrap().status, 200);
    let (process, worker) = (number(server.pid()), server.worker());
    wait_for(|| figure(&json(&[&process]), "total.server.requests") == 1);
    send(server.pid(), "STOP");
    let (of_master, _) = text(&[&process]);
    send(worker, "STOP");
    let (of_both, code) = text(&[&process]);
    send(worker, "CONT");
    send(server.pid(), "CONT");
    let begin = format!(
        "process {process} does not answer (it has not answered for 2 s), since it is stopped"
    );
    assert!(of_master.starts_with(&begin), "{of_master}");
    assert!(
        of_master.contains("requests      1, answered with 1 2xx"),
        "{of_master}"
    );
    assert!(of_both.contains("STOPPED"), "{of_both}");
    assert_eq!(code, Some(3));
    wait_for(|| text(&[&process]).1 == Some(0));
}

#[test]
fn one_process_without_a_master_reports_itself() {
    let site = Site::new();
    let address = free_address();
    let port = address.port().to_string();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_millstream"))
        .arg("serve")
        .arg(site.path(""))
        .args(["--port", &port])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let process = child.id().to_string();
    wait_for(|| get(address, "/").is_ok());
    let status = json(&[&process]);
    assert_eq!(status["server"]["role"], "single");
    assert!(figure(&status, "total.server.requests") >= 1);
    child.kill().unwrap();
    child.wait().unwrap();
    // After a kill its socket is left; the next client removes it.
    let _ = run(&[]);
    assert!(!mill_socket(&process).exists());
}

#[test]
fn a_process_that_is_no_server_is_an_error() {
    let own = std::process::id().to_string();
    let (output, code) = text(&[&own]);
    assert!(output.contains("is no server of Millstream's"), "{output}");
    assert_eq!(code, Some(1));
    let (output, code) = text(&["--conections"]);
    assert!(
        output.contains("did you mean \"--connections\"?"),
        "{output}"
    );
    assert_eq!(code, Some(2));
    assert!(text(&["--help"]).0.starts_with("Usage: millstream status"));
}
