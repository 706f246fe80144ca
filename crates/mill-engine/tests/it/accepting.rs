//! Accepting: pauses, limits, clients that are gone, and the end of it.

use crate::client::Client;
use crate::server::start;
use crate::serving::echo;
use crate::story::Story;
use mill_runtime::engine::Engine;

#[test]
fn a_listener_that_pauses_accepts_nobody_until_it_goes_on() {
    let mut server = start(|stream, _| echo(stream));
    server.around.engine.set_accepting(server.listener, false);
    let mut client = Client::connect(server.address);
    client.send("x");
    server.run_on();
    assert_eq!(server.worker.tasks(), 0);
    server.around.engine.set_accepting(server.listener, true);
    server.run_until("the answer", || client.has(b"x"));
}

#[test]
fn at_the_limit_of_tasks_connections_wait_for_the_first_task_that_ends() {
    let mut server = start(|stream, _| echo(stream));
    server.worker.set_tasks_max(1);
    let mut first = Client::connect(server.address);
    first.send("first");
    server.run_until("the first", || first.has(b"first"));
    let mut second = Client::connect(server.address);
    second.send("second");
    server.run_on();
    assert_eq!(second.pump().received, b"");
    first.finish();
    server.run_until("the second", || second.has(b"second"));
}

#[test]
fn closing_a_listener_accepts_what_waits() {
    let mut server = start(|stream, _| echo(stream));
    server.around.engine.set_accepting(server.listener, false);
    let mut clients: [Client; 3] = std::array::from_fn(|_| Client::connect(server.address));
    server.run_on();
    assert!(server.worker.close_listener(server.listener));
    assert_eq!(server.worker.tasks(), 3);
    for client in &mut clients {
        client.send("x");
        server.run_until("the answer", || client.has(b"x"));
    }
    assert!(server.refuses());
}

#[test]
fn a_client_that_is_gone_before_it_was_accepted_does_no_harm() {
    let story = Story::new();
    let teller = story.clone();
    let mut server = start(move |stream, _| {
        teller.tell(());
        echo(stream)
    });
    server.around.engine.set_accepting(server.listener, false);
    let gone = Client::connect(server.address);
    server.run_on();
    gone.reset();
    let mut there = Client::connect(server.address);
    there.send("x");
    server.around.engine.set_accepting(server.listener, true);
    server.run_until("the answer", || there.has(b"x"));
    server.run_until_tasks(1);
    assert!(story.len() <= 2);
}
