//! Session tickets (RFC 5077, RFC 8446 4.6.1): sealed sessions that clients keep.
//!
//! A ticket is the name of its key, a nonce, and under AES-256-GCM the second at which it was made with what rustls wants to
//! remember. It is taken until its lifetime is over.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use aws_lc_rs::rand;
use rustls::pki_types::UnixTime;
use rustls::server::ProducesTickets;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The keys of tickets and how long a ticket is good for.
pub(crate) struct Tickets {
    pub(crate) keys: TicketKeys,
    /// Seconds.
    pub(crate) lifetime: u32,
}

/// Where keys come from; shared by all workers.
#[derive(Clone)]
pub(crate) enum TicketKeys {
    /// Of files, so that other servers have them too: the first one seals, all open.
    Given(Arc<[Key]>),
    /// Our own, which change by themselves.
    Changing(Arc<Mutex<Changing>>),
}

/// What keys are made from that change by themselves: all processes with the same secret have the same keys, so a ticket of
/// one binary opens in the one that replaces it.
#[derive(Clone)]
pub struct TicketSecret([u8; SECRET_BYTES]);

/// A key that serves for a period of the clock; the one before it still opens.
pub(crate) struct Changing {
    secret: TicketSecret,
    /// Seconds.
    period: u64,
    /// The number of the current one's period since 1970.
    number: u64,
    current: Key,
    previous: Key,
}

pub(crate) struct Key {
    name: [u8; NAME_BYTES],
    aead: LessSafeKey,
}

/// The contents of a file of `ssl_session_ticket_key`: 48 or 80 bytes, of which the first 16 are the key's name.
pub fn is_ticket_key(file: &[u8]) -> bool {
    matches!(file.len(), 48 | 80)
}

impl Key {
    /// Of a file. The bytes behind the name are nginx's keys for a cipher and a hash; the key here is made from both.
    pub(crate) fn of_file(file: &[u8]) -> Option<Self> {
        let name = *file.first_chunk::<NAME_BYTES>()?;
        is_ticket_key(file).then_some(())?;
        let secret = digest::digest(&digest::SHA256, file);
        Self::new(name, secret.as_ref())
    }

    fn new(name: [u8; NAME_BYTES], secret: &[u8]) -> Option<Self> {
        let key = UnboundKey::new(&AES_256_GCM, secret).ok()?;
        let aead = LessSafeKey::new(key);
        Some(Self { name, aead })
    }

    fn seal(&self, now: u64, plain: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let mut body = now.to_be_bytes().to_vec();
        body.extend_from_slice(plain);
        let sealing = Nonce::assume_unique_for_key(nonce);
        (self.aead)
            .seal_in_place_append_tag(sealing, Aad::from(self.name), &mut body)
            .ok()?;
        Some([&self.name[..], &nonce, &body].concat())
    }

    /// The second at which it was made, and what it holds.
    fn open(&self, ticket: &[u8]) -> Option<(u64, Vec<u8>)> {
        let (name, rest) = ticket.split_first_chunk::<NAME_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        (*name == self.name).then_some(())?;
        let mut body = sealed.to_vec();
        let opening = Nonce::assume_unique_for_key(*nonce);
        let plain = self
            .aead
            .open_in_place(opening, Aad::from(self.name), &mut body);
        let (made, plain) = plain.ok()?.split_first_chunk::<8>()?;
        Some((u64::from_be_bytes(*made), plain.to_vec()))
    }
}

impl TicketSecret {
    /// `None` without randomness.
    pub fn random() -> Option<Self> {
        let mut bytes = [0; SECRET_BYTES];
        rand::fill(&mut bytes).ok()?;
        Some(Self(bytes))
    }

    pub const fn of(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    /// Of a text of any length.
    pub(crate) fn of_text(text: &[u8]) -> Self {
        let digest = digest::digest(&digest::SHA256, text);
        let mut bytes = [0; SECRET_BYTES];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }

    pub const fn bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }

    /// The key of a period, by HKDF (RFC 5869).
    fn key(&self, period: u64, number: u64) -> Option<Key> {
        let mut made = [0; NAME_BYTES + SECRET_BYTES];
        let (period, number) = (period.to_be_bytes(), number.to_be_bytes());
        let info = [&b"session tickets"[..], &period, &number];
        (Salt::new(HKDF_SHA256, b"millstream").extract(&self.0))
            .expand(&info, Length(made.len()))
            .and_then(|material| material.fill(&mut made))
            .ok()?;
        let (name, secret) = made.split_first_chunk::<NAME_BYTES>()?;
        Key::new(*name, secret)
    }
}

/// Bytes of key material.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl fmt::Debug for TicketSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TicketSecret")
    }
}

impl TicketKeys {
    /// Keys that change; `None` if aws-lc refuses to make one.
    pub(crate) fn changing(secret: &TicketSecret, lifetime: u32) -> Option<Self> {
        let period = u64::from(lifetime).max(PERIOD_MIN);
        let changing = Changing::at(secret, period, UnixTime::now().as_secs() / period)?;
        Some(Self::Changing(Arc::new(Mutex::new(changing))))
    }
}

impl Changing {
    fn at(secret: &TicketSecret, period: u64, number: u64) -> Option<Self> {
        Some(Self {
            secret: secret.clone(),
            period,
            number,
            current: secret.key(period, number)?,
            previous: secret.key(period, number.wrapping_sub(1))?,
        })
    }

    fn change_when_due(&mut self, now: u64) {
        let number = now / self.period;
        if number != self.number
            && let Some(changed) = Self::at(&self.secret, self.period, number)
        {
            *self = changed;
        }
    }
}

impl Tickets {
    fn seal(&self, now: u64, plain: &[u8]) -> Option<Vec<u8>> {
        match &self.keys {
            TicketKeys::Given(keys) => keys.first()?.seal(now, plain),
            TicketKeys::Changing(changing) => {
                let mut changing = changing.lock().unwrap_or_else(PoisonError::into_inner);
                changing.change_when_due(now);
                changing.current.seal(now, plain)
            }
        }
    }

    fn open(&self, now: u64, ticket: &[u8]) -> Option<Vec<u8>> {
        let (made, plain) = match &self.keys {
            TicketKeys::Given(keys) => keys.iter().find_map(|key| key.open(ticket))?,
            TicketKeys::Changing(changing) => {
                let mut changing = changing.lock().unwrap_or_else(PoisonError::into_inner);
                changing.change_when_due(now);
                let all = [&changing.current, &changing.previous];
                all.into_iter().find_map(|key| key.open(ticket))?
            }
        };
        (now <= made.saturating_add(self.lifetime.into())).then_some(plain)
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        // RFC 8446 4.6.1: a week at most.
        self.lifetime.min(7 * 24 * 3600)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(UnixTime::now().as_secs(), plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.open(UnixTime::now().as_secs(), ticket)
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Tickets({} s)", self.lifetime)
    }
}

const NAME_BYTES: usize = 16;

/// Of [`TicketSecret`].
pub const SECRET_BYTES: usize = 32;

/// A key serves at least so many seconds.
const PERIOD_MIN: u64 = 3600;

#[cfg(test)]
mod tests {
    use super::*;

    fn given(files: &[[u8; 80]]) -> Tickets {
        let keys: Vec<Key> = files
            .iter()
            .map(|file| Key::of_file(file).unwrap())
            .collect();
        Tickets {
            keys: TicketKeys::Given(keys.into()),
            lifetime: 300,
        }
    }

    #[test]
    fn a_ticket_is_good_for_its_lifetime() {
        let tickets = given(&[[1; 80]]);
        let ticket = tickets.seal(1000, b"session").unwrap();
        assert_eq!(
            tickets.open(1300, &ticket).as_deref(),
            Some(&b"session"[..])
        );
        assert_eq!(tickets.open(1301, &ticket), None);
    }

    #[test]
    fn another_server_with_the_same_file_opens_it_also_as_its_second_key() {
        let ticket = given(&[[1; 80]]).seal(1000, b"session").unwrap();
        assert!(given(&[[2; 80], [1; 80]]).open(1000, &ticket).is_some());
        assert!(given(&[[2; 80]]).open(1000, &ticket).is_none());
    }

    #[test]
    fn no_changed_bit_opens() {
        let tickets = given(&[[1; 80]]);
        let ticket = tickets.seal(1000, b"session").unwrap();
        for place in 0..ticket.len() * 8 {
            let mut changed = ticket.clone();
            changed[place / 8] ^= 1 << (place % 8);
            assert_eq!(tickets.open(1000, &changed), None, "bit {place}");
        }
        for len in 0..ticket.len() {
            assert_eq!(tickets.open(1000, &ticket[..len]), None, "{len} bytes");
        }
    }

    fn changing(secret: u8, now: u64) -> Tickets {
        let changing = Changing::at(&TicketSecret::of([secret; SECRET_BYTES]), 5000, now / 5000);
        Tickets {
            keys: TicketKeys::Changing(Arc::new(Mutex::new(changing.unwrap()))),
            lifetime: 5000,
        }
    }

    #[test]
    fn a_key_changes_and_the_one_before_opens_for_a_period() {
        let tickets = changing(1, 10_000);
        let ticket = tickets.seal(12_000, b"session").unwrap();
        let newer = tickets.seal(15_000, b"session").unwrap();
        assert_ne!(ticket[..NAME_BYTES], newer[..NAME_BYTES]);
        assert!(tickets.open(16_000, &ticket).is_some());
        // Its own time is over before its key's.
        assert!(tickets.open(17_001, &ticket).is_none());
        let last = tickets.seal(14_999, b"session").unwrap();
        assert!(tickets.open(19_999, &last).is_some());
        assert!(tickets.open(20_000, &last).is_none());
    }

    #[test]
    fn processes_with_the_same_secret_open_each_others_tickets() {
        let ticket = changing(1, 10_000).seal(10_000, b"session").unwrap();
        assert!(changing(1, 12_000).open(12_000, &ticket).is_some());
        assert!(changing(2, 12_000).open(12_000, &ticket).is_none());
    }
}
