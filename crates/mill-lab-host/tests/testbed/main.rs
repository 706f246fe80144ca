//! Topologies, tuning and the journal on the real kernel, in namespaces of their own. Without root these tests print
//! so and pass: they cannot do anything.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says why it is skipped, in its helping functions as well"
)]

mod crash;
mod far;
mod link;
mod stage;
mod tuning;
