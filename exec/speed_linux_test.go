package exec

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"noted/notebook"
)

// BenchmarkWarm is an honest fence of each language from the request to the dead
// worker, with a spare that is ready, and what that spare has for itself alone.
func BenchmarkWarm(b *testing.B) {
	for _, l := range programs() {
		b.Run(l.name, func(b *testing.B) {
			a := conformance[l.name]
			limits := notebook.DefaultLimits
			limits.Memory = a.limits.Memory
			r := newRunner(b, Config{Limits: limits})
			j := strictJob(limits, a.honest)
			j.language = l.name
			once := func() {
				res, _, err := r.run(context.Background(), j)
				if err != nil || res.Verdict != notebook.OK || res.Output != a.shows {
					b.Fatalf("%v %q %q %v", res.Verdict, res.Output, res.Error, err)
				}
			}
			once() // from here on a spare is kept, that of an engine when nothing runs
			ready := func() {
				r.refillAll()
				r.rested()
			}
			ready()
			own := privateOf(b, r, l.name)
			var took []time.Duration
			for b.Loop() {
				ready()
				start := time.Now()
				once()
				took = append(took, time.Since(start))
			}
			report(b, took)
			b.ReportMetric(float64(own)/(1<<20), "private-MiB")
		})
	}
}

// privateOf is what the spare of a language has in memory that it shares with no
// other process.
func privateOf(b *testing.B, r *Runner, language string) (bytes int64) {
	b.Helper()
	r.mu.Lock()
	i := slices.IndexFunc(r.spares, func(s *spare) bool { return s.kind.language == language })
	r.mu.Unlock()
	if i < 0 {
		b.Fatalf("there is no spare for %s", language)
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", r.spares[i].worker.process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		for _, kind := range []string{"Private_Clean:", "Private_Dirty:"} {
			if rest, ok := strings.CutPrefix(s.Text(), kind); ok {
				var kib int64
				if _, err := fmt.Sscan(rest, &kib); err != nil {
					b.Fatal(err)
				}
				bytes += kib << 10
			}
		}
	}
	return bytes
}

// luaWork are programs that take a while, for how fast Lua is in a worker.
var luaWork = map[string]string{
	"fib":    `local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end print(fib(25))`,
	"loop":   `local n = 0 for i = 1, 4e6 do n = n + i % 7 end print(n)`,
	"concat": `local n = 0 for j = 1, 8 do local t = {} for i = 1, 3e4 do t[#t + 1] = "line " .. i end n = n + #table.concat(t, "\n") end print(n)`,
	"gmatch": `local s, n = ("word and another "):rep(2e4), 0 for w in s:gmatch("%a+") do n = n + #w end print(n)`,
}

// BenchmarkLuaSpeed is how long Lua takes in a worker, as a multiple of what the
// engine takes in this process: the middle of each, start and end included.
func BenchmarkLuaSpeed(b *testing.B) {
	limits := notebook.DefaultLimits
	limits.Time = time.Minute
	r := newRunner(b, Config{Limits: limits})
	for _, name := range []string{"fib", "loop", "concat", "gmatch"} {
		b.Run(name, func(b *testing.B) {
			var here, there []time.Duration
			for b.Loop() {
				var shown bytes.Buffer
				start := time.Now()
				plainLua(b, &shown, luaWork[name])
				here = append(here, time.Since(start))
				r.rested()
				start = time.Now()
				res, _, err := r.run(context.Background(), strictJob(limits, luaWork[name]))
				there = append(there, time.Since(start))
				if err != nil || res.Verdict != notebook.OK || res.Output != shown.String() {
					b.Fatalf("%v %q %q, here %q: %v", res.Verdict, res.Output, res.Error, shown.String(), err)
				}
			}
			slices.Sort(here)
			slices.Sort(there)
			b.ReportMetric(float64(there[len(there)/2])/float64(here[len(here)/2]), "x")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// plainLua runs a program in this process, with all that the engine has and no
// context to look at.
func plainLua(b *testing.B, out io.Writer, source string) {
	b.Helper()
	L := lua.NewState(lua.Options{RegistrySize: 1 << 10, RegistryMaxSize: 1 << 20, RegistryGrowStep: 1 << 12})
	defer L.Close()
	L.SetGlobal("print", L.NewFunction(func(L *lua.LState) int {
		fmt.Fprintln(out, L.ToStringMeta(L.Get(1)))
		return 0
	}))
	if err := L.DoString(source); err != nil {
		b.Fatal(err)
	}
}
