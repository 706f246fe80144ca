//! Servers on a stack of their own.

use crate::ask::{assert_consistent, figure, json, rows, text};
use crate::client::Client;
use crate::namespace::{get, text_of};
use crate::server::{Site, wait_for};
use crate::topology::{HOSTS, between, serve};
use serde_json::Value;

#[test]
fn connections_are_those_that_ss_shows_on_the_other_side() {
    between(1500, |topology| {
        let site = Site::new();
        let server = serve(&site);
        let process = server.pid().number().to_string();
        let mut kept: Vec<Client> = topology.at_client(|| {
            let addresses = HOSTS.map(|host| format!("{host}:80").parse().unwrap());
            addresses
                .map(|address| Client::connect(address).unwrap())
                .into()
        });
        for client in &mut kept {
            assert_eq!(client.get("/").unwrap().status, 200);
        }
        let there = topology.at_client(|| text_of("ss", &["-Htn", "state", "established"]));
        let expected: Vec<(String, String)> = there
            .lines()
            .map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                (words[3].to_owned(), words[2].to_owned())
            })
            .collect();
        assert_eq!(expected.len(), 2, "{there}");
        let status = json(&[&process, "--connections", "--state", "established"]);
        let mut found: Vec<(String, String)> = rows(&status, "connections")
            .iter()
            .map(|row| {
                (
                    row["local"].as_str().unwrap().to_owned(),
                    row["remote"].as_str().unwrap().to_owned(),
                )
            })
            .collect();
        let mut expected = expected;
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
        for row in rows(&status, "connections") {
            assert_eq!(row["state"], "established");
            assert!(row["rtt_us"].as_u64().unwrap() > 0, "{row}");
            assert!(row["mss"].as_u64().unwrap() >= 1400, "{row}");
            assert_eq!(row["send_queue"], 0);
        }
        let of_one = json(&[&process, "--connections", "--address", "10.50.0.2"]);
        assert_eq!(rows(&of_one, "connections").len(), 1);
        let (output, _) = text(&[&process, "connections"]);
        assert!(output.contains("        ts sack "), "{output}");
    });
}

#[test]
fn frames_and_requests_add_up() {
    between(1500, |topology| {
        let site = Site::new();
        std::fs::write(site.path("large.txt"), vec![b'a'; 300_000]).unwrap();
        let server = serve(&site);
        let process = server.pid().number().to_string();
        topology.at_client(|| {
            for _ in 0..20 {
                let fetched = get(&format!("http://{}/large.txt", HOSTS[0]));
                assert_eq!(fetched.map(|text| text.len()), Some(300_000));
                assert!(get(&format!("http://{}/", HOSTS[1])).is_some());
            }
        });
        wait_for(|| figure(&json(&[&process]), "total.server.connections_active") == 0);
        let status = json(&[&process, "--all"]);
        assert_consistent(&status);
        assert_eq!(figure(&status, "total.server.requests"), 40);
        assert!(figure(&status, "total.stack.opens_passive") >= 40);
        assert!(figure(&status, "total.stack.segments_sent") > 0);
        assert_eq!(status["server"]["stack"], "af_xdp:mill0");
        let listeners = rows(&status, "listeners");
        let has = |address: &str| listeners.iter().any(|row| row["address"] == address);
        assert!(has("0.0.0.0:80") && has("[::]:80"), "{listeners:?}");
        let rings = rows(&status, "rings");
        let fact = |name: &str| {
            rings
                .iter()
                .find(|row| row["name"] == name)
                .map(|row| row["value"].clone())
        };
        assert_eq!(fact("device"), Some(Value::from("af_xdp")));
        assert_eq!(fact("rx_invalid_descs"), Some(Value::from("0")));
        assert!(!rows(&status, "neighbors").is_empty());
        assert!(!rows(&status, "routes").is_empty());
        let (output, _) = text(&[&process, "--drops"]);
        assert!(output.contains(" dropped on the way in\n"), "{output}");
        let (output, code) = text(&[&process, "--all"]);
        assert_eq!(code, Some(0));
        // Not truncated, as the output is not a terminal.
        let whole = "closed at once because `worker_connections` was reached.\n";
        assert!(output.contains(whole), "{output}");
    });
}

#[test]
fn frames_of_a_running_server_are_written_down_for_a_while() {
    between(1500, |topology| {
        let site = Site::new();
        let server = serve(&site);
        let process = server.pid().number().to_string();
        let file = site.path("some.pcap");
        let asked = std::thread::spawn({
            let (process, file) = (process.clone(), file.clone());
            move || {
                let file = file.to_str().unwrap();
                text(&[
                    &process, "--pcap", file, "--for", "20", "--count", "5", "--port", "80",
                ])
            }
        });
        wait_for(|| file.metadata().is_ok_and(|file| file.len() == 24));
        let fetched = topology.at_client(|| get(&format!("http://{}/", HOSTS[0])));
        assert_eq!(fetched.as_deref(), Some("hello\n"));
        let (output, code) = asked.join().unwrap();
        assert!(output.starts_with("5 frames, "), "{output}");
        assert_eq!(code, Some(0));
        // Each record begins with 16 bytes, of which the third word is the length of the frame.
        let bytes = std::fs::read(&file).unwrap();
        let (mut at, mut frames) = (24, 0);
        while at < bytes.len() {
            let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap());
            at += 16 + len as usize;
            frames += 1;
        }
        assert_eq!((at, frames), (bytes.len(), 5));
        let fetched = topology.at_client(|| get(&format!("http://{}/", HOSTS[1])));
        assert_eq!(fetched.as_deref(), Some("hello\n"), "it goes on without");
        let (output, code) = text(&[&process, "--pcap", "/no/such/place"]);
        assert!(output.contains("can't be written"), "{output}");
        assert_eq!(code, Some(1));
    });
}
