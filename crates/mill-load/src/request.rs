//! The requests: rendered once, or by a script.

use crate::random::Random;
use mill_runtime::payload::{Payload, Shared};
use std::sync::Arc;
use thiserror::Error;

/// The requests of a thread, before it begins and after it has ended.
#[derive(Debug)]
pub enum Requests {
    /// These, in proportion to their weights; a single one is always sent.
    Mix(Vec<(Rendered, f64)>),
    /// These, one after the other; a thread begins at its share of them, and again after the last.
    Replay(Arc<[Rendered]>),
    /// Those of a script.
    Script(Box<dyn Script>),
}

/// The bytes of one request, or of several that are sent together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    pub bytes: Arc<[u8]>,
    pub batch: Batch,
}

/// The responses to one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Responses that will come: more than one if requests were pipelined.
    pub responses: u32,
    /// The request's method is HEAD: there is no content, whatever the head says.
    pub is_head: bool,
}

/// A script that makes requests and may look at responses. One per thread, used by that thread alone.
pub trait Script: Send + std::fmt::Debug {
    /// How long a connection waits before its next request.
    fn delay(&mut self) -> Result<core::time::Duration, ScriptError>;

    /// Appends the next request.
    fn request(&mut self, into: &mut Vec<u8>) -> Result<Batch, ScriptError>;

    /// Whether [`Script::on_response`] wants to be called.
    fn wants_responses(&self) -> bool;

    /// A response is complete. `fields` are the lines as received.
    fn on_response(
        &mut self,
        status: u16,
        fields: &mut dyn Iterator<Item = (&[u8], &[u8])>,
        content: &[u8],
    ) -> Result<(), ScriptError>;

    /// The script has asked its thread to stop.
    fn has_stopped(&self) -> bool;

    /// For the script's owner, which knows its type.
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any>;
}

/// A script failed: its message, with file and line where there are any.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ScriptError(pub String);

impl Batch {
    /// One request whose response has content.
    pub const ONE: Self = Self {
        responses: 1,
        is_head: false,
    };
}

impl Requests {
    /// The same request always.
    pub fn always(rendered: Rendered) -> Self {
        Self::Mix(vec![(rendered, 1.0)])
    }
}

/// Whether a method, or a request that begins with it, is safe (RFC 9110 9.2.1): a copy of it does no harm.
pub(crate) fn is_safe(request: &[u8]) -> bool {
    let method = request.split(|byte| *byte == b' ').next();
    method.is_some_and(|method| [&b"GET"[..], b"HEAD", b"OPTIONS", b"TRACE"].contains(&method))
}

/// A thread's requests while it runs.
#[derive(Debug)]
pub(crate) struct RequestSource {
    kind: Kind,
    /// Memory for the script's requests.
    scratch: Vec<u8>,
}

#[derive(Debug)]
enum Kind {
    Always(Shared, Batch),
    Mix(Vec<(Shared, Batch, f64)>),
    Replay { all: Arc<[Rendered]>, next: usize },
    Script(Box<dyn Script>),
}

impl RequestSource {
    pub(crate) fn new(requests: Requests, (thread, threads): (u32, u32)) -> Self {
        let kind = match requests {
            Requests::Mix(mix) => match mix.as_slice() {
                [(only, _)] => Kind::Always(Shared::from(&*only.bytes), only.batch),
                _ => Kind::Mix(
                    mix.into_iter()
                        .map(|(one, weight)| (Shared::from(&*one.bytes), one.batch, weight))
                        .collect(),
                ),
            },
            Requests::Replay(all) => {
                let next = all.len() * thread as usize / threads.max(1) as usize;
                Kind::Replay { all, next }
            }
            Requests::Script(script) => Kind::Script(script),
        };
        Self {
            kind,
            scratch: Vec::new(),
        }
    }

    /// Passes the next request to `write`; returns its responses and its length.
    pub(crate) fn next<File>(
        &mut self,
        random: &mut Random,
        write: impl FnOnce(Payload<'_, File>),
    ) -> Result<(Batch, u64), ScriptError> {
        let (bytes, batch) = match &mut self.kind {
            Kind::Always(bytes, batch) => (&*bytes, *batch),
            Kind::Mix(mix) => {
                let index = random.weighted(mix.iter().map(|(_, _, weight)| *weight));
                let Some((bytes, batch, _)) = mix.get(index) else {
                    return Err(ScriptError(String::from("there is no request to send")));
                };
                (bytes, *batch)
            }
            Kind::Replay { all, next } => {
                let index = next.checked_rem(all.len()).unwrap_or(0);
                *next = index + 1;
                let Some(one) = all.get(index) else {
                    return Err(ScriptError(String::from("there is no request to replay")));
                };
                write(Payload::Copy(&one.bytes));
                return Ok((one.batch, one.bytes.len() as u64));
            }
            Kind::Script(script) => {
                self.scratch.clear();
                let batch = script.request(&mut self.scratch)?;
                write(Payload::Copy(&self.scratch));
                return Ok((batch, self.scratch.len() as u64));
            }
        };
        write(Payload::Shared(Shared::clone(bytes), 0..bytes.len()));
        Ok((batch, bytes.len() as u64))
    }

    pub(crate) fn script(&mut self) -> Option<&mut (dyn Script + 'static)> {
        match &mut self.kind {
            Kind::Script(script) => Some(script.as_mut()),
            _ => None,
        }
    }

    /// Gives the script back after the run.
    pub(crate) fn into_script(self) -> Option<Box<dyn Script>> {
        match self.kind {
            Kind::Script(script) => Some(script),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> Rendered {
        Rendered {
            bytes: Arc::from(text.as_bytes()),
            batch: Batch::ONE,
        }
    }

    fn sent(source: &mut RequestSource, count: usize) -> String {
        let mut random = Random::new(4);
        let mut all = String::new();
        for _ in 0..count {
            source
                .next::<()>(&mut random, |payload| match payload {
                    Payload::Copy(bytes) => all.push_str(std::str::from_utf8(bytes).unwrap()),
                    Payload::Shared(bytes, range) => {
                        all.push_str(std::str::from_utf8(&bytes[range]).unwrap());
                    }
                    Payload::File { .. } => unreachable!("requests are in memory"),
                })
                .unwrap();
        }
        all
    }

    #[test]
    fn a_replay_goes_round_and_each_thread_begins_at_its_share() {
        let all: Arc<[Rendered]> = ["a", "b", "c", "d"].map(rendered).into();
        let source = |thread| RequestSource::new(Requests::Replay(Arc::clone(&all)), (thread, 2));
        assert_eq!(sent(&mut source(0), 5), "abcda");
        assert_eq!(sent(&mut source(1), 3), "cda");
    }

    #[test]
    fn a_mix_has_its_weights() {
        let mix = vec![(rendered("a"), 1.0), (rendered("b"), 3.0)];
        let text = sent(&mut RequestSource::new(Requests::Mix(mix), (0, 1)), 4000);
        let count = text.bytes().filter(|byte| *byte == b'a').count();
        assert!((900..1100).contains(&count), "{count}");
    }

    #[test]
    fn nothing_to_replay_is_an_error_and_no_panic() {
        let mut source = RequestSource::new(Requests::Replay(Arc::from([])), (0, 1));
        assert!(source.next::<()>(&mut Random::new(1), |_| ()).is_err());
    }
}
