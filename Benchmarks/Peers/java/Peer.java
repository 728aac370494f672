// The jobs in Java, with virtual threads.
//
//   java Peer JOB WORKERS [REPEAT]   one "value unit" line for each sample
//   java Peer --list                 the jobs
//
// The number of workers is the scheduler's, which the command line of the virtual machine sets
// (-Djdk.virtualThreadScheduler.parallelism); here it is only checked. Needs Java 21 or later to
// run. Virtual threads are reached by reflection, once, so that older compilers do as well.
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

public final class Peer {
    /** A sample is to take so long at least. */
    static final long SAMPLE_TIME = 20_000_000;
    /** So long is a job warmed up, for the compiler's sake. */
    static final long WARM_UP = 1_000_000_000;
    static final int MANY_TASKS = 100_000;
    static final int SKYNET_LEAVES = 100_000;
    static final int SKYNET_NODES = 111_111;
    static final int PARKED_TASKS = 100_000;
    static final int SLEEPERS = 10_000;

    static final ThreadFactory VIRTUAL = virtualThreads();

    static ThreadFactory virtualThreads() {
        try {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            Class<?> type = Class.forName("java.lang.Thread$Builder");
            return (ThreadFactory) type.getMethod("factory").invoke(builder);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("no virtual threads: Java 21 or later is needed", e);
        }
    }

    interface Work { void run() throws Exception; }
    interface Counted { void run(int n) throws Exception; }
    interface Sampler { double[] run(int repeat) throws Exception; }

    record Job(String unit, Sampler sampler) {}

    static Thread start(Work work) {
        Thread thread = VIRTUAL.newThread(() -> {
            try {
                work.run();
            } catch (Throwable e) {
                e.printStackTrace();
                System.exit(1);
            }
        });
        thread.start();
        return thread;
    }

    static void must(boolean ok, String what) {
        if (!ok) throw new IllegalStateException(what + ": wrong result");
    }

    static long triangle(long n) { return n * (n - 1) / 2; }

    /** Time of some work on a virtual thread. */
    static long measure(Work work) throws Exception {
        FutureTask<Long> task = new FutureTask<>((Callable<Long>) () -> {
            long begin = System.nanoTime();
            work.run();
            return System.nanoTime() - begin;
        });
        VIRTUAL.newThread(task).start();
        return task.get();
    }

    static Job timed(String unit, Counted body) {
        return new Job(unit, repeat -> {
            long end = System.nanoTime() + WARM_UP;
            int n = 1000;
            while (true) {
                int count = n;
                if (measure(() -> body.run(count)) < SAMPLE_TIME) n *= 2;
                else if (System.nanoTime() > end) break;
            }
            int count = n;
            double[] samples = new double[repeat];
            for (int i = 0; i < repeat; i++)
                samples[i] = measure(() -> body.run(count)) / (double) count;
            return samples;
        });
    }

    static Job fixed(String unit, int count, Work body) {
        return new Job(unit, repeat -> {
            long end = System.nanoTime() + WARM_UP;
            do measure(body); while (System.nanoTime() < end);
            double[] samples = new double[repeat];
            for (int i = 0; i < repeat; i++) samples[i] = measure(body) / (double) count;
            return samples;
        });
    }

    static void yields(int n, int count) throws Exception {
        Thread[] all = new Thread[count];
        for (int i = 0; i < count; i++)
            all[i] = start(() -> {
                for (int turn = 0; turn < n / count; turn++) Thread.yield();
            });
        for (Thread thread : all) thread.join();
    }

    static void spawnJoin(int n) throws Exception {
        for (int i = 0; i < n; i++) start(() -> {}).join();
    }

    static void fanOut() throws Exception {
        CountDownLatch all = new CountDownLatch(MANY_TASKS);
        for (int i = 0; i < MANY_TASKS; i++) start(all::countDown);
        all.await();
    }

    static long skynet(long first, int size) throws Exception {
        if (size == 1) return first;
        int part = size / 10;
        long[] results = new long[10];
        Thread[] children = new Thread[10];
        for (int i = 0; i < 10; i++) {
            int child = i;
            children[i] = start(() -> results[child] = skynet(first + child * part, part));
        }
        long sum = 0;
        for (int i = 0; i < 10; i++) {
            children[i].join();
            sum += results[i];
        }
        return sum;
    }

    static void rendezvous(int n) throws Exception {
        SynchronousQueue<Integer> there = new SynchronousQueue<>();
        SynchronousQueue<Integer> back = new SynchronousQueue<>();
        Thread echo = start(() -> {
            for (int i = 0; i < n; i++) back.put(there.take());
        });
        long sum = 0;
        for (int i = 0; i < n; i++) {
            there.put(i);
            sum += back.take();
        }
        echo.join();
        must(sum == triangle(n), "rendezvous");
    }

    static void channel(int n, int pairs) throws Exception {
        ArrayBlockingQueue<Integer> numbers = new ArrayBlockingQueue<>(128);
        AtomicLong sum = new AtomicLong();
        int each = n / pairs;
        Thread[] all = new Thread[2 * pairs];
        for (int i = 0; i < pairs; i++) {
            all[2 * i] = start(() -> {
                for (int number = 0; number < each; number++) numbers.put(number);
            });
            all[2 * i + 1] = start(() -> {
                long own = 0;
                for (int k = 0; k < each; k++) own += numbers.take();
                sum.addAndGet(own);
            });
        }
        for (Thread thread : all) thread.join();
        must(sum.get() == pairs * triangle(each), "channel");
    }

    static void mutex(int n, int count) throws Exception {
        ReentrantLock lock = new ReentrantLock();
        long[] sum = new long[1];
        int each = n / count;
        Thread[] all = new Thread[count];
        for (int i = 0; i < count; i++)
            all[i] = start(() -> {
                for (int number = 0; number < each; number++) {
                    lock.lock();
                    try {
                        sum[0] += number;
                    } finally {
                        lock.unlock();
                    }
                }
            });
        for (Thread thread : all) thread.join();
        must(sum[0] == count * triangle(each), "mutex");
    }

    /** In pages of 4 KiB, which all x86-64 machines have. */
    static long residentBytes() throws Exception {
        return Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[1]) * 4096;
    }

    /** Growth of the process, so with whatever the collector has not got round to. */
    static double[] parkedMemory(int repeat) throws Exception {
        CountDownLatch started = new CountDownLatch(PARKED_TASKS);
        CountDownLatch open = new CountDownLatch(1);
        Thread[] all = new Thread[PARKED_TASKS];
        System.gc();
        long before = residentBytes();
        for (int i = 0; i < PARKED_TASKS; i++)
            all[i] = start(() -> {
                started.countDown();
                open.await();
            });
        started.await();
        double bytes = (residentBytes() - before) / (double) PARKED_TASKS;
        open.countDown();
        for (Thread thread : all) thread.join();
        return new double[] {bytes};
    }

    /**
     * How late sleepers of 10 to 1,000 ms wake, the given percentile, in microseconds. The lengths
     * are the same in all programs.
     */
    static double[] lateness(int percent) throws Exception {
        double[] late = new double[SLEEPERS];
        Thread[] all = new Thread[SLEEPERS];
        long state = 1;
        for (int i = 0; i < SLEEPERS; i++) {
            state = state * 6364136223846793005L + 1442695040888963407L;
            long nap = 10_000_000 + (state >>> 33) % 990_000_001L;
            int own = i;
            all[i] = start(() -> {
                long begin = System.nanoTime();
                Thread.sleep(nap / 1_000_000, (int) (nap % 1_000_000));
                late[own] = (System.nanoTime() - begin - nap) / 1e3;
            });
        }
        for (Thread thread : all) thread.join();
        Arrays.sort(late);
        return new double[] {late[SLEEPERS * percent / 100]};
    }

    static Job sleepers(int percent) {
        return new Job("µs", repeat -> {
            lateness(percent);  // for the compiler's sake
            return lateness(percent);
        });
    }

    static Map<String, Job> jobs() {
        Map<String, Job> jobs = new LinkedHashMap<>();
        jobs.put("pool.yield.two", timed("ns/yield", n -> yields(n, 2)));
        jobs.put("pool.yield.thousand", timed("ns/yield", n -> yields(n, 1000)));
        jobs.put("pool.spawn.join", timed("ns each", Peer::spawnJoin));
        jobs.put("pool.fanout", fixed("ns each", MANY_TASKS, Peer::fanOut));
        jobs.put("pool.skynet", fixed("ns/task", SKYNET_NODES, () ->
            must(skynet(0, SKYNET_LEAVES) == triangle(SKYNET_LEAVES), "skynet")));
        jobs.put("sync.rendezvous", timed("ns/round trip", Peer::rendezvous));
        jobs.put("sync.channel.1to1", timed("ns/element", n -> channel(n, 1)));
        jobs.put("sync.channel.4to4", timed("ns/element", n -> channel(n, 4)));
        jobs.put("sync.mutex.alone", timed("ns", n -> mutex(n, 1)));
        jobs.put("sync.mutex.four", timed("ns", n -> mutex(n, 4)));
        jobs.put("pool.memory.parked", new Job("B each", Peer::parkedMemory));
        jobs.put("pool.sleepers.p50", sleepers(50));
        jobs.put("pool.sleepers.p99", sleepers(99));
        return jobs;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Job> jobs = jobs();
        if (arguments.length == 1 && arguments[0].equals("--list")) {
            for (String name : jobs.keySet()) System.out.println(name);
            return;
        }
        Job job = arguments.length >= 2 ? jobs.get(arguments[0]) : null;
        if (job == null) {
            System.err.println("usage: java Peer JOB WORKERS [REPEAT] | java Peer --list");
            System.exit(64);
        }
        String parallelism = System.getProperty("jdk.virtualThreadScheduler.parallelism");
        must(arguments[1].equals(parallelism), "the scheduler's parallelism");
        int repeat = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 3;
        StringBuilder text = new StringBuilder();
        for (double sample : job.sampler().run(repeat))
            text.append(String.format(Locale.ROOT, "%.3f %s%n", sample, job.unit()));
        // As bytes: the encoding of standard output depends on the locale.
        System.out.write(text.toString().getBytes("UTF-8"));
        System.out.flush();
        System.exit(0);
    }
}
