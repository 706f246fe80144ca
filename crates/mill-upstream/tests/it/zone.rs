//! What a DNS server of the tests says: messages made byte by byte (RFC 1035 4), without the codec under test.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A question, as a server reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) id: u16,
    pub(crate) name: String,
    pub(crate) kind: u16,
    /// The question section as it came.
    question: Vec<u8>,
}

/// A record of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    owner: String,
    ttl_seconds: u32,
    kind: u16,
    data: Vec<u8>,
}

pub(crate) const A: u16 = 1;
pub(crate) const CNAME: u16 = 5;
pub(crate) const AAAA: u16 = 28;
pub(crate) const SRV: u16 = 33;

impl Asked {
    pub(crate) fn parse(message: &[u8]) -> Self {
        let number = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
        assert_eq!(number(2), 0x0100, "a query that asks for recursion");
        assert_eq!(message[4..12], [0, 1, 0, 0, 0, 0, 0, 0], "one question");
        let mut labels = Vec::new();
        let mut at = 12;
        while message[at] != 0 {
            let end = at + 1 + usize::from(message[at]);
            labels.push(std::str::from_utf8(&message[at + 1..end]).unwrap());
            at = end;
        }
        assert_eq!(number(at + 3), 1, "the class IN");
        assert_eq!(at + 5, message.len());
        Self {
            id: number(0),
            name: labels.join("."),
            kind: number(at + 1),
            question: message[12..].to_vec(),
        }
    }

    /// The reply with these records.
    pub(crate) fn reply(&self, records: &[Record]) -> Vec<u8> {
        self.message(self.id, 0x8180, &self.question, records)
    }

    /// The reply with a response code and no record.
    pub(crate) fn failure(&self, code: u16) -> Vec<u8> {
        self.message(self.id, 0x8180 | code, &self.question, &[])
    }

    /// The reply that does not fit a datagram.
    pub(crate) fn truncated(&self) -> Vec<u8> {
        self.message(self.id, 0x8380, &self.question, &[])
    }

    pub(crate) fn with_id(&self, id: u16, records: &[Record]) -> Vec<u8> {
        self.message(id, 0x8180, &self.question, records)
    }

    /// A reply that repeats the question for another name.
    pub(crate) fn to_other_question(&self, name: &str, records: &[Record]) -> Vec<u8> {
        let kind = self.kind.to_be_bytes();
        let question = [&name_bytes(name)[..], &kind, &[0, 1]].concat();
        self.message(self.id, 0x8180, &question, records)
    }

    /// A message without a question.
    pub(crate) fn without_question(&self, code: u16) -> Vec<u8> {
        let flags = (0x8180 | code).to_be_bytes();
        [&self.id.to_be_bytes()[..], &flags, &[0; 8]].concat()
    }

    fn message(&self, id: u16, flags: u16, question: &[u8], records: &[Record]) -> Vec<u8> {
        let count = u16::try_from(records.len()).unwrap();
        let mut message = Vec::new();
        for number in [id, flags, 1, count, 0, 0] {
            message.extend(number.to_be_bytes());
        }
        message.extend(question);
        for record in records {
            record.emit(&mut message);
        }
        message
    }
}

impl Record {
    pub(crate) fn a(owner: &str, ttl_seconds: u32, address: [u8; 4]) -> Self {
        let data = Ipv4Addr::from(address).octets().to_vec();
        Self::new(owner, ttl_seconds, A, data)
    }

    pub(crate) fn aaaa(owner: &str, ttl_seconds: u32, address: &str) -> Self {
        let address: Ipv6Addr = address.parse().unwrap();
        Self::new(owner, ttl_seconds, AAAA, address.octets().to_vec())
    }

    pub(crate) fn cname(owner: &str, ttl_seconds: u32, target: &str) -> Self {
        Self::new(owner, ttl_seconds, CNAME, name_bytes(target))
    }

    /// `numbers` are priority, weight and port.
    pub(crate) fn srv(owner: &str, ttl_seconds: u32, numbers: [u16; 3], target: &str) -> Self {
        let mut data: Vec<u8> = numbers.into_iter().flat_map(u16::to_be_bytes).collect();
        data.extend(name_bytes(target));
        Self::new(owner, ttl_seconds, SRV, data)
    }

    pub(crate) fn new(owner: &str, ttl_seconds: u32, kind: u16, data: Vec<u8>) -> Self {
        Self {
            owner: owner.to_owned(),
            ttl_seconds,
            kind,
            data,
        }
    }

    fn emit(&self, message: &mut Vec<u8>) {
        message.extend(name_bytes(&self.owner));
        message.extend(self.kind.to_be_bytes());
        message.extend(1_u16.to_be_bytes());
        message.extend(self.ttl_seconds.to_be_bytes());
        message.extend(u16::try_from(self.data.len()).unwrap().to_be_bytes());
        message.extend(&self.data);
    }
}

/// A name without compression.
pub(crate) fn name_bytes(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}
