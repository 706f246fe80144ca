//! The formats of /proc and /sys (proc(5)): text in, figures out. Missing figures are `None`.

/// /proc/net/netstat and /proc/net/snmp.
pub(crate) mod counters;
/// /proc/stat.
pub(crate) mod cpu;
/// /proc/net/dev.
pub(crate) mod device;
/// /proc/PID/stat and /proc/PID/task/TID/stat.
pub(crate) mod process;
/// /proc/net/tcp and /proc/net/tcp6.
pub(crate) mod sockets;
