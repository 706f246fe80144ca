//! The client's last flight.

use super::{
    Act, At, BAD_MAC, Case, DECRYPT, REFUSED, UNDECODABLE, UNEXPECTED, UNEXPECTED_OR_UNDECODABLE,
    case,
};
use crate::tls_alerts::hello::{HANDSHAKE, handshake, later, short};
use mill_tls::protection::Version;

/// The client's last flight, changed.
pub(super) fn of_flights() -> Vec<Case> {
    use Version::{Tls12, Tls13};
    let flight = |name, clause, asked, version, act| {
        case(At::Usual, name, clause, asked, Act::Flight(version, act))
    };
    vec![
        flight(
            "1.3: a Finished of other contents",
            "8446 4.4.4",
            DECRYPT,
            Tls13,
            |mut flight| {
                flight.message(20)[10] ^= 1;
                flight.emit()
            },
        ),
        flight(
            "1.3: a Finished that is too short",
            "8446 6.2",
            &["fatal decode_error, closed", "fatal decrypt_error, closed"],
            Tls13,
            |mut flight| {
                *flight.message(20) = handshake(20, &[0; 31]);
                flight.emit()
            },
        ),
        flight(
            "1.3: a Finished with a bit changed on the way",
            "8446 5.2",
            BAD_MAC,
            Tls13,
            |flight| {
                let mut bytes = flight.emit();
                *bytes.last_mut().unwrap() ^= 1;
                bytes
            },
        ),
        flight(
            "1.3: Finished in two records, and no request",
            "8446 5.1",
            &["waits", "warning close_notify, waits"],
            Tls13,
            |mut flight| {
                let (_, message) = flight.records.pop().unwrap();
                let (start, end) = message.split_at(9);
                flight.records.push((HANDSHAKE, start.to_vec()));
                flight.records.push((HANDSHAKE, end.to_vec()));
                flight.emit()
            },
        ),
        flight(
            "1.3: an alert between two parts of Finished",
            "8446 5.1",
            REFUSED,
            Tls13,
            |mut flight| {
                let (_, message) = flight.records.pop().unwrap();
                let (start, end) = message.split_at(9);
                flight.records.push((HANDSHAKE, start.to_vec()));
                flight.records.push((21, vec![1, 90]));
                flight.records.push((HANDSHAKE, end.to_vec()));
                flight.emit()
            },
        ),
        flight(
            "1.3: application data before Finished",
            "8446 4.4.4",
            UNEXPECTED,
            Tls13,
            |mut flight| {
                let at = flight.records.len() - 1;
                flight
                    .records
                    .insert(at, (23, b"GET / HTTP/1.0\r\n\r\n".to_vec()));
                flight.emit()
            },
        ),
        flight(
            "1.3: a certificate that was not asked for",
            "8446 4.4.2",
            UNEXPECTED,
            Tls13,
            |mut flight| {
                let at = flight.records.len() - 1;
                flight
                    .records
                    .insert(at, (HANDSHAKE, handshake(11, &[0; 4])));
                flight.emit()
            },
        ),
        flight(
            "1.3: Finished twice in a record",
            "8446 5.1",
            UNEXPECTED,
            Tls13,
            |mut flight| {
                let message = flight.message(20);
                let twice = [message.clone(), message.clone()].concat();
                *message = twice;
                flight.emit()
            },
        ),
        flight(
            "1.3: ChangeCipherSpec of another value before Finished",
            "8446 5",
            UNEXPECTED,
            Tls13,
            |flight| [later(20, &[2]), flight.emit()].concat(),
        ),
        flight(
            "1.3: a record of an unknown type before Finished",
            "8446 5",
            UNEXPECTED_OR_UNDECODABLE,
            Tls13,
            |flight| [later(99, &[1]), flight.emit()].concat(),
        ),
        flight(
            "1.3: a message in clear before Finished",
            "8446 5.2",
            REFUSED,
            Tls13,
            |flight| [later(22, &handshake(20, &[0; 32])), flight.emit()].concat(),
        ),
        flight(
            "1.2: a key that is no point",
            "8422 5.11",
            &[
                "fatal illegal_parameter, closed",
                "fatal decode_error, closed",
            ],
            Tls12,
            |mut flight| {
                *flight.message(16) = handshake(16, &short(&[7; 31]));
                flight.emit()
            },
        ),
        flight(
            "1.2: an empty ClientKeyExchange",
            "5246 7.2.2",
            REFUSED,
            Tls12,
            |mut flight| {
                *flight.message(16) = handshake(16, &[]);
                flight.emit()
            },
        ),
        flight(
            "1.2: a byte behind the key",
            "5246 7.2.2",
            UNDECODABLE,
            Tls12,
            |mut flight| {
                let message = flight.message(16);
                let longer = [&message[4..], &[0]].concat();
                *message = handshake(16, &longer);
                flight.emit()
            },
        ),
        flight(
            "1.2: another key than that of Finished",
            "5246 7.2.2",
            BAD_MAC,
            Tls12,
            |mut flight| {
                flight.message(16)[8] ^= 4;
                flight.emit()
            },
        ),
        flight(
            "1.2: no ClientKeyExchange",
            "5246 7.3",
            UNEXPECTED,
            Tls12,
            |mut flight| {
                flight.records.remove(0);
                flight.emit()
            },
        ),
        flight(
            "1.2: no ChangeCipherSpec",
            "5246 7.1",
            UNEXPECTED,
            Tls12,
            |mut flight| {
                flight.records.retain(|record| record.0 != 20);
                flight.records[1].1 = handshake(20, &[0; 12]);
                flight.emit()
            },
        ),
        flight(
            "1.2: ChangeCipherSpec of another value",
            "5246 7.1",
            REFUSED,
            Tls12,
            |mut flight| {
                let found = flight.records.iter_mut().find(|record| record.0 == 20);
                found.unwrap().1 = vec![2];
                flight.emit()
            },
        ),
        flight(
            "1.2: Finished with a bit changed on the way",
            "5246 6.2.3.3",
            BAD_MAC,
            Tls12,
            |flight| {
                let mut bytes = flight.emit();
                *bytes.last_mut().unwrap() ^= 1;
                bytes
            },
        ),
        flight(
            "1.2: application data before Finished",
            "5246 7.4.9",
            UNEXPECTED,
            Tls12,
            |mut flight| {
                flight.records.insert(1, (23, b"GET".to_vec()));
                flight.emit()
            },
        ),
    ]
}

pub(super) fn of_certificates() -> Vec<Case> {
    let verifying = |name, clause, asked, act| case(At::Verifying, name, clause, asked, act);
    let judged: &[&str] = &["answer 400", "fatal "];
    vec![
        verifying(
            "no certificate of the client",
            "8446 4.4.2.4",
            judged,
            Act::Certificate(""),
        ),
        verifying(
            "a certificate of a known authority",
            "8446 4.4.2.4",
            &["answer 200"],
            Act::Certificate("good"),
        ),
        verifying(
            "a certificate that has expired",
            "8446 4.4.2.4",
            judged,
            Act::Certificate("expired"),
        ),
        verifying(
            "a certificate of an unknown authority",
            "8446 4.4.2.4",
            judged,
            Act::Certificate("stranger"),
        ),
        verifying(
            "a CertificateVerify of other contents",
            "8446 4.4.3",
            DECRYPT,
            Act::CertificateFlight("good", |mut flight| {
                let message = flight.message(15);
                let at = message.len() - 1;
                message[at] ^= 1;
                flight.emit()
            }),
        ),
        verifying(
            "no CertificateVerify",
            "8446 4.4.3",
            UNEXPECTED,
            Act::CertificateFlight("good", |mut flight| {
                flight
                    .records
                    .retain(|record| record.0 != HANDSHAKE || record.1[0] != 15);
                flight.emit()
            }),
        ),
        verifying(
            "a certificate that is none",
            "8446 4.4.2.4",
            REFUSED,
            Act::CertificateFlight("good", |mut flight| {
                let entry = [&[0, 0, 3][..], b"abc", &[0, 0]].concat();
                let [.., high, middle, low] = entry.len().to_be_bytes();
                *flight.message(11) = handshake(11, &[&[0, high, middle, low], &*entry].concat());
                flight.emit()
            }),
        ),
    ]
}
