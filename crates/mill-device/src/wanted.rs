//! What a host wants of its link, kept for when the link has another device under it.

use mill_stack::link::Service;
use std::ops::RangeInclusive;

/// Where somebody listens, each as often as it was said, and ports that connections are opened from.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) services: Vec<Service>,
    pub(crate) ports: Option<RangeInclusive<u16>>,
}

impl Wanted {
    pub(crate) fn serve(&mut self, service: Service, on: bool) {
        if on {
            self.services.push(service);
        } else if let Some(place) = self.services.iter().position(|other| *other == service) {
            self.services.swap_remove(place);
        }
    }

    /// Whether somebody listens.
    pub(crate) fn is_serving(&self) -> bool {
        !self.services.is_empty()
    }
}
