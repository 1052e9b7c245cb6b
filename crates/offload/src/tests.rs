use super::*;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

#[test]
#[expect(clippy::disallowed_methods, reason = "the wait stands for work, and another task ends it")]
fn a_large_request_leaves_its_worker_to_others() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (release, blocked) = mpsc::channel::<()>();
    let began = Arc::new(AtomicBool::new(false));
    let begins = began.clone();
    let large = runtime.spawn(scope(async move {
        weigh(LIGHT + 1).await;
        begins.store(true, Ordering::Relaxed);
        blocked.recv_timeout(Duration::from_secs(30)).is_ok()
    }));
    let small = runtime.spawn(scope(async move {
        while !began.load(Ordering::Relaxed) {
            weigh(LIGHT).await;
            tokio::task::yield_now().await;
        }
        release.send(()).is_ok()
    }));
    assert!(runtime.block_on(small).unwrap());
    assert!(runtime.block_on(large).unwrap(), "the small request ran after the large one");
}

#[test]
fn large_requests_take_turns_on_a_thread_for_each_core_and_all_end() {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(4 * cores).enable_time().build().unwrap();
    let tasks: Vec<_> = (0..40)
        .map(|_| {
            runtime.spawn(scope(async move {
                weigh(LIGHT + 1).await;
                let mut threads = Vec::new();
                for _ in 0..3 {
                    threads.push(std::thread::current().name().unwrap_or_default().to_owned());
                    std::thread::yield_now();
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                threads
            }))
        })
        .collect();
    let mut threads = BTreeSet::new();
    for task in tasks {
        threads.extend(runtime.block_on(task).unwrap());
    }
    assert!(threads.len() <= cores.max(2), "{threads:?}");
    assert!(threads.iter().all(|name| name.starts_with("large-")), "{threads:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn free_memory_is_returned_when_a_thread_is_idle() {
    static IDLE: AtomicUsize = AtomicUsize::new(0);
    when_idle(|| {
        IDLE.fetch_add(1, Ordering::SeqCst);
    });
    scope(weigh(LIGHT + 1)).await;
    let idle = async {
        while IDLE.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), idle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_work_of_a_large_request_that_nobody_waits_for_ends() {
    let (alive, ended) = tokio::sync::oneshot::channel::<()>();
    let (began, begins) = tokio::sync::oneshot::channel();
    let request = tokio::spawn(scope(async move {
        let _alive = alive;
        weigh(LIGHT + 1).await;
        let _ = began.send(());
        std::future::pending::<()>().await;
    }));
    begins.await.unwrap();
    request.abort();
    assert!(ended.await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_reaches_its_own_request_only() {
    for _ in 0..10 {
        let panics = tokio::spawn(scope(async {
            weigh(LIGHT + 1).await;
            panic!("as it is meant to");
        }));
        assert!(panics.await.unwrap_err().is_panic());
    }
    let works = scope(async {
        weigh(LIGHT + 1).await;
        7
    });
    assert_eq!(works.await, 7);
}

#[tokio::test]
async fn with_one_thread_it_runs_there() {
    assert_eq!(
        scope(async {
            weigh(LIGHT + 1).await;
            7
        })
        .await,
        7
    );
    weigh(LIGHT + 1).await;
}

/// Panics when it is dropped, unless the thread is panicking already.
struct PanicsAtEnd;

impl Drop for PanicsAtEnd {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "as it has to");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_when_work_is_given_up_ends_no_thread() {
    let threads = std::thread::available_parallelism().map_or(2, usize::from).max(2);
    for _ in 0..2 * threads {
        let (began, begins) = tokio::sync::oneshot::channel();
        let request = tokio::spawn(scope(async move {
            let _panics = PanicsAtEnd;
            weigh(LIGHT + 1).await;
            let _ = began.send(());
            std::future::pending::<()>().await;
        }));
        begins.await.unwrap();
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
    }
    for _ in 0..2 * threads {
        scope(weigh(LIGHT + 1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_of_unknown_size_leaves_its_worker() {
    let threads = scope(async {
        let before = (is_on_worker(), std::thread::current().id());
        leave_worker().await;
        let after = (is_on_worker(), std::thread::current().id());
        (before, after)
    });
    let ((was_there, worker), (is_there, other)) = tokio::spawn(threads).await.unwrap();
    assert!(was_there && !is_there);
    assert_ne!(worker, other);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the waits stand for work, which other tasks end")]
fn a_request_waits_for_one_of_each_other_party() {
    let count = std::thread::available_parallelism().map_or(2, usize::from).max(2);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let ended = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (begin, begins) = mpsc::channel();
    let request = |party: &'static str, release: Option<mpsc::Receiver<()>>| {
        let (ended, begin) = (ended.clone(), begin.clone());
        runtime.spawn(scope(async move {
            belongs_to(party);
            weigh(LIGHT + 1).await;
            let _ = begin.send(());
            if let Some(release) = release {
                let _ = release.recv_timeout(Duration::from_secs(30));
            }
            ended.lock().unwrap().push((party, std::thread::current().id()));
        }))
    };
    let wait_for = |requests| {
        let began = std::time::Instant::now();
        while threads::assigned() < requests {
            assert!(began.elapsed() < Duration::from_secs(30));
            std::thread::yield_now();
        }
    };
    // Each thread has one that is running, and more that wait.
    let (releases, running): (Vec<_>, Vec<_>) = (0..count)
        .map(|_| {
            let (release, released) = mpsc::channel();
            (release, request("many", Some(released)))
        })
        .unzip();
    for _ in 0..count {
        begins.recv_timeout(Duration::from_secs(30)).unwrap();
    }
    let waiting: Vec<_> = (0..8 * count).map(|_| request("many", None)).collect();
    wait_for(9 * count);
    let one = request("one", None);
    wait_for(9 * count + 1);
    drop(releases);
    runtime.block_on(one).unwrap();
    for task in running.into_iter().chain(waiting) {
        runtime.block_on(task).unwrap();
    }
    let ended = ended.lock().unwrap();
    let (rank, (_, thread)) = ended.iter().enumerate().find(|(_, (party, _))| *party == "one").unwrap();
    let before = ended.iter().take(rank).filter(|(_, other)| other == thread).count();
    assert!(before <= 2, "it waited for the one that ran, and for {} more", before - 1);
}
