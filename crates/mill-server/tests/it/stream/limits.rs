//! `limit_conn`: how many sessions there are of a key.

use super::peer::Act;
use super::{A, Passing, in_stream};
use crate::server::{ADDRESS, Server};
use mill_sim::client::Client;
use mill_sim::world::World;

fn limited(directives: &str) -> String {
    in_stream(&format!(
        "log_format l '$status $limit_conn_status'; access_log /limits.log l;
         limit_conn_zone $remote_addr zone=clients:1m;
         server {{ listen {ADDRESS}; proxy_pass {A}; {directives} }}"
    ))
}

fn connect(passing: &mut Passing, source: &str) -> Client {
    let client = passing.server.world.connect_from(source, ADDRESS);
    passing.server.run();
    client
}

fn is_served(client: &Client) -> bool {
    client.ended_at().is_none()
}

#[test]
fn a_client_has_as_many_sessions_as_its_limit() {
    let mut passing = Passing::configured(&limited("limit_conn clients 2;"), vec![Act::Echo]);
    let clients: Vec<_> = (0..3)
        .map(|_| connect(&mut passing, "192.0.2.1:1"))
        .collect();
    let served: Vec<bool> = clients.iter().map(is_served).collect();
    assert_eq!(served, [true, true, false]);
    assert!(is_served(&connect(&mut passing, "192.0.2.2:1")));
    assert!(passing.server.has_logged(
        "limiting connections by zone \"clients\" while initializing session, client: 192.0.2.1, server: 10.0.0.1:80"
    ));
    assert_eq!(passing.server.logs.lines("/limits.log"), ["503 REJECTED"]);
    clients[0].finish();
    passing.server.run();
    assert!(is_served(&connect(&mut passing, "192.0.2.1:1")));
    assert!(!is_served(&connect(&mut passing, "192.0.2.1:1")));
    let lines = passing.server.logs.lines("/limits.log");
    assert_eq!(lines, ["503 REJECTED", "200 PASSED", "503 REJECTED"]);
}

#[test]
fn sessions_of_all_workers_count_also_over_a_reload() {
    let text = limited("limit_conn clients 2;").replace(ADDRESS, &format!("{ADDRESS} reuseport"));
    let mut server = Server::configured(World::new(1), &text, 2);
    let (turn, seen) = super::peer::start(&server.world, A, vec![Act::Echo]);
    server.add_peer(turn);
    let mut passing = Passing { server, seen };
    let clients: Vec<_> = (0..8)
        .map(|_| connect(&mut passing, "192.0.2.1:1"))
        .collect();
    let served = |clients: &[Client]| clients.iter().filter(|client| is_served(client)).count();
    assert_eq!(served(&clients), 2);
    passing
        .server
        .adopt(&text.replace("proxy_pass", "proxy_timeout 1m; proxy_pass"));
    passing.server.run();
    let more: Vec<_> = (0..4)
        .map(|_| connect(&mut passing, "192.0.2.1:1"))
        .collect();
    assert_eq!((served(&clients), served(&more)), (2, 0));
}

#[test]
fn a_dry_run_tells_and_serves() {
    let directives = "limit_conn clients 1; limit_conn_dry_run on; limit_conn_log_level warn;";
    let mut passing = Passing::configured(&limited(directives), vec![Act::Echo]);
    let clients: Vec<_> = (0..2)
        .map(|_| connect(&mut passing, "192.0.2.1:1"))
        .collect();
    assert!(clients.iter().all(is_served));
    assert!(
        passing
            .server
            .has_logged("limiting connections, dry run, by zone \"clients\"")
    );
    clients.iter().for_each(|client| {
        client.finish();
    });
    passing.server.run();
    let mut lines = passing.server.logs.lines("/limits.log");
    lines.sort();
    assert_eq!(lines, ["200 PASSED", "200 REJECTED_DRY_RUN"]);
}

#[test]
fn a_full_zone_refuses_new_keys_and_an_empty_key_has_no_limit() {
    // Room for 383 keys, as in nginx.
    let text = limited("limit_conn clients 1;")
        .replace("clients:1m", "clients:32k")
        .replace("events { }", "events { worker_connections 2000; }");
    let mut passing = Passing::configured(&text, vec![Act::Echo]);
    for number in 0..383 {
        let source = format!("10.9.{}.{}:1", number / 250, number % 250);
        assert!(is_served(&connect(&mut passing, &source)), "{number}");
    }
    assert!(!is_served(&connect(&mut passing, "10.8.0.1:1")));
    let text = limited("limit_conn clients 1;")
        .replace("zone $remote_addr", "zone $ssl_preread_server_name");
    let mut passing = Passing::configured(&text, vec![Act::Echo]);
    for _ in 0..3 {
        assert!(is_served(&connect(&mut passing, "10.8.0.1:1")));
    }
}
