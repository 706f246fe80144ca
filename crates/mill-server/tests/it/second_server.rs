//! A server that is not the default one of its socket: its own settings apply from its answers on.

use crate::answer::{answer, answers};
use crate::server::{ADDRESS, MS, SECOND, Server, in_http};
use mill_sim::link::Link;
use mill_sim::world::World;

/// Two servers of one socket, of which the second is not the default one. With `cache` its page is hot.
fn second_server(first: &str, second: &str, cache: bool) -> Server {
    let cache = if cache { "open_file_cache max=9;" } else { "" };
    let text = in_http(&format!(
        "root /site; {cache}
         server {{ listen {ADDRESS} default_server; server_name a; {first} }}
         server {{ listen {ADDRESS}; server_name b; {second} }}"
    ));
    let mut server = Server::configured(World::new(1), &text, 1);
    server.files().write("/site/page", "p".repeat(60_000));
    server.ask(&get("close"));
    server.run_until_idle();
    server
}

fn get(connection: &str) -> String {
    format!("GET /page HTTP/1.1\r\nHost: b\r\nConnection: {connection}\r\n\r\n")
}

/// From now on few bytes are in flight at a time.
fn slow_down(server: &mut Server) {
    server.world.set_link(Link::with_window(5_000));
}

#[test]
fn an_answer_taken_slowly_is_followed_by_its_own_servers_keepalive_timeout() {
    for cache in [false, true] {
        let mut server = second_server("keepalive_timeout 100s;", "keepalive_timeout 20s;", cache);
        slow_down(&mut server);
        let client = server.connect();
        client.read_at_rate(2_000).send(get("keep-alive"));
        let start = server.world.elapsed();
        server.run_to(start + 33 * SECOND);
        assert_eq!(answers(&client.received()).len(), 1, "cache {cache}");
        assert!(!client.is_closed(), "cache {cache}");
        server.run_to(start + 60 * SECOND);
        assert!(client.is_closed(), "cache {cache}");
    }
}

#[test]
fn a_client_that_does_not_read_is_disconnected_after_the_send_timeout_of_the_server_that_answered()
{
    for cache in [false, true] {
        for connection in ["close", "keep-alive"] {
            let mut server = second_server("send_timeout 100s;", "send_timeout 6s;", cache);
            slow_down(&mut server);
            let client = server.connect();
            client.stop_reading().send(get(connection));
            let start = server.world.elapsed();
            server.run_to(start + 5999 * MS);
            assert_eq!(server.streams(), 1, "cache {cache}, {connection}");
            server.run_to(start + 6 * SECOND);
            server.assert_nothing_left(1);
        }
    }
}

#[test]
fn a_connection_lingers_as_the_server_says_that_answered() {
    let always = "lingering_close always; lingering_timeout 3s;";
    for cache in [false, true] {
        for (first, second, lingers) in [
            ("lingering_close off;", always, true),
            (always, "lingering_close off;", false),
        ] {
            let mut server = second_server(first, second, cache);
            let client = server.connect();
            client.send(get("close"));
            server.run();
            assert_eq!(answer(&client.received()).content.len(), 60_000);
            assert_eq!(server.streams(), usize::from(lingers), "cache {cache}");
            client.finish();
            server.run();
            server.assert_nothing_left(1);
        }
    }
}
