//! The responses to a batch of requests: scanned as they arrive, counted, and kept only for a script.

use crate::comparison::Comparison;
use crate::failure::Failure;
use crate::head_memory::HeadMemory;
use crate::plan::Ending;
use crate::request::{Batch, Script, ScriptError};
use mill_http::h1::response::{Framing, RequestKind, ResponseBody, ResponseHead, ResponseScan};
use mill_http::limits::ResponseRules;

/// The state of one batch of responses.
#[derive(Debug)]
pub(crate) struct Reply {
    batch: Batch,
    ending: Ending,
    left: u32,
    phase: Phase,
    /// The parts that the script will see, if it uses responses.
    kept: Option<Box<Kept>>,
    pub(crate) received: Received,
}

/// The sums of a batch of responses so far, and the last status.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    pub(crate) status: u16,
    pub(crate) head_bytes: u64,
    pub(crate) content_bytes: u64,
    pub(crate) bytes: u64,
    pub(crate) keep_alive: bool,
}

/// Observes responses while they are scanned.
pub(crate) trait Observe {
    /// A response's head of `head_len` bytes is complete; `bytes` are those received of the response.
    fn on_head(&mut self, bytes: &[u8], head_len: usize);
    /// A response is complete, one of a batch.
    fn on_response(&mut self, status: u16);
    /// The expected content of answers of status 200; without it nothing is compared.
    fn expected(&self) -> Option<&[u8]> {
        None
    }
}

/// The result of scanning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All responses of the batch are here.
    Complete,
    /// The unread bytes are not enough to go on.
    More,
}

#[derive(Debug)]
enum Phase {
    Head(ResponseScan),
    Body(Said, ResponseBody),
}

/// The parts of a head that are needed at the end of its response. Other parts are only kept for scripts: every
/// connection, also an idle one, has room for a response.
#[derive(Clone, Copy, Debug)]
struct Said {
    status: u16,
    keep_alive: bool,
    /// Bytes of content before this response.
    content_before: u64,
}

/// A response as scripts see it.
#[derive(Debug, Default)]
struct Kept {
    /// The parsed head.
    parsed: Option<ResponseHead>,
    head: Vec<u8>,
    content: Vec<u8>,
}

impl Reply {
    pub(crate) fn new(batch: Batch, ending: Ending, keep: bool) -> Self {
        Self {
            batch,
            ending,
            left: batch.responses,
            phase: Phase::Head(scan(batch)),
            kept: keep.then(Box::default),
            received: Received::default(),
        }
    }

    /// Scans `bytes`, which begin where the last call stopped; returns how many it consumed.
    pub(crate) fn on_bytes(
        &mut self,
        bytes: &[u8],
        heads: &mut HeadMemory,
        observer: &mut impl Observe,
        mut script: Option<&mut (dyn Script + 'static)>,
    ) -> Result<(usize, Step), Fault> {
        let mut taken = 0;
        while self.left > 0 {
            let rest = bytes.get(taken..).unwrap_or_default();
            let (count, complete) = match &mut self.phase {
                Phase::Head(scan) => match parse_head(scan, rest, self.batch, heads)? {
                    None => return Ok((taken, Step::More)),
                    Some(head) => (head.len, self.on_head(head, rest, observer)?),
                },
                Phase::Body(said, body) => {
                    let expected = observer.expected().filter(|_| said.is_compared());
                    let step = match (&mut self.kept, expected) {
                        (None, None) => body.on_bytes(rest)?,
                        (Some(kept), _) => body.on_bytes_with(rest, |slice| kept.push(slice))?,
                        (None, Some(expected)) => {
                            let at = self.received.content_bytes - said.content_before;
                            let mut comparison = Comparison::new(expected, at);
                            let step = body.on_bytes_with(rest, |slice| comparison.on(slice))?;
                            comparison.finish(step.complete)?;
                            step
                        }
                    };
                    self.received.content_bytes += step.content as u64;
                    (step.consumed, step.complete)
                }
            };
            taken += count;
            self.received.bytes += count as u64;
            if complete {
                self.on_complete(observer, script.as_deref_mut())?;
            } else if count == 0 || taken == bytes.len() {
                return Ok((taken, Step::More));
            }
        }
        Ok((taken, Step::Complete))
    }

    /// The server has sent FIN. Fails unless that ends the last response. `unread_bytes` of an incomplete head are part
    /// of a response that may end anywhere; its status stays 0.
    pub(crate) fn on_end(
        &mut self,
        unread_bytes: usize,
        observer: &mut impl Observe,
        script: Option<&mut (dyn Script + 'static)>,
    ) -> Result<(), Fault> {
        let ends_anywhere = self.ending != Ending::Framed;
        let is_end = match &mut self.phase {
            Phase::Body(_, body) => body.on_end_of_stream().is_ok() || ends_anywhere,
            Phase::Head(_) => ends_anywhere,
        };
        if is_end && self.left == 1 {
            self.compare_length(observer)?;
            self.on_complete(observer, script)?;
            self.received.bytes += unread_bytes as u64;
            self.received.keep_alive = false;
            Ok(())
        } else {
            Err(Fault::Failure(Failure::EndedEarly))
        }
    }

    /// Goes on to the content; returns whether there is none.
    fn on_head(
        &mut self,
        head: ResponseHead,
        bytes: &[u8],
        observer: &mut impl Observe,
    ) -> Result<bool, Fault> {
        self.received.head_bytes += head.len as u64;
        if head.is_interim() {
            self.phase = Phase::Head(scan(self.batch));
            return Ok(false);
        }
        let text = bytes.get(..head.len).unwrap_or_default();
        observer.on_head(bytes, head.len);
        if let Some(kept) = &mut self.kept {
            kept.head.clear();
            kept.content.clear();
            kept.head.extend_from_slice(text);
            kept.parsed = Some(head);
        }
        let framing = match (self.ending, head.framing) {
            (Ending::Close, _) => Framing::UntilClose,
            (Ending::Framed | Ending::FramedOrClose, framing) => framing,
        };
        let mut body = ResponseBody::new(framing, &ResponseRules::lenient());
        let complete = body.on_bytes(&[])?.complete;
        let said = Said {
            status: head.status,
            keep_alive: head.keep_alive,
            content_before: self.received.content_bytes,
        };
        if complete
            && !self.batch.is_head
            && said.is_compared()
            && let Some(expected) = observer.expected()
        {
            Comparison::new(expected, 0).finish(true)?;
        }
        self.phase = Phase::Body(said, body);
        Ok(complete)
    }

    /// The end of the connection is the end of the content: all expected bytes must have been received.
    fn compare_length(&self, observer: &impl Observe) -> Result<(), Fault> {
        match (&self.phase, observer.expected()) {
            (Phase::Body(said, _), Some(expected)) if said.is_compared() => {
                let at = self.received.content_bytes - said.content_before;
                Ok(Comparison::new(expected, at).finish(true)?)
            }
            _ => Ok(()),
        }
    }

    fn on_complete(
        &mut self,
        observer: &mut impl Observe,
        script: Option<&mut (dyn Script + 'static)>,
    ) -> Result<(), Fault> {
        let next = Phase::Head(scan(self.batch));
        let Phase::Body(said, _) = std::mem::replace(&mut self.phase, next) else {
            self.left -= 1;
            return Ok(());
        };
        self.left -= 1;
        self.received.status = said.status;
        self.received.keep_alive = said.keep_alive;
        observer.on_response(said.status);
        if let (Some(kept), Some(script)) = (&self.kept, script)
            && let Some(head) = &kept.parsed
        {
            let mut fields = head.fields(&kept.head);
            script.on_response(said.status, &mut fields, &kept.content)?;
        }
        Ok(())
    }
}

impl Said {
    /// An error page or a partial response is not the expected content, and is counted by its status.
    const fn is_compared(&self) -> bool {
        self.status == 200
    }
}

impl Kept {
    fn push(&mut self, slice: &[u8]) {
        if self.content.len() + slice.len() <= KEPT_CONTENT_MAX_BYTES {
            self.content.extend_from_slice(slice);
        }
    }
}

/// Parses the head that `bytes` begin with, unless it equals the previous one.
fn parse_head(
    scan: &mut ResponseScan,
    bytes: &[u8],
    batch: Batch,
    heads: &mut HeadMemory,
) -> Result<Option<ResponseHead>, Fault> {
    if let Some(head) = heads.recall(bytes, batch.is_head) {
        return Ok(Some(head));
    }
    let head = scan.parse(bytes)?;
    if let Some(head) = head {
        heads.keep(bytes, head, batch.is_head);
    }
    Ok(head)
}

fn scan(batch: Batch) -> ResponseScan {
    let kind = if batch.is_head {
        RequestKind::Head
    } else {
        RequestKind::Other
    };
    ResponseScan::new(kind, &ResponseRules::lenient())
}

/// Why scanning stopped.
#[derive(Debug)]
pub(crate) enum Fault {
    Failure(Failure),
    Script(ScriptError),
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<mill_http::h1::response::ResponseFault> for Fault {
    fn from(fault: mill_http::h1::response::ResponseFault) -> Self {
        Self::Failure(Failure::Garbage(fault))
    }
}

impl From<ScriptError> for Fault {
    fn from(error: ScriptError) -> Self {
        Self::Script(error)
    }
}

/// The maximum of content that a script sees; further bytes are received and discarded.
const KEPT_CONTENT_MAX_BYTES: usize = 64 << 20;
