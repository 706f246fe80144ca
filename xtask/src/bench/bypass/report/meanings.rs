//! What the columns mean, and how blocks are made.

/// In the order of the tables.
pub(super) fn lines(seconds: u32) -> Vec<String> {
    let blocks = format!(
        "Each block has a fresh server and lasts {seconds} s; a pass takes a block of every subject, and the next one goes \
         back the same way. Figures are medians of the blocks; least and most are those of one block."
    );
    let others = [
        "Server and client each have a network namespace and a CPU of their own. The two are joined by a veth pair of one \
         queue, whose softirq work stays where veth does it, or (memif) by shared memory. What is on our own stack spins.",
        "The kernel client is wrk or \"millstream load\": both are tried on every server of every cell, and the better asks.",
        "From 100 kB on, unfinished answers count as fractions, by their bytes. What one answer holds was compared with the \
         file before each block, over memif its length; our client counts the lengths of all.",
        "to nginx, to raw frames: requests/s by those of the neighbouring block, geometric mean with the 95 % interval by \
         Student's t on the logarithms. nginx is that which is asked by the same client; for memif, over AF_XDP.",
        "raw frames: AF_XDP without a stack. As many exchanges as the cell has connections, at most what 256 frames are, are \
         in flight; each is a frame of a request's length, and as many frames back as an answer takes, at most 32. What \
         veth's queue loses are its errors. It knows no connections: where they open and close it is no more than a ceiling.",
        "server CPU µs, client CPU µs: all that the CPU did, per answer: programs, kernel, softirq (/proc/stat, ticks). \
         server µs, client µs: what the processes ran, per answer (schedstat). They are taken in the midst of the block.",
        "busy: shares of the time in which the two CPUs did something. bound: who could do no more. One that spins is always \
         busy: it is the bound if the other one is not; of two that spin it is not told.",
        "p50, p99, p99.9, max: from a request to its whole answer as the client tells it, in a closed loop; connecting is in \
         it but for wrk, whose histogram has microseconds.",
        "Connections that are held: opened evenly over 25 s, then each has its turn when it has been idle longest. Bytes: what the server's \
         processes have more of than after their first answer, and all that the client's has, shared memory in proportion \
         (/proc/PID/smaps_rollup), by the connections that were open at the end.",
        "Overload: the server has 40 % of its CPU, by a control group's limit of 4 ms in 10, or, without one, beside a program that never \
         stops. alone: a closed loop of 64 connections or of 1024, the better one; on all: that of 1024; \
         offered: four times as much as alone, on 1024; of it: answered by alone. It sleeps when it has nothing to do. The last period may be short.",
        "A target is open when it lies inside the interval, or between the least and the most.",
    ];
    let mut lines = vec![blocks];
    lines.extend(others.map(str::to_owned));
    lines
}
