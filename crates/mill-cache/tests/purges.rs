//! What purges, evictions and replacements leave of claims and fills that are under way.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use mill_cache::{
    Appended, Arrival, Claim, FillTicket, Head, Limits, Object, PurgeMode, Seed, TAG_BYTES_MAX,
    TAGS_MAX, Zone,
};

type TestZone = Arc<Zone<()>>;

const NOW: Duration = Duration::from_secs(1000);

fn zone(change: impl FnOnce(&mut Limits)) -> TestZone {
    let mut limits = Limits::default();
    change(&mut limits);
    Zone::new(limits, Seed([1, 2]))
}

fn claim(zone: &TestZone, key: &str) -> FillTicket<()> {
    match zone.claim(zone.key(key.as_bytes()).unwrap(), NOW) {
        Claim::Fill(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

fn arrival<'a>(tags: &'a [&'a [u8]]) -> Arrival<'a, ()> {
    Arrival {
        meta: (),
        tags,
        length: None,
        length_max: u64::MAX,
        now: NOW,
    }
}

fn fill(ticket: FillTicket<()>, tags: &[&[u8]], bytes: &[u8]) -> Option<Arc<Object<()>>> {
    let (mut fill, _reader) = ticket.start(arrival(tags), |()| true);
    fill.append(bytes);
    fill.finish().unwrap()
}

fn find(zone: &TestZone, key: &str) -> Option<Arc<Object<()>>> {
    zone.look_up(zone.key(key.as_bytes()).unwrap(), NOW, |()| true)
}

fn purge_key(zone: &TestZone) {
    zone.purge_key(zone.key(b"a").unwrap(), PurgeMode::Remove);
}

fn sweep(zone: &TestZone) {
    for _ in 0..2 {
        zone.expire(NOW, 1_000_000);
    }
}

#[test]
fn a_claim_ends_as_its_object_appears_so_that_none_joins_it_after_a_purge() {
    let zone = zone(|_| {});
    fill(claim(&zone, "a"), &[], b"old").unwrap();
    let was_asked = Cell::new(false);
    // While the zone asks this, the object is in the table, and its claim must not be.
    let (_fill, _reader) = claim(&zone, "a").start(arrival(&[]), |()| {
        zone.purge_all(PurgeMode::Remove);
        let later = zone.claim(zone.key(b"a").unwrap(), NOW);
        assert!(matches!(later, Claim::Fill(_)), "{later:?}");
        was_asked.set(true);
        true
    });
    assert!(was_asked.get());
    assert!(find(&zone, "a").is_none());
}

#[test]
fn what_a_purge_has_removed_does_not_come_back_by_new_metadata() {
    type Act = fn(&TestZone);
    let acts: [(&str, Act, bool); 6] = [
        ("nothing", |_| {}, true),
        (
            "a purge of another key",
            |zone| {
                zone.purge_key(zone.key(b"b").unwrap(), PurgeMode::Remove);
            },
            true,
        ),
        ("a purge of the key", purge_key, false),
        (
            "a purge of a tag that only the old one has",
            |zone| {
                zone.purge_tag(b"t", PurgeMode::Remove);
            },
            false,
        ),
        (
            "a purge of all",
            |zone| zone.purge_all(PurgeMode::Remove),
            false,
        ),
        (
            "a purge of all, swept",
            |zone| {
                zone.purge_all(PurgeMode::Remove);
                sweep(zone);
            },
            false,
        ),
    ];
    for (name, act, is_kept) in acts {
        for is_claimed_first in [true, false] {
            let zone = zone(|_| {});
            fill(claim(&zone, "a"), &[b"t"], b"abc").unwrap();
            let old = find(&zone, "a").unwrap();
            let ticket = if is_claimed_first {
                let ticket = claim(&zone, "a");
                act(&zone);
                ticket
            } else {
                act(&zone);
                claim(&zone, "a")
            };
            let new = ticket.refresh(&old, arrival(&[]));
            assert_eq!(new.is_current(), is_kept, "{name} {is_claimed_first}");
            let found = find(&zone, "a").is_some();
            assert_eq!(found, is_kept, "{name} {is_claimed_first}");
            sweep(&zone);
            let expected = if is_kept { new.charge() } else { 0 };
            assert_eq!(zone.figures().bytes, expected, "{name} {is_claimed_first}");
        }
    }
}

#[test]
fn a_purge_by_one_that_waited_for_the_head_reaches_the_fill() {
    struct PurgeOnWake(TestZone);
    impl Wake for PurgeOnWake {
        fn wake(self: Arc<Self>) {
            purge_key(&self.0);
        }
    }
    let zone = zone(|_| {});
    let ticket = claim(&zone, "a");
    let Claim::Wait(mut waiting) = zone.claim(zone.key(b"a").unwrap(), NOW) else {
        panic!("the claim is taken");
    };
    let waker = Waker::from(Arc::new(PurgeOnWake(zone.clone())));
    assert!(waiting.poll_head(&waker).is_pending());
    let (mut fill, reader) = ticket.start(arrival(&[]), |()| true);
    assert_eq!(fill.append(b"abc"), Appended::TooLarge);
    drop(reader);
    assert_eq!(fill.append(b"def"), Appended::Unread);
    assert!(fill.finish().unwrap().is_none());
}

#[test]
fn what_a_fill_will_replace_is_freed_when_it_goes_before() {
    let zone = zone(|_| {});
    let old = fill(claim(&zone, "a"), &[], b"old").unwrap();
    let (_fill, _reader) = claim(&zone, "a").start(arrival(&[]), |()| true);
    let content = Arc::downgrade(old.content());
    drop(old);
    assert!(content.upgrade().is_some());
    zone.expire(NOW + Duration::from_secs(3600), 100);
    assert!(content.upgrade().is_none());
}

#[test]
fn tags_of_fills_under_way_count_among_the_fills() {
    let names: Vec<Vec<u8>> = (0..TAGS_MAX)
        .map(|n| vec![u8::try_from(n).unwrap(); TAG_BYTES_MAX])
        .collect();
    let tags: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
    for (filling_bytes, is_stored) in [(100_000, false), (200_000, true)] {
        let zone = zone(|limits| limits.filling_bytes = filling_bytes);
        let (fill, reader) = claim(&zone, "a").start(arrival(&tags), |()| true);
        assert_eq!(fill.is_storing(), is_stored);
        let figures = zone.figures();
        assert_eq!(figures.bytes > 0, is_stored);
        assert_eq!(figures.filling_bytes > 131_072, is_stored);
        drop((fill, reader));
        assert_eq!((zone.figures().bytes, zone.figures().filling_bytes), (0, 0));
    }
}

#[test]
fn purges_of_ever_new_tags_keep_a_bounded_number_of_them() {
    for (tags, claimed_before, is_stored) in [
        (&[&b"t4000"[..]][..], true, false),
        (&[b"other"], true, false),
        (&[], true, true),
        (&[b"t4000"], false, true),
    ] {
        let zone = zone(|_| {});
        let early = claim(&zone, "a");
        for number in 0..5000 {
            zone.purge_tag(format!("t{number}").as_bytes(), PurgeMode::Remove);
        }
        let bytes = zone.figures().bytes;
        assert!((1..1024 * 150).contains(&bytes), "{bytes}");
        let ticket = if claimed_before {
            early
        } else {
            drop(early);
            claim(&zone, "a")
        };
        let stored = fill(ticket, tags, b"abc");
        assert_eq!(stored.is_some(), is_stored, "{tags:?} {claimed_before}");
        assert_eq!(find(&zone, "a").is_some(), is_stored);
        zone.purge_all(PurgeMode::Remove);
        sweep(&zone);
        assert_eq!(zone.figures().bytes, 0);
    }
}

#[test]
fn tags_that_lost_their_objects_to_purges_are_bounded_too() {
    let zone = zone(|_| {});
    let early = claim(&zone, "early");
    for number in 0..3000 {
        let tag = format!("t{number}");
        fill(claim(&zone, "a"), &[tag.as_bytes()], b"abc").unwrap();
        assert_eq!(zone.purge_tag(tag.as_bytes(), PurgeMode::Remove), 1);
        assert!(find(&zone, "a").is_none());
    }
    let bytes = zone.figures().bytes;
    assert!((1..1024 * 150).contains(&bytes), "{bytes}");
    assert!(fill(early, &[b"t2999"], b"abc").is_none());
    sweep(&zone);
    assert_eq!(zone.figures().bytes, 0);
}

#[test]
fn after_a_sweep_there_is_room_for_other_tags() {
    let zone = zone(|_| {});
    for round in 0..3 {
        let ticket = claim(&zone, "a");
        for number in 0..1000 {
            zone.purge_tag(format!("t{round}-{number}").as_bytes(), PurgeMode::Remove);
        }
        assert!(fill(ticket, &[b"other"], b"abc").is_some(), "{round}");
        sweep(&zone);
    }
}

#[test]
fn a_fill_that_was_purged_is_not_told_to_be_stored_before_any_look_up_or_sweep() {
    type Purge = fn(&TestZone);
    let purges: [(Purge, bool); 5] = [
        (|_| {}, true),
        (purge_key, false),
        (
            |zone| {
                zone.purge_tag(b"t", PurgeMode::Remove);
            },
            false,
        ),
        (
            |zone| {
                let concerns = Box::new(|key: &[u8]| key == b"a");
                zone.purge_matching(concerns, PurgeMode::Remove).unwrap();
            },
            false,
        ),
        (|zone| zone.purge_all(PurgeMode::Remove), false),
    ];
    for (number, (purge, is_stored)) in purges.into_iter().enumerate() {
        let zone = zone(|_| {});
        let (mut fill, _reader) = claim(&zone, "a").start(arrival(&[b"t"]), |()| true);
        fill.append(b"abc");
        purge(&zone);
        let stored = fill.finish().unwrap();
        assert_eq!(stored.is_some(), is_stored, "{number}");
        assert_eq!(zone.figures().objects, u64::from(is_stored), "{number}");
    }
}

#[test]
fn those_that_wait_for_what_is_purged_claim_again() {
    type Purge = fn(&TestZone);
    let purges: [Purge; 3] = [
        purge_key,
        |zone| {
            zone.purge_tag(b"t", PurgeMode::Remove);
        },
        |zone| zone.purge_all(PurgeMode::Remove),
    ];
    for purge in purges {
        let zone = zone(|_| {});
        let ticket = claim(&zone, "a");
        let Claim::Wait(mut waiting) = zone.claim(zone.key(b"a").unwrap(), NOW) else {
            panic!("the claim is under way");
        };
        purge(&zone);
        assert!(fill(ticket, &[b"t"], b"old").is_none());
        let head = waiting.poll_head(Waker::noop());
        assert!(matches!(head, Poll::Ready(Head::Failed)), "{head:?}");
        assert!(fill(claim(&zone, "a"), &[b"t"], b"new").is_some());
    }
    for purge in purges {
        let zone = zone(|_| {});
        let old = fill(claim(&zone, "a"), &[b"t"], b"old").unwrap();
        let ticket = claim(&zone, "a");
        let Claim::Wait(mut waiting) = zone.claim(zone.key(b"a").unwrap(), NOW) else {
            panic!("the claim is under way");
        };
        purge(&zone);
        ticket.refresh(&old, arrival(&[b"t"]));
        let head = waiting.poll_head(Waker::noop());
        assert!(matches!(head, Poll::Ready(Head::Failed)), "{head:?}");
    }
}
