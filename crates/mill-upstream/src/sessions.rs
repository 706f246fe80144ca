//! The sessions of a group with `sticky learn`, shared by all workers: each names the server that it is bound to.

use crate::md5;
use mill_config::Text;
use mill_config::config::StickyLearn;
use mill_runtime::time::Instant;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sessions by the digests of their names. The one that was not used for longest makes room for a new one.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    sessions: BTreeMap<u128, Session>,
    /// The sessions by their last uses.
    by_use: BTreeMap<u64, u128>,
    uses: u64,
}

#[derive(Debug)]
struct Session {
    server: Text,
    used: Instant,
    /// Its key in `by_use`.
    last_use: u64,
}

impl Sessions {
    /// [`crate::peer::Peer::session_id`] of the server that a session is bound to.
    pub fn find(&self, name: &[u8], learn: &StickyLearn, now: Instant) -> Option<Text> {
        let table = self.lock();
        let session = table.sessions.get(&key(name))?;
        (!session.is_over(learn, now)).then(|| session.server.clone())
    }

    /// A request of a session was answered by this server: the session is bound to it from now on.
    pub fn bind(&self, name: &[u8], server: &Text, learn: &StickyLearn, now: Instant) {
        self.lock().bind(key(name), server, learn, now);
    }

    /// The same, unless there is no such session.
    pub fn bind_known(&self, name: &[u8], server: &Text, learn: &StickyLearn, now: Instant) {
        let (mut table, key) = (self.lock(), key(name));
        table.expire(learn, now);
        if table.sessions.contains_key(&key) {
            table.bind(key, server, learn, now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn bind(&mut self, key: u128, server: &Text, learn: &StickyLearn, now: Instant) {
        self.expire(learn, now);
        self.uses += 1;
        let session = Session {
            server: server.clone(),
            used: now,
            last_use: self.uses,
        };
        if let Some(former) = self.sessions.insert(key, session) {
            self.by_use.remove(&former.last_use);
        }
        self.by_use.insert(self.uses, key);
        while self.sessions.len() as u64 > learn.zone_bytes / SESSION_BYTES {
            self.remove_oldest();
        }
    }

    /// Forgets sessions that were not used for `timeout`.
    fn expire(&mut self, learn: &StickyLearn, now: Instant) {
        let is_over = |session: &Session| session.is_over(learn, now);
        while self.oldest().is_some_and(is_over) {
            self.remove_oldest();
        }
    }

    fn oldest(&self) -> Option<&Session> {
        let (_, key) = self.by_use.first_key_value()?;
        self.sessions.get(key)
    }

    fn remove_oldest(&mut self) {
        if let Some((_, key)) = self.by_use.pop_first() {
            self.sessions.remove(&key);
        }
    }
}

impl Session {
    fn is_over(&self, learn: &StickyLearn, now: Instant) -> bool {
        now.since(self.used) >= learn.timeout
    }
}

fn key(name: &[u8]) -> u128 {
    u128::from_be_bytes(md5::digest(name))
}

/// What a session takes of its zone, as nginx documents it: one megabyte holds about 4000. Both trees need less than that
/// for it, half empty too.
const SESSION_BYTES: u64 = 256;

const _: () = assert!(2 * (size_of::<Session>() + size_of::<u128>() * 2 + 8) <= 256);

#[cfg(test)]
mod tests {
    use super::{SESSION_BYTES, Sessions};
    use mill_config::Text;
    use mill_config::config::StickyLearn;
    use mill_runtime::time::{Duration, Instant};

    struct World {
        sessions: Sessions,
        learn: StickyLearn,
        now: Instant,
    }

    impl World {
        /// A zone of three sessions, which end ten seconds after their last use.
        fn new() -> Self {
            Self {
                sessions: Sessions::default(),
                learn: StickyLearn {
                    create: Vec::new(),
                    lookup: Vec::new(),
                    zone: Text::from("z"),
                    zone_bytes: 3 * SESSION_BYTES,
                    timeout: Duration::from_secs(10),
                    after_head: false,
                },
                now: Instant::from_nanos(1),
            }
        }

        fn bind(&self, name: &str, server: &str) {
            let server = Text::from(server);
            (self.sessions).bind(name.as_bytes(), &server, &self.learn, self.now);
        }

        fn check(&self, name: &str, server: Option<&str>) {
            let found = self.sessions.find(name.as_bytes(), &self.learn, self.now);
            assert_eq!(found, server.map(Text::from), "{name}");
        }

        fn wait(&mut self, seconds: u64) {
            self.now = self.now + Duration::from_secs(seconds);
        }
    }

    #[test]
    fn a_session_ends_when_it_was_not_used_for_its_time() {
        let mut world = World::new();
        world.bind("a", "1");
        world.wait(9);
        world.bind("a", "2");
        world.wait(9);
        world.check("a", Some("2"));
        world.wait(1);
        world.check("a", None);
        let server = Text::from("3");
        (world.sessions).bind_known(b"a", &server, &world.learn, world.now);
        world.check("a", None);
    }

    #[test]
    fn the_session_that_was_not_used_for_longest_makes_room() {
        let world = World::new();
        for name in ["a", "b", "c", "a", "d"] {
            world.bind(name, "1");
        }
        world.check("a", Some("1"));
        world.check("b", None);
        world.check("c", Some("1"));
        world.check("d", Some("1"));
    }

    #[test]
    fn what_is_no_session_is_not_bound() {
        let world = World::new();
        let server = Text::from("2");
        (world.sessions).bind_known(b"a", &server, &world.learn, world.now);
        world.check("a", None);
        world.bind("a", "1");
        (world.sessions).bind_known(b"a", &server, &world.learn, world.now);
        world.check("a", Some("2"));
    }
}
