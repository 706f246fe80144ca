//! The one home of unsafe.
