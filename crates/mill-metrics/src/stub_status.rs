//! The four lines of nginx's `stub_status`.

use crate::ServerCounters;

impl ServerCounters {
    /// The content of a `stub_status` answer, octet for octet as nginx writes it: four lines, a
    /// space before each line feed but the second's, and one before the three totals. Programs
    /// that watch nginx take it apart by position. Its type is `text/plain`. Allocates the text.
    pub fn render_stub_status(&self) -> String {
        format!(
            "Active connections: {} \n\
             server accepts handled requests\n \
             {} {} {} \n\
             Reading: {} Writing: {} Waiting: {} \n",
            self.connections_active,
            self.connections_accepted,
            self.connections_handled,
            self.requests,
            self.connections_reading,
            self.connections_writing,
            self.connections_waiting,
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::ServerCounters;

    /// What nginx 1.22.1 answers to its first request, and to a later one: copied from its output.
    #[test]
    fn the_text_is_what_nginx_writes() {
        let first = ServerCounters {
            connections_active: 1,
            connections_accepted: 1,
            connections_handled: 1,
            requests: 1,
            connections_writing: 1,
            ..Default::default()
        };
        assert_eq!(
            first.render_stub_status(),
            "Active connections: 1 \nserver accepts handled requests\n 1 1 1 \n\
             Reading: 0 Writing: 1 Waiting: 0 \n"
        );
        assert_eq!(first.render_stub_status().len(), 97);
    }

    #[test]
    fn every_figure_stands_in_its_own_place() {
        let counters = ServerCounters {
            connections_active: 291,
            connections_accepted: 16_630_948,
            connections_handled: 16_630_947,
            requests: 31_070_465,
            connections_reading: 6,
            connections_writing: 179,
            connections_waiting: 106,
            ..Default::default()
        };
        assert_eq!(
            counters.render_stub_status(),
            "Active connections: 291 \nserver accepts handled requests\n \
             16630948 16630947 31070465 \nReading: 6 Writing: 179 Waiting: 106 \n"
        );
    }
}
