//! Between the writer and the thread of a table: rows one way, what is to be said of them the other way.

use super::pending::{Batch, Pending};
use crate::log::store::Fault;
use mill_config::config::LogLevel;
use mill_config::config::log::RowTable;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Exchange {
    state: Mutex<State>,
    changed: Condvar,
    max_events: u64,
    max_wait: Duration,
    /// The writer, which logs what is said.
    writer: Thread,
}

#[derive(Debug, Default)]
struct State {
    pending: Pending,
    /// A batch is on its way.
    is_inserting: bool,
    is_stopping: bool,
    said: Vec<Fault>,
    lost: u64,
}

impl Exchange {
    pub(super) fn new(table: &RowTable, writer: Thread) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            max_events: table.max_events,
            max_wait: table.max_wait,
            writer,
        }
    }

    /// Adds rows; those that find no room are lost.
    pub(super) fn push(&self, rows: &[u8], count: u64) {
        let mut state = self.lock();
        let before = state.pending.rows();
        let lost = match state.is_stopping {
            true => count,
            false => state.pending.push(rows),
        };
        state.lost += lost;
        let now = state.pending.rows();
        if before == 0 || (before < self.max_events && now >= self.max_events) {
            self.changed.notify_all();
        }
    }

    /// The next batch, once it is large or old enough; `None` after the last one.
    pub(super) fn next(&self) -> Option<Batch> {
        let mut state = self.lock();
        state.is_inserting = false;
        let state = self.wait(state, |state| state.pending.rows() == 0);
        let waited = self
            .changed
            .wait_timeout_while(state, self.max_wait, |state| {
                state.pending.rows() < self.max_events && !state.is_stopping
            });
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_inserting = true;
        let batch = state.pending.take();
        (batch.rows > 0).then_some(batch)
    }

    /// Waits while `goes_on`, until the end at the latest.
    fn wait<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        goes_on: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        let waited = self
            .changed
            .wait_while(state, |state| goes_on(state) && !state.is_stopping);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass before another attempt; shorter if it is to end.
    pub(super) fn rest(&self, time: Duration) {
        let state = self.lock();
        // Why it ended does not matter.
        let _ = self
            .changed
            .wait_timeout_while(state, time, |state| !state.is_stopping);
    }

    /// Has something logged.
    pub(super) fn say(&self, level: LogLevel, text: String) {
        self.lock().said.push(Fault::Table { level, text });
        self.writer.unpark();
    }

    /// Rows of a batch are lost.
    pub(super) fn lose(&self, rows: u64) {
        let mut state = self.lock();
        state.pending.drop_rows(rows);
        state.lost += rows;
    }

    pub(super) fn take_reports(&self) -> (Vec<Fault>, u64) {
        let mut state = self.lock();
        (
            std::mem::take(&mut state.said),
            std::mem::take(&mut state.lost),
        )
    }

    pub(super) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.pending.rows() == 0 && !state.is_inserting
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.lock().is_stopping
    }

    /// No rows come any more: one more attempt, and the thread ends.
    pub(super) fn stop(&self) {
        self.lock().is_stopping = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No state is left inconsistent under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
