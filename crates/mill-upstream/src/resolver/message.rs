//! Messages of DNS (RFC 1035 4): the question that is sent, and what a reply to it says. Read this first: RFC 1035 4.1,
//! RFC 2181 5 and 8, RFC 2782, RFC 5452 9.

use super::error::ResolveError;
use super::host_name::HostName;
use domain::base::iana::{Class, Opcode};
use domain::base::name::ToName;
use domain::base::{Message, MessageBuilder, NameBuilder, ParsedName, Rtype, Ttl};
use domain::rdata::{A, Aaaa, Cname, Srv};
use std::net::IpAddr;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    pub name: HostName,
    pub kind: RecordKind,
}

/// A type of records (RFC 1035 3.2.2, RFC 3596, RFC 2782).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    A,
    Aaaa,
    Srv,
}

/// What a message says that answers the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It has more records than fit a datagram: ask again over TCP.
    Truncated,
    Failed(ResolveError),
    Records(Records),
}

/// The records that belong to the question, in the order of the message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Of a question for A or AAAA.
    pub addresses: Vec<IpAddr>,
    /// Of a question for SRV.
    pub services: Vec<Service>,
    /// The least time to live of these records and of the aliases that led to them.
    pub ttl_seconds: Option<u32>,
    /// The name is an alias of this one, of which the message has no records.
    pub alias: Option<Box<HostName>>,
}

/// An SRV record (RFC 2782). A target of `.` means that there is no such service; it makes no record here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    pub priority: u16,
    pub weight: u16,
    pub port: u16,
    pub target: HostName,
}

/// Why a message is not the reply that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Not a message, or it breaks off.
    Malformed,
    /// A question, or an operation other than a query.
    NotAReply,
    WrongId,
    WrongQuestion,
    /// A response code that answers nothing.
    UnknownCode,
}

impl Question {
    /// The message that asks a server for recursion.
    pub fn emit(&self, id: u16) -> Vec<u8> {
        let mut message = MessageBuilder::new_vec();
        message.header_mut().set_id(id);
        message.header_mut().set_rd(true);
        let mut questions = message.question();
        let mut name = NameBuilder::new_vec();
        for label in self.name.labels() {
            name.append_label(label)
                .expect("a host name's labels fit a name");
        }
        let name = name.into_name().expect("a host name fits a name");
        questions
            .push((&name, self.kind.number()))
            .expect("one question fits a message");
        questions.finish()
    }

    /// Reads a message that came from the server.
    pub fn parse(&self, id: u16, bytes: &[u8]) -> Result<Reply, Mismatch> {
        let message = Message::from_octets(bytes).map_err(|_| Mismatch::Malformed)?;
        let header = message.header();
        if header.id() != id {
            return Err(Mismatch::WrongId);
        }
        if !header.qr() || header.opcode() != Opcode::QUERY {
            return Err(Mismatch::NotAReply);
        }
        let code = header.rcode().to_int();
        let failure = ResolveError::from_response_code(code);
        let questions = message.header_counts().qdcount();
        // A server that cannot read the question may return none.
        if questions == 0 && failure == Some(ResolveError::FormatError) {
            return Ok(Reply::Failed(ResolveError::FormatError));
        }
        self.check_question(&message)?;
        if let Some(failure) = failure {
            return Ok(Reply::Failed(failure));
        }
        if code != 0 {
            return Err(Mismatch::UnknownCode);
        }
        if header.tc() {
            return Ok(Reply::Truncated);
        }
        self.records(&message).map(Reply::Records)
    }

    /// RFC 5452 9.1: a reply repeats the question.
    fn check_question(&self, message: &Message<&[u8]>) -> Result<(), Mismatch> {
        let question = message
            .sole_question()
            .map_err(|_| Mismatch::WrongQuestion)?;
        let is_same = question.qtype() == self.kind.number()
            && question.qclass() == Class::IN
            && host_name(question.qname()) == Some(self.name);
        is_same.then_some(()).ok_or(Mismatch::WrongQuestion)
    }

    /// Follows the aliases in the message from the name that was asked for, and takes the records of the last one. What
    /// belongs to other names is not looked at.
    fn records(&self, message: &Message<&[u8]>) -> Result<Records, Mismatch> {
        let question = message
            .sole_question()
            .map_err(|_| Mismatch::WrongQuestion)?;
        let mut owner = *question.qname();
        let mut records = Records::default();
        for aliases in 0..=ALIASES_MAX {
            self.take_records(message, &owner, &mut records)?;
            if !records.is_empty() {
                return Ok(records);
            }
            let Some((target, ttl)) = alias_of(message, &owner)? else {
                let last = if aliases > 0 { host_name(&owner) } else { None };
                records.alias = last.map(Box::new);
                return Ok(records);
            };
            records.shorten(ttl);
            owner = target;
        }
        // The aliases lead in a circle.
        Ok(Records::default())
    }

    fn take_records(
        &self,
        message: &Message<&[u8]>,
        owner: &ParsedName<&[u8]>,
        records: &mut Records,
    ) -> Result<(), Mismatch> {
        let answer = message.answer().map_err(|_| Mismatch::Malformed)?;
        match self.kind {
            RecordKind::A => {
                for record in answer.limit_to_in::<A>() {
                    let record = record.map_err(|_| Mismatch::Malformed)?;
                    if record.owner().name_eq(owner) {
                        records.add_address(record.data().addr().into(), record.ttl());
                    }
                }
            }
            RecordKind::Aaaa => {
                for record in answer.limit_to_in::<Aaaa>() {
                    let record = record.map_err(|_| Mismatch::Malformed)?;
                    if record.owner().name_eq(owner) {
                        records.add_address(record.data().addr().into(), record.ttl());
                    }
                }
            }
            RecordKind::Srv => {
                for record in answer.limit_to_in::<Srv<_>>() {
                    let record = record.map_err(|_| Mismatch::Malformed)?;
                    if record.owner().name_eq(owner) {
                        records.add_service(record.data(), record.ttl());
                    }
                }
            }
        }
        Ok(())
    }
}

impl RecordKind {
    const fn number(self) -> Rtype {
        match self {
            Self::A => Rtype::A,
            Self::Aaaa => Rtype::AAAA,
            Self::Srv => Rtype::SRV,
        }
    }
}

impl Records {
    fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.services.is_empty()
    }

    fn add_address(&mut self, address: IpAddr, ttl: Ttl) {
        if self.addresses.len() < RECORDS_MAX && !self.addresses.contains(&address) {
            self.addresses.push(address);
        }
        self.shorten(ttl);
    }

    fn add_service(&mut self, record: &Srv<ParsedName<&[u8]>>, ttl: Ttl) {
        self.shorten(ttl);
        let Some(target) = host_name(record.target()) else {
            return;
        };
        if self.services.len() < RECORDS_MAX {
            self.services.push(Service {
                priority: record.priority(),
                weight: record.weight(),
                port: record.port(),
                target,
            });
        }
    }

    /// RFC 2181 8: a time to live with its highest bit set is none.
    fn shorten(&mut self, ttl: Ttl) {
        let seconds = i32::try_from(ttl.as_secs()).map_or(0, i32::unsigned_abs);
        self.ttl_seconds = Some(self.ttl_seconds.map_or(seconds, |least| least.min(seconds)));
    }
}

/// A canonical name, and how long it is one.
type Alias<'a> = (ParsedName<&'a [u8]>, Ttl);

/// The canonical name of `owner`, if the message says that it is an alias.
fn alias_of<'a>(
    message: &Message<&'a [u8]>,
    owner: &ParsedName<&'a [u8]>,
) -> Result<Option<Alias<'a>>, Mismatch> {
    let answer = message.answer().map_err(|_| Mismatch::Malformed)?;
    for record in answer.limit_to_in::<Cname<_>>() {
        let record = record.map_err(|_| Mismatch::Malformed)?;
        if record.owner().name_eq(owner) {
            return Ok(Some((*record.data().cname(), record.ttl())));
        }
    }
    Ok(None)
}

/// `None` for the root, and for labels that no configuration can name.
fn host_name(name: &impl ToName) -> Option<HostName> {
    let labels = name.iter_labels().filter(|label| !label.is_root());
    HostName::of_labels(labels.map(|label| label.as_slice()))
}

/// Aliases that are followed from a name to its addresses, in one message and from one to the next.
pub(super) const ALIASES_MAX: usize = 16;

/// Addresses of a name, or SRV records, that are used; a message over TCP could carry some four thousand.
const RECORDS_MAX: usize = 512;
