//! The shared memory in which workers publish their figures: made by the process in charge, which can read it whatever
//! state the worker process is in.

use mill_metrics::WorkerFigures;
use mill_metrics::board::{self, Board};
use mill_sys::memory::words;
use std::fs::File;
use std::io;

/// How many threads, running and ended, have figures of their own; no more threads run at once. An entry takes memory
/// once a thread has used it.
pub(crate) const NUMBERS: u32 = 512;

/// The target of its descriptor's link in /proc, behind `/memfd:`: a client finds the memory of a server that does not
/// answer by it.
pub(crate) const NAME: &str = "millstream-status";

/// The memory of one board.
#[derive(Debug)]
pub(crate) struct BoardFile(File);

impl BoardFile {
    pub(crate) fn create() -> io::Result<Self> {
        words::create(NAME, words_of_board()).map(Self)
    }

    /// Maps the board into the process whose workers write it.
    pub(crate) fn map(&self) -> io::Result<Board> {
        let words = words::map(&self.0, words_of_board())?;
        Ok(Board::mapped(words, std::process::id()))
    }

    /// The figures that the workers published last.
    pub(crate) fn read(&self) -> Vec<WorkerFigures> {
        read(&self.0).map_or_else(Vec::new, |(_, workers)| workers)
    }
}

/// The process whose board a file is, and the figures there.
pub(crate) fn read(file: &File) -> Option<(u32, Vec<WorkerFigures>)> {
    let words = words::copy(file, words_of_board()).ok()?;
    board::parse(&words).ok()
}

fn words_of_board() -> usize {
    Board::words(NUMBERS as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_metrics::ServerCounters;
    use mill_metrics::board::Beginning;

    #[test]
    fn published_figures_are_read_from_the_file() {
        let file = BoardFile::create().unwrap();
        assert_eq!(file.read(), []);
        let board = file.map().unwrap();
        board.begin_worker(1, Beginning::default());
        let shown = ServerCounters {
            requests: 7,
            ..Default::default()
        };
        board.place(1).unwrap().show_server(&shown);
        let workers = file.read();
        assert_eq!(workers.len(), 2);
        let requests = workers.iter().map(|worker| worker.server.requests);
        assert_eq!(requests.sum::<u64>(), 7);
    }
}
