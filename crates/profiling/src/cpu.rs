//! Samples where the process spends CPU time, by a timer that signals after each hundredth of a second of it.

use crate::{
    profile::{Builder, ValueType},
    unwind::Stack,
};
use std::{
    collections::HashMap,
    ffi::c_int,
    mem, ptr,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering},
    time::{Instant, SystemTime},
};

/// Samples in a second of CPU time, as in Go.
const FREQUENCY: u32 = 100;
/// The room for samples, in words: a stack takes one more than it has frames. A full buffer drops samples.
const ROOM: usize = 1 << 20;

/// Another profile is being taken: there is one timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// There is one timer for the process.
    #[error("cpu profiling already in use")]
    InUse,
    /// The system refuses the signal or the timer.
    #[error("the system has no profiling timer")]
    NoTimer,
}

/// The samples: stacks, each behind its length.
struct Samples {
    words: Box<[AtomicUsize]>,
    used: AtomicUsize,
}

static RUNNING: AtomicBool = AtomicBool::new(false);
/// Those who take samples at the moment, so that the samples are not freed below them.
static SAMPLING: AtomicUsize = AtomicUsize::new(0);
static SAMPLES: AtomicPtr<Samples> = AtomicPtr::new(ptr::null_mut());

/// A profile that is being taken. Dropping it ends it.
pub struct CpuProfile {
    samples: Box<Samples>,
    started: SystemTime,
    clock: Instant,
}

/// Begins a profile.
///
/// # Errors
/// When one is being taken already.
pub fn start() -> Result<CpuProfile, StartError> {
    if RUNNING.swap(true, Ordering::SeqCst) {
        return Err(StartError::InUse);
    }
    // The unwinder initializes itself when it is first used, which a signal handler should not see.
    let _ = Stack::capture();
    let mut words = Vec::with_capacity(ROOM);
    words.resize_with(ROOM, AtomicUsize::default);
    let mut samples = Box::new(Samples { words: words.into(), used: AtomicUsize::new(0) });
    SAMPLES.store(&raw mut *samples, Ordering::SeqCst);
    let profile = CpuProfile { samples, started: SystemTime::now(), clock: Instant::now() };
    // Dropping the profile undoes the rest.
    if !handle_signals() || !set_timer(1_000_000 / FREQUENCY) {
        return Err(StartError::NoTimer);
    }
    Ok(profile)
}

impl CpuProfile {
    /// Ends the profile, and encodes it. It reads the symbols of the binary, and may take a second.
    pub fn finish(self) -> Vec<u8> {
        let duration = self.clock.elapsed();
        self.stop();
        let mut counts: HashMap<Vec<usize>, i64> = HashMap::new();
        let mut place = 0;
        let load = |place: usize| self.samples.words.get(place).map(|word| word.load(Ordering::Relaxed));
        while let Some(length) = load(place).filter(|length| *length > 0) {
            let stack: Vec<usize> = (place + 1..=place + length).filter_map(load).collect();
            *counts.entry(stack).or_default() += 1;
            place += length + 1;
        }
        let period = 1_000_000_000 / i64::from(FREQUENCY);
        let types = [ValueType::new("samples", "count"), ValueType::new("cpu", "nanoseconds")];
        let mut builder = Builder::new(&types, &ValueType::new("cpu", "nanoseconds"), period);
        builder.set_time(self.started, Some(duration));
        for (stack, count) in counts {
            builder.add(&stack, &[count, count * period]);
        }
        builder.encode()
    }

    /// Ends the sampling: afterwards nothing writes to the samples.
    fn stop(&self) {
        set_timer(0);
        SAMPLES.store(ptr::null_mut(), Ordering::SeqCst);
        while SAMPLING.load(Ordering::SeqCst) > 0 {
            std::hint::spin_loop();
        }
    }
}

impl Drop for CpuProfile {
    fn drop(&mut self) {
        self.stop();
        RUNNING.store(false, Ordering::SeqCst);
    }
}

/// Installs the handler. It stays: a signal of the timer that arrives late would end the process without.
fn handle_signals() -> bool {
    #[expect(unsafe_code, reason = "a handler is installed by a system call")]
    // SAFETY: the handler calls only what is safe in signal handlers, and the structure is valid when it is zero.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = sample as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGPROF, &raw const action, ptr::null_mut()) == 0
    }
}

/// Signals after each so many microseconds of CPU time; zero ends that.
fn set_timer(microseconds: u32) -> bool {
    let interval = libc::timeval { tv_sec: 0, tv_usec: microseconds.into() };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    #[expect(unsafe_code, reason = "a timer is set by a system call")]
    // SAFETY: the structure outlives the call.
    unsafe {
        libc::setitimer(libc::ITIMER_PROF, &raw const timer, ptr::null_mut()) == 0
    }
}

/// The signal handler.
extern "C" fn sample(_: c_int) {
    #[expect(unsafe_code, reason = "the code that is interrupted must find its error number unchanged")]
    // SAFETY: the address of the thread's error number is always valid.
    let errno = unsafe { *libc::__errno_location() };
    SAMPLING.fetch_add(1, Ordering::SeqCst);
    let samples = SAMPLES.load(Ordering::SeqCst);
    #[expect(unsafe_code, reason = "the samples are shared with the handler by a pointer")]
    // SAFETY: `stop` clears the pointer, and then waits until nobody samples, before the samples are freed.
    if let Some(samples) = unsafe { samples.as_ref() } {
        // The frames of this function and of the one that captures are in front of the signal's.
        let stack = Stack::capture();
        samples.add(stack.frames(2));
    }
    SAMPLING.fetch_sub(1, Ordering::SeqCst);
    #[expect(unsafe_code, reason = "see above")]
    // SAFETY: as above.
    unsafe {
        *libc::__errno_location() = errno;
    }
}

impl Samples {
    fn add(&self, frames: &[usize]) {
        if frames.is_empty() {
            return;
        }
        let start = self.used.fetch_add(frames.len() + 1, Ordering::Relaxed);
        let Some(slots) = self.words.get(start..start.saturating_add(frames.len() + 1)) else { return };
        for (slot, value) in slots.iter().zip(std::iter::once(&frames.len()).chain(frames)) {
            slot.store(*value, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::decode;
    use std::time::Duration;

    /// The time that this thread has had a processor.
    fn on_processor() -> Duration {
        let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Duration::from_nanos(times.split(' ').next().unwrap().parse().unwrap())
    }

    #[inline(never)]
    fn burn(time: Duration) -> u64 {
        let until = on_processor() + time;
        let mut sum = 0_u64;
        while on_processor() < until {
            for number in 0..1_000_000_u64 {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(number));
            }
        }
        sum
    }

    #[test]
    fn a_profile_names_the_function_that_takes_the_time() {
        let profile = start().unwrap();
        assert_eq!(start().err(), Some(StartError::InUse));
        burn(Duration::from_millis(400));
        let decoded = decode(&profile.finish());
        let of_burn: i64 = decoded.samples_with("burn").iter().map(|values| values[1]).sum();
        assert!(of_burn >= 100_000_000, "{of_burn}: {:?}", decoded.names());
        // The handler's own frames are left out.
        assert!(decoded.samples_with("cpu6sample").is_empty(), "{:?}", decoded.names());
        // Another one can follow.
        drop(start().unwrap());
        assert!(start().is_ok());
    }
}
