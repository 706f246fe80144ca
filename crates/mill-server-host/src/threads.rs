//! How many worker threads there are, on which CPUs, and which sockets each of them serves.

use mill_config::config::{CpuAffinity, ListenAddress, Main, WorkerCount};
use mill_sys::affinity;

/// The number of worker threads that a configuration asks for.
pub fn thread_count(main: &Main) -> u32 {
    match main.worker_processes {
        WorkerCount::Count(count) => count.max(1),
        WorkerCount::Auto => {
            let cpus = affinity::allowed_cpus().map_or(1, |cpus| cpus.len());
            u32::try_from(cpus).unwrap_or(1).max(1)
        }
    }
}

/// The CPUs of a worker thread; `None` leaves it unbound. `all` are the CPUs that the process may run on.
pub fn cpus_of(affinity: Option<&CpuAffinity>, index: u32, all: &[u16]) -> Option<Vec<u16>> {
    let index = index as usize;
    match affinity? {
        CpuAffinity::Auto { mask } => {
            let cpus = mask.as_ref().map_or(all, |mask| &mask.cpus);
            let cpu = cpus.get(index.checked_rem(cpus.len())?)?;
            Some(vec![*cpu])
        }
        CpuAffinity::Masks(masks) => {
            let mask = masks.get(index).or(masks.last())?;
            Some(mask.cpus.clone())
        }
    }
}

/// A socket as threads identify it.
pub type SocketName = (ListenAddress, Option<u32>);

/// The sockets that a thread serves: all that are shared by all threads, and every `threads`-th of those with
/// `reuseport`. So the sockets of ended threads are served by the others.
pub fn sockets_of<'a>(
    sockets: impl Iterator<Item = &'a SocketName>,
    index: u32,
    threads: u32,
) -> Vec<SocketName> {
    sockets
        .filter(|(_, share)| share.is_none_or(|share| share % threads.max(1) == index))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_config::config::CpuMask;

    fn check_cpus(affinity: Option<CpuAffinity>, expected: [Option<&[u16]>; 4]) {
        for (index, expected) in (0..).zip(expected) {
            let cpus = cpus_of(affinity.as_ref(), index, &[0, 1, 5]);
            assert_eq!(cpus.as_deref(), expected, "{affinity:?} {index}");
        }
    }

    #[test]
    fn threads_are_bound_as_worker_cpu_affinity_says() {
        let mask = |cpus: &[u16]| CpuMask {
            cpus: cpus.to_vec(),
        };
        check_cpus(None, [None; 4]);
        let auto = |mask| Some(CpuAffinity::Auto { mask });
        check_cpus(auto(None), [Some(&[0]), Some(&[1]), Some(&[5]), Some(&[0])]);
        check_cpus(
            auto(Some(mask(&[2, 3]))),
            [Some(&[2]), Some(&[3]), Some(&[2]), Some(&[3])],
        );
        let masks = CpuAffinity::Masks(vec![mask(&[0, 1]), mask(&[4])]);
        check_cpus(
            Some(masks),
            [Some(&[0, 1]), Some(&[4]), Some(&[4]), Some(&[4])],
        );
    }

    #[test]
    fn every_socket_is_served_whatever_the_number_of_threads() {
        let address = ListenAddress::Inet("127.0.0.1:80".parse().unwrap());
        let shared: Vec<SocketName> = (0..5).map(|share| (address.clone(), Some(share))).collect();
        for threads in 1..8 {
            let mut served: Vec<SocketName> = (0..threads)
                .flat_map(|index| sockets_of(shared.iter(), index, threads))
                .collect();
            served.sort();
            assert_eq!(served, shared, "{threads} threads");
        }
        let common = [(address, None)];
        for index in 0..3 {
            assert_eq!(sockets_of(common.iter(), index, 3), common);
        }
    }
}
