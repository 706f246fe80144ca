//! Bytes per connection.

use crate::server::{ADDRESS, one_server, shared, site};
use mill_runtime::engine::{Accept, Engine, ListenOptions};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::tasks::TaskId;
use mill_runtime::time::Instant;
use mill_server::connection::serve;
use mill_server::listener_context::ListenerContext;
use mill_server::local::Local;
use mill_sim::world::{Until, World};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

/// The limit of an idle connection's future, in bytes: issue 2.
const FUTURE_BYTES_MAX: usize = 128;

/// Bytes of a task's slot: the box's pointer, generation and turn, deadline and place in the wheel.
const SLOT_BYTES: usize =
    size_of::<Pin<Box<()>>>() + 2 * size_of::<u32>() + 2 * size_of::<Instant>();

#[test]
fn an_idle_connections_future_is_at_most_128_bytes() {
    let world = World::new(1);
    let engine = world.engine();
    let site = site(&one_server(""), 1);
    let listening = engine
        .listen(&ListenOptions::new(world.address(ADDRESS)))
        .unwrap();
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let local = Local::new(engine.clone(), scheduler, Arc::clone(&site), shared());
    let context = ListenerContext::new(listening.id.0, &site, 0).unwrap();
    let _client = world.connect(ADDRESS);
    world.run(|| (), Until::Quiet);
    let Accept::Stream(stream) = engine.accept(listening.id, TaskId::NONE) else {
        panic!("the client waits to be accepted")
    };
    let stream_bytes = size_of_val(&stream);
    let future = serve(stream, Rc::new(context), local);
    let future_bytes = size_of_val(&future);
    println!(
        "an idle connection: future {future_bytes} (stream {stream_bytes}) + task slot \
         {SLOT_BYTES} = {} bytes, the engine's part not counted",
        future_bytes + SLOT_BYTES
    );
    assert!(future_bytes <= FUTURE_BYTES_MAX, "{future_bytes} bytes");
}
