//! What a connection begins with, record by record.

use super::{
    Act, At, CLOSED, Case, GOES_ON, OPEN, OVERFLOW, REFUSED, UNDECODABLE, UNEXPECTED, bytes, case,
};
use crate::tls_alerts::hello::{Hello, handshake, later, record};

pub(super) fn first_bytes() -> Vec<Case> {
    let usual = Hello::default;
    let message = usual().message();
    let (start, end) = message.split_at(30);
    let sslv2 = b"\x80\x1c\x01\x00\x02\x00\x03\x00\x00\x00\x10\x07\x00\xc0\x00123456789abcdef";
    vec![
        bytes(
            "plain HTTP",
            "–",
            &["answer 400 in clear"],
            b"GET / HTTP/1.0\r\n\r\n".to_vec(),
        ),
        bytes("a hello of SSL 2", "8446 D.5", REFUSED, sslv2.to_vec()),
        bytes(
            "a record of an unknown type at first",
            "8446 5",
            OPEN,
            vec![99, 3, 1, 0, 1, 0],
        ),
        bytes("an alert at first", "8446 6", OPEN, record(21, &[1, 0])),
        bytes(
            "ChangeCipherSpec at first",
            "8446 5",
            OPEN,
            record(20, &[1]),
        ),
        bytes(
            "application data at first",
            "8446 5",
            OPEN,
            record(23, b"GET / HTTP/1.0\r\n\r\n"),
        ),
        bytes(
            "Finished at first",
            "8446 4",
            UNEXPECTED,
            record(22, &handshake(20, &[0; 12])),
        ),
        bytes(
            "a message of an unknown kind at first",
            "8446 4",
            UNEXPECTED,
            record(22, &handshake(99, &[0; 12])),
        ),
        bytes(
            "a ClientHello, cut short by the end",
            "8446 6.1",
            OPEN,
            record(22, start),
        ),
        bytes(
            "close_notify within a ClientHello",
            "8446 5.1, 6.1",
            &["closed", "fatal unexpected_message, closed"],
            [record(22, start), record(21, &[1, 0])].concat(),
        ),
        bytes(
            "a warning within a ClientHello",
            "8446 5.1",
            UNEXPECTED,
            [record(22, start), record(21, &[1, 90]), record(22, end)].concat(),
        ),
        bytes(
            "a fatal alert within a ClientHello",
            "8446 6.2",
            &["closed", "fatal unexpected_message, closed"],
            [record(22, start), record(21, &[2, 80])].concat(),
        ),
        bytes(
            "ChangeCipherSpec within a ClientHello",
            "8446 5",
            UNEXPECTED,
            [record(22, start), record(20, &[1]), record(22, end)].concat(),
        ),
        bytes(
            "application data within a ClientHello",
            "8446 5.1",
            UNEXPECTED,
            [record(22, start), record(23, &[1]), record(22, end)].concat(),
        ),
    ]
}

pub(super) fn records() -> Vec<Case> {
    let message = Hello::default().message();
    let in_ones: Vec<u8> = message
        .iter()
        .flat_map(|byte| record(22, &[*byte]))
        .collect();
    let versioned = |major, minor| {
        let mut bytes = record(22, &message);
        bytes[1..3].copy_from_slice(&[major, minor]);
        bytes
    };
    let long_record = |len: usize| {
        let mut hello = Hello::default();
        let padding = len - hello.message().len() - 4;
        hello.extensions.push((21, vec![0; padding]));
        hello.record()
    };
    let (start, end) = message.split_at(30);
    vec![
        bytes(
            "a ClientHello in records of a byte each",
            "8446 5.1",
            GOES_ON,
            in_ones,
        ),
        bytes(
            "an empty record at first",
            "8446 5.1",
            UNEXPECTED,
            record(22, &[]),
        ),
        bytes(
            "an empty record within a ClientHello",
            "8446 5.1",
            UNEXPECTED,
            [record(22, start), record(22, &[]), record(22, end)].concat(),
        ),
        bytes(
            "version 3.153 of the first record",
            "8446 5.1",
            GOES_ON,
            versioned(3, 153),
        ),
        bytes(
            "version 5.5 of the first record",
            "8446 5.1, D",
            &["ServerHello", "fatal protocol_version, closed"],
            versioned(5, 5),
        ),
        bytes(
            "a record of 2^14 bytes",
            "8446 5.1",
            GOES_ON,
            long_record(1 << 14),
        ),
        bytes(
            "a record of 2^14 + 1 bytes",
            "8446 5.1",
            OVERFLOW,
            long_record((1 << 14) + 1),
        ),
        bytes(
            "a record of 2^14 + 2049 bytes",
            "8446 5.1",
            OVERFLOW,
            long_record((1 << 14) + 2049),
        ),
        bytes(
            "a ClientHello of 2^24 - 1 bytes",
            "8446 4",
            REFUSED,
            record(22, &[1, 255, 255, 255, 3, 3]),
        ),
        bytes(
            "an empty ClientHello",
            "8446 6.2",
            UNDECODABLE,
            record(22, &handshake(1, &[])),
        ),
        bytes("a byte behind the extensions", "8446 6.2", UNDECODABLE, {
            let mut body = message[4..].to_vec();
            body.push(0);
            record(22, &handshake(1, &body))
        }),
        bytes(
            "extensions longer than the message",
            "8446 6.2",
            UNDECODABLE,
            {
                let mut body = message[4..].to_vec();
                body.pop();
                record(22, &handshake(1, &body))
            },
        ),
        bytes(
            "another message behind the ClientHello in its record",
            "8446 5.1",
            REFUSED,
            record(22, &[message.clone(), handshake(20, &[0; 32])].concat()),
        ),
        case(
            At::Usual,
            "two records of ChangeCipherSpec behind the ServerHello, and the end",
            "8446 5",
            CLOSED,
            Act::Then(
                record(22, &message),
                "ServerHello",
                [later(20, &[1]), later(20, &[1]), later(21, &[1, 0])].concat(),
            ),
        ),
        case(
            At::Usual,
            "ChangeCipherSpec of another value",
            "8446 5",
            CLOSED,
            Act::Then(record(22, &message), "ServerHello", later(20, &[2])),
        ),
        case(
            At::Usual,
            "a record of an unknown type behind the ServerHello",
            "8446 5",
            CLOSED,
            Act::Then(record(22, &message), "ServerHello", later(99, &[1])),
        ),
        case(
            At::Usual,
            "a handshake message in clear behind the ServerHello",
            "8446 5",
            CLOSED,
            Act::Then(
                record(22, &message),
                "ServerHello",
                later(22, &handshake(20, &[0; 32])),
            ),
        ),
        case(
            At::Usual,
            "a fatal alert in clear behind the ServerHello",
            "8446 6.2",
            CLOSED,
            Act::Then(record(22, &message), "ServerHello", later(21, &[2, 42])),
        ),
        case(
            At::Usual,
            "close_notify in clear behind the ServerHello",
            "8446 6.1",
            CLOSED,
            Act::Then(record(22, &message), "ServerHello", later(21, &[1, 0])),
        ),
        case(
            At::Usual,
            "bytes that no key has sealed behind the ServerHello",
            "8446 5.2",
            CLOSED,
            Act::Then(record(22, &message), "ServerHello", later(23, &[7; 40])),
        ),
    ]
}
