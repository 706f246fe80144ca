//! What the segment acknowledges.
