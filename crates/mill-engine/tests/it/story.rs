//! What tasks tell the test, in order.

use std::cell::RefCell;
use std::rc::Rc;

/// Clones tell the same story.
#[derive(Debug)]
pub(crate) struct Story<T>(Rc<RefCell<Vec<T>>>);

impl<T> Clone for Story<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T: Clone> Story<T> {
    pub(crate) fn new() -> Self {
        Self(Rc::default())
    }

    pub(crate) fn tell(&self, event: T) {
        self.0.borrow_mut().push(event);
    }

    pub(crate) fn told(&self) -> Vec<T> {
        self.0.borrow().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }
}
