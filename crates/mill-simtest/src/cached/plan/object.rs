//! What origins have: targets whose content and leave to be stored change with time.

use super::index;
use mill_runtime::time::Duration;
use mill_sim::random::Random;

/// A target. Its version counts up with time, and with each change by a client.
#[derive(Clone, Debug)]
pub struct ObjectPlan {
    pub target: String,
    /// What its versions say of themselves, in turn.
    pub leaves: Vec<Leave>,
    /// It is another one for each value of `X-V`.
    pub varies: bool,
    /// Bytes of content of its longest version.
    pub len_max: usize,
    /// A version lasts so long.
    pub period: Duration,
    pub has_etag: bool,
    pub has_last_modified: bool,
    pub accepts_ranges: bool,
    /// Numbers of the tags in `Surrogate-Key`.
    pub tags: Vec<u64>,
    /// Its content comes slowly.
    pub is_slow: bool,
}

/// What an answer says of being stored; numbers are seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    MaxAge(u64),
    /// It is so old when it comes.
    Aged {
        lifetime: u64,
        age: u64,
    },
    SharedMaxAge(u64),
    /// `stale-while-revalidate` and `stale-if-error`.
    Stale {
        lifetime: u64,
        updating: u64,
        failing: u64,
    },
    MustRevalidate(u64),
    Expires(u64),
    AccelExpires(u64),
    Silent,
    NoCache,
    NoStore,
    Private,
    SetCookie,
    /// Only `Authorization` makes it one for a user alone.
    Guarded(u64),
}

impl ObjectPlan {
    pub(super) fn draw(number: usize, random: &mut Random) -> Self {
        let folder = if number.is_multiple_of(2) { 'a' } else { 'b' };
        let versions = 1 + random.up_to(2);
        Self {
            target: format!("/{folder}/{number}"),
            leaves: (0..versions).map(|_| Leave::draw(random)).collect(),
            varies: random.happens(250_000),
            len_max: random.one_of(&[10, 1_000, 20_000, 20_000, 200_000]),
            period: Duration::from_secs(random.one_of(&[1, 7, 20, 1_000])),
            has_etag: random.happens(600_000),
            has_last_modified: random.happens(400_000),
            accepts_ranges: random.happens(500_000),
            tags: (0..random.up_to(2)).map(|_| random.up_to(2)).collect(),
            is_slow: random.happens(250_000),
        }
    }

    /// What a version says of itself.
    pub fn leave(&self, version: u64) -> Leave {
        self.leaves[index(version % self.leaves.len() as u64)]
    }

    /// Bytes of content of a version.
    pub fn len(&self, version: u64, seed: u64) -> usize {
        let mut random = Random::new(seed ^ version.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        index(random.up_to(self.len_max as u64))
    }
}

impl Leave {
    fn draw(random: &mut Random) -> Self {
        let lifetime = random.one_of(&[1, 2, 5, 10, 60]);
        let stale = [0, 0, 3, 100];
        match random.up_to(15) {
            0..=2 => Self::MaxAge(lifetime),
            3 => Self::Aged {
                lifetime,
                age: 1 + random.up_to(lifetime),
            },
            4 => Self::SharedMaxAge(lifetime),
            5 | 6 => Self::Stale {
                lifetime,
                updating: random.one_of(&stale),
                failing: random.one_of(&stale),
            },
            7 => Self::MustRevalidate(lifetime),
            8 => Self::Expires(lifetime),
            9 => Self::AccelExpires(lifetime),
            10 | 11 => Self::Silent,
            12 => Self::NoCache,
            13 => random.one_of(&[Self::NoStore, Self::SetCookie]),
            14 => Self::Private,
            _ => Self::Guarded(lifetime),
        }
    }

    /// Whether an answer to a request with `Authorization`, or without, is for its user alone.
    pub const fn is_personal(self, has_authorization: bool) -> bool {
        match self {
            Self::Private | Self::NoStore | Self::SetCookie => true,
            Self::Guarded(_) => has_authorization,
            _ => false,
        }
    }

    /// Its field lines, in a world that has lasted for `elapsed`.
    pub fn fields(self, elapsed: Duration, follows_rfc: bool) -> String {
        let control = match self {
            Self::MaxAge(seconds) => format!("max-age={seconds}"),
            // nginx's rules do not know that `Authorization` makes an answer private.
            Self::Guarded(seconds) if follows_rfc => format!("max-age={seconds}"),
            Self::Guarded(_) => String::from("private, max-age=5"),
            Self::Aged { lifetime, age } => {
                return format!("Cache-Control: max-age={lifetime}\r\nAge: {age}\r\n");
            }
            Self::SharedMaxAge(seconds) => format!("s-maxage={seconds}, max-age=1"),
            Self::Stale {
                lifetime,
                updating,
                failing,
            } => format!(
                "max-age={lifetime}, stale-while-revalidate={updating}, stale-if-error={failing}"
            ),
            Self::MustRevalidate(seconds) => format!("max-age={seconds}, must-revalidate"),
            Self::Expires(seconds) => {
                let at = elapsed.as_secs() + seconds;
                let (hour, minute, second) = (at / 3600, at / 60 % 60, at % 60);
                return format!(
                    "Expires: Thu, 01 Jan 2026 {hour:02}:{minute:02}:{second:02} GMT\r\n"
                );
            }
            Self::AccelExpires(seconds) => return format!("X-Accel-Expires: {seconds}\r\n"),
            Self::Silent => return String::new(),
            Self::NoCache => String::from("no-cache"),
            Self::NoStore => String::from("no-store"),
            Self::Private => String::from("private, max-age=60"),
            Self::SetCookie if follows_rfc => {
                return String::from("Set-Cookie: a=b\r\nCache-Control: private\r\n");
            }
            Self::SetCookie => {
                return String::from("Set-Cookie: a=b\r\nCache-Control: max-age=9\r\n");
            }
        };
        format!("Cache-Control: {control}\r\n")
    }
}
