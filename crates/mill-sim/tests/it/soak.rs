//! Hundreds of random worlds: whatever the segments, delays and windows, every byte arrives once and in order.

use crate::server::{ADDRESS, start};
use mill_conformance::serving::{echo, echo_messages, message};
use mill_runtime::engine::Engine;
use mill_runtime::files::{Files, Symlinks};
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use mill_sim::client::Client;
use mill_sim::engine::SimEngine;
use mill_sim::link::{Link, Segments};
use mill_sim::world::World;
use std::cell::Cell;
use std::time::Duration;

/// A seed's choices; drawn from an engine of the world so that one seed says it all.
struct Dice(SimEngine);

impl Dice {
    fn up_to(&self, most: u64) -> u64 {
        self.0.random() % (most + 1)
    }

    fn byte(&self) -> u8 {
        self.0.random().to_be_bytes()[0]
    }

    fn micros(&self, most: u64) -> Duration {
        Duration::from_micros(self.up_to(most))
    }

    fn bytes(&self, len_max: u64) -> Vec<u8> {
        (0..self.up_to(len_max)).map(|_| self.byte()).collect()
    }

    fn link(&self) -> Link {
        let most = 1 + usize::from(self.byte());
        Link {
            delay: self.micros(5000),
            jitter: self.micros(5000),
            bytes_per_second: [None, Some(1_000 + self.up_to(1_000_000))]
                [usize::from(self.up_to(1) == 1)],
            window_bytes: 1 + self.up_to(2000),
            segments: [Segments::UpTo(most), Segments::Random(most)]
                [usize::from(self.up_to(1) == 1)],
        }
    }

    fn read_somehow(&self, client: &Client) {
        match self.up_to(3) {
            0 => {
                let rate = 100 + 400 * u32::from(self.byte());
                client.read_at_rate(rate);
            }
            1 => {
                client.stop_reading();
                let later = client.at(self.micros(50_000) + Duration::from_secs(3600));
                later.read_on();
            }
            _ => {}
        }
    }
}

fn random_world(seed: u64, check: impl Fn(&World, &Dice)) {
    let world = World::new(seed);
    let dice = Dice(world.engine());
    check(&world, &dice);
}

#[test]
fn an_echo_is_what_was_sent() {
    for seed in 0..300 {
        random_world(seed, |world, dice| {
            let mut server = start(world, |stream, _| echo(stream));
            let mut expected = Vec::new();
            for _ in 0..=dice.up_to(4) {
                world.set_link(dice.link());
                let client = world.connect(ADDRESS);
                dice.read_somehow(&client);
                let mut sent = Vec::new();
                let mut at = Duration::ZERO;
                for _ in 0..=dice.up_to(5) {
                    let bytes = dice.bytes(3000);
                    client.at(at).send(&bytes);
                    sent.extend_from_slice(&bytes);
                    at += dice.micros(20_000);
                }
                client.at(at).finish();
                expected.push((client, sent));
            }
            server.run(world);
            for (client, sent) in expected {
                assert_eq!(client.received(), sent, "seed {seed}");
                assert!(client.is_closed() && !client.was_reset(), "seed {seed}");
            }
            assert_eq!(server.worker.tasks(), 0, "seed {seed}");
        });
    }
}

#[test]
fn pipelined_messages_are_answered_in_order() {
    for seed in 0..300 {
        random_world(seed, |world, dice| {
            let mut server = start(world, |stream, _| echo_messages(stream));
            world.set_link(dice.link());
            let client = world.connect(ADDRESS);
            let (mut sent, mut expected) = (Vec::new(), String::new());
            for number in 0..=dice.up_to(30) {
                let text = format!(
                    "{number}{}",
                    "x".repeat(usize::try_from(dice.up_to(99)).unwrap())
                );
                sent.extend(message(&text));
                expected += &format!("<{text}>");
            }
            client.send_each_byte(&sent, dice.micros(3000));
            dice.read_somehow(&client);
            server.run(world);
            assert_eq!(
                client.received().escape_ascii().to_string(),
                expected,
                "seed {seed}"
            );
        });
    }
}

#[test]
fn resets_at_any_time_leave_no_task_behind() {
    for seed in 0..300 {
        random_world(seed, |world, dice| {
            let mut server = start(world, |stream, _| echo(stream));
            for _ in 0..8 {
                world.set_link(dice.link());
                let client = world.connect_at(dice.micros(20_000), ADDRESS);
                dice.read_somehow(&client);
                client.at(dice.micros(20_000)).send(dice.bytes(5000));
                client.at(dice.micros(60_000)).reset();
            }
            server.run_until_idle(world);
            assert_eq!(server.worker.tasks(), 0, "seed {seed}");
            assert_eq!(server.worker.engine().streams(), 0, "seed {seed}");
        });
    }
}

#[test]
fn a_file_that_shrinks_at_any_time_arrives_whole_or_ends_in_a_reset() {
    let resets = Cell::new(0);
    for seed in 0..300 {
        random_world(seed, |world, dice| {
            let content = dice.bytes(8000);
            world.files().write("/f", &content);
            let mut server = start(world, |stream, _| async move {
                let opened = world.files().open(b"/f", Symlinks::Follow).await;
                let (file, metadata) = opened.expect("it opens");
                let (offset, len) = (0, metadata.len);
                stream.write(Payload::File { file, offset, len });
                let _ = stream.drained(0).await;
            });
            world.set_link(dice.link());
            let client = world.connect(ADDRESS);
            dice.read_somehow(&client);
            let len = content.len().min(usize::from(dice.byte()) * 40);
            let files = world.files().clone();
            world.at(dice.link().delay * 3, move || files.set_len("/f", len));
            server.run(world);
            let received = client.received();
            // The file was opened before it shrank or after: what it promised is one of two lengths.
            assert!(content.starts_with(&received), "seed {seed}");
            if client.was_reset() {
                resets.set(resets.get() + 1);
                assert!(received.len() < content.len(), "seed {seed}");
            } else {
                let whole = [content.len(), len].contains(&received.len());
                assert!(client.is_closed() && whole, "seed {seed}");
            }
        });
    }
    assert!(
        (20..280).contains(&resets.get()),
        "both outcomes are seen: {resets:?}"
    );
}
