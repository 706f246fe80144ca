//! TIME-WAIT, segment by segment.
