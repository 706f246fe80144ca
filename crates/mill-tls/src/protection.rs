//! Protection of records: sealing and opening with the keys of one direction (RFC 8446 5.2, RFC 5246 6.2.3.3, RFC 7905).

use crate::alert::AlertDescription;
use crate::record::{ContentType, HEADER_BYTES, PLAIN_BYTES_MAX, RecordHeader};
use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey,
};
use rustls::ConnectionTrafficSecrets;
use std::fmt;

/// Keys of one direction and the number of the next record.
struct Keys {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    sequence: u64,
    layout: Layout,
}

/// How a record is made of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// TLS 1.3: the content type stands behind the plaintext.
    Tls13,
    /// TLS 1.2 with AES-GCM: eight bytes of the nonce stand before the ciphertext.
    Tls12Gcm,
    /// TLS 1.2 with ChaCha20-Poly1305.
    Tls12ChaCha,
}

/// The version that a handshake has agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Tls12,
    Tls13,
}

/// Opens records of the peer, in order.
#[derive(Debug)]
pub struct Opener(Keys);

/// Seals records for the peer, in order.
#[derive(Debug)]
pub struct Sealer(Keys);

/// A record that was opened in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    pub content_type: ContentType,
    /// Bytes of the record's body before the plaintext.
    pub start: usize,
    /// Bytes of plaintext.
    pub len: usize,
}

impl Opener {
    /// Keys as rustls gives them, for the record with this number and those behind it.
    pub fn new(
        (sequence, secrets): (u64, ConnectionTrafficSecrets),
        version: Version,
    ) -> Option<Self> {
        Keys::new(sequence, &secrets, version).map(Self)
    }

    /// Decrypts the body of a record in place. Costs no allocation. The error is the alert that the peer is to get.
    pub fn open(
        &mut self,
        header: RecordHeader,
        body: &mut [u8],
    ) -> Result<Opened, AlertDescription> {
        let keys = &mut self.0;
        if keys.layout == Layout::Tls13 && header.content_type != ContentType::ApplicationData {
            return Err(AlertDescription::UnexpectedMessage);
        }
        let start = keys.layout.explicit_nonce_bytes();
        let overhead = start + keys.layout.inner_type_bytes() + TAG_BYTES;
        let Some(len) = body.len().checked_sub(overhead) else {
            return Err(AlertDescription::BadRecordMac);
        };
        if keys.layout == Layout::Tls13 && body.len() > TLS13_BODY_BYTES_MAX {
            return Err(AlertDescription::RecordOverflow);
        }
        let nonce = keys.opening_nonce(body)?;
        let sealed = body.get_mut(start..).unwrap_or_default();
        let opened = match keys.layout {
            Layout::Tls13 => keys
                .key
                .open_in_place(nonce, Aad::from(header.emit()), sealed),
            Layout::Tls12Gcm | Layout::Tls12ChaCha => {
                let aad = Aad::from(keys.tls12_aad(header.content_type, len));
                keys.key.open_in_place(nonce, aad, sealed)
            }
        };
        let Ok(plain) = opened else {
            return Err(AlertDescription::BadRecordMac);
        };
        let (content_type, len) = match keys.layout {
            // RFC 8446 5.4: with its type and padding.
            Layout::Tls13 if plain.len() > PLAIN_BYTES_MAX + 1 => {
                return Err(AlertDescription::RecordOverflow);
            }
            Layout::Tls13 => inner_type(plain)?,
            Layout::Tls12Gcm | Layout::Tls12ChaCha => (header.content_type, plain.len()),
        };
        if len > PLAIN_BYTES_MAX {
            return Err(AlertDescription::RecordOverflow);
        }
        keys.advance()?;
        Ok(Opened {
            content_type,
            start,
            len,
        })
    }
}

impl Sealer {
    /// As [`Opener::new`].
    pub fn new(
        (sequence, secrets): (u64, ConnectionTrafficSecrets),
        version: Version,
    ) -> Option<Self> {
        Keys::new(sequence, &secrets, version).map(Self)
    }

    /// Bytes of a record with this much plaintext.
    pub fn record_bytes(&self, plain_bytes: usize) -> usize {
        let layout = self.0.layout;
        HEADER_BYTES
            + layout.explicit_nonce_bytes()
            + plain_bytes
            + layout.inner_type_bytes()
            + TAG_BYTES
    }

    /// Writes a record of this plaintext at the beginning of `out` and returns its bytes. Costs no allocation and no
    /// copy. `None`: `out` is too small, the plaintext too long, or the keys are used up; nothing may be sent any more.
    pub fn seal(
        &mut self,
        content_type: ContentType,
        plain: &[u8],
        out: &mut [u8],
    ) -> Option<usize> {
        if plain.len() > PLAIN_BYTES_MAX {
            return None;
        }
        let total = self.record_bytes(plain.len());
        let keys = &mut self.0;
        let out = out.get_mut(..total)?;
        let (head, body) = out.split_at_mut_checked(HEADER_BYTES)?;
        let outer_type = match keys.layout {
            Layout::Tls13 => ContentType::ApplicationData,
            Layout::Tls12Gcm | Layout::Tls12ChaCha => content_type,
        };
        let header = RecordHeader {
            content_type: outer_type,
            len: total - HEADER_BYTES,
        };
        head.copy_from_slice(&header.emit());
        let nonce = keys.nonce();
        let (explicit, rest) = body.split_at_mut_checked(keys.layout.explicit_nonce_bytes())?;
        explicit.copy_from_slice(nonce.get(NONCE_LEN - explicit.len()..)?);
        let (sealed, behind) = rest.split_at_mut_checked(plain.len())?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let inner_type = [content_type.byte()];
        let result = match keys.layout {
            Layout::Tls13 => keys.key.seal_out_of_place_scatter(
                nonce,
                Aad::from(header.emit()),
                plain,
                sealed,
                &inner_type,
                behind,
            ),
            Layout::Tls12Gcm | Layout::Tls12ChaCha => {
                let aad = Aad::from(keys.tls12_aad(content_type, plain.len()));
                keys.key
                    .seal_out_of_place_scatter(nonce, aad, plain, sealed, &[], behind)
            }
        };
        result.ok()?;
        keys.advance().ok()?;
        Some(total)
    }

    /// Whether these keys have sealed as many records as they may (RFC 8446 5.5); in TLS 1.3 new ones are due.
    pub fn is_used_up(&self) -> bool {
        self.0.sequence >= RECORDS_MAX
    }
}

impl Keys {
    fn new(sequence: u64, secrets: &ConnectionTrafficSecrets, version: Version) -> Option<Self> {
        let is_tls12 = version == Version::Tls12;
        let (algorithm, key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => return None,
        };
        let is_gcm = !matches!(secrets, ConnectionTrafficSecrets::Chacha20Poly1305 { .. });
        let layout = match (is_tls12, is_gcm) {
            (false, _) => Layout::Tls13,
            (true, true) => Layout::Tls12Gcm,
            (true, false) => Layout::Tls12ChaCha,
        };
        Some(Self {
            key: LessSafeKey::new(UnboundKey::new(algorithm, key.as_ref()).ok()?),
            iv: iv.as_ref().try_into().ok()?,
            sequence,
            layout,
        })
    }

    /// The nonce of the next record: its number over the end of the initialization vector. TLS 1.2 leaves open how the explicit
    /// part of AES-GCM's is made; a number is never used twice (RFC 5288 3).
    fn nonce(&self) -> [u8; NONCE_LEN] {
        let mut nonce = self.iv;
        for (byte, number) in nonce.iter_mut().skip(4).zip(self.sequence.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    /// The nonce of a record that the peer has sealed, which in TLS 1.2 says a part of it.
    fn opening_nonce(&self, body: &[u8]) -> Result<Nonce, AlertDescription> {
        let mut nonce = self.nonce();
        if self.layout == Layout::Tls12Gcm {
            nonce = self.iv;
            let explicit = body
                .first_chunk::<8>()
                .ok_or(AlertDescription::BadRecordMac)?;
            for (byte, said) in nonce.iter_mut().skip(4).zip(explicit) {
                *byte = *said;
            }
        }
        Ok(Nonce::assume_unique_for_key(nonce))
    }

    fn tls12_aad(&self, content_type: ContentType, len: usize) -> [u8; 13] {
        let mut aad = [0; 13];
        let header = RecordHeader { content_type, len }.emit();
        for (byte, value) in aad
            .iter_mut()
            .zip(self.sequence.to_be_bytes().into_iter().chain(header))
        {
            *byte = value;
        }
        aad
    }

    /// A number that comes round again would use a nonce twice.
    fn advance(&mut self) -> Result<(), AlertDescription> {
        self.sequence = (self.sequence.checked_add(1)).ok_or(AlertDescription::InternalError)?;
        Ok(())
    }
}

impl fmt::Debug for Keys {
    /// Without the key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}, record {}", self.layout, self.sequence)
    }
}

impl Layout {
    const fn explicit_nonce_bytes(self) -> usize {
        match self {
            Self::Tls12Gcm => 8,
            Self::Tls13 | Self::Tls12ChaCha => 0,
        }
    }

    const fn inner_type_bytes(self) -> usize {
        match self {
            Self::Tls13 => 1,
            Self::Tls12Gcm | Self::Tls12ChaCha => 0,
        }
    }
}

/// The last byte that is not padding is the content type (RFC 8446 5.2).
fn inner_type(plain: &[u8]) -> Result<(ContentType, usize), AlertDescription> {
    let len = plain.iter().rposition(|byte| *byte != 0);
    let len = len.ok_or(AlertDescription::UnexpectedMessage)?;
    let content_type = plain.get(len).copied().and_then(ContentType::from_byte);
    Ok((
        content_type.ok_or(AlertDescription::UnexpectedMessage)?,
        len,
    ))
}

/// All ciphers of TLS 1.3, and those of TLS 1.2 that are taken here, have tags of this length.
pub const TAG_BYTES: usize = 16;

/// Records under one key of AES-GCM: 2^24.5 keep the chance of an attack below 2^-57 (RFC 8446 5.5).
const RECORDS_MAX: u64 = 1 << 24;

/// The body of a record of TLS 1.3 at most (RFC 8446 5.2).
const TLS13_BODY_BYTES_MAX: usize = PLAIN_BYTES_MAX + 256;

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::cipher::{AeadKey, Iv};

    fn secrets() -> ConnectionTrafficSecrets {
        ConnectionTrafficSecrets::Chacha20Poly1305 {
            key: AeadKey::from([1; 32]),
            iv: Iv::from([2; NONCE_LEN]),
        }
    }

    #[test]
    fn a_record_is_as_long_as_tls_1_3_allows_at_most() {
        for (content, padding, is_taken) in [
            (PLAIN_BYTES_MAX, 0, true),
            (PLAIN_BYTES_MAX - 1, 1, true),
            (PLAIN_BYTES_MAX, 1, false),
            (100, PLAIN_BYTES_MAX - 100, true),
            (100, PLAIN_BYTES_MAX - 99, false),
            (100, PLAIN_BYTES_MAX + 256, false),
        ] {
            let keys = Keys::new(0, &secrets(), Version::Tls13).unwrap();
            let mut body = vec![b'a'; content];
            body.push(ContentType::ApplicationData.byte());
            body.resize(body.len() + padding, 0);
            let header = RecordHeader {
                content_type: ContentType::ApplicationData,
                len: body.len() + TAG_BYTES,
            };
            let nonce = Nonce::assume_unique_for_key(keys.nonce());
            let aad = Aad::from(header.emit());
            (keys.key)
                .seal_in_place_append_tag(nonce, aad, &mut body)
                .unwrap();
            let mut opener = Opener::new((0, secrets()), Version::Tls13).unwrap();
            let opened = opener.open(header, &mut body);
            let expected = match is_taken {
                true => Ok(content),
                false => Err(AlertDescription::RecordOverflow),
            };
            assert_eq!(
                opened.map(|opened| opened.len),
                expected,
                "{content} {padding}"
            );
        }
    }

    #[test]
    fn keys_seal_so_many_records_and_are_used_up() {
        let mut sealer = Sealer::new((RECORDS_MAX - 1, secrets()), Version::Tls13).unwrap();
        assert!(!sealer.is_used_up());
        sealer
            .seal(ContentType::ApplicationData, b"a", &mut [0; 100])
            .unwrap();
        assert!(sealer.is_used_up());
    }
}
