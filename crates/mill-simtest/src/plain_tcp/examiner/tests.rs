//! Each rule by a segment that keeps it and one that breaks it.

use super::*;

/// Numbers from 1000 on; 2000 to 2100 were sent to it, and windows up to 1500 offered.
const TOLD: PeerKnowledge = PeerKnowledge {
    iss: 2000,
    sent: 2100,
    edge: Some(1500),
    is_established: true,
};

fn segment(seq: u32, ack: u32, flags: u8, payload: &str) -> Segment {
    Segment {
        source: "10.0.0.1:80".parse().unwrap(),
        target: "10.0.0.2:40000".parse().unwrap(),
        seq,
        ack,
        flags,
        window: 100,
        urgent: 0,
        reserved: 0,
        ecn: 0,
        options: Vec::new(),
        payload: payload.as_bytes().to_vec(),
    }
}

/// After a handshake and "abcd" at 1001: what is said of one more segment.
fn check(segment: &Segment, expected: Result<(), &str>) {
    let mut examiner = Examiner::new(Some(60), false, ORDERLY);
    let syn = self::segment(1000, 2001, SYN | ACK, "");
    assert_eq!(examiner.examine(&syn, &TOLD), Ok(()));
    let text = self::segment(1001, 2050, ACK, "abcd");
    assert_eq!(examiner.examine(&text, &TOLD), Ok(()));
    assert_eq!(examiner.examine(segment, &TOLD), expected, "{segment:?}");
}

#[test]
fn what_is_right_is_let_through() {
    for right in [
        segment(1005, 2050, ACK, "efgh"),
        segment(1003, 2100, ACK, "cdef"),
        segment(1001, 2050, ACK, "abcd"),
        segment(1000, 2050, ACK, ""),
        segment(1005, 2050, ACK | FIN, ""),
        segment(1500, 2050, ACK, "p"),
        segment(1005, 2050, RST, ""),
        segment(1000, 2001, SYN | ACK, ""),
    ] {
        check(&right, Ok(()));
    }
}

#[test]
fn each_rule_finds_its_breach() {
    let with = |change: fn(&mut Segment)| {
        let mut segment = segment(1005, 2050, ACK, "");
        change(&mut segment);
        segment
    };
    let long = "x".repeat(61);
    for (wrong, words) in [
        (
            segment(1003, 2050, ACK, "xd"),
            "another byte at the same number",
        ),
        (
            segment(1005, 2050, ACK, &long),
            "a segment larger than was announced",
        ),
        (
            segment(1500, 2050, ACK, "pq"),
            "data beyond the window that was offered",
        ),
        (segment(999, 2050, ACK, ""), "a segment before its SYN's"),
        (
            segment(1003, 2050, ACK | FIN, ""),
            "a FIN before what was sent already",
        ),
        (
            segment(1005, 2101, ACK, ""),
            "an acknowledgement of what was never sent",
        ),
        (
            segment(1005, 2049, ACK, ""),
            "an acknowledgement that goes back",
        ),
        (
            segment(1005, 1999, ACK, ""),
            "an acknowledgement before the SYN",
        ),
        (with(|it| it.window = 99), "a window that shrinks"),
        (with(|it| it.flags = PSH_ONLY), "a segment without ACK"),
        (
            with(|it| it.ecn = 2),
            "congestion notification that was not agreed on",
        ),
        (
            with(|it| it.flags |= ECE),
            "congestion notification that was not agreed on",
        ),
        (
            with(|it| it.options = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0]),
            "an option that was not agreed on",
        ),
        (
            with(|it| it.options = vec![5, 9]),
            "an option that was not agreed on",
        ),
        (with(|it| it.reserved = 1), "reserved bits or urgent data"),
        (
            segment(1502, 2050, RST, ""),
            "a reset outside of every window",
        ),
        (
            segment(999, 2050, RST, ""),
            "a reset outside of every window",
        ),
        (
            segment(1005, 2101, RST | ACK, ""),
            "a reset that acknowledges what was never sent",
        ),
        (
            segment(1001, 2001, SYN | ACK, ""),
            "another initial sequence number",
        ),
        (
            segment(1000, 2002, SYN | ACK, ""),
            "a SYN-ACK of another SYN",
        ),
    ] {
        check(&wrong, Err(words));
    }
}

#[test]
fn nothing_comes_behind_a_fin() {
    let mut examiner = Examiner::new(None, true, Circumstances::default());
    for (next, expected) in [
        (segment(1000, 2001, SYN | ACK, ""), Ok(())),
        (segment(1001, 2001, ACK | FIN, "ab"), Ok(())),
        (segment(1001, 2001, ACK | FIN, "ab"), Ok(())),
        (segment(1004, 2001, ACK, ""), Ok(())),
        (segment(1005, 2001, ACK, ""), Err("data behind its FIN")),
        (segment(1003, 2001, ACK, "c"), Err("data behind its FIN")),
        (
            segment(1002, 2001, ACK | FIN, "bc"),
            Err("data behind its FIN"),
        ),
        (
            segment(1001, 2001, ACK | FIN, "a"),
            Err("a FIN at another place"),
        ),
    ] {
        assert_eq!(examiner.examine(&next, &TOLD), expected, "{next:?}");
    }
}

#[test]
fn the_acknowledgement_behind_a_fin_may_overtake_it() {
    let mut examiner = Examiner::new(None, false, Circumstances::default());
    for next in [
        segment(1000, 2001, SYN | ACK, ""),
        segment(1002, 2001, ACK, ""),
        segment(1001, 2001, ACK | FIN, ""),
    ] {
        assert_eq!(examiner.examine(&next, &TOLD), Ok(()), "{next:?}");
    }
}

#[test]
fn a_syn_ack_has_no_option_but_the_segment_size() {
    let check = |options: &[u8], expected| {
        let mut syn = segment(1000, 2001, SYN | ACK, "");
        syn.options = options.to_vec();
        let mut examiner = Examiner::new(None, false, ORDERLY);
        assert_eq!(examiner.examine(&syn, &TOLD), expected, "{options:?}");
    };
    check(&[2, 4, 5, 0xb4], Ok(()));
    let wrong = Err("a SYN-ACK with an option that was not offered");
    check(&[2, 4, 5, 0xb4, 1, 3, 3, 7], wrong);
    check(&[2, 4, 5, 0xb4, 4, 2, 1, 1], wrong);
}

const PSH_ONLY: u8 = 8;

/// Nothing is overtaken or doubled, and no host forgets.
const ORDERLY: Circumstances = Circumstances {
    is_orderly: true,
    is_clean: true,
    has_cookies: false,
};

#[test]
fn a_host_that_keeps_no_syn_may_answer_it_with_another_number() {
    for (has_cookies, expected) in [
        (true, Ok(())),
        (false, Err("another initial sequence number")),
    ] {
        let world = Circumstances {
            has_cookies,
            ..ORDERLY
        };
        let mut examiner = Examiner::new(None, false, world);
        let first = segment(1000, 2001, SYN | ACK, "");
        assert_eq!(examiner.examine(&first, &TOLD), Ok(()));
        let second = segment(5000, 2001, SYN | ACK, "");
        assert_eq!(examiner.examine(&second, &TOLD), expected);
    }
}
