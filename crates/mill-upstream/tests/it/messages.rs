//! Messages of DNS: what is asked, and what a reply says.

use crate::zone::{Asked, Record, name_bytes};
use mill_upstream::resolver::error::ResolveError;
use mill_upstream::resolver::host_name::HostName;
use mill_upstream::resolver::message::{Mismatch, Question, RecordKind, Records, Reply, Service};
use std::net::IpAddr;

const ID: u16 = 0x1234;

fn name(text: &str) -> HostName {
    HostName::parse(text.as_bytes()).unwrap()
}

fn question(kind: RecordKind) -> Question {
    let name = name("www.example");
    Question { name, kind }
}

fn asked(kind: RecordKind) -> Asked {
    Asked::parse(&question(kind).emit(ID))
}

/// What the question makes of a message.
fn check(kind: RecordKind, message: &[u8], expected: Result<Reply, Mismatch>) {
    assert_eq!(question(kind).parse(ID, message), expected);
}

fn addresses(addresses: &[&str], ttl_seconds: u32) -> Result<Reply, Mismatch> {
    let address = |text: &&str| text.parse::<IpAddr>().unwrap();
    Ok(Reply::Records(Records {
        addresses: addresses.iter().map(address).collect(),
        ttl_seconds: Some(ttl_seconds),
        ..Records::default()
    }))
}

#[test]
fn a_question_asks_for_one_type_of_one_name() {
    for (kind, number) in [
        (RecordKind::A, 1),
        (RecordKind::Aaaa, 28),
        (RecordKind::Srv, 33),
    ] {
        let asked = asked(kind);
        assert_eq!((asked.id, asked.kind), (ID, number));
        assert_eq!(asked.name, "www.example");
    }
    let longest = [
        "x".repeat(63),
        "x".repeat(63),
        "x".repeat(63),
        "y".repeat(61),
    ]
    .join(".");
    let question = Question {
        name: name(&longest),
        kind: RecordKind::A,
    };
    assert_eq!(Asked::parse(&question.emit(1)).name, longest);
}

#[test]
fn addresses_keep_their_order_and_the_least_time_to_live_counts() {
    let message = asked(RecordKind::A).reply(&[
        Record::a("www.example", 300, [10, 0, 0, 2]),
        Record::a("www.example", 60, [10, 0, 0, 1]),
        Record::a("www.example", 600, [10, 0, 0, 2]),
    ]);
    check(
        RecordKind::A,
        &message,
        addresses(&["10.0.0.2", "10.0.0.1"], 60),
    );
    let message = asked(RecordKind::Aaaa).reply(&[Record::aaaa("www.example", 9, "fd00::1")]);
    check(RecordKind::Aaaa, &message, addresses(&["fd00::1"], 9));
}

#[test]
fn names_are_compared_without_case_and_may_be_compressed() {
    let mut message = asked(RecordKind::A).reply(&[Record::a("WWW.Example", 5, [10, 0, 0, 1])]);
    check(RecordKind::A, &message, addresses(&["10.0.0.1"], 5));
    // The owner as a pointer to the question's name (RFC 1035 4.1.4).
    let owner = name_bytes("WWW.Example").len();
    let at = message.len() - 14 - owner;
    message.splice(at..at + owner, [0xc0, 12]);
    check(RecordKind::A, &message, addresses(&["10.0.0.1"], 5));
    // A pointer to itself.
    let itself = u8::try_from(at).unwrap();
    message[at + 1] = itself;
    check(RecordKind::A, &message, Err(Mismatch::Malformed));
}

#[test]
fn a_time_to_live_with_the_highest_bit_is_none() {
    for (ttl, expected) in [(0x7fff_ffff, 0x7fff_ffff), (0x8000_0000, 0), (u32::MAX, 0)] {
        let message = asked(RecordKind::A).reply(&[Record::a("www.example", ttl, [10, 0, 0, 1])]);
        check(RecordKind::A, &message, addresses(&["10.0.0.1"], expected));
    }
}

#[test]
fn aliases_are_followed_in_the_message_in_any_order_of_its_records() {
    let mut records = vec![
        Record::cname("www.example", 50, "a.example"),
        Record::cname("a.example", 30, "b.example"),
        Record::a("b.example", 40, [10, 0, 0, 1]),
    ];
    for _ in 0..3 {
        let message = asked(RecordKind::A).reply(&records);
        check(RecordKind::A, &message, addresses(&["10.0.0.1"], 30));
        records.rotate_left(1);
    }
}

#[test]
fn what_belongs_to_other_names_types_and_classes_is_not_taken() {
    let message = asked(RecordKind::A).reply(&[
        Record::a("other.example", 1, [10, 6, 6, 6]),
        Record::aaaa("www.example", 1, "fd00::6"),
        Record::cname("other.example", 1, "www.example"),
        Record::a("www.example", 5, [10, 0, 0, 1]),
    ]);
    check(RecordKind::A, &message, addresses(&["10.0.0.1"], 5));
    let message = asked(RecordKind::A).reply(&[Record::a("other.example", 1, [10, 6, 6, 6])]);
    let nothing = Ok(Reply::Records(Records::default()));
    check(RecordKind::A, &message, nothing);
}

#[test]
fn an_alias_without_records_has_to_be_asked_for() {
    let message = asked(RecordKind::A).reply(&[
        Record::cname("www.example", 50, "A.Example"),
        Record::cname("a.example", 30, "b.example"),
    ]);
    let expected = Records {
        alias: Some(Box::new(name("b.example"))),
        ttl_seconds: Some(30),
        ..Records::default()
    };
    check(RecordKind::A, &message, Ok(Reply::Records(expected)));
}

#[test]
fn aliases_in_a_circle_lead_nowhere_and_long_chains_end() {
    let circle = [
        Record::cname("www.example", 5, "a.example"),
        Record::cname("a.example", 5, "www.example"),
    ];
    let nothing = Ok(Reply::Records(Records::default()));
    check(
        RecordKind::A,
        &asked(RecordKind::A).reply(&circle),
        nothing.clone(),
    );
    let chain = |aliases: usize| {
        let name = |number| match number {
            0 => "www.example".to_owned(),
            number => format!("n{number}.example"),
        };
        let alias = |number| Record::cname(&name(number), 5, &name(number + 1));
        let mut records: Vec<_> = (0..aliases).map(alias).collect();
        records.push(Record::a(&name(aliases), 5, [10, 0, 0, 1]));
        asked(RecordKind::A).reply(&records)
    };
    check(RecordKind::A, &chain(16), addresses(&["10.0.0.1"], 5));
    check(RecordKind::A, &chain(17), nothing);
}

#[test]
fn services_have_priority_weight_port_and_target() {
    let message = asked(RecordKind::Srv).reply(&[
        Record::srv("www.example", 30, [10, 5, 8080], "One.Example"),
        Record::srv("www.example", 20, [20, 0, 8081], "two.example"),
        Record::srv("www.example", 20, [0, 0, 0], "."),
    ]);
    let service = |priority, weight, port, target| Service {
        priority,
        weight,
        port,
        target: name(target),
    };
    let expected = Records {
        services: vec![
            service(10, 5, 8080, "one.example"),
            service(20, 0, 8081, "two.example"),
        ],
        ttl_seconds: Some(20),
        ..Records::default()
    };
    check(RecordKind::Srv, &message, Ok(Reply::Records(expected)));
}

#[test]
fn response_codes_are_failures_with_nginx_names() {
    for (code, error) in [
        (1, ResolveError::FormatError),
        (2, ResolveError::ServerFailure),
        (3, ResolveError::NotFound),
        (4, ResolveError::NotImplemented),
        (5, ResolveError::Refused),
    ] {
        let message = asked(RecordKind::A).failure(code);
        check(RecordKind::A, &message, Ok(Reply::Failed(error)));
    }
    let message = asked(RecordKind::A).failure(6);
    check(RecordKind::A, &message, Err(Mismatch::UnknownCode));
    let message = asked(RecordKind::A).without_question(1);
    let error = Ok(Reply::Failed(ResolveError::FormatError));
    check(RecordKind::A, &message, error);
    let message = asked(RecordKind::A).without_question(2);
    check(RecordKind::A, &message, Err(Mismatch::WrongQuestion));
}

#[test]
fn only_a_reply_with_the_identifier_and_the_question_counts() {
    let records = [Record::a("www.example", 5, [10, 0, 0, 1])];
    let asked = asked(RecordKind::A);
    let check = |message: &[u8], mismatch| check(RecordKind::A, message, Err(mismatch));
    check(&asked.with_id(ID ^ 1, &records), Mismatch::WrongId);
    check(&question(RecordKind::A).emit(ID), Mismatch::NotAReply);
    let other = asked.to_other_question("xww.example", &records);
    check(&other, Mismatch::WrongQuestion);
    let other = asked.to_other_question("www.example.com", &records);
    check(&other, Mismatch::WrongQuestion);
    let other = self::asked(RecordKind::Aaaa).reply(&records);
    check(&other, Mismatch::WrongQuestion);
    let mut status = asked.reply(&records);
    // The operation STATUS (RFC 1035 4.1.1).
    status[2] |= 2 << 3;
    check(&status, Mismatch::NotAReply);
}

#[test]
fn a_message_that_breaks_off_is_malformed() {
    let whole = asked(RecordKind::A).reply(&[
        Record::cname("www.example", 5, "a.example"),
        Record::a("a.example", 5, [10, 0, 0, 1]),
    ]);
    for len in 0..whole.len() {
        let parsed = question(RecordKind::A).parse(ID, &whole[..len]);
        assert!(parsed.is_err(), "{len}: {parsed:?}");
    }
    let truncated = asked(RecordKind::A).truncated();
    check(RecordKind::A, &truncated, Ok(Reply::Truncated));
}
