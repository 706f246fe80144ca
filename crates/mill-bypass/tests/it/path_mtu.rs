//! Paths with a smaller MTU than the link: behind a router that sends ICMP errors, and behind one that does not.

use crate::server::Client;
use crate::server::{MTU, PORT, Server, network, serve_at};
use mill_conformance::End;
use mill_conformance::content::{pattern, take_all};
use mill_runtime::address::Address;
use mill_runtime::engine::ListenOptions;
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use mill_sim::packet::ethernet::{Station, StationOptions};
use mill_sim::packet::wire::{Router, Wire};
use std::time::Duration;

/// A server that answers each byte with so many megabytes, and its station.
struct Behind {
    server: Server,
    station: Station,
}

/// A wire of 2 ms at whose end packets of more than `mtu` bytes do not fit.
fn wire(mtu: u16, tells_too_big: bool) -> Wire {
    Wire {
        mtu: Some(mtu),
        router: if tells_too_big {
            Router::TRUTHFUL
        } else {
            Router::SILENT
        },
        ..Wire::delayed(Duration::from_millis(2))
    }
}

impl Behind {
    fn start(wire: Wire) -> Self {
        let network = network();
        let mut station = None;
        let (engine, _, ip) = network.host(StationOptions::new(MTU), |options| {
            station = Some(options.link.station());
        });
        let station = station.unwrap();
        station.set_wires(wire, wire);
        let listening = ListenOptions::new(Address::Ip((ip, PORT).into()));
        let answer = pattern(ANSWER_BYTES);
        let address = (ip, PORT).into();
        let serve = move |stream: crate::server::TestStream, _| {
            let answer = answer.clone();
            async move {
                while stream.readable(1).await.is_ok_and(|it| it.unread > 0) {
                    take_all(&stream);
                    stream.write(Payload::Copy(&answer));
                }
            }
        };
        let server = serve_at(network, engine, &listening, address, serve);
        Self { server, station }
    }

    /// Requests an answer; returns how long it took.
    fn ask(&mut self, client: &mut Client) -> Duration {
        let begun = self.server.now();
        client.received.clear();
        client.send("x");
        self.server.run_until("the answer", || {
            client.ended(End::Fin);
            client.received.len() >= ANSWER_BYTES
        });
        assert!(client.received == pattern(ANSWER_BYTES));
        self.server.now().since(begun)
    }

    fn connect_and_ask(&mut self) -> (Client, Duration) {
        let mut client = Client::connect(self.server.address);
        let took = self.ask(&mut client);
        (client, took)
    }

    /// Timeouts, and payload bytes of a full segment of the only connection.
    fn look(&self) -> (u64, u16) {
        let engine = &self.server.around.engine;
        let looked = engine.with_host(|host| {
            let mss = host.connections().map(|it| it.info.mss).max();
            (host.tcp_counters().timeouts, mss.unwrap_or(0))
        });
        looked.unwrap()
    }

    fn wait(&mut self, duration: Duration) {
        let end = self.server.now() + duration;
        while self.server.now() < end {
            self.server.turn();
        }
    }
}

const ANSWER_BYTES: usize = 400_000;

/// Less than a timeout.
const SOON: Duration = Duration::from_millis(150);

#[test]
fn a_mtu_that_a_router_reports_holds_for_all_connections_at_once_and_for_ten_minutes() {
    let mut behind = Behind::start(wire(1400, true));
    let (mut first, took) = behind.connect_and_ask();
    assert!(took < SOON, "{took:?}");
    assert_eq!(behind.look(), (0, 1348));
    let (_second, took) = behind.connect_and_ask();
    assert!(took < SOON, "{took:?}");
    let told = |behind: &Behind| {
        let engine = &behind.server.around.engine;
        let told = engine.with_host(|host| (host.counters().paths_told, host.paths().len()));
        told.unwrap()
    };
    assert_eq!(told(&behind), (1, 1), "the second one caused no message");
    // The path carries more again: afterwards segments grow, those of old connections too.
    let all = wire(1500, true);
    behind.station.set_wires(all, all);
    behind.wait(Duration::from_secs(500));
    behind.ask(&mut first);
    assert_eq!(behind.look(), (0, 1348));
    behind.wait(Duration::from_secs(110));
    behind.ask(&mut first);
    assert_eq!(behind.look(), (0, 1448));
    assert_eq!(told(&behind).0, 1);
}

#[test]
fn a_path_that_drops_large_packets_is_detected_once_and_searched_upwards() {
    let mut behind = Behind::start(wire(1400, false));
    let (mut first, took) = behind.connect_and_ask();
    assert!(took < Duration::from_secs(2), "{took:?}");
    let (timeouts, mss) = behind.look();
    assert!((1341..=1348).contains(&mss), "{mss}");
    // Neither the next answer nor the next connection repeats the search.
    for _ in 0..3 {
        let took = behind.ask(&mut first);
        assert!(took < SOON, "{took:?}");
        let (_second, took) = behind.connect_and_ask();
        assert!(took < SOON, "{took:?}");
    }
    assert_eq!(behind.look(), (timeouts, mss));
    // Ten minutes later larger ones are tried, which costs no timeout.
    behind.wait(Duration::from_secs(610));
    behind.ask(&mut first);
    assert_eq!(behind.look().0, timeouts);
    // The path carries more again, which the next search finds, on a connection that was open all the time.
    let all = wire(1500, false);
    behind.station.set_wires(all, all);
    behind.wait(Duration::from_secs(610));
    behind.ask(&mut first);
    assert_eq!(behind.look(), (timeouts, 1448));
    let (_third, took) = behind.connect_and_ask();
    assert!(took < SOON, "{took:?}");
}

#[test]
fn open_connections_use_the_mtu_that_another_one_finds() {
    for tells in [true, false] {
        let mut behind = Behind::start(wire(1500, tells));
        let (mut first, _) = behind.connect_and_ask();
        let (mut second, _) = behind.connect_and_ask();
        assert_eq!(behind.look().1, 1448);
        let narrow = wire(1300, tells);
        behind.station.set_wires(narrow, narrow);
        behind.ask(&mut first);
        let (timeouts, _) = behind.look();
        let took = behind.ask(&mut second);
        assert!(took < SOON, "{tells} {took:?}");
        assert_eq!(behind.look().0, timeouts, "{tells}");
    }
}
