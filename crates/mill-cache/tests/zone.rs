//! What a zone gives out, when fills end in every way, and what it counts.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use mill_cache::{
    Appended, Arrival, Claim, ContentReader, Fill, FillTicket, Head, LengthMismatch, Limits,
    Object, Piece, PurgeMode, Room, Seed, Waiting, Weigh, Zone,
};

/// Metadata of these tests: the variant.
#[derive(Debug, PartialEq)]
struct Variant(&'static str);

impl Weigh for Variant {
    fn heap_bytes(&self) -> usize {
        self.0.len()
    }
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn waker() -> (Arc<Wakes>, Waker) {
    let wakes = Arc::new(Wakes::default());
    (wakes.clone(), wakes.into())
}

type TestZone = Arc<Zone<Variant>>;

fn zone(change: impl FnOnce(&mut Limits)) -> TestZone {
    let mut limits = Limits::default();
    change(&mut limits);
    Zone::new(limits, Seed([1, 2]))
}

const NOW: Duration = Duration::from_secs(1000);

fn claim(zone: &TestZone, key: &str) -> FillTicket<Variant> {
    match zone.claim(zone.key(key.as_bytes()).unwrap(), NOW) {
        Claim::Fill(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

fn wait(zone: &TestZone, key: &str) -> Waiting<Variant> {
    match zone.claim(zone.key(key.as_bytes()).unwrap(), NOW) {
        Claim::Wait(waiting) => waiting,
        other => panic!("{other:?}"),
    }
}

fn begin(
    ticket: FillTicket<Variant>,
    variant: &'static str,
    tags: &[&[u8]],
    length: Option<u64>,
) -> (Fill<Variant>, ContentReader) {
    let arrival = Arrival {
        meta: Variant(variant),
        tags,
        length,
        length_max: u64::MAX,
        now: NOW,
    };
    ticket.start(arrival, |meta| meta.0 == variant)
}

fn store(
    zone: &TestZone,
    key: &str,
    variant: &'static str,
    tags: &[&[u8]],
    bytes: &[u8],
) -> Option<Arc<Object<Variant>>> {
    let (mut fill, _) = begin(claim(zone, key), variant, tags, None);
    fill.append(bytes);
    fill.finish().unwrap()
}

fn find(zone: &TestZone, key: &str) -> Option<Arc<Object<Variant>>> {
    zone.look_up(zone.key(key.as_bytes()).unwrap(), NOW, |_| true)
}

/// All that the reader gets without waiting, and what comes then.
fn read(reader: &mut ContentReader, waker: &Waker) -> (Vec<u8>, Piece) {
    let mut all = Vec::new();
    loop {
        match reader.poll_piece(10_000, waker) {
            Piece::Bytes(bytes, range) => all.extend_from_slice(&bytes[range]),
            other => return (all, other),
        }
    }
}

fn content_of(object: &Object<Variant>) -> Vec<u8> {
    let (_, waker) = waker();
    read(&mut object.content().reader(0).unwrap(), &waker).0
}

#[test]
fn what_was_stored_is_found_by_its_key_and_variant() {
    let zone = zone(|_| {});
    assert!(find(&zone, "a").is_none());
    store(&zone, "a", "gzip", &[], b"one").unwrap();
    store(&zone, "a", "plain", &[], b"two").unwrap();
    let key = zone.key(b"a").unwrap();
    let found = |variant| zone.look_up(key, NOW, |meta| meta.0 == variant);
    assert_eq!(content_of(&found("gzip").unwrap()), b"one");
    assert_eq!(content_of(&found("plain").unwrap()), b"two");
    assert!(found("br").is_none() && find(&zone, "b").is_none());
    assert_eq!(content_of(&find(&zone, "a").unwrap()), b"two", "the newest");
    let old = found("gzip").unwrap();
    store(&zone, "a", "gzip", &[], b"three").unwrap();
    assert!(!old.is_current(), "replaced");
    assert_eq!(content_of(&found("gzip").unwrap()), b"three");
    assert_eq!(zone.figures().objects, 2);
}

#[test]
fn one_fills_and_the_others_get_the_object_while_it_arrives() {
    let zone = zone(|_| {});
    let ticket = claim(&zone, "a");
    let mut waiting = wait(&zone, "a");
    let (wakes, waker) = waker();
    assert!(waiting.poll_head(&waker).is_pending());
    let (mut fill, mut own) = begin(ticket, "", &[], Some(6));
    assert_eq!(wakes.0.load(Relaxed), 1);
    let Poll::Ready(Head::Stored(object)) = waiting.poll_head(&waker) else {
        panic!("the head is known");
    };
    let mut other = object.content().reader(0).unwrap();
    assert!(matches!(other.poll_piece(9, &waker), Piece::Pending));
    assert_eq!(fill.append(b"abc"), Appended::Stored);
    assert_eq!(wakes.0.load(Relaxed), 2);
    assert_eq!(read(&mut other, &waker).0, b"abc");
    fill.append(b"def");
    let stored = fill.finish().unwrap().unwrap();
    assert!(Arc::ptr_eq(&stored, &object) && object.is_current());
    assert_eq!(read(&mut other, &waker).0, b"def");
    let (all, end) = read(&mut own, &waker);
    assert!(all == b"abcdef" && matches!(end, Piece::End));
    assert_eq!(object.content().in_one().unwrap()[..], b"abcdef"[..]);
}

#[test]
fn every_end_of_a_claim_wakes_those_that_wait() {
    type End = fn(FillTicket<Variant>);
    let cases: [(&str, End); 3] = [
        ("Failed", drop),
        ("NotStored", FillTicket::not_stored),
        ("NotStored", |ticket| {
            drop(begin(ticket, "", &[], Some(1 << 40)))
        }),
    ];
    for (expected, end) in cases {
        let zone = zone(|_| {});
        let ticket = claim(&zone, "a");
        let mut waiting = wait(&zone, "a");
        let (wakes, waker) = waker();
        assert!(waiting.poll_head(&waker).is_pending());
        end(ticket);
        assert_eq!(wakes.0.load(Relaxed), 1);
        let Poll::Ready(head) = waiting.poll_head(&waker) else {
            panic!("{expected}");
        };
        assert_eq!(format!("{head:?}"), expected);
        drop(waiting);
        assert_eq!(
            (zone.figures().claims, zone.figures().filling_bytes),
            (0, 0)
        );
        drop(claim(&zone, "a"));
    }
}

#[test]
fn a_writer_that_is_dropped_or_too_short_fails_its_readers() {
    for is_dropped in [true, false] {
        let zone = zone(|_| {});
        store(&zone, "a", "", &[], b"old");
        let (mut fill, mut reader) = begin(claim(&zone, "a"), "", &[], Some(4));
        fill.append(b"abc");
        let (wakes, waker) = waker();
        assert_eq!(read(&mut reader, &waker).0, b"abc");
        if is_dropped {
            drop(fill);
        } else {
            assert_eq!(fill.finish().err(), Some(LengthMismatch));
        }
        assert_eq!(wakes.0.load(Relaxed), 1);
        assert!(matches!(reader.poll_piece(9, &waker), Piece::Failed));
        assert_eq!(content_of(&find(&zone, "a").unwrap()), b"old");
        drop(reader);
        assert_eq!(zone.figures().filling_bytes, 0);
    }
}

#[test]
fn what_is_too_large_passes_by_and_waits_for_its_slowest_reader() {
    let zone = zone(|limits| limits.object_bytes = 100_000);
    let (mut fill, mut reader) = begin(claim(&zone, "a"), "", &[], None);
    let (wakes, waker) = waker();
    assert_eq!(fill.append(&[1; 100_000]), Appended::Stored);
    let object = find(&zone, "a").unwrap();
    assert_eq!(fill.append(&[2; 1]), Appended::TooLarge);
    assert!(find(&zone, "a").is_none() && object.content().reader(0).is_none());
    assert_eq!(zone.figures().filling_bytes, 0);
    let mut sent = 100_001;
    while fill.poll_room(&waker) == Room::Ready {
        fill.append(&[2; 50_000]);
        sent += 50_000;
    }
    assert!((1 << 20..(1 << 20) + 50_000).contains(&sent), "{sent}");
    assert_eq!(wakes.0.load(Relaxed), 0);
    assert_eq!(read(&mut reader, &waker).0.len(), sent);
    assert_eq!(
        (wakes.0.load(Relaxed), fill.poll_room(&waker)),
        (1, Room::Ready)
    );
    drop(reader);
    assert_eq!(fill.poll_room(&waker), Room::Unread);
    assert_eq!(fill.append(b"x"), Appended::Unread);
    assert!(fill.finish().unwrap().is_none());
    assert_eq!(zone.figures().objects, 0);
}

#[test]
fn a_writer_that_waits_is_woken_when_its_last_reader_goes() {
    let zone = zone(|limits| limits.object_bytes = 10);
    let (mut fill, reader) = begin(claim(&zone, "a"), "", &[], None);
    fill.append(&vec![0; 2 << 20]);
    let (wakes, waker) = waker();
    assert_eq!(fill.poll_room(&waker), Room::Full);
    drop(reader);
    assert_eq!(
        (wakes.0.load(Relaxed), fill.poll_room(&waker)),
        (1, Room::Unread)
    );
}

#[test]
fn new_metadata_keeps_the_content() {
    let zone = zone(|_| {});
    let old = store(&zone, "a", "old", &[b"t"], b"abc").unwrap();
    zone.purge_key(zone.key(b"a").unwrap(), PurgeMode::Invalidate);
    assert!(find(&zone, "a").unwrap().is_invalidated() && !old.is_current());
    let ticket = claim(&zone, "a");
    let mut waiting = wait(&zone, "a");
    let arrival = Arrival {
        meta: Variant("new"),
        tags: &[],
        length: None,
        length_max: u64::MAX,
        now: NOW,
    };
    let new = ticket.refresh(&old, arrival);
    let (_, waker) = waker();
    assert!(matches!(
        waiting.poll_head(&waker),
        Poll::Ready(Head::Stored(_))
    ));
    assert!(Arc::ptr_eq(old.content(), new.content()) && new.is_current());
    let found = find(&zone, "a").unwrap();
    assert!(Arc::ptr_eq(&found, &new) && !found.is_invalidated());
    assert_eq!(zone.figures().bytes, new.charge(), "the tag is gone too");
}

fn meta(variant: &'static str) -> Arrival<'static, Variant> {
    Arrival {
        meta: Variant(variant),
        tags: &[],
        length: None,
        length_max: u64::MAX,
        now: NOW,
    }
}

fn variants(zone: &TestZone, key: &str) -> Vec<&'static str> {
    let all = zone.variants(zone.key(key.as_bytes()).unwrap());
    all.iter().map(|object| object.meta().0).collect()
}

#[test]
fn what_is_right_for_other_requests_stands_beside_with_the_same_content() {
    let zone = zone(|limits| limits.variants = 3);
    let first = store(&zone, "a", "de", &[], b"abc").unwrap();
    assert_eq!(variants(&zone, "a"), ["de"]);
    let ticket = claim(&zone, "a");
    let mut waiting = wait(&zone, "a");
    let second = ticket.share(&first, meta("en"), |variant| *variant == Variant("en"));
    let (_, waker) = waker();
    assert!(matches!(
        waiting.poll_head(&waker),
        Poll::Ready(Head::Stored(_))
    ));
    assert!(Arc::ptr_eq(first.content(), second.content()));
    assert!(first.is_current() && second.is_current());
    assert_eq!(variants(&zone, "a"), ["en", "de"]);
    let bytes = first.charge() + second.charge();
    assert_eq!(zone.figures().bytes, bytes, "each counts for itself");
    // What is replaced goes, and the oldest beyond the limit, but not the one whose content it is.
    let third = claim(&zone, "a").share(&first, meta("en"), |variant| *variant == Variant("en"));
    assert_eq!(variants(&zone, "a"), ["en", "de"]);
    assert!(!second.is_current() && third.is_current());
    for variant in ["fr", "it"] {
        claim(&zone, "a").share(&first, meta(variant), |_| false);
    }
    assert_eq!(variants(&zone, "a"), ["it", "fr", "de"]);
}

#[test]
fn what_was_purged_gives_its_content_to_no_other_variant() {
    type Purge = fn(&TestZone);
    let purges: [Purge; 2] = [
        |zone| {
            let _ = zone.purge_key(zone.key(b"a").unwrap(), PurgeMode::Remove);
        },
        |zone| zone.purge_all(PurgeMode::Remove),
    ];
    for purge in purges {
        let zone = zone(|_| {});
        let old = store(&zone, "a", "de", &[], b"abc").unwrap();
        let ticket = claim(&zone, "a");
        purge(&zone);
        let new = ticket.share(&old, meta("en"), |_| false);
        assert!(!new.is_current());
        assert!(variants(&zone, "a").is_empty());
    }
}

#[test]
fn a_purge_is_in_effect_when_it_returns_and_carried_out_by_the_sweep() {
    type Purge = fn(&TestZone);
    let purges: [(&str, Purge); 4] = [
        ("key", |zone| {
            let _ = zone.purge_key(zone.key(b"a/1").unwrap(), PurgeMode::Remove);
        }),
        ("tag", |zone| {
            assert_eq!(zone.purge_tag(b"t", PurgeMode::Remove), 1)
        }),
        ("prefix", |zone| {
            let concerns = Box::new(|key: &[u8]| key.starts_with(b"a/"));
            zone.purge_matching(concerns, PurgeMode::Remove).unwrap();
        }),
        ("all", |zone| zone.purge_all(PurgeMode::Remove)),
    ];
    for (name, purge) in purges {
        for is_swept in [true, false] {
            let zone = zone(|_| {});
            let kept = store(&zone, "a/1", "", &[b"t", b"u"], b"abc").unwrap();
            store(&zone, "b/1", "", &[b"u"], b"abc").unwrap();
            let generation = zone.generation();
            purge(&zone);
            if is_swept {
                zone.expire(NOW, 1000);
            } else {
                assert!(
                    zone.generation() > generation || !kept.is_current(),
                    "{name}"
                );
            }
            assert!(find(&zone, "a/1").is_none(), "{name}");
            assert!(!kept.is_current(), "{name}");
            assert_eq!(find(&zone, "b/1").is_some(), name != "all", "{name}");
            store(&zone, "a/1", "", &[b"t"], b"new").unwrap();
            zone.expire(NOW, 1000);
            assert_eq!(content_of(&find(&zone, "a/1").unwrap()), b"new", "{name}");
        }
    }
}

#[test]
fn what_was_claimed_before_a_purge_is_not_found_after_it() {
    type Purge = fn(&TestZone);
    let purges: [Purge; 3] = [
        |zone| {
            let _ = zone.purge_key(zone.key(b"a").unwrap(), PurgeMode::Remove);
        },
        |zone| {
            let _ = zone.purge_tag(b"t", PurgeMode::Remove);
        },
        |zone| zone.purge_all(PurgeMode::Remove),
    ];
    for purge in purges {
        for is_started in [true, false] {
            let zone = zone(|_| {});
            let ticket = claim(&zone, "a");
            let fill = if is_started {
                let fill = begin(ticket, "", &[b"t"], None).0;
                purge(&zone);
                fill
            } else {
                purge(&zone);
                zone.expire(NOW, 1000);
                zone.expire(NOW, 1000);
                begin(ticket, "", &[b"t"], None).0
            };
            assert!(find(&zone, "a").is_none());
            let mut fill = fill;
            fill.append(b"abc");
            assert!(fill.finish().unwrap().is_none());
            assert!(find(&zone, "a").is_none());
            zone.expire(NOW, 1000);
            assert_eq!((zone.figures().bytes, zone.figures().filling_bytes), (0, 0));
        }
    }
}

#[test]
fn waiters_fills_variants_and_keys_are_bounded() {
    let zone = zone(|limits| {
        limits.waiters = 2;
        limits.variants = 2;
        limits.keys = 3;
        limits.filling_bytes = 2000;
    });
    let key = zone.key(b"a").unwrap();
    let ticket = claim(&zone, "a");
    let _first = wait(&zone, "a");
    let second = wait(&zone, "a");
    assert!(matches!(zone.claim(key, NOW), Claim::Pass));
    drop(second);
    let _third = wait(&zone, "a");
    let others: Vec<_> = (0..9)
        .map(|n| zone.claim(zone.key(&[n]).unwrap(), NOW))
        .collect();
    let passed = others
        .iter()
        .filter(|claim| matches!(claim, Claim::Pass))
        .count();
    assert_eq!(passed, 3, "2000 / (256 + 1) of them are filled");
    drop((ticket, others));
    for variant in ["1", "2", "3"] {
        store(&zone, "a", variant, &[], b"");
    }
    assert!(zone.look_up(key, NOW, |meta| meta.0 == "1").is_none());
    assert_eq!(zone.figures().objects, 2);
    for key in ["b", "c", "d"] {
        store(&zone, key, "", &[], b"");
    }
    assert_eq!(zone.figures().objects, 3);
    assert!(zone.key(&vec![0; 16385]).is_err());
}

#[test]
fn what_is_not_used_for_long_goes() {
    let zone = zone(|limits| limits.inactive = Duration::from_secs(60));
    store(&zone, "a", "", &[], b"abc");
    let (fill, _reader) = begin(claim(&zone, "b"), "", &[], None);
    assert_eq!(zone.expire(NOW + Duration::from_secs(59), 10), 0);
    assert_eq!(zone.expire(NOW + Duration::from_secs(60), 10), 1);
    assert_eq!((zone.figures().inactive, zone.figures().objects), (1, 1));
    drop(fill);
}

#[test]
fn the_budget_is_the_sum_of_the_charges_and_never_exceeded() {
    let zone = zone(|limits| limits.bytes = 300_000);
    let mut stored = Vec::new();
    for n in 0..2000_usize {
        let len = n * 7919 % 5000 + if n % 100 == 0 { 100_000 } else { 0 };
        let tag = [b't', b'0' + u8::try_from(n % 10).unwrap()];
        stored.extend(store(
            &zone,
            &format!("key{n}"),
            "v",
            &[&tag],
            &vec![0; len],
        ));
        assert!(zone.figures().bytes <= 300_000);
        stored.retain(|object| object.is_current());
    }
    let sum: u64 = stored.iter().map(|object| object.charge()).sum();
    zone.purge_all(PurgeMode::Remove);
    let with_tags = zone.figures().bytes;
    assert!(
        with_tags > sum && with_tags - sum < 10 * 120,
        "{with_tags} {sum}"
    );
    while zone.expire(NOW, 1000) > 0 {}
    zone.expire(NOW, 1000);
    assert_eq!(zone.figures().bytes, 0);
    assert_eq!(zone.largest(3).len(), 0);
}

#[test]
fn the_largest_come_first() {
    let zone = zone(|_| {});
    for (key, len) in [("a", 10), ("b", 300_000), ("c", 70_000)] {
        store(&zone, key, "", &[], &vec![7; len]);
    }
    let largest = zone.largest(2);
    let keys: Vec<_> = largest.iter().map(|object| object.key()).collect();
    assert_eq!(keys, [b"b", b"c"]);
    assert_eq!(content_of(&largest[0]), vec![7; 300_000]);
}

#[test]
fn fills_and_purges_under_way_are_told_until_they_are_done() {
    let zone = zone(|_| {});
    let told = || {
        let figures = zone.figures();
        let fills = (figures.claims, figures.growing);
        (fills, (figures.purges, figures.pending_purges))
    };
    let ticket = claim(&zone, "a");
    assert_eq!(told(), ((1, 0), (0, 0)));
    let (mut fill, _reader) = begin(ticket, "", &[], Some(1));
    assert_eq!(told(), ((0, 1), (0, 0)));
    fill.append(b"x");
    fill.finish().unwrap();
    assert_eq!(told(), ((0, 0), (0, 0)));
    zone.purge_key(zone.key(b"b").unwrap(), PurgeMode::Remove);
    zone.purge_tag(b"c", PurgeMode::Remove);
    zone.purge_matching(Box::new(|key| key == b"a"), PurgeMode::Remove)
        .unwrap();
    assert_eq!(told(), ((0, 0), (3, 1)));
    for _ in 0..2 {
        zone.expire(Duration::ZERO, 100);
    }
    assert_eq!(told(), ((0, 0), (3, 0)));
}
