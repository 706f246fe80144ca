//! Threads that meet at a biased lock.

use super::*;
use crate::process::check;
use std::sync::mpsc;
use std::thread::scope;

/// Two counts that are equal while no thread is inside.
type Pair = (u64, u64);

/// Counts both, with a moment between them.
fn count(pair: &mut Pair) {
    count_slowly(pair, 0);
}

/// With so many pauses of the CPU between them.
fn count_slowly(pair: &mut Pair, pauses: u32) {
    let (first, second) = hint::black_box(*pair);
    assert_eq!(first, second, "two threads are inside");
    pair.0 = first + 1;
    hint::black_box(&mut *pair);
    for _ in 0..pauses {
        hint::spin_loop();
    }
    pair.1 = second + 1;
    hint::black_box(pair);
}

/// A lock of which a thread may become owner; `None` where the kernel has no membarrier(2).
fn permitted() -> Option<BiasedLock<Pair>> {
    let lock = BiasedLock::new((0, 0));
    lock.permit_bias();
    let is_permitted = lock.claims.is_permitted.load(Ordering::Relaxed);
    if !is_permitted {
        println!("not tested: there is no membarrier(2)");
    }
    is_permitted.then_some(lock)
}

/// Takes it as many times as it needs, and no more.
fn become_owner(lock: &BiasedLock<Pair>) {
    for _ in 0..ROW {
        count(&mut lock.lock());
        assert!(!is_owner(lock));
    }
    count(&mut lock.lock());
    assert!(is_owner(lock));
}

fn is_owner(lock: &BiasedLock<Pair>) -> bool {
    lock.bias().is_some_and(Bias::is_own)
}

fn is_biased(guard: &BiasedGuard<'_, Pair>) -> bool {
    guard.bias.is_some()
}

#[test]
fn a_thread_that_takes_the_lock_many_times_becomes_its_owner() {
    let Some(lock) = permitted() else { return };
    become_owner(&lock);
    let guard = lock.lock();
    assert!(is_biased(&guard));
    assert_eq!(*guard, (u64::from(ROW) + 1, u64::from(ROW) + 1));
}

#[test]
fn a_visitor_does_not_come_in_while_the_owner_is_inside_and_leaves_it_the_bias() {
    let Some(lock) = permitted() else { return };
    become_owner(&lock);
    let visit = || scope(|scope| scope.spawn(|| lock.try_visit().is_some()).join().unwrap());
    let guard = lock.lock();
    assert!(!visit());
    assert!(lock.try_visit().is_none());
    drop(guard);
    assert!(visit());
    scope(|scope| scope.spawn(|| count(&mut lock.visit())).join().unwrap());
    assert!(is_biased(&lock.lock()));
}

#[test]
fn a_thread_that_has_the_lock_by_the_mutex_does_not_come_in_by_its_bias() {
    let Some(lock) = permitted() else { return };
    for _ in 0..ROW {
        drop(lock.lock());
    }
    let comes_in = || lock.enter().is_some() || lock.try_visit().is_some();
    let guard = lock.lock();
    assert!(is_owner(&lock) && !is_biased(&guard) && !comes_in());
    drop(guard);
    let guard = lock.visit();
    assert!(!comes_in());
    drop(guard);
    let guard = lock.try_visit().unwrap();
    assert!(!comes_in());
    drop(guard);
    let guard = lock.lock();
    assert!(is_biased(&guard) && !comes_in());
}

#[test]
fn the_owner_does_not_come_in_while_a_visitor_is_inside() {
    let Some(lock) = permitted() else { return };
    become_owner(&lock);
    scope(|scope| {
        let (come, came) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        let lock = &lock;
        scope.spawn(move || {
            let mut guard = lock.visit();
            come.send(()).unwrap();
            gone.recv().unwrap();
            count(&mut guard);
        });
        came.recv().unwrap();
        assert!(lock.enter().is_none());
        assert!(lock.try_visit().is_none());
        go.send(()).unwrap();
        let guard = lock.lock();
        assert_eq!(guard.0, u64::from(ROW) + 2);
    });
    assert!(is_biased(&lock.lock()));
}

#[test]
fn the_owner_and_its_visitors_exclude_each_other() {
    let Some(lock) = permitted() else { return };
    become_owner(&lock);
    let owned = AtomicU64::new(u64::from(ROW) + 1);
    let visited = scope(|scope| {
        let visitor = scope.spawn(|| {
            let mut visited = 0;
            while visited < VISITS || owned.load(Ordering::Relaxed) < OWNED {
                let guard = match visited % 2 {
                    0 => Some(lock.visit()),
                    _ => lock.try_visit(),
                };
                if let Some(mut guard) = guard {
                    count(&mut guard);
                    visited += 1;
                }
            }
            visited
        });
        while !visitor.is_finished() {
            // Not counted by one instruction, which would be a barrier.
            let counted = owned.load(Ordering::Relaxed) + 1;
            // At times it is inside for longer than a barrier takes.
            let pauses = if counted.is_multiple_of(50) { 200 } else { 0 };
            count_slowly(&mut lock.lock(), pauses);
            owned.store(counted, Ordering::Relaxed);
        }
        visitor.join().unwrap()
    });
    let counted = owned.into_inner() + visited;
    assert_eq!(*lock.visit(), (counted, counted));
    assert!(is_owner(&lock));
}

#[test]
fn the_owner_and_the_thread_that_ends_its_bias_exclude_each_other() {
    for _ in 0..ENDS {
        let Some(lock) = permitted() else { return };
        become_owner(&lock);
        let mut counted = u64::from(ROW) + 1;
        scope(|scope| {
            let other = scope.spawn(|| (0..100).for_each(|_| count(&mut lock.lock())));
            while !other.is_finished() {
                count(&mut lock.lock());
                counted += 1;
            }
        });
        counted += 100;
        assert_eq!(*lock.visit(), (counted, counted));
    }
}

#[test]
fn a_lock_of_another_thread_ends_the_bias_and_after_a_few_the_lock_is_a_mutex_for_good() {
    let Some(lock) = permitted() else { return };
    for _ in 0..BIASES {
        become_owner(&lock);
        scope(|scope| scope.spawn(|| count(&mut lock.lock())).join().unwrap());
        assert!(lock.bias().is_none());
    }
    for _ in 0..2 * ROW {
        count(&mut lock.lock());
    }
    assert!(lock.bias().is_none());
    assert!(lock.try_visit().is_some());
}

#[test]
fn an_owner_that_is_held_up_on_its_way_in_finds_that_its_bias_has_ended() {
    let Some(lock) = permitted() else { return };
    become_owner(&lock);
    let bias = lock.bias().unwrap();
    assert!(bias.is_own());
    let other = || (0..2 * ROW).for_each(|_| count(&mut lock.lock()));
    scope(|scope| scope.spawn(other).join().unwrap());
    assert!(!bias.enter());
    assert!(!is_biased(&lock.lock()));
}

#[test]
fn an_owner_that_has_ended_holds_up_no_other_thread() {
    let Some(lock) = permitted() else { return };
    scope(|scope| scope.spawn(|| become_owner(&lock)).join().unwrap());
    count(&mut lock.visit());
    count(&mut lock.try_visit().unwrap());
    assert!(!is_owner(&lock));
    become_owner(&lock);
    assert!(is_biased(&lock.lock()));
}

#[test]
fn a_visitor_that_waits_sleeps_and_is_woken_by_the_owner() {
    let Some(lock) = permitted() else { return };
    become_owner(&lock);
    for visit in [true, false] {
        let guard = lock.lock();
        assert!(is_biased(&guard));
        scope(|scope| {
            let (tell, told) = mpsc::channel();
            let lock = &lock;
            scope.spawn(move || {
                let own = std::fs::read_link("/proc/thread-self").unwrap();
                tell.send(own).unwrap();
                let mut guard = match visit {
                    true => lock.visit(),
                    false => lock.lock(),
                };
                count(&mut guard);
            });
            let thread = told.recv().unwrap();
            let status = std::path::Path::new("/proc").join(thread).join("stat");
            let sleeps = || {
                let status = std::fs::read_to_string(&status).unwrap();
                status
                    .rsplit_once(") ")
                    .is_some_and(|(_, state)| state.starts_with('S'))
            };
            while !lock.bias().is_some_and(Bias::has_ended) || !sleeps() {
                thread::yield_now();
            }
            drop(guard);
        });
    }
}

#[test]
fn a_lock_without_membarrier_is_a_mutex() {
    let in_thread = thread::spawn(|| {
        forbid_membarrier()?;
        let lock = BiasedLock::new((0, 0));
        lock.permit_bias();
        for _ in 0..2 * ROW {
            count(&mut lock.lock());
        }
        assert!(lock.bias().is_none());
        exclude_each_other(&lock);
        Ok(())
    });
    told_without_filter(in_thread.join().unwrap());
}

#[test]
fn threads_that_share_a_lock_exclude_each_other() {
    exclude_each_other(&BiasedLock::new((0, 0)));
    if let Some(lock) = permitted() {
        exclude_each_other(&lock);
    }
}

/// Two threads and a visitor.
fn exclude_each_other(lock: &BiasedLock<Pair>) {
    let before = lock.visit().0;
    scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..LOCKS).for_each(|_| count(&mut lock.lock())));
        }
        scope.spawn(|| (0..LOCKS).for_each(|_| count(&mut lock.visit())));
    });
    let counted = before + 3 * LOCKS;
    assert_eq!(*lock.visit(), (counted, counted));
}

#[test]
fn a_bias_ends_where_membarrier_is_forbidden_later() {
    let Some(lock) = permitted() else { return };
    become_owner(&lock);
    let (lock, (ask, asked), (answer, answered)) = (&lock, mpsc::channel(), mpsc::channel());
    scope(|scope| {
        scope.spawn(move || {
            let forbidden = forbid_membarrier();
            let is_forbidden = forbidden.is_ok();
            told_without_filter(forbidden);
            // The first attempt ends the bias, unless the owner is inside.
            for () in asked {
                let has_come = lock.try_visit().is_some();
                answer.send((is_forbidden, has_come)).unwrap();
            }
        });
        let visit = || {
            ask.send(()).unwrap();
            answered.recv().unwrap()
        };
        let (is_forbidden, has_come) = visit();
        if is_forbidden {
            assert!(!has_come);
            assert!(!is_biased(&lock.lock()));
            assert!(lock.bias().is_none());
            assert_eq!(visit(), (true, true));
            for _ in 0..2 * ROW {
                count(&mut lock.lock());
            }
            assert!(lock.bias().is_none());
        }
        drop(ask);
    });
}

#[test]
fn a_visitor_that_may_not_use_membarrier_comes_in_all_the_same() {
    let Some(lock) = permitted() else { return };
    become_owner(&lock);
    let visitor = || {
        let forbidden = forbid_membarrier();
        count(&mut lock.visit());
        count(&mut lock.lock());
        forbidden
    };
    told_without_filter(scope(|scope| scope.spawn(visitor).join().unwrap()));
    assert_eq!(lock.lock().0, u64::from(ROW) + 3);
}

#[test]
fn the_thread_of_a_forked_child_becomes_owner_anew() {
    let Some(lock) = permitted() else { return };
    let (lock, (owned, owns), (go, gone)) = (&lock, mpsc::channel(), mpsc::channel::<()>());
    scope(|scope| {
        scope.spawn(move || {
            become_owner(lock);
            owned.send(()).unwrap();
            let _ = gone.recv();
        });
        owns.recv().unwrap();
        let mut guard = lock.visit();
        // SAFETY: the child only takes the lock and ends; it neither allocates nor prints.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the child has no other thread.
            unsafe { guard.restart() };
            drop(guard);
            for _ in 0..=ROW {
                count(&mut lock.lock());
            }
            let is_biased =
                is_biased(&lock.lock()) && lock.claims.spent.load(Ordering::Relaxed) == 1;
            // SAFETY: it takes a number.
            unsafe { libc::_exit(i32::from(!is_biased)) };
        }
        drop(guard);
        let mut status = -1;
        // SAFETY: the pointer is to a local.
        let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
        drop(go);
        assert_eq!((ended, status), (child, 0));
    });
}

/// Has membarrier(2) fail with `ENOSYS` in this thread and those that it starts (seccomp(2)).
fn forbid_membarrier() -> io::Result<()> {
    let one = |code: u32, branches: (u8, u8), value: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: branches.0,
        jf: branches.1,
        k: value,
    };
    let number = u32::try_from(libc::SYS_membarrier).unwrap();
    let refused = libc::SECCOMP_RET_ERRNO | u32::try_from(libc::ENOSYS).unwrap();
    // The number is at the beginning of what the filter looks at (`struct seccomp_data`).
    let mut filter = [
        one(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, (0, 0), 0),
        one(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, (0, 1), number),
        one(libc::BPF_RET | libc::BPF_K, (0, 0), refused),
        one(libc::BPF_RET | libc::BPF_K, (0, 0), libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).unwrap(),
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the call takes numbers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the pointer is to a program of that many instructions, and all live through the call.
    check(unsafe { libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program) })
}

fn told_without_filter(forbidden: io::Result<()>) {
    if let Err(error) = forbidden {
        println!("not tested: seccomp(2): {error}");
    }
}

/// Visits beside an owner, and what that does meanwhile: so many that without the barrier most runs find two threads inside.
const VISITS: u64 = 20_000;
const OWNED: u64 = 3_000_000;

/// Biases that are ended.
const ENDS: usize = 200;

/// By each of two threads and a visitor.
const LOCKS: u64 = 20_000;
