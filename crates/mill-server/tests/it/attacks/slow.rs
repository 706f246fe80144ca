//! Clients that hold connections, and take their time. What they take from others is `worker_connections`.

use super::{Figures, Rules, ask};
use crate::server::Server;
use mill_sim::client::Client;
use std::time::Duration;

/// Two hundred connections a second that all begin with `request`, and go on as `then` says.
fn hold(request: &'static str, then: impl Fn(&Client, Duration)) -> impl FnMut(&Server, usize) {
    move |server, step| {
        for number in [2 * step, 2 * step + 1] {
            let client = ask(server, "203.0.113.5", number, request);
            then(&client, server.world.elapsed());
        }
    }
}

const UNDEFENDED: Rules = Rules {
    http: "",
    server: "location / { proxy_pass http://app; } location /big.bin { }",
};

#[test]
fn heads_that_never_end_are_given_up() {
    let defended = Rules {
        http: "client_header_timeout 1s;",
        ..UNDEFENDED
    };
    let request = "GET / HTTP/1.1\r\nHost: shop.example\r\nX-";
    let drip = |client: &Client, now: Duration| {
        client
            .at(now + Duration::from_millis(100))
            .send_each_byte("aaaaaaaaaa", Duration::from_secs(1));
    };
    let figures = Figures::of(defended, UNDEFENDED, || hold(request, drip));
    let server = &figures.attacked.server;
    assert_eq!(server.counters().timeout_header, 1000);
    assert!(server.has_logged(
        "client timed out (110: Connection timed out) while reading client request headers, client: 203.0.113.5"
    ));
    figures.check("slow heads");
}

const POST: &str = "POST /form HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 100\r\n\r\n";

#[test]
fn contents_that_do_not_come_are_given_up() {
    let defended = Rules {
        http: "client_body_timeout 1s;",
        ..UNDEFENDED
    };
    let figures = Figures::of(defended, UNDEFENDED, || hold(POST, |_, _| ()));
    let server = &figures.attacked.server;
    assert_eq!(server.counters().timeout_body, 1000);
    assert!(server.has_logged(
        "client timed out (110: Connection timed out) while reading client request body"
    ));
    figures.check("contents that do not come");
}

/// A byte now and then keeps `client_body_timeout` from passing: it is between two of them.
#[test]
fn contents_that_drip_are_limited_by_their_number() {
    let defended = Rules {
        http: "client_body_timeout 1s; lingering_timeout 300ms; lingering_time 1s;
               limit_conn_zone $binary_remote_net zone=clients:1m; limit_conn clients 20;",
        ..UNDEFENDED
    };
    let undefended = Rules {
        http: "client_body_timeout 1s; lingering_timeout 300ms; lingering_time 1s;",
        ..UNDEFENDED
    };
    let drip = |client: &Client, now: Duration| {
        client
            .at(now)
            .send_each_byte([b'a'; 99], Duration::from_millis(500));
    };
    let figures = Figures::of(defended, undefended, || hold(POST, drip));
    assert_limited(&figures);
    figures.check("contents that drip");
}

const BIG: &str = "GET /big.bin HTTP/1.1\r\nHost: shop.example\r\n\r\n";

#[test]
fn clients_that_take_nothing_are_given_up() {
    let defended = Rules {
        http: "send_timeout 1s;",
        ..UNDEFENDED
    };
    let stop = |client: &Client, _| {
        client.stop_reading();
    };
    let figures = Figures::of(defended, UNDEFENDED, || hold(BIG, stop));
    let server = &figures.attacked.server;
    assert_eq!(server.counters().timeout_send, 1000);
    assert!(server.has_logged(
        "client timed out (110: Connection timed out) while sending response to client"
    ));
    figures.check("clients that take nothing");
}

/// A few bytes now and then keep `send_timeout` from passing.
#[test]
fn clients_that_read_slowly_are_limited_by_their_number() {
    let defended = Rules {
        http: "send_timeout 1s; limit_conn_zone $binary_remote_net zone=clients:1m; limit_conn clients 20;",
        ..UNDEFENDED
    };
    let undefended = Rules {
        http: "send_timeout 1s;",
        ..UNDEFENDED
    };
    let read = |client: &Client, _| {
        client.read_at_rate(3000);
    };
    let figures = Figures::of(defended, undefended, || hold(BIG, read));
    assert_limited(&figures);
    figures.check("clients that read slowly");
}

#[track_caller]
fn assert_limited(figures: &Figures) {
    let server = &figures.attacked.server;
    let refused = server.counters().limit_conn_rejected;
    assert!(refused >= 900, "{refused} of 1000");
    assert!(server.has_logged("limiting connections by zone \"clients\", client: 203.0.113.5"));
}
