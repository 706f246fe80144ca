//! Arbitrary segments into a live connection: nothing breaks, whatever a peer sends.

use super::{CLIENT, Draft, Pair, Peer, SERVER, pattern};
use crate::config::{Config, EcnMode, Keepalive};
use crate::random::Random;
use crate::segment::Ecn;
use crate::time::Duration;
use alloc::vec::Vec;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::{SackBlocks, Timestamps};

/// Room for bytes out of order: small, so that the limit is met.
const REASSEMBLY_BYTES_MAX: u32 = 64 * 1024;

struct World {
    random: Random,
    pair: Pair,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed * 7919);
        let config = Config {
            reassembly_bytes_max: REASSEMBLY_BYTES_MAX,
            reassembly_ranges_max: 20,
            receive_buffer_bytes: 1 << random.below(18),
            timestamps: random.below(2) == 0,
            sack: random.below(4) > 0,
            ecn: EcnMode::Ask,
            keepalive: Some(Keepalive {
                idle: Duration::from_secs(5),
                interval: Duration::from_secs(1),
                count: 3,
            }),
            ..Config::default()
        };
        let mut pair = Pair::with_seed(&config, seed);
        pair.connect();
        pair.run_for(Duration::from_millis(50));
        pair.wire.lost = 200;
        for side in &mut pair.sides {
            side.rounds_down = true;
        }
        Self { random, pair }
    }

    fn below(&mut self, bound: u64) -> u32 {
        u32::try_from(self.random.below(bound)).unwrap()
    }

    /// Mostly near what is right: there the branches are.
    fn near(&mut self, right: SeqNumber) -> SeqNumber {
        match self.below(8) {
            0..3 => right,
            3 => right - self.below(3),
            4 => right + self.below(3),
            5 => right + self.below(200_000),
            6 => right - self.below(200_000),
            _ => SeqNumber(self.below(1 << 32)),
        }
    }

    fn flags(&mut self) -> Flags {
        match self.below(30) {
            0..20 => Flags::ACK,
            20..24 => Flags::ACK | Flags::PSH,
            24 => Flags::ACK | Flags::FIN,
            // A RST that is right ends the game: seldom.
            25 if self.below(20) > 0 => Flags::ACK,
            26 => Flags::ACK | Flags::ECE,
            27 => Flags::ACK | Flags::CWR,
            _ => Flags(u16::try_from(self.below(512)).unwrap()),
        }
    }

    fn draft(&mut self, to: usize) -> Draft {
        let mut draft = self.pair.draft(to);
        let (una, nxt) = {
            let connection = self.pair.connection(to);
            (connection.snd.una(), connection.snd.nxt())
        };
        draft.seq = self.near(draft.seq);
        draft.ack = match self.below(3) {
            0 => una,
            1 => self.near(nxt),
            _ => una + self.below(u64::from(nxt - una) + 1),
        };
        draft.flags = self.flags();
        if self.below(3) == 0 {
            draft.window = u16::try_from(self.below(1 << 16)).unwrap();
        }
        let len = match self.below(5) {
            0 | 1 => 0,
            2 => self.below(4),
            3 => self.below(1500),
            _ => self.below(70_000),
        };
        draft.payload = pattern(usize::try_from(len).unwrap());
        draft.merged = u16::try_from(len / 1448 + 1).unwrap();
        if self.below(3) == 0 {
            for _ in 0..self.below(5) {
                let (start, end) = (self.near(una), self.near(nxt));
                draft.options.sack.push(start, end);
            }
            draft.options.sack.truncate(SackBlocks::COUNT_MAX);
        }
        if self.below(10) == 0 {
            draft.options.timestamps = Some(Timestamps {
                value: self.below(1 << 32),
                echo: self.below(1 << 32),
            });
        }
        if self.below(10) == 0 {
            draft.ecn = Ecn::Congested;
        }
        draft
    }

    fn act(&mut self, who: usize) {
        match self.below(12) {
            0 if self.pair.state(who).may_send() => {
                let len = usize::try_from(self.below(30_000)).unwrap();
                self.pair.write(who, &pattern(len));
            }
            1 => self.pair.sides[who].reads ^= true,
            2 => {
                let unread = self.pair.connection(who).unread_bytes();
                let bytes = self.below(u64::from(unread) + 1);
                self.pair
                    .command(who, |connection, env| connection.consumed(bytes, env));
            }
            3 => {
                let wait = Duration::from_millis(u64::from(self.below(300)));
                self.pair.run_for(wait);
            }
            4 if self.below(40) == 0 => {
                self.pair
                    .command(who, |connection, env| connection.shutdown(env));
            }
            5 => {
                let seq = self.pair.connection(who).snd.una();
                let mss = u16::try_from(self.below(1500)).unwrap();
                self.pair.command(who, |connection, env| {
                    connection.on_packet_too_big(seq, mss, env)
                });
            }
            _ => {
                let draft = self.draft(who);
                self.pair.give(who, &draft);
            }
        }
        self.check();
    }

    fn check(&self) {
        for side in &self.pair.sides {
            let Peer::Open(connection) = &side.peer else {
                continue;
            };
            assert!(connection.reassembly_bytes() <= REASSEMBLY_BYTES_MAX);
            let allowed = connection.rcv.buffer_bytes() / 8 * 9 + (1 << 14);
            assert!(
                connection.unread_bytes() <= allowed.max(u32::from(u16::MAX)),
                "{} unread",
                connection.unread_bytes()
            );
            assert!(connection.snd.una().is_at_or_before(connection.snd.nxt()));
            assert!(connection.rcv.nxt().is_at_or_before(connection.rcv.adv()));
        }
    }
}

#[test]
fn arbitrary_segments_break_nothing() {
    let mut acts = 0;
    for seed in 1..300 {
        let mut world = World::new(seed);
        for _ in 0..300 {
            let open = [CLIENT, SERVER]
                .into_iter()
                .filter(|&who| matches!(world.pair.sides[who].peer, Peer::Open(_)))
                .collect::<Vec<_>>();
            let Some(&who) = open.get(world.below(2) as usize % open.len().max(1)) else {
                break;
            };
            world.act(who);
            acts += 1;
        }
    }
    assert!(acts > 20_000, "the connections end too soon: {acts}");
}
