//! Clients that read slowly.

use crate::answer::{Ending, answer, answers, first_answer};
use crate::server::{BIG_BYTES, MS, RunningWorker, SECOND, Server, big};
use mill_runtime::stream::StreamOption;
use mill_sim::link::{Link, Segments};
use mill_sim::world::Until;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_BIG: &str = "GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n";

/// Bytes of a file that several turns send.
const HUGE: usize = 16 << 20;

const WAYS: [&str; 3] = ["sendfile on;", "sendfile off;", "limit_rate 100m;"];

#[test]
fn a_file_that_the_network_takes_at_once_leaves_other_clients_their_turns() {
    let mut server = Server::new(1, "sendfile on;");
    server.files().write("/site/huge.bin", vec![b'x'; HUGE]);
    server.world.set_link(Link {
        window_bytes: 2 * HUGE as u64,
        segments: Segments::UpTo(1 << 20),
        ..Link::IDEAL
    });
    let (large, small) = (server.connect(), server.connect());
    server.run();
    large.send("GET /huge.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    small.send(GET);
    let mut before = usize::MAX;
    let (world, workers) = (&server.world, &mut server.workers);
    let turn = || {
        workers.iter_mut().for_each(RunningWorker::turn);
        if before == usize::MAX && !small.received().is_empty() {
            before = large.received().len();
        }
    };
    world.run(turn, Until::Quiet);
    assert!(
        before < HUGE / 2,
        "{before} bytes came before the small answer"
    );
    assert_eq!(answer(&large.received()).content.len(), HUGE);
}

#[test]
fn a_client_that_reads_nothing_is_disconnected_after_send_timeout() {
    for way in WAYS {
        let mut server = Server::new(1, &format!("{way} send_timeout 6s;"));
        let client = server.connect();
        client.stop_reading();
        client.at(100 * MS).send(GET_BIG);
        server.run_to(6099 * MS);
        assert_eq!(server.streams(), 1, "{way}");
        server.run_to(6100 * MS);
        assert_eq!(server.counters().timeout_send, 1, "{way}");
        server.assert_nothing_left(0);
        // Bytes in flight can still be read, and they are not all.
        client.read_on();
        server.run();
        let (answer, ending) = first_answer(&client.received());
        assert_eq!((answer.status, ending), (200, Ending::Cut), "{way}");
        assert!(
            !client.was_reset(),
            "{way}: reset_timedout_connection is off"
        );
    }
}

#[test]
fn with_reset_timedout_connection_it_is_reset() {
    for way in WAYS {
        let text = format!("{way} send_timeout 6s; reset_timedout_connection on;");
        let mut server = Server::new(1, &text);
        let client = server.connect();
        client.stop_reading().send(GET_BIG);
        server.run_until_idle();
        assert!(client.was_reset(), "{way}");
        assert_eq!(client.ended_at(), Some(6 * SECOND), "{way}");
        server.assert_nothing_left(0);
    }
}

#[test]
fn without_the_engines_option_a_stuck_connection_is_closed_all_the_same() {
    let mut server = Server::new(1, "send_timeout 6s; reset_timedout_connection on;");
    server.world.lack_stream_option(StreamOption::ResetOnClose);
    let client = server.connect();
    client.stop_reading().send(GET_BIG);
    server.run_until_idle();
    server.assert_nothing_left(0);
    assert!(!client.was_reset());
}

#[test]
fn a_little_reading_prolongs_send_timeout() {
    let mut server = Server::new(1, "send_timeout 6s;");
    let client = server.connect();
    client.stop_reading().send(GET_BIG);
    client.at(5 * SECOND).read_on();
    client.at(5 * SECOND + MS).stop_reading();
    server.run_until_idle();
    // By then everything has been read: the link has no delay.
    assert_eq!(answer(&client.received()).content.len(), BIG_BYTES);

    let mut server = Server::new(1, "send_timeout 6s; keepalive_timeout 1s;");
    let client = server.connect();
    client.stop_reading().send(GET_BIG);
    client.at(5 * SECOND).read_at_rate(1000);
    client.at(8 * SECOND + 5 * MS).stop_reading();
    server.run_to(14 * SECOND - MS);
    assert_eq!((client.received().len(), server.streams()), (3000, 1));
    // The last read was at 8 s.
    server.run_to(14 * SECOND);
    server.assert_nothing_left(0);
}

#[test]
fn others_are_served_while_one_reads_nothing() {
    let mut server = Server::new(1, "send_timeout 10s;");
    let stuck = server.connect();
    stuck.stop_reading().send(GET_BIG);
    server.run();
    for second in 1..9 {
        let client = server
            .world
            .connect_at(second * SECOND, crate::server::ADDRESS);
        client.at(second * SECOND).send(GET).send(GET_BIG);
        server.run_to(second * SECOND + 500 * MS);
        let answers = answers(&client.received());
        assert_eq!(answers.len(), 2);
        assert!(answers[1].content == big());
    }
    assert_eq!(server.counters().timeout_send, 0);
}

#[test]
fn a_client_that_reads_slowly_gets_every_byte() {
    for way in WAYS {
        let mut server = Server::new(1, way);
        let client = server.connect();
        client.read_at_rate(50_000).send(GET_BIG);
        server.run_until(Until::Quiet);
        let answer = answer(&client.received());
        assert_eq!(answer.content.len(), BIG_BYTES, "{way}");
        assert!(answer.content == big(), "{way}");
        let took = server.world.elapsed();
        assert!(took >= 20 * SECOND && took < 23 * SECOND, "{way}: {took:?}");
        assert_eq!(server.counters().timeout_send, 0);
    }
}

#[test]
fn hot_answers_wait_for_a_client_that_does_not_read_them() {
    let directives = "open_file_cache max=9; keepalive_requests 100000; send_timeout 5s;";
    let mut server = Server::new(1, directives);
    server.files().write("/site/page", "p".repeat(10_000));
    let request = "GET /page HTTP/1.1\r\nHost: a\r\n\r\n";
    server.ask(request);
    let client = server.connect();
    client.stop_reading().send(request.repeat(500));
    server.run();
    // Back-pressure: the server has not queued all answers in its own memory.
    let asked = server.counters().requests;
    assert!(
        asked < 100,
        "{asked} of 500 answered to a client that reads nothing"
    );
    client.at(SECOND).read_on();
    server.run();
    let answers = answers(&client.received());
    assert_eq!(answers.len(), 500);
    assert!(
        answers
            .iter()
            .all(|answer| answer.content == "p".repeat(10_000).as_bytes())
    );
}

#[test]
fn a_client_that_reads_no_hot_answers_is_disconnected_after_a_timeout() {
    let directives = "open_file_cache max=9; keepalive_requests 100000; send_timeout 5s;";
    let mut server = Server::new(1, &format!("{directives} client_header_timeout 7s;"));
    server.files().write("/site/page", "p".repeat(10_000));
    let request = "GET /page HTTP/1.1\r\nHost: a\r\n\r\n";
    server.ask(request);
    let client = server.connect();
    client.stop_reading().send(request.repeat(500));
    server.run_until_idle();
    server.assert_nothing_left(1);
    assert!(client.received().is_empty());
}

#[test]
fn limit_rate_sends_so_many_bytes_a_second() {
    let mut server = Server::new(1, "limit_rate 10k;");
    server.files().write("/site/100k", "x".repeat(100 * 1024));
    let client = server.connect();
    client.send("GET /100k HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let mut lens = Vec::new();
    for second in 1..=9 {
        server.run_to(second * SECOND + 10 * MS);
        lens.push(client.received().len());
    }
    for (second, len) in lens.iter().enumerate() {
        let expected = (second + 1) * 10 * 1024;
        assert!(
            (expected..=expected + 11 * 1024).contains(len),
            "after {} s: {len} bytes, not about {expected}",
            second + 1
        );
    }
    server.run_until_idle();
    assert_eq!(answer(&client.received()).content.len(), 100 * 1024);
    let ended = client.ended_at().unwrap();
    assert!(
        ended >= 9 * SECOND && ended <= 10 * SECOND + MS,
        "{ended:?}"
    );
}

#[test]
fn limit_rate_after_lets_the_beginning_pass() {
    let mut server = Server::new(1, "limit_rate 10k; limit_rate_after 50k;");
    server.files().write("/site/100k", "x".repeat(100 * 1024));
    let client = server.connect();
    client.send("GET /100k HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    server.run_to(10 * MS);
    let len = client.received().len();
    assert!((50 * 1024..=72 * 1024).contains(&len), "{len} at once");
    server.run_until_idle();
    assert_eq!(answer(&client.received()).content.len(), 100 * 1024);
    let ended = client.ended_at().unwrap();
    assert!(ended >= 4 * SECOND && ended <= 5 * SECOND + MS, "{ended:?}");
}

#[test]
fn limit_rate_holds_for_what_is_compressed_on_the_way() {
    let mut server = Server::new(1, "limit_rate 100k; gzip on; gzip_types *;");
    // A byte is hardly ever predictable from the one before: it does not compress.
    let noise: Vec<u8> = (0..1_000_000_u32)
        .map(|index| {
            index
                .wrapping_mul(2_654_435_761)
                .rotate_left(7)
                .to_be_bytes()[0]
        })
        .scan(1_u32, |state, byte| {
            *state = (*state ^ u32::from(byte))
                .wrapping_mul(1_664_525)
                .wrapping_add(12_345);
            Some(state.to_be_bytes()[0])
        })
        .collect();
    server.files().write("/site/noise.bin", noise.clone());
    let client = server.connect();
    client.send(
        "GET /noise.bin HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n",
    );
    for second in 1..=9 {
        server.run_to(second * SECOND + 10 * MS);
        let (expected, len) = ((second as usize + 1) * 100 * 1024, client.received().len());
        assert!(
            (expected - 100 * 1024..=expected + 1024).contains(&len),
            "after {second} s: {len} bytes, not about {expected}"
        );
    }
    server.run_until_idle();
    assert!(answer(&client.received()).unzipped() == noise);
}

#[test]
fn content_within_the_first_second_goes_out_at_once_kept_or_not() {
    for cache in ["", "open_file_cache max=9;"] {
        for (len, at_once) in [(15_000, true), (15_500, false)] {
            let mut server = Server::new(
                1,
                &format!("limit_rate 10000; limit_rate_after 5000; {cache}"),
            );
            server.files().write("/site/file", "x".repeat(len));
            for _ in 0..3 {
                let start = server.world.elapsed();
                let client = server.connect();
                client.send("GET /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
                server.run_to(start + 10 * MS);
                assert_eq!(client.is_closed(), at_once, "{len} {cache}");
                server.run_to(start + 3 * SECOND);
                assert_eq!(answer(&client.received()).content.len(), len);
            }
        }
    }
}

#[test]
fn limit_rate_holds_for_an_answer_that_might_be_kept() {
    let mut server = Server::new(1, "limit_rate 10k; open_file_cache max=9;");
    server.files().write("/site/50k", "x".repeat(50 * 1024));
    for time in ["first", "second", "third"] {
        let start = server.world.elapsed();
        let client = server.connect();
        client.send("GET /50k HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        server.run_to(start + 10 * SECOND);
        assert_eq!(answer(&client.received()).content.len(), 50 * 1024);
        let took = client.ended_at().unwrap() - start;
        assert!(took >= 4 * SECOND && took <= 5 * SECOND, "{time}: {took:?}");
    }
}

#[test]
fn limit_rate_may_be_set_for_one_request() {
    let mut server = Server::new(1, "if ($arg_slow) { set $limit_rate 1k; }");
    server.files().write("/site/4k", "x".repeat(4 * 1024));
    let (fast, slow) = (server.connect(), server.connect());
    fast.send("GET /4k HTTP/1.1\r\nHost: a\r\n\r\n");
    slow.send("GET /4k?slow=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    server.run_to(100 * MS);
    assert_eq!(answer(&fast.received()).content.len(), 4096);
    assert!(slow.received().len() < 3000);
    server.run_to(5 * SECOND);
    assert_eq!(answer(&slow.received()).content.len(), 4096);
}

#[test]
fn a_client_that_leaves_while_limit_rate_lets_it_wait_is_noticed_at_once() {
    for way in ["sendfile on;", "sendfile off;"] {
        let mut server = Server::new(1, &format!("{way} limit_rate 1k;"));
        server.files().write("/site/100k", "x".repeat(100 * 1024));
        let client = server.connect();
        client.send("GET /100k HTTP/1.1\r\nHost: a\r\n\r\n");
        client.at(300 * MS).reset();
        server.run_to(299 * MS);
        assert_eq!(server.streams(), 1, "{way}");
        server.run_to(301 * MS);
        server.assert_nothing_left(0);
        assert_eq!(server.counters().connections_reset, 1, "{way}");
    }
}

#[test]
fn a_client_that_has_only_finished_sending_gets_all_at_its_rate() {
    let mut server = Server::new(1, "limit_rate 10k;");
    server.files().write("/site/100k", "x".repeat(100 * 1024));
    let client = server.connect();
    client.send("GET /100k HTTP/1.1\r\nHost: a\r\n\r\n");
    client.at(300 * MS).finish();
    server.run_to(900 * MS);
    let early = client.received().len();
    assert!(early <= 10 * 1024 + 500, "{early}: a byte or two are early");
    server.run_until_idle();
    assert_eq!(answer(&client.received()).content.len(), 100 * 1024);
    let ended = client.ended_at().unwrap();
    assert!(ended >= 8900 * MS && ended <= 10 * SECOND, "{ended:?}");
}

#[test]
fn a_client_that_floods_while_limit_rate_lets_it_wait_is_not_read() {
    let mut server = Server::new(1, "limit_rate 1k;");
    server.files().write("/site/10k", "x".repeat(10 * 1024));
    let client = server.connect();
    client.send("GET /10k HTTP/1.1\r\nHost: a\r\n\r\n");
    client.at(100 * MS).send(" ".repeat(4 << 20));
    server.run_to(5 * SECOND);
    assert!(client.unsent() > 3 << 20, "{}", client.unsent());
}

/// A server with `/page`, 60 kB, hot, and a link with a small window.
fn with_hot_page(directives: &str) -> Server {
    let mut server = Server::new(1, &format!("open_file_cache max=9; {directives}"));
    server.files().write("/site/page", "p".repeat(60_000));
    server.ask("GET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    server.world.set_link(Link::with_window(5_000));
    server
}

#[test]
fn a_hot_last_answer_is_read_to_its_end_however_slowly() {
    for connection in ["close", "keep-alive"] {
        for finishes in [false, true] {
            let mut server = with_hot_page("keepalive_timeout 60s;");
            let client = server.connect();
            client.read_at_rate(2_000);
            client.send(format!(
                "GET /page HTTP/1.1\r\nHost: a\r\nConnection: {connection}\r\n\r\n"
            ));
            if finishes {
                client.finish();
            }
            server.run();
            let answer = answer(&client.received());
            assert_eq!(answer.content, "p".repeat(60_000).as_bytes());
            assert!(!client.was_reset(), "{connection} {finishes}");
            let ends = finishes || connection == "close";
            assert_eq!(client.is_closed(), ends, "{connection} {finishes}");
            server.run_until_idle();
            server.assert_nothing_left(1);
        }
    }
}

#[test]
fn a_client_that_finished_sending_reads_everything_it_asked_for() {
    for directives in ["", "sendfile off;", "open_file_cache max=9;"] {
        let mut server = Server::new(1, directives);
        let client = server.connect();
        client.read_at_rate(100_000);
        client.send(GET_BIG.repeat(2)).send(GET).finish();
        server.run();
        let answers = answers(&client.received());
        assert_eq!(answers.len(), 3, "{directives}");
        assert!(answers[0].content == big() && answers[1].content == big());
        assert!(client.is_closed() && !client.was_reset(), "{directives}");
        server.assert_nothing_left(2);
    }
}

#[test]
fn a_client_that_does_not_read_a_hot_last_answer_is_disconnected_after_send_timeout() {
    let mut server = with_hot_page("send_timeout 6s; lingering_timeout 1s;");
    let client = server.connect();
    client.stop_reading();
    client.send("GET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    server.run_to(5999 * MS);
    assert_eq!(server.streams(), 1);
    server.run_to(6 * SECOND);
    server.assert_nothing_left(1);
}

#[test]
fn a_client_that_reads_a_hot_answer_longer_than_keepalive_timeout_gets_it_whole() {
    let mut server = with_hot_page("keepalive_timeout 20s;");
    let client = server.connect();
    client
        .read_at_rate(2_000)
        .send("GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
    // It takes half a minute; then the connection is idle for twenty seconds.
    server.run_to(33 * SECOND);
    assert_eq!(
        answer(&client.received()).content,
        "p".repeat(60_000).as_bytes()
    );
    assert!(
        !client.is_closed(),
        "the time counts from when the answer was taken"
    );
    server.run_to(60 * SECOND);
    assert!(client.is_closed() && !client.was_reset());
    server.assert_nothing_left(1);
}

#[test]
fn a_client_that_does_not_read_a_last_answer_is_reset_if_configured() {
    let mut server = with_hot_page("send_timeout 6s; reset_timedout_connection on;");
    let client = server.connect();
    client.stop_reading();
    client.send("GET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    server.run_to(6 * SECOND);
    client.read_on();
    server.run();
    assert!(client.was_reset());
}
