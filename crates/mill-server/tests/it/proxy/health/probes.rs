//! Probes: what is sent, and what becomes of answers that are none.

use super::super::{ORIGIN, OTHER, origin};
use super::*;
use mill_sim::link::Link;
use mill_upstream::probe::{CONTENT_BYTES_MAX, PROBES_AT_ONCE_MAX};

/// The first probe, with these directives in the location.
fn first_probe(directives: &str) -> String {
    let mut checked = Checked::new(&format!("; {directives} proxy_buffering on"), "");
    checked.run_to(SECOND);
    checked.probes_of(ORIGIN)[0].clone()
}

#[test]
fn a_probe_is_a_request_with_the_settings_of_the_location() {
    let usual = "GET /up HTTP/1.0\r\nHost: app\r\nConnection: close\r\n\r\n";
    assert_eq!(first_probe(""), usual);
    let directives = "proxy_http_version 1.1; proxy_set_header Connection ''; proxy_set_header X-Probe yes-$proxy_port;";
    let expected = "GET /up HTTP/1.1\r\nX-Probe: yes-80\r\nHost: app\r\n\r\n";
    assert_eq!(first_probe(directives), expected);
    // What depends on a client is empty, but for the host.
    let directives = "proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr; \
                      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; \
                      proxy_set_header X-At $server_addr:$server_port:$remote_port;";
    let expected = "GET /up HTTP/1.0\r\nHost: app\r\nX-At: ::\r\nConnection: close\r\n\r\n";
    assert_eq!(first_probe(directives), expected);
    let directives = "proxy_set_header Host $http_host; proxy_method HEAD;";
    let expected = "HEAD /up HTTP/1.0\r\nHost: app\r\nConnection: close\r\n\r\n";
    assert_eq!(first_probe(directives), expected);
}

#[test]
fn a_probe_may_have_another_method() {
    let probe = |method: &str| {
        let mut checked = Checked::new(&format!("method={method} interval=1"), "");
        // The answer to HEAD ends with its head, whatever length it tells.
        let head = send("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n");
        let acts = match method {
            "HEAD" => vec![head],
            _ => vec![ok("hello")],
        };
        checked.set_probe(ORIGIN, acts.clone());
        checked.set_probe(OTHER, acts);
        checked.run_to(SECOND * 5 / 2);
        assert!(checked.states().iter().all(|state| *state != UNHEALTHY));
        let probes = checked.probes_of(ORIGIN);
        assert!(probes.len() >= 2, "{probes:?}");
        probes[0].clone()
    };
    let usual = "/up HTTP/1.0\r\nHost: app\r\nConnection: close\r\n\r\n";
    assert_eq!(probe("HEAD"), format!("HEAD {usual}"));
    assert_eq!(probe("OPTIONS"), format!("OPTIONS {usual}"));
    let post = probe("POST");
    assert!(
        post.starts_with("POST /up HTTP/1.0\r\n") && post.contains("\r\nContent-Length: 0\r\n"),
        "{post}"
    );
}

#[test]
fn a_probe_says_in_the_proxy_protocol_that_no_client_is_behind_it() {
    let check = |directive: &str, expected: &[u8], probes: usize| {
        let kept = "proxy_http_version 1.1; proxy_set_header Connection ''";
        let parameters = format!("interval=1 keepalive_time=1h; {directive} {kept}");
        let mut checked = Checked::new(&parameters, "");
        checked.run_to(SECOND * 3 / 2);
        let probe = &b"GET /up HTTP/1.1\r\nHost: app\r\n\r\n"[..];
        let seen = checked.seen[ORIGIN].bytes.borrow();
        let expected = [expected, &probe.repeat(probes)].concat();
        assert_eq!(seen[0], expected, "{directive}");
    };
    check("", b"", 2);
    check("proxy_protocol v1;", b"PROXY UNKNOWN\r\n", 2);
    // The origin takes its first bytes for a request, and answers once too often.
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
    check("proxy_protocol v2;", local, 1);
}

#[test]
fn a_probe_may_go_to_another_port() {
    let mut checked = Checked::new("port=8080", "");
    let (turn, seen) = origin::start(&checked.server.world, "10.0.0.2:8080", |_, _| status(500));
    checked.server.add_peer(turn);
    checked.run_to(SECOND);
    assert_eq!(
        (seen.requests.borrow().len(), checked.states()),
        (1, vec![UNHEALTHY; 2])
    );
    assert!(checked.probes_of(ORIGIN).is_empty());
    let log = checked.log();
    let status = "peer is unhealthy while checking status code, health check \"\" of peer 10.0.0.2:80 in upstream \"app\", \
                  port 8080";
    assert!(log.contains(&status.to_owned()), "{log:?}");
    let refused = "connect() failed (111: Connection refused) while connecting to upstream, health check \"\" of peer \
                   10.0.0.3:80 in upstream \"app\", port 8080";
    assert!(log.contains(&refused.to_owned()), "{log:?}");
    let refused = "peer is unhealthy while connecting to upstream, health check \"\" of peer 10.0.0.3:80 in upstream \"app\", \
                   port 8080";
    assert!(log.contains(&refused.to_owned()), "{log:?}");
}

#[test]
fn a_tcp_probe_asks_nothing() {
    let mut checked = Checked::new("type=tcp interval=1", "");
    checked.run_to(SECOND / 2);
    assert_eq!(checked.states(), [UP, UP]);
    assert_eq!(*checked.seen[ORIGIN].connections.borrow(), 1);
    assert!(checked.probes_of(ORIGIN).is_empty());
    assert_eq!(checked.server.streams(), 0);
    let mut checked = Checked::new("type=tcp interval=1 port=81", "");
    checked.run_to(SECOND / 2);
    assert_eq!(checked.states(), [UNHEALTHY; 2]);
}

#[test]
fn an_answer_that_is_none_fails_with_the_words_of_a_request() {
    let check = |acts: Vec<Act>, expected: &str, during: &str| {
        let body = "match m { body ~ x; }";
        let timeouts = "match=m; proxy_read_timeout 2s; proxy_buffer_size 1k; proxy_buffers 4 1k";
        let mut checked = Checked::new(timeouts, body);
        checked.set_probe(ORIGIN, acts);
        checked.set_probe(OTHER, vec![ok("x")]);
        checked.run_to(3 * SECOND);
        assert_eq!(checked.states(), [UNHEALTHY, UP], "{expected}");
        let probe = "health check \"m\" of peer 10.0.0.2:80 in upstream \"app\"";
        let expected = [
            format!("{expected} while {during}, {probe}"),
            format!("peer is unhealthy while {during}, {probe}"),
        ];
        assert_eq!(checked.log(), expected);
        assert_eq!(checked.counts()[0].last_passed, Some(false));
        assert_eq!(checked.ask(2), [OTHER, OTHER]);
    };
    let head = "reading response header from upstream";
    let content = "reading upstream";
    let late = "upstream timed out (110: Connection timed out)";
    check(vec![Act::Hang], late, head);
    check(vec![send("HTTP/1.1 200 OK\r\n"), Act::Hang], late, head);
    let begun = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx";
    check(vec![send(begun), Act::Hang], late, content);
    // Bytes that trickle in do not make it longer.
    let slow = (0..9).map(|_| [send("x"), Act::Wait(SECOND)]);
    let slow = std::iter::once([send(begun), Act::Wait(SECOND)]).chain(slow);
    check(slow.flatten().collect(), late, content);
    let closed = "upstream prematurely closed connection";
    check(vec![Act::Close], closed, head);
    check(vec![send(begun), Act::Close], closed, content);
    let reset = "recv() failed (104: Connection reset by peer)";
    check(vec![Act::Reset], reset, head);
    let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "a".repeat(2000));
    check(vec![send(&long)], "upstream sent too big header", head);
}

#[test]
fn so_much_of_a_long_content_is_looked_at_and_the_rest_is_not_waited_for() {
    let check = |len: usize, expected| {
        let mut checked = Checked::new("match=m", "match m { body ~ \"here$\"; }");
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n";
        let filled = "x".repeat(len - 4) + "here";
        let beyond = "x".repeat(CONTENT_BYTES_MAX);
        checked.set_probe(
            ORIGIN,
            vec![send(head), send(&filled), send(&beyond), Act::Hang],
        );
        checked.set_probe(OTHER, vec![ok("here")]);
        checked.run_to(SECOND);
        assert_eq!(checked.states()[0], expected, "{len}");
        assert_eq!(checked.server.streams(), 0);
    };
    check(CONTENT_BYTES_MAX, UP);
    check(CONTENT_BYTES_MAX + 1, UNHEALTHY);
}

#[test]
fn probes_share_a_connection_for_keepalive_time() {
    let kept = "; proxy_http_version 1.1; proxy_set_header Connection ''";
    let check = |parameters: &str, acts: Vec<Act>, connections: usize| {
        let mut checked = Checked::new(&format!("interval=1 {parameters} {kept}"), "");
        checked.set_probe(ORIGIN, acts);
        checked.run_to(SECOND * 13 / 2);
        assert_eq!(checked.states()[0], UP);
        let seen = &checked.seen[ORIGIN];
        let (requests, opened) = (seen.requests.borrow().len(), *seen.connections.borrow());
        assert_eq!((requests, opened), (7, connections), "{parameters}");
    };
    check("", vec![], 7);
    check("keepalive_time=1h", vec![], 1);
    check("keepalive_time=2500ms", vec![], 3);
    // The server closes it, at once or while it waits.
    check("keepalive_time=1h", vec![ok("x"), Act::Close], 7);
    let later = vec![ok("x"), Act::Wait(SECOND / 2), Act::Close];
    check("keepalive_time=1h", later, 7);
    // A probe that says `Connection: close` is the last one, whatever the answer says.
    let mut checked = Checked::new("interval=1 keepalive_time=1h", "");
    checked.run_to(SECOND * 13 / 2);
    assert_eq!(*checked.seen[ORIGIN].connections.borrow(), 7);
}

#[test]
fn errors_of_this_machine_say_nothing_about_a_server() {
    let mut checked = Checked::new("interval=1", "");
    checked.run_to(SECOND / 2);
    checked.server.workers[0].engine().set_streams_max(0);
    checked.run_to(SECOND * 5 / 2);
    assert_eq!(checked.states(), [UP, UP]);
    assert_eq!(checked.counts()[0].checks, 1);
    let line = "connect() failed (24: Too many open files) while connecting to upstream, health check \"\" of peer";
    assert!(checked.log()[0].starts_with(line), "{:?}", checked.log());
}

#[test]
fn a_probe_comes_from_the_address_of_proxy_bind() {
    let mut checked = Checked::new("; proxy_bind 10.0.0.9", "");
    checked.run_to(SECOND);
    assert_eq!(checked.states(), [UP, UP]);
    let peer = checked.seen[ORIGIN].peers.borrow()[0].clone();
    assert!(peer.starts_with("10.0.0.9:"), "{peer}");
}

#[test]
fn no_more_probes_are_under_way_than_may() {
    let most = usize::try_from(PROBES_AT_ONCE_MAX).expect("few");
    let servers =
        (0..=most).map(|index| format!("server 10.1.{}.{};", index / 200, index % 200 + 1));
    let group = format!("upstream app {{ {} }}", servers.collect::<String>());
    let mut checked = Checked::configured(&configuration(&group, "", ""));
    // That nothing is at their addresses is known after a while.
    let link = Link::delayed(100 * MS);
    checked.server.world.set_link(link);
    let mut highest = 0;
    for step in 1..50 {
        checked.run_to(step * MS);
        highest = highest.max(checked.server.streams());
    }
    assert_eq!(highest, most);
    checked.run_to(200 * SECOND);
    assert!(checked.counts().iter().all(|counts| counts.checks > 0));
}

#[test]
fn servers_of_other_protocols_are_asked_in_theirs() {
    let check = |directives: &str, hint: &str, asked: &str, expected| {
        let mut checked = Checked::configured(&in_http(&format!(
            "{GROUP} server {{ listen {ADDRESS}; location / {{ {directives} health_check uri=/up interval=1; }} }}"
        )));
        hint.clone_into(&mut checked.seen[ORIGIN].hint.borrow_mut());
        checked.run_to(SECOND / 2);
        assert_eq!(
            checked.states()[0],
            expected,
            "{directives} {:?}",
            checked.log()
        );
        let seen = checked.seen[ORIGIN].bytes.borrow()[0].clone();
        let seen = String::from_utf8_lossy(&seen).into_owned();
        assert!(seen.contains(asked), "{seen:?}");
    };
    let param = "REQUEST_URI $request_uri;";
    let fastcgi = |status: &str| {
        let text = format!("Status: {status}\r\n\r\n");
        let len = char::from(u8::try_from(text.len()).expect("short"));
        format!("\u{1}\u{6}\0\u{1}\0{len}\0\0{text}\u{1}\u{3}\0\u{1}\0\u{8}\0\0\0\0\0\0\0\0\0\0")
    };
    let directives = format!("fastcgi_pass app; fastcgi_param {param}");
    check(&directives, &fastcgi("200 OK"), "REQUEST_URI/up", UP);
    check(&directives, &fastcgi("500 E"), "REQUEST_URI/up", UNHEALTHY);
    let directives = format!("scgi_pass app; scgi_param {param}");
    let answer = "Status: 200 OK\r\n\r\n";
    check(&directives, answer, "REQUEST_URI\0/up", UP);
    let directives = format!("uwsgi_pass app; uwsgi_param {param}");
    let answer = "HTTP/1.1 404 N\r\n\r\n";
    check(&directives, answer, "REQUEST_URI\u{3}\0/up", UNHEALTHY);
    let directives = "set $memcached_key $uri; memcached_pass app;";
    check(
        directives,
        "VALUE /up 0 2\r\nok\r\nEND\r\n",
        "get /up\r\n",
        UP,
    );
    check(directives, "END\r\n", "get /up\r\n", UNHEALTHY);
}
