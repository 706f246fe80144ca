//! The thread of a table.

use super::exchange::Exchange;
use super::insertion::{self, Fault};
use super::pending::Batch;
use mill_config::config::LogLevel;
use mill_config::config::log::RowTable;
use std::sync::Arc;
use std::time::Duration;

/// Times between attempts: the first one, which doubles each time, and the longest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays {
    pub(super) first: Duration,
    pub(super) longest: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(32),
        }
    }
}

#[derive(Debug)]
pub(super) struct Inserter {
    table: Arc<RowTable>,
    exchange: Arc<Exchange>,
    delays: Delays,
    /// The table is known to be there.
    has_table: bool,
}

impl Inserter {
    pub(super) const fn new(table: Arc<RowTable>, exchange: Arc<Exchange>, delays: Delays) -> Self {
        Self {
            table,
            exchange,
            delays,
            has_table: false,
        }
    }

    pub(super) fn run(mut self) {
        while let Some(batch) = self.exchange.next() {
            self.deliver(&batch);
        }
    }

    /// Inserts rows, however long that takes, unless the end is near.
    fn deliver(&mut self, batch: &Batch) {
        let mut delay = self.delays.first;
        let mut failures = 0;
        loop {
            let is_last = self.exchange.is_stopping();
            let rows = batch.rows;
            let why = match self.insert(batch, is_last) {
                Ok(()) if failures == 0 => return,
                Ok(()) => {
                    let text = String::from("they are inserted again");
                    return self.exchange.say(LogLevel::Notice, text);
                }
                Err(Fault::Refused(why)) => {
                    self.exchange.lose(rows);
                    let text = format!("{rows} of them are lost, the database refuses them: {why}");
                    return self.exchange.say(LogLevel::Error, text);
                }
                Err(Fault::Unreached(why) | Fault::NoTable(why)) => why,
            };
            if is_last {
                self.exchange.lose(rows);
                let text = format!("{rows} of them are lost at the end: {why}");
                return self.exchange.say(LogLevel::Error, text);
            }
            failures += 1;
            let text = format!("{why}; another attempt in {delay:?}");
            self.exchange.say(LogLevel::Error, text);
            self.exchange.rest(delay);
            delay = (delay * 2).min(self.delays.longest);
        }
    }

    fn insert(&mut self, batch: &Batch, is_last: bool) -> Result<(), Fault> {
        let time = match is_last {
            true => TIME_AT_THE_END,
            false => TIME,
        };
        let inserted = self.try_insert(batch, time);
        match inserted {
            // It was there, and is gone.
            Err(Fault::NoTable(_)) => self.try_insert(batch, time),
            _ => inserted,
        }
    }

    fn try_insert(&mut self, batch: &Batch, time: Duration) -> Result<(), Fault> {
        if !self.has_table {
            insertion::create(&self.table, time)?;
            self.has_table = true;
        }
        let inserted = insertion::insert(&self.table, &batch.bytes, time);
        self.has_table = !matches!(inserted, Err(Fault::NoTable(_)));
        inserted
    }
}

/// The longest that a database may take for any part of a request.
const TIME: Duration = Duration::from_secs(30);

/// The same for the last attempt: what ends waits for it.
const TIME_AT_THE_END: Duration = Duration::from_secs(2);
