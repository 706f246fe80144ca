//! Asks the worker threads, in their process: each answers a slice per turn, so that it goes on serving.

use super::control_socket::Question;
use super::{answer, capture, parcel, snapshot};
use mill_device::pcap::sink::{self, FrameSender};
use mill_metrics::Board;
use mill_status::document::Worker;
use mill_status::tables::Captured;
use mill_status::verdict::Observed;
use mill_status::{Part, Request, TableName};
use mill_sys::{clock, passing};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// A request to a worker thread, carried out at the end of a turn.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) what: What,
    pub(crate) request: Arc<Request>,
    pub(crate) reply: Sender<Reply>,
}

/// The share of an answer that one turn makes.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// All short tables; the answer also shows that the thread runs.
    Tables,
    /// Connections from a position on: at most `room`, and at most as many as one turn looks at.
    Connections {
        from: snapshot::Position,
        room: u32,
    },
    /// Copies of frames go to this queue from now on.
    BeginCapture(FrameSender),
    EndCapture,
}

/// The answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) worker: u32,
    pub(crate) part: Part,
    /// Where the next slice of connections begins.
    pub(crate) next: Option<snapshot::Position>,
}

/// The sending end: asks one worker thread.
#[derive(Debug)]
pub(crate) struct Inspector {
    worker: u32,
    asks: Sender<Ask>,
    has_asks: Arc<AtomicBool>,
    mailbox: OwnedFd,
}

/// The worker thread's end.
#[derive(Debug)]
pub(crate) struct InspectionQueue {
    asks: Receiver<Ask>,
    has_asks: Arc<AtomicBool>,
}

/// Makes both ends. A datagram to `mailbox` wakes the thread.
pub(crate) fn pair(worker: u32, mailbox: OwnedFd) -> (Inspector, InspectionQueue) {
    let (sender, asks) = mpsc::channel();
    let has_asks = Arc::new(AtomicBool::new(false));
    let inspector = Inspector {
        worker,
        asks: sender,
        has_asks: Arc::clone(&has_asks),
        mailbox,
    };
    (inspector, InspectionQueue { asks, has_asks })
}

impl Inspector {
    /// A copy for another thread.
    pub(crate) fn duplicate(&self) -> io::Result<Self> {
        Ok(Self {
            worker: self.worker,
            asks: self.asks.clone(),
            has_asks: Arc::clone(&self.has_asks),
            mailbox: self.mailbox.try_clone()?,
        })
    }

    fn ask(&self, ask: Ask) {
        // A thread that has ended or does not read does not answer either.
        let _ = self.asks.send(ask);
        self.has_asks.store(true, Ordering::Release);
        let _ = passing::send(self.mailbox.as_fd(), &[], &[]);
    }
}

impl InspectionQueue {
    /// The next request, at the end of a turn. Costs one load when there is none.
    #[inline]
    pub(crate) fn next(&self) -> Option<Ask> {
        if !self.has_asks.load(Ordering::Acquire) {
            return None;
        }
        self.has_asks.store(false, Ordering::Release);
        let ask = self.asks.try_recv().ok()?;
        // There may be more; a sender that adds one afterwards sets the flag itself.
        self.has_asks.store(true, Ordering::Release);
        Some(ask)
    }
}

/// Answers questions in the process of the worker threads.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    /// The number of questions being answered.
    count: Arc<AtomicU32>,
    /// The figures that the threads publish.
    board: Board,
}

impl Desk {
    pub(crate) fn new(board: Board) -> Self {
        Self {
            count: Arc::default(),
            board,
        }
    }

    /// Starts a thread that answers, which sends each worker's part to the client, the first one beginning with `common`:
    /// the tables of all workers together.
    pub(crate) fn answer(&self, question: Question, inspectors: Vec<Inspector>, common: Part) {
        let refuse = |question: &Question, what: &str| {
            let _ = question.client.send(parcel::REFUSED, what.as_bytes(), &[]);
        };
        if self.count.fetch_add(1, Ordering::Relaxed) >= QUESTIONS_MAX {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return refuse(
                &question,
                "too many questions at once: the workers were not asked",
            );
        }
        let desk = self.clone();
        let spawned = std::thread::Builder::new()
            .name(String::from("status"))
            .spawn(move || {
                gather(&question, &inspectors, common, &desk.board);
                desk.count.fetch_sub(1, Ordering::Relaxed);
            });
        if spawned.is_err() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Asks all workers at once, and asks those again that have more.
fn gather(question: &Question, inspectors: &[Inspector], common: Part, board: &Board) {
    let request = Arc::new(question.request.clone());
    let (sender, replies) = mpsc::channel();
    let ask = |inspector: &Inspector, what| {
        let (request, reply) = (Arc::clone(&request), sender.clone());
        inspector.ask(Ask {
            what,
            request,
            reply,
        });
    };
    if request.capture.is_some() {
        return capture_frames(question, inspectors, ask, &replies);
    }
    let wants_connections = request.tables.contains(&TableName::Connections);
    let mut parts: Vec<Part> = Vec::new();
    for inspector in inspectors {
        parts.push(Part::default());
        ask(inspector, What::Tables);
    }
    if let Some(first) = parts.first_mut() {
        *first = common;
    }
    let mut waiting = inspectors.len();
    let mut until = clock::monotonic() + TIMEOUT;
    while waiting > 0 {
        let left = until.saturating_sub(clock::monotonic());
        let Ok(reply) = replies.recv_timeout(left) else {
            return;
        };
        until = clock::monotonic() + TIMEOUT;
        let place = inspectors
            .iter()
            .position(|inspector| inspector.worker == reply.worker);
        let Some((inspector, part)) =
            place.and_then(|place| Some((inspectors.get(place)?, parts.get_mut(place)?)))
        else {
            continue;
        };
        let next = reply.next;
        merge(part, reply.part, request.limit);
        let shown = u32::try_from(part.connections.len()).unwrap_or(u32::MAX);
        let room = request.limit.saturating_sub(shown);
        match next {
            Some(from) if wants_connections && room > 0 => {
                ask(inspector, What::Connections { from, room });
            }
            _ => {
                waiting -= 1;
                part.process = std::process::id();
                part.worker = inspector.worker;
                part.figures = figures(board, inspector.worker);
                let sent = question
                    .client
                    .send(parcel::PART, &answer::encode(part), &[]);
                if sent.is_err() {
                    // The client has disconnected.
                    return;
                }
            }
        }
    }
}

/// The figures a worker has published when it answers.
fn figures(board: &Board, worker: u32) -> Option<Box<Worker>> {
    let shown = board.workers().find(|shown| shown.number == worker)?;
    let now_ns = u64::try_from(clock::monotonic().as_nanos()).unwrap_or(u64::MAX);
    let process = std::process::id();
    Some(Box::new(Worker::new(
        process,
        &shown,
        now_ns,
        Observed::default(),
    )))
}

/// Has all workers copy their frames, writes these, and reports the result in the first worker's part.
fn capture_frames(
    question: &Question,
    inspectors: &[Inspector],
    ask: impl Fn(&Inspector, What),
    replies: &Receiver<Reply>,
) {
    let (sender, frames) = sink::queue(capture::filter(&question.request));
    for inspector in inspectors {
        ask(inspector, What::BeginCapture(sender.clone()));
    }
    drop(sender);
    let mut begun = Vec::new();
    for _ in inspectors {
        let reply = replies.recv_timeout(TIMEOUT);
        begun.extend(
            reply
                .ok()
                .filter(|reply| reply.next.is_some())
                .map(|reply| reply.worker),
        );
    }
    let written = if begun.is_empty() {
        Err(String::from(
            "no worker has a stack whose frames could be written, or they are written already (--pcap), \
             or another process has the interface at present",
        ))
    } else {
        capture::write(question, &frames)
    };
    drop(frames);
    // Only those that this capture has begun.
    for inspector in inspectors
        .iter()
        .filter(|inspector| begun.contains(&inspector.worker))
    {
        ask(inspector, What::EndCapture);
    }
    let captured = written.unwrap_or_else(|why| Captured {
        failed: Some(why),
        ..Captured::default()
    });
    for (place, inspector) in inspectors.iter().enumerate() {
        let part = Part {
            process: std::process::id(),
            worker: inspector.worker,
            captured: (place == 0).then(|| captured.clone()),
            ..Part::default()
        };
        // The client may have disconnected.
        let _ = question
            .client
            .send(parcel::PART, &answer::encode(&part), &[]);
    }
}

/// Adds the slice of a turn.
fn merge(into: &mut Part, more: Part, limit: u32) {
    let room = (limit as usize).saturating_sub(into.connections.len());
    into.connections_total += more.connections_total;
    into.connections
        .extend(more.connections.into_iter().take(room));
    into.listeners.extend(more.listeners);
    into.neighbors.extend(more.neighbors);
    into.routes.extend(more.routes);
    into.rings.extend(more.rings);
    into.timers.extend(more.timers);
}

/// The maximum of such threads at once.
const QUESTIONS_MAX: u32 = 8;

/// How long a worker may take for its slice: as long as the client waits.
const TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Channel;
    use mill_status::tables::Connection;

    fn question(tables: &[TableName], limit: u32) -> (Channel, Question) {
        let (near, far) = Channel::pair().unwrap();
        let request = Request {
            tables: tables.to_vec(),
            limit,
            ..Default::default()
        };
        let question = Question {
            client: far,
            request,
            body: Vec::new(),
            files: Vec::new(),
        };
        (near, question)
    }

    fn part(client: &Channel) -> Part {
        let parcel = client.receive().unwrap().unwrap();
        assert_eq!(parcel.kind, parcel::PART);
        serde_json::from_slice(&parcel.body).unwrap()
    }

    /// A worker with that many connections, two of which fit in a turn's slice.
    fn worker(number: u32, connections: u32) -> (Inspector, std::thread::JoinHandle<()>) {
        let (mailbox, far) = passing::pair().unwrap();
        let (inspector, asked) = pair(number, mailbox);
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 8];
            while passing::receive(far.as_fd(), &mut buffer).is_ok() {
                let Some(ask) = asked.next() else { return };
                let (from, count) = match ask.what {
                    What::Tables => (0, 0),
                    What::Connections { from, .. } => (from.index, 2),
                    What::BeginCapture(_) | What::EndCapture => return,
                };
                let to = (from + count).min(connections);
                let part = Part {
                    connections: vec![Connection::default(); (to - from) as usize],
                    connections_total: if count == 0 { connections.into() } else { 0 },
                    ..Part::default()
                };
                let next = (to < connections).then_some(snapshot::Position {
                    index: to,
                    ..Default::default()
                });
                let _ = ask.reply.send(Reply {
                    worker: number,
                    part,
                    next,
                });
            }
        });
        (inspector, thread)
    }

    #[test]
    fn every_worker_answers_in_slices_and_no_more_is_kept_than_was_asked_for() {
        let (client, question) = question(&[TableName::Connections], 5);
        let (first, one) = worker(1, 9);
        let (second, two) = worker(2, 3);
        let desk = Desk::new(Board::in_memory(3));
        desk.answer(question, vec![first, second], Part::default());
        let mut parts = [part(&client), part(&client)];
        parts.sort_by_key(|part| part.worker);
        let found = parts.map(|part| (part.worker, part.connections.len(), part.connections_total));
        assert_eq!(found, [(1, 5, 9), (2, 3, 3)]);
        assert!(client.receive().unwrap().is_none(), "that was all");
        one.join().unwrap();
        two.join().unwrap();
    }

    #[test]
    fn an_ended_worker_delays_no_answer() {
        let (client, question) = question(&[], 5);
        let (mailbox, far) = passing::pair().unwrap();
        let (inspector, asked) = pair(1, mailbox);
        drop((asked, far));
        Desk::new(Board::in_memory(3)).answer(question, vec![inspector], Part::default());
        assert!(client.receive().unwrap().is_none());
    }
}
