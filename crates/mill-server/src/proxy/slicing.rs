//! `slice`: an answer is put together of slices, each of which is asked for, and kept, by itself.
//!
//! The first slice's head is the answer's: it becomes one of 200, of which the filters give the client what it asks for. The others
//! are asked for while that is sent, each by a request like the client's with its own `$slice_range`, and have to be of the same
//! state of the whole (`ETag`). The texts of the log are nginx's.

use super::{answer_one, caching, settings_of};
use crate::answer::Answer;
use crate::content::Content;
use crate::content::sliced::{Sliced, Slices};
use crate::exchange::SendError;
use crate::local::{AnswerOf, FileOf, Local, ResponseOf};
use crate::proxy::caching::NoClient;
use crate::request::Request;
use crate::request::slice::Slice;
use crate::response::{FieldLine, FieldText};
use mill_config::config::LogLevel;
use mill_http::caching::partial::parse_content_range;
use mill_http::range::ByteRange;
use mill_http::status::Status;
use mill_runtime::engine::Engine;
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Makes the answer whose first slice this is, if it is one.
pub(super) fn begin<E: Engine>(
    answer: AnswerOf<E>,
    slice: Slice,
    request: &mut Request,
    local: &Local<E>,
) -> AnswerOf<E> {
    let Answer::Response(mut response) = answer else {
        return answer;
    };
    if response.status != Status::PARTIAL_CONTENT {
        // The whole, or an error: nothing is asked for behind it.
        request.slice = None;
        return Answer::Response(response);
    }
    let (place, complete_length) = match place(&response, slice) {
        Ok(place) => place,
        Err(misfit) => {
            local.log_error(Some(request), LogLevel::Error, format_args!("{misfit}"));
            forget_filled(request, local);
            response.content.release(local);
            request.sent.status = Status::PARTIAL_CONTENT.0;
            return Answer::Close;
        }
    };
    let protocol = request.location.pass.as_ref().map(|pass| pass.protocol);
    let needs_client = protocol.is_some_and(|protocol| {
        let settings = settings_of(&request.location, protocol);
        !settings.ignore_client_abort
    });
    let under_way = Rc::new(Cell::new(Some(slice)));
    request.slice_under_way = Some(Rc::clone(&under_way));
    let slices = Asking {
        under_way,
        template: request.without_client(local),
        local: local.shared(),
        etag: response.etag.clone(),
        slice,
        complete_length,
        asked: None,
    };
    response.status = Status::OK;
    response.reason = None;
    response.ranges = true;
    response.fields.retain(|line| !is_of_range(line));
    let content = std::mem::replace(&mut response.content, Content::absent());
    let sliced = Sliced::new(
        complete_length,
        (place, content),
        Box::new(slices),
        needs_client,
    );
    response.content = Content::sliced(Box::new(sliced));
    Answer::Response(response)
}

/// Where a slice is, and how long the whole.
fn place<File>(
    response: &crate::response::Response<File>,
    asked: Slice,
) -> Result<(ByteRange, u64), Misfit> {
    let mut lines = response.fields.iter();
    let line = lines.find(|line| line.name.eq_ignore_ascii_case(b"Content-Range"));
    let said = line.and_then(|line| parse_content_range(&line.value));
    let said = said.ok_or(Misfit::Invalid)?;
    let complete_length = said.complete_length.ok_or(Misfit::NoLength)?;
    match said.range == asked.range(complete_length) {
        true => Ok((said.range, complete_length)),
        false => Err(Misfit::Unexpected(said.range)),
    }
}

fn is_of_range(line: &FieldLine) -> bool {
    let names: [&[u8]; 2] = [b"Content-Range", b"Accept-Ranges"];
    names
        .iter()
        .any(|name| line.name.eq_ignore_ascii_case(name))
}

/// Asks for the slices behind the first one, one at a time.
struct Asking<E: Engine> {
    local: Rc<Local<E>>,
    /// The client's request, of which each slice's is made.
    template: Box<Request>,
    /// That of the slices so far.
    etag: Option<FieldText>,
    slice: Slice,
    /// What the client's request tells of it.
    under_way: Rc<Cell<Option<Slice>>>,
    /// Bytes of the whole, as the first slice has told.
    complete_length: u64,
    /// The request under way.
    asked: Option<Pin<Box<dyn Future<Output = AnsweredSlice<E>>>>>,
}

/// A slice's request, and its answer.
type AnsweredSlice<E> = (Box<Request>, AnswerOf<E>);

impl<E: Engine> Asking<E> {
    fn ask(&self, slice: Slice) -> Pin<Box<dyn Future<Output = AnsweredSlice<E>>>> {
        let local = Rc::clone(&self.local);
        let mut request = self.template.without_client(&local);
        request.slice = Some(slice);
        Box::pin(async move {
            let answer = answer_one(&mut NoClient::new(), &mut request, &local).await;
            (request, answer)
        })
    }

    /// The slice's place and content, if it fits to those before it.
    fn accept(
        &mut self,
        slice: Slice,
        (mut request, answer): AnsweredSlice<E>,
    ) -> Result<(ByteRange, Content<FileOf<E>>), SendError> {
        let fitting = self.fitting(slice, answer);
        if let Err(misfit) = &fitting {
            let text = format_args!("{misfit}");
            self.local.log_error(Some(&request), LogLevel::Error, text);
            forget_filled(&request, &self.local);
        }
        self.local.put_trace(request.upstream.take());
        self.local.put_request(request);
        if let Ok((place, _)) = &fitting
            && place.end == self.complete_length
        {
            // As in nginx: it is the last one, whatever becomes of its content.
            self.under_way.set(None);
        }
        fitting.map_err(|_| SendError::Incomplete)
    }

    fn fitting(
        &mut self,
        slice: Slice,
        answer: AnswerOf<E>,
    ) -> Result<(ByteRange, Content<FileOf<E>>), Misfit> {
        let mut response = match answer {
            Answer::Response(response) => response,
            Answer::Status(status) => return Err(Misfit::Status(status)),
            _ => return Err(Misfit::Missing),
        };
        let fitting = self.examine(slice, &response);
        let content = std::mem::replace(&mut response.content, Content::absent());
        self.local.put_response(response);
        match fitting {
            Ok(place) => Ok((place, content)),
            Err(misfit) => {
                content.release(&self.local);
                Err(misfit)
            }
        }
    }

    fn examine(&mut self, slice: Slice, response: &ResponseOf<E>) -> Result<ByteRange, Misfit> {
        if response.status != Status::PARTIAL_CONTENT {
            return Err(Misfit::Status(response.status));
        }
        let etag = response.etag.as_deref();
        let is_other = |known: &FieldText| etag != Some(&**known);
        if self.etag.as_ref().is_some_and(is_other) {
            return Err(Misfit::Etag);
        }
        self.etag.clone_from(&response.etag);
        let (place, complete_length) = place(response, slice)?;
        // nginx finds this at the end of the last slice alone.
        match complete_length == self.complete_length {
            true => Ok(place),
            false => Err(Misfit::Unexpected(place)),
        }
    }
}

impl<E: Engine> Slices<FileOf<E>> for Asking<E> {
    fn poll_slice(
        &mut self,
        byte: u64,
    ) -> Poll<Result<(ByteRange, Content<FileOf<E>>), SendError>> {
        let slice = self.slice.with_byte(byte);
        let mut asked = match self.asked.take() {
            Some(asked) => asked,
            None => {
                self.under_way.set(Some(slice));
                self.ask(slice)
            }
        };
        // Tasks are woken by their number, not by this.
        match pin!(&mut asked).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answered) => Poll::Ready(self.accept(slice, answered)),
            Poll::Pending => {
                self.asked = Some(asked);
                Poll::Pending
            }
        }
    }

    fn ended(&mut self) {
        self.under_way.set(None);
    }
}

impl<E: Engine> fmt::Debug for Asking<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Asking({:?} of {})", self.slice, self.complete_length)
    }
}

/// As in nginx, a slice that has just come and does not fit is not kept.
fn forget_filled<E: Engine>(request: &Request, local: &Local<E>) {
    if let Some(note) = &request.cached
        && !note.outcome.is_of_cache()
    {
        caching::forget(&note.zone, &note.key, local);
    }
}

/// Why an answer is not the slice that was asked for.
enum Misfit {
    Status(Status),
    Missing,
    Etag,
    Invalid,
    NoLength,
    Unexpected(ByteRange),
}

impl fmt::Display for Misfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => {
                write!(out, "unexpected status code {} in slice response", status.0)
            }
            Self::Missing => out.write_str("missing slice response"),
            Self::Etag => out.write_str("etag mismatch in slice response"),
            Self::Invalid => out.write_str("invalid range in slice response"),
            Self::NoLength => out.write_str("no complete length in slice response"),
            Self::Unexpected(range) => {
                let (start, end) = (range.start, range.end);
                write!(out, "unexpected range in slice response: {start}-{end}")
            }
        }
    }
}
