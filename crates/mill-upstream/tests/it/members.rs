//! Groups with servers whose names stand for other addresses from time to time.

use mill_config::config::Upstream;
use mill_config::config::upstream::UpstreamServer;
use mill_config::{Memory, Options, load};
use mill_upstream::group::Group;
use mill_upstream::peer::Peer;
use mill_upstream::resolver::members::Member;
use std::collections::BTreeSet;
use std::sync::Arc;

fn upstream(servers: &str) -> Arc<Upstream> {
    let text = format!(
        "events {{ }} http {{ resolver 127.0.0.1; upstream a {{ {servers} }} server {{ }} }}"
    );
    let options = Options::default();
    let source = Memory::new().with(&*options.conf_file(), &text);
    let loaded = load(&source, &options).unwrap_or_else(|failure| panic!("{:?}", failure.error));
    Arc::clone(&loaded.config.http.unwrap().upstreams[0])
}

fn group(servers: &str) -> Group {
    Group::new(&upstream(servers), None)
}

/// `ADDRESS[*WEIGHT][b]` each.
fn members(texts: &[&str]) -> BTreeSet<Member> {
    let member = |text: &&str| {
        let (text, backup) = match text.strip_suffix('b') {
            Some(text) => (text, true),
            None => (*text, false),
        };
        let (address, weight) = match text.split_once('*') {
            Some((address, weight)) => (address, Some(weight.parse().unwrap())),
            None => (text, None),
        };
        Member {
            address: address.parse().unwrap(),
            backup,
            weight,
        }
    };
    texts.iter().map(member).collect()
}

fn set(group: &Group, server: usize, texts: &[&str]) {
    let server: &UpstreamServer = &group.config().servers[server];
    group.set_members(server, &members(texts));
}

fn check(group: &Group, expected: &str) {
    let peers = group.peers();
    let text = |peer: &Arc<Peer>| {
        let backup = if peer.settings.backup { "b" } else { "" };
        format!("{}*{}{backup}", peer.address, peer.settings.weight)
    };
    let all: Vec<String> = peers.all().map(text).collect();
    assert_eq!(all.join(" "), expected);
}

#[test]
fn members_stand_where_their_server_stands() {
    let group = group(
        "server 10.0.0.1; server b.example:81 weight=2 resolve; server 10.0.0.3; \
         server c.example resolve backup;",
    );
    check(&group, "10.0.0.1:80*1 10.0.0.3:80*1");
    let generation = group.generation();
    set(&group, 1, &["10.0.1.1:81", "10.0.1.2:81"]);
    check(
        &group,
        "10.0.0.1:80*1 10.0.1.1:81*2 10.0.1.2:81*2 10.0.0.3:80*1",
    );
    assert_ne!(group.generation(), generation);
    set(&group, 3, &["10.0.2.1:80b"]);
    set(&group, 1, &["10.0.1.2:81"]);
    check(
        &group,
        "10.0.0.1:80*1 10.0.1.2:81*2 10.0.0.3:80*1 10.0.2.1:80*1b",
    );
    set(&group, 1, &[]);
    check(&group, "10.0.0.1:80*1 10.0.0.3:80*1 10.0.2.1:80*1b");
}

#[test]
fn records_of_services_set_weight_and_rank() {
    let group = group("server b.example service=http resolve;");
    set(&group, 0, &["10.0.1.1:8080*5", "10.0.1.2:8081*1b"]);
    check(&group, "10.0.1.1:8080*5 10.0.1.2:8081*1b");
    set(&group, 0, &["10.0.1.1:8080*1b", "10.0.1.2:8081*1"]);
    check(&group, "10.0.1.2:8081*1 10.0.1.1:8080*1b");
}

#[test]
fn a_member_that_stays_keeps_its_figures_and_one_that_comes_back_is_new() {
    let group = group("server b.example resolve;");
    set(&group, 0, &["10.0.1.1:80", "10.0.1.2:80"]);
    let before = group.peers();
    set(&group, 0, &["10.0.1.2:80", "10.0.1.3:80"]);
    let after = group.peers();
    assert!(Arc::ptr_eq(&before.primary[1], &after.primary[0]));
    set(&group, 0, &["10.0.1.1:80"]);
    assert!(!Arc::ptr_eq(&before.primary[0], &group.peers().primary[0]));
}

#[test]
fn a_member_with_another_weight_or_rank_keeps_its_figures() {
    let group = group("server b.example service=http resolve;");
    set(&group, 0, &["10.0.1.1:80*5", "10.0.1.2:80*1"]);
    let before = group.peers();
    set(&group, 0, &["10.0.1.1:80*7", "10.0.1.2:80*1b"]);
    check(&group, "10.0.1.1:80*7 10.0.1.2:80*1b");
    let after = group.peers();
    assert!(after.primary[0].shares_load_with(&before.primary[0]));
    assert_eq!(after.primary[0].id, before.primary[0].id);
    assert!(after.backup[0].shares_load_with(&before.primary[1]));
}

#[test]
fn of_two_members_at_one_address_each_has_figures_of_its_own() {
    let group = group("server b.example service=http resolve;");
    set(&group, 0, &["10.0.1.1:80*5"]);
    let before = group.peers();
    set(&group, 0, &["10.0.1.1:80*6", "10.0.1.1:80*7"]);
    let after = group.peers();
    assert!(after.primary[0].shares_load_with(&before.primary[0]));
    assert!(!after.primary[1].shares_load_with(&before.primary[0]));
    set(&group, 0, &["10.0.1.1:80*5", "10.0.1.1:80*7"]);
    let last = group.peers();
    assert!(last.primary[0].shares_load_with(&after.primary[0]));
    assert!(Arc::ptr_eq(&last.primary[1], &after.primary[1]));
}

#[test]
fn a_reload_keeps_what_a_name_stood_for_until_it_is_resolved_anew() {
    let servers = "server 10.0.0.1; server b.example resolve service=s;";
    let former = group(servers);
    set(&former, 1, &["10.0.1.1:80*3", "10.0.1.2:80*1b"]);
    let group = Group::new(&upstream(servers), Some(&former));
    check(&group, "10.0.0.1:80*1 10.0.1.1:80*3 10.0.1.2:80*1b");
    assert!(Arc::ptr_eq(
        &former.peers().primary[1],
        &group.peers().primary[1]
    ));
    let other = "server 10.0.0.1; server c.example resolve service=s;";
    let group = Group::new(&upstream(other), Some(&former));
    check(&group, "10.0.0.1:80*1");
}

#[test]
fn a_name_that_is_written_twice_stands_for_its_members_twice() {
    let group = group("server b.example weight=2 resolve; server b.example resolve backup;");
    set(&group, 0, &["10.0.1.1:80"]);
    set(&group, 1, &["10.0.1.1:80b"]);
    check(&group, "10.0.1.1:80*2 10.0.1.1:80*1b");
}
