//! The capabilities of the calling thread (capabilities(7)).

/// A set of capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rights(u64);

/// A capability, by its number in the kernel's capability.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Right(u32);

impl Right {
    pub(crate) const NET_ADMIN: Self = Self(12);
    pub(crate) const NET_RAW: Self = Self(13);
    pub(crate) const IPC_LOCK: Self = Self(14);
    pub(crate) const SYS_ADMIN: Self = Self(21);
    pub(crate) const PERFMON: Self = Self(38);
    pub(crate) const BPF: Self = Self(39);
}

impl Rights {
    /// The effective set; `None` if it cannot be read. In a user namespace the capabilities cover only what belongs to
    /// that namespace.
    pub(crate) fn own() -> Option<Self> {
        Self::of(&std::fs::read_to_string("/proc/thread-self/status").ok()?)
    }

    /// `status` is the contents of /proc/…/status (proc(5)).
    pub(crate) fn of(status: &str) -> Option<Self> {
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        u64::from_str_radix(line?.trim(), 16).ok().map(Self)
    }

    pub(crate) const fn has(self, right: Right) -> bool {
        self.0 & 1 << right.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_parsed_from_proc_status() {
        let check = |effective: &str, right, expected| {
            let status = format!("Name:\tx\nCapPrm:\tffff\nCapEff:\t{effective}\nCapBnd:\tffff\n");
            let rights = Rights::of(&status);
            assert_eq!(
                rights.map(|rights| rights.has(right)),
                expected,
                "{effective}"
            );
        };
        check("0000000000001000", Right::NET_ADMIN, Some(true));
        check("0000000000001000", Right::NET_RAW, Some(false));
        check("0000008000000000", Right::BPF, Some(true));
        check("0000008000000000", Right::PERFMON, Some(false));
        check("x", Right::BPF, None);
        assert_eq!(Rights::of("Name:\tx\n"), None);
    }
}
