//! A host with another TCP: what it serves, and what its clients do.

use super::talks::{part_of, size, talk};
use super::wires::Profile;
use super::{Asking, Leave, Plan, Talk};
use crate::plain_tcp::habits::Habits;
use mill_runtime::time::Duration;
use mill_sim::packet::wire::Wire;
use mill_sim::random::Random;
use std::fmt;

/// The host.
#[derive(Clone, Debug)]
pub struct PlainPlan {
    pub mtu: u16,
    pub outward: Wire,
    pub inward: Wire,
    /// Nothing gets through from the first to the second of these, outwards, inwards, or both.
    pub cut: Option<Cut>,
    /// It serves HTTP, with these habits.
    pub serves: Option<Habits>,
    /// What the load generator asks it for, instead of our server.
    pub has_load: bool,
    pub talks: Vec<PlainTalk>,
}

/// A partition that ends.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    pub at: Duration,
    pub heals_at: Duration,
    pub outward: bool,
    pub inward: bool,
}

/// One connection of a client of it.
#[derive(Clone, Debug)]
pub struct PlainTalk {
    pub at: Duration,
    /// How it asks for several files the next two fields say.
    pub what: Talk,
    /// All requests at once, else each when the answer to the last is there.
    pub all_at_once: bool,
    pub parting: Parting,
    pub habits: Habits,
}

/// Which end closes, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// The client, when it has everything.
    First,
    /// The server, because it is asked to; then the client.
    Second,
    /// Both, when the client has everything: their FINs may cross.
    Crossing,
    /// The client, with its request: then it only listens.
    AtOnce,
    /// The client closes after so many bytes, and takes what still comes.
    Early(usize),
    /// The client resets after so many bytes.
    Reset(usize),
}

pub(super) fn draw(plan: &mut Plan, mtu: u16, random: &mut Random) {
    let (calls, serves) = (random.happens(300_000), random.happens(250_000));
    if !calls && !serves {
        return;
    }
    let profile = Profile::draw(random);
    let (outward, inward) = profile.wires(mtu, random);
    let serves = serves.then(|| Habits::draw(mtu, plan.is_ipv6, random));
    let count = if calls { 1 + random.up_to(2) } else { 0 };
    let talks = (0..count)
        .map(|number| plain_talk(number, mtu, plan.is_ipv6, random))
        .collect();
    if let Some(habits) = &serves {
        visit(plan, habits, random);
    }
    plan.plain = Some(PlainPlan {
        mtu,
        outward,
        inward,
        cut: random.happens(150_000).then(|| cut(random)),
        has_load: serves.is_some() && random.happens(500_000),
        serves,
        talks,
    });
}

fn plain_talk(number: u64, mtu: u16, is_ipv6: bool, random: &mut Random) -> PlainTalk {
    let habits = Habits::draw(mtu, is_ipv6, random);
    let numbers = 10_000 + 100 * u32::try_from(number).unwrap_or(0);
    let mut talk = talk(numbers, false, random);
    fit(&mut talk.what, habits.bytes_max());
    let after = part_of(&talk.what, random).max(1);
    let parting = random.one_of(&[
        Parting::First,
        Parting::Second,
        Parting::Second,
        Parting::Crossing,
        Parting::AtOnce,
        Parting::AtOnce,
        Parting::Early(after),
        Parting::Reset(after),
    ]);
    PlainTalk {
        at: talk.at,
        what: talk.what,
        all_at_once: random.happens(300_000),
        parting,
        habits,
    }
}

/// Our clients have something more to do: they ask this host.
fn visit(plan: &mut Plan, habits: &Habits, random: &mut Random) {
    for (client, talks) in plan.talks.iter_mut().enumerate() {
        for visit in 0..random.up_to(2) {
            let numbers = 20_000 + 1_000 * u32::try_from(client).unwrap_or(0);
            let number = numbers + u32::try_from(visit).unwrap_or(0);
            let mut talk = talk(number, false, random);
            if matches!(talk.what, Talk::Hash { .. } | Talk::Echo { .. }) {
                let how = random.one_of(&[Asking::Kept, Asking::HalfClosed]);
                let files = vec![(number, size(random))];
                talk.what = Talk::Get { files, how };
            }
            fit(&mut talk.what, habits.bytes_max());
            if talk.leaves != Leave::Whole {
                let after = part_of(&talk.what, random);
                talk.leaves = random.one_of(&[Leave::Reset(after), Leave::Close(after)]);
            }
            talk.is_for_plain = true;
            talks.push(talk);
        }
    }
}

/// No more bytes than a slow TCP carries in a reasonable time.
fn fit(talk: &mut Talk, most: usize) {
    match talk {
        Talk::Get { files, .. } => {
            files.truncate(4);
            let most = (most / files.len()).max(1);
            for (_, len) in files {
                *len = (*len).min(most);
            }
        }
        Talk::Post { len, .. } | Talk::Hash { len, .. } | Talk::Echo { len, .. } => {
            *len = (*len).min(most);
        }
    }
}

fn cut(random: &mut Random) -> Cut {
    let (outward, inward) = random.one_of(&[(true, true), (true, false), (false, true)]);
    let at = Duration::from_millis(random.up_to(8_000));
    Cut {
        at,
        heals_at: at + Duration::from_millis(random.up_to(30_000)),
        outward,
        inward,
    }
}

impl PlainPlan {
    /// Whether nothing ever happens to its frames, but for the time they take.
    pub fn is_faithful(&self) -> bool {
        self.outward.is_faithful() && self.inward.is_faithful() && self.cut.is_none()
    }
}

impl fmt::Display for PlainPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "plain TCP: mtu {}, {:?}", self.mtu, self.cut)?;
        writeln!(formatter, "  out {:?}", self.outward)?;
        writeln!(formatter, "  in  {:?}", self.inward)?;
        if let Some(habits) = &self.serves {
            writeln!(
                formatter,
                "  serves (load generator: {}) {habits:?}",
                self.has_load
            )?;
        }
        for talk in &self.talks {
            writeln!(formatter, "  {talk:?}")?;
        }
        Ok(())
    }
}
