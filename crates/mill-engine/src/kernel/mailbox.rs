//! What other threads send: listening sockets, and that there is mail.

use super::Inner;
use mill_sys::passing;
use std::os::fd::AsFd;

impl Inner {
    /// Takes what lies in the mailbox: descriptors go to the listeners, the rest was only to wake us. Whether there was some
    /// of that.
    pub(super) fn collect_mail(&self) -> bool {
        let Some(mailbox) = &self.mailbox else {
            return false;
        };
        let mut key = [0; OFFER_KEY_MAX];
        let mut has_mail = false;
        while let Ok((length, descriptors)) = passing::receive(mailbox.as_fd(), &mut key) {
            has_mail |= descriptors.is_empty();
            // Perhaps the end, of which there is no end.
            if length == 0 && descriptors.is_empty() {
                break;
            }
            for descriptor in descriptors {
                let key = key.get(..length).unwrap_or_default().to_vec();
                self.listeners.borrow_mut().offer(key, descriptor);
            }
        }
        has_mail
    }

    /// Whoever wrote to the mailbox is gone: it would be reported for ever.
    pub(super) fn leave_mailbox(&self) {
        if let Some(mailbox) = &self.mailbox {
            // Fails only if it has left already.
            let _ = self.epoll.remove(mailbox.as_fd());
        }
    }
}

/// The longest key of an offered descriptor: a Unix path of 107 bytes and what stands before it, rounded up.
const OFFER_KEY_MAX: usize = 256;
