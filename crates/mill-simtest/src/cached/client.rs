//! What a client does, and what it gets.

/// Requests that remove what is kept.
mod removing;

use super::ledger::{Ledger, Sent};
use super::plan::CachedPlan;
use super::plan::request::{Ask, Get, TalkPlan};
use crate::proxied::incoming::{End, Expected, Framing, Head, Incoming};
use mill_runtime::engine::{ConnectOptions, Engine};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamError, StreamOption};
use mill_runtime::time::Duration;
use mill_sim::engine::SimEngine;
use mill_sim::stream::SimStream;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;

/// A client's means, and what became of its requests.
pub(super) struct Client {
    pub(super) engine: SimEngine,
    pub(super) scheduler: Rc<Scheduler>,
    pub(super) proxy: mill_runtime::address::Address,
    pub(super) plan: Rc<CachedPlan>,
    pub(super) ledger: Rc<Ledger>,
    pub(super) answers: RefCell<Vec<Answered>>,
    /// The validator that was seen last, by object and variant.
    pub(super) etags: RefCell<BTreeMap<(usize, u8), String>>,
}

/// A GET or HEAD, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) get: Get,
    pub(super) asked_at: Duration,
    /// Its place among what clients do.
    pub(super) asked: u64,
    /// The head was there.
    pub(super) came_at: Duration,
    pub(super) found: Found,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Answer(Told),
    /// The proxy's own, without an answer of an origin.
    Status(u16),
    Cut,
    Nothing {
        is_first: bool,
    },
    Late,
    /// The client has left, as it was to; what it had been told.
    Left(Told),
    /// What must not be.
    Wrong(String),
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) status: u16,
    /// The answer of an origin that it is.
    pub(super) serial: usize,
    /// `X-Cache`.
    pub(super) outcome: String,
    /// Seconds.
    pub(super) age: Option<u64>,
}

pub(super) async fn perform(client: Rc<Client>, talk: TalkPlan) {
    client.scheduler.sleep(talk.at).await;
    let mut stream = None;
    for (gap, ask) in &talk.steps {
        if !gap.is_zero() {
            client.scheduler.sleep(*gap).await;
        }
        let is_first = stream.is_none();
        let open = match stream.take() {
            Some(open) => Ok(open),
            None => client.connect().await,
        };
        let open = match open {
            Ok(open) => open,
            Err(error) => {
                client.ledger.note(format!("no connection: {error:?}"));
                continue;
            }
        };
        let goes_on = match ask {
            Ask::Get(get) => client.get(&open, get, is_first).await,
            Ask::Purge(purge) => client.purge(&open, purge).await,
            Ask::Change { object } => client.change(&open, *object).await,
        };
        stream = goes_on.then_some(open);
    }
}

impl Client {
    fn now(&self) -> Duration {
        self.ledger.at(self.scheduler.now())
    }

    async fn connect(&self) -> Result<SimStream, StreamError> {
        let (options, task) = (ConnectOptions::default(), self.scheduler.current());
        let stream = self.engine.connect(&self.proxy, &options, task)?;
        stream.drained(0).await.map(|()| stream)
    }

    fn incoming<'a>(&'a self, stream: &'a SimStream) -> Incoming<'a, SimStream> {
        Incoming {
            stream,
            scheduler: &self.scheduler,
        }
    }

    /// Makes a request, and keeps what came of it. Returns whether the connection stays open.
    async fn get(&self, stream: &SimStream, get: &Get, is_first: bool) -> bool {
        let (asked_at, asked) = (self.now(), self.ledger.next_act());
        let condition = self.condition(get);
        stream.write(Payload::Copy(
            self.head(get, condition.as_deref()).as_bytes(),
        ));
        if !get.pause.is_zero() {
            self.scheduler.sleep(get.pause).await;
        }
        let incoming = self.incoming(stream);
        let head = incoming.head().await;
        let came_at = self.now();
        let (found, goes_on) = match head {
            Ok(head) => {
                let read = self.read(&incoming, &head, get, condition.as_deref()).await;
                read.unwrap_or_else(|end| (ended(end, &head), false))
            }
            Err(End::Late) => (Found::Late, false),
            Err(End::Malformed(what)) => (Found::Wrong(what), false),
            Err(End::Closed { has_begun: true } | End::Broken(_)) => (Found::Cut, false),
            Err(_) => (Found::Nothing { is_first }, false),
        };
        if let (Found::Left(_), Some((_, true))) = (&found, get.leaves) {
            // An engine without it would close, which is another way to leave early.
            let _ = stream.set(StreamOption::ResetOnClose);
        }
        self.answers.borrow_mut().push(Answered {
            get: get.clone(),
            asked_at,
            asked,
            came_at,
            found,
        });
        goes_on
    }

    fn condition(&self, get: &Get) -> Option<String> {
        let etags = self.etags.borrow();
        let etag = etags.get(&(get.object, get.variant));
        etag.filter(|_| get.is_conditional).cloned()
    }

    fn head(&self, get: &Get, condition: Option<&str>) -> String {
        let method = if get.is_head { "HEAD" } else { "GET" };
        let target = &self.plan.objects[get.object].target;
        let mut head = format!(
            "{method} {target} HTTP/1.1\r\nHost: world\r\nX-User: {}\r\nX-V: {}\r\n",
            get.user, get.variant
        );
        if get.is_authorized {
            let _ = write!(head, "Authorization: Basic {}\r\n", get.user);
        }
        if get.bypasses {
            head += "X-Bypass: 1\r\n";
        }
        if let Some((first, last)) = get.range {
            let _ = write!(head, "Range: bytes={first}-{last}\r\n");
        }
        if let Some(etag) = condition {
            let _ = write!(head, "If-None-Match: {etag}\r\n");
        }
        if let Some(control) = get.control {
            let _ = write!(head, "Cache-Control: {}\r\n", control.value());
        }
        head + "\r\n"
    }

    /// Reads an answer whose head is there. Returns what came of it, and whether the connection stays open.
    async fn read(
        &self,
        incoming: &Incoming<'_, SimStream>,
        head: &Head,
        get: &Get,
        condition: Option<&str>,
    ) -> Result<(Found, bool), End> {
        let status = head.first_line().get(9..12).and_then(|it| it.parse().ok());
        let status: u16 = status.ok_or_else(|| End::Malformed(head.0.clone()))?;
        let mut framing = head.framing(Framing::UntilClose)?;
        let told_len = framing;
        if get.is_head || status == 304 {
            framing = Framing::Length(0);
        }
        let is_kept = framing != Framing::UntilClose && head.field("Connection")? != Some("close");
        let serial = head.field("X-Serial")?.and_then(|it| it.parse().ok());
        let sent = serial.and_then(|serial| self.ledger.answer(serial));
        let (Some(serial), Some(sent)) = (serial, sent) else {
            incoming.content(framing, |_| Ok(())).await?;
            return Ok((Found::Status(status), is_kept));
        };
        let told = Told {
            status,
            serial,
            outcome: head.field("X-Cache")?.unwrap_or_default().to_owned(),
            age: head.field("Age")?.and_then(|age| age.parse().ok()),
        };
        if status == 416 {
            incoming.content(framing, |_| Ok(())).await?;
            return Ok((Found::Answer(told), is_kept));
        }
        self.check_fields(head, &sent, status, condition)?;
        if sent.identity.status == 200
            && let Some(etag) = head.field("ETag")?
        {
            let key = (get.object, get.variant);
            self.etags.borrow_mut().insert(key, etag.to_owned());
        }
        let expected = self.expected(head, &sent, status)?;
        if let (Framing::Length(len), true) = (told_len, get.is_head)
            && len != expected.len()
        {
            return Err(End::Malformed(format!(
                "{len} bytes are told of {}",
                expected.len()
            )));
        }
        let expected = if framing == Framing::Length(0) {
            &[]
        } else {
            expected
        };
        self.read_content(incoming, framing, expected, get, told, is_kept)
            .await
    }

    async fn read_content(
        &self,
        incoming: &Incoming<'_, SimStream>,
        framing: Framing,
        expected: &'static [u8],
        get: &Get,
        told: Told,
        is_kept: bool,
    ) -> Result<(Found, bool), End> {
        let mut expected = Expected::new(expected);
        let leaves = get.leaves.map(|(after, _)| after);
        let read = incoming.content(framing, |piece| {
            expected.take(piece)?;
            match leaves {
                Some(after) if expected.came >= after => Err(End::Enough),
                _ => Ok(()),
            }
        });
        match read.await {
            Err(End::Enough) => return Ok((Found::Left(told), false)),
            read => read?,
        }
        if !expected.is_whole() {
            let (came, len) = (expected.came, expected.bytes.len());
            let text = format!("an answer ended as if whole after {came} of {len} bytes");
            return Err(End::Malformed(text));
        }
        Ok((Found::Answer(told), is_kept))
    }

    /// The fields of the head are those of the answer that it names.
    fn check_fields(
        &self,
        head: &Head,
        sent: &Sent,
        status: u16,
        condition: Option<&str>,
    ) -> Result<(), End> {
        let malformed = |what: &str| Err(End::Malformed(String::from(what)));
        if !matches!(status, 206 | 304) && status != sent.identity.status {
            return malformed("its status is not that of the answer");
        }
        let own = sent.identity.etag();
        let etag = head.field("ETag")?;
        if etag.is_some_and(|etag| etag.trim_start_matches("W/") != own) {
            return malformed("its ETag is not that of the answer");
        }
        if status == 304 && condition != Some(own.as_str()) {
            return malformed("a 304 of something else than was asked for");
        }
        Ok(())
    }

    /// The bytes that the content must be.
    fn expected(&self, head: &Head, sent: &Sent, status: u16) -> Result<&'static [u8], End> {
        let whole = self.ledger.content(&sent.identity, sent.len);
        if status != 206 {
            return Ok(whole);
        }
        let range = head.field("Content-Range")?.unwrap_or_default();
        let numbers = range.strip_prefix("bytes ").and_then(|range| {
            let (range, len) = range.split_once('/')?;
            let (first, last) = range.split_once('-')?;
            let last: usize = last.parse().ok()?;
            (len.parse() == Ok(sent.len)).then_some(())?;
            whole.get(first.parse().ok()?..=last)
        });
        numbers.ok_or_else(|| End::Malformed(format!("Content-Range: {range} of {}", sent.len)))
    }
}

fn ended(end: End, head: &Head) -> Found {
    match end {
        End::Late => Found::Late,
        End::Malformed(what) => Found::Wrong(format!("{what} in {}", head.0)),
        End::Enough | End::Closed { .. } | End::Broken(_) => Found::Cut,
    }
}
