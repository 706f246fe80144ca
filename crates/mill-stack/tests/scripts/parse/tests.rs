//! Lines that are understood, and lines that are refused.

use super::{parse_line, parse_setting, parse_time};
use crate::script::{Event, Moment, Time};

#[track_caller]
fn check_segment(text: &str, printed: &str) {
    match parse_line(&format!("0 < {text}")) {
        Ok((_, Event::Inbound(segment))) => assert_eq!(segment.to_string(), printed),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_segment_is_printed_as_it_was_written() {
    for text in [
        "S 0:0(0) win 65535 <mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 8>",
        "@2 [ce] P. 1:1001(1000) ack 1 win 0",
        "S.EWA 0:0(0) ack 1",
        "F.U 4294967295:1(2) ack 1 urg 7 <...>",
        "- 1:1(0) <nop,nop,sack 1:2 5:9,fo,fo *,fo 0a0b,uto 9,kind 253 01,eol>",
    ] {
        check_segment(text, text);
    }
}

#[test]
fn marks_and_order_of_flags_do_not_matter() {
    check_segment(
        "[bad_checksum] [ect0] .P 1:3(2) ack 4",
        "[ect0] P. 1:3(2) ack 4",
    );
}

#[test]
fn what_is_no_line_is_refused() {
    for text in [
        "0",
        "0 < S",
        "0 < S 0:1(0)",
        "0 < S 0:0(0) ack 1",
        "0 < . 0:0(0)",
        "0 < U 0:0(0)",
        "0 < Q 0:0(0)",
        "0 < S 0:0(0) win",
        "0 < S 0:0(0) win 65536",
        "0 < S 0:0(0) <mss>",
        "0 < S 0:0(0) <sack>",
        "0 < S 0:0(0) <mss 1460",
        "0 < @x S 0:0(0)",
        "0 < [loud] S 0:0(0)",
        "0 < icmp too_big [1:2(1)]",
        "0 < icmp too_big 1200 1:2(1)",
        "0 read(4) 3",
        "0 read 4 = 3",
        "0 read(4) =",
        "x silence",
        "1.2.3 silence",
        "0.1234567890 silence",
        "0 renew 5",
    ] {
        assert!(parse_line(text).is_err(), "{text}");
    }
    assert!(parse_setting("--mtu").is_err());
}

#[test]
fn times_are_counted_exactly() {
    let at = |relative, nanos| Moment { relative, nanos };
    for (text, expected) in [
        ("0", Time::At(at(false, 0))),
        ("+.2", Time::At(at(true, 200_000_000))),
        ("1.000000001", Time::At(at(false, 1_000_000_001))),
        (
            "1~+2",
            Time::Within(at(false, 1_000_000_000), at(true, 2_000_000_000)),
        ),
        (
            ".1...0.3",
            Time::Blocking(at(false, 100_000_000), at(false, 300_000_000)),
        ),
        ("*", Time::Any),
    ] {
        assert_eq!(parse_time(text), Ok(expected), "{text}");
    }
}
