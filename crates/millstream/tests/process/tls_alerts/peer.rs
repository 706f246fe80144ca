//! A client that gets as far as a case needs with rustls, and goes on by hand.

use super::hello::later;
use ::aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};
use mill_tls::protection::{Opener, Sealer, Version};
use mill_tls::record::{ContentType, HEADER_BYTES, RecordHeader};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::crypto::{CryptoProvider, aws_lc_rs, cipher};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, ConnectionTrafficSecrets, DigitallySignedStruct, Error, KeyLog,
    SignatureScheme,
};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A connection, by hand.
pub(super) struct Peer {
    socket: TcpStream,
    version: Version,
    opener: Option<Opener>,
    /// Seals what the client sends.
    pub(super) sealer: Option<Sealer>,
    unread: Vec<u8>,
    clear: Vec<u8>,
    seen: Vec<String>,
    is_answered: bool,
}

/// What a client sends behind the ServerHello: records in clear, or what was sealed by the keys of the handshake.
pub(super) struct Flight {
    /// Content types and contents.
    pub(super) records: Vec<(u8, Vec<u8>)>,
    sealer: Option<Sealer>,
}

impl Flight {
    /// The bytes as they are sent: of TLS 1.3 sealed, but for ChangeCipherSpec.
    pub(super) fn emit(mut self) -> Vec<u8> {
        let mut all = Vec::new();
        for (kind, content) in &self.records {
            match &mut self.sealer {
                Some(sealer) if *kind != 20 => all.extend(seal(sealer, *kind, content)),
                _ => all.extend(later(*kind, content)),
            }
        }
        all
    }

    /// The record whose handshake message is of this kind.
    pub(super) fn message(&mut self, kind: u8) -> &mut Vec<u8> {
        let found = (self.records.iter_mut()).find(|record| record.0 == 22 && record.1[0] == kind);
        &mut found.unwrap().1
    }
}

pub(super) fn seal(sealer: &mut Sealer, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; content.len() + 100];
    let kind = ContentType::from_byte(kind).unwrap();
    let len = sealer.seal(kind, content, &mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

impl Peer {
    pub(super) fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nodelay(true).unwrap();
        Self {
            socket,
            version: Version::Tls13,
            opener: None,
            sealer: None,
            unread: Vec::new(),
            clear: Vec::new(),
            seen: Vec::new(),
            is_answered: false,
        }
    }

    /// With a handshake in which `alter` makes the client's last flight; `identity` is of the client.
    pub(super) fn shake(
        address: SocketAddr,
        version: Version,
        identity: Option<&Path>,
        alter: impl FnOnce(Flight) -> Vec<u8>,
    ) -> Self {
        let mut peer = Self::connect(address);
        peer.version = version;
        let secrets = Arc::new(Secrets::default());
        let config = config(version, identity, &secrets);
        let name = ServerName::try_from("a.example").unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        peer.socket.write_all(&written(&mut client)).unwrap();
        while !client.wants_write() {
            client.read_tls(&mut &peer.socket).unwrap();
            client.process_new_packets().unwrap();
        }
        let flight = secrets.open(written(&mut client), version);
        peer.send(&alter(flight));
        if version == Version::Tls13 {
            peer.take_keys(client);
        }
        peer
    }

    /// A whole handshake.
    pub(super) fn secured(address: SocketAddr, version: Version) -> Self {
        if version == Version::Tls13 {
            return Self::shake(address, version, None, Flight::emit);
        }
        let mut peer = Self::connect(address);
        peer.version = version;
        let config = config(version, None, &Arc::default());
        let name = ServerName::try_from("a.example").unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        while client.is_handshaking() {
            peer.socket.write_all(&written(&mut client)).unwrap();
            client.read_tls(&mut &peer.socket).unwrap();
            client.process_new_packets().unwrap();
        }
        peer.take_keys(client);
        peer
    }

    fn take_keys(&mut self, client: ClientConnection) {
        let secrets = client.dangerous_extract_secrets().unwrap();
        self.opener = Opener::new(secrets.rx, self.version);
        self.sealer = Sealer::new(secrets.tx, self.version);
    }

    pub(super) fn seal(&mut self, kind: u8, content: &[u8]) -> Vec<u8> {
        seal(self.sealer.as_mut().unwrap(), kind, content)
    }

    /// A peer that has closed takes nothing.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }

    /// Reads until the server has said this.
    pub(super) fn until(&mut self, what: &str) {
        let time_max = Some(Duration::from_secs(20));
        self.socket.set_read_timeout(time_max).unwrap();
        while !self.seen.iter().any(|seen| seen == what) {
            assert!(self.receive().unwrap() > 0, "{what}: {:?}", self.seen);
        }
    }

    fn receive(&mut self) -> std::io::Result<usize> {
        let mut bytes = [0; 16 * 1024];
        let len = self.socket.read(&mut bytes)?;
        self.unread.extend_from_slice(&bytes[..len]);
        self.take_records();
        Ok(len)
    }

    /// All that the server says until it closes, in words.
    pub(super) fn outcome(mut self) -> String {
        // A server that is quiet so long is told that no more comes.
        let quiet = Some(Duration::from_millis(1500));
        self.socket.set_read_timeout(quiet).unwrap();
        let mut end = "closed";
        loop {
            match self.receive() {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && end == "closed" => {
                    end = "waits";
                    let _ = self.socket.shutdown(Shutdown::Write);
                    let time_max = Some(Duration::from_secs(20));
                    self.socket.set_read_timeout(time_max).unwrap();
                }
                // Reset, with something of ours unread.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("{error}: {:?}", self.seen),
            }
        }
        // Behind an answer it may only say that nothing follows.
        if self.is_answered {
            self.seen.retain(|seen| seen != "warning close_notify");
        } else {
            self.seen.push(end.to_owned());
        }
        self.seen.join(", ")
    }

    fn take_records(&mut self) {
        while let Some(first) = self.unread.first() {
            if !(20..=23).contains(first) {
                let text = std::mem::take(&mut self.unread);
                self.clear.extend(text);
                let clear = std::mem::take(&mut self.clear);
                self.answer(&clear, " in clear");
                self.clear = clear;
                return;
            }
            let Some(Ok(header)) = RecordHeader::parse(&self.unread) else {
                return;
            };
            if self.unread.len() < HEADER_BYTES + header.len {
                return;
            }
            let mut body: Vec<u8> = self.unread.drain(..HEADER_BYTES + header.len).collect();
            body.drain(..HEADER_BYTES);
            self.take_record(header, body);
        }
    }

    fn take_record(&mut self, header: RecordHeader, mut body: Vec<u8>) {
        let is_sealed =
            self.version == Version::Tls12 || header.content_type == ContentType::ApplicationData;
        let mut kind = header.content_type;
        if let Some(opener) = self.opener.as_mut().filter(|_| is_sealed) {
            let opened = opener.open(header, &mut body).unwrap();
            kind = opened.content_type;
            body = body[opened.start..opened.start + opened.len].to_vec();
        }
        match kind {
            ContentType::Alert => self.seen.push(alert(&body)),
            ContentType::ApplicationData if self.opener.is_some() => self.answer(&body, ""),
            // In the first flight a ServerHello, which may ask for another ClientHello (RFC 8446 4.1.3).
            ContentType::Handshake if self.opener.is_none() && body[0] == 2 => {
                let is_retry = body[6..10] == [0xcf, 0x21, 0xad, 0x74];
                let what = if is_retry {
                    "HelloRetryRequest"
                } else {
                    "ServerHello"
                };
                self.seen.push(what.to_owned());
            }
            _ => {}
        }
    }

    /// Content of an answer of HTTP.
    fn answer(&mut self, bytes: &[u8], how: &str) {
        if !self.is_answered && !bytes.is_empty() {
            let text = String::from_utf8_lossy(bytes);
            let status = text.split(' ').nth(1);
            let words = match status {
                Some(status) if text.starts_with("HTTP/") => format!("answer {status}{how}"),
                _ => format!("an answer without a status{how}"),
            };
            self.seen.push(words);
            self.is_answered = true;
        }
    }
}

/// An alert in the words of RFC 8446 6.
fn alert(body: &[u8]) -> String {
    let level = if body[0] == 1 { "warning" } else { "fatal" };
    let description = match body[1] {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        22 => "record_overflow",
        40 => "handshake_failure",
        42 => "bad_certificate",
        45 => "certificate_expired",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        50 => "decode_error",
        51 => "decrypt_error",
        70 => "protocol_version",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        100 => "no_renegotiation",
        109 => "missing_extension",
        112 => "unrecognized_name",
        116 => "certificate_required",
        120 => "no_application_protocol",
        other => return format!("{level} {other}"),
    };
    format!("{level} {description}")
}

fn written(client: &mut ClientConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut bytes).unwrap();
    }
    bytes
}

/// ChaCha20-Poly1305 alone, whose keys are made of bytes.
fn config(version: Version, identity: Option<&Path>, secrets: &Arc<Secrets>) -> ClientConfig {
    let (suite, version) = match version {
        Version::Tls13 => (
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            &rustls::version::TLS13,
        ),
        Version::Tls12 => (
            cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            &rustls::version::TLS12,
        ),
    };
    let provider = CryptoProvider {
        cipher_suites: vec![suite],
        // The second one is that of certificates, which OpenSSL wants to see offered in TLS 1.2.
        kx_groups: vec![aws_lc_rs::kx_group::X25519, aws_lc_rs::kx_group::SECP256R1],
        ..aws_lc_rs::default_provider()
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting));
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let certificate = CertificateDer::from_pem_file(path.with_extension("pem")).unwrap();
            let key = PrivateKeyDer::from_pem_file(path.with_extension("key")).unwrap();
            builder
                .with_client_auth_cert(vec![certificate], key)
                .unwrap()
        }
    };
    config.cert_compressors.clear();
    config.cert_decompressors.clear();
    config.enable_secret_extraction = true;
    let log: Arc<Secrets> = Arc::clone(secrets);
    config.key_log = log;
    config
}

/// The secret of the client's handshake messages.
#[derive(Debug, Default)]
struct Secrets(Mutex<Vec<u8>>);

impl KeyLog for Secrets {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        if label == "CLIENT_HANDSHAKE_TRAFFIC_SECRET" {
            *self.0.lock().unwrap() = secret.to_vec();
        }
    }
}

impl Secrets {
    /// The records of a flight, opened.
    fn open(&self, mut bytes: Vec<u8>, version: Version) -> Flight {
        let mut records = Vec::new();
        let mut opener = (version == Version::Tls13).then(|| {
            let keys = Opener::new(self.keys(), Version::Tls13);
            keys.unwrap()
        });
        let mut rest = bytes.as_mut_slice();
        while let Some(Ok(header)) = RecordHeader::parse(rest) {
            let (record, behind) = rest.split_at_mut(HEADER_BYTES + header.len);
            rest = behind;
            let body = &mut record[HEADER_BYTES..];
            match &mut opener {
                Some(opener) if header.content_type == ContentType::ApplicationData => {
                    let opened = opener.open(header, body).unwrap();
                    let mut content = &body[opened.start..opened.start + opened.len];
                    // A message a record.
                    while let [_, 0, high, low, ..] = *content {
                        let len = 4 + usize::from(u16::from_be_bytes([high, low]));
                        records.push((opened.content_type.byte(), content[..len].to_vec()));
                        content = &content[len..];
                    }
                }
                _ => records.push((header.content_type.byte(), body.to_vec())),
            }
        }
        let sealer = opener
            .is_some()
            .then(|| Sealer::new(self.keys(), Version::Tls13).unwrap());
        Flight { records, sealer }
    }

    fn keys(&self) -> (u64, ConnectionTrafficSecrets) {
        let secret = Prk::new_less_safe(HKDF_SHA256, &self.0.lock().unwrap());
        let mut key = [0; 32];
        let mut iv = [0; 12];
        expand(&secret, "key", &mut key);
        expand(&secret, "iv", &mut iv);
        let (key, iv) = (cipher::AeadKey::from(key), cipher::Iv::new(iv));
        (0, ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv })
    }
}

/// HKDF-Expand-Label without a context (RFC 8446 7.1).
fn expand(secret: &Prk, label: &str, out: &mut [u8]) {
    struct Len(usize);
    impl KeyType for Len {
        fn len(&self) -> usize {
            self.0
        }
    }
    let len = u16::try_from(out.len()).unwrap().to_be_bytes();
    let label = super::hello::short(format!("tls13 {label}").as_bytes());
    let parts = [&len[..], &label, &[0]];
    let key = secret.expand(&parts, Len(out.len())).unwrap();
    key.fill(out).unwrap();
}

#[derive(Debug)]
struct Trusting;

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let all = aws_lc_rs::default_provider().signature_verification_algorithms;
        all.supported_schemes()
    }
}
