//! Two workers.

use crate::answer::{answer, answers};
use crate::server::{ADDRESS, SECOND, Server, one_server};
use mill_server::worker::Order;
use mill_sim::world::World;

const GET: &str = "GET /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Two workers, on a socket each or on one socket together.
fn two(seed: u64, reuseport: bool, directives: &str) -> Server {
    let text = one_server(directives);
    let text = if reuseport {
        text.replace(ADDRESS, &format!("{ADDRESS} reuseport"))
    } else {
        text
    };
    Server::configured(World::new(seed), &text, 2)
}

#[test]
fn both_serve_their_share_of_one_port() {
    let mut server = two(7, true, "add_header X-Pid $connection;");
    let clients: Vec<_> = (0..60).map(|_| server.connect()).collect();
    for client in &clients {
        client.send(GET);
    }
    server.run();
    let mut numbers = Vec::new();
    for client in &clients {
        let answer = answer(&client.received());
        assert_eq!(answer.text(), "file a\n");
        numbers.push(answer.field("X-Pid").unwrap().parse::<u64>().unwrap());
    }
    // Each worker reserves numbers in blocks of 64.
    let first = numbers.iter().filter(|number| **number <= 64).count();
    assert!(
        (10..=50).contains(&first),
        "{first} of 60 came to one worker"
    );
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 60, "$connection is unique over all workers");
    assert_eq!(server.counters().connections_accepted, 60);
    server.assert_nothing_left(0);
}

#[test]
fn both_serve_one_socket() {
    let mut server = two(7, false, "");
    let clients: Vec<_> = (0..60).map(|_| server.connect()).collect();
    for client in &clients {
        client.send(GET);
    }
    server.run();
    for client in &clients {
        assert_eq!(answer(&client.received()).text(), "file a\n");
    }
    server.assert_nothing_left(0);
}

#[test]
fn one_that_drains_leaves_the_other_serving() {
    let mut server = two(3, false, "");
    server.run();
    server.workers[0].order(Order::Drain { limit: None });
    server.run();
    assert!(server.workers[0].has_ended() && !server.workers[1].has_ended());
    for _ in 0..10 {
        assert_eq!(answer(&server.ask(GET)).status, 200);
    }
}

#[test]
fn both_adopt_a_new_configuration() {
    for reuseport in [false, true] {
        let mut server = two(3, reuseport, "add_header X-Name old;");
        let clients: Vec<_> = (0..20).map(|_| server.connect()).collect();
        let get = "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n";
        for client in &clients {
            client.send(get);
        }
        server.run();
        let text = one_server("add_header X-Name new;");
        let text = if reuseport {
            text.replace(ADDRESS, &format!("{ADDRESS} reuseport"))
        } else {
            text
        };
        server.adopt(&text);
        server.run();
        for client in &clients {
            client.send(get);
        }
        server.run_to(SECOND);
        for client in &clients {
            let answers = answers(&client.received());
            let names: Vec<_> = answers.iter().map(|a| a.field("X-Name").unwrap()).collect();
            assert_eq!(names, ["old", "new"]);
        }
    }
}

#[test]
fn stub_status_shows_the_sum() {
    let mut server = two(3, true, "location /status { stub_status; }");
    let idle: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for client in &idle {
        client.send("GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    server.run();
    let received = server.ask("GET /status HTTP/1.1\r\nHost: a\r\n\r\n");
    let text = answer(&received).text();
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words[..3], ["Active", "connections:", "21"], "{text}");
    assert!(
        text.contains(" 21 21 21 "),
        "accepts handled requests: {text}"
    );
    assert!(text.contains("Reading: 0 Writing: 1 Waiting: 20"), "{text}");
}

#[test]
fn metrics_show_each_workers_counters() {
    let mut server = two(3, true, "location /metrics { millstream_metrics; }");
    for _ in 0..20 {
        let received = server.ask("GET /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_eq!(answer(&received).status, 200);
    }
    let received = server.ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    let text = answer(&received).text();
    assert!(
        text.starts_with("# HELP millstream_connections_accepted_total "),
        "{text}"
    );
    let requests = |line: &str| -> Option<u64> {
        let rest = line.strip_prefix("millstream_requests_total{worker=\"")?;
        rest.rsplit_once(' ')?.1.parse().ok()
    };
    let each: Vec<u64> = text.lines().filter_map(requests).collect();
    // The current request counts.
    assert_eq!((each.len(), each.iter().sum::<u64>()), (2, 21), "{text}");
    let refused = server.ask("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(answer(&refused).status, 405);
}
