//! The server's answer, made ours: intercepted, redirected, a tunnel, or a response whose content is awaited.

use super::caching::{self, Filling, Verdict, ZoneFill};
use super::connection::UpstreamConnection;
use super::read_pace::ReadPace;
use super::source::UpstreamContent;
use super::store::FileCopy;
use super::tries::{Answered, log_unhealthy};
use super::{Proxying, redirected, rewriting, trailers};
use crate::answer::Answer;
use crate::cache::Kept;
use crate::content::Content;
use crate::content::awaited::{Awaited, Room};
use crate::content::cached::CachedContent;
use crate::content::held::Held;
use crate::content::source::Source;
use crate::exchange::Exchange;
use crate::local::{AnswerOf, FileOf};
use crate::request::Request;
use crate::static_file::media_type;
use mill_cache::ContentReader;
use mill_config::config::pass::PassProtocol;
use mill_config::config::settings::{Charset, PassStore};
use mill_config::config::{Expires, Location};
use mill_http::h1::response::Framing;
use mill_http::method::Method;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::rc::Rc;
use std::sync::Arc;

/// The content of an answer that is kept: its writing end, and a reader from its beginning.
type Opened = (ZoneFill, ContentReader);

impl<E: Engine> Proxying<'_, E> {
    /// Makes the answer ours.
    pub(super) fn answer<X: Exchange<Engine = E>>(
        &mut self,
        answered: Answered<E>,
        exchange: &mut X,
        request: &mut Request,
    ) -> AnswerOf<E> {
        let Answered {
            mut connection,
            head,
        } = answered;
        let now = self.local.scheduler.now();
        self.trace.answered(head.head.status, now);
        if connection.selected().answered(head.head.status, now) {
            log_unhealthy(self.local, request, head.head.status);
        }
        connection.binding = self.learn(connection.selected().peer(), request);
        let location = Arc::clone(&request.location);
        let status = head.head.status;
        {
            let said = (status, &*self.trace.fields(), head.bytes.as_slice());
            caching::invalidate::by_answer(&self.target, said, request, self.local);
        }
        let verdict = match &mut self.caching {
            Some(caching) => caching.judge(
                &head,
                &self.trace.fields(),
                &self.settings,
                request,
                self.local,
            ),
            None => Verdict::Pass,
        };
        if let Verdict::Instead(kept) = &verdict
            && let Some(answer) = self.answer_instead(kept, status, request)
        {
            self.trace.ended(None, connection.sent(), now);
            self.leave(connection, head.body.is_complete());
            return answer;
        }
        if self.target.pass.protocol == PassProtocol::Memcached && status == 404 {
            // The page is ours. Nothing follows on the connection.
            self.trace.ended(None, connection.sent(), now);
            connection.release(now);
            return Answer::Status(Status::NOT_FOUND);
        }
        let (mut response, accel) = head.parts().respond(
            &self.trace.fields(),
            &self.settings,
            self.target.pass.protocol,
            self.needs_date(request),
            self.local,
        );
        if self.settings.intercept_errors && status >= 300 && has_error_page(status, &location) {
            self.keep_nothing(request);
            self.trace.ended(None, connection.sent(), now);
            if status == 401 {
                let mut asked = response.fields;
                asked.retain(|line| line.name.eq_ignore_ascii_case(b"WWW-Authenticate"));
                request.carried_fields.extend(asked);
            }
            self.leave(connection, head.body.is_complete());
            return Answer::Status(Status(status));
        }
        match self.target.pass.protocol {
            PassProtocol::Http => rewriting::apply(&mut response, request, self.local),
            PassProtocol::Memcached => {
                response.content_type = media_type::of(&request.uri, &request.location.mime);
            }
            _ => {}
        }
        if let Some(target) = accel.redirect {
            self.keep_nothing(request);
            self.leave(connection, head.body.is_complete());
            return redirected::follow(target, accel.charset, *response, request);
        }
        if accel.limit_rate.is_some() {
            request.limit_rate = accel.limit_rate;
        }
        response.charset = accel.charset;
        if response.status == Status::SWITCHING_PROTOCOLS {
            self.keep_nothing(request);
            let settings = &self.settings;
            let timeout = settings.tunnel_timeout.unwrap_or(settings.read_timeout);
            exchange.upgrade(connection, timeout);
            return Answer::Response(response);
        }
        let as_get = self.question().is_some_and(|question| question.as_get);
        let is_head = request.method == Method::Head && !as_get;
        let len = match head.head.framing {
            Framing::None if is_head => head.announced_length(&self.trace.fields()),
            // `proxy_method HEAD`: what the client asked for has content, and none comes.
            Framing::None => Some(0),
            Framing::Length(len) => Some(len),
            Framing::Chunked | Framing::UntilClose => None,
        };
        let scheduler = Rc::clone(&self.local.scheduler);
        let timeout = self.settings.read_timeout;
        let trace = Rc::clone(&self.trace);
        let mut content = UpstreamContent::new(
            connection, scheduler, trace, head.body, len, timeout, is_head,
        );
        if self.target.pass.protocol == PassProtocol::Uwsgi {
            content.trust_fin();
        }
        // As nginx, which limits only what it reads ahead of the client.
        if accel.buffering.unwrap_or(self.settings.buffering)
            && let Some(pace) = ReadPace::of(&self.settings, request, self.local)
        {
            content.limit(pace);
        }
        let answer = (response.status, response.last_modified);
        let kind = self.kind(request);
        if let Some(copy) = FileCopy::of(
            &self.settings,
            kind,
            answer,
            &self.trace,
            request,
            self.local,
        ) {
            content.copy_to(copy);
        }
        if trailers::are_kept(self.target.pass.protocol, &self.settings) {
            content.keep_trailers(&self.settings, trailers::are_wanted(request));
        }
        if !response.status.has_no_content() {
            let has_content = head.head.framing != Framing::None && !is_head;
            if !has_content {
                content.leave(self.settings.buffer_size);
            }
            response.content = match self.keep(verdict, len, request) {
                Some(stored) => self.kept_content(content, has_content, stored, len),
                None => self.content(content, has_content, accel.buffering),
            };
        } else if let Some((fill, _)) = self.keep(verdict, Some(0), request) {
            // Nothing follows; it is kept with what its head says.
            fill.finish(self.local);
        }
        if self.caching.is_some() {
            caching::offer_ranges(&mut response, request);
        }
        Answer::Response(response)
    }

    /// Whether it is a 304 that validates nothing of what is kept.
    pub(super) fn is_of_another(&self, answered: &Answered<E>) -> bool {
        let now = self.local.scheduler.wall_clock().seconds;
        let caching = self.caching.as_ref();
        caching
            .is_some_and(|caching| caching.is_of_another(&answered.head, &self.trace.fields(), now))
    }

    /// The same server may be asked again, without conditions.
    pub(super) fn ask_again(&mut self, answered: Answered<E>) {
        let Answered {
            mut connection,
            head,
        } = answered;
        let now = self.local.scheduler.now();
        self.trace.answered(head.head.status, now);
        connection.selected().answered(head.head.status, now);
        self.leave(connection, head.body.is_complete());
        if let Some(caching) = &mut self.caching {
            caching.question.forget_conditions();
        }
        self.tried.forget_last();
    }

    /// What is kept goes to the client in the place of an answer with this status, if it can be read.
    fn answer_instead(
        &self,
        kept: &Arc<Kept>,
        status: u16,
        request: &mut Request,
    ) -> Option<AnswerOf<E>> {
        if Status(status) == Status::NOT_MODIFIED {
            let renewed = caching::serve_renewed(kept, &self.target, request, self.local);
            return Some(renewed);
        }
        caching::serve_stale(kept, &self.target, request, self.local)
    }

    /// The answer is ours alone to follow, or its page is: those that wait for it ask by themselves.
    fn keep_nothing(&mut self, request: &mut Request) {
        if let Some(caching) = &mut self.caching {
            caching.keep_nothing(request);
        }
    }

    /// Opens the answer in the zone, if it is to be kept.
    fn keep(
        &mut self,
        verdict: Verdict,
        len: Option<u64>,
        request: &mut Request,
    ) -> Option<Opened> {
        let Verdict::Keep(stored, tags) = verdict else {
            return None;
        };
        let caching = self.caching.as_mut()?;
        caching.store(*stored, &tags, len, request, self.local)
    }

    /// Content that goes into the zone, as the client gets it: from its server if all of it is here, else from the zone.
    fn kept_content(
        &self,
        mut source: UpstreamContent<E>,
        has_content: bool,
        (mut fill, reader): Opened,
        len: Option<u64>,
    ) -> Content<FileOf<E>> {
        let has_length = len.is_some();
        let mut arrived = self.local.take_buffer();
        let taken = match has_content {
            true => source.take_arrived(&mut arrived),
            false => Ok(true),
        };
        fill.append(&arrived);
        match taken {
            Ok(true) => {
                // If the zone does not want it, the client gets it all the same.
                fill.finish(self.local);
                Content::held(Held::new(arrived, has_length))
            }
            Ok(false) => {
                self.local.put_buffer(arrived);
                let content = CachedContent::new(reader, len, self.local);
                Filling::start(source, fill, self.local);
                content.into_content(&self.settings)
            }
            Err(failed) => {
                let room = Room::of(Arc::clone(&self.settings), Some(false));
                Content::source(Box::new(Awaited::new(source, room, arrived, Some(failed))))
            }
        }
    }

    /// Whether something looks at the date of `Last-Modified`, which goes to the client as it came.
    fn needs_date(&self, request: &Request) -> bool {
        let location = &request.location;
        self.settings.force_ranges
            || self.settings.store != PassStore::Off
            || !matches!(location.headers.expires, Expires::Off)
            || location.charset.name != Charset::Off
            || !location.headers.trailers.is_empty()
            || request.site.mentions.sent_fields
    }

    /// The content, at once if it has arrived with its head.
    fn content(
        &self,
        mut source: UpstreamContent<E>,
        has_content: bool,
        buffering: Option<bool>,
    ) -> Content<FileOf<E>> {
        let (mut arrived, mut failed) = (Vec::new(), None);
        // Of what is awaited a part can be cut only before any of it is taken.
        if has_content && !self.settings.force_ranges {
            let has_length = source.remaining().is_some();
            arrived = self.local.take_buffer();
            match source.take_arrived(&mut arrived) {
                Ok(true) => return Content::held(Held::new(arrived, has_length)),
                taken => failed = taken.err(),
            }
            if arrived.is_empty() {
                self.local.put_buffer(std::mem::take(&mut arrived));
            }
        }
        let room = Room::of(Arc::clone(&self.settings), buffering);
        Content::source(Box::new(Awaited::new(source, room, arrived, failed)))
    }
}

impl<E: Engine> Proxying<'_, E> {
    /// Ends a try whose content is not wanted. The connection is kept if there is none.
    fn leave(&self, connection: UpstreamConnection<E>, is_complete: bool) {
        let now = self.local.scheduler.now();
        self.trace.ended(None, connection.sent(), now);
        if is_complete {
            connection.release(now);
        } else {
            self.trace
                .arrived(connection.unread(), self.settings.buffer_size);
        }
    }
}

fn has_error_page(status: u16, location: &Location) -> bool {
    let pages = &location.error_page.pages;
    pages.iter().any(|page| page.status == status)
}
