/* The jobs in C: kernel threads, and ucontext for coroutines.
 *
 *   peer JOB WORKERS [REPEAT]   one "value unit" line for each sample
 *   peer --list                 the jobs
 *
 * Threads have no workers: one worker means that all run on one processor, to which the caller
 * limits this process. So WORKERS is not looked at.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    STACK_SIZE = 64 * 1024,
    SAMPLE_TIME = 20 * 1000 * 1000, /* nanoseconds, at least */
    /* Kernel threads: 100,000, as the other programs park, would be past the usual limits. */
    PARKED_TASKS = 10000,
    SLEEPERS = 10000,
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void must(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "%s: failed\n", what);
    exit(1);
}

static long triangle(long n) { return n * (n - 1) / 2; }

static pthread_t spawn(void *(*body)(void *), void *argument) {
    pthread_attr_t attributes;
    pthread_t thread;
    must(pthread_attr_init(&attributes) == 0, "pthread_attr_init");
    must(pthread_attr_setstacksize(&attributes, STACK_SIZE) == 0, "pthread_attr_setstacksize");
    must(pthread_create(&thread, &attributes, body, argument) == 0, "pthread_create");
    pthread_attr_destroy(&attributes);
    return thread;
}

static void join_all(pthread_t *threads, int count) {
    for (int i = 0; i < count; i++) must(pthread_join(threads[i], NULL) == 0, "pthread_join");
}

/* Coroutines: the caller and the other one, which only swapcontext leads to. */

static ucontext_t caller, other;
static long input, output, limit;

static void echoes(void) {
    while (input >= 0) {
        output = input;
        swapcontext(&other, &caller);
    }
}

static void counts(void) {
    for (long i = 0; i < limit; i++) {
        output = i;
        swapcontext(&other, &caller);
    }
    output = -1;
}

static void make_other(void (*body)(void)) {
    static char stack[STACK_SIZE];
    must(getcontext(&other) == 0, "getcontext");
    other.uc_stack.ss_sp = stack;
    other.uc_stack.ss_size = sizeof stack;
    other.uc_link = &caller;
    makecontext(&other, body, 0);
}

static void coroutine(long n) {
    long sum = 0;
    make_other(echoes);
    for (long i = 0; i < n; i++) {
        input = i;
        swapcontext(&caller, &other);
        sum += output;
    }
    input = -1;
    swapcontext(&caller, &other);
    must(sum == triangle(n), "coroutine");
}

static void generator(long n) {
    long sum = 0;
    limit = n;
    make_other(counts);
    for (;;) {
        swapcontext(&caller, &other);
        if (output < 0) break;
        sum += output;
    }
    must(sum == triangle(n), "generator");
}

/* Threads. */

/* When what is measured began and ended. A job may set them itself: to make a thousand threads
 * takes longer than their turns. */
static double begun, ended;
static pthread_barrier_t all_there;
static _Atomic int busy;

static void *yielder(void *turns) {
    pthread_barrier_wait(&all_there);
    for (long i = 0; i < (long)turns; i++) sched_yield();
    if (--busy == 0) ended = now();
    return NULL;
}

static void yields(long n, int count) {
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    must(threads != NULL, "calloc");
    must(pthread_barrier_init(&all_there, NULL, (unsigned)count + 1) == 0, "barrier");
    /* So many that waking them at the barrier and ending them does not matter. */
    long turns = n / count > 20 ? n / count : 20;
    busy = count;
    for (int i = 0; i < count; i++) threads[i] = spawn(yielder, (void *)turns);
    begun = now();
    pthread_barrier_wait(&all_there);
    join_all(threads, count);
    ended = begun + (ended - begun) * (double)n / (double)(turns * count);
    pthread_barrier_destroy(&all_there);
    free(threads);
}

static void yield_two(long n) { yields(n, 2); }
static void yield_thousand(long n) { yields(n, 1000); }

static void *nothing(void *argument) { return argument; }

static void spawn_join(long n) {
    for (long i = 0; i < n; i++) {
        pthread_t thread = spawn(nothing, NULL);
        join_all(&thread, 1);
    }
}

/* A number there and back: a semaphore each way hands the slot over. */
static sem_t there, back;
static long slot;

static void take(sem_t *semaphore) {
    while (sem_wait(semaphore)) must(errno == EINTR, "sem_wait");
}

static void *echo(void *n) {
    for (long i = 0; i < (long)n; i++) {
        take(&there);
        sem_post(&back);
    }
    return NULL;
}

static void rendezvous(long n) {
    long sum = 0;
    must(sem_init(&there, 0, 0) == 0 && sem_init(&back, 0, 0) == 0, "sem_init");
    pthread_t thread = spawn(echo, (void *)n);
    for (long i = 0; i < n; i++) {
        slot = i;
        sem_post(&there);
        take(&back);
        sum += slot;
    }
    join_all(&thread, 1);
    must(sum == triangle(n), "rendezvous");
}

/* A ring behind a mutex, with a condition for each end. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static long ring[128];
static unsigned long sent, received;
static _Atomic long total;

static void *producer(void *n) {
    for (long number = 0; number < (long)n; number++) {
        pthread_mutex_lock(&lock);
        while (sent - received == 128) pthread_cond_wait(&not_full, &lock);
        ring[sent++ % 128] = number;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *consumer(void *n) {
    long own = 0;
    for (long i = 0; i < (long)n; i++) {
        pthread_mutex_lock(&lock);
        while (sent == received) pthread_cond_wait(&not_empty, &lock);
        own += ring[received++ % 128];
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&lock);
    }
    total += own;
    return NULL;
}

static void channel(long n, int pairs) {
    pthread_t threads[8];
    long each = n / pairs;
    total = 0;
    for (int i = 0; i < pairs; i++) {
        threads[2 * i] = spawn(producer, (void *)each);
        threads[2 * i + 1] = spawn(consumer, (void *)each);
    }
    join_all(threads, 2 * pairs);
    must(total == pairs * triangle(each), "channel");
}

static void channel_one(long n) { channel(n, 1); }
static void channel_four(long n) { channel(n, 4); }

static long guarded;

static void *adder(void *n) {
    for (long number = 0; number < (long)n; number++) {
        pthread_mutex_lock(&lock);
        guarded += number;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void mutex(long n, int count) {
    pthread_t threads[4];
    long each = n / count;
    guarded = 0;
    for (int i = 0; i < count; i++) threads[i] = spawn(adder, (void *)each);
    join_all(threads, count);
    must(guarded == count * triangle(each), "mutex");
}

static void mutex_alone(long n) { mutex(n, 1); }
static void mutex_four(long n) { mutex(n, 4); }

/* Memory and timers. */

static double resident_bytes(void) {
    long size, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    must(file && fscanf(file, "%ld %ld", &size, &resident) == 2, "/proc/self/statm");
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static _Atomic long started;
static sem_t latch;

static void *parked(void *argument) {
    started++;
    take(&latch);
    return argument;
}

/* What the process sees of them: the kernel's own part of a thread is not in it. */
static double parked_memory(void) {
    static pthread_t threads[PARKED_TASKS];
    must(sem_init(&latch, 0, 0) == 0, "sem_init");
    double before = resident_bytes();
    for (int i = 0; i < PARKED_TASKS; i++) threads[i] = spawn(parked, NULL);
    while (started < PARKED_TASKS) sched_yield();
    double bytes = (resident_bytes() - before) / PARKED_TASKS;
    for (int i = 0; i < PARKED_TASKS; i++) sem_post(&latch);
    join_all(threads, PARKED_TASKS);
    return bytes;
}

static long naps[SLEEPERS];
static double late[SLEEPERS];

static void *sleeper(void *index) {
    long own = (long)index;
    struct timespec nap = {naps[own] / 1000000000, naps[own] % 1000000000};
    double begin = now();
    while (nanosleep(&nap, &nap)) must(errno == EINTR, "nanosleep");
    late[own] = (now() - begin - (double)naps[own]) / 1e3;
    return NULL;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How late sleepers of 10 to 1,000 ms wake, the given percentile, in microseconds. The lengths are
 * the same in all programs. */
static double lateness(int percent) {
    static pthread_t threads[SLEEPERS];
    unsigned long state = 1;
    for (long i = 0; i < SLEEPERS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        naps[i] = 10000000 + (long)((state >> 33) % 990000001);
        threads[i] = spawn(sleeper, (void *)i);
    }
    join_all(threads, SLEEPERS);
    qsort(late, SLEEPERS, sizeof *late, by_size);
    return late[SLEEPERS * percent / 100];
}

static double lateness_p50(void) { return lateness(50); }
static double lateness_p99(void) { return lateness(99); }

/* Either `body` does an operation n times, or `gauge` measures itself. */
struct job {
    const char *name, *unit;
    void (*body)(long n);
    double (*gauge)(void);
};

static const struct job jobs[] = {
    {"coroutine.int", "ns/round trip", coroutine, NULL},
    {"generator.int", "ns/element", generator, NULL},
    {"pool.yield.two", "ns/yield", yield_two, NULL},
    {"pool.yield.thousand", "ns/yield", yield_thousand, NULL},
    {"pool.spawn.join", "ns each", spawn_join, NULL},
    {"sync.rendezvous", "ns/round trip", rendezvous, NULL},
    {"sync.channel.1to1", "ns/element", channel_one, NULL},
    {"sync.channel.4to4", "ns/element", channel_four, NULL},
    {"sync.mutex.alone", "ns", mutex_alone, NULL},
    {"sync.mutex.four", "ns", mutex_four, NULL},
    {"pool.memory.parked", "B each", NULL, parked_memory},
    {"pool.sleepers.p50", "µs", NULL, lateness_p50},
    {"pool.sleepers.p99", "µs", NULL, lateness_p99},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

static double measure(const struct job *job, long n) {
    begun = now();
    ended = 0;
    job->body(n);
    return (ended > 0 ? ended : now()) - begun;
}

static void run(const struct job *job, int repeat) {
    if (job->gauge) {
        printf("%.3f %s\n", job->gauge(), job->unit);
        return;
    }
    /* The trials that find n warm up as well. */
    long n = 1000;
    while (measure(job, n) < SAMPLE_TIME) n *= 2;
    for (int i = 0; i < repeat; i++)
        printf("%.3f %s\n", measure(job, n) / (double)n, job->unit);
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "--list") == 0) {
        for (int i = 0; i < JOBS; i++) puts(jobs[i].name);
        return 0;
    }
    int repeat = count > 3 ? atoi(arguments[3]) : 3;
    for (int i = 0; i < JOBS; i++) {
        if (count < 3 || repeat < 1 || strcmp(jobs[i].name, arguments[1])) continue;
        run(&jobs[i], repeat);
        return 0;
    }
    fprintf(stderr, "usage: peer JOB WORKERS [REPEAT] | peer --list\n");
    return 64;
}
