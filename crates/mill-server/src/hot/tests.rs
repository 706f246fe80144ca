//! What is let go of.

use super::*;
use crate::cache::StoredAnswer;
use mill_cache::{Arrival, Claim, Limits, PurgeMode, Seed, Zone};
use mill_config::{Memory, Options, load};

type Store = Arc<Zone<StoredAnswer>>;

fn location() -> Arc<Location> {
    let options = Options::default();
    let text = "events { } http { server { listen 80; } }";
    let source = Memory::new().with(&*options.conf_file(), text);
    let config = load(&source, &options).expect("it is good").config;
    let http = config.http.expect("there is a block");
    let listener = http.listeners.first().expect("there is one");
    let hosts = listener.hosts_for(None);
    Arc::clone(&hosts.default.location)
}

/// Fills a key, and how long the answer that has it is fresh.
fn fill(store: &Store, key: &[u8], until: u64) -> Freshness {
    let found = store.key(key).expect("a short key");
    let Claim::Fill(ticket) = store.claim(found, Duration::ZERO) else {
        panic!("nothing else fills it");
    };
    let arrival = Arrival {
        meta: StoredAnswer::blank(),
        tags: &[],
        length: Some(100),
        length_max: u64::MAX,
        now: Duration::ZERO,
    };
    let (mut fill, _) = ticket.start(arrival, |_| true);
    fill.append(&[b'x'; 100]);
    let kept = fill.finish().expect("the length").expect("there is room");
    let zone = (Arc::clone(store), store.generation());
    Freshness::kept(kept, zone, Instant::from_nanos(until), false)
}

fn answer(location: &Arc<Location>, freshness: Freshness) -> HotAnswer {
    HotAnswer {
        keep_alive_head: RefCell::default(),
        close_head: RefCell::default(),
        date_at: 0,
        whole: RefCell::new(None),
        date_second: Cell::new(0),
        body: Shared::from(&[b'x'; 100][..]),
        content: 0..100,
        h2_block: RefCell::new(None),
        status: 200,
        location: Arc::clone(location),
        zones: HotZones::default(),
        freshness,
        log_template: None,
    }
}

fn key(target: &[u8]) -> HotKey {
    HotKey {
        listener: 1,
        host: Box::from(&b"a"[..]),
        target: target.into(),
        accept_encoding: None,
    }
}

#[test]
fn what_its_cache_has_no_longer_is_let_go_of() {
    let location = location();
    let store = Zone::new(Limits::default(), Seed([1, 2]));
    let mut hot = HotAnswers::default();
    let end = 100_000_000_000;
    for (target, until) in [(&b"/stays"[..], end), (b"/purged", end), (b"/stale", 5)] {
        let freshness = fill(&store, target, until);
        hot.insert(key(target), answer(&location, freshness));
    }
    let file = Freshness::new(Instant::from_nanos(1), Instant::from_nanos(5), 1);
    hot.insert(key(b"/file"), answer(&location, file));
    let purged = store.key(b"/purged").expect("a short key");
    store.purge_key(purged, PurgeMode::Remove);
    let before = hot.bytes;
    hot.sweep(Instant::from_nanos(10));
    let mut left: Vec<_> = hot.answers.keys().map(|key| key.target.clone()).collect();
    left.sort_unstable();
    // A file may be found unchanged later.
    assert_eq!(left, [Box::from(&b"/file"[..]), Box::from(&b"/stays"[..])]);
    let counted = hot
        .answers
        .iter()
        .map(|(key, answer)| key.size() + answer.size());
    assert_eq!(hot.bytes, counted.sum::<usize>());
    assert!(hot.bytes < before);
    store.purge_all(PurgeMode::Remove);
    hot.sweep(Instant::from_nanos(10));
    assert_eq!(hot.answers.len(), 1);
}

#[test]
fn an_answer_in_the_place_of_another_is_counted_once() {
    let location = location();
    let store = Zone::new(Limits::default(), Seed([1, 2]));
    let mut hot = HotAnswers::default();
    hot.insert(key(b"/a"), answer(&location, fill(&store, b"/a", 9)));
    let before = hot.bytes;
    for _ in 0..3 {
        hot.insert(key(b"/a"), answer(&location, fill(&store, b"/a", 9)));
    }
    assert_eq!(hot.bytes, before);
}
