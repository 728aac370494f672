// The jobs in C++ with Boost.Fiber and, for coroutines, Boost.Context.
//
//   peer JOB WORKERS [REPEAT]   one "value unit" line for each sample
//   peer --list                 the jobs
//
// One worker: the default scheduler, round_robin. Several: shared_work on so many threads.
#include <algorithm>
#include <atomic>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <boost/fiber/all.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace context = boost::context;
namespace fibers = boost::fibers;
using Clock = std::chrono::steady_clock;
using Samples = std::vector<double>;

// A sample is to take so long at least.
constexpr double sample_time = 20e6;
constexpr long many_tasks = 100'000;
constexpr long skynet_leaves = 100'000;
constexpr long skynet_nodes = 111'111;
constexpr long parked_tasks = 100'000;
constexpr long sleepers = 10'000;
// Small stacks: all that these jobs need, and an eighth of what Boost takes by default.
constexpr std::size_t stack_size = 16 * 1024;

struct Job {
    std::string name;
    std::string unit;
    std::function<Samples(int repeat)> run;
};

static double since(Clock::time_point start) {
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

static void must(bool ok, const char *what) {
    if (ok) return;
    std::fprintf(stderr, "%s: wrong result\n", what);
    std::exit(1);
}

static long triangle(long n) { return n * (n - 1) / 2; }

// Stacks from a pool where one thread has all fibers (the pool is not safe for several), else from
// malloc, which reuses them as well.
static context::pooled_fixedsize_stack *pool;
struct Stacks {
    context::fixedsize_stack plain{stack_size};
    context::stack_context allocate() { return pool ? pool->allocate() : plain.allocate(); }
    void deallocate(context::stack_context &stack) {
        pool ? pool->deallocate(stack) : plain.deallocate(stack);
    }
};

template <class Body> static fibers::fiber spawn(Body body) {
    return {fibers::launch::post, std::allocator_arg, Stacks(), std::move(body)};
}

static void join(std::vector<fibers::fiber> &all) {
    for (auto &fiber : all) fiber.join();
}

// A job whose body does an operation n times. The trials that find n warm up as well.
static Job timed(std::string name, std::string unit, std::function<void(long n)> body) {
    return {name, unit, [body](int repeat) {
        auto measure = [&](long n) {
            auto start = Clock::now();
            body(n);
            return since(start);
        };
        long n = 1000;
        while (measure(n) < sample_time) n *= 2;
        Samples samples;
        for (int i = 0; i < repeat; i++) samples.push_back(measure(n) / double(n));
        return samples;
    }};
}

// A job that does so many operations at a time, and once before the first sample.
static Job fixed(std::string name, std::string unit, long count, std::function<void()> body) {
    return {name, unit, [body, count](int repeat) {
        Samples samples;
        body();
        for (int i = 0; i < repeat; i++) {
            auto start = Clock::now();
            body();
            samples.push_back(since(start) / double(count));
        }
        return samples;
    }};
}

static void coroutine(long n) {
    long input = 0, output = 0, sum = 0;
    context::fiber other(std::allocator_arg, Stacks(), [&](context::fiber &&caller) {
        while (input >= 0) {
            output = input;
            caller = std::move(caller).resume();
        }
        return std::move(caller);
    });
    for (long i = 0; i < n; i++) {
        input = i;
        other = std::move(other).resume();
        sum += output;
    }
    input = -1;
    other = std::move(other).resume();
    must(sum == triangle(n), "coroutine");
}

static void generator(long n) {
    long value = 0, sum = 0;
    context::fiber producer(std::allocator_arg, Stacks(), [&](context::fiber &&caller) {
        for (long i = 0; i < n; i++) {
            value = i;
            caller = std::move(caller).resume();
        }
        return std::move(caller);
    });
    while (true) {
        producer = std::move(producer).resume();
        if (!producer) break;
        sum += value;
    }
    must(sum == triangle(n), "generator");
}

static void yields(long n, int count) {
    std::vector<fibers::fiber> all;
    for (int i = 0; i < count; i++)
        all.push_back(spawn([=] {
            for (long turn = 0; turn < n / count; turn++) boost::this_fiber::yield();
        }));
    join(all);
}

static void spawn_join(long n) {
    for (long i = 0; i < n; i++) spawn([] {}).join();
}

static void fan_out() {
    std::vector<fibers::fiber> all;
    all.reserve(many_tasks);
    for (long i = 0; i < many_tasks; i++) all.push_back(spawn([] {}));
    join(all);
}

static long skynet(long first, long size) {
    if (size == 1) return first;
    long part = size / 10, sum = 0, results[10];
    std::vector<fibers::fiber> children;
    children.reserve(10);
    for (long child = 0; child < 10; child++)
        children.push_back(spawn([&results, first, part, child] {
            results[child] = skynet(first + child * part, part);
        }));
    join(children);
    for (long result : results) sum += result;
    return sum;
}

static void rendezvous(long n) {
    fibers::unbuffered_channel<long> there, back;
    auto echo = spawn([&] {
        for (long number : there) back.push(number);
    });
    auto asker = spawn([&] {
        long sum = 0;
        for (long i = 0; i < n; i++) {
            there.push(i);
            sum += back.value_pop();
        }
        there.close();
        must(sum == triangle(n), "rendezvous");
    });
    asker.join();
    echo.join();
}

static void channel(long n, int pairs) {
    fibers::buffered_channel<long> numbers(128);
    std::vector<fibers::fiber> all;
    std::atomic<long> sum{0};
    long each = n / pairs;
    for (int i = 0; i < pairs; i++) {
        all.push_back(spawn([&] {
            for (long number = 0; number < each; number++) numbers.push(number);
        }));
        all.push_back(spawn([&] {
            long own = 0;
            for (long i = 0; i < each; i++) own += numbers.value_pop();
            sum += own;
        }));
    }
    join(all);
    must(sum == pairs * triangle(each), "channel");
}

static void mutex(long n, int count) {
    fibers::mutex lock;
    long sum = 0, each = n / count;
    std::vector<fibers::fiber> all;
    for (int i = 0; i < count; i++)
        all.push_back(spawn([&] {
            for (long number = 0; number < each; number++) {
                std::lock_guard<fibers::mutex> guard(lock);
                sum += number;
            }
        }));
    join(all);
    must(sum == count * triangle(each), "mutex");
}

static long resident_bytes() {
    long size = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident * sysconf(_SC_PAGESIZE);
}

static Samples parked_memory(int) {
    // The pool links its free stacks through their memory, and so touches all that it gets.
    pool = nullptr;
    std::vector<fibers::fiber> all;
    all.reserve(parked_tasks);
    fibers::mutex lock;
    fibers::condition_variable changed;
    bool open = false;
    std::atomic<long> started{0};
    long before = resident_bytes();
    for (long i = 0; i < parked_tasks; i++)
        all.push_back(spawn([&] {
            std::unique_lock<fibers::mutex> guard(lock);
            started++;
            changed.wait(guard, [&] { return open; });
        }));
    while (started < parked_tasks) boost::this_fiber::yield();
    double bytes = double(resident_bytes() - before) / parked_tasks;
    {
        std::lock_guard<fibers::mutex> guard(lock);
        open = true;
    }
    changed.notify_all();
    join(all);
    return {bytes};
}

// How late sleepers of 10 to 1,000 ms wake, the given percentile, in microseconds. The lengths are
// the same in all programs.
static Samples lateness(int percent) {
    std::vector<double> late(sleepers);
    std::vector<fibers::fiber> all;
    std::uint64_t state = 1;
    for (long i = 0; i < sleepers; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        long nap = 10'000'000 + long((state >> 33) % 990'000'001);
        all.push_back(spawn([&late, i, nap] {
            auto start = Clock::now();
            boost::this_fiber::sleep_for(std::chrono::nanoseconds(nap));
            late[i] = (since(start) - double(nap)) / 1e3;
        }));
    }
    join(all);
    std::sort(late.begin(), late.end());
    return {late[sleepers * percent / 100]};
}

static const std::vector<Job> jobs = {
    timed("coroutine.int", "ns/round trip", coroutine),
    timed("generator.int", "ns/element", generator),
    timed("pool.yield.two", "ns/yield", [](long n) { yields(n, 2); }),
    timed("pool.yield.thousand", "ns/yield", [](long n) { yields(n, 1000); }),
    timed("pool.spawn.join", "ns each", spawn_join),
    fixed("pool.fanout", "ns each", many_tasks, fan_out),
    fixed("pool.skynet", "ns/task", skynet_nodes, [] {
        must(skynet(0, skynet_leaves) == triangle(skynet_leaves), "skynet");
    }),
    timed("sync.rendezvous", "ns/round trip", rendezvous),
    timed("sync.channel.1to1", "ns/element", [](long n) { channel(n, 1); }),
    timed("sync.channel.4to4", "ns/element", [](long n) { channel(n, 4); }),
    timed("sync.mutex.alone", "ns", [](long n) { mutex(n, 1); }),
    timed("sync.mutex.four", "ns", [](long n) { mutex(n, 4); }),
    {"pool.memory.parked", "B each", parked_memory},
    {"pool.sleepers.p50", "µs", [](int) { return lateness(50); }},
    {"pool.sleepers.p99", "µs", [](int) { return lateness(99); }},
};

static void run(const Job &job, int repeat) {
    for (double sample : job.run(repeat))
        std::printf("%.3f %s\n", sample, job.unit.c_str());
}

// Runs a job on several threads that share all ready fibers.
static void run_shared(const Job &job, int workers, int repeat) {
    std::mutex lock;
    bool done = false;
    fibers::condition_variable_any changed;
    std::vector<std::thread> threads;
    for (int i = 1; i < workers; i++)
        threads.emplace_back([&] {
            fibers::use_scheduling_algorithm<fibers::algo::shared_work>(true);
            std::unique_lock<std::mutex> guard(lock);
            changed.wait(guard, [&] { return done; });
        });
    fibers::use_scheduling_algorithm<fibers::algo::shared_work>(true);
    run(job, repeat);
    {
        std::lock_guard<std::mutex> guard(lock);
        done = true;
    }
    changed.notify_all();
    for (auto &thread : threads) thread.join();
}

int main(int count, char **arguments) {
    if (count == 2 && std::string(arguments[1]) == "--list") {
        for (auto &job : jobs) std::puts(job.name.c_str());
        return 0;
    }
    int workers = count > 2 ? std::atoi(arguments[2]) : 0;
    int repeat = count > 3 ? std::atoi(arguments[3]) : 3;
    for (auto &job : jobs) {
        if (count < 2 || workers < 1 || repeat < 1 || job.name != arguments[1]) continue;
        context::pooled_fixedsize_stack stacks(stack_size);
        if (workers == 1) {
            pool = &stacks;
            run(job, repeat);
        } else {
            run_shared(job, workers, repeat);
        }
        std::fflush(stdout);
        // Without the statics' ends: Boost's main context outlives its pool otherwise.
        std::_Exit(0);
    }
    std::fprintf(stderr, "usage: peer JOB WORKERS [REPEAT] | peer --list\n");
    return 64;
}
