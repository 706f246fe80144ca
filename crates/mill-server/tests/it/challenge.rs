//! `challenge_cookie` and `challenge_script`: a client is served once it has shown that it keeps cookies, or runs scripts.

use crate::answer::{Answer, answer, answers};
use crate::proxy::origin::{self, ok};
use crate::server::{ADDRESS, MS, SECOND, Server, in_http, one_server};
use mill_sim::client::Client;
use mill_sim::world::World;

const BROWSER: &str = "User-Agent: browser\r\nAccept: text/html,*/*;q=0.8\r\n";

fn site(directives: &str) -> Server {
    Server::new(3, directives)
}

/// The answer to a request on a connection of its own.
fn ask_from(server: &mut Server, host: &str, line: &str, fields: &str) -> Answer {
    let client = server.world.connect_from(&format!("{host}:0"), ADDRESS);
    client.send(format!(
        "{line} HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n"
    ));
    server.run();
    answer(&client.received())
}

fn get(server: &mut Server, fields: &str) -> Answer {
    ask_from(server, "10.0.0.9", "GET /a.txt", fields)
}

/// `NAME=VALUE` of the cookie that an answer sets.
fn cookie(answer: &Answer) -> String {
    let field = answer.field("Set-Cookie").expect("a cookie");
    String::from(field.split(';').next().expect("a name"))
}

fn with(cookie: &str) -> String {
    format!("{BROWSER}Cookie: x=y; {cookie}\r\n")
}

#[test]
fn a_request_without_the_cookie_is_redirected_to_where_it_is_set() {
    let mut server = site("challenge_cookie __tfw;");
    let challenged = ask_from(&mut server, "10.0.0.9", "GET /a.txt?b=c", BROWSER);
    assert_eq!(challenged.status, 302);
    let location = challenged.field("Location");
    assert_eq!(location, Some("http://a.example/a.txt?b=c"));
    assert_eq!(challenged.field("Cache-Control"), Some("no-store"));
    let set = challenged.field("Set-Cookie").expect("a cookie");
    assert!(
        set.starts_with("__tfw=") && set.ends_with("; Path=/"),
        "{set}"
    );
    let cookie = cookie(&challenged);
    let served = get(&mut server, &with(&cookie));
    assert_eq!(
        (served.status, served.text()),
        (200, String::from("file a\n"))
    );
    assert_eq!(served.field("Set-Cookie"), None);
    assert_eq!(server.counters().challenges_sent, 1);
}

#[test]
fn the_cookie_of_another_client_is_none() {
    let mut server = site("challenge_cookie __tfw;");
    let cookie = cookie(&get(&mut server, BROWSER));
    let check = |server: &mut Server, host: &str, fields: &str, status: u16| {
        let answer = ask_from(server, host, "GET /a.txt", fields);
        assert_eq!(answer.status, status, "{host} {fields}");
    };
    check(&mut server, "10.0.0.9", &with(&cookie), 200);
    check(&mut server, "10.0.0.10", &with(&cookie), 302);
    let agent = with(&cookie).replace("browser", "robot");
    check(&mut server, "10.0.0.9", &agent, 302);
    check(
        &mut server,
        "10.0.0.9",
        &with(&cookie.replace("__tfw", "tfw")),
        302,
    );
    check(&mut server, "10.0.0.9", &with("__tfw=1234"), 302);
    check(&mut server, "10.0.0.9", &with(&format!("{cookie}0")), 302);
}

#[test]
fn a_path_that_looks_like_a_host_leads_to_no_other_host() {
    let mut server = site("challenge_cookie c; absolute_redirect off;");
    let ask = |server: &mut Server, request: &str| {
        let location = answer(&server.ask(request))
            .field("Location")
            .map(String::from);
        location.expect("a redirect")
    };
    let location = ask(
        &mut server,
        "GET //b.example/ HTTP/1.1\r\nHost: a.example:81\r\n\r\n",
    );
    assert_eq!(location, "http://a.example:81//b.example/");
    let location = ask(&mut server, "GET //b.example/ HTTP/1.0\r\n\r\n");
    assert_eq!(location, "/b.example/");
}

#[test]
fn a_client_that_keeps_no_cookies_loses_its_connection() {
    let mut server = site("challenge_cookie c max_misses=2;");
    let client = server.connect();
    let send = |server: &mut Server| {
        client.send("GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
        server.run();
    };
    send(&mut server);
    send(&mut server);
    // Only those of the last second count.
    server.run_to(2 * SECOND);
    send(&mut server);
    send(&mut server);
    send(&mut server);
    let statuses: Vec<u16> = answers(&client.received())
        .iter()
        .map(|one| one.status)
        .collect();
    assert_eq!(statuses, [302, 302, 302, 302, 403]);
    assert!(client.is_closed());
    let counters = server.counters();
    assert_eq!(
        (counters.challenges_sent, counters.challenges_missed),
        (4, 1)
    );
    let line = "limiting client by \"max_misses\" of challenge_cookie: 3 requests without the cookie, and 2 is the most";
    assert!(server.has_logged(line), "{:?}", server.error_log());
}

#[test]
fn without_max_misses_two_in_a_row_are_one_too_many_and_0_is_no_limit() {
    let check = |directive: &str, expected: &[u16]| {
        let mut server = site(directive);
        let client = server.connect();
        for _ in 0..3 {
            client.send("GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
            server.run();
        }
        let statuses: Vec<u16> = answers(&client.received())
            .iter()
            .map(|one| one.status)
            .collect();
        assert_eq!(statuses, expected, "{directive}");
    };
    check("challenge_cookie c;", &[302, 403]);
    check("challenge_cookie c max_misses=0;", &[302, 302, 302]);
}

#[test]
fn the_limits_of_frang_say_what_becomes_of_a_client_without_cookies() {
    let frang = "frang { action drop; ip_block 10s; whitelist 10.0.0.7; }";
    let text = in_http(&format!(
        "{frang} server {{ listen {ADDRESS}; root /site; challenge_cookie c; }}"
    ));
    let mut server = Server::configured(World::new(3), &text, 1);
    let from =
        |server: &Server, host: &str| server.world.connect_from(&format!("{host}:0"), ADDRESS);
    let twice = |server: &mut Server, client: &Client| {
        for _ in 0..2 {
            client.send("GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
            server.run();
        }
    };
    let client = from(&server, "10.0.0.9");
    twice(&mut server, &client);
    assert_eq!(answer(&client.received()).status, 302);
    assert!(client.was_reset());
    assert!(
        server.has_logged("it is blocked for 10 s"),
        "{:?}",
        server.error_log()
    );
    let again = from(&server, "10.0.0.9");
    again.send("GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    server.run();
    assert!(again.received().is_empty(), "its address is blocked");
    let free = from(&server, "10.0.0.7");
    twice(&mut server, &free);
    let statuses: Vec<u16> = answers(&free.received())
        .iter()
        .map(|one| one.status)
        .collect();
    assert_eq!(
        statuses,
        [200, 200],
        "a client on the whitelist needs no cookie"
    );
}

#[test]
fn a_cookie_is_good_for_its_lifetime() {
    let mut server =
        site("challenge_cookie c lifetime=10s attribute=Secure attribute=SameSite=Lax;");
    let challenged = get(&mut server, BROWSER);
    let set = challenged.field("Set-Cookie").expect("a cookie");
    let attributes = "; Secure; SameSite=Lax; Path=/; Max-Age=10";
    assert!(set.ends_with(attributes), "{set}");
    let cookie = cookie(&challenged);
    server.run_to(9 * SECOND);
    assert_eq!(get(&mut server, &with(&cookie)).status, 200);
    server.run_to(10 * SECOND);
    assert_eq!(get(&mut server, &with(&cookie)).status, 302);
}

#[test]
fn a_cookie_outlives_a_reload_and_with_a_secret_the_server() {
    let check = |directives: &str, expected: u16| {
        let mut server = site(directives);
        let cookie = cookie(&get(&mut server, BROWSER));
        server.adopt(&one_server(&format!("{directives} keepalive_timeout 9s;")));
        server.run();
        assert_eq!(get(&mut server, &with(&cookie)).status, 200);
        let mut other = site(directives);
        assert_eq!(
            get(&mut other, &with(&cookie)).status,
            expected,
            "{directives}"
        );
    };
    check("challenge_cookie c;", 302);
    check("challenge_cookie c; challenge_secret s;", 200);
}

#[test]
fn a_location_may_ask_for_none_or_for_another_cookie() {
    let mut server = site(
        "challenge_cookie one;
         location / { }
         location /free { challenge_cookie off; return 200 free; }
         location /b.txt { challenge_cookie two; }",
    );
    let ask = |server: &mut Server, target: &str, fields: &str| {
        ask_from(server, "10.0.0.9", &format!("GET {target}"), fields)
    };
    assert_eq!(ask(&mut server, "/free", "").status, 200);
    let one = cookie(&ask(&mut server, "/a.txt", ""));
    let two = cookie(&ask(&mut server, "/b.txt", ""));
    assert!(
        one.starts_with("one=") && two.starts_with("two="),
        "{one} {two}"
    );
    let both = format!("Cookie: {one}; {two}\r\n");
    assert_eq!(ask(&mut server, "/a.txt", &both).status, 200);
    assert_eq!(ask(&mut server, "/b.txt", &both).status, 200);
    let swapped = format!("Cookie: {}\r\n", one.replace("one", "two"));
    assert_eq!(ask(&mut server, "/b.txt", &swapped).status, 302);
}

const SCRIPT: &str = "challenge_cookie c; challenge_script delay_min=2s delay_range=1s;";

#[test]
fn a_page_asks_again_after_a_delay_and_not_before() {
    let mut server = site(SCRIPT);
    server.run_to(300 * MS);
    let page = get(&mut server, BROWSER);
    assert_eq!(page.status, 503);
    assert_eq!(page.field("Content-Type"), Some("text/html"));
    assert_eq!(page.field("Location"), None);
    // The clock of the world begins at a whole second.
    let script = "location.reload(); }, 2300)";
    assert!(page.text().contains(script), "{}", page.text());
    let first = cookie(&page);
    server.run_to(2599 * MS);
    let early = get(&mut server, &with(&first));
    assert_eq!(early.status, 503);
    assert_ne!(cookie(&early), first);
    server.run_to(2600 * MS);
    assert_eq!(get(&mut server, &with(&first)).status, 200);
    assert_eq!(server.counters().challenges_sent, 2);
}

#[test]
fn what_shows_no_page_gets_none() {
    let mut server = site(SCRIPT);
    let check = |server: &mut Server, method: &str, fields: &str, status: u16| {
        let line = format!("{method} /a.txt");
        let answer = ask_from(server, "10.0.0.9", &line, fields);
        assert_eq!(answer.status, status, "{method} {fields}");
        assert_eq!(
            answer.field("Set-Cookie").is_some(),
            status == 503,
            "{fields}"
        );
    };
    check(&mut server, "GET", "Accept: image/png, */*\r\n", 403);
    check(&mut server, "GET", "", 403);
    check(
        &mut server,
        "POST",
        &format!("{BROWSER}Content-Length: 0\r\n"),
        403,
    );
    check(
        &mut server,
        "GET",
        "Accept: image/png, Text/HTML;q=0.5\r\n",
        503,
    );
    check(
        &mut server,
        "GET",
        "Accept: text/plain\r\nAccept: text/html\r\n",
        503,
    );
    let counters = server.counters();
    assert_eq!(
        (counters.challenges_refused, counters.challenges_sent),
        (3, 2)
    );
}

#[test]
fn a_page_of_our_own_is_filled_in() {
    let world = World::new(3);
    let text = one_server(
        "challenge_cookie sid; challenge_script delay_min=1s delay_range=10ms status=200 page=/page.html;",
    );
    let page =
        "<p>[% STICKY_NAME %], [%DELAY_MIN%], [% DELAY_RANGE %], [% DELAY %], [% OTHER %]</p>";
    let files = [("/page.html", page)];
    let mut server = Server::with_files(world, &text, &files);
    let page = get(&mut server, BROWSER);
    assert_eq!(page.status, 200);
    assert_eq!(page.text(), "<p>sid, 1000, 10, 1000, [% OTHER %]</p>");
}

#[test]
fn a_cache_answers_what_no_page_can() {
    let text = in_http(&format!(
        "proxy_cache_path /cache keys_zone=z:1m memory=1m disk=off;
         server {{ listen {ADDRESS}; challenge_cookie c;
           challenge_script delay_min=1s delay_range=1ms;
           location / {{ proxy_pass http://10.0.0.2:80; proxy_cache z; proxy_cache_valid 1h; }} }}"
    ));
    let mut server = Server::configured(World::new(3), &text, 1);
    let (turn, seen) = origin::start(&server.world, "10.0.0.2:80", |_, _| vec![ok("fine")]);
    server.add_peer(turn);
    let image = "User-Agent: browser\r\nAccept: image/*\r\n";
    let ask = |server: &mut Server, method: &str, fields: &str| {
        ask_from(server, "10.0.0.9", &format!("{method} /a"), fields).status
    };
    assert_eq!(ask(&mut server, "GET", image), 403);
    assert_eq!(seen.requests.borrow().len(), 0);
    let page = ask_from(&mut server, "10.0.0.9", "GET /a", BROWSER);
    server.run_to(2 * SECOND);
    assert_eq!(ask(&mut server, "GET", &with(&cookie(&page))), 200);
    assert_eq!(ask(&mut server, "GET", image), 200);
    assert_eq!(
        ask(
            &mut server,
            "POST",
            &format!("{image}Content-Length: 0\r\n")
        ),
        403
    );
    assert_eq!(seen.requests.borrow().len(), 1);
}

#[test]
fn a_location_that_an_error_leads_to_asks_for_its_cookie_with_its_own_status() {
    let check = |directives: &str, status: u16| {
        let mut server = site(&format!(
            "location / {{ return 404; }} error_page 404 @app;
             location @app {{ root /site; {directives} }}"
        ));
        let answer = get(&mut server, BROWSER);
        assert_eq!(answer.status, status, "{directives}");
        server.run_to(SECOND);
        let next = get(&mut server, &with(&cookie(&answer)));
        assert_eq!(next.text(), "file a\n");
    };
    check("challenge_cookie c;", 302);
    check(
        "challenge_cookie c; challenge_script delay_min=1ms delay_range=1ms;",
        503,
    );
}
