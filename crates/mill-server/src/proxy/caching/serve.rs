//! The answer made of what is kept.

use super::super::answer::HeadParts;
use super::super::target::Target;
use super::super::{rewriting, settings_of};
use crate::answer::Answer;
use crate::cache::Kept;
use crate::cache::note::CacheOutcome;
use crate::content::Content;
use crate::content::cached::{self, CachedContent};
use crate::local::{AnswerOf, FileOf, Local};
use crate::open_files::Freshness;
use crate::request::Request;
use mill_config::config::pass::PassProtocol;
use mill_config::config::settings::{CacheRules, PassSettings};
use mill_http::h1::response::Framing;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use mill_runtime::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

/// Answers with this; with 502 where its content cannot be read.
pub(in crate::proxy) fn answer<E: Engine>(
    kept: &Arc<Kept>,
    target: &Target,
    request: &mut Request,
    local: &Local<E>,
) -> AnswerOf<E> {
    let answer = readable_answer(kept, target, request, local);
    answer.unwrap_or(Answer::Status(Status::BAD_GATEWAY))
}

/// Answers with this, unless its content cannot be read: it is on its way and has turned out to be more than is kept, so that
/// its beginning may be gone.
pub(super) fn readable_answer<E: Engine>(
    kept: &Arc<Kept>,
    target: &Target,
    request: &mut Request,
    local: &Local<E>,
) -> Option<AnswerOf<E>> {
    let protocol = target.pass.protocol;
    let settings = settings_of(&request.location, protocol);
    let stored = kept.meta();
    let content = content(kept, &settings, local)?;
    let trace = Rc::clone(request.upstream.get_or_insert_with(|| local.take_trace()));
    trace.set_host(target);
    let mut memory = trace.lend_head();
    memory.bytes.extend_from_slice(&stored.bytes);
    memory.fields.extend_from_slice(&stored.fields);
    let bytes = trace.keep_head(memory);
    let head = HeadParts {
        head: &stored.head,
        bytes: &bytes,
    };
    let (mut response, accel) = head.respond(&trace.fields(), &settings, protocol, true, local);
    if protocol == PassProtocol::Http {
        rewriting::apply(&mut response, request, local);
    }
    if accel.limit_rate.is_some() {
        request.limit_rate = accel.limit_rate;
    }
    response.charset = accel.charset;
    offer_ranges(&mut response, request);
    if !response.status.has_no_content() {
        response.content = content;
    }
    let is_rfc = request.location.caching.rules == CacheRules::Rfc9111;
    if is_rfc {
        tell_age(&mut response, kept, local);
    }
    depend_on(kept, is_rfc, request, local);
    Some(Answer::Response(response))
}

/// The filters evaluate the conditions and ranges of a request whose answer is kept: nginx gives ranges where the server's
/// answer does.
pub(in crate::proxy) fn offer_ranges<File>(
    response: &mut crate::response::Response<File>,
    request: &Request,
) {
    let is_offer = |line: &crate::response::FieldLine| {
        line.name.eq_ignore_ascii_case(b"Accept-Ranges")
            && !line.value.eq_ignore_ascii_case(b"none")
    };
    let before = response.fields.len();
    response.fields.retain(|line| !is_offer(line));
    let is_rfc = request.location.caching.rules == CacheRules::Rfc9111;
    response.ranges |= response.fields.len() < before || is_rfc;
    response.is_kept = true;
}

fn content<E: Engine>(
    kept: &Arc<Kept>,
    settings: &Arc<PassSettings>,
    local: &Local<E>,
) -> Option<Content<FileOf<E>>> {
    match cached::whole(kept.content()) {
        Some(content) => Some(content),
        None => {
            let reader = kept.content().reader(0)?;
            let len = match kept.meta().head.framing {
                Framing::Length(len) => Some(len),
                Framing::None | Framing::Chunked | Framing::UntilClose => None,
            };
            Some(CachedContent::new(reader, len, local).into_content(settings))
        }
    }
}

/// RFC 9111 5.1.
fn tell_age<E: Engine>(response: &mut crate::local::ResponseOf<E>, kept: &Kept, local: &Local<E>) {
    let now = local.scheduler.wall_clock().seconds;
    let age = kept.meta().freshness.age(now);
    response
        .fields
        .retain(|line| !line.name.eq_ignore_ascii_case(b"Age"));
    response.push_field("Age", age.to_string().into_bytes());
}

/// The answer may be given again, without a look at the request's location, as long as it is fresh and in the zone.
fn depend_on<E: Engine>(kept: &Arc<Kept>, is_rfc: bool, request: &mut Request, local: &Local<E>) {
    let note = request.cached.as_ref();
    let hit = note.filter(|note| note.outcome == CacheOutcome::Hit && !kept.meta().varies());
    let found = hit.and_then(|note| Some((note.zone.known()?, note.generation)));
    let Some((store, generation)) = found else {
        request.pure = false;
        return;
    };
    let store = Arc::clone(store);
    let wall_clock = local.scheduler.wall_clock();
    let ttl = kept.meta().freshness.ttl(wall_clock.seconds);
    let mut fresh_for = Duration::from_secs(ttl.max(0).cast_unsigned());
    if is_rfc || request.location.caching.status.is_some() {
        // `Age` or `ttl` is another one in the next second.
        fresh_for = Duration::from_nanos(u64::from(1_000_000_000 - wall_clock.nanos));
    }
    let until = local.scheduler.now() + fresh_for;
    let freshness = Freshness::kept(Arc::clone(kept), (store, generation), until, is_rfc);
    request.depend_on(Some(&freshness));
}
