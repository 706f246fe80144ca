//! Random worlds: whatever the segments, delays, windows and buffers, every byte arrives as it was sent, both ways.

use super::peer::Act;
use super::{A, Passing, in_stream, payload, peer};
use crate::server::{ADDRESS, SECOND, Server};
use mill_runtime::engine::Engine;
use mill_sim::engine::SimEngine;
use mill_sim::link::{Link, Segments};
use mill_sim::world::World;
use std::time::Duration;

const SEEDS: u64 = 100;

/// Random choices of a seed, from an engine of the world that serves no connection.
struct Dice(SimEngine);

impl Dice {
    fn up_to(&self, most: u64) -> u64 {
        self.0.random() % (most + 1)
    }

    fn count(&self, most: u64) -> usize {
        usize::try_from(self.up_to(most)).expect("a small number")
    }

    fn one_of<T: Copy>(&self, items: &[T]) -> T {
        items[self.count(items.len() as u64 - 1)]
    }

    fn link(&self) -> Link {
        let most = 1 + self.count(2000);
        Link {
            delay: Duration::from_millis(self.up_to(20)),
            jitter: Duration::from_millis(self.up_to(20)),
            bytes_per_second: self.one_of(&[None, Some(500_000), Some(5_000_000)]),
            window_bytes: 200 + self.up_to(100_000),
            segments: self.one_of(&[Segments::UpTo(most), Segments::Random(most)]),
        }
    }

    fn piece(&self, most: u64) -> Vec<u8> {
        let len = self.count(most);
        let start = self.count((payload().len() - len) as u64);
        payload()[start..start + len].to_vec()
    }
}

/// A world of this seed, whose server answers what it is sent, or speaks first, or both.
fn passing(seed: u64) -> (Passing, Dice, Vec<u8>) {
    let world = World::new(seed);
    let dice = Dice(world.engine());
    world.set_link(dice.link());
    let buffer = dice.one_of(&["1", "100", "4k", "16k", "1m"]);
    let rate = dice.one_of(&["0", "0", "100k"]);
    let nodelay = dice.one_of(&["on", "off"]);
    let text = in_stream(&format!(
        "server {{ listen {ADDRESS}; proxy_pass {A}; proxy_half_close on; proxy_buffer_size {buffer};
         proxy_download_rate {rate}; proxy_upload_rate {rate}; tcp_nodelay {nodelay}; }}"
    ));
    let mut server = Server::configured(world, &text, 1);
    let first = dice.piece(20_000);
    let pause = Duration::from_millis(dice.up_to(50));
    let acts = vec![Act::Send(first.clone()), Act::Wait(pause), Act::Echo];
    let (turn, seen) = peer::start(&server.world, A, acts);
    server.add_peer(turn);
    (Passing { server, seen }, dice, first)
}

#[test]
fn every_byte_arrives_both_ways_in_every_world() {
    for seed in 0..SEEDS {
        let (mut passing, dice, first) = passing(seed);
        let clients: Vec<_> = (0..=dice.count(3)).map(|_| passing.connect()).collect();
        let mut sent = vec![Vec::new(); clients.len()];
        let mut at = Duration::ZERO;
        for _ in 0..dice.count(10) {
            let chosen = dice.count(clients.len() as u64 - 1);
            let piece = dice.piece(10_000);
            at += Duration::from_millis(dice.up_to(100));
            clients[chosen].at(at).send(&piece);
            sent[chosen].extend(piece);
        }
        for client in &clients {
            client.at(at + SECOND).finish();
        }
        passing.server.run_to(600 * SECOND);
        let mut received: Vec<Vec<u8>> = passing.seen.bytes.borrow().clone();
        for (client, sent) in clients.iter().zip(&sent) {
            assert!(
                client.received() == [&first[..], sent].concat(),
                "seed {seed}"
            );
            assert!(client.is_closed(), "seed {seed}");
            let place = received.iter().position(|received| received == sent);
            received.remove(place.unwrap_or_else(|| panic!("seed {seed}")));
        }
        passing.server.assert_nothing_left(0);
        assert_eq!(passing.sessions().len(), clients.len(), "seed {seed}");
    }
}

#[test]
fn whatever_ends_a_session_nothing_is_left_of_it() {
    for seed in 0..SEEDS {
        let (mut passing, dice, first) = passing(seed);
        let client = passing.connect();
        let piece = dice.piece(50_000);
        client.send(&piece);
        client.at(Duration::from_millis(dice.up_to(400))).reset();
        passing.server.run_to(60 * SECOND);
        let expected = [&first[..], &piece].concat();
        assert!(expected.starts_with(&client.received()), "seed {seed}");
        for received in passing.seen.bytes.borrow().iter() {
            assert!(piece.starts_with(received), "seed {seed}");
        }
        passing.server.assert_nothing_left(0);
    }
}
