// Command bench measures every number that has a budget and prints one JSON line for each.
//
// It runs the packages' own benchmarks one after the other, so that nothing
// competes with what is measured, and the command line against a real daemon.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// row is one number with a budget: the bound of its median.
type row struct {
	name      string
	pkg       string
	benchmark string
	metric    string // of the benchmark: "ms" for p50-ms and p99-ms, "ns/op", or another one's name
	times     string // -benchtime
	unit      string
	scale     float64 // from the metric to the unit
	budget    float64
}

var rows = []row{
	{"strict Lua, warm worker: request to dead worker", "./exec", "StrictWarm", "ms", "500x", "ms", 1, 1},
	{"strict Lua, cold: request to dead worker", "./exec", "StrictCold", "ms", "100x", "ms", 1, 15},
	{"deadline to proven death", "./exec", "Deadline", "ms", "50x", "ms", 1, 5},
	{"strict shell, warm worker: request to dead worker", "./exec", "Warm/sh", "ms", "100x", "ms", 1, 5},
	{"strict Python, warm worker: request to dead worker", "./exec", "Warm/python", "ms", "50x", "ms", 1, 20},
	{"strict JavaScript, warm worker: request to dead worker", "./exec", "Warm/javascript", "ms", "100x", "ms", 1, 5},
	{"Lua in a worker against the engine in this process, fib: times as long", "./exec", "LuaSpeed/fib", "x", "15x", "", 1, 1.053},
	{"the same, loop", "./exec", "LuaSpeed/loop", "x", "15x", "", 1, 1.053},
	{"the same, concat", "./exec", "LuaSpeed/concat", "x", "15x", "", 1, 1.053},
	{"the same, gmatch", "./exec", "LuaSpeed/gmatch", "x", "15x", "", 1, 1.053},
	{"edit on A, committed, to visible on B", "./daemon", "EditVisible", "ms", "1000x", "ms", 1, 1},
	{"reconnect, 10,000 unchanged pages", "./daemon", "Reconnect", "ms", "8x", "ms", 1, 5},
	{"reconnect, 10,000 unchanged entries: bytes of the exchange", "./p2p", "Reconnect", "bytes", "8x", "B", 1, 1024},
	{"first sync, 10,000 pages of 2 KiB", "./daemon", "FirstSync", "s", "1x", "s", 1, 5},
	{"start to first answer, 10,000 pages", "./daemon", "Start", "ms", "10x", "ms", 1, 150},
	{"idle memory, 10,000 pages", "./daemon", "Start", "rss-MiB", "10x", "MiB", 1, 120},
	{"first query of 10,000 pages after the start", "./daemon", "Start", "first-query-ms", "10x", "ms", 1, 1000},
	{"memory after it", "./daemon", "Start", "asked-rss-MiB", "10x", "MiB", 1, 120},
	{"why a fence stands so, on a page of 200 fences", "./daemon", "Why", "ms", "200x", "ms", 1, 20},
	{"memory right after the import of 10,000 pages", "./daemon", "Touched", "import-rss-MiB", "1x", "MiB", 1, 120},
	{"memory right after 10,000 pages were touched one after another", "./daemon", "Touched", "rss-MiB", "1x", "MiB", 1, 120},
	{"peak of the process with automerge in it, meanwhile", "./daemon", "Touched", "child-peak-MiB", "1x", "MiB", 1, 128},
	{"gate and shadow, per keystroke change", "./crdt", "Keystroke", "ns/op", "20000x", "us", 0.001, 5},
	{"open a page with 10,000 edits", "./crdt", "OpenPage10k", "ns/op", "50x", "ms", 1e-6, 5},
	{"gate and shadow, page of 2 KiB in one insert", "./crdt", "Insert2KiB", "ns/op", "200x", "us", 0.001, 100},
	{"gate and shadow, 260,000 operations, one per change", "./crdt", "Trace260k", "ns/op", "1x", "s", 1e-9, 1.4},
	{"native write model, one keystroke beside the gate", "./crdt", "NativeKeystroke", "ns/op", "20000x", "us", 0.001, 5},
	{"native write model with gate and shadow, paste of 1 MiB", "./crdt", "NativePaste1MiB", "ns/op", "1x", "s", 1e-9, 1},
}

// line is what is printed of a row.
type line struct {
	Name   string  `json:"name"`
	P50    float64 `json:"p50"`
	P99    float64 `json:"p99"`
	Unit   string  `json:"unit"`
	Budget float64 `json:"budget"`
}

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		fmt.Fprintln(os.Stderr, "usage: bench PATH-OF-NOTED [PATTERN-OF-NAMES]")
		os.Exit(2)
	}
	only, err := regexp.Compile(strings.Join(os.Args[2:], ""))
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	failed := false
	tell := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			failed = true
		}
	}
	measured := map[string]map[string][]float64{}
	for _, r := range rows {
		if !only.MatchString(r.name) {
			continue
		}
		key := r.pkg + " " + r.benchmark
		if measured[key] == nil {
			m, err := measure(r)
			if err != nil {
				tell(err)
				continue
			}
			measured[key] = m
		}
		tell(show(r, measured[key]))
	}
	for _, g := range groups {
		if !slices.ContainsFunc(g.names, only.MatchString) {
			continue
		}
		lines, err := g.measure(os.Args[1])
		tell(err)
		for _, l := range lines {
			put(l)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// groups are numbers that are measured together.
var groups = []struct {
	names   []string
	measure func(binary string) ([]line, error)
}{
	{[]string{latestDeath, worstPeak}, attacks},
	{[]string{roundTrip, runOverRPC, ownMemory}, commands},
}

const (
	latestDeath = "deadline to proven death, the latest of all attacks"
	worstPeak   = "peak memory of a worker in any attack, limit 128 MiB"
	roundTrip   = "command line round trip: page show"
	runOverRPC  = "RPC RunFence, warm Lua, to the stored result"
	ownMemory   = "private memory of a warm Lua worker"
)

func put(l line) {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err) // numbers and names
	}
	fmt.Println(string(b))
}

// repetitions of a benchmark that reports one mean per run: their median and
// their maximum stand for p50 and p99.
const repetitions = 11

// measure runs a row's benchmark and returns every metric that it reported.
func measure(r row) (map[string][]float64, error) {
	args := []string{"test", r.pkg, "-run", "^$", "-bench", "^Benchmark" + strings.ReplaceAll(r.benchmark, "/", "$/^") + "$", "-benchtime", r.times, "-timeout", "10m"}
	if r.metric == "ns/op" {
		args = append(args, "-count", strconv.Itoa(repetitions))
	}
	cmd := osexec.Command("go", args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", r.pkg, r.benchmark, err, out.Bytes())
	}
	metrics := map[string][]float64{}
	for s := bufio.NewScanner(&out); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark"+r.benchmark) {
			continue
		}
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, err
			}
			metrics[fields[i+1]] = append(metrics[fields[i+1]], v)
		}
	}
	if len(metrics) == 0 {
		return nil, fmt.Errorf("%s has no benchmark %s", r.pkg, r.benchmark)
	}
	return metrics, nil
}

func show(r row, metrics map[string][]float64) error {
	half, most := r.metric, r.metric
	if r.metric == "ms" {
		half, most = "p50-ms", "p99-ms"
	}
	if len(metrics[half]) == 0 || len(metrics[most]) == 0 {
		return fmt.Errorf("%s %s reports no %s", r.pkg, r.benchmark, half)
	}
	put(line{
		Name: r.name, Unit: r.unit, Budget: r.budget,
		P50: round(median(metrics[half]) * r.scale), P99: round(slices.Max(metrics[most]) * r.scale),
	})
	return nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func round(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return r
}

var attackSummary = regexp.MustCompile(`attacks: .* worst ([0-9.]+) ms, max ([0-9.]+) MiB`)

// attacks are the latest answer and the highest peak of a worker among all
// attacks of every language. The limit of memory is 128 MiB, and 8 MiB may be added.
func attacks(string) ([]line, error) {
	out, err := osexec.Command("make", "--no-print-directory", "attacks").CombinedOutput()
	found := attackSummary.FindAllSubmatch(out, -1)
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("make attacks: %v\n%s", err, out)
	}
	var late, peak float64
	for _, f := range found {
		ms, err1 := strconv.ParseFloat(string(f[1]), 64)
		mib, err2 := strconv.ParseFloat(string(f[2]), 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		late, peak = max(late, ms), max(peak, mib)
	}
	return []line{
		{Name: latestDeath, P50: late, P99: late, Unit: "ms", Budget: 250},
		{Name: worstPeak, P50: peak, P99: peak, Unit: "MiB", Budget: 136},
	}, nil
}
