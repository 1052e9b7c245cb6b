use super::*;
use crate::{Log, LogConfig, LogFormat};
use std::path::Path;

const CONFIG: BatchConfig = BatchConfig {
    buffer_size: 4,
    max_batch_size: 1,
    max_batch_wait: Duration::from_secs(30),
    throttle: None,
};

fn target(path: &Path) -> Arc<Target> {
    let config = LogConfig { path: path.to_owned(), format: LogFormat::Json, rotation: None };
    Arc::new(Target::Log(Log::open(&config).unwrap()))
}

fn event(text: &str) -> Bytes {
    Bytes::from(format!("{text}\n"))
}

#[tokio::test]
async fn the_queue_is_bounded_and_emptied_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/audit.log");
    let metrics = AuditMetrics::new().unwrap();
    let batcher = Batcher::start(target(&path), &CONFIG, None, metrics);
    // On this single-threaded runtime the queue is not emptied before the first await.
    let outcomes: Vec<_> = (0..6).map(|number| batcher.push(event(&number.to_string()))).collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 4);
    assert_eq!(outcomes[5], Err("audit buffer queue blocked"));
    batcher.shutdown().await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "0\n1\n2\n3\n");
    assert_eq!(batcher.push(event("late")), Err("audit backend shut down"));
}

#[tokio::test]
async fn large_events_fill_the_queue_by_their_bytes() {
    static LARGE: [u8; 1 << 20] = [b'x'; 1 << 20];
    let dir = tempfile::tempdir().unwrap();
    let config = BatchConfig { buffer_size: 10_000, ..CONFIG };
    let target = target(&dir.path().join("audit.log"));
    let batcher = Batcher::start(target, &config, None, AuditMetrics::new().unwrap());
    // On this single-threaded runtime the queue is not emptied: there is no await.
    let accepted = (0..1000).filter(|_| batcher.push(Bytes::from_static(&LARGE)).is_ok()).count();
    assert_eq!(accepted, 256);
    assert_eq!(batcher.push(event("small")), Err("audit buffer queue blocked"));
}

#[tokio::test(start_paused = true)]
async fn batches_are_bounded_by_number_bytes_and_time() {
    let dir = tempfile::tempdir().unwrap();
    let (queue, events) = mpsc::channel(100);
    let room = Room::new();
    let (_stop, stopped) = watch::channel(false);
    let config = BatchConfig { max_batch_size: 3, ..CONFIG };
    let mut worker = Worker {
        events,
        stopped,
        config,
        max_bytes: 10,
        left_over: None,
        bucket: None,
        sending: Sending {
            target: target(&dir.path().join("a")),
            metrics: AuditMetrics::new().unwrap(),
            in_flight: JoinSet::new(),
            permits: Arc::new(Semaphore::new(1)),
        },
    };
    for text in ["1", "2", "3", "four444", "five555", "x"] {
        let event = event(text);
        let place = room.try_take(event.len()).unwrap();
        queue.try_send((event, place)).unwrap();
    }
    let mut collect = async || {
        let batch = worker.collect().await;
        batch.into_iter().map(|(event, _)| event).collect::<Vec<_>>()
    };
    assert_eq!(collect().await, [event("1"), event("2"), event("3")]);
    assert_eq!(collect().await, [event("four444")]);
    let before = Instant::now();
    assert_eq!(collect().await, [event("five555"), event("x")]);
    assert_eq!(before.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn batches_are_throttled_after_a_burst() {
    let mut bucket = TokenBucket::new(Throttle { qps: 10.0, burst: 3 });
    let start = Instant::now();
    let mut times = Vec::new();
    for _ in 0..5 {
        bucket.take().await;
        times.push(start.elapsed().as_millis());
    }
    assert_eq!(times, [0, 0, 0, 100, 200]);
}
