//! Deadlines in virtual time.

use crate::server::{ADDRESS, start};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::Stream;
use mill_sim::world::World;
use std::rc::Rc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Answers each byte with `.`, and silence of 75 seconds with `!` and the end.
async fn impatient(stream: impl Stream, scheduler: Rc<Scheduler>) {
    loop {
        let deadline = scheduler.now() + Duration::from_secs(75);
        match scheduler.until(deadline, stream.readable(1)).await {
            Ok(Ok(readable)) if readable.unread > 0 => {
                stream.read(|bytes| (1.min(bytes.len()), ()));
                stream.write(Payload::Copy(b"."));
            }
            Ok(_) => return,
            Err(_) => {
                stream.write(Payload::Copy(b"!"));
                return;
            }
        }
    }
}

#[test]
fn a_deadline_comes_at_its_tick_neither_early_nor_late() {
    let world = World::new(1);
    let mut server = start(&world, impatient);
    let client = world.connect(ADDRESS);
    server.run(&world);
    assert_eq!(
        world.elapsed(),
        Duration::ZERO,
        "a quiet world does not wait for timers"
    );
    server.advance(&world, 74_999 * MS);
    assert_eq!(client.received(), b"");
    server.advance(&world, MS);
    assert_eq!(
        (client.received(), client.is_closed()),
        (b"!".to_vec(), true)
    );
    assert_eq!(client.ended_at(), Some(75_000 * MS));
}

#[test]
fn each_byte_moves_the_deadline_on() {
    let world = World::new(1);
    let mut server = start(&world, impatient);
    let client = world.connect(ADDRESS);
    client.send_each_byte(b"abc", Duration::from_secs(70));
    server.run_until_idle(&world);
    assert_eq!(client.received(), b"...!");
    assert_eq!(client.ended_at(), Some(Duration::from_secs(70 + 70 + 75)));
}

#[test]
fn a_deadline_between_two_ticks_comes_at_the_second() {
    let world = World::new(1);
    let mut server = start(&world, |stream, scheduler| async move {
        let _open = stream;
        scheduler.sleep(Duration::from_micros(1500)).await;
    });
    let client = world.connect(ADDRESS);
    server.run_until_idle(&world);
    assert_eq!(client.ended_at(), Some(2 * MS));
}

#[test]
fn many_sleepers_wake_each_at_its_time() {
    let world = World::new(3);
    let naps = [
        1, 2, 63, 64, 65, 4095, 4096, 4097, 262_143, 262_145, 20_000_000,
    ];
    let mut next = naps.into_iter();
    let mut server = start(&world, move |stream, scheduler| {
        let nap = next.next().unwrap() * MS;
        async move {
            let _open = stream;
            scheduler.sleep(nap).await;
        }
    });
    let clients = naps.map(|_| world.connect(ADDRESS));
    server.run_until_idle(&world);
    let ended = clients.map(|client| client.ended_at().unwrap());
    assert_eq!(ended, naps.map(|nap| nap * MS));
}

#[test]
fn tasks_that_yield_take_turns_at_one_instant() {
    let world = World::new(1);
    let mut server = start(&world, |stream, scheduler| async move {
        for _ in 0..3 {
            stream.write(Payload::Copy(b"y"));
            scheduler.yield_now().await;
        }
    });
    let client = world.connect(ADDRESS);
    server.run(&world);
    assert_eq!(
        (client.received(), client.ended_at()),
        (b"yyy".to_vec(), Some(Duration::ZERO))
    );
    assert_eq!(
        client.received_segments(),
        [1, 1, 1],
        "a turn settles what it wrote"
    );
}
