//! Boxes for long futures, taken for a request and returned after it.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::any::Any;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// Runs futures of one type in boxes that are kept for the next one, so that a connection that waits for a request
/// holds a pointer and not the request's whole state. The type is that of the first future run; it is not a parameter
/// because the type of an `async fn` has no name.
pub struct FuturePool {
    /// A `Vec` of [`FutureBox`]es once the type is known.
    vacant: RefCell<Option<Box<dyn Any>>>,
    /// How many boxes are kept.
    kept_max: usize,
    /// Boxes that were allocated.
    made: Cell<u64>,
}

/// A future in a box of a pool. Give it back with the pool when it has ended.
pub type FutureBox<F> = Pin<Box<Option<F>>>;

impl FuturePool {
    pub fn new(kept_max: usize) -> Rc<Self> {
        Rc::new(Self {
            vacant: RefCell::new(None),
            kept_max,
            made: Cell::new(0),
        })
    }

    /// Puts `future` into a box and returns what runs it. Allocates only while more futures run at once than ever
    /// before. Inlined, so that a future is made in its box: what it does not hold at its beginning is not copied.
    #[inline(always)]
    pub fn start<F: Future + 'static>(self: &Rc<Self>, future: F) -> Pooled<F> {
        let mut boxed = self.take::<F>();
        boxed.as_mut().set(Some(future));
        Pooled {
            boxed: Some(boxed),
            pool: Rc::clone(self),
        }
    }

    /// Boxes that were allocated: as many as were in use at once, while no more than `kept_max` were.
    pub fn boxes_made(&self) -> u64 {
        self.made.get()
    }

    pub(crate) fn take<F: 'static>(&self) -> FutureBox<F> {
        let mut vacant = self.vacant.borrow_mut();
        let boxes = vacant
            .as_mut()
            .and_then(|any| any.downcast_mut::<Vec<FutureBox<F>>>());
        boxes.and_then(Vec::pop).unwrap_or_else(|| {
            self.made.set(self.made.get() + 1);
            Box::pin(None)
        })
    }

    pub(crate) fn put<F: 'static>(&self, boxed: FutureBox<F>) {
        let mut vacant = self.vacant.borrow_mut();
        let any = vacant.get_or_insert_with(|| Box::new(Vec::<FutureBox<F>>::new()));
        if let Some(boxes) = any.downcast_mut::<Vec<FutureBox<F>>>()
            && boxes.len() < self.kept_max
        {
            boxes.push(boxed);
        }
    }
}

/// A future that runs in a box of a pool; the box goes back when the future ends or is dropped.
pub struct Pooled<F: Future + 'static> {
    boxed: Option<FutureBox<F>>,
    pool: Rc<FuturePool>,
}

impl<F: Future + 'static> Future for Pooled<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let future = self
            .boxed
            .as_mut()
            .and_then(|boxed| boxed.as_mut().as_pin_mut());
        future
            .expect("the box is filled until this is dropped")
            .poll(context)
    }
}

impl<F: Future + 'static> Drop for Pooled<F> {
    fn drop(&mut self) {
        if let Some(mut boxed) = self.boxed.take() {
            boxed.as_mut().set(None);
            self.pool.put(boxed);
        }
    }
}

impl fmt::Debug for FuturePool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FuturePool {{ kept_max: {} }}", self.kept_max)
    }
}

impl<F: Future + 'static> fmt::Debug for Pooled<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Pooled({} bytes)", size_of::<F>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::pin::pin;
    use core::task::Waker;

    fn run<F: Future>(future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(output) = future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                return output;
            }
        }
    }

    async fn double(number: u32) -> u32 {
        number * 2
    }

    fn kept(pool: &FuturePool) -> usize {
        fn count<F: Future + 'static>(_: fn(u32) -> F, any: &dyn Any) -> usize {
            any.downcast_ref::<Vec<FutureBox<F>>>().map_or(0, Vec::len)
        }
        pool.vacant
            .borrow()
            .as_ref()
            .map_or(0, |any| count(double, any.as_ref()))
    }

    #[test]
    fn a_box_is_used_again_and_no_more_are_kept_than_allowed() {
        let pool = FuturePool::new(1);
        assert_eq!(run(pool.start(double(1))), 2);
        assert_eq!(kept(&pool), 1);
        let both = (pool.start(double(2)), pool.start(double(3)));
        assert_eq!(kept(&pool), 0);
        drop(both.0);
        assert_eq!(run(both.1), 6);
        assert_eq!(kept(&pool), 1);
    }

    #[test]
    fn what_runs_a_future_is_two_pointers() {
        fn size<F: Future + 'static>(_: fn(u32) -> F) -> usize {
            size_of::<Pooled<F>>()
        }
        assert_eq!(size(double), 16);
    }
}
