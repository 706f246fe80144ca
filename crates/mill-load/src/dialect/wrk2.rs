//! wrk2: wrk at a constant rate, its latency counted from when a request was due.
