//! ClientHellos byte by byte, and the records that carry them.

/// A ClientHello in its parts; [`Hello::default`] is one that every server takes.
#[derive(Clone)]
pub(super) struct Hello {
    pub(super) version: u16,
    pub(super) session_id: Vec<u8>,
    pub(super) ciphers: Vec<u16>,
    pub(super) compressions: Vec<u8>,
    pub(super) extensions: Vec<(u16, Vec<u8>)>,
}

pub(super) const SERVER_NAME: u16 = 0;
pub(super) const GROUPS: u16 = 10;
pub(super) const SIGNATURES: u16 = 13;
pub(super) const ALPN: u16 = 16;
pub(super) const PRE_SHARED_KEY: u16 = 41;
pub(super) const VERSIONS: u16 = 43;
pub(super) const KEY_SHARE: u16 = 51;

pub(super) const P256: u16 = 23;
pub(super) const X25519: u16 = 29;
pub(super) const X448: u16 = 30;

pub(super) const HANDSHAKE: u8 = 22;

impl Default for Hello {
    fn default() -> Self {
        Self {
            version: 0x0303,
            session_id: vec![5; 32],
            ciphers: vec![0x1301, 0xc02b],
            compressions: vec![0],
            extensions: vec![
                (SERVER_NAME, name("a.example")),
                // Points that are not compressed, and the extended master secret.
                (11, vec![1, 0]),
                (23, Vec::new()),
                (GROUPS, numbers16(&[X25519, P256])),
                (SIGNATURES, numbers16(&[0x0403, 0x0804])),
                (VERSIONS, versions(&[0x0304, 0x0303])),
                (KEY_SHARE, shares(&[(X25519, BASE_POINT.to_vec())])),
            ],
        }
    }
}

/// A public key of X25519 whose private key is 1, as far as any client's is secret in a test.
pub(super) const BASE_POINT: [u8; 32] = {
    let mut point = [0; 32];
    point[0] = 9;
    point
};

impl Hello {
    /// With another content of that extension, or without it.
    pub(super) fn with(mut self, kind: u16, content: Option<Vec<u8>>) -> Self {
        self.extensions.retain(|extension| extension.0 != kind);
        self.extensions
            .extend(content.map(|content| (kind, content)));
        self
    }

    /// A client of TLS 1.2 and before, which offers this version at most.
    pub(super) fn of_version(version: u16) -> Self {
        let mut hello = Self::default().with(VERSIONS, None).with(KEY_SHARE, None);
        hello.version = version;
        // With CBC, which versions before 1.2 have.
        hello.ciphers = vec![0xc02b, 0xc009, 0xc013, 0x002f];
        hello
    }

    pub(super) fn message(&self) -> Vec<u8> {
        let mut body = self.version.to_be_bytes().to_vec();
        body.extend([7; 32]);
        body.extend(short(&self.session_id));
        body.extend(numbers16(&self.ciphers));
        body.extend(short(&self.compressions));
        let mut extensions = Vec::new();
        for (kind, content) in &self.extensions {
            extensions.extend(kind.to_be_bytes());
            extensions.extend(long(content));
        }
        body.extend(long(&extensions));
        handshake(1, &body)
    }

    /// In one record.
    pub(super) fn record(&self) -> Vec<u8> {
        record(HANDSHAKE, &self.message())
    }
}

/// A handshake message.
pub(super) fn handshake(kind: u8, body: &[u8]) -> Vec<u8> {
    let [.., high, middle, low] = body.len().to_be_bytes();
    [&[kind, high, middle, low], body].concat()
}

/// A record in clear, with the version that first records say.
pub(super) fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 3, 1], &*long(body)].concat()
}

/// A record in clear behind the first flight.
pub(super) fn later(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3], &*long(body)].concat()
}

/// Behind its length in one byte.
pub(super) fn short(content: &[u8]) -> Vec<u8> {
    [&[u8::try_from(content.len()).unwrap()], content].concat()
}

/// Behind its length in two bytes.
pub(super) fn long(content: &[u8]) -> Vec<u8> {
    let len = u16::try_from(content.len()).unwrap();
    [&len.to_be_bytes(), content].concat()
}

pub(super) fn numbers16(numbers: &[u16]) -> Vec<u8> {
    let all: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
    long(&all)
}

pub(super) fn versions(numbers: &[u16]) -> Vec<u8> {
    let all: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
    short(&all)
}

pub(super) fn shares(shares: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let entries = shares.iter();
    let all = entries.flat_map(|(group, key)| [&group.to_be_bytes(), &*long(key)].concat());
    long(&all.collect::<Vec<u8>>())
}

/// The content of `server_name` with this name.
pub(super) fn name(name: &str) -> Vec<u8> {
    long(&[&[0], &*long(name.as_bytes())].concat())
}
