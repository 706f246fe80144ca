//! Topologies, tuning and the journal on the real kernel, in namespaces of their own. Without root these tests say so and
//! pass: there is nothing that they could do.

mod link;
mod stage;
