//! Measures copies of a TLS record: behind a header at a page's beginning, and elsewhere.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pintle_memcpy as _;
use std::hint::black_box;

const RECORD_BYTES: usize = 16 << 10;
const PAGE_BYTES: usize = 4 << 10;

fn copies(criterion: &mut Criterion) {
    let source = vec![1; RECORD_BYTES + PAGE_BYTES];
    let mut destination = vec![0; RECORD_BYTES + 2 * PAGE_BYTES];
    let to_page = |start: usize| (PAGE_BYTES - start % PAGE_BYTES) % PAGE_BYTES;
    let from = to_page(source.as_ptr().addr());
    let to = to_page(destination.as_ptr().addr());
    let mut group = criterion.benchmark_group("copy of 16 KiB");
    group.throughput(Throughput::Bytes(RECORD_BYTES as u64));
    for behind in [0, 5, 9, 64, 2048] {
        group.bench_function(format!("{behind} bytes behind"), |bencher| {
            let near = source.get(from..from + RECORD_BYTES).expect("the source has a page more");
            let far = destination
                .get_mut(to + behind..to + behind + RECORD_BYTES)
                .expect("the destination has two pages more");
            bencher.iter(|| {
                far.copy_from_slice(black_box(near));
                black_box(&far);
            });
        });
    }
}

criterion_group!(benches, copies);
criterion_main!(benches);
