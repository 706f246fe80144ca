//! Which of two processes bounds what both do together.

/// Of 1. Who wants its CPU for this much of the time can do no more.
const SATURATED: f64 = 0.95;

/// In a word, from the shares of the time in which server and client ran or wanted to.
pub(super) fn bound(server_wants: f64, client_wants: f64) -> &'static str {
    match (server_wants >= SATURATED, client_wants >= SATURATED) {
        (true, false) => "server",
        (false, true) => "client",
        (true, true) => "both",
        (false, false) => "neither",
    }
}

#[cfg(test)]
mod tests {
    use super::bound;

    #[test]
    fn who_is_saturated_is_the_bound() {
        for (server, client, expected) in [
            (1.0, 0.5, "server"),
            (0.5, 1.0, "client"),
            (1.0, 1.0, "both"),
            (0.5, 0.5, "neither"),
        ] {
            assert_eq!(bound(server, client), expected);
        }
    }
}
