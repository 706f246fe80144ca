//! What `--help` says besides one line for each option. Lines have at most 100 columns: nothing wraps them.

pub(super) const ABOUT: &str = "\
Experiments with web servers: sets up a topology, tunes the system, measures, puts everything back,
and writes a report.";

pub(super) const EXAMPLES: &str = "\
Begin with:
  millstream lab list                    which experiments there are
  millstream lab show nginx-jemalloc     what one would do, and how long
  millstream lab run nginx-jemalloc      do it; ends with the path of a report

As root it makes network namespaces and tunes the system; without, what needs that is left out.
Ctrl-C ends a run early: the system is put back, what was measured is kept, `lab resume` goes on.";

pub(super) const SHOW: &str = "\
Examples:
  millstream lab show onload-cookbook --size seed
  millstream lab show ./mine.toml --set connections=10,50
  millstream lab show nginx-jemalloc --toml > mine.toml";

pub(super) const RUN: &str = "\
Examples:
  millstream lab run nginx-jemalloc
  millstream lab run onload-cookbook --size standard --set workers=1,2,4
  millstream lab run ./mine.toml --set repeat.blocks=10 --report out/

A run is kept below runs/ of the store; `lab report` writes its report again at any time.";

pub(super) const REPORT: &str = "\
Without an option the page is written to reports/ of the store.

Examples:
  millstream lab report
  millstream lab report latest:nginx-jemalloc --markdown docs/nginx-jemalloc
  millstream lab report 2026-11-21T0736 --html report.html --csv tables/";

pub(super) const EXPORT: &str = "\
Examples:
  millstream lab export --csv | grep requests_per_s
  millstream lab export latest:nginx-jemalloc --json -o run.json

For questions across runs: sqlite3 millstream-lab/lab.sqlite 'select * from measured'";

pub(super) const LINT: &str = "\
Exit status: 0 nothing found, 1 mistakes found, 2 a file could not be read.

Examples:
  millstream lab lint article.md
  wrk --latency -c 100 http://host/ | millstream lab lint -";
