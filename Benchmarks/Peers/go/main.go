// The jobs in Go: goroutines, channels, sync, and iter.Pull for coroutines.
//
//	peer JOB WORKERS [REPEAT]   one "value unit" line for each sample
//	peer --list                 the jobs
package main

import (
	"fmt"
	"iter"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A sample is to take so long at least.
const sampleTime = 20 * time.Millisecond

// How many goroutines the jobs of a fixed size have.
const (
	manyTasks    = 100_000
	skynetLeaves = 100_000
	skynetNodes  = 111_111
	parkedTasks  = 100_000
	sleepers     = 10_000
)

type job struct {
	name string
	unit string
	run  func(repeat int) []float64
}

func must(ok bool, what string) {
	if !ok {
		panic(what)
	}
}

// timed is a job whose body does an operation n times. The trials that find n warm up as well.
func timed(name, unit string, body func(n int)) job {
	return job{name, unit, func(repeat int) []float64 {
		measure := func(n int) time.Duration {
			start := time.Now()
			body(n)
			return time.Since(start)
		}
		n := 1000
		for measure(n) < sampleTime {
			n *= 2
		}
		var samples []float64
		for range repeat {
			samples = append(samples, float64(measure(n).Nanoseconds())/float64(n))
		}
		return samples
	}}
}

// fixed is a job that does so many operations at a time, and once before the first sample.
func fixed(name, unit string, count int, body func()) job {
	return job{name, unit, func(repeat int) []float64 {
		var samples []float64
		for i := range repeat + 1 {
			start := time.Now()
			body()
			if i > 0 {
				samples = append(samples, float64(time.Since(start).Nanoseconds())/float64(count))
			}
		}
		return samples
	}}
}

func coroutine(n int) {
	// iter.Pull carries values one way only; the other goes through a variable.
	input, sum := 0, 0
	next, stop := iter.Pull(func(yield func(int) bool) {
		for yield(input) {
		}
	})
	defer stop()
	for i := range n {
		input = i
		output, _ := next()
		sum += output
	}
	must(sum == n*(n-1)/2, "coroutine")
}

func generator(n int) {
	next, stop := iter.Pull(func(yield func(int) bool) {
		for i := 0; i < n && yield(i); i++ {
		}
	})
	defer stop()
	sum := 0
	for value, ok := next(); ok; value, ok = next() {
		sum += value
	}
	must(sum == n*(n-1)/2, "generator")
}

func yields(goroutines int) func(n int) {
	return func(n int) {
		var all sync.WaitGroup
		all.Add(goroutines)
		for range goroutines {
			go func() {
				defer all.Done()
				for range n / goroutines {
					runtime.Gosched()
				}
			}()
		}
		all.Wait()
	}
}

func spawnJoin(n int) {
	var one sync.WaitGroup
	for range n {
		one.Add(1)
		go one.Done()
		one.Wait()
	}
}

func fanOut() {
	var all sync.WaitGroup
	all.Add(manyTasks)
	for range manyTasks {
		go all.Done()
	}
	all.Wait()
}

func skynet(out chan<- int, first, size int) {
	if size == 1 {
		out <- first
		return
	}
	results := make(chan int)
	part := size / 10
	for child := range 10 {
		go skynet(results, first+child*part, part)
	}
	sum := 0
	for range 10 {
		sum += <-results
	}
	out <- sum
}

func wholeSkynet() {
	result := make(chan int)
	go skynet(result, 0, skynetLeaves)
	must(<-result == skynetLeaves*(skynetLeaves-1)/2, "skynet")
}

func rendezvous(n int) {
	there, back := make(chan int), make(chan int)
	go func() {
		for number := range there {
			back <- number
		}
	}()
	done := make(chan int)
	go func() {
		sum := 0
		for i := range n {
			there <- i
			sum += <-back
		}
		close(there)
		done <- sum
	}()
	must(<-done == n*(n-1)/2, "rendezvous")
}

func channel(pairs int) func(n int) {
	return func(n int) {
		numbers := make(chan int, 128)
		sums := make(chan int, pairs)
		each := n / pairs
		for range pairs {
			go func() {
				for i := range each {
					numbers <- i
				}
			}()
			go func() {
				sum := 0
				for range each {
					sum += <-numbers
				}
				sums <- sum
			}()
		}
		sum := 0
		for range pairs {
			sum += <-sums
		}
		must(sum == pairs*(each*(each-1)/2), "channel")
	}
}

func selectFour(room, senders int) func(n int) {
	return func(n int) {
		var channels [4]chan int
		for i := range channels {
			channels[i] = make(chan int, room)
		}
		for first := range senders {
			go func() {
				for i := first; i < n; i += senders {
					channels[i%4] <- i
				}
			}()
		}
		sum := 0
		a, b, c, d := channels[0], channels[1], channels[2], channels[3]
		for range n {
			select {
			case number := <-a:
				sum += number
			case number := <-b:
				sum += number
			case number := <-c:
				sum += number
			case number := <-d:
				sum += number
			}
		}
		must(sum == n*(n-1)/2, "select")
	}
}

func mutex(goroutines int) func(n int) {
	return func(n int) {
		var lock sync.Mutex
		var all sync.WaitGroup
		all.Add(goroutines)
		sum, each := 0, n/goroutines
		for range goroutines {
			go func() {
				defer all.Done()
				for i := range each {
					lock.Lock()
					sum += i
					lock.Unlock()
				}
			}()
		}
		all.Wait()
		must(sum == goroutines*(each*(each-1)/2), "mutex")
	}
}

func residentBytes() int {
	text, err := os.ReadFile("/proc/self/statm")
	must(err == nil, "/proc/self/statm")
	var size, resident int
	fmt.Sscan(string(text), &size, &resident)
	return resident * os.Getpagesize()
}

func parkedMemory(int) []float64 {
	// So that what is counted are goroutines, not what the collector happens to have left.
	debug.SetGCPercent(-1)
	latch := make(chan struct{})
	var started sync.WaitGroup
	started.Add(parkedTasks)
	before := residentBytes()
	for range parkedTasks {
		go func() {
			started.Done()
			<-latch
		}()
	}
	started.Wait()
	bytes := float64(residentBytes()-before) / parkedTasks
	close(latch)
	return []float64{bytes}
}

// naps are 10 to 1,000 ms, the same in all programs.
func naps(count int) []time.Duration {
	state, all := uint64(1), make([]time.Duration, count)
	for i := range all {
		state = state*6364136223846793005 + 1442695040888963407
		all[i] = time.Duration(10_000_000 + (state>>33)%990_000_001)
	}
	return all
}

// lateness returns the given percentile of how late sleepers wake, in microseconds.
func lateness(percent int) func(int) []float64 {
	return func(int) []float64 {
		late := make([]float64, sleepers)
		var all sync.WaitGroup
		all.Add(sleepers)
		for i, nap := range naps(sleepers) {
			go func() {
				defer all.Done()
				start := time.Now()
				time.Sleep(nap)
				late[i] = float64((time.Since(start) - nap).Nanoseconds()) / 1e3
			}()
		}
		all.Wait()
		slices.Sort(late)
		return []float64{late[sleepers*percent/100]}
	}
}

var jobs = []job{
	timed("coroutine.int", "ns/round trip", coroutine),
	timed("generator.int", "ns/element", generator),
	timed("pool.yield.two", "ns/yield", yields(2)),
	timed("pool.yield.thousand", "ns/yield", yields(1000)),
	timed("pool.spawn.join", "ns each", spawnJoin),
	fixed("pool.fanout", "ns each", manyTasks, fanOut),
	fixed("pool.skynet", "ns/task", skynetNodes, wholeSkynet),
	timed("sync.rendezvous", "ns/round trip", rendezvous),
	timed("sync.channel.1to1", "ns/element", channel(1)),
	timed("sync.channel.4to4", "ns/element", channel(4)),
	timed("sync.select.4", "ns/element", selectFour(0, 1)),
	timed("sync.select.4.buffered", "ns/element", selectFour(1, 4)),
	timed("sync.mutex.alone", "ns", mutex(1)),
	timed("sync.mutex.four", "ns", mutex(4)),
	{"pool.memory.parked", "B each", parkedMemory},
	{"pool.sleepers.p50", "µs", lateness(50)},
	{"pool.sleepers.p99", "µs", lateness(99)},
}

func main() {
	arguments := os.Args[1:]
	if len(arguments) == 1 && arguments[0] == "--list" {
		for _, job := range jobs {
			fmt.Println(job.name)
		}
		return
	}
	if len(arguments) < 2 {
		fmt.Fprintln(os.Stderr, "usage: peer JOB WORKERS [REPEAT] | peer --list")
		os.Exit(64)
	}
	workers, err := strconv.Atoi(arguments[1])
	must(err == nil && workers > 0, "bad number of workers")
	runtime.GOMAXPROCS(workers)
	repeat := 3
	if len(arguments) > 2 {
		repeat, err = strconv.Atoi(arguments[2])
		must(err == nil && repeat > 0, "bad number of samples")
	}
	for _, job := range jobs {
		if job.name == arguments[0] {
			for _, sample := range job.run(repeat) {
				fmt.Println(sample, job.unit)
			}
			return
		}
	}
	fmt.Fprintln(os.Stderr, "no job is called", arguments[0])
	os.Exit(64)
}
