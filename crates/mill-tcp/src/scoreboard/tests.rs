//! The scoreboard against a model that knows each byte.
