//! Requests that are answered at once, with an answer that is kept ready: most of them.

use super::{Connection, Next, QUEUED_MAX};
use crate::delivery::account::count_answer;
use crate::exchange::h1::persistence::Progress;
use crate::hot::limits::HotLimits;
use crate::hot::{HitContext, HotAnswer, LogTemplate, Looked};
use crate::log;
use mill_runtime::engine::Engine;
use mill_runtime::payload::{Payload, Shared};
use mill_runtime::stream::Stream;
use std::rc::Rc;

impl<E: Engine> Connection<E> {
    /// Answers the next request from the hot answers. `None`: answered, look for the next one.
    pub(super) fn answer_hot(&mut self) -> Option<Next> {
        // The id of a removed listener may belong to another one now.
        if self.stream.queued() > QUEUED_MAX
            || self.needs_whole_way()
            || self.listener.is_gone()
            || self.stream.is_clear_where_tls_was_due()
        {
            return Some(Next::Cycle);
        }
        let local = Rc::clone(&self.local);
        let now = local.scheduler.now();
        let client = local.hot.borrow().are_limited().then(|| self.stream.peer());
        let passes = |limits: &HotLimits| {
            let client = client.as_ref();
            client.is_some_and(|client| limits.pass(client, &local))
        };
        let looked = self.stream.read(|bytes| {
            let mut hot = local.hot.borrow_mut();
            hot.find(bytes, &self.listener, now, passes)
        });
        let Looked::Found {
            answer,
            keep,
            more,
            received,
        } = looked
        else {
            return Some(Next::Cycle);
        };
        self.requests += 1;
        let settings = &answer.location.connection;
        let progress = Progress {
            requests: u64::from(self.requests),
            started: self.started,
        };
        let keep = keep && progress.allows_another(settings, &local);
        local.date_of(|second, date| answer.set_date(second, date));
        let sent_bytes = self.write_hot(&answer, keep);
        let mut counters = local.counters.borrow_mut();
        counters.requests += 1;
        count_answer(&mut counters, answer.status, sent_bytes);
        drop(counters);
        (answer.zones).count(answer.status, received as u64, sent_bytes);
        self.begin_idle(settings.keepalive_timeout);
        if let Some(log_template) = &answer.log_template {
            self.log(&mut log_template.borrow_mut(), sent_bytes);
        }
        self.pipelined = more;
        let next = (!keep).then(|| self.after_last_answer(settings));
        self.last = Some(answer);
        next
    }

    /// Queues a kept answer; returns its bytes.
    fn write_hot(&self, answer: &HotAnswer, keep: bool) -> u64 {
        if keep && let Some(whole) = answer.whole() {
            let len = whole.len();
            self.stream.write(Payload::Shared(whole, 0..len));
            return len as u64;
        }
        let head = if keep {
            &answer.keep_alive_head
        } else {
            &answer.close_head
        }
        .borrow();
        self.stream.write(Payload::Copy(&head));
        self.stream.write(Payload::Shared(
            Shared::clone(&answer.body),
            0..answer.body.len(),
        ));
        (head.len() + answer.body.len()) as u64
    }

    /// Logs a request that was answered with a kept answer.
    fn log(&mut self, log_template: &mut LogTemplate, sent_bytes: u64) {
        let local = Rc::clone(&self.local);
        let hit = HitContext {
            connection: self.facts(true),
            connection_requests: u64::from(self.requests),
            pipelined: self.pipelined,
            sent_bytes,
        };
        let (now, wall_clock) = (local.scheduler.now(), local.scheduler.wall_clock());
        let request = log_template.turn_into(hit, now, wall_clock);
        if request.site.mentions.transport {
            request.connection.transport.set(self.stream.info());
        }
        log::access::write(request, &local);
    }
}
