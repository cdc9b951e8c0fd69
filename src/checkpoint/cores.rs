//! A core of its own for each thread.
//!
//! A thread that reads headers lives for some twenty milliseconds. Linux, in virtual machines above all, may start it on
//! the core where its parent runs on, and moves it only after ten or twenty: then two threads take as long as one.

/// The core on which the caller runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Core(usize);

#[cfg(target_os = "linux")]
impl Core {
    pub(super) fn here() -> Self {
        Core(rustix::thread::sched_getcpu())
    }

    /// Moves the caller, the `nth` of its kind, to another core if it is on this one. It may go anywhere from there.
    pub(super) fn leave(self, nth: usize) {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

        if Core::here().0 != self.0 {
            return;
        }
        let Ok(allowed) = sched_getaffinity(None) else { return };
        let others: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|c| *c != self.0 && allowed.is_set(*c)).collect();
        let Some(other) = nth.checked_rem(others.len()).and_then(|at| others.get(at)) else { return };
        let mut one = CpuSet::new();
        one.set(*other);
        if sched_setaffinity(None, &one).is_ok() {
            // If this fails it stays there: no worse than where it was.
            let _ = sched_setaffinity(None, &allowed);
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Core {
    pub(super) fn here() -> Self {
        Core(0)
    }

    pub(super) fn leave(self, _nth: usize) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::thread::sched_getaffinity;

    #[test]
    fn what_leaves_may_go_where_it_could() {
        let before = sched_getaffinity(None).unwrap();
        for nth in [0, 1, 1000] {
            Core::here().leave(nth);
            assert!(sched_getaffinity(None).unwrap() == before);
        }
    }
}
