//! What clients ask.

use super::index;
use super::object::ObjectPlan;
use super::settings::ServingPlan;
use mill_runtime::time::Duration;
use mill_sim::random::Random;

/// Requests that a client makes one after the other, on one connection as long as it lasts; each a while after the answer to
/// the one before.
#[derive(Clone, Debug)]
pub struct TalkPlan {
    pub at: Duration,
    pub steps: Vec<(Duration, Ask)>,
}

/// A request.
#[derive(Clone, Debug)]
pub enum Ask {
    Get(Get),
    Purge(Purge),
    /// POST, by which the object becomes another one.
    Change {
        object: usize,
    },
}

/// GET or HEAD.
#[derive(Clone, Debug)]
pub struct Get {
    pub object: usize,
    /// The client's number.
    pub user: usize,
    /// The value of `X-V`.
    pub variant: u8,
    pub is_head: bool,
    pub is_authorized: bool,
    pub bypasses: bool,
    /// The first and the last byte that is asked for.
    pub range: Option<(usize, usize)>,
    /// With the validator that the client has seen last.
    pub is_conditional: bool,
    pub control: Option<Control>,
    /// The client leaves after so many bytes of content, maybe by RST.
    pub leaves: Option<(usize, bool)>,
    /// The client waits so long before it reads.
    pub pause: Duration,
}

/// `Cache-Control` of a request; numbers are seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    NoCache,
    NoStore,
    MaxAge(u64),
    MinFresh(u64),
    MaxStale(u64),
    OnlyIfCached,
}

/// A request that removes.
#[derive(Clone, Debug)]
pub enum Purge {
    Object(usize),
    /// All targets that begin as this one does, up to its number.
    FolderOf(usize),
    /// All with this tag that are in the same zone as this object.
    Tag(u64, usize),
}

impl Ask {
    pub(super) fn draw(
        user: usize,
        objects: &[ObjectPlan],
        serving: &ServingPlan,
        random: &mut Random,
    ) -> Self {
        let last = objects.len() as u64 - 1;
        // The first ones are asked for more often.
        let drawn = random.up_to(last);
        let object = index(random.up_to(drawn));
        match random.up_to(39) {
            0 => Self::Purge(Purge::Object(object)),
            1 => Self::Purge(Purge::FolderOf(object)),
            2 => Self::Purge(Purge::Tag(random.up_to(2), object)),
            3 => Self::Change { object },
            _ => Self::Get(Get::draw(user, object, &objects[object], serving, random)),
        }
    }

    /// The object that it names.
    pub const fn object(&self) -> usize {
        match self {
            Self::Get(get) => get.object,
            Self::Purge(
                Purge::Object(object) | Purge::FolderOf(object) | Purge::Tag(_, object),
            )
            | Self::Change { object } => *object,
        }
    }
}

impl Get {
    fn draw(
        user: usize,
        object: usize,
        plan: &ObjectPlan,
        serving: &ServingPlan,
        random: &mut Random,
    ) -> Self {
        let most = plan.len_max as u64;
        Self {
            object,
            user,
            variant: u8::try_from(random.up_to(2)).unwrap_or(0),
            is_head: random.happens(80_000),
            is_authorized: random.happens(150_000),
            bypasses: random.happens(20_000),
            range: random.happens(120_000).then(|| {
                let first = random.up_to(most);
                (index(first), index(first + random.up_to(most)))
            }),
            is_conditional: random.happens(150_000),
            control: (serving.follows_rfc && random.happens(150_000)).then(|| {
                random.one_of(&[
                    Control::NoCache,
                    Control::NoStore,
                    Control::MaxAge(0),
                    Control::MaxAge(3),
                    Control::MinFresh(2),
                    Control::MaxStale(10),
                    Control::OnlyIfCached,
                ])
            }),
            leaves: random
                .happens(60_000)
                .then(|| (index(random.up_to(most)), random.happens(500_000))),
            pause: match random.up_to(8) {
                0 => Duration::from_millis(random.up_to(3_000)),
                _ => Duration::ZERO,
            },
        }
    }

    /// Whether it is asked of the cache as all others are.
    pub const fn is_plain(&self) -> bool {
        !self.bypasses && self.control.is_none() && !self.is_authorized
    }
}

impl Control {
    pub(in super::super) fn value(self) -> String {
        match self {
            Self::NoCache => String::from("no-cache"),
            Self::NoStore => String::from("no-store"),
            Self::MaxAge(seconds) => format!("max-age={seconds}"),
            Self::MinFresh(seconds) => format!("min-fresh={seconds}"),
            Self::MaxStale(seconds) => format!("max-stale={seconds}"),
            Self::OnlyIfCached => String::from("only-if-cached"),
        }
    }
}
