//! Workers count together, and over reloads.

use super::{client, ms, status, text};
use crate::server::{ADDRESS, Server};
use mill_sim::client::Client;
use mill_sim::world::World;

fn two_workers(zones: &str, directives: &str) -> Server {
    Server::configured(World::new(5), &of_two(zones, directives), 2)
}

fn of_two(zones: &str, directives: &str) -> String {
    text(zones, directives).replace(ADDRESS, &format!("{ADDRESS} reuseport"))
}

fn passed(server: &mut Server, count: usize) -> usize {
    let clients: Vec<Client> = (0..count)
        .map(|_| client(server, "192.0.2.1", "/a.txt"))
        .collect();
    server.run();
    clients
        .iter()
        .filter(|client| status(client) == 200)
        .count()
}

const ZONES: &str = "limit_req_zone $binary_remote_addr zone=one:1m rate=1r/m;
    limit_conn_zone $binary_remote_addr zone=many:1m;";
const LIMIT: &str = "limit_req zone=one burst=9 nodelay;";

#[test]
fn all_workers_have_one_count() {
    for cached in ["", "open_file_cache max=9;"] {
        let mut server = two_workers(ZONES, &format!("{LIMIT} {cached}"));
        assert_eq!(passed(&mut server, 40), 10, "{cached}");
        let busy = server.workers.iter().filter(|worker| worker.streams() > 0);
        assert_eq!(busy.count(), 2);
    }
}

#[test]
fn a_count_goes_on_over_a_reload_with_the_same_zone() {
    let check = |other_zones: &str, expected: usize| {
        let mut server = two_workers(ZONES, LIMIT);
        assert_eq!(passed(&mut server, 7), 7);
        server.adopt(&of_two(other_zones, LIMIT));
        server.run();
        assert_eq!(passed(&mut server, 20), expected, "{other_zones}");
    };
    check(ZONES, 3);
    // Another rate holds for what is owed already.
    check(&ZONES.replace("1r/m", "2r/m"), 3);
    check(&ZONES.replace("one:1m", "one:2m"), 10);
    check(&ZONES.replace("$binary_remote_addr", "$remote_addr"), 10);
    let renamed = format!("{ZONES} limit_req_zone $host zone=two:1m rate=1r/m;");
    check(&renamed, 3);
}

#[test]
fn requests_under_way_count_over_a_reload() {
    let limit = "limit_conn many 3;";
    let mut server = two_workers(ZONES, limit);
    let slow: Vec<Client> = (0..4)
        .map(|_| {
            let client = client(&server, "192.0.2.1", "/big.bin");
            client.stop_reading();
            client
        })
        .collect();
    server.run();
    server.adopt(&of_two(ZONES, &format!("{limit} limit_conn_status 500;")));
    server.run();
    assert_eq!(passed(&mut server, 3), 0);
    slow.iter().for_each(|client| {
        client.read_on();
    });
    server.run();
    let elapsed = server.world.elapsed();
    server.run_to(elapsed + ms(1));
    assert_eq!(passed(&mut server, 1), 1);
}
