//! Streams: data both ways, ends, errors.

use super::{SERVER, WRITING, World, read, waiting, write};
use crate::errno::Errno;
use crate::readiness::Readiness;
use crate::socket::Options;
use mill_tcp::time::Duration;

const SOL_SOCKET: i32 = 1;
const SOL_TCP: i32 = 6;

#[test]
fn bytes_arrive_both_ways_and_the_end_after_them() {
    let mut world = World::new();
    let (near, far) = world.connection();
    assert_eq!(world.client.connected(near), Ok(Some(())));
    assert_eq!(world.client.connected(near), Err(Errno::IS_CONNECTED));
    assert_eq!(read(&mut world.server, far), Ok(None));
    assert_eq!(write(&mut world.client, near, b"question"), Ok(Some(8)));
    world.settle();
    assert_eq!(world.server.unread(far), Ok(8));
    assert_eq!(read(&mut world.server, far), Ok(Some(b"question".to_vec())));
    write(&mut world.server, far, b"answer").unwrap();
    world.server.close(far);
    world.settle();
    assert_eq!(read(&mut world.client, near), Ok(Some(b"answer".to_vec())));
    assert_eq!(read(&mut world.client, near), Ok(Some(Vec::new())));
    assert_eq!(read(&mut world.server, far), Err(Errno::BAD_DESCRIPTOR));
}

#[test]
fn a_refused_connection_says_so_once_and_its_error_is_polled() {
    let mut world = World::new();
    let near = world.connect();
    assert!(world.client.readiness(near).is_empty());
    assert_eq!(world.client.connected(near), Ok(None));
    world.settle();
    let all = Readiness::IN | Readiness::OUT | Readiness::ERR | Readiness::HUP | Readiness::RDHUP;
    assert_eq!(world.client.readiness(near) & all, all);
    assert_eq!(world.client.connected(near), Err(Errno::REFUSED));
    let left = Readiness::OUT | Readiness::HUP;
    assert_eq!(world.client.readiness(near) & all, left);
}

#[test]
fn an_error_is_told_by_the_option_and_then_no_more() {
    let mut world = World::new();
    let near = world.connect();
    world.settle();
    let error = world.client.option(near, SOL_SOCKET, 4);
    assert_eq!(error, Ok(111_i32.to_ne_bytes().to_vec()));
    let error = world.client.option(near, SOL_SOCKET, 4);
    assert_eq!(error, Ok(0_i32.to_ne_bytes().to_vec()));
    assert_eq!(world.client.connected(near), Err(Errno::CONNECTION_ABORTED));
}

#[test]
fn a_close_with_unread_bytes_resets_the_connection() {
    let mut world = World::new();
    let (near, far) = world.connection();
    write(&mut world.client, near, b"never read").unwrap();
    world.settle();
    world.server.close(far);
    world.settle();
    assert_eq!(read(&mut world.client, near), Err(Errno::RESET));
    assert_eq!(
        write(&mut world.client, near, b"x"),
        Err(Errno::BROKEN_PIPE)
    );
    assert_eq!(read(&mut world.client, near), Ok(Some(Vec::new())));
}

#[test]
fn a_half_that_is_shut_down_ends_and_the_other_goes_on() {
    let mut world = World::new();
    let (near, far) = world.connection();
    world.client.shutdown(near, WRITING).unwrap();
    world.settle();
    assert_eq!(
        write(&mut world.client, near, b"x"),
        Err(Errno::BROKEN_PIPE)
    );
    assert_eq!(read(&mut world.server, far), Ok(Some(Vec::new())));
    let ready = world.server.readiness(far);
    assert!(ready.has_any(Readiness::RDHUP) && !ready.has_any(Readiness::HUP));
    write(&mut world.server, far, b"still").unwrap();
    world.settle();
    assert_eq!(read(&mut world.client, near), Ok(Some(b"still".to_vec())));
    world.server.shutdown(far, WRITING).unwrap();
    world.settle();
    assert!(world.client.readiness(near).has_any(Readiness::HUP));
}

#[test]
fn a_writer_finds_no_room_when_the_peer_does_not_read_and_room_again_when_it_does() {
    let mut world = World::new();
    let (near, far) = world.connection();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let mut sent = Vec::new();
    while let Some(count) = write(&mut world.client, near, &bytes).unwrap() {
        sent.extend(&bytes[..count]);
        world.settle();
    }
    assert!(!world.client.readiness(near).has_any(Readiness::OUT));
    assert!(world.client.unacknowledged(near).unwrap() > 0);
    let mut received = Vec::new();
    for _ in 0..10_000 {
        if let Some(part) = read(&mut world.server, far).unwrap() {
            received.extend(part);
        }
        world.pass(Duration::from_millis(10));
        if received.len() == sent.len() {
            break;
        }
    }
    assert!(
        received == sent,
        "{} of {} bytes",
        received.len(),
        sent.len()
    );
    assert!(world.client.readiness(near).has_any(Readiness::OUT));
    assert_eq!(world.client.unacknowledged(near), Ok(0));
}

#[test]
fn accepted_sockets_have_the_options_of_their_listener_but_wait() {
    let mut world = World::new();
    let mut options = waiting(false);
    options.set(SOL_TCP, 1, &1_i32.to_ne_bytes()).unwrap();
    options
        .set(SOL_SOCKET, 7, &10_000_i32.to_ne_bytes())
        .unwrap();
    let listener = world.listen(options);
    world.connect();
    world.settle();
    let far = world.server.accept(listener).unwrap().unwrap();
    assert!(world.server.options(far).unwrap().waits);
    let nodelay = world.server.option(far, SOL_TCP, 1);
    assert_eq!(nodelay, Ok(1_i32.to_ne_bytes().to_vec()));
    let bytes = world.server.option(far, SOL_SOCKET, 7);
    assert_eq!(bytes, Ok(20_000_i32.to_ne_bytes().to_vec()));
    assert_eq!(world.server.accept(listener), Ok(None));
    assert_eq!(world.server.local(far), Ok(SERVER.parse().unwrap()));
}

#[test]
fn a_socket_lives_as_long_as_one_descriptor_refers_to_it() {
    let mut world = World::new();
    let (near, far) = world.connection();
    world.client.duplicate(near).unwrap();
    world.client.close(near);
    write(&mut world.client, near, b"here").unwrap();
    world.settle();
    assert_eq!(read(&mut world.server, far), Ok(Some(b"here".to_vec())));
    world.client.close(near);
    world.settle();
    assert_eq!(read(&mut world.server, far), Ok(Some(Vec::new())));
}

#[test]
fn options_out_of_range_and_unknown_ones_are_refused() {
    let mut options = Options::default();
    let number = |number: i32| number.to_ne_bytes();
    assert_eq!(options.set(SOL_TCP, 2, &number(87)), Err(Errno::INVALID));
    assert_eq!(options.set(SOL_TCP, 1, &[1]), Err(Errno::INVALID));
    assert_eq!(options.set(SOL_TCP, 6, &number(128)), Err(Errno::INVALID));
    assert_eq!(options.set(SOL_TCP, 99, &number(1)), Err(Errno::NO_OPTION));
    let second: Vec<u8> = [1_u64, 1_000_000]
        .iter()
        .flat_map(|part| part.to_ne_bytes())
        .collect();
    assert_eq!(options.set(SOL_SOCKET, 20, &second), Err(Errno(33)));
}

#[test]
fn a_reset_that_answers_what_was_written_too_late_is_a_broken_pipe() {
    let mut world = World::new();
    let (near, far) = world.connection();
    world.server.close(far);
    world.settle();
    assert_eq!(write(&mut world.client, near, b"late"), Ok(Some(4)));
    world.settle();
    let broken = Err(Errno::BROKEN_PIPE);
    assert_eq!(write(&mut world.client, near, b"x"), broken);
    assert_eq!(world.client.peer(near), Err(Errno::NOT_CONNECTED));
    assert_eq!(world.client.former_peer(near), Ok(SERVER.parse().unwrap()));
}

#[test]
fn a_port_that_the_program_chose_is_the_connection_s() {
    let mut world = World::new();
    let listener = world.listen(waiting(false));
    let source = "10.0.0.1:7777".parse().unwrap();
    let target = SERVER.parse().unwrap();
    let opened = world.client.connect(target, Some(source), waiting(false));
    world.settle();
    let far = world.server.accept(listener).unwrap().unwrap();
    assert_eq!(world.client.local(opened.unwrap()), Ok(source));
    assert_eq!(world.server.peer(far), Ok(source));
    let no_port = "10.0.0.2:0".parse().unwrap();
    let refused = world.client.connect(no_port, None, waiting(false));
    assert_eq!(refused, Err(Errno::REFUSED));
}
