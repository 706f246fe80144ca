//! Random requests of one zone beside a plain list that says what each look-up must find.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use mill_cache::{
    Arrival, Claim, ContentReader, Fill, FillTicket, Limits, Object, Piece, PurgeMode, Seed, Zone,
};

/// Metadata: which variant of its key, and the number of what was stored.
type Meta = Numbers;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Numbers {
    variant: u64,
    number: u64,
}

impl mill_cache::Weigh for Numbers {
    fn heap_bytes(&self) -> usize {
        usize::try_from(self.number % 50).unwrap()
    }
}

const NOW: Duration = Duration::from_secs(1000);
const KEYS: u64 = 12;
const VARIANTS: u64 = 3;
const TAGS: u64 = 6;
const STEPS: usize = 3000;

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

/// A purge, as the list understands it.
#[derive(Clone, Copy, Debug)]
enum Scope {
    Key(u64),
    Tag(u64),
    /// Keys of this remainder of three.
    Keys(u64),
    All,
}

impl Scope {
    fn concerns(self, key: u64, tags: &BTreeSet<u64>) -> bool {
        match self {
            Self::Key(other) => key == other,
            Self::Tag(tag) => tags.contains(&tag),
            Self::Keys(rest) => key % 3 == rest,
            Self::All => true,
        }
    }
}

/// What is listed, in the order of its numbers.
#[derive(Clone, Debug)]
struct Entry {
    key: u64,
    meta: Meta,
    tags: BTreeSet<u64>,
    is_invalidated: bool,
    is_whole: bool,
    /// What its bytes are made of, which new metadata does not change.
    content: u64,
}

/// A claim, with the purges since.
struct Claimed {
    ticket: FillTicket<Meta>,
    key: u64,
    purges: Vec<(Scope, PurgeMode)>,
    /// The object that it is to validate.
    old: Option<(Arc<Object<Meta>>, Meta, u64)>,
}

struct Growing {
    fill: Fill<Meta>,
    reader: ContentReader,
    number: u64,
    /// Numbers that it removes when it is whole.
    replaces: Vec<u64>,
}

struct World {
    zone: Arc<Zone<Meta>>,
    random: Random,
    entries: Vec<Entry>,
    claimed: Vec<Claimed>,
    growing: Vec<Growing>,
    next: u64,
    /// Whether nothing is evicted, so that the list says exactly what is found.
    is_roomy: bool,
}

fn key_of(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

fn tag_of(number: u64) -> Vec<u8> {
    format!("tag {number}").into_bytes()
}

fn bytes_of(number: u64) -> Vec<u8> {
    let len = usize::try_from(number * 7919 % 6000).unwrap();
    number.to_le_bytes().into_iter().cycle().take(len).collect()
}

fn read(reader: &mut ContentReader) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    loop {
        match reader.poll_piece(3000, Waker::noop()) {
            Piece::Bytes(bytes, range) => all.extend_from_slice(&bytes[range]),
            Piece::End => return (all, true),
            Piece::Pending | Piece::Failed => return (all, false),
        }
    }
}

impl World {
    fn new(seed: u64, bytes: u64) -> Self {
        let limits = Limits {
            bytes,
            ..Limits::default()
        };
        Self {
            zone: Zone::new(limits, Seed([seed, 2])),
            random: Random(seed),
            entries: Vec::new(),
            claimed: Vec::new(),
            growing: Vec::new(),
            next: 1,
            is_roomy: bytes > 1 << 30,
        }
    }

    fn find(&self, key: u64, variant: u64) -> Option<Arc<Object<Meta>>> {
        let bytes = key_of(key);
        let key = self.zone.key(&bytes).unwrap();
        self.zone.look_up(key, NOW, |meta| meta.variant == variant)
    }

    fn newest(&self, key: u64, variant: u64) -> Option<&Entry> {
        let fitting = |entry: &&Entry| entry.key == key && entry.meta.variant == variant;
        self.entries.iter().rfind(fitting)
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..6 => self.ask(),
            6..11 => self.claim(),
            11..14 => self.start(),
            14..17 => self.end_fill(),
            17 => self.purge(),
            18 => {
                self.zone.expire(NOW, 5);
            }
            _ => {
                self.zone.expire(NOW, 10_000);
            }
        }
    }

    fn ask(&mut self) {
        let (key, variant) = (self.random.below(KEYS), self.random.below(VARIANTS));
        let found = self.find(key, variant);
        let Some(object) = found else {
            assert!(!self.is_roomy || self.newest(key, variant).is_none());
            return;
        };
        let entry = self
            .entries
            .iter()
            .find(|entry| entry.meta == *object.meta());
        let entry = entry.expect("what is found was not purged or replaced");
        assert_eq!((entry.key, variant), (key, object.meta().variant));
        assert_eq!(object.key(), key_of(key));
        assert_eq!(object.is_invalidated(), entry.is_invalidated);
        if self.is_roomy {
            assert_eq!(entry.meta, self.newest(key, variant).unwrap().meta);
        }
        let mut reader = object.content().reader(0).unwrap();
        let (bytes, is_all) = read(&mut reader);
        assert_eq!(is_all, entry.is_whole);
        assert!(bytes_of(entry.content).starts_with(&bytes));
    }

    fn claim(&mut self) {
        let (key, variant) = (self.random.below(KEYS), self.random.below(VARIANTS));
        let found = self.find(key, variant);
        let is_new = self.claimed.iter().all(|claimed| claimed.key != key);
        let bytes = key_of(key);
        match self.zone.claim(self.zone.key(&bytes).unwrap(), NOW) {
            Claim::Wait(_) => assert!(!is_new),
            Claim::Pass => panic!("no limit is near"),
            Claim::Fill(ticket) => {
                assert!(is_new);
                let old = found.filter(|object| object.content().is_whole());
                let old = old.filter(|_| self.random.below(3) == 0).map(|object| {
                    let entry = self.newest(key, variant).unwrap();
                    (object, entry.meta, entry.content)
                });
                let purges = Vec::new();
                self.claimed.push(Claimed {
                    ticket,
                    key,
                    purges,
                    old,
                });
            }
        }
    }

    fn start(&mut self) {
        let count = self.claimed.len() as u64;
        if count == 0 {
            return;
        }
        let index = usize::try_from(self.random.below(count)).unwrap();
        let Claimed {
            ticket,
            key,
            purges,
            old,
        } = self.claimed.swap_remove(index);
        match self.random.below(8) {
            0 => return drop(ticket),
            1 => return ticket.not_stored(),
            _ => {}
        }
        let number = self.next;
        self.next += 1;
        let tags: BTreeSet<u64> = (0..self.random.below(3))
            .map(|_| self.random.below(TAGS))
            .collect();
        let names: Vec<Vec<u8>> = tags.iter().copied().map(tag_of).collect();
        let names: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
        let variant = old
            .as_ref()
            .map_or(self.random.below(VARIANTS), |(_, meta, _)| meta.variant);
        let meta = Numbers { variant, number };
        let length = bytes_of(number).len() as u64;
        let arrival = Arrival {
            meta,
            tags: &names,
            length: (self.random.below(2) == 0).then_some(length),
            length_max: u64::MAX,
            now: NOW,
        };
        let is_hit = |mode: PurgeMode| {
            purges
                .iter()
                .any(|(scope, other)| *other == mode && scope.concerns(key, &tags))
        };
        let is_refused = is_hit(PurgeMode::Remove)
            || purges
                .iter()
                .any(|(scope, _)| matches!(scope, Scope::Key(other) if *other == key));
        let mut entry = Entry {
            key,
            meta,
            tags: tags.clone(),
            is_invalidated: is_hit(PurgeMode::Invalidate),
            is_whole: old.is_some(),
            content: number,
        };
        if let Some((old, old_meta, content)) = old {
            entry.content = content;
            let place = self.entries.iter().position(|entry| entry.meta == old_meta);
            let new = ticket.refresh(&old, arrival);
            let is_kept = new.is_current() || new.is_invalidated();
            let expected = place.is_some() && !is_refused;
            assert!(
                is_kept == expected || !self.is_roomy && !is_kept,
                "{number}"
            );
            if let Some(place) = place.filter(|_| is_kept) {
                self.entries.remove(place);
                self.entries.push(entry);
            }
            return;
        }
        let (fill, reader) = ticket.start(arrival, |kept| kept.variant == variant);
        assert_eq!(fill.is_storing(), !is_refused, "{number}");
        let same = self
            .entries
            .iter()
            .filter(|entry| entry.key == key && entry.meta.variant == variant);
        let replaces = same.map(|entry| entry.meta.number).collect();
        if !is_refused {
            self.entries.push(entry);
        }
        self.growing.push(Growing {
            fill,
            reader,
            number,
            replaces,
        });
    }

    fn end_fill(&mut self) {
        let count = self.growing.len() as u64;
        if count == 0 {
            return;
        }
        let index = usize::try_from(self.random.below(count)).unwrap();
        let Growing {
            mut fill,
            mut reader,
            number,
            replaces,
        } = self.growing.swap_remove(index);
        let all = bytes_of(number);
        let part = 1 + usize::try_from(self.random.below(4000)).unwrap();
        for bytes in all.chunks(part) {
            fill.append(bytes);
        }
        let place = self
            .entries
            .iter()
            .position(|entry| entry.meta.number == number);
        if self.random.below(5) == 0 {
            drop(fill);
            self.entries.retain(|entry| entry.meta.number != number);
            return;
        }
        let stored = fill.finish().unwrap();
        assert!(read(&mut reader) == (all, true));
        assert_eq!(stored.is_some(), place.is_some(), "{number}");
        if let Some(place) = place {
            self.entries[place].is_whole = true;
            self.entries
                .retain(|entry| !replaces.contains(&entry.meta.number));
        }
    }

    fn purge(&mut self) {
        let mode = match self.random.below(2) {
            0 => PurgeMode::Remove,
            _ => PurgeMode::Invalidate,
        };
        let scope = match self.random.below(10) {
            0..4 => Scope::Key(self.random.below(KEYS)),
            4..7 => Scope::Tag(self.random.below(TAGS)),
            7..9 => Scope::Keys(self.random.below(3)),
            _ => Scope::All,
        };
        let generation = self.zone.generation();
        match scope {
            Scope::Key(key) => {
                self.zone
                    .purge_key(self.zone.key(&key_of(key)).unwrap(), mode);
            }
            Scope::Tag(tag) => {
                self.zone.purge_tag(&tag_of(tag), mode);
            }
            Scope::Keys(rest) => {
                let keys: Vec<_> = (0..KEYS)
                    .filter(|key| key % 3 == rest)
                    .map(key_of)
                    .collect();
                let concerns = Box::new(move |key: &[u8]| keys.iter().any(|other| other == key));
                self.zone.purge_matching(concerns, mode).unwrap();
            }
            Scope::All => self.zone.purge_all(mode),
        }
        let is_key = matches!(scope, Scope::Key(_));
        assert_eq!(self.zone.generation() == generation, is_key);
        for claimed in &mut self.claimed {
            claimed.purges.push((scope, mode));
        }
        if mode == PurgeMode::Remove {
            self.entries
                .retain(|entry| !scope.concerns(entry.key, &entry.tags));
        } else {
            let concerned = self
                .entries
                .iter_mut()
                .filter(|entry| scope.concerns(entry.key, &entry.tags));
            concerned.for_each(|entry| entry.is_invalidated = true);
        }
    }

    /// The sums are those of what is listed, to the byte; `tag_bytes` is what a tag counts beside its name.
    fn check_sums(&self, tag_bytes: u64) {
        let listed = self.zone.largest(usize::MAX);
        let whole = listed.iter().filter(|object| object.content().is_whole());
        let figures = self.zone.figures();
        assert_eq!(figures.objects, listed.len() as u64);
        assert_eq!(
            figures.growing,
            (listed.len() - whole.clone().count()) as u64
        );
        assert_eq!(figures.claims, self.claimed.len() as u64);
        let charges: u64 = whole.map(|object| object.charge()).sum();
        let tags: BTreeSet<Vec<u8>> = listed
            .iter()
            .flat_map(|object| object.tags())
            .map(<[u8]>::to_vec)
            .collect();
        let tag_sum: u64 = tags.iter().map(|tag| tag.len() as u64 + tag_bytes).sum();
        // Tags that were purged are kept until a sweep.
        let noted = figures.bytes - charges - tag_sum;
        let noted_max = (TAGS - tags.len() as u64) * (tag_bytes + 5);
        assert!(noted <= noted_max, "{noted} of {noted_max}");
        let growing = (TAGS * (tag_bytes + 5)).min(tag_sum + noted);
        assert!(figures.bytes - growing <= self.zone.limits().bytes);
    }

    /// Ends all that is under way, purges all, and nothing is left.
    fn end(mut self, tag_bytes: u64) {
        self.claimed.clear();
        self.growing.clear();
        for _ in 0..2 {
            self.zone.expire(NOW, 1_000_000);
        }
        let figures = self.zone.figures();
        assert_eq!(
            (figures.claims, figures.growing, figures.filling_bytes),
            (0, 0, 0)
        );
        assert_eq!(figures.pending_purges, 0);
        if self.is_roomy {
            self.entries.retain(|entry| entry.is_whole);
            assert_eq!(figures.objects, self.entries.len() as u64);
        }
        self.check_sums(tag_bytes);
        self.zone.purge_all(PurgeMode::Remove);
        for _ in 0..2 {
            self.zone.expire(NOW, 1_000_000);
        }
        let figures = self.zone.figures();
        assert_eq!((figures.objects, figures.bytes), (0, 0));
    }
}

/// What a tag counts beside its name.
fn tag_bytes() -> u64 {
    let zone = World::new(1, 1 << 40).zone;
    zone.purge_tag(b"tag 0", PurgeMode::Remove);
    zone.figures().bytes - 5
}

#[test]
fn random_requests_find_what_a_plain_list_says_and_the_sums_are_exact() {
    let tag_bytes = tag_bytes();
    for bytes in [1 << 40, 60_000, 9_000] {
        for seed in 1..=20 {
            println!("budget {bytes}, seed {seed}");
            let mut world = World::new(seed * 7919, bytes);
            for step in 0..STEPS {
                world.step();
                if step % 8 == 0 {
                    world.check_sums(tag_bytes);
                }
            }
            world.end(tag_bytes);
        }
    }
}
