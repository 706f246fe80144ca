//! Health checks when the configuration or the servers change.

use super::super::name_server::{self, NAME_SERVER};
use super::*;
use crate::zone::{A, Record};
use mill_server::worker::Order;

/// A proxy whose first origin is unhealthy and whose second is not.
fn half_healthy(parameters: &str) -> Checked {
    let mut checked = Checked::new(parameters, "");
    checked.set_probe(ORIGIN, status(500));
    checked.run_to(SECOND);
    assert_eq!(checked.states(), [UNHEALTHY, UP]);
    checked
}

/// The states right after a reload, before any probe of the new configuration has ended.
fn after_reload(before: &str, text: &str) -> Vec<PeerState> {
    let mut checked = half_healthy(before);
    for origin in [ORIGIN, OTHER] {
        checked.set_probe(origin, vec![Act::Hang]);
    }
    checked.server.adopt(text);
    checked.server.run();
    checked.states()
}

#[test]
fn a_reload_forgets_what_mandatory_checks_have_found_unless_they_persist() {
    let check = |before: &str, after: &str, expected: [PeerState; 2]| {
        let states = after_reload(before, &configuration(GROUP, after, ""));
        assert_eq!(states, expected, "{before} {after}");
    };
    check("mandatory", "mandatory", [UNHEALTHY, CHECKING]);
    check(
        "mandatory persistent",
        "mandatory persistent",
        [UNHEALTHY, UP],
    );
    check("", "mandatory persistent", [UNHEALTHY, UP]);
    check("", "mandatory", [UNHEALTHY, CHECKING]);
    check("", "", [UNHEALTHY, UP]);
    check("mandatory", "", [UNHEALTHY, UP]);
}

#[test]
fn a_reload_without_checks_makes_all_servers_healthy() {
    let text =
        format!("{GROUP} server {{ listen {ADDRESS}; location / {{ proxy_pass http://app; }} }}");
    let text = in_http(&text);
    assert_eq!(after_reload("", &text), [UP, UP]);
    assert_eq!(after_reload("mandatory", &text), [UP, UP]);
    let mut checked = half_healthy("interval=1");
    let probes = checked.probes_of(ORIGIN).len();
    checked.server.adopt(&text);
    checked.run_to(20 * SECOND);
    assert_eq!(checked.states(), [UP, UP]);
    assert_eq!(checked.probes_of(ORIGIN).len(), probes);
}

#[test]
fn a_reload_probes_by_the_new_parameters_at_once() {
    let mut checked = half_healthy("interval=100");
    checked
        .server
        .adopt(&configuration(GROUP, "match=m", "match m { status 500; }"));
    checked.run_to(SECOND * 2);
    assert_eq!(checked.states(), [UP, UNHEALTHY]);
    assert_eq!(checked.probes_of(ORIGIN).len(), 2);
}

#[test]
fn quit_ends_probes_at_once() {
    let mut checked = Checked::new("", "");
    checked.set_probe(ORIGIN, vec![Act::Hang]);
    checked.run_to(SECOND);
    // A request that is not answered yet keeps the worker.
    checked.set_page(vec![Act::Wait(20 * SECOND), ok("late")]);
    let client = checked.server.connect();
    client.send(get("/"));
    checked.run_to(SECOND * 2);
    assert_eq!(checked.server.streams(), 3);
    checked.server.order(|| Order::Drain { limit: None });
    checked.run_to(SECOND * 3);
    assert_eq!(checked.server.streams(), 2);
    let probes = checked.probes_of(OTHER).len();
    checked.run_to(SECOND * 30);
    assert_eq!(checked.probes_of(OTHER).len(), probes);
    assert_eq!(
        content(&String::from_utf8_lossy(&client.received())),
        "late"
    );
    let mut workers = checked.server.workers.iter();
    assert!(workers.all(crate::server::RunningWorker::has_ended));
}

#[test]
fn servers_that_a_name_brings_are_probed_before_their_first_request() {
    let group =
        format!("resolver {NAME_SERVER}; upstream app {{ zone z 64k; server b.example resolve; }}");
    let text = configuration(&group, "mandatory interval=60", "");
    let mut checked = Checked::configured("events { }");
    let (turn, _) = name_server::start(&checked.server.world, |asked, at| {
        let lasts: &[u8] = if at.as_secs() < 5 { &[2] } else { &[2, 3] };
        let record = |last: &u8| Record::a(&asked.name, 1, [10, 0, 0, *last]);
        let records: Vec<_> = lasts.iter().map(record).collect();
        asked.reply(if asked.kind == A { &records } else { &[] })
    });
    checked.server.add_peer(turn);
    checked.run_to(MS);
    checked.server.adopt(&text);
    checked.run_to(SECOND);
    assert_eq!(
        (checked.states(), checked.ask(1)),
        (vec![UP], vec![ORIGIN.to_owned()])
    );
    checked.set_probe(OTHER, vec![Act::Wait(3 * SECOND), ok("slow")]);
    checked.run_to(8 * SECOND);
    assert_eq!(checked.states(), [UP, CHECKING]);
    assert_eq!(checked.ask(2), [ORIGIN, ORIGIN]);
    checked.run_to(12 * SECOND);
    assert_eq!(checked.states(), [UP, UP]);
    assert_eq!(checked.probes_of(OTHER).len(), 1);
}
