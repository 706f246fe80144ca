//! How a server is asked.

use super::super::{Caching, Question, overriding};
use super::Looking;
use crate::cache::{Kept, StoredAnswer};
use crate::local::Local;
use crate::request::Request;
use mill_http::caching::request_directives::RequestDirectives;
use mill_http::caching::validation::{TAGS_ASKED_MAX, is_entity_tag};
use mill_http::field::KnownField;
use mill_http::method::Method;
use mill_http::status::Status;
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
        let mut others = Vec::new();
        if (self.settings.revalidate || self.follows_rfc())
            && self.ticket.is_some()
            && !has_content(request)
        {
            others = self.ask_about_what_is_kept(&mut question, local);
        }
        Box::new(Caching {
            zone: self.zone,
            settings: self.settings,
            rules: self.rules,
            key: self.key,
            ticket: self.ticket,
            stale: self.stale,
            others,
            asked_at: local.scheduler.wall_clock().seconds,
            question,
        })
    }

    /// Puts the conditions into the question. Returns what it is about beside the answer that is stale.
    fn ask_about_what_is_kept<E: Engine>(
        &self,
        question: &mut Question,
        local: &Local<E>,
    ) -> Vec<Arc<Kept>> {
        if let Some((kept, _)) = &self.stale {
            // What is still on its way may turn out to be more than is kept: there would be nothing to say 304 of.
            if !kept.content().is_whole() {
                return Vec::new();
            }
            let field = |known| kept.meta().field(known).map(Box::from);
            question.etag = field(KnownField::ETag);
            question.last_modified = field(KnownField::LastModified);
            // Tags of others would hide its date.
            if !question.etag.as_deref().is_some_and(is_entity_tag) || !kept.meta().varies() {
                return Vec::new();
            }
        }
        let others = match self.follows_rfc() && (self.stale.is_some() || self.has_others) {
            true => self.others(local),
            false => Vec::new(),
        };
        let own = question.etag.take().into_iter();
        let tags = others.iter().filter_map(|kept| etag(kept.meta()));
        let tags: Vec<Box<[u8]>> = own.chain(tags.map(Box::from)).collect();
        question.etag = (!tags.is_empty()).then(|| tags.join(&b", "[..]).into());
        others
    }

    /// What is kept for other requests, and of which the server may say that it is right for this one, too (RFC 9111 4.1, 4.3.1):
    /// with tags that differ. Not where the coding decides, for servers compare tags before they choose one.
    fn others<E: Engine>(&self, local: &Local<E>) -> Vec<Arc<Kept>> {
        let store = self.zone.store(local);
        let Ok(key) = store.key(&self.key) else {
            return Vec::new();
        };
        let stale = self.stale.as_ref().map(|(kept, _)| kept);
        let mut tags: Vec<Box<[u8]>> = stale
            .and_then(|kept| etag(kept.meta()))
            .map(Box::from)
            .into_iter()
            .collect();
        let mut others = store.variants(key);
        others.retain(|kept| {
            let meta = kept.meta();
            let is_new = |tag: &&[u8]| tags.iter().all(|known| **known != **tag);
            let is_askable = meta.head.status == Status::OK.0
                && kept.content().is_whole()
                && !meta.vary.nominates(b"accept-encoding");
            let tag = etag(meta).filter(|_| is_askable && tags.len() < TAGS_ASKED_MAX);
            let Some(tag) = tag.filter(is_new).map(Box::from) else {
                return false;
            };
            tags.push(tag);
            true
        });
        others
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

/// The tag of an answer, if it is one.
fn etag(stored: &StoredAnswer) -> Option<&[u8]> {
    stored
        .field(KnownField::ETag)
        .filter(|tag| is_entity_tag(tag))
}
