//! Servers that are added, changed and removed while they are used.

use super::call;
use crate::proxy::origin::{self, Act, ok};
use crate::proxy::{ORIGIN, OTHER, Proxy, content, get};
use crate::server::{ADDRESS, SECOND, Server, in_http};
use mill_sim::world::World;
use serde_json::{Value, json};
use std::rc::Rc;

const SERVERS: &str = "/api/9/http/upstreams/app/servers";

const DIRECTIVES: &str = "
    location / { proxy_pass http://app; }
    location /api { millstream_api write=on; }";

/// A proxy of the group, and two origins that answer with their names.
fn proxy(upstream: &str, directives: &str) -> Proxy {
    let mut proxy = Proxy::with_upstream(upstream, directives, |_, _| vec![ok("first")]);
    let (turn, _) = origin::start(&proxy.server.world, OTHER, |_, _| vec![ok("second")]);
    proxy.server.add_peer(turn);
    proxy
}

/// Which servers answer so many requests.
fn answers(proxy: &mut Proxy, count: usize) -> String {
    let all = (0..count).map(|_| content(&proxy.ask(&get("/"))).to_owned());
    all.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_server_is_added_changed_and_removed() {
    let mut proxy = proxy("server 10.0.0.2;", DIRECTIVES);
    assert_eq!(answers(&mut proxy, 2), "first first");
    let (status, added) = call(
        &mut proxy,
        "POST",
        SERVERS,
        r#"{"server":"10.0.0.3","max_fails":0}"#,
    );
    assert_eq!(status, "201 Created");
    let expected = json!({
        "id": 1, "server": "10.0.0.3:80", "weight": 1, "max_conns": 0, "max_fails": 0,
        "fail_timeout": "10s", "slow_start": "0s", "route": "", "backup": false, "down": false,
    });
    assert_eq!(added, expected);
    assert_eq!(answers(&mut proxy, 4).matches("second").count(), 2);
    let one = format!("{SERVERS}/1");
    let (status, changed) = call(
        &mut proxy,
        "PATCH",
        &one,
        r#"{"weight":3,"fail_timeout":"1m"}"#,
    );
    assert_eq!(status, "200 OK");
    assert_eq!(
        (&changed["weight"], &changed["fail_timeout"]),
        (&json!(3), &json!("60s"))
    );
    assert_eq!(answers(&mut proxy, 8).matches("second").count(), 6);
    let (status, left) = call(&mut proxy, "DELETE", &format!("{SERVERS}/0"), "");
    assert_eq!(status, "200 OK");
    assert_eq!(left, json!([changed]));
    assert_eq!(answers(&mut proxy, 2), "second second");
}

#[test]
fn a_server_that_is_down_or_drained_gets_nothing_new() {
    for change in ["down", "drain"] {
        let mut proxy = proxy("server 10.0.0.2; server 10.0.0.3;", DIRECTIVES);
        let set = |proxy: &mut Proxy, value: bool| {
            let text = json!({ change: value }).to_string();
            let (status, _) = call(proxy, "PATCH", &format!("{SERVERS}/0"), &text);
            assert_eq!(status, "200 OK");
            let path = "/api/9/http/upstreams/app";
            call(proxy, "GET", path, "").1["peers"][0]["state"].clone()
        };
        let state = set(&mut proxy, true);
        assert_eq!(state, if change == "down" { "down" } else { "draining" });
        assert_eq!(answers(&mut proxy, 3), "second second second");
        assert_eq!(set(&mut proxy, false), "up");
        assert_eq!(answers(&mut proxy, 4).matches("first").count(), 2);
    }
}

#[test]
fn requests_at_a_removed_server_end_as_they_would() {
    let slow = |_: usize, _: &str| vec![Act::Wait(SECOND), ok("late")];
    let mut proxy = Proxy::with_upstream("server 10.0.0.2;", DIRECTIVES, slow);
    let client = proxy.server.connect();
    client.send(get("/"));
    proxy.server.run();
    let (status, left) = call(&mut proxy, "DELETE", &format!("{SERVERS}/0"), "");
    assert_eq!((status.as_str(), left), ("200 OK", json!([])));
    let zombies = |proxy: &mut Proxy| {
        let (_, group) = call(proxy, "GET", "/api/9/http/upstreams/app", "");
        group["zombies"].clone()
    };
    assert_eq!(zombies(&mut proxy), 1);
    assert!(proxy.ask(&get("/")).starts_with("HTTP/1.1 502 "));
    proxy.server.run_to(SECOND * 2);
    assert!(String::from_utf8_lossy(&client.received()).ends_with("late"));
    assert_eq!(zombies(&mut proxy), 0);
}

#[test]
fn servers_that_a_reload_removes_are_zombies_until_their_requests_end() {
    let slow = |_: usize, _: &str| vec![Act::Wait(SECOND), ok("late")];
    let mut proxy = Proxy::with_upstream("server 10.0.0.2;", DIRECTIVES, slow);
    let client = proxy.server.connect();
    client.send(get("/"));
    proxy.server.run();
    let other =
        format!("upstream app {{ server 10.0.0.3; }} server {{ listen {ADDRESS}; {DIRECTIVES} }}");
    proxy.server.adopt(&in_http(&other));
    proxy.server.run();
    let group = |proxy: &mut Proxy| {
        let (_, group) = call(proxy, "GET", "/api/9/http/upstreams/app", "");
        (group["zombies"].clone(), group["peers"][0]["id"].clone())
    };
    assert_eq!(group(&mut proxy), (json!(1), json!(1)));
    proxy.server.run_to(SECOND * 2);
    assert!(String::from_utf8_lossy(&client.received()).ends_with("late"));
    assert_eq!(group(&mut proxy), (json!(0), json!(1)));
}

#[test]
fn a_change_while_a_configuration_is_loaded_is_not_undone() {
    let text = |rest: &str| {
        in_http(&format!(
            "upstream app {{ state /state/app.conf; }} server {{ listen {ADDRESS}; {rest} {DIRECTIVES} }}"
        ))
    };
    let world = World::new(3);
    world.files().create_directory("/state");
    let mut server = Server::configured(world, &text(""), 1);
    let post = |server: &mut Server, address: &str| {
        let content = format!("{{\"server\":\"{address}\"}}");
        let len = content.len();
        let answer = server.ask(&format!(
            "POST {SERVERS} HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\n{content}"
        ));
        assert!(answer.starts_with(b"HTTP/1.1 201 "));
    };
    post(&mut server, "10.0.0.2");
    // A request of the first configuration, whose content comes after the second one is in force.
    let client = server.connect();
    client.send(format!(
        "POST {SERVERS} HTTP/1.1\r\nHost: a\r\nContent-Length: 21\r\n\r\n"
    ));
    server.run();
    // As far as the new configuration knows, the file is empty as it was at first.
    server.adopt(&text("add_header X y;"));
    server.run();
    client.send(r#"{"server":"10.0.0.3"}"#);
    server.run();
    assert!(client.received().starts_with(b"HTTP/1.1 201 "));
    let peers = server
        .site
        .upstreams
        .iter()
        .next()
        .expect("there is one")
        .peers();
    let names: Vec<String> = peers.all().map(|peer| peer.address.to_string()).collect();
    assert_eq!(names, ["10.0.0.2:80", "10.0.0.3:80"]);
    let saved = server.files().read("/state/app.conf");
    assert_eq!(saved, b"server 10.0.0.2;\nserver 10.0.0.3;\n");
}

#[test]
fn a_server_does_not_take_the_address_of_another_one() {
    let mut proxy = proxy("server 10.0.0.2; server 10.0.0.3;", DIRECTIVES);
    let mut patch = |text: &str| call(&mut proxy, "PATCH", &format!("{SERVERS}/0"), text);
    let (status, document) = patch(r#"{"server":"10.0.0.3:80","weight":2}"#);
    assert_eq!(status, "409 Conflict");
    assert_eq!(document["error"]["code"], "EntryExists");
    assert_eq!(patch("{}").1["weight"], 1);
    assert_eq!(patch(r#"{"server":"10.0.0.2:80"}"#).0, "200 OK");
}

#[test]
fn what_cannot_be_set_is_refused_with_a_code_and_changes_nothing() {
    let mut proxy = proxy("server 10.0.0.2 route=a;", DIRECTIVES);
    let before = call(&mut proxy, "GET", SERVERS, "").1;
    let mut check = |method: &str, path: &str, text: &str, status: u16, code: &str| {
        let path = path.replace("SERVERS", SERVERS);
        let (found, document) = call(&mut proxy, method, &path, text);
        assert_eq!(
            document["error"]["code"], code,
            "{method} {path} {text}: {document}"
        );
        assert!(found.starts_with(&status.to_string()), "{found}");
    };
    check("POST", "SERVERS", "{", 415, "JsonError");
    check("POST", "SERVERS", "[]", 400, "UpstreamConfFormatError");
    check("POST", "SERVERS", "{}", 400, "UpstreamConfFormatError");
    check(
        "POST",
        "SERVERS",
        r#"{"server":"10.0.0.2:80"}"#,
        409,
        "EntryExists",
    );
    check(
        "POST",
        "SERVERS",
        r#"{"server":"10.0.0.9:99999"}"#,
        400,
        "UpstreamBadAddress",
    );
    check(
        "POST",
        "SERVERS",
        r#"{"server":"name"}"#,
        400,
        "UpstreamConfNoResolver",
    );
    check(
        "POST",
        "SERVERS",
        r#"{"server":"10.0.0.9","service":"x"}"#,
        400,
        "UpstreamBadAddress",
    );
    let mut patch = |text: &str, code: &str| check("PATCH", "SERVERS/0", text, 400, code);
    patch(r#"{"weight":0}"#, "UpstreamBadWeight");
    patch(r#"{"weight":"1"}"#, "UpstreamConfFormatError");
    patch(r#"{"max_conns":-1}"#, "UpstreamBadMaxConns");
    patch(r#"{"max_fails":1.5}"#, "UpstreamBadMaxFails");
    patch(r#"{"fail_timeout":"1x"}"#, "UpstreamBadFailTimeout");
    patch(r#"{"slow_start":"-1"}"#, "UpstreamBadSlowStart");
    patch(
        r#"{"route":"123456789012345678901234567890123"}"#,
        "UpstreamBadRoute",
    );
    patch(r#"{"route":"a\nb"}"#, "UpstreamConfFormatError");
    patch(r#"{"service":""}"#, "UpstreamBadService");
    patch(r#"{"backup":true}"#, "UpstreamConfFormatError");
    patch(r#"{"id":1}"#, "UpstreamConfFormatError");
    patch(r#"{"down":1}"#, "UpstreamConfFormatError");
    patch(r#"{"down":[]}"#, "UpstreamConfFormatError");
    patch(r#"{"weight":2,"colour":1}"#, "UpstreamConfFormatError");
    check("PATCH", "SERVERS/5", "{}", 404, "UpstreamServerNotFound");
    check("PATCH", "SERVERS/x", "{}", 400, "UpstreamBadServerId");
    check("DELETE", "SERVERS/5", "", 404, "UpstreamServerNotFound");
    check("PUT", "SERVERS/0", "{}", 405, "MethodNotSupported");
    check("DELETE", "/api/9/nginx", "", 405, "MethodNotSupported");
    check("POST", "/api/9/connections", "", 405, "MethodNotSupported");
    check(
        "POST",
        "/api/9/http/upstreams/none/servers",
        "{}",
        404,
        "UpstreamNotFound",
    );
    check("POST", "/api/9/none", "{}", 404, "PathNotFound");
    check("POST", "/api/0/http", "{}", 404, "UnknownVersion");
    assert_eq!(call(&mut proxy, "GET", SERVERS, "").1, before);
    let long = format!("{{\"route\":\"{}\"}}", "a".repeat(20_000));
    let answer = call(&mut proxy, "PATCH", &format!("{SERVERS}/0"), &long);
    assert_eq!(answer, ("413 Request Entity Too Large".into(), Value::Null));
}

#[test]
fn groups_that_choose_by_a_key_have_no_backup_and_no_slow_start() {
    let mut proxy = proxy("hash $uri; server 10.0.0.2;", DIRECTIVES);
    let mut check = |text: &str, code: &str| {
        let (_, document) = call(&mut proxy, "POST", SERVERS, text);
        assert_eq!(document["error"]["code"], code, "{document}");
    };
    check(r#"{"server":"10.0.0.3","backup":true}"#, "UpstreamNoBackup");
    check(
        r#"{"server":"10.0.0.3","slow_start":"5s"}"#,
        "UpstreamBadSlowStart",
    );
}

#[test]
fn statistics_begin_anew_when_they_are_deleted() {
    let mut proxy = proxy("server 10.0.0.2;", DIRECTIVES);
    answers(&mut proxy, 3);
    let path = "/api/9/http/upstreams/app";
    let counted = |proxy: &mut Proxy| {
        let peer = call(proxy, "GET", path, "").1["peers"][0].clone();
        (peer["requests"].clone(), peer["responses"]["total"].clone())
    };
    assert_eq!(counted(&mut proxy), (json!(3), json!(3)));
    let (status, _) = call(&mut proxy, "DELETE", path, "");
    assert_eq!(status, "204 No Content");
    assert_eq!(counted(&mut proxy), (json!(0), json!(0)));
}

#[test]
fn changes_of_two_workers_at_once_are_both_made_and_both_saved() {
    let listen = format!("{ADDRESS} reuseport");
    let text = in_http(&format!(
        "upstream app {{ state /state/app.conf; }} server {{ listen {listen}; {DIRECTIVES} }}"
    ));
    let world = World::new(3);
    world.files().create_directory("/state");
    let mut server = Server::configured(world, &text, 2);
    let (turn, seen) = origin::start(&server.world, ORIGIN, |_, _| vec![ok("yes")]);
    server.add_peer(turn);
    let clients: Vec<_> = (0..16).map(|_| server.connect()).collect();
    for (number, client) in clients.iter().enumerate() {
        let text = format!("{{\"server\":\"10.0.1.{number}:80\",\"down\":true}}");
        let len = text.len();
        client.send(format!(
            "POST {SERVERS} HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\n{text}"
        ));
    }
    server.run();
    assert!(server.workers.iter().all(|worker| worker.streams() > 0));
    let text = r#"{"server":"10.0.0.2","weight":2}"#;
    let len = text.len();
    server.ask(&format!(
        "POST {SERVERS} HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\n{text}"
    ));
    let saved = server.files().read("/state/app.conf");
    let saved = String::from_utf8(saved).expect("it is text");
    for number in 0..16 {
        let line = format!("server 10.0.1.{number}:80 down;");
        assert_eq!(
            saved.lines().filter(|known| **known == line).count(),
            1,
            "{saved}"
        );
    }
    assert_eq!(saved.lines().count(), 17, "{saved}");
    assert!(saved.ends_with("server 10.0.0.2 weight=2;\n"), "{saved}");
    assert_eq!(server.files().names("/state"), ["app.conf"]);
    // Each worker knows the only server that is up.
    for _ in 0..8 {
        assert!(server.ask(&get("/")).ends_with(b"yes"));
    }
    assert_eq!(Rc::clone(&seen).requests.borrow().len(), 8);
}

#[test]
fn a_state_that_cannot_be_saved_is_logged_and_in_force() {
    let mut proxy =
        Proxy::with_upstream("state /none/app.conf;", DIRECTIVES, |_, _| vec![ok("yes")]);
    let (status, _) = call(&mut proxy, "POST", SERVERS, r#"{"server":"10.0.0.2"}"#);
    assert_eq!(status, "201 Created");
    assert_eq!(answers(&mut proxy, 1), "yes");
    let expected = "mkdir() \"/none/app.conf.100.1\" failed (2: No such file or directory) while saving upstream state";
    assert!(
        proxy.server.has_logged(expected),
        "{:?}",
        proxy.server.error_log()
    );
}
