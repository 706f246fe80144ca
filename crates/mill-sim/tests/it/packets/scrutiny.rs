//! Frames and segments that no network carries, or no host may send, fail the test that makes them.

use super::frame::{Frame, Sums};
use super::{Cable, Wire};
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::Flags;
use mill_wire::tcp_option::Timestamps;

#[test]
fn a_frame_that_is_wrong_is_refused_at_once() {
    for (sums, what) in [
        (Sums::WrongIp, "IPv4 header checksum"),
        (Sums::WrongTransport, "transport checksum"),
        (Sums::NotLeft, "does not complete it"),
    ] {
        let refused = std::panic::catch_unwind(|| {
            let mut cable = Cable::plain(1, Wire::IDEAL);
            cable.send(&Frame::data(0, 9).with(sums));
        });
        let message = refused.expect_err("the frame is refused");
        let message = message.downcast_ref::<String>().expect("a message");
        assert!(message.contains(what), "{message}");
    }
}

/// Sends a handshake, then these changes of a segment of the first host one after the other; the last one must be
/// refused with these words, or all are accepted.
fn check_conduct(changes: &[fn(&mut Frame)], expected: Option<&str>) {
    let refused = std::panic::catch_unwind(|| {
        let mut cable = Cable::plain(1, Wire::IDEAL);
        cable.send(&Frame::syn(99));
        let mut answer = Frame::syn(6);
        answer.is_answer = true;
        answer.header.flags |= Flags::ACK;
        answer.header.ack = SeqNumber(100);
        answer.header.window = 1000;
        cable.send(&answer);
        for change in changes {
            let mut frame = Frame::data(100, 0);
            change(&mut frame);
            cable.send(&frame);
        }
    });
    match (refused, expected) {
        (Ok(()), None) => {}
        (Err(panic), Some(expected)) => {
            let message = panic.downcast_ref::<String>().expect("a message");
            assert!(message.contains(expected), "{message}");
        }
        (other, _) => panic!("{other:?} instead of {expected:?}"),
    }
}

#[test]
fn hosts_that_misbehave_are_found() {
    check_conduct(&[|_| (), |_| ()], None);
    let narrower: fn(&mut Frame) = |frame| frame.header.window -= 1;
    check_conduct(&[narrower], None);
    check_conduct(&[|_| (), narrower], Some("a window that shrinks"));
    check_conduct(
        &[|_| (), |frame| frame.header.ack = SeqNumber(6)],
        Some("goes back"),
    );
    check_conduct(&[|frame| frame.payload = vec![1; 1000]], None);
    check_conduct(&[|frame| frame.payload = vec![1; 1001]], None);
    check_conduct(
        &[|frame| frame.payload = vec![1; 1002]],
        Some("beyond the window"),
    );
    check_conduct(
        &[|frame| {
            frame.header.options.timestamps = Some(Timestamps { value: 1, echo: 1 });
        }],
        Some("timestamps that were not agreed on"),
    );
    check_conduct(
        &[|frame| {
            frame.header.options.sack.push(SeqNumber(10), SeqNumber(20));
        }],
        Some("SACK that was not agreed on"),
    );
    check_conduct(
        &[|frame| frame.header.flags = Flags::FIN],
        Some("without ACK"),
    );
}
