package exec

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"noted/notebook"
)

// TestCasesOfGuests are the numbered things that must not happen, of
// docs/security.md, in Python and JavaScript, each with what works beside it.
// Those of modules are [TestWasmCases].
func TestCasesOfGuests(t *testing.T) {
	ofTheWorker(t)
	r := newRunner(t, Config{Limits: caseLimits})
	run := func(t *testing.T, language, source string, time time.Duration) notebook.Result {
		t.Helper()
		limits := caseLimits
		limits.Time, limits.Source = time, 1<<20
		j := strictJob(limits, source)
		j.language = language
		warmed(t, r, j)
		res, pid := watched(t, r, j)
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the worker %d is still there: %v", pid, err)
		}
		if strings.Contains(res.Output, "escaped") {
			t.Errorf("it put out %q", res.Output)
		}
		return res
	}
	ends := func(t *testing.T, language, source string, verdict notebook.Verdict, why string) notebook.Result {
		t.Helper()
		limit := casePatience
		if verdict == notebook.Timeout {
			limit = caseLimits.Time
		}
		res := run(t, language, source, limit)
		if res.Verdict != verdict || !strings.Contains(res.Error, why) {
			t.Errorf("%.80q ended as %v with %.100q %q", source, res.Verdict, res.Output, res.Error)
		}
		return res
	}
	works := func(t *testing.T, language, source, output string) {
		t.Helper()
		if res := run(t, language, source, casePatience); res.Verdict != notebook.OK || res.Output != output {
			t.Errorf("the control %.80q: %v %q %q", source, res.Verdict, res.Output, res.Error)
		}
	}

	t.Run("05 a loop without end in JavaScript", func(t *testing.T) {
		ends(t, "javascript", `while (true) {}`, notebook.Timeout, "")
		works(t, "javascript", `let n = 0; while (n < 1e5) n++; n`, "100000\n")
	})
	t.Run("06 a loop that catches its own end", func(t *testing.T) {
		ends(t, "javascript", `try { for (;;) {} } catch (e) {} print("escaped")`, notebook.Timeout, "")
		if res := run(t, "javascript", `try { null.x } catch (e) {} print("caught")`, casePatience); res.Output != "caught\n" {
			t.Errorf("the control: %v %q", res.Verdict, res.Output)
		}
	})
	t.Run("07 an expression that goes back and back", func(t *testing.T) {
		ends(t, "javascript", `/(a+)+b/.exec("a".repeat(40))`, notebook.Timeout, "")
		works(t, "javascript", `/(a+)+b/.exec("aaab")[0]`, "aaab\n")
	})
	t.Run("08 a loop without end in Python", func(t *testing.T) {
		ends(t, "python", "while True: pass", notebook.Timeout, "")
		works(t, "python", "n = 0\nwhile n < 100000: n += 1\nn", "100000\n")
	})
	t.Run("09 a sleep is not waited for by the host", func(t *testing.T) {
		start := time.Now()
		works(t, "python", "import time\ntry: time.sleep(3600)\nexcept NotImplementedError: print('refused')", "refused\n")
		if took := time.Since(start); took > casePatience && !raceDetector {
			t.Errorf("it took %v", took)
		}
	})
	t.Run("31 one allocation of two gigabytes", func(t *testing.T) {
		before := resident(t)
		ends(t, "python", "len('x' * 2_000_000_000)", notebook.Memory, "")
		ends(t, "javascript", "new Uint8Array(2e9).length", notebook.Memory, "")
		if grown := resident(t) - before; grown > attackMemory && !raceDetector {
			t.Errorf("it cost this process %d MiB", grown>>20)
		}
		works(t, "python", "len('x' * 10_000_000)", "10000000\n")
		works(t, "javascript", "new Uint8Array(1e7).length", "10000000\n")
	})
	t.Run("32 memory that doubles", func(t *testing.T) {
		for language, source := range map[string]string{"python": "print('so far')\ns = 'x'\nwhile True: s += s", "javascript": `print("so far"); let s = "x"; for (;;) s += s`} {
			if res := ends(t, language, source, notebook.Memory, ""); res.Output != "so far\n" {
				t.Errorf("%s: it keeps %q", language, res.Output)
			}
		}
	})
	t.Run("43 a source that nests", func(t *testing.T) {
		for language, open := range map[string]string{"python": "([{", "javascript": "([{"} {
			for _, c := range open {
				res := run(t, language, strings.Repeat(string(c), 200_000), casePatience)
				if res.Verdict != notebook.Failed && res.Verdict != notebook.Memory {
					t.Errorf("%s: %c ends as %v", language, c, res.Verdict)
				}
			}
		}
		works(t, "python", strings.Repeat("(", 20)+"1"+strings.Repeat(")", 20), "1\n")
		works(t, "javascript", strings.Repeat("(", 50)+"1"+strings.Repeat(")", 50), "1\n")
	})
	t.Run("53 what other JavaScript has and this has not", func(t *testing.T) {
		for _, name := range []string{"process", "require", "fetch", "Deno", "std", "os", "setTimeout", "eval", "Function", "WebAssembly", "SharedArrayBuffer", "__loadScript"} {
			works(t, "javascript", "typeof "+name, "undefined\n")
		}
		ends(t, "javascript", `import("std")`, notebook.Failed, "there is nothing to import here")
		ends(t, "javascript", `(() => {}).constructor("return this")()`, notebook.Failed, "TypeError: not a function")
		works(t, "javascript", "typeof Map", "function\n")
	})
	t.Run("54 files that Python does not see", func(t *testing.T) {
		ends(t, "python", "import os\nos.listdir('/')", notebook.Failed, "FileNotFoundError")
		ends(t, "python", "open('/etc/hostname')", notebook.Failed, "FileNotFoundError")
		works(t, "python", "import os\nos.listdir('/usr/local/lib')", "['python312.zip', 'python3.12']\n")
	})
	t.Run("58 an environment that is not there", func(t *testing.T) {
		t.Setenv("NOTED_TEST_SECRET", "the secret")
		works(t, "python", "import os\nprint(os.getenv('NOTED_TEST_SECRET'), dict(os.environ))", "None {}\n")
		works(t, "wasm", module("memory 1 - func run -> i32 -> i32 i32.const 0 i32.const 4 call environ_sizes_get i32.const 0 i32.load"), "0\n0\n")
	})
	t.Run("69 the host's own words", func(t *testing.T) {
		for _, words := range []string{"context deadline exceeded", "module closed with context deadline exceeded", "timeout"} {
			ends(t, "python", "raise TimeoutError('"+words+"')", notebook.Failed, words)
			ends(t, "javascript", `throw new Error("`+words+`")`, notebook.Failed, words)
		}
	})
	t.Run("70 the status of a deadline or of a cancel", func(t *testing.T) {
		ends(t, "python", "import os\nos._exit(0xefffffff - (1 << 32))", notebook.Failed, "the fence ended itself with status 4026531839")
		works(t, "python", "import os\nprint('so far', flush=True)\nos._exit(0)", "so far\n")
	})
	t.Run("71 an end near the deadline that is not the deadline", func(t *testing.T) {
		ends(t, "python", "import time\nwhile time.monotonic() < 100: pass\nraise ValueError('mine')", notebook.Failed, "ValueError: mine")
	})
	t.Run("72 a frame in the output", func(t *testing.T) {
		const frame = "\x00\x00\x00\x02\x00\x00"
		if res := ends(t, "python", "import os\nfor fd in range(64):\n    try: os.write(fd, b'\\0\\0\\0\\2\\0\\0')\n    except OSError: pass\nraise Exception('mine')", notebook.Failed, "mine"); res.Output != frame {
			t.Errorf("%q", res.Output)
		}
		if res := ends(t, "wasm", module(`memory 1 - func run print 1 "\x00\x00\x00\x02\x00\x00" print 3 "\x00\x00\x00\x02\x00\x00" unreachable`), notebook.Failed, "unreachable"); res.Output != frame {
			t.Errorf("%q", res.Output)
		}
	})
}
