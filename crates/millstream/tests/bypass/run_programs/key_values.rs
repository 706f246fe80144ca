//! redis, with a forked child that saves, and memcached with threads.

use super::{Peer, have, wait_until_served};
use crate::client::Client;
use crate::namespace::{output_of, text_of};
use crate::run::{Accelerated, BINARY, address, on_stack};
use crate::run_threads::BY_THREAD;
use crate::server::{Site, wait_for};
use crate::topology::{
    FAR_ADDRESS, HOSTS, STACK, Topology, between, between_queues, is_steered, kernel_connections,
};
use mill_sys::signal::Signal;
use std::fs;

/// The words that start redis-server without configuration, in a folder, for any client.
fn redis_server(folder: &str) -> Vec<&str> {
    let open = ["--bind", "0.0.0.0", "--protected-mode", "no"];
    let files = ["--dir", folder, "--save", ""];
    [&["redis-server"], &open[..], &files].concat()
}

/// Each kind of command is answered, by some connections and some threads.
fn check_benchmark(run: &dyn Fn(&[&str]) -> String, host: &str) {
    let words = [
        "redis-benchmark",
        "-h",
        host,
        "-q",
        "-n",
        "3000",
        "-c",
        "20",
    ];
    for way in [
        &["-t", "set,get,lpush,lrange_100,mset"][..],
        &["--threads", "2", "-P", "8", "-t", "set,get"],
    ] {
        let report = run(&[&words[..], way].concat());
        let lines = report.matches("requests per second").count();
        assert!(lines >= 2 && !report.contains("rror"), "{report}");
    }
}

/// Stores bytes at a name and reads them again.
fn exchange(client: &mut Client, name: &str, bytes: &[u8]) {
    let head = format!(
        "*3\r\n$3\r\nSET\r\n${}\r\n{name}\r\n${}\r\n",
        name.len(),
        bytes.len()
    );
    let end = format!("\r\n*2\r\n$3\r\nGET\r\n${}\r\n{name}\r\n", name.len());
    client
        .send(&[head.as_bytes(), bytes, end.as_bytes()].concat())
        .unwrap();
    let head = format!("+OK\r\n${}\r\n", bytes.len());
    let expected = [head.as_bytes(), bytes, b"\r\n"].concat();
    assert!(client.content(expected.len()).unwrap() == expected);
}

#[test]
fn redis_serves_while_its_child_saves() {
    if !have(&["redis-server", "redis-benchmark", "redis-cli"]) {
        return;
    }
    for threads in ["1", "2"] {
        between(1500, |topology| {
            let site = Site::new();
            let folder = site.path("");
            let words = redis_server(folder.to_str().unwrap());
            let more = ["--io-threads", threads, "--io-threads-do-reads", "yes"];
            let redis = Accelerated::start(&[&words[..], &more].concat());
            let mut kept = wait_until_served(topology, 6379);
            let large = fs::read(site.path("large.bin")).unwrap();
            for name in ["a", "b", "c"] {
                exchange(&mut kept, name, &large);
            }
            let ask = |words: &[&str]| {
                topology.at_client(|| text_of("redis-cli", &[&["-h", HOSTS[0]], words].concat()))
            };
            // So that the child goes on under load.
            ask(&["config", "set", "rdb-key-save-delay", "100000"]);
            ask(&["bgsave"]);
            wait_for(|| !redis.children().is_empty());
            let run = |words: &[&str]| topology.at_client(|| text_of(words[0], &words[1..]));
            check_benchmark(&run, HOSTS[0]);
            wait_for(|| ask(&["info", "persistence"]).contains("rdb_bgsave_in_progress:0"));
            assert!(ask(&["info", "persistence"]).contains("rdb_last_bgsave_status:ok"));
            let saved = site.path("dump.rdb");
            text_of("redis-check-rdb", &[saved.to_str().unwrap()]);
            exchange(&mut kept, "d", &large);
            assert_eq!(kernel_connections(6379), "");
            assert!(redis.end(Signal::Terminate).success());
        });
    }
}

#[test]
fn the_clients_of_redis_ask_over_the_stack() {
    if !have(&["redis-server", "redis-benchmark", "redis-cli"]) {
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let folder = site.path("");
        let _redis = Peer::start(topology, &redis_server(folder.to_str().unwrap()));
        let ping = || output_of("redis-cli", &["ping"]).stdout == b"PONG\n";
        topology.at_client(|| wait_for(ping));
        check_benchmark(&on_stack, FAR_ADDRESS);
        check_large_value(topology, &site);
        assert_eq!(text_of("ss", &["-Htan", "dport = :6379"]), "");
        wait_for(|| !is_steered());
    });
}

/// redis-cli sends a large value, and reads it.
fn check_large_value(topology: &Topology, site: &Site) {
    let large = site.path("large.bin");
    let script = format!(
        "redis-cli -h {FAR_ADDRESS} -x set large < {}",
        large.display()
    );
    assert_eq!(on_stack(&["sh", "-c", &script]), "OK\n");
    let asked = ["redis-cli", "-h", FAR_ADDRESS, "get", "large"];
    let got = output_of(
        BINARY,
        &[&["run", "--stack", STACK, "--"], &asked[..]].concat(),
    );
    let expected = [&fs::read(&large).unwrap()[..], b"\n"].concat();
    assert!(got.stdout == expected);
    let len = topology.at_client(|| text_of("redis-cli", &["strlen", "large"]));
    assert_eq!(len, "12000000\n");
}

#[test]
fn memcached_serves_with_all_of_its_threads() {
    if !have(&["memcached"]) {
        return;
    }
    for stack in [STACK, BY_THREAD] {
        between_queues([2, 2], |topology| check_memcached(topology, stack));
    }
}

/// Threads get connections that another one has accepted.
fn check_memcached(topology: &Topology, stack: &str) {
    let words = ["memcached", "-u", "nobody", "-U0", "-t4", "-l", "0.0.0.0"];
    let memcached = Accelerated::on(stack, &words);
    drop(wait_until_served(topology, 11211));
    let mut clients: Vec<Client> = topology.at_client(|| {
        let clients = (0..20).map(|_| Client::connect(address(11211)).unwrap());
        clients.collect()
    });
    for round in 0..3 {
        for (number, client) in clients.iter_mut().enumerate() {
            let value = vec![b'a' + u8::try_from(number).unwrap(); 900_000 + round];
            let head = format!("set k{number} 0 0 {}\r\n", value.len());
            let end = format!("\r\nget k{number}\r\n");
            client
                .send(&[head.as_bytes(), &value, end.as_bytes()].concat())
                .unwrap();
            let head = format!("STORED\r\nVALUE k{number} 0 {}\r\n", value.len());
            let expected = [head.as_bytes(), &value, b"\r\nEND\r\n"].concat();
            assert!(client.content(expected.len()).unwrap() == expected);
        }
    }
    assert_eq!(kernel_connections(11211), "");
    drop(clients);
    assert!(memcached.end(Signal::Terminate).success());
}
