//! Parts of answers (206) under the RFC's rules: each is kept by itself, beside the whole, and those of one state are put together
//! when they are asked for (RFC 9111 3.3, 3.4). nginx keeps a 206 as any other answer, under its key.

use super::super::settings_of;
use super::super::target::Target;
use super::look_up::Looking;
use super::serve;
use crate::answer::Answer;
use crate::cache::{self, Kept, Place, StoredAnswer};
use crate::content::cached::CachedContent;
use crate::content::{Content, cached};
use crate::local::{AnswerOf, FileOf, Local};
use crate::request::Request;
use mill_cache::Zone;
use mill_config::config::settings::PassSettings;
use mill_http::caching::partial::{Part, may_combine, parse_content_range};
use mill_http::conditional::{Conditions, Validators, if_range_holds};
use mill_http::field::KnownField;
use mill_http::method::Method;
use mill_http::multipart::emit_content_range;
use mill_http::range::{ByteRange, RangeVerdict, parse_ranges};
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::collections::VecDeque;
use std::sync::Arc;

/// Under what the parts of a key are kept. No text of a request has this byte, so that no other key is the same.
pub(crate) fn key_of(key: &[u8]) -> Vec<u8> {
    [key, b"\0parts"].concat()
}

/// What was found of parts.
pub(super) enum Found<E: Engine> {
    Answered(AnswerOf<E>),
    /// There are some, and not all that is asked for.
    Incomplete,
    Nothing,
}

/// Where a part of this head is; `None` if it could not be put together with others: its place is not known, or nothing tells
/// its state from others.
pub(super) fn place<'a>(
    lines: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    stored: &StoredAnswer,
) -> Option<Place> {
    let mut ranges = lines.filter(|(name, _)| name.eq_ignore_ascii_case(b"Content-Range"));
    let (_, value) = ranges.next()?;
    let said = parse_content_range(value)?;
    let place = Place {
        range: said.range,
        complete_length: said.complete_length?,
    };
    stored.validators().has_strong().then_some(place)
}

/// Whether the part goes when the new one is whole: it has nothing that the new one has not, or is of another state.
pub(super) fn is_replaced(old: &StoredAnswer, new: (Place, &StoredAnswer)) -> bool {
    let (place, new) = new;
    let Some(known) = old.place else { return true };
    let (outer, inner) = (place.range, known.range);
    !may_combine(&part(old), &part_at(new, place))
        || (outer.start <= inner.start && inner.end <= outer.end)
}

fn part(stored: &StoredAnswer) -> Part<'_> {
    Part {
        status: Status::PARTIAL_CONTENT,
        validators: stored.validators(),
        complete_length: stored.place.map(|place| place.complete_length),
    }
}

fn part_at(stored: &StoredAnswer, place: Place) -> Part<'_> {
    Part {
        complete_length: Some(place.complete_length),
        ..part(stored)
    }
}

/// Answers with parts, if they are fresh and have all that is asked for.
pub(super) fn answer<E: Engine>(
    looking: &Looking,
    target: &Target,
    request: &mut Request,
    local: &Local<E>,
) -> Found<E> {
    if request.method != Method::Get {
        return Found::Nothing;
    }
    let store = looking.zone.store(local);
    let gathering = Gathering {
        store,
        key: &key_of(&looking.key),
        looking,
        local,
    };
    let Some(any) = gathering.part(request, |_| true) else {
        return Found::Nothing;
    };
    let Some(wanted) = wanted(&any, request) else {
        return Found::Incomplete;
    };
    match gathering.gather(&any, wanted, request) {
        Some(gathered) => match gathered.answer(wanted, target, request, local) {
            Some(answer) => Found::Answered(answer),
            None => Found::Incomplete,
        },
        None => Found::Incomplete,
    }
}

/// Which bytes are asked for of a whole that is kept in parts; `None` if they do not decide that.
fn wanted(any: &Kept, request: &Request) -> Option<ByteRange> {
    let complete_length = any.meta().place?.complete_length;
    if let Some(slice) = request.slice {
        return Some(slice.range(complete_length)).filter(|range| !range.is_empty());
    }
    let whole = ByteRange {
        start: 0,
        end: complete_length,
    };
    let message = &request.message;
    let conditions = Conditions::of(&message.head, &message.bytes);
    let Some(range) = message.head.value(KnownField::Range) else {
        return Some(whole);
    };
    let known = any.meta().validators();
    let validators = Validators {
        last_modified: known.last_modified,
        etag: known.etag,
    };
    let holds = |value: &[u8]| if_range_holds(value, &validators);
    if conditions.if_range.is_some_and(|value| !holds(value)) {
        return Some(whole);
    }
    let other = Conditions {
        if_range: None,
        ..conditions
    };
    if other != Conditions::default() || request.location.headers.max_ranges == Some(0) {
        return None;
    }
    let mut ranges = Vec::new();
    match parse_ranges(range.of(&message.bytes), complete_length, None, &mut ranges) {
        RangeVerdict::Whole => Some(whole),
        RangeVerdict::Partial => <[ByteRange; 1]>::try_from(ranges).ok().map(|[range]| range),
        RangeVerdict::NotSatisfiable => None,
    }
}

/// Looks for parts.
struct Gathering<'a, E: Engine> {
    store: &'a Arc<Zone<StoredAnswer>>,
    key: &'a [u8],
    looking: &'a Looking,
    local: &'a Local<E>,
}

/// Parts of one state that follow each other.
struct Gathered {
    /// The newest one, whose head is that of all.
    newest: Arc<Kept>,
    /// The one that is fresh for the shortest time.
    oldest: Arc<Kept>,
    parts: Vec<(Arc<Kept>, ByteRange)>,
}

impl<E: Engine> Gathering<'_, E> {
    /// The newest fresh part that was made for such requests and fits.
    fn part(&self, request: &Request, fits: impl Fn(&StoredAnswer) -> bool) -> Option<Arc<Kept>> {
        let key = self.store.key(self.key).ok()?;
        let part = self.store.find(key, |stored| {
            stored.place.is_some() && stored.fits(request) && self.is_fresh(stored) && fits(stored)
        })?;
        (!part.is_invalidated()).then_some(part)
    }

    fn is_fresh(&self, stored: &StoredAnswer) -> bool {
        self.looking.finds_fresh(stored, self.local)
    }

    fn gather(&self, any: &Arc<Kept>, wanted: ByteRange, request: &Request) -> Option<Gathered> {
        let mut gathered = Gathered {
            newest: Arc::clone(any),
            oldest: Arc::clone(any),
            parts: Vec::new(),
        };
        let mut byte = wanted.start;
        while byte < wanted.end {
            let has_byte = |stored: &StoredAnswer| {
                let place = stored.place.map(|place| place.range);
                place.is_some_and(|range| (range.start..range.end).contains(&byte))
                    && may_combine(&part(any.meta()), &part(stored))
            };
            let found = self.part(request, has_byte)?;
            let place = found.meta().place?.range;
            let end = place.end.min(wanted.end);
            found.used(cache::now(self.local));
            let of_part = ByteRange {
                start: byte - place.start,
                end: end - place.start,
            };
            // One that still comes answers alone: it may fail when the others are sent.
            if !found.content().is_whole() && of_part.len() < wanted.len() {
                return None;
            }
            gathered.note(&found, self.local.scheduler.wall_clock().seconds);
            gathered.parts.push((found, of_part));
            byte = end;
        }
        Some(gathered)
    }
}

impl Gathered {
    fn note(&mut self, part: &Arc<Kept>, now: i64) {
        let response_time = |kept: &Kept| kept.meta().freshness.response_time;
        let ttl = |kept: &Kept| kept.meta().freshness.ttl(now);
        if response_time(part) > response_time(&self.newest) {
            self.newest = Arc::clone(part);
        }
        if ttl(part) < ttl(&self.oldest) {
            self.oldest = Arc::clone(part);
        }
    }

    /// 200 with all, or 206 with what is asked for: the filters do not cut it any more. `None` where what still comes is given to
    /// those alone that read it already.
    fn answer<E: Engine>(
        &self,
        wanted: ByteRange,
        target: &Target,
        request: &mut Request,
        local: &Local<E>,
    ) -> Option<AnswerOf<E>> {
        let settings = settings_of(&request.location, target.pass.protocol);
        let content = self.content(&settings, local)?;
        let place = self.newest.meta().place;
        let complete_length = place.map_or(wanted.end, |place| place.complete_length);
        super::note(request, |note| {
            note.outcome = cache::CacheOutcome::Hit;
            note.found = Some(Arc::clone(&self.oldest));
        });
        request.pure = false;
        let mut response = serve::head(&self.newest, target, request, local);
        response
            .fields
            .retain(|line| !line.name.eq_ignore_ascii_case(b"Content-Range"));
        let is_whole = wanted.len() == complete_length && request.slice.is_none();
        if is_whole {
            response.status = Status::OK;
            response.reason = None;
        } else {
            let mut value = Vec::new();
            emit_content_range(wanted, complete_length, &mut value);
            response.push_field("Content-Range", value);
            response.ranges = false;
        }
        response.content = content;
        serve::tell_age(&mut response, &self.oldest, request, local);
        Some(Answer::Response(response))
    }

    fn content<E: Engine>(
        &self,
        settings: &Arc<PassSettings>,
        local: &Local<E>,
    ) -> Option<Content<FileOf<E>>> {
        if let [(kept, range)] = self.parts.as_slice()
            && !kept.content().is_whole()
        {
            let reader = kept.content().reader(range.start)?;
            let content = CachedContent::new(reader, Some(range.len()), local);
            return Some(content.into_content(settings));
        }
        let mut parts = VecDeque::new();
        for (kept, range) in &self.parts {
            let whole = cached::whole(kept.content());
            parts.extend(whole.iter().flat_map(|whole| whole.parts_of(*range)));
        }
        Some(Content::of_parts(parts))
    }
}
