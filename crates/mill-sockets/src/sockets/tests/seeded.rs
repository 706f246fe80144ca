//! Programs of several threads on both sides of a wire that loses, doubles and delays frames: the seed chooses which thread runs
//! next, when sides turn, when signals come, and what the programs do.
//!
//! `MILLSTREAM_SEEDS=20000 cargo test -p mill-sockets seeded` runs 20000 worlds, `MILLSTREAM_SEEDS=20000,7` from seed 7 on.

use super::waiting;
use crate::epoll_set::{Interest, Target};
use crate::errno::Errno;
use crate::readiness::Readiness;
use crate::socket::{Options, SocketNumber};
use clients::Client;
use disturbers::{Builder, Closer, Ender, Tuner};
use exchange::{CLIENT, SERVER};
use mill_tcp::config::Keepalive;
use mill_tcp::time::Duration;
use servers::{Acceptor, Service};
use std::collections::BTreeMap;
use workers::{Mode, Worker};
use world::World;

/// Calls that may wait.
mod call;

/// What holds at every moment.
mod checks;

/// Clients.
mod clients;

/// Threads that change what others work with.
mod disturbers;

/// What two programs say to each other.
mod exchange;

/// Servers with a thread for each connection.
mod servers;

/// Sockets, and what their programs know of them.
mod side;

/// Threads.
mod thread;

/// The wire.
mod wire;

/// Servers that wait for many connections at once.
mod workers;

/// Two sides, and what happens next.
mod world;

#[test]
fn programs_of_many_threads_get_every_byte_every_end_and_every_wake_up() {
    let chosen = std::env::var("MILLSTREAM_SEEDS").unwrap_or_default();
    let (count, first) = chosen.split_once(',').unwrap_or((&chosen, "1"));
    let count: u64 = count.parse().unwrap_or(SEEDS);
    let first: u64 = first.parse().unwrap();
    let mut errors = BTreeMap::new();
    for seed in first..first + count {
        let told = Told(seed);
        for (error, count) in play(seed) {
            *errors.entry(error).or_insert(0) += count;
        }
        core::mem::forget(told);
    }
    println!("calls that failed, by their error: {errors:?}");
    let is_reached = |error: &Errno| errors.contains_key(&error.0);
    assert!(count < SEEDS || REACHED.iter().all(is_reached));
}

/// Says which world has failed.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        println!("seed {}: MILLSTREAM_SEEDS=1,{}", self.0, self.0);
    }
}

/// What runs in continuous integration.
const SEEDS: u64 = 1500;

/// Errors that some of these worlds come to.
const REACHED: [Errno; 7] = [
    Errno::INTERRUPTED,
    Errno::BAD_DESCRIPTOR,
    Errno::AGAIN,
    Errno::BROKEN_PIPE,
    Errno::RESET,
    Errno::NOT_CONNECTED,
    Errno::REFUSED,
];

/// Plays a world; how many of its calls have failed, by the number of the error.
fn play(seed: u64) -> BTreeMap<i32, u64> {
    let mut world = World::new(seed);
    let options = options(&mut world);
    let listener = world.sides[SERVER].listen(options.clone());
    start_server(&mut world, listener);
    for _ in 0..=world.random.up_to(3) {
        let set = world.sides[CLIENT].add_set();
        let client = Client {
            left: u32::try_from(1 + world.random.up_to(3)).unwrap(),
            options: options.clone(),
            set: Some(set),
            talk: None,
        };
        world.start(CLIENT, Box::new(client));
    }
    for side in [CLIENT, SERVER] {
        if world.random.up_to(5) == 0 {
            let left = u32::try_from(world.random.up_to(10)).unwrap();
            world.start(side, Box::new(Ender { left }));
        }
        if world.random.up_to(2) == 0 {
            let left = u32::try_from(world.random.up_to(20)).unwrap();
            let undone = None;
            world.start(side, Box::new(Tuner { left, undone }));
        }
    }
    if world.random.up_to(9) == 0 {
        let closer = Closer {
            listener,
            options: Some(options),
            has_waited: false,
        };
        world.start(SERVER, Box::new(closer));
    }
    world.run();
    world.end();
    let [client, server] = &mut world.sides;
    for (error, count) in &client.errors {
        *server.errors.entry(*error).or_default() += count;
    }
    core::mem::take(&mut server.errors)
}

/// Buffers, small ones among them.
fn options(world: &mut World) -> Options {
    let mut options = waiting(false);
    let sent = world.random.one_of(&[4_608, 4_608, 20_000, 1_000_000]);
    options.send_buffer_bytes = sent;
    let received = world
        .random
        .one_of(&[None, None, Some(3_000), Some(20_000)]);
    options.listen.each.receive_buffer_bytes = received;
    // A peer that was reset, and whose reset was lost, is not waited for for ever.
    options.listen.each.keepalive = Some(Keepalive {
        idle: Duration::from_secs(20),
        interval: Duration::from_secs(2),
        count: 9,
    });
    options.listen.backlog = world.random.one_of(&[511, 511, 511, 0, 1]);
    options.listen.deferred = world.random.up_to(7) == 0;
    options.listen.nodelay = world.random.up_to(1) == 0;
    options
}

fn start_server(world: &mut World, listener: SocketNumber) {
    let threads = 1 + world.random.up_to(2);
    let mode = world
        .random
        .one_of(&[Mode::Level, Mode::Edge, Mode::OneShot]);
    match world.random.up_to(5) {
        0 => {
            let services = [Service::Own, Service::Thread, Service::Pair];
            for _ in 0..threads {
                let service = world.random.one_of(&services);
                let served = None;
                world.start(
                    SERVER,
                    Box::new(Acceptor {
                        listener,
                        service,
                        served,
                    }),
                );
            }
        }
        1 => {
            let worker = Worker::new(listener, Mode::Level, None, None);
            world.start(SERVER, Box::new(worker));
        }
        2 => watch_apart(world, listener, threads, mode),
        3 => watch_nested(world, listener, threads, mode),
        _ => {
            let side = &mut world.sides[SERVER];
            let set = side.add_set();
            let events = side.reading.0 | mode.flag();
            side.watch(set, Target::Socket(listener), events);
            for _ in 0..threads {
                let worker = Worker::new(listener, mode, Some(set), Some(set));
                world.start(SERVER, Box::new(worker));
            }
        }
    }
}

/// Workers with a set each, in which the listener is exclusive.
fn watch_apart(world: &mut World, listener: SocketNumber, threads: u64, mode: Mode) {
    let mode = if mode == Mode::OneShot {
        Mode::Level
    } else {
        mode
    };
    for _ in 0..threads {
        let side = &mut world.sides[SERVER];
        let set = side.add_set();
        let events = Readiness::IN.0 | Interest::EXCLUSIVE | mode.flag();
        side.watch(set, Target::Socket(listener), events);
        let worker = Worker::new(listener, mode, Some(set), Some(set));
        world.start(SERVER, Box::new(worker));
    }
}

/// Workers that wait for a set that watches sets, one of which the sockets are in.
fn watch_nested(world: &mut World, listener: SocketNumber, threads: u64, mode: Mode) {
    let side = &mut world.sides[SERVER];
    let sets = [side.add_set(), side.add_set(), side.add_set()];
    let [inner, middle, outer] = sets;
    let events = side.reading.0 | mode.flag();
    side.watch(inner, Target::Socket(listener), events);
    side.watch(outer, Target::Set(middle), side.reading.0);
    let builder = Builder {
        outer: middle,
        inner,
        has_waited: false,
    };
    world.start(SERVER, Box::new(builder));
    for _ in 0..threads {
        let waits_at = world.random.one_of(&sets);
        let worker = Worker::new(listener, mode, Some(waits_at), Some(inner));
        world.start(SERVER, Box::new(worker));
    }
}
