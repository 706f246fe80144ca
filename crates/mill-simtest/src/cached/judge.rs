//! Whether what clients got may be.

use super::client::{Answered, Found, Told};
use super::ledger::{Ledger, Outcome, RemovalWay, Sent};
use super::plan::CachedPlan;
use super::plan::object::Leave;
use super::plan::request::Control;
use mill_runtime::time::Duration;

/// A world that has ended, for looking back.
pub(super) struct Judge<'a> {
    pub(super) plan: &'a CachedPlan,
    pub(super) ledger: &'a Ledger,
}

/// How long something may be used; all in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Allowed {
    fresh: u64,
    /// While it is asked for anew.
    updating: Option<u64>,
    /// When that fails.
    failing: Option<u64>,
    /// Because the request says so.
    asked: u64,
}

impl Judge<'_> {
    /// What is wrong with it.
    pub(super) fn check(&self, answered: &Answered) -> Result<(), String> {
        let may_fail = self.plan.faults_per_million > 0;
        match &answered.found {
            Found::Wrong(what) => Err(what.clone()),
            Found::Answer(told) | Found::Left(told) => self.check_answer(answered, told),
            Found::Status(504) if answered.get.control == Some(Control::OnlyIfCached) => Ok(()),
            Found::Status(502 | 504) | Found::Cut if may_fail => Ok(()),
            // The server may have closed it before the request came.
            Found::Nothing { is_first } if may_fail || !is_first => Ok(()),
            found => Err(format!("{found:?}")),
        }
    }

    fn check_answer(&self, answered: &Answered, told: &Told) -> Result<(), String> {
        let sent = self.ledger.answer(told.serial);
        let sent = sent.ok_or("an answer that no origin has sent")?;
        self.check_owner(answered, &sent)?;
        if told.status >= 500 && self.plan.faults_per_million == 0 {
            return Err(format!("{} without a fault", told.status));
        }
        if told.status == 416 && answered.get.range.is_none_or(|(first, _)| first < sent.len) {
            return Err(format!("416 of {} bytes", sent.len));
        }
        if told.status == 206 && answered.get.range.is_none() {
            return Err(String::from("a part that was not asked for"));
        }
        self.check_removals(answered, &sent)?;
        self.check_age(answered, told, &sent)?;
        self.check_outcome(answered, told, &sent)
    }

    /// It is for this target, these fields and this user.
    fn check_owner(&self, answered: &Answered, sent: &Sent) -> Result<(), String> {
        let (identity, get) = (&sent.identity, &answered.get);
        if identity.object != get.object {
            return Err(format!("it is that of object {}", identity.object));
        }
        if identity
            .variant
            .is_some_and(|variant| variant != get.variant)
        {
            return Err(format!("it is that of variant {:?}", identity.variant));
        }
        if identity.user.is_some_and(|user| user != get.user) {
            return Err(format!("it is that of user {:?}", identity.user));
        }
        Ok(())
    }

    /// When an origin has said last, before a client had it, that this is what there is: when that was asked, and said.
    fn confirmed(&self, sent: &Sent, before: Duration) -> (Duration, Duration) {
        let confirmed = self.ledger.confirmed.borrow();
        let of_it = confirmed
            .iter()
            .filter(|(identity, _, at)| *identity == sent.identity && *at <= before);
        of_it.fold((sent.asked_at, sent.sent_at), |last, (_, asked_at, at)| {
            (last.0.max(*asked_at), last.1.max(*at))
        })
    }

    fn check_removals(&self, answered: &Answered, sent: &Sent) -> Result<(), String> {
        let (confirmed, _) = self.confirmed(sent, answered.came_at);
        let is_failure = sent.identity.status != 200;
        for removal in self.ledger.removals.borrow().iter() {
            let is_before = removal.done < answered.asked;
            if !is_before || !removal.objects.contains(&answered.get.object) {
                continue;
            }
            let asked_at = match removal.way {
                RemovalWay::Tag if is_failure => continue,
                RemovalWay::Key | RemovalWay::Tag => sent.asked_at,
                RemovalWay::Change => confirmed,
            };
            if asked_at < removal.asked_at {
                return Err(format!(
                    "asked for at {asked_at:?}, and gone since then: {removal:?}"
                ));
            }
        }
        Ok(())
    }

    /// `Age` is no less than the time since an origin has said it (RFC 9111 4.2.3).
    fn check_age(&self, answered: &Answered, told: &Told, sent: &Sent) -> Result<(), String> {
        let is_hit = matches!(told.outcome.as_str(), "HIT" | "STALE" | "UPDATING");
        if !self.plan.serving.follows_rfc || !is_hit {
            return Ok(());
        }
        let (_, said_at) = self.confirmed(sent, answered.came_at);
        let least = since(answered.asked_at, said_at).saturating_sub(UNCERTAIN);
        let told_age = told.age.ok_or("no Age")?;
        if Duration::from_secs(told_age) < least {
            return Err(format!("Age: {told_age}, but it is {least:?} old"));
        }
        Ok(())
    }

    /// What the cache says that it did may be, and is what it did.
    fn check_outcome(&self, answered: &Answered, told: &Told, sent: &Sent) -> Result<(), String> {
        let (confirmed_for, said_at) = self.confirmed(sent, answered.came_at);
        let wants_validation = answered.get.control == Some(Control::NoCache);
        if self.plan.serving.follows_rfc && wants_validation && confirmed_for < answered.asked_at {
            // RFC 9111 5.2.1.4.
            return Err(format!("no-cache, and asked for at {confirmed_for:?}"));
        }
        let is_new = said_at >= answered.asked_at;
        // It was asked for by another request, and had not come when this one did.
        let is_on_its_way = said_at + ON_ITS_WAY >= answered.asked_at;
        let is_own = sent.sent_at >= answered.asked_at;
        let may_be = match told.outcome.as_str() {
            "MISS" | "EXPIRED" | "BYPASS" => is_own,
            "REVALIDATED" => is_new,
            // It may have waited for the answer to another request.
            "HIT" => is_new || is_on_its_way || self.is_fresh(answered, sent, said_at),
            "STALE" | "UPDATING" => is_new || self.may_be_stale(answered, sent, said_at),
            _ => false,
        };
        match may_be {
            true => Ok(()),
            false => Err(format!("{}, said at {said_at:?}: {sent:?}", told.outcome)),
        }
    }

    fn is_fresh(&self, answered: &Answered, sent: &Sent, said_at: Duration) -> bool {
        let age = since(answered.asked_at, said_at);
        let mut most = self.allowed(answered, sent).fresh;
        match answered.get.control {
            Some(Control::NoCache) => return false,
            Some(Control::MaxAge(seconds)) => most = most.min(seconds),
            Some(Control::MinFresh(seconds)) => most = most.saturating_sub(seconds),
            _ => {}
        }
        // Seconds are counted whole: at the last one it may be almost one older.
        age <= Duration::from_secs(most.saturating_add(1)).saturating_add(UNCERTAIN)
    }

    fn may_be_stale(&self, answered: &Answered, sent: &Sent, said_at: Duration) -> bool {
        let allowed = self.allowed(answered, sent);
        let age = since(answered.asked_at, said_at);
        let is_within = |seconds: u64| {
            let most = allowed.fresh.saturating_add(seconds).saturating_add(1);
            age <= Duration::from_secs(most).saturating_add(UNCERTAIN)
        };
        let refuses = match answered.get.control {
            Some(Control::NoCache) => true,
            Some(Control::MaxAge(seconds)) => age > Duration::from_secs(seconds + 1) + UNCERTAIN,
            Some(Control::MinFresh(_)) => true,
            _ => false,
        };
        if refuses {
            return false;
        }
        let is_updated =
            allowed.updating.is_some_and(is_within) && self.was_asked(answered, |_| true);
        let has_failed = allowed.failing.is_some_and(is_within)
            && self.was_asked(answered, |outcome| outcome == Outcome::Failed);
        is_updated || has_failed || (allowed.asked > 0 && is_within(allowed.asked))
    }

    /// Whether an origin was asked for the object while the answer was made.
    fn was_asked(&self, answered: &Answered, is_it: impl Fn(Outcome) -> bool) -> bool {
        let questions = self.ledger.questions.borrow();
        questions.iter().any(|question| {
            question.object == answered.get.object
                && question.asked_at <= answered.came_at + UNCERTAIN
                && question.ended_at.saturating_add(UNCERTAIN) >= answered.asked_at
                && is_it(question.outcome)
        })
    }

    /// What the rules say of an answer.
    fn allowed(&self, answered: &Answered, sent: &Sent) -> Allowed {
        let serving = &self.plan.serving;
        let rfc = serving.follows_rfc;
        let confirmed = self.ledger.confirmed.borrow();
        let is_confirmed = confirmed
            .iter()
            .any(|(identity, ..)| *identity == sent.identity);
        let fresh = self.lifetime(sent, is_confirmed);
        let names_failure = serving.use_stale.contains("error");
        let configured = |is_named: bool| is_named.then_some(u64::MAX);
        let mut allowed = Allowed {
            fresh,
            updating: configured(serving.uses_stale("updating")),
            failing: configured(names_failure),
            asked: match answered.get.control {
                Some(Control::MaxStale(seconds)) => seconds,
                _ => 0,
            },
        };
        match sent.leave {
            Leave::Stale {
                updating, failing, ..
            } => {
                // nginx has the first stand for the second where that is not there; here it always is.
                allowed.updating = allowed.updating.max(Some(updating));
                allowed.failing = allowed.failing.max(Some(failing)).max(allowed.updating);
            }
            Leave::MustRevalidate(_) | Leave::SharedMaxAge(_) | Leave::NoCache if rfc => {
                return Allowed {
                    fresh,
                    ..Allowed::default()
                };
            }
            _ => allowed.failing = allowed.failing.max(allowed.updating),
        }
        allowed
    }

    /// Seconds for which it may be used without asking; 0 where it may not be kept at all.
    pub(super) fn lifetime(&self, sent: &Sent, is_confirmed: bool) -> u64 {
        let serving = &self.plan.serving;
        let rfc = serving.follows_rfc;
        let object = &self.plan.objects[sent.identity.object];
        let configured = serving.configured(sent.identity.status);
        // nginx has its last second count.
        let last = u64::from(!rfc);
        let silent = match configured {
            0 if rfc && object.has_last_modified && sent.identity.status == 200 => HEURISTIC,
            0 => 0,
            seconds => seconds + last,
        };
        match sent.leave {
            Leave::MaxAge(seconds)
            | Leave::SharedMaxAge(seconds)
            | Leave::MustRevalidate(seconds)
            | Leave::Expires(seconds)
            | Leave::Stale {
                lifetime: seconds, ..
            } => seconds + last,
            // What an origin has confirmed without `Age` is as old as that.
            Leave::Aged { lifetime, age } if rfc && !is_confirmed => lifetime.saturating_sub(age),
            Leave::Aged { lifetime, .. } if rfc => lifetime,
            Leave::Aged { lifetime, .. } => lifetime + last,
            Leave::AccelExpires(seconds) if !rfc => seconds + last,
            Leave::AccelExpires(_) | Leave::Silent => silent,
            Leave::Guarded(seconds) if rfc && sent.identity.user.is_none() => seconds,
            Leave::NoCache
            | Leave::NoStore
            | Leave::Private
            | Leave::SetCookie
            | Leave::Guarded(_) => 0,
        }
    }
}

fn since(now: Duration, then: Duration) -> Duration {
    now.saturating_sub(then)
}

/// From an origin to the server, at most.
const ON_ITS_WAY: Duration = Duration::from_millis(200);

/// What the way between an origin and the server takes at most, and what a busy connection adds.
const UNCERTAIN: Duration = Duration::from_millis(1_000);

/// Seconds: a tenth of the time since 1994 is more than the most that a heuristic gives, a day (RFC 9111 4.2.2).
const HEURISTIC: u64 = 86_400;
