//! Futures of one connection, polled on the thread of the test.
//!
//! tokio's own executor would bring its event loop along; a test that waits for one socket needs neither.

use mill_sys::descriptor::wait_readable;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

pub(crate) type Task<T = ()> = Pin<Box<dyn Future<Output = T>>>;

/// Whether anything was woken since the last look.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Polls `main` and `beside` until `main` is ready, as the socket has something to read. A write that the socket does not
/// take is tried again soon.
#[track_caller]
pub(crate) fn run<T>(socket: &Rc<TcpStream>, mut beside: Task, main: impl Future<Output = T>) -> T {
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut main = std::pin::pin!(main);
    let (mut is_over, mut silence) = (false, Duration::ZERO);
    loop {
        woken.0.store(false, Ordering::Relaxed);
        if let Poll::Ready(result) = main.as_mut().poll(&mut context) {
            return result;
        }
        is_over = is_over || beside.as_mut().poll(&mut context).is_ready();
        if woken.0.load(Ordering::Relaxed) {
            silence = Duration::ZERO;
            continue;
        }
        let readable = wait_readable(&[socket.as_fd()], Some(PAUSE)).unwrap();
        silence = if readable[0] && !is_over {
            Duration::ZERO
        } else {
            silence + PAUSE
        };
        assert!(silence < SILENCE_MAX, "the server says nothing");
    }
}

/// All results, in the order of the futures.
pub(crate) async fn all<T: Unpin>(futures: Vec<Task<T>>) -> Vec<T> {
    let mut futures = futures;
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        let mut is_ready = true;
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(value) => *result = Some(value),
                    Poll::Pending => is_ready = false,
                }
            }
        }
        if !is_ready {
            return Poll::Pending;
        }
        Poll::Ready(results.iter_mut().filter_map(Option::take).collect())
    })
    .await
}

const PAUSE: Duration = Duration::from_millis(1);

/// The time limit of any step on a busy machine.
const SILENCE_MAX: Duration = Duration::from_secs(20);
