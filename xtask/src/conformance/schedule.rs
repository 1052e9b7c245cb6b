//! Decides what is replayed at the same time.

use std::collections::VecDeque;
use std::sync::Mutex;

/// As many batches are replayed at once: most of a replay waits for the end of watches, and a machine with more to do than
/// this answers so late that steps fail by the clock.
const CONCURRENT: usize = 14;

/// Does the work of all batches, some of them at the same time, and that of each batch in order. Returns the results in
/// the order of the batches.
///
/// # Errors
/// If a worker panicked.
pub(super) fn run<T: Send, R: Send>(
    batches: Vec<Vec<T>>,
    work: impl Fn(T) -> R + Sync,
) -> Result<Vec<R>, String> {
    let queue = Mutex::new(batches.into_iter().enumerate().collect::<VecDeque<_>>());
    let next = || queue.lock().ok()?.pop_front();
    let worker = || {
        let mut results = Vec::new();
        while let Some((place, batch)) = next() {
            results.push((place, batch.into_iter().map(&work).collect::<Vec<R>>()));
        }
        results
    };
    let joined = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CONCURRENT).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join()).collect::<Result<Vec<_>, _>>()
    });
    let mut results: Vec<_> =
        joined.map_err(|_| "a replay panicked".to_owned())?.into_iter().flatten().collect();
    results.sort_by_key(|(place, _)| *place);
    Ok(results.into_iter().flat_map(|(_, results)| results).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn batches_run_at_the_same_time_and_each_in_order() {
        let both = Barrier::new(2);
        let begun = Mutex::new(Vec::new());
        let results = run(vec![vec![0, 1, 2], vec![10]], |item| {
            if item % 10 == 0 {
                both.wait();
            }
            begun.lock().expect("the lock").push(item);
            item * 2
        });
        assert_eq!(results.expect("no panic"), [0, 2, 4, 20]);
        let begun = begun.into_inner().expect("the lock");
        assert!(begun.iter().filter(|item| **item < 10).is_sorted(), "{begun:?}");
    }

    #[test]
    fn a_panic_is_an_error() {
        assert!(run(vec![vec![1], vec![2]], |item| assert_eq!(item, 1)).is_err());
    }
}
