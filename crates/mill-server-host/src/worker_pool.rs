//! All worker threads of a process and the log writer: started, reconfigured and ended.

use crate::message::{Configuration, ListeningSocket, LogFile};
use crate::process_log::{ProcessLog, describe};
use crate::stack;
use crate::status::board::NUMBERS;
use crate::status::control_socket::Question;
use crate::status::inspect::Desk;
use crate::status::{blocks, caches, certificates, limits, upstreams, zones};
use crate::threads::{self, SocketName};
use crate::worker_process::Event;
use crate::worker_thread::{Start, THREAD_NAME, WorkerThread};
use mill_config::Config;
use mill_config::config::{ErrorLog, LogLevel};
use mill_device::attachment::{Attachment, WorkerAttachment};
use mill_device::specification::Specification;
use mill_metrics::Board;
use mill_runtime::time::{Instant, UnixTime};
use mill_server::local::Environment;
use mill_server::log::writer::WriterEnvironment;
use mill_server::log::{LogFiles, LogSender, LogWriter};
use mill_server::site::Site;
use mill_server::wakes::Doorbell;
use mill_server::worker::{Report, Unfinished, WorkerSetup};
use mill_status::{Part, TableName};
use mill_sys::{affinity, clock, local_time};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// All worker threads of a process.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    threads: Vec<WorkerThread>,
    events: Sender<Event>,
    reports: Sender<Report>,
    /// Where threads publish their figures, by their numbers.
    board: Board,
    /// The number of the next thread.
    next_number: u32,
    hostname: Arc<[u8]>,
    connection_numbers: Arc<AtomicU64>,
    writer: Option<LogWriter>,
    site: Option<Arc<Site>>,
    /// The descriptors of all sockets in force: each thread gets duplicates.
    sockets: Vec<ListeningSocket>,
    /// The attachments to the stack's device, by thread index, until those threads are started; and the stack's
    /// specification.
    attachments: Vec<Option<WorkerAttachment>>,
    specification: Option<Specification>,
    desk: Desk,
}

impl WorkerPool {
    /// An empty pool. Reports of threads arrive as events.
    pub(crate) fn new(
        events: Sender<Event>,
        hostname: &[u8],
        stack: Option<Attachment>,
        board: Board,
    ) -> io::Result<Self> {
        report_panics(events.clone());
        let (reports, reported) = mpsc::channel();
        let forward = events.clone();
        std::thread::Builder::new()
            .name(String::from("reports"))
            .spawn(move || {
                while let Ok(report) = reported.recv() {
                    if forward.send(Event::Thread(report)).is_err() {
                        return;
                    }
                }
            })?;
        let specification = stack.as_ref().map(|stack| stack.specification().clone());
        let attachments = stack.map(Attachment::into_workers).transpose()?;
        Ok(Self {
            threads: Vec::new(),
            events,
            reports,
            desk: Desk::new(board.clone()),
            board,
            next_number: 0,
            hostname: hostname.into(),
            connection_numbers: Arc::default(),
            writer: None,
            site: None,
            sockets: Vec::new(),
            attachments: attachments.into_iter().flatten().map(Some).collect(),
            specification,
        })
    }

    /// Whether all threads have ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Has all threads serve a configuration from now on. Threads are started or drained to get the configured number.
    /// Returns the process's own log of that configuration.
    pub(crate) fn configure(
        &mut self,
        config: Config,
        configuration: Configuration,
        log: &ProcessLog,
    ) -> Result<ProcessLog, String> {
        let error_logs = config.main.error_log.clone();
        let log = self.write_logs_to(configuration.logs, error_logs, log)?;
        let wanted = threads::thread_count(&config.main);
        // The connections of an attachment live in its thread, and no other thread receives its frames.
        let count = wanted.max(self.attachment_count());
        if let Some(specification) = &self.specification
            && let Some(what) = stack::attachment_count_differs(wanted, specification)
        {
            log.write(LogLevel::Warn, &what);
        }
        let site = Arc::new(Site::following(
            self.site.as_deref(),
            config,
            configuration.generation,
            configuration.ticket_secret.as_ref(),
        ));
        let started = self.start_missing(&site, count, &log)?;
        self.threads.extend(started);
        let attachments = self.attachment_count();
        let sockets = configuration.sockets;
        let names: Vec<SocketName> = sockets
            .iter()
            .map(|socket| (socket.address.clone(), socket.share))
            .collect();
        for thread in self
            .threads
            .iter_mut()
            .filter(|thread| !thread.is_draining())
        {
            if thread.place() < count {
                let mut own = threads::sockets_of(names.iter(), thread.place(), count);
                if thread.place() < attachments {
                    let stack = stack::own_addresses(&site.config, self.specification.as_ref());
                    own.extend(stack.into_iter().map(|address| (address, None)));
                }
                if let Err(error) = thread.adopt(&site, &sockets, own) {
                    let (number, why) = (thread.number(), describe(&error));
                    let what = format!("worker thread {number} does not take its orders {why}");
                    log.write(LogLevel::Alert, &what);
                }
            }
        }
        // Only now, so that other threads already serve the sockets of those that drain.
        let limit = site.config.main.worker_shutdown_timeout;
        for thread in &mut self.threads {
            if thread.place() >= count && !thread.is_draining() {
                thread.drain(limit);
            }
        }
        self.sockets = sockets;
        self.site = Some(site);
        Ok(log)
    }

    /// Switches to newly opened log files.
    pub(crate) fn reopen_logs(&mut self, files: Vec<LogFile>, log: &ProcessLog) -> ProcessLog {
        let error_logs = self
            .site
            .as_ref()
            .map(|site| site.config.main.error_log.clone());
        let error_logs = error_logs.unwrap_or_default();
        self.write_logs_to(files, error_logs, log)
            .unwrap_or_else(|_| log.clone())
    }

    /// The configuration that all serving threads have adopted.
    pub(crate) fn ready(&self) -> Option<u64> {
        let generation = self.site.as_ref()?.generation;
        let mut serving = self.threads.iter().filter(|thread| !thread.is_draining());
        serving
            .all(|thread| thread.adopted() == generation)
            .then_some(generation)
    }

    pub(crate) fn on_adopted(&mut self, number: u32, generation: u64) {
        let mut threads = self.threads.iter_mut();
        if let Some(thread) = threads.find(|thread| thread.number() == number) {
            thread.set_adopted(generation);
        }
    }

    /// A thread has ended; if it was not asked to, that is a defect and ends the process, which the master restarts.
    pub(crate) fn on_ended(&mut self, number: u32, log: &ProcessLog) -> Result<(), i32> {
        let Some(index) = self
            .threads
            .iter()
            .position(|thread| thread.number() == number)
        else {
            return Ok(());
        };
        let thread = self.threads.swap_remove(index);
        let expected = thread.is_draining();
        let panicked = !thread.join();
        if panicked || !expected {
            let how = if panicked {
                "panicked"
            } else {
                "ended by itself"
            };
            log.write(LogLevel::Alert, &format!("worker thread {number} {how}"));
            return Err(1);
        }
        Ok(())
    }

    /// Has all threads answer a client's question.
    pub(crate) fn inspect(&self, question: Question) {
        let inspectors = self
            .threads
            .iter()
            .map(|thread| thread.inspector().duplicate());
        // Threads for which no descriptor is left are not asked.
        let inspectors = inspectors.flatten().collect();
        let mut common = Part::default();
        if let Some(site) = &self.site {
            let tables = &question.request.tables;
            if tables.contains(&TableName::Upstreams) {
                common.upstreams = upstreams::rows(site, clocks().0);
            }
            if tables.contains(&TableName::Zones) {
                common.zones = zones::rows(site);
                common.limits = limits::rows(site);
            }
            let with_largest = tables.contains(&TableName::Caches);
            common.caches = caches::rows(site, with_largest);
            if tables.contains(&TableName::Blocks) {
                common.blocks = blocks::rows(site, clocks().0);
            }
            if tables.contains(&TableName::Certificates) {
                common.certificates = certificates::rows(site, clocks().1.seconds);
            }
        }
        self.desk.answer(question, inspectors, common);
    }

    /// Lets all threads end once their requests are answered; returns the time limit.
    pub(crate) fn drain(&mut self) -> Option<Duration> {
        let site = self.site.as_ref();
        let limit = site.and_then(|site| site.config.main.worker_shutdown_timeout);
        let each = self.threads.iter_mut();
        let mut serving: Vec<_> = each.filter(|thread| !thread.is_draining()).collect();
        let unfinished = Unfinished::each(serving.len());
        for (thread, unfinished) in serving.iter_mut().zip(unfinished) {
            thread.drain_with_all(limit, unfinished);
        }
        // The threads have duplicates, which they close once they have accepted the waiting connections.
        self.sockets.clear();
        limit
    }

    /// Ends all threads now.
    pub(crate) fn stop(&mut self) {
        self.threads.iter_mut().for_each(WorkerThread::stop);
    }

    /// Writes the rest of the logs.
    pub(crate) fn close_logs(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.stop();
        }
    }

    /// Starts threads at the indices below `count` that have none.
    fn start_missing(
        &mut self,
        site: &Site,
        count: u32,
        log: &ProcessLog,
    ) -> Result<Vec<WorkerThread>, String> {
        let failed = |error: io::Error| format!("starting a thread failed {}", describe(&error));
        let all = affinity::allowed_cpus().map_err(failed)?;
        let logs = self
            .writer
            .as_ref()
            .map(LogWriter::sender)
            .ok_or("there is no log writer")?;
        let mut started = Vec::new();
        let mut warned: Vec<String> = Vec::new();
        for place in 0..count {
            let taken = |thread: &WorkerThread| !thread.is_draining() && thread.place() == place;
            if self.threads.iter().any(taken) {
                continue;
            }
            let number = self
                .free_number()
                .ok_or("there are too many worker threads")?;
            let affinity = site.config.main.worker_cpu_affinity.as_ref();
            let start = Start {
                place,
                number,
                cpus: threads::cpus_of(affinity, place, &all),
                events: self.events.clone(),
                attachment: self.take_attachment(place),
            };
            let setup = |inbox| self.setup(number, inbox, logs.clone());
            let thread = WorkerThread::start(start, setup).map_err(failed)?;
            // What fails in one thread fails in the others too: it is logged once.
            for warning in thread.warnings {
                if !warned.contains(&warning) {
                    log.write(LogLevel::Warn, &format!("worker threads: {warning}"));
                    warned.push(warning);
                }
            }
            started.push(thread.thread);
        }
        Ok(started)
    }

    fn attachment_count(&self) -> u32 {
        u32::try_from(self.attachments.len()).unwrap_or(u32::MAX)
    }

    fn take_attachment(&mut self, place: u32) -> Option<WorkerAttachment> {
        self.attachments.get_mut(place as usize)?.take()
    }

    fn setup(
        &self,
        number: u32,
        inbox: mpsc::Receiver<mill_server::worker::Order>,
        logs: LogSender,
    ) -> WorkerSetup {
        WorkerSetup {
            index: number,
            environment: Environment {
                pid: std::process::id(),
                parent_pid: std::os::unix::process::parent_id(),
                // Only the thread itself knows it.
                thread_id: 0,
                hostname: Arc::clone(&self.hostname),
                utc_offset,
                connection_numbers: Arc::clone(&self.connection_numbers),
            },
            inbox,
            reports: self.reports.clone(),
            logs,
            board: self.board.clone(),
            doorbell: self.doorbell(number),
        }
    }

    /// A worker thread has no descriptor of the others' mailboxes: the control thread passes the ring on.
    fn doorbell(&self, number: u32) -> Doorbell {
        let events = self.events.clone();
        Doorbell::new(move || {
            // There is no receiver only when the process is exiting.
            let _ = events.send(Event::Ring { number });
        })
    }

    /// Ends the sleep of a thread.
    pub(crate) fn ring(&self, number: u32) {
        let thread = self.threads.iter().find(|thread| thread.number() == number);
        thread.into_iter().for_each(WorkerThread::ring);
    }

    /// A number that no thread has. Numbers are reused as late as possible, so that the counts of ended threads stay
    /// part of the sum.
    fn free_number(&mut self) -> Option<u32> {
        for _ in 0..NUMBERS {
            let number = self.next_number % NUMBERS;
            self.next_number = self.next_number.wrapping_add(1);
            if self.threads.iter().all(|thread| thread.number() != number) {
                return Some(number);
            }
        }
        None
    }

    /// Has the workers and this process write to these files.
    fn write_logs_to(
        &mut self,
        files: Vec<LogFile>,
        error_logs: Vec<ErrorLog>,
        log: &ProcessLog,
    ) -> Result<ProcessLog, String> {
        let log = log.configured(&error_logs, |path| {
            let file = files.iter().find(|log| log.path == path);
            file.and_then(|log| log.file.try_clone().ok())
        });
        let files = files
            .into_iter()
            .map(|log| (log.path.into(), log.file))
            .collect();
        let files = LogFiles { files, error_logs };
        match &self.writer {
            Some(writer) => writer.replace(files),
            None => {
                let environment = WriterEnvironment {
                    pid: std::process::id(),
                    utc_offset,
                    clock: clocks,
                };
                let writer = LogWriter::start(files, environment)
                    .map_err(|error| format!("starting a thread failed {}", describe(&error)))?;
                self.writer = Some(writer);
            }
        }
        Ok(log)
    }
}

/// Has the control thread write the message of a panic in a worker thread, which has no log open. The panic goes on
/// (and ends the process, where panics abort) once that is written.
fn report_panics(events: Sender<Event>) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default();
        if !name.starts_with(THREAD_NAME) {
            return usual(panic);
        }
        let (written, wait) = mpsc::channel();
        let what = format!("thread \"{name}\": {panic}");
        if events.send(Event::Panicked { what, written }).is_ok() {
            // An error means that the control thread is ending or hangs: then the message is lost.
            let _ = wait.recv_timeout(PANIC_TIMEOUT);
        }
    }));
}

/// Seconds east of UTC at a Unix time.
fn utc_offset(unix_s: i64) -> i32 {
    local_time::local_time(unix_s).map_or(0, |time| time.offset_s)
}

/// The clocks, as the engine reads them.
fn clocks() -> (Instant, UnixTime) {
    let (monotonic, date_time) = (clock::monotonic(), clock::realtime());
    let nanos = u64::try_from(monotonic.as_nanos()).unwrap_or(u64::MAX);
    let seconds = i64::try_from(date_time.as_secs()).unwrap_or(i64::MAX);
    let date_time = UnixTime {
        seconds,
        nanos: date_time.subsec_nanos(),
    };
    (Instant::from_nanos(nanos), date_time)
}

/// How long a panicking thread waits for its message to be written.
const PANIC_TIMEOUT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_threads_panic_message_is_handed_over_before_it_ends() {
        let (sender, events) = mpsc::channel();
        report_panics(sender);
        let name = format!("{THREAD_NAME}7");
        let panic = || panic!("a defect");
        let thread = std::thread::Builder::new().name(name).spawn(panic).unwrap();
        let Ok(Event::Panicked { what, written }) = events.recv() else {
            panic!("another event");
        };
        assert!(!thread.is_finished());
        assert!(what.starts_with("thread \"worker 7\": "), "{what}");
        assert!(what.ends_with("a defect"), "{what}");
        written.send(()).unwrap();
        assert!(thread.join().is_err());
    }
}
