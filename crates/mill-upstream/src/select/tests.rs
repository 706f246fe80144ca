//! The sequences and tables were measured once with nginx 1.22.1 as Debian has it, one worker process: a `server` with a
//! `location` for each group, `add_header A $upstream_addr`, and for `ip_hash` `real_ip_header X-Real-IP`; the servers are
//! 127.0.0.1:19101 to :19105 (`return 200`), and nothing listens on :19199. Peers are called by the last digit of their
//! ports.

use super::{NoPeer, Outcome, Selected, Selection, Selector, Tried};
use crate::group::{Group, PeerSet};
use crate::peer::{Health, Peer};
use mill_config::config::upstream::{ResponseTime, UpstreamServer};
use mill_config::{Memory, Options, load};
use mill_runtime::time::{Duration, Instant};
use std::net::IpAddr;
use std::sync::Arc;

/// A group, a worker's selector for it, and the time.
struct World {
    group: Arc<Group>,
    selector: Selector,
    second: u64,
}

impl World {
    /// `method` is a line of the block, or nothing; servers are digits with parameters: `1*5 2,backup`.
    fn new(method: &str, servers: &str) -> Self {
        let group = Arc::new(group(method, servers));
        Self {
            selector: Selector::new(&group, 7),
            group,
            second: 1000,
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(0) + Duration::from_secs(self.second)
    }

    fn select(
        &mut self,
        key: &str,
        client: Option<IpAddr>,
        tried: &Tried,
    ) -> Result<Selected, NoPeer> {
        self.select_bound("", key, client, tried)
    }

    fn select_bound(
        &mut self,
        session: &str,
        key: &str,
        client: Option<IpAddr>,
        tried: &Tried,
    ) -> Result<Selected, NoPeer> {
        let selection = Selection {
            key: key.as_bytes(),
            session: session.as_bytes(),
            client,
            tried,
            now: self.now(),
        };
        self.selector.select(&selection)
    }

    /// The server of a request without key, which is under way until the result is dropped.
    fn begin(&mut self) -> Selected {
        self.select("", None, &Tried::default()).unwrap()
    }

    /// The servers of one request, which the one on port 19199 fails; `-` if no other is left.
    fn tries(&mut self, key: &str, client: Option<IpAddr>) -> String {
        let mut tried = Tried::default();
        let mut text = String::new();
        while let Ok(mut selected) = self.select(key, client, &tried) {
            tried.add(&selected);
            text.push(name(&selected));
            if name(&selected) != '9' {
                selected.answered(200, self.now());
                return text;
            }
            selected.report(Outcome::Failed, self.now());
        }
        text + "-"
    }

    fn sequence(&mut self, requests: usize) -> String {
        let each = (0..requests).map(|_| self.tries("", None));
        each.collect::<Vec<_>>().join(" ")
    }

    fn peer(&self, index: usize) -> Arc<Peer> {
        self.group.peers().all().nth(index).cloned().unwrap()
    }

    /// A try at a server fails. Returns whether it is unavailable then.
    fn fail(&self, index: usize) -> bool {
        let peer = self.peer(index);
        peer.load().failed(&peer.settings, self.now())
    }

    /// Gives a server other settings.
    fn set(&self, index: usize, change: impl FnOnce(&mut UpstreamServer)) {
        let mut settings = self.peer(index).settings.clone();
        change(&mut settings);
        self.group.change(|set| {
            let mut primary = set.primary.clone();
            primary[index] = Arc::new(primary[index].with_settings(&settings));
            let backup = set.backup.clone();
            PeerSet { primary, backup }
        });
    }
}

fn group(method: &str, servers: &str) -> Group {
    let server = |text: &str| {
        let (digit, parameters) = text.split_at(1);
        let start = if digit == "9" { "1919" } else { "1910" };
        let parameters = parameters.replace(',', " ").replace('*', " weight=");
        format!("server 127.0.0.1:{start}{digit}{parameters};")
    };
    let servers: String = servers.split_whitespace().map(server).collect();
    let text = format!("events {{ }} http {{ upstream a {{ {method} {servers} }} server {{ }} }}");
    let options = Options::default();
    let source = Memory::new().with(&*options.conf_file(), &text);
    let loaded = load(&source, &options).unwrap_or_else(|failure| panic!("{:?}", failure.error));
    Group::new(&loaded.config.http.unwrap().upstreams[0], None)
}

fn name(selected: &Selected) -> char {
    char::from(*selected.peer().name.as_bytes().last().unwrap())
}

const HASH: &str = "hash $arg_k;";
const CONSISTENT: &str = "hash $arg_k consistent;";

/// The groups that the tables of hashes are of.
const FIVE: &str = "1 2*2 3 4*3 5";
const FIVE_ONE_DOWN: &str = "1 2*2 3 4*3,down 5";
const ONE_REFUSES: &str = "1 9*3,max_fails=0 3";

#[test]
fn round_robin_is_as_smooth_as_with_nginx() {
    let check = |servers, expected: &str| {
        let sequence = World::new("", servers).sequence(21);
        assert_eq!(sequence.replace(' ', ""), expected, "{servers}");
    };
    check("1*5 2 3", "112131111213111121311");
    check("1*4 2*2 3*3", "132131231132131231132");
}

#[test]
fn a_server_that_fails_gets_less_and_then_nothing_as_with_nginx() {
    let mut world = World::new("", "1*5 9*4,max_fails=3,fail_timeout=100 3*2");
    let expected =
        "1 93 1 1 93 1 91 3 1 1 1 3 1 1 3 1 1 1 3 1 1 3 1 1 1 3 1 1 3 1 1 1 3 1 1 3 1 1 1 3";
    assert_eq!(world.sequence(40), expected);
}

#[test]
fn a_key_goes_to_the_same_server_as_with_nginx() {
    let keys = "a b c / /index.html user-42 user-43 session=8f14e45f A 0 1 2 3 10.0.0.1 the-quick-brown-fox";
    let long = "x".repeat(100);
    let check = |method, servers, expected: &str| {
        let keys = keys.split_whitespace().chain([&*long]);
        let found = keys.map(|key| World::new(method, servers).tries(key, None));
        let found = found.collect::<Vec<_>>().join(" ");
        assert_eq!(found, expected, "{method} {servers}");
    };
    check(HASH, FIVE, "5 4 2 3 2 4 2 1 2 3 4 4 2 4 5 4");
    check(CONSISTENT, FIVE, "2 1 4 4 4 4 4 3 2 5 5 5 4 2 4 1");
    check(HASH, FIVE_ONE_DOWN, "5 3 2 3 2 5 2 1 2 3 2 1 2 5 5 2");
    check(CONSISTENT, FIVE_ONE_DOWN, "2 1 1 3 1 5 3 3 2 5 5 5 2 2 5 1");
    let expected = "93 91 91 91 1 93 91 3 1 1 93 3 3 93 93 93";
    check(HASH, ONE_REFUSES, expected);
    let expected = "91 1 1 3 1 91 93 3 91 93 93 1 91 93 91 1";
    check(CONSISTENT, ONE_REFUSES, expected);
}

#[test]
fn an_address_goes_to_the_same_server_as_with_nginx() {
    let clients = "10.0.0.1 10.0.0.99 10.0.1.1 192.168.1.7 203.0.113.9 198.51.100.200 8.8.8.8 127.0.0.1 1.2.3.4 \
        2001:db8::1 2001:db8::2 fe80::1 ::1 2001:db8:1:2:3:4:5:6";
    let check = |servers, expected: &str| {
        let of = |client: &str| {
            let client = Some(client.parse().unwrap());
            World::new("ip_hash;", servers).tries("", client)
        };
        let found = clients.split_whitespace().map(of).collect::<Vec<_>>();
        assert_eq!(found.join(" "), expected, "{servers}");
    };
    check(FIVE, "4 4 4 2 1 1 5 1 5 1 2 3 2 4");
    check(ONE_REFUSES, "1 1 93 3 91 93 91 1 91 1 93 93 1 91");
}

#[test]
fn an_empty_key_is_served_in_turn() {
    for method in [HASH, CONSISTENT] {
        let sequence = World::new(method, "1*5 2 3").sequence(7);
        assert_eq!(sequence, "1 1 2 1 3 1 1", "{method}");
    }
}

#[test]
fn a_failed_server_is_tried_again_once_and_a_success_brings_it_back() {
    let mut world = World::new("", "1,fail_timeout=10 2");
    assert!(world.fail(0));
    world.second += 10;
    assert_eq!(world.sequence(4), "2 2 2 2", "still within fail_timeout");
    world.second += 1;
    let mut trial = world.begin();
    while name(&trial) != '1' {
        trial = world.begin();
    }
    assert_eq!(world.sequence(4), "2 2 2 2", "one request tries it");
    world.second += 1;
    trial.answered(200, world.now());
    assert!(world.sequence(4).contains('1'));
    let counts = world.peer(0).load().counts(world.now());
    assert_eq!((counts.failures, counts.unavailable), (1, 1));
    assert_eq!(counts.downtime, Duration::from_secs(12));
}

#[test]
fn a_try_that_tells_nothing_does_not_bring_a_server_back() {
    let mut world = World::new("", "1 2");
    world.fail(0);
    world.second += 11;
    let mut trials = (0..2).map(|_| world.begin());
    let trial = trials.find(|it| name(it) == '1').unwrap();
    trial.report(Outcome::Unknown, world.now());
    assert_eq!(world.sequence(4), "2 2 2 2");
}

#[test]
fn the_only_server_gets_requests_whatever_failed() {
    let mut world = World::new("", "9");
    assert_eq!(world.sequence(3), "9- 9- 9-");
    let counts = world.peer(0).load().counts(world.now());
    assert_eq!((counts.requests, counts.failures), (3, 3));
    assert_eq!(counts.unavailable, 0);
    assert_eq!(World::new("", "9,down").sequence(1), "-");
}

#[test]
fn a_backup_takes_what_no_other_can() {
    for method in ["", "least_conn;"] {
        let mut world = World::new(method, "9 3,backup 4,backup");
        assert_eq!(world.sequence(3), "93 4 3", "{method}");
    }
}

#[test]
fn a_limit_of_connections_counts_for_all_workers() {
    let mut world = World::new("", "1,max_conns=1 2,max_conns=2");
    let mut other_worker = Selector::new(&world.group, 8);
    let mut held = vec![world.begin(), world.begin()];
    let selection = Selection {
        session: b"",
        key: b"",
        client: None,
        tried: &Tried::default(),
        now: world.now(),
    };
    held.push(other_worker.select(&selection).unwrap());
    assert_eq!(held.iter().map(name).collect::<String>(), "122");
    let refused = other_worker.select(&selection);
    assert_eq!(refused.unwrap_err(), NoPeer::Busy);
    held.remove(0);
    assert_eq!(name(&world.begin()), '1');
    drop(held);
    assert!(world.group.peers().all().all(|peer| peer.active() == 0));
}

#[test]
fn the_last_connection_is_not_taken_twice_after_both_workers_saw_it_free() {
    let peer = World::new("", "1 2").peer(0);
    let now = Instant::from_nanos(1);
    let begin = |max| peer.load().begin(max, now);
    assert_eq!((begin(1), begin(1), begin(0)), (true, false, true));
    assert_eq!(peer.active(), 2);
}

#[test]
fn servers_that_are_down_are_not_waited_for() {
    let mut world = World::new("", "1,down 2,down");
    let refused = world.select("", None, &Tried::default());
    assert_eq!(refused.unwrap_err(), NoPeer::Down);
}

#[test]
fn least_conn_prefers_few_connections_for_the_weight() {
    let mut world = World::new("least_conn;", "1*2 2");
    let held: Vec<_> = (0..6).map(|_| world.begin()).collect();
    assert_eq!(held.iter().filter(|it| name(it) == '1').count(), 4);
    let idle = World::new("least_conn;", "1*5 2 3").sequence(21);
    assert_eq!(idle.replace(' ', ""), "112131111213111121311", "as nginx");
}

#[test]
fn least_time_prefers_a_fast_server_until_it_is_loaded() {
    let mut world = World::new("least_time header;", "1 2");
    for millis in [45, 10] {
        let now = world.now() + Duration::from_millis(millis);
        world.begin().answered(200, now);
    }
    let held: Vec<_> = (0..5).map(|_| world.begin()).collect();
    // The first one would cost 45 ms, the second one 10, 20, 30, 40 and 50.
    assert_eq!(held.iter().map(name).collect::<String>(), "22221");
}

#[test]
fn least_time_with_inflight_leaves_a_server_that_does_not_answer() {
    let choice = |method| {
        let mut world = World::new(method, "1 2");
        for (peer, millis) in [(0, 10), (1, 100)] {
            let time = Duration::from_millis(millis);
            world
                .peer(peer)
                .load()
                .measured(ResponseTime::LastByte, time);
        }
        let _hangs = world.begin();
        world.second += 1;
        name(&world.begin())
    };
    assert_eq!(choice("least_time last_byte;"), '1');
    assert_eq!(choice("least_time last_byte inflight;"), '2');
}

#[test]
fn random_follows_the_weights() {
    let sequence = World::new("random;", "1*3 2").sequence(4000);
    let ones = sequence.matches('1').count();
    assert!((2850..3150).contains(&ones), "{ones}");
}

#[test]
fn random_two_takes_the_better_one() {
    let mut world = World::new("random two;", "1 2");
    let held: Vec<_> = (0..40).map(|_| world.begin()).collect();
    assert_eq!(held.iter().filter(|it| name(it) == '1').count(), 20);

    let mut world = World::new("random two least_time=last_byte;", "1 2");
    for (peer, millis) in [(0, 100), (1, 1)] {
        let time = Duration::from_millis(millis);
        world
            .peer(peer)
            .load()
            .measured(ResponseTime::LastByte, time);
    }
    assert!(!world.sequence(40).contains('1'));
}

#[test]
fn a_recovered_server_starts_slowly() {
    let mut world = World::new("", "1*10,slow_start=100s 2*10");
    let peer = world.peer(0);
    peer.load().set_health(Health::Unhealthy, world.now());
    assert!(!world.sequence(20).contains('1'));
    peer.load().set_health(Health::Healthy, world.now());
    let mut share = |after: u64| {
        world.second = 1000 + after;
        world.sequence(110).matches('1').count()
    };
    assert_eq!((share(0), share(10), share(100)), (0, 10, 55));
}

#[test]
fn a_draining_server_gets_only_requests_of_its_sessions() {
    for servers in ["1 2", "1"] {
        let mut world = World::new("", servers);
        let session = world.peer(0).session_id().clone();
        let session = session.display();
        let bound = |world: &mut World, tried: &Tried| {
            let selected = world.select_bound(&session, "", None, tried);
            selected.map_or('-', |selected| name(&selected))
        };
        world.set(0, |settings| settings.drain = true);
        assert!(!world.sequence(8).contains('1'));
        let mut tried = Tried::default();
        tried.add(&world.select_bound(&session, "", None, &tried).unwrap());
        let other = if servers == "1" { '-' } else { '2' };
        assert_eq!(bound(&mut world, &tried), other, "tried");
        world.set(0, |settings| settings.max_conns = 1);
        let held = world.select_bound(&session, "", None, &Tried::default());
        assert_eq!(bound(&mut world, &Tried::default()), other, "busy");
        drop(held);
        assert_eq!(bound(&mut world, &Tried::default()), '1');
        world.set(0, |settings| settings.down = true);
        assert_eq!(bound(&mut world, &Tried::default()), other, "down");
    }
}

#[test]
fn a_session_goes_to_its_server_whatever_the_method_prefers() {
    for method in ["", "least_conn;", "ip_hash;", "hash $uri;", "random two;"] {
        let mut world = World::new(method, "1*5 2*5 3");
        let session = world.peer(2).session_id().clone();
        for _ in 0..8 {
            let client = Some(IpAddr::from([10, 1, 2, 3]));
            let session = session.display();
            let bound = world.select_bound(&session, "k", client, &Tried::default());
            assert_eq!(name(&bound.unwrap()), '3', "{method}");
        }
    }
}

/// The digests are those of `md5sum`.
#[test]
fn a_server_is_named_by_its_route_or_the_digest_of_its_address() {
    let world = World::new("", "1 2,route=a");
    let id = |index| world.peer(index).session_id().display().into_owned();
    assert_eq!(id(0), "fcd6d2d84f578c7cf43723b120257fda");
    assert_eq!(id(1), "a");
}

#[test]
fn a_session_of_a_backup_goes_to_the_primary_servers_while_there_are_any() {
    let mut world = World::new("", "1 2,backup 3,backup");
    let session = world.peer(2).session_id().clone();
    let bound = |world: &mut World| {
        let session = session.display();
        name(
            &world
                .select_bound(&session, "", None, &Tried::default())
                .unwrap(),
        )
    };
    assert_eq!(bound(&mut world), '1');
    world.set(0, |settings| settings.down = true);
    for _ in 0..3 {
        assert_eq!(bound(&mut world), '3');
    }
}

#[test]
fn workers_follow_a_changed_peer_which_keeps_its_counts_and_its_turn() {
    let mut world = World::new("", "1 2 3");
    assert_eq!(world.sequence(1), "1");
    let held = world.begin();
    world.set(1, |settings| settings.max_conns = 2);
    assert_eq!((name(&held), world.peer(1).active()), ('2', 1));
    assert_eq!(world.sequence(4), "3 1 2 3");
    world.set(0, |settings| settings.down = true);
    assert!(!world.sequence(4).contains('1'));
    assert_eq!(world.selector.tries(), 2);
}

#[test]
fn each_server_is_tried_once_unless_only_its_kept_connection_failed() {
    let mut world = World::new("", "1 2 3,down 4,backup");
    assert_eq!(world.selector.tries(), 3);
    let mut tried = Tried::default();
    let mut next = |tried: &mut Tried| {
        let selected = world.select("", None, tried).ok()?;
        tried.add(&selected);
        Some(name(&selected))
    };
    let all = [(); 4].map(|()| next(&mut tried));
    assert_eq!(all, [Some('1'), Some('2'), Some('4'), None]);
    tried.forget_last();
    assert_eq!(next(&mut tried), Some('4'));
}

#[test]
fn of_servers_for_backup_a_key_has_one_as_well() {
    let mut world = World::new(CONSISTENT, "1 2,backup 3,backup 4,backup");
    for key in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(world.tries(key, None), "1");
    }
    world.set(0, |settings| settings.down = true);
    let of = |world: &mut World| -> Vec<String> {
        let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
        keys.iter().map(|key| world.tries(key, None)).collect()
    };
    let first = of(&mut world);
    assert_eq!(of(&mut world), first, "each key has its server");
    let mut others = first.clone();
    others.sort();
    others.dedup();
    assert!(
        others.len() > 1 && !others.contains(&String::from("1")),
        "{first:?}"
    );
}
