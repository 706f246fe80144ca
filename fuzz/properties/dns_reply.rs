//! What must hold of any bytes that a resolver takes for a reply. The first byte is the type that was asked for: `4` for
//! AAAA, `S` for SRV, any other for A; what follows is the message. Used by the fuzz target and by the ordinary test that
//! replays the corpus.

use mill_upstream::resolver::host_name::HostName;
use mill_upstream::resolver::message::{Mismatch, Question, RecordKind, Records, Reply};
use std::net::IpAddr;

/// Panics if the resolver breaks a promise on `input`.
pub(crate) fn check(input: &[u8]) {
    let Some((kind, message)) = input.split_first() else {
        return;
    };
    let kind = match kind {
        b'4' => RecordKind::Aaaa,
        b'S' => RecordKind::Srv,
        _ => RecordKind::A,
    };
    let name = HostName::parse(b"www.example").expect("this is a name");
    let question = Question { name, kind };
    let [high, low, ..] = *message else {
        assert_eq!(question.parse(0, message), Err(Mismatch::Malformed));
        return;
    };
    let id = u16::from_be_bytes([high, low]);
    let parsed = question.parse(id, message);
    if parsed.is_ok() {
        assert_eq!(question.parse(id ^ 0x100, message), Err(Mismatch::WrongId));
        let other = HostName::parse(b"ww.example").expect("this is a name");
        let other = Question { name: other, kind };
        let of_other = other.parse(id, message);
        assert!(of_other.is_err() || of_other == parsed && matches!(parsed, Ok(Reply::Failed(_))));
    }
    if let Ok(Reply::Records(records)) = parsed {
        holds_what_it_says(kind, &records, message);
    }
}

fn holds_what_it_says(kind: RecordKind, records: &Records, message: &[u8]) {
    let Records {
        addresses,
        services,
        ttl_seconds,
        alias,
    } = records;
    // Each record takes eleven bytes and its data.
    assert!(addresses.len() * 15 <= message.len());
    assert!(services.len() * 18 <= message.len());
    let found = addresses.len() + services.len();
    assert!(found <= 512);
    assert!(found == 0 || ttl_seconds.is_some());
    assert!(found == 0 || alias.is_none());
    assert!(alias.is_none() || ttl_seconds.is_some());
    assert!(kind == RecordKind::Srv || services.is_empty());
    for address in addresses {
        let is_there = match (kind, address) {
            (RecordKind::A, IpAddr::V4(address)) => contains(message, &address.octets()),
            (RecordKind::Aaaa, IpAddr::V6(address)) => contains(message, &address.octets()),
            _ => false,
        };
        assert!(is_there, "{address}");
    }
    let targets = services.iter().map(|service| service.target);
    for name in targets.chain(alias.as_deref().copied()) {
        assert_eq!(HostName::parse(name.as_bytes()), Some(name));
        let question = Question { name, kind };
        assert_eq!(
            question.parse(7, &question.emit(7)),
            Err(Mismatch::NotAReply)
        );
    }
}

fn contains(message: &[u8], bytes: &[u8]) -> bool {
    message.windows(bytes.len()).any(|window| window == bytes)
}
