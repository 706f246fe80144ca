//! Paths that are being examined on a disk: the file system is asked once for all requests that look up one of them.

use mill_config::config::settings::OpenFileCache;
use mill_runtime::files::{FileError, FileErrorKind, Symlinks};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::sync::semaphore::{Permit, Semaphore};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The paths, each with the requests that wait for it. It is empty, and costs nothing, unless an examination has to
/// wait.
pub(super) struct UnderWay {
    scheduler: Rc<Scheduler>,
    paths: RefCell<Vec<Rc<Path>>>,
}

struct Path {
    setting: OpenFileCache,
    /// Another rule for links may find something else at the path.
    symlinks: Symlinks,
    path: Box<[u8]>,
    queue: Rc<Semaphore>,
    /// The failure of the last examination, if it failed: the cache may not keep failures.
    failure: Cell<Option<FileError>>,
}

/// The turn of one request at a path, or its place in the queue. When it is dropped, the next one gets its turn.
pub(super) struct Turn<'a> {
    under_way: &'a UnderWay,
    path: Rc<Path>,
    permit: Option<Permit>,
}

impl UnderWay {
    pub(super) fn new(scheduler: &Rc<Scheduler>) -> Self {
        Self {
            scheduler: Rc::clone(scheduler),
            paths: RefCell::default(),
        }
    }

    /// A place in the queue of the requests that examine the path now, if there are any.
    pub(super) fn join(
        &self,
        setting: OpenFileCache,
        symlinks: Symlinks,
        path: &[u8],
    ) -> Option<Turn<'_>> {
        let paths = self.paths.borrow();
        let is_it = |known: &&Rc<Path>| {
            (known.setting, known.symlinks) == (setting, symlinks) && *known.path == *path
        };
        let path = Rc::clone(paths.iter().find(is_it)?);
        Some(Turn {
            under_way: self,
            path,
            permit: None,
        })
    }

    /// The first turn at a path that no request examines yet.
    pub(super) fn begin(
        &self,
        setting: OpenFileCache,
        symlinks: Symlinks,
        path: &[u8],
    ) -> Turn<'_> {
        let queue = Semaphore::new(&self.scheduler, 1, usize::MAX);
        let permit = queue.try_acquire();
        let path = Rc::new(Path {
            setting,
            symlinks,
            path: path.into(),
            queue,
            failure: Cell::new(None),
        });
        self.paths.borrow_mut().push(Rc::clone(&path));
        Turn {
            under_way: self,
            path,
            permit,
        }
    }
}

impl Turn<'_> {
    /// Waits until all requests before it have a result, or have given up. An error is the last one's result.
    pub(super) async fn wait(&mut self) -> Result<(), FileError> {
        // The queue is never closed, and accepts every request.
        self.permit = self.path.queue.acquire().await.ok();
        self.path.failure.get().map_or(Ok(()), Err)
    }

    /// Tells a failure to those that wait, and to no request that comes later. A refusal is told to none: each request
    /// tries for itself.
    pub(super) fn tell(&self, failure: FileError) {
        if failure.kind != FileErrorKind::Overloaded {
            self.path.failure.set(Some(failure));
            self.close();
        }
    }

    /// Leaves no place for further requests.
    fn close(&self) {
        let mut paths = self.under_way.paths.borrow_mut();
        paths.retain(|path| !Rc::ptr_eq(path, &self.path));
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.permit = None;
        if self.path.queue.in_use() == 0 {
            self.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_runtime::time::{Duration, Instant, UnixTime};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn a_turn_that_is_given_up_goes_to_the_next_and_the_last_leaves_nothing() {
        let scheduler = Scheduler::new(Instant::from_nanos(0), UnixTime::default());
        let under_way = UnderWay::new(&scheduler);
        let setting = OpenFileCache {
            max: 1,
            inactive: Duration::ZERO,
        };
        let mut context = Context::from_waker(Waker::noop());
        assert!(under_way.join(setting, Symlinks::Follow, b"/a").is_none());
        let first = under_way.begin(setting, Symlinks::Follow, b"/a");
        assert!(under_way.join(setting, Symlinks::Follow, b"/b").is_none());
        let mut second = under_way.join(setting, Symlinks::Follow, b"/a").unwrap();
        {
            let mut waits = pin!(second.wait());
            assert_eq!(waits.as_mut().poll(&mut context), Poll::Pending);
            drop(first);
            assert_eq!(waits.as_mut().poll(&mut context), Poll::Ready(Ok(())));
        }
        drop(second);
        assert!(under_way.join(setting, Symlinks::Follow, b"/a").is_none());
    }
}
