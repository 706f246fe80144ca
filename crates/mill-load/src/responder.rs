//! A server that answers always the same, with known delays: what generators are measured against.
