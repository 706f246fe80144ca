//! One zone under several threads that fill, look up, wait, purge and sweep at once: no content is given for another key, no
//! purge is undone, nothing that waits is forgotten, and the sums are right at the end.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use mill_cache::{
    Arrival, Claim, ContentReader, Head, Limits, Piece, PurgeMode, Seed, Weigh, Zone,
};

/// The key that an object was made for, and the number of its fill.
#[derive(Debug)]
struct Meta {
    key: u64,
    fill: u64,
}

impl Weigh for Meta {
    fn heap_bytes(&self) -> usize {
        0
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn waker() -> Waker {
    Waker::from(Arc::new(Unpark(thread::current())))
}

/// A sequence of numbers of a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

const NOW: Duration = Duration::from_secs(1);
const KEYS: u64 = 40;
const STEPS: u64 = 1500;

/// The bytes of an object: of each length, and of no other key or fill.
fn bytes_of(key: u64, fill: u64) -> Vec<u8> {
    let unit = [key.to_le_bytes(), fill.to_le_bytes()].concat();
    let count = 1 + usize::try_from(key * 97 % 900).unwrap();
    unit.repeat(count)
}

/// Reads to the end, waiting where content still arrives; `None` where its fill has failed.
fn read(mut reader: ContentReader) -> Option<Vec<u8>> {
    let (waker, mut all) = (waker(), Vec::new());
    loop {
        match reader.poll_piece(4096, &waker) {
            Piece::Bytes(bytes, range) => all.extend_from_slice(&bytes[range]),
            Piece::Pending => thread::park(),
            Piece::End => return Some(all),
            Piece::Failed => return None,
        }
    }
}

/// What all threads share.
struct World {
    zone: Arc<Zone<Meta>>,
    fills: AtomicU64,
    /// Of each key, the number that the next fill had when the key was last purged: older ones must not be found.
    purged: Mutex<BTreeMap<u64, u64>>,
}

impl World {
    fn key(key: u64) -> Vec<u8> {
        format!("key {key}").into_bytes()
    }

    fn check(&self, meta: &Meta, reader: Option<ContentReader>, key: u64) {
        assert_eq!(meta.key, key);
        if let Some(all) = reader.and_then(read) {
            assert!(all == bytes_of(key, meta.fill), "content of another fill");
        }
    }

    fn ask(&self, key: u64, random: &mut Random) {
        let bytes = Self::key(key);
        let key_of_zone = self.zone.key(&bytes).unwrap();
        let least = self.purged.lock().unwrap().get(&key).copied().unwrap_or(0);
        if let Some(object) = self.zone.look_up(key_of_zone, NOW, |_| true) {
            assert!(object.meta().fill >= least, "it was purged before");
            return self.check(object.meta(), object.content().reader(0), key);
        }
        match self.zone.claim(key_of_zone, NOW) {
            Claim::Pass => {}
            Claim::Wait(mut waiting) => {
                let waker = waker();
                loop {
                    match waiting.poll_head(&waker) {
                        Poll::Pending => thread::park(),
                        Poll::Ready(Head::Stored(object)) => {
                            return self.check(object.meta(), object.content().reader(0), key);
                        }
                        Poll::Ready(Head::NotStored | Head::Failed) => return,
                    }
                }
            }
            Claim::Fill(ticket) => {
                let fill = self.fills.fetch_add(1, SeqCst);
                let all = bytes_of(key, fill);
                // Others are to find the claim.
                for _ in 0..random.below(8) {
                    thread::yield_now();
                }
                match random.below(8) {
                    0 => return drop(ticket),
                    1 => return ticket.not_stored(),
                    _ => {}
                }
                let tag = format!("tag {}", key % 4);
                let arrival = Arrival {
                    meta: Meta { key, fill },
                    tags: &[tag.as_bytes()],
                    length: (random.below(2) == 0).then_some(all.len() as u64),
                    length_max: u64::MAX,
                    now: NOW,
                };
                let (mut writer, own) = ticket.start(arrival, |_| true);
                let gives_up = random.below(8) == 0;
                for part in all.chunks(1 + usize::try_from(random.below(3000)).unwrap()) {
                    writer.append(part);
                    if gives_up {
                        return;
                    }
                    thread::yield_now();
                }
                writer.finish().unwrap();
                assert_eq!(read(own), Some(all));
            }
        }
    }

    fn purge(&self, random: &mut Random) {
        let key = random.below(KEYS);
        match random.below(3) {
            0 => {
                let bytes = Self::key(key);
                // Fills that have drawn their number are older than the purge; those that draw one later may be, too.
                let before = self.fills.load(SeqCst);
                let mut purged = self.purged.lock().unwrap();
                self.zone
                    .purge_tag(format!("tag {}", key % 4).as_bytes(), PurgeMode::Remove);
                let in_flight = THREADS;
                for other in (0..KEYS).filter(|other| other % 4 == key % 4) {
                    purged.insert(other, before.saturating_sub(in_flight));
                }
                drop(purged);
                self.zone
                    .purge_key(self.zone.key(&bytes).unwrap(), PurgeMode::Remove);
            }
            1 => {
                let suffix = format!(" {key}").into_bytes();
                let _ = self.zone.purge_matching(
                    Box::new(move |known| known.ends_with(&suffix)),
                    PurgeMode::Invalidate,
                );
            }
            _ => {
                self.zone.expire(NOW, 16);
            }
        }
    }
}

const THREADS: u64 = 4;

#[test]
fn threads_get_what_belongs_to_their_keys_and_none_is_left_waiting() {
    let mut waited = 0;
    for seed in 1..=3_u64 {
        println!("seed {seed}");
        let limits = Limits {
            bytes: 200_000,
            keys: 30,
            ..Limits::default()
        };
        let world = World {
            zone: Zone::new(limits, Seed([seed, 7])),
            fills: AtomicU64::new(1),
            purged: Mutex::default(),
        };
        thread::scope(|scope| {
            for number in 0..THREADS {
                let world = &world;
                scope.spawn(move || {
                    let mut random = Random(seed * 1000 + number + 1);
                    for _ in 0..STEPS {
                        match random.below(20) {
                            0 => world.purge(&mut random),
                            _ => world.ask(random.below(KEYS), &mut random),
                        }
                        let figures = world.zone.figures();
                        assert!(figures.bytes <= 200_000, "{figures:?}");
                    }
                });
            }
        });
        let figures = world.zone.figures();
        assert_eq!(
            (figures.claims, figures.filling_bytes),
            (0, 0),
            "{figures:?}"
        );
        let listed = world.zone.largest(1000);
        let charges: u64 = listed.iter().map(|object| object.charge()).sum();
        assert_eq!(figures.objects, listed.len() as u64);
        assert!(figures.bytes >= charges, "{figures:?} and {charges}");
        assert!(figures.hits > 0 && figures.evicted > 0, "{figures:?}");
        waited += figures.waited;
        world.zone.purge_all(PurgeMode::Remove);
        for _ in 0..10 {
            world.zone.expire(NOW, 1000);
        }
        let figures = world.zone.figures();
        assert_eq!((figures.objects, figures.bytes), (0, 0), "{figures:?}");
    }
    assert!(waited > 0, "claims were waited for");
}
