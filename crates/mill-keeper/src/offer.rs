//! What a program gets, in words.

use mill_device::specification::settings::StacksPer;

/// The end of a sentence about a program: over which device it has stacks, how many queues there are, and for how many stacks at a time.
/// There are none of a device that is no interface of this machine.
pub(crate) fn words(device: &str, queues: usize, stacks: usize, per: StacksPer) -> String {
    let each = match per {
        StacksPer::Process => "process",
        StacksPer::Thread => "thread",
    };
    let shares = match (queues, stacks) {
        (0, _) => String::from("one of them at a time has the device, and serves the others"),
        (1, _) => String::from("one of them at a time has its queue, and serves the others"),
        (queues, 1) => {
            format!("one of them at a time has its {queues} queues, and serves the others")
        }
        (queues, stacks) => format!("up to {stacks} of them at a time share its {queues} queues"),
    };
    format!("stacks over {device}, one for each {each}; {shares}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_queues_and_stacks_are_said() {
        let (process, thread) = (StacksPer::Process, StacksPer::Thread);
        for (device, queues, stacks, per, said) in [
            (
                "tap:t0",
                0,
                1,
                process,
                "process; one of them at a time has the device, and serves the others",
            ),
            (
                "af_xdp:eth0",
                1,
                1,
                process,
                "process; one of them at a time has its queue, and serves the others",
            ),
            (
                "af_xdp:eth0",
                4,
                1,
                process,
                "process; one of them at a time has its 4 queues, and serves the others",
            ),
            (
                "af_xdp:eth0",
                16,
                8,
                thread,
                "thread; up to 8 of them at a time share its 16 queues",
            ),
        ] {
            let expected = format!("stacks over {device}, one for each {said}");
            assert_eq!(words(device, queues, stacks, per), expected);
        }
    }
}
