//! Sessions that the server keeps: for clients without tickets, or where tickets are off.

use rustls::pki_types::UnixTime;
use rustls::server::StoresServerSessions;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A zone of sessions, shared by all workers and all servers that name it. The oldest ones make room.
#[derive(Clone)]
pub(crate) struct SessionZone(Arc<Mutex<Kept>>);

struct Kept {
    sessions: BTreeMap<Vec<u8>, (u64, Vec<u8>)>,
    /// From the oldest to the newest; names of sessions that were taken stand here until they would be the oldest.
    order: VecDeque<Vec<u8>>,
    capacity: usize,
}

/// A zone with the time for which its sessions are good.
pub(crate) struct SessionCache {
    pub(crate) zone: SessionZone,
    /// Seconds.
    pub(crate) lifetime: u32,
}

impl SessionZone {
    /// With room for the sessions that nginx has room for in so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(Kept {
            sessions: BTreeMap::new(),
            order: VecDeque::new(),
            capacity: (bytes / SESSION_BYTES).max(1),
        })))
    }

    /// Gives it another size; what it holds stays.
    pub(crate) fn resize(&self, bytes: usize) {
        let mut kept = self.lock();
        kept.capacity = (bytes / SESSION_BYTES).max(1);
        kept.make_room(0);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn make_room(&mut self, new: usize) {
        while self.order.len() + new > self.capacity {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            self.sessions.remove(&oldest);
        }
    }
}

impl SessionCache {
    fn put_at(&self, now: u64, key: Vec<u8>, value: Vec<u8>) {
        let mut kept = self.zone.lock();
        kept.make_room(1);
        if kept.sessions.insert(key.clone(), (now, value)).is_none() {
            kept.order.push_back(key);
        }
    }

    fn is_good(&self, now: u64, made: u64) -> bool {
        now <= made.saturating_add(self.lifetime.into())
    }
}

impl StoresServerSessions for SessionCache {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.put_at(UnixTime::now().as_secs(), key, value);
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let kept = self.zone.lock();
        let (made, value) = kept.sessions.get(key)?;
        self.is_good(UnixTime::now().as_secs(), *made)
            .then(|| value.clone())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let (made, value) = self.zone.lock().sessions.remove(key)?;
        self.is_good(UnixTime::now().as_secs(), made)
            .then_some(value)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl fmt::Debug for SessionCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SessionCache({} s)", self.lifetime)
    }
}

/// nginx says that a megabyte is enough for about 4000 sessions.
const SESSION_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(bytes: usize, lifetime: u32) -> SessionCache {
        SessionCache {
            zone: SessionZone::new(bytes),
            lifetime,
        }
    }

    #[test]
    fn the_oldest_makes_room() {
        let cache = cache(2 * SESSION_BYTES, 300);
        for name in [b"a", b"b", b"c"] {
            cache.put(name.to_vec(), name.to_vec());
        }
        assert_eq!(cache.get(b"a"), None);
        assert_eq!(cache.get(b"b").as_deref(), Some(&b"b"[..]));
        assert_eq!(cache.take(b"c").as_deref(), Some(&b"c"[..]));
        assert_eq!(cache.take(b"c"), None);
        for number in 0..100_u8 {
            cache.put(vec![number], vec![number]);
            cache.take(&[number]);
        }
        let kept = cache.zone.lock();
        assert!(kept.order.len() <= 2 && kept.sessions.len() <= 2);
    }

    #[test]
    fn a_session_is_good_for_its_lifetime() {
        let cache = cache(10 * SESSION_BYTES, 300);
        let now = UnixTime::now().as_secs();
        cache.put_at(now - 301, b"old".to_vec(), Vec::new());
        cache.put_at(now - 200, b"new".to_vec(), Vec::new());
        assert_eq!(cache.get(b"old"), None);
        assert!(cache.get(b"new").is_some());
    }

    #[test]
    fn a_smaller_zone_forgets_its_oldest() {
        let cache = cache(10 * SESSION_BYTES, 300);
        for number in 0..10_u8 {
            cache.put(vec![number], Vec::new());
        }
        cache.zone.resize(SESSION_BYTES);
        assert_eq!(cache.get(&[8]), None);
        assert!(cache.get(&[9]).is_some());
    }
}
