//! Datagrams of other threads: listening sockets, and announcements of mail.

use super::Inner;
use mill_sys::passing;
use std::os::fd::AsFd;

impl Inner {
    /// Reads the mailbox: descriptors go to the listeners, other datagrams are mail. Whether there was mail.
    pub(super) fn collect_mail(&self) -> bool {
        let Some(mailbox) = &self.mailbox else {
            return false;
        };
        let mut key = [0; OFFER_KEY_MAX];
        let mut has_mail = false;
        while let Ok((length, descriptors)) = passing::receive(mailbox.as_fd(), &mut key) {
            has_mail |= descriptors.is_empty();
            // An empty datagram, or the end of the stream, after which every receive is empty.
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

    /// Stops watching the mailbox: its other end is closed, and epoll would report that for ever.
    pub(super) fn leave_mailbox(&self) {
        if let Some(mailbox) = &self.mailbox {
            // Fails only if it was removed already.
            let _ = self.epoll.remove(mailbox.as_fd());
        }
    }
}

/// The longest key of an offered descriptor: a Unix path of 107 bytes with its prefix, rounded up.
const OFFER_KEY_MAX: usize = 256;
