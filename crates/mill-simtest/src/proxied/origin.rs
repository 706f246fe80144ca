//! What a server behind the proxy does, and what it sees.

use super::incoming::{End, Expected, Framing, Head, Incoming};
use super::plan::ProxiedPlan;
use super::secured::Certificate;
use crate::WorldEngine;
use crate::content;
use mill_runtime::engine::{Engine, Keepalive, ListenOptions};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamOption};
use mill_runtime::time::Duration;
use mill_runtime::worker::Worker;
use mill_sim::random::Random;
use mill_tls::transport::TransportOf;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What all origins of a world have seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How often the head of each request has come.
    pub(super) heads: RefCell<BTreeMap<u32, u32>>,
    /// What must not be.
    pub(super) faults: RefCell<Vec<String>>,
}

/// What an origin does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Answer,
    /// The answer comes before the request's content was read.
    AnswerEarly,
    /// After the answer the connection closes, although nothing says so.
    AnswerAndClose,
    Unavailable,
    /// Nothing is answered any more.
    Close,
    Reset,
    CutHead,
    CutContent {
        by_reset: bool,
    },
    /// Longer than the proxy waits.
    Sleep,
}

/// A request as it came.
struct Request {
    number: u32,
    len: usize,
    is_http11: bool,
}

struct Origin {
    scheduler: Rc<Scheduler>,
    seen: Rc<Seen>,
    seed: u64,
    faults_per_million: u32,
    /// Bytes of the content of each request that is a POST.
    posted: BTreeMap<u32, usize>,
    /// Where the proxy speaks TLS.
    certificate: Option<Certificate>,
}

/// A connection in clear, or under TLS.
type WorldTransport = TransportOf<WorldEngine>;

/// The turns of an origin.
pub(super) fn start(
    engine: WorldEngine,
    station: usize,
    plan: &ProxiedPlan,
    seen: &Rc<Seen>,
) -> Box<dyn FnMut()> {
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let mut options = ListenOptions::new(plan.socket(station).into());
    // The proxy's end may be gone without a trace.
    options.keepalive = Keepalive::On {
        idle: Some(Duration::from_secs(60)),
        interval: Some(Duration::from_secs(10)),
        count: Some(5),
    };
    let listening = engine.listen(&options);
    let listening = listening.unwrap_or_else(|error| panic!("an origin cannot listen: {error:?}"));
    let posts = plan
        .requests()
        .filter_map(|it| Some((it.number, it.posted?.len)));
    let origin = Rc::new(Origin {
        scheduler: Rc::clone(&scheduler),
        seen: Rc::clone(seen),
        seed: plan.seed,
        faults_per_million: plan.faults_per_million,
        posted: posts.collect(),
        certificate: plan.has_secured_origins.then(Certificate::new),
    });
    let mut worker = Worker::new(engine, scheduler, move |stream, _| {
        serve(stream, Rc::clone(&origin))
    });
    worker.add_listener(listening.id);
    Box::new(move || {
        worker.turn();
    })
}

async fn serve(stream: <WorldEngine as Engine>::Stream, origin: Rc<Origin>) {
    let stream = match &origin.certificate {
        Some(certificate) => certificate.over(stream),
        None => WorldTransport::Tcp(stream),
    };
    while let Ok(true) = origin.serve_one(&stream).await {}
}

impl Origin {
    /// Serves one request. Returns whether another one may follow.
    async fn serve_one(&self, stream: &WorldTransport) -> Result<bool, End> {
        let incoming = Incoming {
            stream,
            scheduler: &self.scheduler,
        };
        let head = incoming.head().await?;
        let read = self.request(&head).and_then(|request| {
            let framing = head.framing(Framing::Length(0))?;
            Ok((request, framing))
        });
        let (request, framing) = match read {
            Ok(read) => read,
            Err(fault) => return Err(self.note(fault)),
        };
        let came = {
            let mut heads = self.seen.heads.borrow_mut();
            let came = heads.entry(request.number).or_default();
            *came += 1;
            *came
        };
        let which = (u64::from(request.number) << 8) + u64::from(came);
        let mut random = Random::new(self.seed ^ which.wrapping_mul(SPREAD));
        let act = self.act(&mut random);
        if act == Act::AnswerEarly {
            self.answer(stream, &request, act, &mut random).await?;
        }
        if act == Act::Close || act == Act::Reset {
            return Ok(leave(stream, act == Act::Reset));
        }
        self.read_content(&incoming, &request, framing).await?;
        if act == Act::Sleep {
            self.scheduler.sleep(SLEEP).await;
        }
        if act == Act::AnswerEarly {
            return Ok(request.is_http11);
        }
        let goes_on = self.answer(stream, &request, act, &mut random).await?;
        Ok(goes_on && request.is_http11)
    }

    /// What the head says, if it is one that a client has asked for.
    fn request(&self, head: &Head) -> Result<Request, End> {
        let malformed = || End::Malformed(format!("a request that no client made: {}", head.0));
        let mut words = head.first_line().split(' ');
        let line = (words.next(), words.next(), words.next(), words.next());
        let (Some(method), Some(target), Some(version), None) = line else {
            return Err(malformed());
        };
        let numbers = target.strip_prefix('/').and_then(|it| it.split_once('-'));
        let numbers =
            numbers.and_then(|(number, len)| Some((number.parse().ok()?, len.parse().ok()?)));
        let (number, len) = numbers.ok_or_else(malformed)?;
        let expected = if self.posted.contains_key(&number) {
            "POST"
        } else {
            "GET"
        };
        if method != expected || !matches!(version, "HTTP/1.0" | "HTTP/1.1") {
            return Err(malformed());
        }
        Ok(Request {
            number,
            len,
            is_http11: version == "HTTP/1.1" && head.field("Connection")? != Some("close"),
        })
    }

    async fn read_content(
        &self,
        incoming: &Incoming<'_, WorldTransport>,
        request: &Request,
        framing: Framing,
    ) -> Result<(), End> {
        let len = self.posted.get(&request.number).copied().unwrap_or(0);
        let mut expected = Expected::new(content::of(request.number, len));
        let read = incoming
            .content(framing, |piece| expected.take(piece))
            .await;
        read.map_err(|end| self.note(end))?;
        if !expected.is_whole() {
            let Expected { came, .. } = expected;
            let text = format!("request {} has {came} of {len} bytes", request.number);
            return Err(self.note(End::Malformed(text)));
        }
        Ok(())
    }

    /// Keeps what must not be.
    fn note(&self, end: End) -> End {
        if let End::Malformed(what) = &end {
            self.seen.faults.borrow_mut().push(what.clone());
        }
        end
    }

    fn act(&self, random: &mut Random) -> Act {
        if !random.happens(self.faults_per_million) {
            return Act::Answer;
        }
        random.one_of(&[
            Act::AnswerEarly,
            Act::AnswerAndClose,
            Act::AnswerAndClose,
            Act::Unavailable,
            Act::Close,
            Act::Reset,
            Act::CutHead,
            Act::CutContent { by_reset: false },
            Act::CutContent { by_reset: true },
            Act::Sleep,
        ])
    }

    /// Sends an answer, or a part of it. Returns whether the connection stays open.
    async fn answer(
        &self,
        stream: &WorldTransport,
        request: &Request,
        act: Act,
        random: &mut Random,
    ) -> Result<bool, End> {
        if act == Act::Unavailable {
            let text = b"HTTP/1.1 503 S\r\nContent-Length: 4\r\n\r\nbusy";
            stream.write(Payload::Copy(text));
            return drain(stream).await.map(|()| true);
        }
        let framing = match random.up_to(5) {
            0 if request.is_http11 => Framing::Chunked,
            1 => Framing::UntilClose,
            _ => Framing::Length(request.len),
        };
        let head = match framing {
            Framing::Length(len) => format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n"),
            Framing::Chunked => {
                String::from("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            }
            Framing::UntilClose => String::from("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"),
        };
        if act == Act::CutHead {
            stream.write(Payload::Copy(&head.as_bytes()[..head.len() - 5]));
            return drain(stream).await.map(|()| leave(stream, false));
        }
        stream.write(Payload::Copy(head.as_bytes()));
        let whole = content::of(answer_number(request.number), request.len);
        let cut = match act {
            Act::CutContent { .. } => whole.len() / 2,
            _ => whole.len(),
        };
        for piece in whole[..cut].chunks(PIECE_BYTES) {
            if framing == Framing::Chunked {
                stream.write(Payload::Copy(format!("{:x}\r\n", piece.len()).as_bytes()));
            }
            stream.write(Payload::Copy(piece));
            if framing == Framing::Chunked {
                stream.write(Payload::Copy(b"\r\n"));
            }
            drain(stream).await?;
            if random.happens(100_000) {
                self.scheduler
                    .sleep(Duration::from_millis(random.up_to(2_000)))
                    .await;
            }
        }
        if let Act::CutContent { by_reset } = act
            && !whole.is_empty()
        {
            // Without a length the end of the connection is that of the content: only a reset shows that it is cut.
            let by_reset = by_reset || framing == Framing::UntilClose;
            return Ok(leave(stream, by_reset));
        }
        if framing == Framing::Chunked {
            stream.write(Payload::Copy(b"0\r\n\r\n"));
        }
        drain(stream).await?;
        Ok(framing != Framing::UntilClose && act != Act::AnswerAndClose)
    }
}

/// The number of an answer's content, which is none of a request's.
pub(super) const fn answer_number(request: u32) -> u32 {
    request + 1_000
}

async fn drain(stream: &WorldTransport) -> Result<(), End> {
    stream.drained(QUEUED_BYTES).await.map_err(End::Broken)
}

/// The connection ends; the caller drops it.
fn leave(stream: &WorldTransport, by_reset: bool) -> bool {
    if by_reset {
        // An engine without it would close, which is another way to leave.
        let _ = stream.set(StreamOption::ResetOnClose);
    }
    false
}

/// Longer than `proxy_read_timeout`.
const SLEEP: Duration = Duration::from_secs(100);

const PIECE_BYTES: usize = 7_000;
const QUEUED_BYTES: u64 = 20_000;

/// Odd, so that no two requests of a world are answered by the same draw.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
