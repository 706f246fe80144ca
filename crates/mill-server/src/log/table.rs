//! Rows on their way into tables of ClickHouse: for each table a thread, which inserts them over the database's HTTP
//! interface in batches, so that neither a worker nor the writer of files waits for a network.
//!
//! A row waits until `max_events` of them are there or `max_wait` is over. What cannot be inserted is tried again, later
//! and later; meanwhile rows gather up to [`pending::BYTES_MAX`], and more are dropped and counted: as lost lines, and in
//! the column `dropped_events` of the next row.

/// What waits for a database.
mod exchange;

/// The requests that insert rows.
mod insertion;

/// The thread of a table.
mod inserter;

/// Rows that wait.
mod pending;

use super::store::Fault;
use exchange::Exchange;
use inserter::{Delays, Inserter};
use mill_config::config::log::RowTable;
use mill_runtime::time::Instant;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// All tables that rows have gone to.
#[derive(Debug)]
pub(super) struct Tables {
    all: Vec<Table>,
    /// When the writer looks for more rows by itself.
    looks_at: Instant,
    delays: Delays,
}

#[derive(Debug)]
struct Table {
    table: Arc<RowTable>,
    exchange: Arc<Exchange>,
    thread: Option<JoinHandle<()>>,
}

/// The table, what is to be said of it, and rows that are lost.
type Report = (Vec<u8>, Option<Fault>, u64);

impl Default for Tables {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            looks_at: Instant::FAR,
            delays: Delays::default(),
        }
    }
}

impl Tables {
    /// Adds rows; false if there can be no thread to insert them.
    pub(super) fn append(
        &mut self,
        table: &Arc<RowTable>,
        rows: &[u8],
        count: u64,
        now: Instant,
    ) -> bool {
        // While rows come, the writer looks at the queues this often, and no worker has to wake it.
        self.looks_at = self.looks_at.min(now + table.max_wait);
        let known = self.all.iter().find(|known| known.table == *table);
        if let Some(known) = known {
            known.exchange.push(rows, count);
            return true;
        }
        let Ok(new) = Table::start(table, self.delays) else {
            return false;
        };
        new.exchange.push(rows, count);
        self.all.push(new);
        true
    }

    pub(super) const fn deadline(&self) -> Instant {
        self.looks_at
    }

    pub(super) fn expire(&mut self, now: Instant) {
        if self.looks_at <= now {
            self.looks_at = Instant::FAR;
        }
    }

    /// What is to be said since the last call.
    pub(super) fn take_reports(&mut self) -> Vec<Report> {
        let mut all = Vec::new();
        for table in &self.all {
            let path = || table.table.to_string().into_bytes();
            let (said, lost) = table.exchange.take_reports();
            let faults = said.into_iter().map(|fault| (path(), Some(fault), 0));
            all.extend(faults);
            if lost > 0 {
                all.push((path(), None, lost));
            }
        }
        all
    }

    /// Ends the threads of tables that no row waits for: a new configuration may not have them any more, and another row
    /// begins a new thread.
    pub(super) fn end_idle(&mut self) {
        let (idle, busy) = std::mem::take(&mut self.all)
            .into_iter()
            .partition(|table| table.exchange.is_idle());
        self.all = busy;
        let idle: Vec<Table> = idle;
        for mut table in idle {
            table.exchange.stop();
            table.join();
        }
    }

    /// Has the rows inserted that wait, with one attempt each, and waits for that.
    pub(super) fn finish(&mut self) {
        for table in &self.all {
            table.exchange.stop();
        }
        for table in &mut self.all {
            table.join();
        }
    }
}

impl Table {
    fn start(table: &Arc<RowTable>, delays: Delays) -> std::io::Result<Self> {
        let exchange = Arc::new(Exchange::new(table, thread::current()));
        let inserter = Inserter::new(Arc::clone(table), Arc::clone(&exchange), delays);
        let thread = thread::Builder::new()
            .name(String::from("log rows"))
            .spawn(move || inserter.run())?;
        Ok(Self {
            table: Arc::clone(table),
            exchange,
            thread: Some(thread),
        })
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing to insert either.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
