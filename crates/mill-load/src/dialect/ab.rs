//! ApacheBench 2.3.
