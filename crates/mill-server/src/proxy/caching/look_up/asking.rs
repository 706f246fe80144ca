//! How a server is asked.

use super::super::{Caching, Question, overriding};
use super::Looking;
use crate::local::Local;
use crate::request::Request;
use mill_http::caching::request_directives::RequestDirectives;
use mill_http::field::KnownField;
use mill_http::method::Method;
use mill_runtime::engine::Engine;
use std::rc::Rc;
use std::sync::Arc;

impl Looking {
    /// How a server is asked.
    pub(in crate::proxy::caching) fn into_caching<E: Engine>(
        mut self,
        request: &Request,
        local: &Local<E>,
    ) -> Box<Caching> {
        let is_head = request.method == Method::Head;
        let as_get = is_head && self.settings.convert_head && self.ticket.is_some();
        if is_head && !as_get {
            // The answer to a HEAD has nothing to keep.
            self.ticket = None;
        }
        if self.ticket.is_some() {
            overriding::note(request, local);
        }
        let mut question = Question {
            as_get,
            is_whole: !self.passes_range,
            ..Question::default()
        };
        // What is still on its way may turn out to be more than is kept: there would be nothing to say 304 of.
        if let Some((kept, _)) = &self.stale
            && (self.settings.revalidate || self.follows_rfc())
            && self.ticket.is_some()
            && !has_content(request)
            && kept.content().is_whole()
        {
            let field = |known| kept.meta().field(known).map(Box::from);
            question.etag = field(KnownField::ETag);
            question.last_modified = field(KnownField::LastModified);
        }
        Box::new(Caching {
            zone: self.zone,
            settings: self.settings,
            rules: self.rules,
            key: self.key,
            ticket: self.ticket,
            stale: self.stale,
            asked_at: local.scheduler.wall_clock().seconds,
            question,
        })
    }

    /// What is stale, with the right to replace it, for a request of our own.
    pub(in crate::proxy::caching) fn take_update(&mut self) -> Option<Self> {
        Some(Self {
            zone: Arc::clone(&self.zone),
            settings: Arc::clone(&self.settings),
            rules: self.rules,
            key: Rc::clone(&self.key),
            directives: RequestDirectives::default(),
            ticket: Some(self.ticket.take()?),
            stale: self.stale.take(),
            passes_range: false,
            is_disk_tried: false,
            has_others: false,
        })
    }
}

/// What is asked twice, if a 304 fits nothing, is to have no content that is sent once.
fn has_content(request: &Request) -> bool {
    let head = &request.message.head;
    head.has(KnownField::TransferEncoding) || head.content_length.is_some_and(|len| len > 0)
}
