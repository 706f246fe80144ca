//! Limits of a process (getrlimit(2)).

use crate::process::check;
use std::io;

/// Which limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// RLIMIT_NOFILE: one more than the highest descriptor.
    Descriptors,
    /// RLIMIT_CORE: bytes of a core file.
    CoreBytes,
}

/// A soft limit, which applies, and the hard limit up to which it may be raised. `u64::MAX` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub soft: u64,
    pub hard: u64,
}

impl Resource {
    pub fn limit(self) -> io::Result<Limit> {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the pointer is to a local that outlives the call.
        check(unsafe { libc::getrlimit(self.number(), &raw mut limit) })?;
        Ok(Limit {
            soft: limit.rlim_cur,
            hard: limit.rlim_max,
        })
    }

    pub fn set_limit(self, limit: Limit) -> io::Result<()> {
        let limit = libc::rlimit {
            rlim_cur: limit.soft,
            rlim_max: limit.hard,
        };
        // SAFETY: the pointer is to a local that outlives the call.
        check(unsafe { libc::setrlimit(self.number(), &raw const limit) })
    }

    /// Sets the limit, and returns what it was, so that no other thread's change of it goes unnoticed.
    pub fn exchange_limit(self, limit: Limit) -> io::Result<Limit> {
        let new = libc::rlimit {
            rlim_cur: limit.soft,
            rlim_max: limit.hard,
        };
        let mut old = new;
        let own = 0;
        // SAFETY: the pointers are to locals that outlive the call.
        check(unsafe { libc::prlimit(own, self.number(), &raw const new, &raw mut old) })?;
        Ok(Limit {
            soft: old.rlim_cur,
            hard: old.rlim_max,
        })
    }

    fn number(self) -> libc::__rlimit_resource_t {
        match self {
            Self::Descriptors => libc::RLIMIT_NOFILE,
            Self::CoreBytes => libc::RLIMIT_CORE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_set_to_what_it_is_stays() {
        for resource in [Resource::Descriptors, Resource::CoreBytes] {
            let limit = resource.limit().unwrap();
            assert!(limit.soft <= limit.hard);
            resource.set_limit(limit).unwrap();
            assert_eq!(resource.exchange_limit(limit).unwrap(), limit);
            assert_eq!(resource.limit().unwrap(), limit);
        }
    }

    #[test]
    fn a_soft_limit_above_the_hard_one_is_refused() {
        let limit = Limit { soft: 2, hard: 1 };
        assert!(Resource::CoreBytes.set_limit(limit).is_err());
    }
}
