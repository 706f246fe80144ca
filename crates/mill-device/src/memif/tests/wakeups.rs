//! Sleeping and waking: no frame may wait while its receiver sleeps.

use super::*;
use std::time::Duration;

fn is_readable(link: &MemifLink) -> bool {
    wait_readable(&[link.as_fd()], Some(Duration::ZERO)).unwrap()[0]
}

#[test]
fn the_descriptor_is_readable_from_a_frame_on_until_it_was_received() {
    let mut links = ends(&small(64, 2048), &small(64, 2048));
    // What the handshake has left.
    assert!(drain(&mut links.0).is_empty() && drain(&mut links.1).is_empty());
    each_way(&mut links, |from, to| {
        assert!(drain(to).is_empty());
        assert!(!is_readable(to));
        assert!(send(from, 1, 60));
        from.flush();
        assert!(is_readable(to));
        assert_eq!(from.counters().wakeups, 1);
        assert_eq!(drain(to).len(), 1);
        assert!(!is_readable(to));
    });
}

#[test]
fn a_polling_receiver_is_not_woken() {
    let mut links = ends(&small(64, 2048), &small(64, 2048));
    each_way(&mut links, |from, to| {
        assert!(drain(to).is_empty());
        to.set_polling(true);
        for _ in 0..10 {
            assert!(send(from, 1, 60));
            from.flush();
            assert!(!is_readable(to));
            assert_eq!(drain(to).len(), 1);
        }
        assert_eq!(from.counters().wakeups, 0);
        // Before it sleeps again, one poll has to find nothing.
        to.set_polling(false);
        assert!(drain(to).is_empty());
        assert!(send(from, 1, 60));
        from.flush();
        assert!(is_readable(to));
        assert_eq!(drain(to).len(), 1);
    });
}

/// Sleeps until frames arrive and sends each back, until one begins with 0.
fn echo(link: &mut MemifLink) {
    let mut burst = Burst::new(8);
    loop {
        link.receive(&mut burst);
        if burst.as_slice().is_empty() {
            wait_readable(&[link.as_fd()], None).unwrap();
        }
        let mut is_last = false;
        for received in burst.as_slice() {
            let frame = link.frame(received.id).to_vec();
            link.release(received.id);
            is_last |= frame[0] == 0;
            assert!(send(link, frame[0], frame.len()));
        }
        burst.clear();
        link.flush();
        if is_last {
            return;
        }
    }
}

#[test]
fn no_signal_is_lost_between_two_threads_that_both_sleep() {
    for swap in [false, true] {
        let (master, slave) = ends(&small(16, 256), &small(16, 256));
        let (mut near, mut far) = if swap {
            (slave, master)
        } else {
            (master, slave)
        };
        std::thread::scope(|scope| {
            scope.spawn(|| echo(&mut far));
            // In each round both ends race from an empty ring to sleeping; a lost signal hangs the test.
            for round in 0..20_000_u32 {
                let byte = if round == 19_999 { 0 } else { 7 };
                assert!(send(&mut near, byte, 60));
                near.flush();
                let mut burst = Burst::new(1);
                loop {
                    near.receive(&mut burst);
                    if !burst.as_slice().is_empty() {
                        break;
                    }
                    wait_readable(&[near.as_fd()], None).unwrap();
                }
                near.release(burst.as_slice()[0].id);
            }
        });
    }
}

#[test]
fn a_peer_that_connects_or_disconnects_wakes_a_sleeping_master() {
    let place = place();
    let options = small(64, 2048);
    let mut master = MemifLink::listen(&place, &options).unwrap();
    assert!(drain(&mut master).is_empty());
    assert!(!is_readable(&master));
    let mut slave = MemifLink::connect(&place, &options).unwrap();
    assert!(is_readable(&slave));
    until(&mut [&mut master, &mut slave], are_up);
    assert!(drain(&mut master).is_empty());
    assert!(!is_readable(&master));
    drop(slave);
    assert!(is_readable(&master));
}

#[test]
fn a_peer_that_disconnects_is_noticed_also_while_polling() {
    let (mut master, slave) = ends(&small(64, 2048), &small(64, 2048));
    master.set_polling(true);
    drop(slave);
    let mut calls = 0;
    while master.is_up() {
        assert!(drain(&mut master).is_empty());
        calls += 1;
        assert!(calls < 5000, "it was not noticed");
    }
}
