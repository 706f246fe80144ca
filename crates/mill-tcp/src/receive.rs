//! What the segment carries.
