//! A handshake, by rustls; the only file that uses its interface without buffers.
//!
//! rustls gets one record at a time. So it never sees application data behind the last message of a handshake: that is
//! opened by our own code (`protection.rs`), with the keys that rustls gives away at the end.

/// Requests before the handshake is over.
mod early;
/// Why handshakes fail.
mod fault;
/// Requests of a client before its handshake is over.
mod offer;
/// What peers are told then.
mod refusal;

use crate::alert::AlertDescription;
use crate::cipher_names::cipher_name;
use crate::client_hello::{Beginning, ClientHello, HELLO_BYTES_MAX};
use crate::facts::{EarlyData, TlsFacts};
use crate::protection::{Opener, Sealer, Version};
use crate::record::{HEADER_BYTES, PLAIN_BYTES_MAX, RecordHeader};
use crate::server_context::{Choice, ServerChoice, ServerContext};
use crate::signature::{self, Signatures};
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::pki_types::ServerName;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedConnectionCommon};
use rustls::{CommonState, HandshakeKind, ProtocolVersion};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

pub use fault::{Absence, Fault};
use offer::Offer;

/// A handshake that is under way.
pub(crate) struct Handshake {
    role: Role,
    /// What the client has said at first, and by which settings it is answered.
    opened: Option<(ClientHello, ServerContext)>,
    /// Bytes at the beginning that rustls has seen and wants to see again: a message that goes on in the next record.
    seen: usize,
    /// Bytes of the peer that were consumed.
    received: usize,
    /// Early data that was not taken yet.
    early: Vec<u8>,
    had_early: bool,
    /// Our side has sealed records, or said that it does from now on.
    is_sealing: bool,
    /// The client offered early data, and none was taken.
    lacks_early: bool,
    /// What our side sends with its first flight, as a client.
    offer: Option<Offer>,
    /// Plaintext of a record that our side sends, at most.
    pub(crate) record_bytes_max: usize,
    signatures: Signatures,
    /// Of our ServerHello, once that is made.
    session_id: Option<Box<[u8]>>,
}

/// A side of a handshake.
enum Role {
    /// A server that has not seen the ClientHello, or has seen it and is being chosen by it.
    Choosing(Rc<dyn ServerChoice>, Option<ClientHello>),
    Server(Box<UnbufferedServerConnection>),
    Client(Box<UnbufferedClientConnection>),
    /// It has ended, or failed.
    Over,
}

/// What a handshake needs next.
#[derive(Debug)]
pub(crate) enum Step {
    /// This many unread bytes, not counting those that were consumed now.
    Read(usize),
    /// The ClientHello is there: [`Handshake::poll_choice`].
    Choose,
    /// The dear part comes next: the exchange of keys, and a signature. Nothing was consumed.
    Admission,
    Established(Box<Secured>),
    Failed(Fault),
}

/// What a handshake leaves.
#[derive(Debug)]
pub(crate) struct Secured {
    pub(crate) opener: Opener,
    pub(crate) sealer: Sealer,
    pub(crate) updates: Updates,
    pub(crate) version: Version,
    pub(crate) facts: TlsFacts,
    /// Early data that was not taken yet: it comes before what follows.
    pub(crate) early: Vec<u8>,
    /// What our side has offered as a client, and the server has not taken: it comes before what else is to be sent.
    pub(crate) unsent: Vec<u8>,
    /// Plaintext of a record that our side sends, at most.
    pub(crate) record_bytes_max: usize,
}

/// What rustls still does behind a handshake: new keys, and sessions for later.
pub(crate) enum Updates {
    Server(KernelConnection<ServerConnectionData>),
    Client(KernelConnection<ClientConnectionData>),
}

impl Handshake {
    pub(crate) fn server(choice: Rc<dyn ServerChoice>) -> Self {
        Self::new(Role::Choosing(choice, None))
    }

    pub(crate) fn client(config: Arc<rustls::ClientConfig>, name: ServerName<'static>) -> Self {
        let role = UnbufferedClientConnection::new(config, name)
            .map_or(Role::Over, |connection| Role::Client(Box::new(connection)));
        Self::new(role)
    }

    /// A client's first bytes, which go with its first flight where the session allows it.
    pub(crate) fn offer(&mut self, plain: Vec<u8>) {
        self.offer = Some(Offer::new(plain));
    }

    fn new(role: Role) -> Self {
        Self {
            role,
            opened: None,
            seen: 0,
            received: 0,
            early: Vec::new(),
            had_early: false,
            is_sealing: false,
            lacks_early: false,
            offer: None,
            record_bytes_max: PLAIN_BYTES_MAX,
            signatures: Signatures::default(),
            session_id: None,
        }
    }

    /// Takes the unread bytes; returns how many are consumed, and what is needed next. What is to be sent is added to
    /// `out`, also behind a failure.
    pub(crate) fn on_bytes(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> (usize, Step) {
        if let Role::Choosing(..) = &self.role {
            return (0, self.open(bytes, out));
        }
        let mut consumed = 0;
        loop {
            let rest = bytes.get_mut(consumed..).unwrap_or_default();
            // A client speaks first, before any record of the server.
            let is_opening =
                self.received == 0 && matches!(self.role, Role::Client(_)) && rest.is_empty();
            let end = match next_record_end(rest, self.seen) {
                Ok(end) => end,
                // rustls finds the alert.
                Err(()) => rest.len(),
            };
            let has_record = rest.len() >= end;
            if !has_record && !is_opening {
                return (consumed, Step::Read(end));
            }
            let fed = if has_record { end } else { 0 };
            let record = rest.get_mut(..fed).unwrap_or_default();
            let start = out.len();
            let (discarded, progress) = self.advance(record, out);
            let flight = out.get(start..).unwrap_or_default();
            self.is_sealing |= refusal::begins_sealing(flight);
            consumed += discarded;
            self.received += discarded;
            self.seen = fed - discarded;
            match progress {
                Progress::Blocked if self.received + self.seen > HANDSHAKE_BYTES_MAX => {
                    let error = rustls::Error::General(String::from("the handshake is too long"));
                    return (consumed, Step::Failed(Fault::Protocol(error)));
                }
                Progress::Blocked if is_opening => return (consumed, Step::Read(HEADER_BYTES)),
                Progress::Blocked => {}
                Progress::Over => return (consumed, self.finish()),
                Progress::Failed(fault) => {
                    self.tell(&fault, start, out);
                    return (consumed, Step::Failed(fault));
                }
            }
        }
    }

    /// Reads the ClientHello.
    fn open(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Step {
        match bytes.first() {
            // A ClientHello of SSL 2 begins so (RFC 8446 D.5), and no text.
            Some(128..) => return self.refuse(AlertDescription::ProtocolVersion, out),
            Some(first) if *first != TLS_FIRST_BYTE => return Step::Failed(Fault::NotTls),
            _ => {}
        }
        let read = ClientHello::read(bytes);
        // What follows a whole message is rustls' to judge.
        let looked_at = match read {
            Beginning::Hello(_) => bytes.get(..HEADER_BYTES).unwrap_or_default(),
            _ => bytes,
        };
        if let Some(description) = refusal::of_records(looked_at) {
            return self.refuse(description, out);
        }
        let hello = match read {
            Beginning::Incomplete(needed) if needed <= HELLO_BYTES_MAX + HEADER_BYTES => {
                return Step::Read(needed);
            }
            Beginning::Hello(hello) => hello,
            Beginning::Incomplete(_) | Beginning::Unknown => ClientHello::default(),
        };
        if let Role::Choosing(_, opened) = &mut self.role {
            *opened = Some(hello);
        }
        Step::Choose
    }

    /// Chooses how to answer the ClientHello, once that is there; until then there is no poll. What is to be sent is added
    /// to `out`.
    pub(crate) fn poll_choice(&mut self, out: &mut Vec<u8>) -> Option<Poll<Step>> {
        let Role::Choosing(choice, opened) = &mut self.role else {
            return None;
        };
        let Poll::Ready(chosen) = choice.poll_choose(opened.as_ref()?) else {
            return Some(Poll::Pending);
        };
        let hello = opened.take()?;
        let step = self.take_choice(hello, chosen, out);
        Some(Poll::Ready(step.unwrap_or(Step::Admission)))
    }

    /// `None`: go on.
    fn take_choice(
        &mut self,
        hello: ClientHello,
        choice: Choice,
        out: &mut Vec<u8>,
    ) -> Option<Step> {
        let context = match choice {
            Choice::Take(context) => context,
            Choice::Reject => {
                out.extend(UNRECOGNIZED_NAME);
                self.role = Role::Over;
                return Some(Step::Failed(Fault::Rejected));
            }
            Choice::NoCertificate(absence) => {
                out.extend(INTERNAL_ERROR);
                self.role = Role::Over;
                return Some(Step::Failed(Fault::NoCertificate(absence)));
            }
        };
        if let Some(description) = refusal::of_hello(&hello, context.has_tls13) {
            return Some(self.refuse(description, out));
        }
        let config = Arc::clone(&context.config);
        self.opened = Some((hello, context));
        match UnbufferedServerConnection::new(config) {
            Ok(connection) => {
                self.role = Role::Server(Box::new(connection));
                None
            }
            Err(error) => Some(Step::Failed(Fault::Protocol(error))),
        }
    }

    /// The alert for a fault for which rustls has none, while our side does not seal.
    fn tell(&self, fault: &Fault, start: usize, out: &mut Vec<u8>) {
        if let Fault::Protocol(error) = fault
            && out.len() == start
            && !self.is_sealing
            && let Some(description) = refusal::of_error(error)
        {
            out.extend(refusal::record(description));
        }
    }

    /// Ends with an alert in clear.
    fn refuse(&mut self, description: AlertDescription, out: &mut Vec<u8>) -> Step {
        out.extend(refusal::record(description));
        self.role = Role::Over;
        Step::Failed(Fault::FirstFlight(description))
    }

    fn advance(&mut self, record: &mut [u8], out: &mut Vec<u8>) -> (usize, Progress) {
        match &mut self.role {
            Role::Server(connection) => {
                let (had_early, start) = (self.early.len(), out.len());
                let early = &mut self.early;
                signature::take();
                let (discarded, progress) = advance(record, out, |bytes, out| {
                    early::take(connection.process_tls_records(bytes), early, out)
                });
                self.signatures.add(signature::take());
                self.had_early |= self.early.len() > had_early;
                if self.session_id.is_none() {
                    self.session_id = server_session_id(out.get(start..).unwrap_or_default());
                }
                (discarded, over_when(progress, connection))
            }
            Role::Client(connection) => {
                let (start, offer) = (out.len(), &mut self.offer);
                let was_sent = offer.as_ref().is_some_and(Offer::is_sent);
                let (discarded, progress) = advance(record, out, |bytes, out| {
                    let status = connection.process_tls_records(bytes);
                    match offer {
                        Some(offer) => offer.take(status, out),
                        None => take(status, out),
                    }
                });
                if let Some(offer) = offer
                    && was_sent
                {
                    offer.on_flight(out.get(start..).unwrap_or_default());
                }
                (discarded, over_when(progress, connection))
            }
            Role::Choosing(..) | Role::Over => (0, Progress::Failed(Fault::Closed)),
        }
    }

    fn finish(&mut self) -> Step {
        match self.secured() {
            Ok(secured) => Step::Established(Box::new(secured)),
            Err(error) => Step::Failed(Fault::Protocol(error)),
        }
    }

    /// What the client has said at first, as facts; once.
    fn add_opened(&mut self, facts: &mut TlsFacts) {
        if let Some((hello, context)) = self.opened.take() {
            (facts.verified, facts.path) = context.check_client(&facts.peer_certificates);
            facts.server_name = hello.server_name;
            facts.signatures = self.signatures;
            // In TLS 1.3 it only repeats what the client has made up.
            if facts.protocol == "TLSv1.2" {
                facts.session_id = self.session_id.take().unwrap_or_default();
            }
            facts.offered_ciphers = hello.ciphers.into_boxed_slice();
            facts.offered_groups = hello.groups.into_boxed_slice();
            self.record_bytes_max = context.record_bytes_max();
            self.lacks_early = hello.offers_early_data && !self.had_early;
        }
    }

    fn secured(&mut self) -> Result<Secured, rustls::Error> {
        let role = std::mem::replace(&mut self.role, Role::Over);
        let (mut facts, secrets, updates, version) = match role {
            Role::Server(connection) => {
                let facts = facts_of(&connection);
                let (secrets, kernel) = connection.dangerous_into_kernel_connection()?;
                let version = version_of(kernel.protocol_version());
                (facts, secrets, Updates::Server(kernel), version)
            }
            Role::Client(connection) => {
                let facts = facts_of(&connection);
                let (secrets, kernel) = connection.dangerous_into_kernel_connection()?;
                let version = version_of(kernel.protocol_version());
                (facts, secrets, Updates::Client(kernel), version)
            }
            Role::Choosing(..) | Role::Over => return Err(rustls::Error::HandshakeNotComplete),
        };
        self.add_opened(&mut facts);
        let (offered, unsent) = self.offer.take().map(Offer::end).unwrap_or_default();
        facts.early_data = match (self.had_early, self.lacks_early) {
            (true, _) => EarlyData::Taken,
            (false, true) => EarlyData::Refused,
            (false, false) => offered,
        };
        let unknown =
            || rustls::Error::General(String::from("a cipher without a record layer here"));
        Ok(Secured {
            opener: Opener::new(secrets.rx, version).ok_or_else(unknown)?,
            sealer: Sealer::new(secrets.tx, version).ok_or_else(unknown)?,
            updates,
            version,
            facts,
            early: std::mem::take(&mut self.early),
            unsent,
            record_bytes_max: self.record_bytes_max,
        })
    }
}

/// What a call of rustls led to.
enum Progress {
    /// It waits for the peer.
    Blocked,
    Over,
    Failed(Fault),
}

/// What one state of rustls asks for.
enum Asked {
    /// The next state.
    Next,
    Blocked,
    Failed(rustls::Error),
}

/// Has rustls look at a record until it needs another one; returns how many bytes of it are done with.
fn advance(
    record: &mut [u8],
    out: &mut Vec<u8>,
    mut process: impl FnMut(&mut [u8], &mut Vec<u8>) -> (usize, Asked),
) -> (usize, Progress) {
    let mut discarded = 0;
    loop {
        let rest = record.get_mut(discarded..).unwrap_or_default();
        let (discard, asked) = process(rest, out);
        discarded += discard;
        match asked {
            Asked::Next => {}
            Asked::Blocked => return (discarded, Progress::Blocked),
            Asked::Failed(error) => {
                // The alert comes with the next call, which must see the same bytes: rustls has noted where the parts of
                // a message lie in them, and looks there. A further call would find the same fault, and rustls asserts
                // that there is one alert.
                let rest = record.get_mut(discarded..).unwrap_or_default();
                let _ = process(rest, out);
                return (discarded, Progress::Failed(Fault::Protocol(error)));
            }
        }
    }
}

/// Handles one state of rustls.
fn take<Data>(
    status: rustls::unbuffered::UnbufferedStatus<'_, '_, Data>,
    out: &mut Vec<u8>,
) -> (usize, Asked) {
    let discard = status.discard;
    let asked = match status.state {
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            let start = out.len();
            if let Err(EncodeError::InsufficientSize(needed)) = data.encode(&mut []) {
                out.resize(start + needed.required_size, 0);
                let written = data.encode(out.get_mut(start..).unwrap_or_default());
                out.truncate(start + written.unwrap_or(0));
            }
            Asked::Next
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            data.done();
            Asked::Next
        }
        Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Asked::Failed(
            rustls::Error::AlertReceived(rustls::AlertDescription::CloseNotify),
        ),
        Ok(_) => Asked::Blocked,
        Err(error) => Asked::Failed(error),
    };
    (discard, asked)
}

/// A handshake that waits for nothing is over.
fn over_when<Data>(progress: Progress, connection: &UnbufferedConnectionCommon<Data>) -> Progress {
    match progress {
        Progress::Blocked if !connection.is_handshaking() => Progress::Over,
        other => other,
    }
}

fn facts_of(connection: &CommonState) -> TlsFacts {
    let group = connection.negotiated_key_exchange_group();
    TlsFacts {
        alpn: connection.alpn_protocol().map(Into::into),
        protocol: match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "TLSv1.3",
        },
        cipher: connection
            .negotiated_cipher_suite()
            .map_or("", |suite| cipher_name(suite.suite())),
        is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        peer_certificates: connection
            .peer_certificates()
            .map(<[_]>::to_vec)
            .unwrap_or_default(),
        group: group.map(|group| u16::from(group.name())),
        ..TlsFacts::default()
    }
}

fn version_of(version: ProtocolVersion) -> Version {
    match version {
        ProtocolVersion::TLSv1_2 => Version::Tls12,
        _ => Version::Tls13,
    }
}

/// The session's id in the ServerHello at the beginning of what our side sends (RFC 5246 7.4.1.3).
fn server_session_id(flight: &[u8]) -> Option<Box<[u8]>> {
    // Behind the header: kind and length of the message, version, random.
    let message = flight.get(HEADER_BYTES..)?;
    let is_hello =
        flight.first() == Some(&TLS_FIRST_BYTE) && message.first() == Some(&SERVER_HELLO);
    let (len, rest) = message.get(4 + 2 + 32..)?.split_first()?;
    rest.get(..usize::from(*len))
        .filter(|_| is_hello)
        .map(Box::from)
}

/// Where the record behind the bytes that were seen ends; if it is not there yet, the bytes that are needed to know.
fn next_record_end(bytes: &[u8], seen: usize) -> Result<usize, ()> {
    match RecordHeader::parse(bytes.get(seen..).unwrap_or_default()) {
        None => Ok(seen + HEADER_BYTES),
        Some(Ok(header)) => Ok(seen + HEADER_BYTES + header.len),
        Some(Err(_)) => Err(()),
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            Role::Choosing(..) => "a server that waits for the ClientHello",
            Role::Server(_) => "server",
            Role::Client(_) => "client",
            Role::Over => "over",
        };
        write!(formatter, "Handshake({role}, {} bytes)", self.received)
    }
}

impl fmt::Debug for Updates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Server(_) => "Server",
            Self::Client(_) => "Client",
        })
    }
}

/// The first byte of every handshake.
const TLS_FIRST_BYTE: u8 = 22;

/// The kind of a ServerHello.
const SERVER_HELLO: u8 = 2;

/// The alert of `ssl_reject_handshake`, as a record.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// The alert where there is no certificate, as OpenSSL sends it for nginx.
const INTERNAL_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 80];

/// What a peer may send before a handshake ends; chains of certificates are the most of it.
const HANDSHAKE_BYTES_MAX: usize = 64 * 1024;
