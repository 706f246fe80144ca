//! Directives that nginx has no word for, in its grammar. Their places are taken already, so
//! that a configuration written for a later version says what it needs.

use crate::directive::{Apply, Arity, Directive, MAIN, many};

pub(crate) const DIRECTIVES: &[Directive] = &[many(
    "network_stack",
    MAIN,
    Arity::AtLeast(1),
    Apply::NotYet("own extensions (the TCP/IP stack that passes the kernel by)"),
    "The network stack that connections go through: kernel, or af_xdp and an interface.",
)];
