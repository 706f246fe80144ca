//! What a server behind the cache does.

/// An answer on its way.
mod outgoing;

use super::ledger::{Identity, Ledger, Outcome, Sent};
use super::plan::CachedPlan;
use super::plan::object::{Leave, ObjectPlan};
use crate::parties::Party;
use crate::proxied::incoming::{End, Framing, Head, Incoming};
use mill_runtime::engine::{Engine, ListenOptions};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::Stream;
use mill_runtime::time::Duration;
use mill_runtime::worker::Worker;
use mill_sim::random::Random;
use mill_sim::stream::SimStream;
use mill_sim::world::World;
use outgoing::{Outgoing, drain, leave};
use std::fmt::Write as _;
use std::rc::Rc;

/// What an origin does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Answer,
    Unavailable(u16),
    Close,
    Reset,
    CutHead,
    CutContent {
        by_reset: bool,
    },
    /// Longer than the proxy waits.
    Sleep,
}

struct Origin {
    scheduler: Rc<Scheduler>,
    plan: Rc<CachedPlan>,
    ledger: Rc<Ledger>,
}

/// A request as it came.
struct Request {
    head: Head,
    object: usize,
    asked_at: Duration,
    /// Its place in the ledger.
    question: usize,
}

/// An origin.
pub(super) fn start(
    world: &World,
    index: usize,
    plan: &Rc<CachedPlan>,
    ledger: &Rc<Ledger>,
) -> Party {
    let engine = world.engine();
    let (now, wall_clock) = engine.clock();
    let scheduler = Scheduler::new(now, wall_clock);
    let options = ListenOptions::new(world.address(&plan.origin(index)));
    let listening = engine.listen(&options);
    let listening = listening.unwrap_or_else(|error| panic!("an origin cannot listen: {error:?}"));
    let origin = Rc::new(Origin {
        scheduler: Rc::clone(&scheduler),
        plan: Rc::clone(plan),
        ledger: Rc::clone(ledger),
    });
    let mut worker = Worker::new(engine.clone(), scheduler, move |stream, _| {
        serve(stream, Rc::clone(&origin))
    });
    worker.add_listener(listening.id);
    let turn = Box::new(move || {
        worker.turn();
    });
    Party { engine, turn }
}

async fn serve(stream: SimStream, origin: Rc<Origin>) {
    while let Ok(true) = origin.serve_one(&stream).await {}
}

impl Origin {
    fn now(&self) -> Duration {
        self.ledger.at(self.scheduler.now())
    }

    /// Serves one request. Returns whether another one may follow.
    async fn serve_one(&self, stream: &SimStream) -> Result<bool, End> {
        let incoming = Incoming {
            stream,
            scheduler: &self.scheduler,
        };
        let head = incoming.head().await?;
        let framing = head.framing(Framing::Length(0))?;
        incoming.content(framing, |_| Ok(())).await?;
        let request = self.request(head)?;
        let mut random =
            Random::new(self.plan.seed ^ (request.question as u64).wrapping_mul(SPREAD));
        let act = self.act(&mut random);
        match act {
            Act::Close | Act::Reset => {
                self.end(&request, Outcome::Failed);
                return Ok(leave(stream, act == Act::Reset));
            }
            Act::Sleep => {
                self.scheduler.sleep(SLEEP).await;
                self.end(&request, Outcome::Failed);
                return Ok(false);
            }
            _ => {}
        }
        if request.head.first_line().starts_with("POST ") {
            self.ledger.change(request.object);
            stream.write(Payload::Copy(b"HTTP/1.1 204 No Content\r\n\r\n"));
            self.end(&request, Outcome::NotModified);
            return drain(stream).await.map(|()| true);
        }
        let answered = self.answer(stream, &request, act, &mut random).await;
        if answered.is_err() {
            self.end(&request, Outcome::Failed);
        }
        answered
    }

    fn end(&self, request: &Request, outcome: Outcome) {
        self.ledger.end(request.question, self.now(), outcome);
    }

    /// What the head says, if it is one that a client has asked for.
    fn request(&self, head: Head) -> Result<Request, End> {
        let mut words = head.first_line().split(' ');
        let (method, target) = (words.next(), words.next());
        let objects = &self.plan.objects;
        let object = objects
            .iter()
            .position(|it| Some(it.target.as_str()) == target);
        let (Some("GET" | "HEAD" | "POST"), Some(object)) = (method, object) else {
            let fault = format!("a request that no client made: {}", head.0);
            self.ledger.note(fault.clone());
            return Err(End::Malformed(fault));
        };
        let lacks = |name: &str| matches!(head.field(name), Ok(None));
        let is_plain = method == Some("GET")
            && ["X-Bypass", "Authorization", "Cache-Control"]
                .into_iter()
                .all(lacks);
        let asked_at = self.now();
        Ok(Request {
            question: self.ledger.ask(object, asked_at, is_plain),
            head,
            object,
            asked_at,
        })
    }

    fn act(&self, random: &mut Random) -> Act {
        if !random.happens(self.plan.faults_per_million) {
            return Act::Answer;
        }
        random.one_of(&[
            Act::Unavailable(500),
            Act::Unavailable(503),
            Act::Close,
            Act::Reset,
            Act::CutHead,
            Act::CutContent { by_reset: false },
            Act::CutContent { by_reset: true },
            Act::CutContent { by_reset: true },
            Act::Sleep,
        ])
    }

    /// What there is for this request now.
    fn identity(&self, request: &Request, act: Act) -> Result<Identity, End> {
        let object = &self.plan.objects[request.object];
        let version = self.ledger.version(&self.plan, request.object, self.now());
        let number = |name: &str| -> Result<Option<usize>, End> {
            let value = request.head.field(name)?;
            Ok(value.and_then(|value| value.parse().ok()))
        };
        let has_authorization = request.head.field("Authorization")?.is_some();
        let status = match act {
            Act::Unavailable(status) => status,
            _ => 200,
        };
        let is_usual = status == 200;
        let variant = number("X-V")?.and_then(|it| u8::try_from(it).ok());
        let is_personal = is_usual && object.leave(version).is_personal(has_authorization);
        Ok(Identity {
            object: request.object,
            variant: variant.filter(|_| is_usual && object.varies),
            version,
            user: number("X-User")?.filter(|_| is_personal),
            status,
        })
    }

    /// Sends an answer, or a part of it. Returns whether the connection stays open.
    async fn answer(
        &self,
        stream: &SimStream,
        request: &Request,
        act: Act,
        random: &mut Random,
    ) -> Result<bool, End> {
        if self.plan.objects[request.object].is_slow {
            let wait = Duration::from_millis(random.up_to(1_500));
            self.scheduler.sleep(wait).await;
        }
        let identity = self.identity(request, act)?;
        let object = &self.plan.objects[request.object];
        let own_leave = object.leave(identity.version);
        if identity.status == 200 && is_same(&request.head, object, &identity)? {
            let mut head = String::from("HTTP/1.1 304 Not Modified\r\n");
            if object.has_etag {
                let _ = write!(head, "ETag: {}\r\n", identity.etag());
            }
            if random.happens(500_000) {
                head += &own_leave.fields(self.now(), self.plan.serving.follows_rfc);
            }
            let confirmed = (identity, request.asked_at, self.now());
            self.ledger.confirmed.borrow_mut().push(confirmed);
            stream.write(Payload::Copy((head + "\r\n").as_bytes()));
            self.end(request, Outcome::NotModified);
            return drain(stream).await.map(|()| true);
        }
        let len = match identity.status {
            200 => object.len(identity.version, self.plan.seed),
            _ => 7,
        };
        let serial = self.ledger.send(Sent {
            identity: identity.clone(),
            leave: match identity.status {
                200 => own_leave,
                _ => Leave::Silent,
            },
            len,
            asked_at: request.asked_at,
            sent_at: self.now(),
        });
        let fields = self.fields(object, &identity, serial);
        let content = self.ledger.content(&identity, len);
        let is_head = request.head.first_line().starts_with("HEAD ");
        let outgoing = Outgoing {
            stream,
            scheduler: &self.scheduler,
            is_slow: object.is_slow,
        };
        let is_open = outgoing
            .send(&identity, &fields, content, is_head, act, random)
            .await?;
        let is_failure =
            identity.status != 200 || matches!(act, Act::CutHead | Act::CutContent { .. });
        self.end(
            request,
            match is_failure {
                true => Outcome::Failed,
                false => Outcome::Whole { serial },
            },
        );
        Ok(is_open)
    }

    fn fields(&self, object: &ObjectPlan, identity: &Identity, serial: usize) -> String {
        let mut fields = format!("X-Serial: {serial}\r\n");
        if identity.status != 200 {
            return fields;
        }
        let own_leave = object.leave(identity.version);
        fields += &own_leave.fields(self.now(), self.plan.serving.follows_rfc);
        if object.has_etag {
            let _ = write!(fields, "ETag: {}\r\n", identity.etag());
        }
        if object.has_last_modified {
            let _ = write!(fields, "Last-Modified: {}\r\n", identity.last_modified());
        }
        if object.varies {
            fields += "Vary: X-V\r\n";
        }
        if object.accepts_ranges {
            fields += "Accept-Ranges: bytes\r\n";
        }
        if !object.tags.is_empty() {
            let tags: Vec<String> = object.tags.iter().map(|tag| format!("t{tag}")).collect();
            let _ = write!(fields, "Surrogate-Key: {}\r\n", tags.join(" "));
        }
        fields
    }
}

/// Whether the request names what there is now as what its sender has.
fn is_same(head: &Head, object: &ObjectPlan, identity: &Identity) -> Result<bool, End> {
    if let Some(etag) = head.field("If-None-Match")? {
        return Ok(object.has_etag && etag == identity.etag());
    }
    // What is for one user alone has no date in common with what is for all.
    let since = head
        .field("If-Modified-Since")?
        .filter(|_| identity.user.is_none());
    Ok(since.is_some_and(|date| object.has_last_modified && date == identity.last_modified()))
}

/// Longer than `proxy_read_timeout`.
const SLEEP: Duration = Duration::from_secs(40);

/// Odd, so that no two requests of a world are answered by the same draw.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
