//! Medians, intervals, tests and curves; pure arithmetic with known vectors as tests.
