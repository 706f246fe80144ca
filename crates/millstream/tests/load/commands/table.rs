//! The client commands of the published experiments.
//!
//! Each is as it was printed, with its host and duration, for which our own server and a short time are put; behind the
//! arrow is another changed option. If `-c` is reduced, another row has the original, or a comment says why none does.

/// Tempesta FW, a connection per request.
pub(super) const TEMPESTA: &str = "\
wrk --latency -H 'Connection: close' -c 8192 -d 30 -t 8 http://192.168.200.80:9090/
wrk --latency -H 'Connection: close' -c 8192 -d 30 -t 8 http://192.168.200.80/ => -c 800
wrk --latency -H 'Connection: close' -c 16384 -d 30 -t 16 http://172.16.0.200:9090/
wrk --latency -H 'Connection: close' -c 16384 -d 30 -t 16 http://172.16.0.200/ => -c 1600";

/// Cloud Onload's cookbook: transactions, requests and throughput. The published https:// is a mistake in its text.
/// In a second fifty connections share too little bandwidth to finish many answers of the largest sizes.
pub(super) const ONLOAD: &str = "\
./wrk -t 1 -c 50 -d 180s -H 'Connection: close' http://192.168.105.35/0kb.bin
taskset -c [0-31] ./wrk -t 1 -c 50 -d 180s http://192.168.105.35/0kb.bin
taskset -c [0-31] ./wrk -t 1 -c 50 -d 180s http://192.168.105.35/1kb.bin
taskset -c [0-31] ./wrk -t 1 -c 50 -d 180s http://192.168.105.35/10kb.bin
taskset -c [0-31] ./wrk -t 1 -c 50 -d 180s http://192.168.105.35/100kb.bin
taskset -c [0-31] ./wrk -t 1 -c 50 -d 180s http://192.168.105.35/1Mb.bin
taskset -c [0-31] ./wrk -t 1 -c 50 -d 180s http://192.168.105.35/10Mb.bin => -c 4
taskset -c [0-31] ./wrk -t 1 -c 50 -d 180s http://192.168.105.35/100Mb.bin => -c 1";

/// DragonFlyBSD: requests per connection, sizes.
pub(super) const DRAGONFLY: &str = "\
./wrk -c 15000 --connreqs 1 -d 600s -t 8 --latency --delay http://192.168.3.254/1K.bin
./wrk -c 15000 --connreqs 4 -d 600s -t 8 --latency --delay http://192.168.3.254/1K.bin => -c 1500
./wrk -c 15000 --connreqs 14 -d 600s -t 8 --latency --delay http://192.168.3.254/1K.bin => -c 1500
./wrk -c 15000 --connreqs 1 -d 600s -t 8 --latency --delay http://192.168.3.254/8K.bin => -c 1500
./wrk -c 15000 --connreqs 1 -d 600s -t 8 --latency --delay http://192.168.3.254/16K.bin => -c 1500";

/// Rubris-io between two hosts. 25000 connections and more exceed the usual limit of descriptors, and 50000 the ports
/// of one source address.
pub(super) const RUBRIS: &str = "\
./wrk/wrk -t20 -c1000 -d30s http://10.0.1.189:8091/favicon.ico
./wrk/wrk -t20 -c2000 -d30s http://10.0.1.189:8091/favicon.ico
./wrk/wrk -t20 -c5000 -d30s http://10.0.1.189:8091/favicon.ico
./wrk/wrk -t20 -c10000 -d30s http://10.0.1.189:8091/favicon.ico
./wrk/wrk -t28 -c25000 -d30s http://10.0.1.189:8091/favicon.ico => -c 2500
./wrk/wrk -t28 -c50000 -d30s http://10.0.1.189:8091/favicon.ico => -c 2500";

/// Rubris-io on one host; commands that it ran between two hosts as well are above.
pub(super) const RUBRIS_ALONE: &str = "\
./wrk/wrk -t12 -c1000 -d30s http://127.0.0.1:8091/favicon.ico
./wrk/wrk -t12 -c2000 -d30s http://127.0.0.1:8091/favicon.ico
./wrk/wrk -t12 -c5000 -d30s http://127.0.0.1:8091/favicon.ico => -c 500
./wrk/wrk -t12 -c10000 -d30s http://127.0.0.1:8091/favicon.ico => -c 1000
./wrk/wrk -t12 -c25000 -d30s http://127.0.0.1:8091/favicon.ico => -c 2500
./wrk/wrk -t12 -c50000 -d30s http://127.0.0.1:8091/favicon.ico => -c 2500
./wrk/wrk -t16 -c1000 -d30s http://127.0.0.1:8091/favicon.ico
./wrk/wrk -t16 -c10000 -d30s http://127.0.0.1:8091/favicon.ico => -c 1000
./wrk/wrk -t20 -c25000 -d30s http://127.0.0.1:8091/favicon.ico => -c 2500
./wrk/wrk -t20 -c50000 -d30s http://127.0.0.1:8091/favicon.ico => -c 2500";

/// The evaluation of nginx and jemalloc, and the command that Tempesta's authors criticise, with their host.
pub(super) const AB: &str = "\
ab -n 800000 -c 100 http://www.example.com/logo.svg => -n 2000
ab -n 800000 -c 300 http://www.example.com/logo.svg => -n 2000
ab -n 100000 -c 10000 http://192.168.200.80:9090/ => -n 10500";
