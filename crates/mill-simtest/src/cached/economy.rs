//! Whether origins were asked as seldom as they may be.

use super::judge::Judge;
use super::ledger::{Outcome, Question};
use mill_runtime::time::Duration;

impl Judge<'_> {
    /// What was asked too often, object by object.
    pub(super) fn check_economy(&self) -> Vec<String> {
        let serving = &self.plan.serving;
        // What goes for want of room, is lost or counted first is asked for again, as it should be.
        let is_certain =
            !self.plan.zone.forgets() && self.plan.faults_per_million == 0 && serving.min_uses == 1;
        if !is_certain {
            return Vec::new();
        }
        let objects = 0..self.plan.objects.len();
        objects
            .flat_map(|object| self.check_object(object))
            .collect()
    }

    fn check_object(&self, object: usize) -> Vec<String> {
        if self.plan.objects[object].varies {
            return Vec::new();
        }
        let questions = self.ledger.questions.borrow();
        let own = questions.iter().filter(|it| it.object == object);
        let own: Vec<&Question> = own.collect();
        let mut faults = Vec::new();
        for pair in own.windows(2) {
            let &[first, later] = pair else {
                continue;
            };
            let is_usual = first.is_plain && later.is_plain;
            if is_usual && self.is_kept(first) && self.is_needless(first, later, &own) {
                faults.push(format!("{later:?} although {first:?}"));
            }
        }
        faults
    }

    /// Whether the whole answer to it could be kept for some time.
    fn is_kept(&self, question: &Question) -> bool {
        let Outcome::Whole { serial } = question.outcome else {
            return false;
        };
        let sent = self.ledger.answer(serial);
        sent.is_some_and(|sent| self.lifetime(&sent, false) > 0)
    }

    /// Whether the answer to the first of two requests would have done for the second.
    fn is_needless(&self, first: &Question, later: &Question, own: &[&Question]) -> bool {
        let Outcome::Whole { serial } = first.outcome else {
            return false;
        };
        let Some(sent) = self.ledger.answer(serial) else {
            return false;
        };
        let serving = &self.plan.serving;
        let lifetime = Duration::from_secs(self.lifetime(&sent, false));
        // The RFC has the time between request and answer count as age (4.2.3); nginx's rules have one second more.
        let age = match serving.follows_rfc {
            true => sent.sent_at - sent.asked_at + ON_ITS_WAY + ON_ITS_WAY,
            false => Duration::from_secs(1),
        };
        // It is counted in whole seconds, of which the first may be almost over.
        let second = Duration::from_secs(1);
        let fresh_until = sent.sent_at + lifetime.saturating_sub(age + second);
        let is_within = later.asked_at < fresh_until.max(sent.sent_at);
        // The later one may have been on its way when the answer came.
        let is_behind = later.asked_at > first.ended_at.saturating_add(ON_ITS_WAY);
        let is_during = later.asked_at <= first.ended_at;
        let waits = serving.waits() && !serving.is_impatient;
        let overlaps = |other: &&&Question| {
            other.asked_at <= first.ended_at.saturating_add(ON_ITS_WAY)
                && other.ended_at.saturating_add(ON_ITS_WAY) >= first.asked_at
                && !(std::ptr::eq(**other, first) || std::ptr::eq(**other, later))
        };
        let is_alone = own.iter().filter(overlaps).count() == 0;
        let is_removed = self.is_removed_between(first, later);
        let is_needless = match is_during {
            true => waits,
            false => is_behind,
        };
        is_needless && is_within && is_alone && !is_removed
    }

    /// Whether something was removed from when the first was asked until after the second.
    fn is_removed_between(&self, first: &Question, later: &Question) -> bool {
        let removals = self.ledger.removals.borrow();
        removals.iter().any(|removal| {
            let is_of_it = removal.objects.contains(&first.object);
            let is_between = removal.asked_at <= later.asked_at
                && removal.done_at + ON_ITS_WAY >= first.asked_at;
            is_of_it && is_between
        })
    }
}

/// From the server to an origin or back, with its turn there, at most.
const ON_ITS_WAY: Duration = Duration::from_millis(500);
