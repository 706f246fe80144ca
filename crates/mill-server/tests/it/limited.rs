//! `limit_req` and `limit_conn`: how many requests of a key there may be.

/// `limit_req`.
mod requests;

/// Several limits of one request.
mod several;

/// `limit_conn`.
mod connections;

/// Limits of hot answers.
mod hot;

/// Workers and reloads.
mod workers;

/// What the API and Prometheus tell.
mod told;

use crate::answer::answer;
use crate::server::{ADDRESS, Server, in_http};
use mill_sim::client::Client;
use mill_sim::world::World;
use std::time::Duration;

/// A server with these zones, and these directives in it. It logs the status and what limits have made of a request.
fn server(zones: &str, directives: &str) -> Server {
    Server::configured(World::new(1), &text(zones, directives), 1)
}

fn text(zones: &str, directives: &str) -> String {
    in_http(&format!(
        "{zones} log_format l '$status $limit_req_status $limit_conn_status';
         server {{ listen {ADDRESS}; root /site; access_log /access.log l; {directives} }}"
    ))
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// A client at this address that asks for a path now.
fn client(server: &Server, host: &str, path: &str) -> Client {
    let client = server.world.connect_from(&format!("{host}:4000"), ADDRESS);
    client.send(get(path));
    client
}

/// The statuses of as many requests, each at once on a connection of its own.
fn statuses(server: &mut Server, host: &str, path: &str, count: usize) -> Vec<u16> {
    let clients: Vec<Client> = (0..count).map(|_| client(server, host, path)).collect();
    server.run();
    clients.iter().map(status).collect()
}

/// 0 as long as there is no answer.
fn status(client: &Client) -> u16 {
    match client.received() {
        received if received.is_empty() => 0,
        received => answer(&received).status,
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn access_log(server: &Server) -> Vec<String> {
    server.logs.lines("/access.log")
}

/// The lines of the error log that are about limits, without what follows the zone.
fn limit_log(server: &Server) -> Vec<String> {
    let lines = server.error_log().into_iter();
    lines
        .filter_map(|line| {
            let begin = line.find("limiting").or_else(|| line.find("delaying"))?;
            let (text, _) = line[begin..].split_once(", client: ")?;
            Some(text.to_owned())
        })
        .collect()
}
