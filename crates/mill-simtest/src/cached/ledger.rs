//! All that origins have sent and were asked, in the order in which it happened. Times count from the world's beginning.

use super::plan::CachedPlan;
use super::plan::object::Leave;
use crate::content;
use mill_runtime::time::{Duration, Instant};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// What a whole world knows of its origins.
#[derive(Debug)]
pub(super) struct Ledger {
    began: Instant,
    /// Counts what clients do: at one instant, times do not tell what was first.
    acts: Cell<u64>,
    pub(super) sent: RefCell<Vec<Sent>>,
    /// 304s: what was confirmed, when that was asked, and when it was said.
    pub(super) confirmed: RefCell<Vec<(Identity, Duration, Duration)>>,
    pub(super) questions: RefCell<Vec<Question>>,
    pub(super) removals: RefCell<Vec<Removal>>,
    /// The number of the content of each representation.
    contents: RefCell<BTreeMap<Identity, u32>>,
    /// How often clients have changed each object.
    changes: RefCell<BTreeMap<usize, u64>>,
    /// What must not be.
    pub(super) faults: RefCell<Vec<String>>,
}

/// What tells a representation from all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub(super) object: usize,
    /// The value of `X-V`, where it matters.
    pub(super) variant: Option<u8>,
    pub(super) version: u64,
    /// The user that it is for, if it is for one alone.
    pub(super) user: Option<usize>,
    pub(super) status: u16,
}

/// An answer of an origin that is not 304. Its place in the ledger is its serial number, which it carries in `X-Serial`.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) identity: Identity,
    pub(super) leave: Leave,
    pub(super) len: usize,
    /// The request had come.
    pub(super) asked_at: Duration,
    pub(super) sent_at: Duration,
}

/// A request as an origin has seen it.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) object: usize,
    pub(super) asked_at: Duration,
    pub(super) ended_at: Duration,
    pub(super) outcome: Outcome,
    /// The cache treats it as any other for its object.
    pub(super) is_plain: bool,
}

/// What an origin has done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It has not come to its end.
    Begun,
    /// The whole answer was sent.
    Whole {
        serial: usize,
    },
    NotModified,
    /// 5xx, cut, late, or nothing.
    Failed,
}

/// Something that a client has removed, or made useless.
#[derive(Clone, Debug)]
pub(super) struct Removal {
    pub(super) objects: Vec<usize>,
    pub(super) asked_at: Duration,
    pub(super) done_at: Duration,
    /// Its place among what clients do.
    pub(super) done: u64,
    pub(super) way: RemovalWay,
}

/// How it was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemovalWay {
    Key,
    /// What an origin says of its own failures has no tag.
    Tag,
    /// It was invalidated: what an origin confirms afterwards may be used on.
    Change,
}

impl Ledger {
    pub(super) fn new(began: Instant) -> Self {
        Self {
            began,
            acts: Cell::new(0),
            sent: RefCell::default(),
            confirmed: RefCell::default(),
            questions: RefCell::default(),
            removals: RefCell::default(),
            contents: RefCell::default(),
            changes: RefCell::default(),
            faults: RefCell::default(),
        }
    }

    pub(super) fn at(&self, now: Instant) -> Duration {
        now.since(self.began)
    }

    /// The place of what a client does now.
    pub(super) fn next_act(&self) -> u64 {
        self.acts.set(self.acts.get() + 1);
        self.acts.get()
    }

    pub(super) fn change(&self, object: usize) {
        *self.changes.borrow_mut().entry(object).or_default() += 1;
    }

    /// The version of an object that an origin has now.
    pub(super) fn version(&self, plan: &CachedPlan, object: usize, at: Duration) -> u64 {
        let period = plan.objects[object].period;
        let changes = self.changes.borrow().get(&object).copied().unwrap_or(0);
        at.as_secs() / period.as_secs() + changes
    }

    /// The number and the text of a representation's content.
    pub(super) fn content(&self, identity: &Identity, len: usize) -> &'static [u8] {
        let mut contents = self.contents.borrow_mut();
        let next = u32::try_from(contents.len()).unwrap_or(0);
        let number = *contents.entry(identity.clone()).or_insert(next);
        content::of(number, len)
    }

    /// Begins a request; returns its place.
    pub(super) fn ask(&self, object: usize, asked_at: Duration, is_plain: bool) -> usize {
        let mut questions = self.questions.borrow_mut();
        questions.push(Question {
            object,
            asked_at,
            ended_at: Duration::MAX,
            outcome: Outcome::Begun,
            is_plain,
        });
        questions.len() - 1
    }

    pub(super) fn end(&self, question: usize, at: Duration, outcome: Outcome) {
        let question = &mut self.questions.borrow_mut()[question];
        (question.ended_at, question.outcome) = (at, outcome);
    }

    /// Keeps an answer; returns its serial number.
    pub(super) fn send(&self, sent: Sent) -> usize {
        let mut all = self.sent.borrow_mut();
        all.push(sent);
        all.len() - 1
    }

    pub(super) fn answer(&self, serial: usize) -> Option<Sent> {
        self.sent.borrow().get(serial).cloned()
    }

    pub(super) fn note(&self, fault: String) {
        self.faults.borrow_mut().push(fault);
    }
}

impl Identity {
    /// The opaque tag of its validator.
    pub(super) fn etag(&self) -> String {
        let number = |number: Option<usize>| number.map_or(String::from("x"), |it| it.to_string());
        format!(
            "\"{}-{}-{}-{}\"",
            self.object,
            number(self.variant.map(usize::from)),
            self.version,
            number(self.user),
        )
    }

    /// The date of its last change: another one for each version.
    pub(super) fn last_modified(&self) -> String {
        let (hour, minute, second) = (
            self.version / 3600 % 24,
            self.version / 60 % 60,
            self.version % 60,
        );
        format!("Sun, 06 Nov 1994 {hour:02}:{minute:02}:{second:02} GMT")
    }
}
