//! What a client of a proxy does, and what it finds.

use super::incoming::{End, Expected, Framing, Head, Incoming};
use super::origin::answer_number;
use super::plan::{RequestPlan, TalkPlan};
use super::secured::Securing;
use crate::WorldEngine;
use crate::content;
use mill_multiplex::call::Call;
use mill_multiplex::carrier::Carrier;
use mill_multiplex::{Multiplexed, Options};
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine};
use mill_runtime::payload::Payload;
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::{Stream, StreamError, StreamOption};
use mill_runtime::time::Duration;
use mill_tls::transport::TransportOf;
use std::cell::RefCell;
use std::rc::Rc;

/// A client's means, and what became of its requests.
pub(super) struct Client {
    pub(super) engine: WorldEngine,
    pub(super) scheduler: Rc<Scheduler>,
    pub(super) proxy: Address,
    pub(super) is_http2: bool,
    pub(super) securing: Option<Securing>,
    pub(super) multiplexed: RefCell<Option<Rc<Multiplexed<WorldTransport>>>>,
    /// By the number of the request.
    pub(super) results: RefCell<Vec<(u32, Found)>>,
}

/// A connection in clear, or under TLS.
type WorldTransport = TransportOf<WorldEngine>;

/// A connection of its own, or a stream of HTTP/2.
type WorldCarrier = Carrier<WorldTransport>;

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The answer is whole and right.
    Answer,
    /// The proxy's own.
    Status(u16),
    /// The answer is visibly cut.
    Cut,
    /// The connection was closed before an answer; whether it was the connection's first request.
    Nothing {
        is_first: bool,
    },
    /// No connection came about.
    NoConnection(StreamError),
    Late,
    /// The client has left, as it was to.
    Left,
    /// What must not be.
    Wrong(String),
}

pub(super) async fn perform(client: Rc<Client>, plan: TalkPlan) {
    client.scheduler.sleep(plan.at).await;
    let mut stream = None;
    for (index, request) in plan.requests.iter().enumerate() {
        let is_first = stream.is_none();
        let open = match stream.take() {
            Some(open) => open,
            None => match client.connect().await {
                Ok(open) => open,
                Err(error) => {
                    client.tell(request, Found::NoConnection(error));
                    continue;
                }
            },
        };
        let is_last = index + 1 == plan.requests.len();
        let asked = client.ask(&open, request, &plan, is_first, is_last).await;
        let (found, goes_on) = match &open {
            // The proxy has ended the connection before: it is asked on another one.
            Carrier::Call(call) if call.is_refused() => client.ask_again(request, &plan).await,
            _ => asked,
        };
        if let (Found::Left, Some((_, true))) = (&found, request.leaves) {
            // An engine without it would close, which is another way to leave early.
            let _ = open.set(StreamOption::ResetOnClose);
        }
        client.tell(request, found);
        stream = goes_on.then_some(open);
    }
}

impl Client {
    fn tell(&self, request: &RequestPlan, found: Found) {
        self.results.borrow_mut().push((request.number, found));
    }

    /// While the neighbour is unknown (no answer to ARP on a bad wire) it tries again.
    async fn connect(&self) -> Result<WorldCarrier, StreamError> {
        if !self.is_http2 {
            return self.open().await.map(Carrier::Own);
        }
        if let Some(call) = self.call() {
            return Ok(Carrier::Call(call));
        }
        let stream = self.open().await?;
        // Another talk may have opened one meanwhile.
        if let Some(call) = self.call() {
            return Ok(Carrier::Call(call));
        }
        let options = Options {
            idle_timeout: IDLE,
            ..Options::default()
        };
        let scheme: &[u8] = if self.securing.is_some() {
            b"https"
        } else {
            b"http"
        };
        let started = Multiplexed::start(stream, scheme, &options, &self.scheduler);
        let connection = started.ok_or(StreamError::Refused)?;
        let call = connection.open().ok_or(StreamError::Refused)?;
        *self.multiplexed.borrow_mut() = Some(connection);
        Ok(Carrier::Call(call))
    }

    /// A place on the client's connection of HTTP/2, if it has one.
    fn call(&self) -> Option<Call<WorldTransport>> {
        let multiplexed = self.multiplexed.borrow();
        multiplexed.as_ref().and_then(Multiplexed::open)
    }

    /// A connection, whose handshake is over.
    async fn open(&self) -> Result<WorldTransport, StreamError> {
        let stream = self.open_in_clear().await?;
        let transport = match &self.securing {
            Some(securing) => securing.over(stream),
            None => WorldTransport::Tcp(stream),
        };
        let deadline = self.scheduler.now() + PATIENCE;
        let drained = self.scheduler.until(deadline, transport.drained(0)).await;
        match drained {
            Ok(Ok(())) => Ok(transport),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(StreamError::Unfinished),
        }
    }

    async fn open_in_clear(&self) -> Result<<WorldEngine as Engine>::Stream, StreamError> {
        let mut attempts = 0;
        loop {
            let (options, task) = (ConnectOptions::default(), self.scheduler.current());
            let connected = match self.engine.connect(&self.proxy, &options, task) {
                Ok(stream) => stream.drained(0).await.map(|()| stream),
                Err(error) => Err(error),
            };
            attempts += 1;
            match connected {
                Err(StreamError::Unreachable) if attempts < ATTEMPTS_MAX => {
                    self.scheduler.sleep(Duration::from_secs(1)).await;
                }
                connected => return connected,
            }
        }
    }

    /// Makes a request that the proxy did not begin with once more, as often as that happens.
    async fn ask_again(&self, request: &RequestPlan, plan: &TalkPlan) -> (Found, bool) {
        for _ in 0..REFUSALS_MAX {
            let open = match self.connect().await {
                Ok(open) => open,
                Err(error) => return (Found::NoConnection(error), false),
            };
            let (found, _) = self.ask(&open, request, plan, true, true).await;
            match &open {
                Carrier::Call(call) if call.is_refused() => {}
                _ => return (found, false),
            }
        }
        (Found::Nothing { is_first: true }, false)
    }

    /// Makes a request. Returns what came of it, and whether the connection stays open.
    async fn ask(
        &self,
        stream: &WorldCarrier,
        request: &RequestPlan,
        plan: &TalkPlan,
        is_first: bool,
        is_last: bool,
    ) -> (Found, bool) {
        self.send(stream, request, plan, is_last).await;
        if !request.pause.is_zero() {
            self.scheduler.sleep(request.pause).await;
        }
        let incoming = Incoming {
            stream,
            scheduler: &self.scheduler,
        };
        let head = match incoming.head().await {
            Ok(head) => head,
            Err(End::Late) => return (Found::Late, false),
            // A reset may overtake the head.
            Err(End::Closed { has_begun: true } | End::Broken(_)) => return (Found::Cut, false),
            Err(End::Malformed(what)) => return (Found::Wrong(what), false),
            Err(_) => return (Found::Nothing { is_first }, false),
        };
        match self.read_answer(&incoming, &head, request).await {
            // A call carries one request.
            Ok((found, is_kept)) => {
                let stays = is_kept && !is_last && !plan.is_http10 && !self.is_http2;
                (found, stays)
            }
            Err(End::Late) => (Found::Late, false),
            Err(End::Malformed(what)) => (Found::Wrong(format!("{what} in {}", head.0)), false),
            Err(End::Enough) => (Found::Left, false),
            Err(End::Closed { .. } | End::Broken(_)) => (Found::Cut, false),
        }
    }

    /// Sends the request as long as it is taken; the proxy may have answered before.
    async fn send(
        &self,
        stream: &WorldCarrier,
        request: &RequestPlan,
        plan: &TalkPlan,
        is_last: bool,
    ) {
        let RequestPlan { number, len, .. } = request;
        let version = if plan.is_http10 { "1.0" } else { "1.1" };
        let method = if request.posted.is_some() {
            "POST"
        } else {
            "GET"
        };
        let mut head = format!("{method} /{number}-{len} HTTP/{version}\r\nHost: world\r\n");
        if is_last && !plan.is_http10 {
            head += "Connection: close\r\n";
        }
        let posted = request.posted;
        let may_chunk = self.is_http2 || !plan.is_http10;
        let is_chunked = posted.is_some_and(|posted| posted.is_chunked) && may_chunk;
        // HTTP/2 tells the end of content by itself.
        let has_chunks = is_chunked && !self.is_http2;
        match posted {
            Some(_) if is_chunked => head += "Transfer-Encoding: chunked\r\n",
            Some(posted) => head += &format!("Content-Length: {}\r\n", posted.len),
            None => {}
        }
        stream.write(Payload::Copy((head + "\r\n").as_bytes()));
        let content = content::of(*number, posted.map_or(0, |posted| posted.len));
        for piece in content.chunks(PIECE_BYTES) {
            if has_chunks {
                stream.write(Payload::Copy(format!("{:X}\r\n", piece.len()).as_bytes()));
            }
            stream.write(Payload::Copy(piece));
            if has_chunks {
                stream.write(Payload::Copy(b"\r\n"));
            }
            let deadline = self.scheduler.now() + PATIENCE;
            let drained = self.scheduler.until(deadline, stream.drained(QUEUED_BYTES));
            if !matches!(drained.await, Ok(Ok(()))) {
                return;
            }
        }
        if has_chunks {
            stream.write(Payload::Copy(b"0\r\n\r\n"));
        } else if is_chunked {
            stream.shutdown();
        }
    }

    async fn read_answer(
        &self,
        incoming: &Incoming<'_, WorldCarrier>,
        head: &Head,
        request: &RequestPlan,
    ) -> Result<(Found, bool), End> {
        let status = head.first_line().get(9..12).and_then(|it| it.parse().ok());
        let status: u16 = status.ok_or_else(|| End::Malformed(head.0.clone()))?;
        let framing = head.framing(Framing::UntilClose)?;
        let is_kept = framing != Framing::UntilClose && head.field("Connection")? != Some("close");
        if status != 200 {
            incoming.content(framing, |_| Ok(())).await?;
            return Ok((Found::Status(status), is_kept));
        }
        let whole = content::of(answer_number(request.number), request.len);
        let mut expected = Expected::new(whole);
        let leaves = request.leaves.map(|(after, _)| after);
        let read = incoming.content(framing, |piece| {
            expected.take(piece)?;
            match leaves {
                Some(after) if expected.came >= after => Err(End::Enough),
                _ => Ok(()),
            }
        });
        read.await?;
        if !expected.is_whole() {
            let (came, len) = (expected.came, request.len);
            let text = format!("an answer ended as if whole after {came} of {len} bytes");
            return Err(End::Malformed(text));
        }
        Ok((Found::Answer, is_kept))
    }
}

/// How often a client tries to connect: for longer than any partition of a world lasts.
const ATTEMPTS_MAX: u32 = 60;

/// A connection of HTTP/2 ends when it has carried nothing for so long.
const IDLE: Duration = Duration::from_secs(20);

/// How often a request is not begun with in a row.
const REFUSALS_MAX: u32 = 20;

const PATIENCE: Duration = Duration::from_secs(600);
const PIECE_BYTES: usize = 9_000;
const QUEUED_BYTES: u64 = 20_000;
