//! One worker thread as the control thread sees it: started with a descriptor table of its own, given its sockets and
//! its orders.

use crate::channel::SEND_TIMEOUT;
use crate::message::ListeningSocket;
use crate::process_log;
use crate::stack;
use crate::status::inspect::{self, InspectionQueue, Inspector};
use crate::status::publish::StackPublisher;
use crate::threads::SocketName;
use crate::worker_process::Event;
use mill_config::config::{ListenAddress, LogLevel};
use mill_device::attachment::WorkerAttachment;
use mill_engine::combined::{self, CombinedEngine};
use mill_engine::{KernelOptions, offer};
use mill_metrics::board::{Beginning, Board};
use mill_runtime::address::Address;
use mill_server::site::Site;
use mill_server::worker::{self, Assigned, Order, Unfinished, WorkerSetup};
use mill_sys::descriptor::Stream;
use mill_sys::{affinity, clock, descriptor, passing, process};
use std::fs::OpenOptions;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// A running worker thread.
#[derive(Debug)]
pub(crate) struct WorkerThread {
    /// Its index among the serving threads: determines CPUs and sockets.
    place: u32,
    /// Its number among all threads that this process has had.
    number: u32,
    /// Our end of the thread's mailbox.
    mailbox: OwnedFd,
    orders: Sender<Order>,
    /// Our end of its inspection queue.
    inspector: Inspector,
    /// The sockets that it has.
    held: Vec<SocketName>,
    draining: bool,
    /// The generation that it serves.
    adopted: u64,
    thread: JoinHandle<()>,
    /// What its attachment was made of, if thread and process share one descriptor table. A file closed there is no
    /// longer locked for the thread either (mill-sys `lock.rs`), and another process would take the device. So it is
    /// dropped only after the thread was joined, or with the process.
    kept: Option<ManuallyDrop<WorkerAttachment>>,
}

/// What a thread is started with, besides what mill-server needs.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) place: u32,
    pub(crate) number: u32,
    /// CPUs to be bound to; `None` is all.
    pub(crate) cpus: Option<Vec<u16>>,
    /// Where its end is reported, also after a panic.
    pub(crate) events: Sender<Event>,
    /// Its attachment to the device of the stack of our own, if it has one.
    pub(crate) attachment: Option<WorkerAttachment>,
}

/// A running thread, and warnings of its start.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) thread: WorkerThread,
    pub(crate) warnings: Vec<String>,
}

impl WorkerThread {
    /// Starts a thread, and waits until it has a descriptor table of its own. `setup` gets the receiver of its orders.
    pub(crate) fn start(
        start: Start,
        setup: impl FnOnce(mpsc::Receiver<Order>) -> WorkerSetup,
    ) -> io::Result<Started> {
        let (mailbox, far) = passing::pair()?;
        passing::set_send_timeout(mailbox.as_fd(), SEND_TIMEOUT)?;
        let (orders, inbox) = mpsc::channel();
        let (inspector, asked) = inspect::pair(start.number, mailbox.try_clone()?);
        let setup = setup(inbox);
        let (notices, notice) = mpsc::channel();
        let Start {
            place,
            number,
            cpus,
            events,
            mut attachment,
        } = start;
        let inherited = Inherited {
            mailbox: far.as_raw_fd(),
            attachment: attachment.as_ref().map(WorkerAttachment::lend),
            events: events.clone(),
            asked,
        };
        let thread = std::thread::Builder::new()
            .name(format!("{THREAD_NAME}{number}"))
            .spawn(move || {
                let _end = End {
                    number,
                    events,
                    board: setup.board.clone(),
                };
                live(place, inherited, cpus, notices, setup);
            })?;
        let mut warnings = Vec::new();
        let mut kept = None;
        // The closed channel says that `far` is not needed any more.
        while let Ok(notice) = notice.recv() {
            match notice {
                ThreadNotice::Warning(warning) => warnings.push(warning),
                ThreadNotice::OneTable => kept = attachment.take().map(ManuallyDrop::new),
            }
        }
        drop((far, attachment));
        let thread = Self {
            place,
            number,
            mailbox,
            orders,
            inspector,
            held: Vec::new(),
            draining: false,
            adopted: 0,
            thread,
            kept,
        };
        Ok(Started { thread, warnings })
    }

    pub(crate) fn place(&self) -> u32 {
        self.place
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The sending end of its inspection queue.
    pub(crate) fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining
    }

    pub(crate) fn adopted(&self) -> u64 {
        self.adopted
    }

    pub(crate) fn set_adopted(&mut self, generation: u64) {
        self.adopted = generation;
    }

    /// Hands over the sockets of `names` that the thread does not have yet, then the configuration.
    pub(crate) fn adopt(
        &mut self,
        site: &Arc<Site>,
        sockets: &[ListeningSocket],
        names: Vec<SocketName>,
    ) -> io::Result<()> {
        for socket in sockets {
            let name = (socket.address.clone(), socket.share);
            if names.contains(&name) && !self.held.contains(&name) {
                let key = offer::encode(&address_of(&socket.address), socket.share);
                passing::send(self.mailbox.as_fd(), &key, &[socket.descriptor.as_fd()])?;
            }
        }
        let listeners = assigned(site, &names);
        self.held = names;
        self.order(Order::Adopt {
            site: Arc::clone(site),
            listeners,
        })
    }

    /// Lets the thread end once its requests are answered, at the latest after `limit`.
    pub(crate) fn drain(&mut self, limit: Option<Duration>) {
        self.draining = true;
        // A thread that has ended needs no order; its end is reported.
        let _ = self.order(Order::Drain { limit });
    }

    /// The same with all others.
    pub(crate) fn drain_with_all(&mut self, limit: Option<Duration>, unfinished: Unfinished) {
        self.draining = true;
        let _ = self.order(Order::DrainAll { limit, unfinished });
    }

    /// Ends the thread now.
    pub(crate) fn stop(&mut self) {
        self.draining = true;
        let _ = self.order(Order::Stop);
    }

    /// Waits for a thread that has reported its end; false if it panicked.
    pub(crate) fn join(self) -> bool {
        let has_returned = self.thread.join().is_ok();
        drop(self.kept.map(ManuallyDrop::into_inner));
        has_returned
    }

    fn order(&self, order: Order) -> io::Result<()> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.orders.send(order).map_err(|_| gone())?;
        // An empty datagram: an order waits.
        passing::send(self.mailbox.as_fd(), &[], &[])
    }

    /// Ends the sleep of its engine. A thread that has ended does not sleep.
    pub(crate) fn ring(&self) {
        let _ = passing::send(self.mailbox.as_fd(), &[], &[]);
    }
}

/// The prefix of worker threads' names.
pub(crate) const THREAD_NAME: &str = "worker ";

/// The listeners of the configuration whose sockets `names` are.
fn assigned(site: &Site, names: &[SocketName]) -> Vec<Assigned> {
    let sockets = site.config.sockets().enumerate();
    sockets
        .flat_map(|(listener, wanted)| {
            let sockets = names
                .iter()
                .filter(move |(address, _)| *address == *wanted.address);
            sockets.map(move |(_, share)| Assigned {
                listener,
                share: *share,
            })
        })
        .collect()
}

fn address_of(address: &ListenAddress) -> Address {
    match address {
        ListenAddress::Inet(address) => Address::Ip(*address),
        ListenAddress::Unix(path) => Address::Unix((&**path).into()),
    }
}

/// Closes in the thread's own table every descriptor that the thread does not use. The standard streams too: otherwise
/// a renamed and removed log would stay open, so on the disk, as long as the thread lives. The control thread writes
/// the message of a panic ([`crate::worker_pool`]).
fn leave_behind(mailbox: BorrowedFd<'_>, attachment: Option<&WorkerAttachment>) -> io::Result<()> {
    let mut kept = vec![mailbox];
    kept.extend(
        attachment
            .into_iter()
            .flat_map(WorkerAttachment::descriptors),
    );
    descriptor::close_all_but(&kept)?;
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    for stream in [Stream::Input, Stream::Output, Stream::Error] {
        descriptor::redirect(stream, null.as_fd())?;
    }
    Ok(())
}

/// Reports the end of a thread when it is dropped, so also after a panic.
struct End {
    number: u32,
    events: Sender<Event>,
    board: Board,
}

impl Drop for End {
    fn drop(&mut self) {
        let number = self.number;
        self.board.end_worker(number);
        // There is no receiver only when the process is exiting.
        let _ = self.events.send(Event::ThreadEnded { number });
    }
}

/// The smallest value: TCP's timers, and a stack that polls at times of its own, are set to the microsecond.
const TIMER_SLACK: Duration = Duration::from_nanos(1);

/// What a thread reports before it begins to serve.
enum ThreadNotice {
    /// Something has failed.
    Warning(String),
    /// The thread has no descriptor table of its own.
    OneTable,
}

/// A thread's descriptor table.
enum Table {
    Own,
    /// The process's: a device has descriptors that only its driver knows.
    Shared,
}

/// What a new thread duplicates from its starter, which keeps the descriptors open until the thread has reported.
struct Inherited {
    mailbox: RawFd,
    attachment: Option<WorkerAttachment<RawFd>>,
    /// Where failures are reported.
    events: Sender<Event>,
    asked: InspectionQueue,
}

/// Runs the thread.
fn live(
    place: u32,
    inherited: Inherited,
    cpus: Option<Vec<u16>>,
    notices: Sender<ThreadNotice>,
    mut setup: WorkerSetup,
) {
    setup.environment.thread_id = process::thread_id();
    let warn = |call: &str, error: io::Error| {
        let what = format!("{call} failed {}", process_log::describe(&error));
        tell(&notices, ThreadNotice::Warning(what));
    };
    if let Some(cpus) = cpus
        && let Err(error) = affinity::bind_to(&cpus)
    {
        warn("sched_setaffinity()", error);
    }
    let (board, number) = (setup.board.clone(), setup.index);
    let beginning = Beginning {
        place,
        thread: setup.environment.thread_id,
        has_stack: inherited.attachment.is_some(),
        at_ns: u64::try_from(clock::monotonic().as_nanos()).unwrap_or(u64::MAX),
    };
    board.begin_worker(number, beginning);
    let events = inherited.events.clone();
    match settle_in(inherited, board.parked_until(number), &notices) {
        Ok((engine, asked)) => {
            drop(notices);
            let mut show = StackPublisher::new(engine.clone(), board, number, asked);
            let mut turn = worker::start(engine, setup);
            while turn() {
                show.after_turn();
            }
        }
        Err(error) => {
            let what = format!(
                "starting an engine failed {}",
                process_log::describe(&error)
            );
            // Its end follows, and ends the process, which the master begins again: there may be descriptors or memory then. There is no
            // receiver only when the process is exiting.
            let _ = events.send(Event::Warning(
                LogLevel::Emerg,
                format!("worker thread {}: {what}", setup.index),
            ));
        }
    }
}

/// The starter waits for this; if it has stopped waiting, the notice is not needed.
fn tell(notices: &Sender<ThreadNotice>, notice: ThreadNotice) {
    let _ = notices.send(notice);
}

/// Unshares the thread's descriptor table, and makes its engine.
fn settle_in(
    inherited: Inherited,
    parked_until: Option<&'static AtomicU64>,
    notices: &Sender<ThreadNotice>,
) -> io::Result<(CombinedEngine, InspectionQueue)> {
    let shares = inherited.attachment.as_ref();
    let shares = shares.is_some_and(WorkerAttachment::needs_shared_table);
    let table = match shares {
        true => Ok(Table::Shared),
        false => descriptor::unshare_table().map(|()| Table::Own),
    };
    // The numbers are the same in both tables.
    let mailbox = descriptor::duplicate(inherited.mailbox)?;
    let attachment = inherited
        .attachment
        .map(WorkerAttachment::take)
        .transpose()?;
    match table {
        Ok(Table::Own) => leave_behind(mailbox.as_fd(), attachment.as_ref())?,
        Ok(Table::Shared) => tell(notices, ThreadNotice::OneTable),
        Err(error) => {
            let why = process_log::describe(&error);
            let what =
                format!("one descriptor table for all, since unshare(CLONE_FILES) failed {why}");
            tell(notices, ThreadNotice::Warning(what));
            tell(notices, ThreadNotice::OneTable);
        }
    }
    descriptor::set_nonblocking(mailbox.as_fd(), true)?;
    let options = KernelOptions {
        mailbox: Some(mailbox),
        // TCP's timers are finer than epoll's milliseconds.
        exact_waits: attachment.is_some(),
        parked_until,
    };
    let events = inherited.events;
    let on_trouble = move |level, what| {
        // There is no receiver only when the process is exiting.
        let _ = events.send(Event::Warning(level, what));
    };
    if attachment.is_some() {
        // With the default slack the kernel ends a wait up to 50 µs late. A failure leaves that.
        let _ = process::set_timer_slack(TIMER_SLACK);
    }
    let bypass = attachment
        .map(|attachment| stack::bypass(attachment, on_trouble))
        .transpose()?;
    Ok((
        combined::engine(options, bypass.flatten())?,
        inherited.asked,
    ))
}
