//! The jobs in Rust with tokio.
//!
//!     peer JOB WORKERS [REPEAT]   one "value unit" line for each sample
//!     peer --list                 the jobs
//!
//! One worker: the current-thread runtime. Several: the multi-thread runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, Mutex, Semaphore};
use tokio::task::yield_now;

/// A sample is to take so long at least.
const SAMPLE_TIME: Duration = Duration::from_millis(20);
const MANY_TASKS: usize = 100_000;
const SKYNET_LEAVES: usize = 100_000;
const SKYNET_NODES: usize = 111_111;
const PARKED_TASKS: usize = 100_000;
const SLEEPERS: usize = 10_000;

type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

enum Method {
    /// Does an operation so many times.
    Timed(fn(usize) -> Task<()>),
    /// Does so many operations at a time.
    Fixed(usize, fn() -> Task<()>),
    /// Measures itself.
    Gauge(fn() -> Task<f64>),
}

use Method::{Fixed, Gauge, Timed};

const JOBS: &[(&str, &str, Method)] = &[
    ("pool.yield.two", "ns/yield", Timed(|n| Box::pin(yields(n, 2)))),
    ("pool.yield.thousand", "ns/yield", Timed(|n| Box::pin(yields(n, 1000)))),
    ("pool.spawn.join", "ns each", Timed(|n| Box::pin(spawn_join(n)))),
    ("pool.fanout", "ns each", Fixed(MANY_TASKS, || Box::pin(fan_out()))),
    ("pool.skynet", "ns/task", Fixed(SKYNET_NODES, || Box::pin(whole_skynet()))),
    ("sync.rendezvous", "ns/round trip", Timed(|n| Box::pin(rendezvous(n)))),
    ("sync.channel.1to1", "ns/element", Timed(|n| Box::pin(channel_one(n)))),
    ("sync.channel.4to4", "ns/element", Timed(|n| Box::pin(channel_four(n)))),
    ("sync.select.4.buffered", "ns/element", Timed(|n| Box::pin(select_four(n)))),
    ("sync.mutex.alone", "ns", Timed(|n| Box::pin(mutex(n, 1)))),
    ("sync.mutex.four", "ns", Timed(|n| Box::pin(mutex(n, 4)))),
    ("pool.memory.parked", "B each", Gauge(|| Box::pin(parked_memory()))),
    ("pool.sleepers.p50", "µs", Gauge(|| Box::pin(lateness(50)))),
    ("pool.sleepers.p99", "µs", Gauge(|| Box::pin(lateness(99)))),
];

fn triangle(n: usize) -> usize {
    n * (n - 1) / 2
}

async fn yields(n: usize, count: usize) {
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            tokio::spawn(async move {
                for _ in 0..n / count {
                    yield_now().await
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap()
    }
}

async fn spawn_join(n: usize) {
    for _ in 0..n {
        tokio::spawn(async {}).await.unwrap()
    }
}

async fn fan_out() {
    let tasks: Vec<_> = (0..MANY_TASKS).map(|_| tokio::spawn(async {})).collect();
    for task in tasks {
        task.await.unwrap()
    }
}

fn skynet(first: usize, size: usize) -> Task<usize> {
    Box::pin(async move {
        if size == 1 {
            return first;
        }
        let part = size / 10;
        let children: Vec<_> =
            (0..10).map(|child| tokio::spawn(skynet(first + child * part, part))).collect();
        let mut sum = 0;
        for child in children {
            sum += child.await.unwrap()
        }
        sum
    })
}

async fn whole_skynet() {
    assert_eq!(skynet(0, SKYNET_LEAVES).await, triangle(SKYNET_LEAVES));
}

/// tokio has no channel without a buffer: room for one is the least.
async fn rendezvous(n: usize) {
    let (there, mut asked) = mpsc::channel(1);
    let (back, mut answers) = mpsc::channel(1);
    let echo = tokio::spawn(async move {
        while let Some(number) = asked.recv().await {
            back.send(number).await.unwrap()
        }
    });
    let mut sum = 0;
    for number in 0..n {
        there.send(number).await.unwrap();
        sum += answers.recv().await.unwrap();
    }
    drop(there);
    echo.await.unwrap();
    assert_eq!(sum, triangle(n));
}

async fn channel_one(n: usize) {
    let (sender, mut receiver) = mpsc::channel(128);
    let producer = tokio::spawn(async move {
        for number in 0..n {
            sender.send(number).await.unwrap()
        }
    });
    let consumer = tokio::spawn(async move {
        let mut sum = 0;
        while let Some(number) = receiver.recv().await {
            sum += number
        }
        sum
    });
    producer.await.unwrap();
    assert_eq!(consumer.await.unwrap(), triangle(n));
}

/// tokio's bounded queue has one receiver; four consumers have to share it behind its mutex.
async fn channel_four(n: usize) {
    let (sender, receiver) = mpsc::channel(128);
    let receiver = Arc::new(Mutex::new(receiver));
    let each = n / 4;
    for _ in 0..4 {
        let sender = sender.clone();
        tokio::spawn(async move {
            for number in 0..each {
                sender.send(number).await.unwrap()
            }
        });
    }
    drop(sender);
    let consumers: Vec<_> = (0..4)
        .map(|_| {
            let receiver = receiver.clone();
            tokio::spawn(async move {
                let mut sum = 0;
                while let Some(number) = receive(&receiver).await {
                    sum += number
                }
                sum
            })
        })
        .collect();
    let mut sum = 0;
    for consumer in consumers {
        sum += consumer.await.unwrap()
    }
    assert_eq!(sum, 4 * triangle(each));
}

async fn receive(receiver: &Mutex<mpsc::Receiver<usize>>) -> Option<usize> {
    receiver.lock().await.recv().await
}

async fn select_four(n: usize) {
    let (first, mut a) = mpsc::channel(1);
    let (second, mut b) = mpsc::channel(1);
    let (third, mut c) = mpsc::channel(1);
    let (fourth, mut d) = mpsc::channel(1);
    for (start, sender) in [first, second, third, fourth].into_iter().enumerate() {
        tokio::spawn(async move {
            for number in (start..n).step_by(4) {
                sender.send(number).await.unwrap()
            }
        });
    }
    let mut sum = 0;
    for _ in 0..n {
        sum += tokio::select! {
            Some(number) = a.recv() => number,
            Some(number) = b.recv() => number,
            Some(number) = c.recv() => number,
            Some(number) = d.recv() => number,
        };
    }
    assert_eq!(sum, triangle(n));
}

async fn mutex(n: usize, count: usize) {
    let lock = Arc::new(Mutex::new(0));
    let each = n / count;
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let lock = lock.clone();
            tokio::spawn(async move {
                for number in 0..each {
                    *lock.lock().await += number
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap()
    }
    assert_eq!(*lock.lock().await, count * triangle(each));
}

/// In pages of 4 KiB, which all x86-64 machines have.
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

async fn parked_memory() -> f64 {
    let latch = Arc::new(Semaphore::new(0));
    let started = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::with_capacity(PARKED_TASKS);
    let before = resident_bytes();
    for _ in 0..PARKED_TASKS {
        let (latch, started) = (latch.clone(), started.clone());
        tasks.push(tokio::spawn(async move {
            started.fetch_add(1, Ordering::Relaxed);
            drop(latch.acquire().await);
        }));
    }
    while started.load(Ordering::Relaxed) < PARKED_TASKS {
        yield_now().await
    }
    let bytes = (resident_bytes() - before) as f64 / PARKED_TASKS as f64;
    latch.add_permits(PARKED_TASKS);
    for task in tasks {
        task.await.unwrap()
    }
    bytes
}

/// How late sleepers of 10 to 1,000 ms wake, the given percentile, in microseconds. The lengths
/// are the same in all programs.
async fn lateness(percent: usize) -> f64 {
    let mut state = 1u64;
    let tasks: Vec<_> = (0..SLEEPERS)
        .map(|_| {
            state =
                state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let nap = Duration::from_nanos(10_000_000 + (state >> 33) % 990_000_001);
            tokio::spawn(async move {
                let start = Instant::now();
                tokio::time::sleep(nap).await;
                (start.elapsed() - nap).as_nanos() as f64 / 1e3
            })
        })
        .collect();
    let mut late = Vec::new();
    for task in tasks {
        late.push(task.await.unwrap())
    }
    late.sort_by(f64::total_cmp);
    late[SLEEPERS * percent / 100]
}

fn runtime(workers: usize) -> Runtime {
    let mut builder =
        if workers == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    if workers > 1 {
        builder.worker_threads(workers);
    }
    builder.enable_time().build().unwrap()
}

/// Runs a task on a worker, as all that it starts, and returns the time that took.
fn measure(runtime: &Runtime, task: Task<()>) -> f64 {
    let start = Instant::now();
    runtime.block_on(async { tokio::spawn(task).await.unwrap() });
    start.elapsed().as_nanos() as f64
}

fn samples(runtime: &Runtime, method: &Method, repeat: usize) -> Vec<f64> {
    match method {
        Timed(body) => {
            // The trials that find how many make a sample warm up as well.
            let mut n = 1000;
            while measure(runtime, body(n)) < SAMPLE_TIME.as_nanos() as f64 {
                n *= 2
            }
            (0..repeat).map(|_| measure(runtime, body(n)) / n as f64).collect()
        }
        Fixed(count, body) => {
            measure(runtime, body());
            (0..repeat).map(|_| measure(runtime, body()) / *count as f64).collect()
        }
        Gauge(body) => {
            vec![runtime.block_on(async { tokio::spawn(body()).await.unwrap() })]
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--list"] {
        for (name, _, _) in JOBS {
            println!("{name}")
        }
        return;
    }
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<usize>().ok());
    let (workers, repeat) = (number(1).unwrap_or(0), number(2).unwrap_or(3));
    let job = JOBS.iter().find(|job| arguments.first().map(String::as_str) == Some(job.0));
    match job {
        Some((_, unit, method)) if workers > 0 && repeat > 0 => {
            for sample in samples(&runtime(workers), method, repeat) {
                println!("{sample:.3} {unit}")
            }
        }
        _ => {
            eprintln!("usage: peer JOB WORKERS [REPEAT] | peer --list");
            std::process::exit(64)
        }
    }
}
