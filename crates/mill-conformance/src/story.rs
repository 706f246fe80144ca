//! What tasks tell the test, in order.

use std::cell::RefCell;
use std::rc::Rc;

/// Clones tell the same story.
#[derive(Debug)]
pub struct Story<T>(Rc<RefCell<Vec<T>>>);

impl<T> Clone for Story<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> Default for Story<T> {
    fn default() -> Self {
        Self(Rc::default())
    }
}

impl<T: Clone> Story<T> {
    pub fn tell(&self, event: T) {
        self.0.borrow_mut().push(event);
    }

    pub fn told(&self) -> Vec<T> {
        self.0.borrow().clone()
    }

    /// How often something was told.
    pub fn count(&self) -> usize {
        self.0.borrow().len()
    }
}
