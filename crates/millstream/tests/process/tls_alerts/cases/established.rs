//! Records behind the handshake.

use super::{
    Act, At, BAD_MAC, Case, ILLEGAL, OPEN, OVERFLOW, REFUSED, UNDECODABLE, UNEXPECTED, case,
};
use crate::tls_alerts::hello::{Hello, handshake, later};
use mill_tls::protection::Version;

pub(super) fn behind_tls13() -> Vec<Case> {
    let sealed = |name, clause, asked, records: &[(u8, &[u8])]| {
        let records = records.iter().map(|record| (record.0, record.1.to_vec()));
        let act = Act::Sealed(Version::Tls13, records.collect());
        case(At::Usual, name, clause, asked, act)
    };
    let clear = |name, clause, asked, bytes| {
        case(
            At::Usual,
            name,
            clause,
            asked,
            Act::Clear(Version::Tls13, bytes),
        )
    };
    let hello = Hello::default().message();
    vec![
        case(
            At::Usual,
            "1.3: a record with a bit changed on the way",
            "8446 5.2",
            BAD_MAC,
            Act::Damaged(Version::Tls13),
        ),
        clear(
            "1.3: a sealed record of 2^14 + 257 bytes",
            "8446 5.2",
            OVERFLOW,
            later(23, &vec![7; (1 << 14) + 257]),
        ),
        clear(
            "1.3: a sealed record shorter than its tag",
            "8446 5.2",
            &["fatal bad_record_mac, closed", "fatal decode_error, closed"],
            later(23, &[7; 5]),
        ),
        clear(
            "1.3: a record of an unknown type",
            "8446 5",
            UNEXPECTED,
            later(99, &[7]),
        ),
        clear(
            "1.3: a handshake message in clear",
            "8446 5.2",
            UNEXPECTED,
            later(22, &hello),
        ),
        clear(
            "1.3: an alert in clear",
            "8446 5.2",
            UNEXPECTED,
            later(21, &[2, 80]),
        ),
        clear(
            "1.3: ChangeCipherSpec in clear",
            "8446 5",
            UNEXPECTED,
            later(20, &[1]),
        ),
        sealed(
            "1.3: ChangeCipherSpec, sealed",
            "8446 5",
            UNEXPECTED,
            &[(20, &[1])],
        ),
        sealed("1.3: an empty alert", "8446 5.4", UNEXPECTED, &[(21, &[])]),
        sealed(
            "1.3: an alert of a byte",
            "8446 6.2",
            UNDECODABLE,
            &[(21, &[2])],
        ),
        sealed(
            "1.3: two alerts in a record",
            "8446 5.1",
            REFUSED,
            &[(21, &[1, 90, 1, 90])],
        ),
        sealed(
            "1.3: `user_canceled`",
            "8446 6.1",
            &["answer 200"],
            &[(21, &[1, 90])],
        ),
        sealed(
            "1.3: `user_canceled` four times",
            "8446 6.1",
            &["answer 200"],
            &[(21, &[1, 90][..]); 4],
        ),
        sealed(
            "1.3: `user_canceled` 100 times",
            "8446 6.1",
            OPEN,
            &[(21, &[1, 90][..]); 100],
        ),
        sealed(
            "1.3: a warning that there is none",
            "8446 6.2",
            &["closed"],
            &[(21, &[1, 100])],
        ),
        sealed(
            "1.3: a fatal alert",
            "8446 6.2",
            &["closed"],
            &[(21, &[2, 80])],
        ),
        sealed(
            "1.3: an alert of an unknown level",
            "8446 6",
            &["closed", "fatal illegal_parameter, closed"],
            &[(21, &[7, 80])],
        ),
        sealed(
            "1.3: `close_notify` in the middle",
            "8446 6.1",
            &["closed", "warning close_notify, closed"],
            &[(21, &[1, 0])],
        ),
        sealed(
            "1.3: an empty handshake record",
            "8446 5.4",
            UNEXPECTED,
            &[(22, &[])],
        ),
        sealed(
            "1.3: 20 empty records of application data",
            "8446 5.1",
            &["answer 200"],
            &[(23, &[][..]); 20],
        ),
        sealed(
            "1.3: 100 empty records of application data",
            "8446 5.4",
            OPEN,
            &[(23, &[][..]); 100],
        ),
        sealed(
            "1.3: another ClientHello",
            "8446 4.1.2",
            UNEXPECTED,
            &[(22, &hello)],
        ),
        sealed(
            "1.3: a message of an unknown kind",
            "8446 4",
            UNEXPECTED,
            &[(22, &handshake(99, &[0; 4]))],
        ),
        sealed(
            "1.3: a session ticket of a client",
            "8446 4.6.1",
            UNEXPECTED,
            &[(22, &handshake(4, &[0; 20]))],
        ),
        sealed(
            "1.3: Finished again",
            "8446 4.4.4",
            UNEXPECTED,
            &[(22, &handshake(20, &[0; 32]))],
        ),
        sealed(
            "1.3: KeyUpdate of another value",
            "8446 4.6.3",
            ILLEGAL,
            &[(22, &handshake(24, &[2]))],
        ),
        sealed(
            "1.3: KeyUpdate of two bytes",
            "8446 6.2",
            UNDECODABLE,
            &[(22, &handshake(24, &[0, 0]))],
        ),
        sealed(
            "1.3: KeyUpdate, and a message behind it in its record",
            "8446 5.1",
            UNEXPECTED,
            &[(22, &[handshake(24, &[0]), handshake(24, &[0])].concat())],
        ),
        sealed(
            "1.3: KeyUpdate, and the next record by the former keys",
            "8446 4.6.3, 5.2",
            BAD_MAC,
            &[(22, &handshake(24, &[0]))],
        ),
        sealed(
            "1.3: data between two parts of a message",
            "8446 5.1",
            UNEXPECTED,
            &[(22, &[24, 0, 0]), (23, b"GET")],
        ),
    ]
}

pub(super) fn behind_tls12() -> Vec<Case> {
    let sealed = |name, clause, asked, records: &[(u8, &[u8])]| {
        let records = records.iter().map(|record| (record.0, record.1.to_vec()));
        let act = Act::Sealed(Version::Tls12, records.collect());
        case(At::Usual, name, clause, asked, act)
    };
    let clear = |name, clause, asked, bytes| {
        case(
            At::Usual,
            name,
            clause,
            asked,
            Act::Clear(Version::Tls12, bytes),
        )
    };
    let renegotiated: &[&str] = &["warning no_renegotiation, answer 200", "fatal ", "closed"];
    let hello = Hello::of_version(0x0303);
    let hello = hello.with(0xff01, Some(vec![0])).message();
    vec![
        case(
            At::Usual,
            "1.2: a record with a bit changed on the way",
            "5246 6.2.3.3",
            BAD_MAC,
            Act::Damaged(Version::Tls12),
        ),
        clear(
            "1.2: a sealed record of 2^14 + 2049 bytes",
            "5246 6.2.3",
            OVERFLOW,
            later(23, &vec![7; (1 << 14) + 2049]),
        ),
        clear(
            "1.2: a record in clear",
            "5246 6.2.3.3",
            BAD_MAC,
            later(23, b"GET / HTTP/1.0\r\n\r\n"),
        ),
        clear(
            "1.2: a record of an unknown type",
            "5246 6",
            UNEXPECTED,
            later(99, &[7]),
        ),
        sealed(
            "1.2: renegotiation",
            "5246 7.2.2",
            renegotiated,
            &[(22, &hello)],
        ),
        sealed(
            "1.2: ChangeCipherSpec again",
            "5246 7.1",
            UNEXPECTED,
            &[(20, &[1])],
        ),
        sealed(
            "1.2: Finished again",
            "5246 7.4.9",
            UNEXPECTED,
            &[(22, &handshake(20, &[0; 12]))],
        ),
        sealed(
            "1.2: a warning",
            "5246 7.2.2",
            &["answer 200", "fatal ", "closed"],
            &[(21, &[1, 90])],
        ),
        sealed(
            "1.2: 100 warnings",
            "5246 7.2.2",
            OPEN,
            &[(21, &[1, 90][..]); 100],
        ),
        sealed(
            "1.2: a fatal alert",
            "5246 7.2.2",
            &["closed"],
            &[(21, &[2, 80])],
        ),
        sealed(
            "1.2: `close_notify` in the middle",
            "5246 7.2.1",
            &["closed", "warning close_notify, closed"],
            &[(21, &[1, 0])],
        ),
        sealed(
            "1.2: an alert of a byte",
            "5246 7.2.2",
            UNDECODABLE,
            &[(21, &[2])],
        ),
        sealed(
            "1.2: 20 empty records of application data",
            "5246 6.2.1",
            &["answer 200"],
            &[(23, &[][..]); 20],
        ),
        sealed(
            "1.2: 100 empty records of application data",
            "5246 6.2.1",
            OPEN,
            &[(23, &[][..]); 100],
        ),
    ]
}
