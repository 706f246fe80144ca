//! Accepting: pauses, limits, clients that are gone, and the end of it.

use crate::serving::echo;
use crate::story::Story;
use crate::{Server, Testbed};
use mill_runtime::engine::Engine;

pub fn a_listener_that_pauses_accepts_nothing_until_it_goes_on<T: Testbed>() {
    let mut server = Server::<T>::start(|stream, _| echo(stream));
    server.around.engine.set_accepting(server.listener, false);
    let mut client = server.connect();
    client.send("x");
    server.run_on();
    assert_eq!(server.worker.tasks(), 0);
    server.around.engine.set_accepting(server.listener, true);
    server.run_until("the answer", || client.has(b"x"));
}

pub fn at_the_limit_of_tasks_connections_wait_for_the_first_task_that_ends<T: Testbed>() {
    let mut server = Server::<T>::start(|stream, _| echo(stream));
    server.worker.set_tasks_max(1);
    let mut first = server.connect();
    first.send("first");
    server.run_until("the first", || first.has(b"first"));
    let mut second = server.connect();
    second.send("second");
    server.run_on();
    assert_eq!(second.pump().received, b"");
    first.finish();
    server.run_until("the second", || second.has(b"second"));
}

pub fn closing_a_listener_accepts_what_waits<T: Testbed>() {
    let mut server = Server::<T>::start(|stream, _| echo(stream));
    server.around.engine.set_accepting(server.listener, false);
    let mut clients: [_; 3] = std::array::from_fn(|_| server.connect());
    server.run_on();
    assert!(server.worker.close_listener(server.listener));
    assert_eq!(server.worker.tasks(), 3);
    for client in &mut clients {
        client.send("x");
        server.run_until("the answer", || client.has(b"x"));
    }
    assert!(server.refuses());
}

pub fn a_client_that_is_gone_before_it_was_accepted_does_no_harm<T: Testbed>() {
    let story = Story::default();
    let teller = story.clone();
    let mut server = Server::<T>::start(move |stream, _| {
        teller.tell(());
        echo(stream)
    });
    server.around.engine.set_accepting(server.listener, false);
    let gone = server.connect();
    server.run_on();
    gone.reset();
    let mut there = server.connect();
    there.send("x");
    server.around.engine.set_accepting(server.listener, true);
    server.run_until("the answer", || there.has(b"x"));
    server.run_until_tasks(1);
    assert!(story.count() <= 2);
}
