//! CUBIC against a model in floating point.
