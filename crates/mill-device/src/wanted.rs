//! What a host has asked of its link, kept for when the link runs over another device.

use mill_stack::link::Service;

/// Services, one for each of their listeners, and whether connections are opened.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) services: Vec<Service>,
    /// Those that are served no more and may still have connections.
    pub(crate) closing: Vec<Service>,
    has_served: bool,
    /// Connections are opened.
    pub(crate) opens_ports: bool,
}

impl Wanted {
    pub(crate) fn serve(&mut self, service: Service, on: bool) {
        self.forget(service);
        if on {
            self.has_served = true;
            self.services.push(service);
        } else if let Some(place) = self.services.iter().position(|other| *other == service) {
            self.services.swap_remove(place);
            if !self.services.contains(&service) {
                self.closing.push(service);
            }
        }
    }

    /// The last connections of a closed service have ended.
    pub(crate) fn forget(&mut self, service: Service) {
        self.closing.retain(|other| *other != service);
    }

    /// Whether no port is served any more, or none will be, as this process opens connections. One that has just started may begin
    /// to serve in a moment.
    pub(crate) fn is_leaving(&self) -> bool {
        !self.is_serving() && (self.has_served || self.opens_ports)
    }

    /// Whether ports were served, and none is any more.
    pub(crate) fn has_ended_serving(&self) -> bool {
        self.has_served && !self.is_serving()
    }

    /// Whether any port is served.
    pub(crate) fn is_serving(&self) -> bool {
        !self.services.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_wire::protocol::Protocol;
    use std::net::{Ipv4Addr, SocketAddr};

    #[test]
    fn a_closed_service_is_known_until_its_connections_have_ended_or_it_is_served_again() {
        let service = Service {
            address: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 80),
            protocol: Protocol::TCP,
        };
        let mut wanted = Wanted::default();
        wanted.serve(service, false);
        assert!(wanted.closing.is_empty(), "it was never served");
        wanted.serve(service, true);
        wanted.serve(service, true);
        wanted.serve(service, false);
        assert!(wanted.closing.is_empty(), "one listener is left");
        wanted.serve(service, false);
        assert_eq!(wanted.closing, [service]);
        wanted.serve(service, true);
        assert!(wanted.closing.is_empty());
        wanted.serve(service, false);
        wanted.forget(service);
        assert!(wanted.closing.is_empty());
    }
}
