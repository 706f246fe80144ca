//! Boxes for long futures, taken for a request and returned after it.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::any::Any;
use core::cell::RefCell;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;

/// Runs futures of one type in boxes that are kept for the next one, so that what waits for a request holds a
/// pointer and not the request's whole state. The type is that of the first future run; the pool learns it then,
/// because the type of an `async fn` has no name.
pub struct FuturePool {
    /// `Vec<Pin<Box<Option<F>>>>` once F is known.
    vacant: RefCell<Option<Box<dyn Any>>>,
    /// How many boxes are kept.
    kept_max: usize,
}

impl FuturePool {
    pub fn new(kept_max: usize) -> Rc<Self> {
        Rc::new(Self {
            vacant: RefCell::new(None),
            kept_max,
        })
    }

    /// Runs `future` in a box of the pool. Allocates only while more futures run at once than ever before.
    pub async fn run<F: Future + 'static>(self: Rc<Self>, future: F) -> F::Output {
        let mut boxed = self.take::<F>();
        boxed.as_mut().set(Some(future));
        let output = poll_fn(|context| {
            let future = boxed
                .as_mut()
                .as_pin_mut()
                .expect("the box was filled above");
            future.poll(context)
        })
        .await;
        boxed.as_mut().set(None);
        self.put(boxed);
        output
    }

    fn take<F: 'static>(&self) -> Pin<Box<Option<F>>> {
        let mut vacant = self.vacant.borrow_mut();
        let boxes = vacant
            .as_mut()
            .and_then(|any| any.downcast_mut::<Vec<Pin<Box<Option<F>>>>>());
        boxes.and_then(Vec::pop).unwrap_or_else(|| Box::pin(None))
    }

    fn put<F: 'static>(&self, boxed: Pin<Box<Option<F>>>) {
        let mut vacant = self.vacant.borrow_mut();
        let any = vacant.get_or_insert_with(|| Box::new(Vec::<Pin<Box<Option<F>>>>::new()));
        if let Some(boxes) = any.downcast_mut::<Vec<Pin<Box<Option<F>>>>>()
            && boxes.len() < self.kept_max
        {
            boxes.push(boxed);
        }
    }
}

impl fmt::Debug for FuturePool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FuturePool")
            .field("kept_max", &self.kept_max)
            .finish_non_exhaustive()
    }
}
