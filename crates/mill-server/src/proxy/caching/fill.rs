//! What brings content from a server into a zone. It does so in a task of its own: requests that read it come and go.

use super::super::source::UpstreamContent;
use crate::cache::{CacheZone, StoredAnswer};
use crate::content::source::Source;
use crate::local::Local;
use mill_cache::{Appended, Fill, Room};
use mill_config::config::LogLevel;
use mill_runtime::engine::Engine;
use mill_runtime::spawned::Purpose;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// Where content of an answer that is kept is written.
pub(in crate::proxy) struct ZoneFill {
    fill: Fill<StoredAnswer>,
    zone: Arc<CacheZone>,
}

impl ZoneFill {
    pub(super) const fn new(fill: Fill<StoredAnswer>, zone: Arc<CacheZone>) -> Self {
        Self { fill, zone }
    }

    pub(in crate::proxy) fn append(&mut self, bytes: &[u8]) -> Appended {
        self.fill.append(bytes)
    }

    /// All of it is there. A length that differs from the announced one has failed the content: its readers know.
    pub(in crate::proxy) fn finish<E: Engine>(self, local: &Local<E>) {
        if let Ok(Some(kept)) = self.fill.finish() {
            self.zone.stored(&kept, local);
        }
    }
}

/// Content on its way into a zone.
pub(in crate::proxy) struct Filling<E: Engine> {
    source: UpstreamContent<E>,
    fill: ZoneFill,
    local: Rc<Local<E>>,
}

impl<E: Engine> Filling<E> {
    /// Begins; the connection to the server is the task's from now on. Without a task the content fails, and so do its
    /// readers.
    pub(in crate::proxy) fn start(source: UpstreamContent<E>, fill: ZoneFill, local: &Local<E>) {
        let filling = Self {
            source,
            fill,
            local: local.shared(),
        };
        if local
            .scheduler
            .spawn(Purpose::Finishing, filling.run())
            .is_err()
        {
            let text = format_args!("no task is left to fill a cache");
            local.log_error(None, LogLevel::Error, text);
        }
    }

    async fn run(mut self) {
        let local = Rc::clone(&self.local);
        self.source.set_task(local.scheduler.current());
        let mut piece = local.take_buffer();
        let end = loop {
            if let Some(end) = self.step(&mut piece).await {
                break end;
            }
        };
        local.put_buffer(piece);
        if end == End::Whole {
            self.fill.finish(&local);
        }
    }

    /// Brings one piece.
    async fn step(&mut self, piece: &mut Vec<u8>) -> Option<End> {
        let scheduler = Rc::clone(&self.local.scheduler);
        let waker = self.local.wakes.waker(scheduler.current());
        let room = poll_fn(|_| match self.fill.fill.poll_room(&waker) {
            Room::Full => Poll::Pending,
            room => Poll::Ready(room),
        });
        if room.await == Room::Unread {
            return Some(End::Early);
        }
        piece.clear();
        let source = &mut self.source;
        match poll_fn(|_| source.poll_piece(PIECE_BYTES, piece)).await {
            Ok(true) if self.fill.append(piece) == Appended::Unread => Some(End::Early),
            Ok(true) => {
                self.leave_a_turn(piece.len()).await;
                None
            }
            Ok(false) => Some(End::Whole),
            Err(_) => Some(End::Early),
        }
    }

    /// A server that is faster than we are leaves other requests their turns.
    async fn leave_a_turn(&self, bytes: usize) {
        if bytes >= PIECE_BYTES / 2 {
            self.local.scheduler.yield_now().await;
        }
    }
}

/// How a fill ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Whole,
    /// Its server has failed, or nothing wants it any more.
    Early,
}

/// Bytes that are taken from a server at once, at most.
const PIECE_BYTES: usize = 256 * 1024;
