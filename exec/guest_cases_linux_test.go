package exec

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"noted/notebook"
)

// TestCasesOfGuests are the numbered things that must not happen, of
// docs/security.md, in Python, JavaScript and modules of WebAssembly, each with
// what works beside it.
func TestCasesOfGuests(t *testing.T) {
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
	grow := func(pages int64) string { // -1 shows as 95, the last two digits of 2^32 - 1
		return moduleText{
			imports: []moduleImport{wasiWrite}, memory: onePage, locals: 2,
			body: slices.Concat(growing(pages), constant(100), []byte{opI32RemU}, printing(0)),
		}.fence()
	}
	exits := func(status int64) string {
		return prints("so far\n", slices.Concat(constant(status), calling(1)), wasiExit).fence()
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
		for language, source := range map[string]string{
			"python": "import time\ntry: time.sleep(3600)\nexcept OSError as e: print(e)",
			"wasm":   shows(wasi("poll_oneoff", 4), constant(1024), constant(2048), constant(1), constant(4096)).fence(),
		} {
			start := time.Now()
			if res := run(t, language, source, casePatience); res.Verdict != notebook.OK || time.Since(start) > casePatience && !raceDetector {
				t.Errorf("%s: %v %q after %v", language, res.Verdict, res.Error, time.Since(start))
			}
		}
		ends(t, "wasm", prints("", looping(slices.Concat(constant(1024), constant(2048), constant(1), constant(4096), calling(1), []byte{opDrop})), wasi("poll_oneoff", 4)).fence(), notebook.Timeout, "")
	})
	t.Run("10 a loop before the module has begun", func(t *testing.T) {
		ends(t, "wasm", moduleText{start: true, body: looping(nil)}.fence(), notebook.Timeout, "")
		works(t, "wasm", moduleText{imports: []moduleImport{wasiWrite}, memory: onePage, data: "begun\n", start: true, body: writing(1, 1024, 6)}.fence(), "begun\n")
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
	t.Run("33 a module that begins too large", func(t *testing.T) {
		ends(t, "wasm", moduleText{memory: []byte{0, 0x81, 0x20}}.fence(), notebook.Failed, "the module begins with more memory than the ")
		works(t, "wasm", prints("fits\n", nil).fence(), "fits\n")
	})
	t.Run("34 memory that is not there", func(t *testing.T) {
		for pages, output := range map[int64]string{16: "01\n", 300: "01\n", 4096: "95\n", 65535: "95\n"} {
			works(t, "wasm", grow(pages), output)
		}
	})
	t.Run("35 two memories, and a table of a billion", func(t *testing.T) {
		ends(t, "wasm", moduleText{memory: onePage}.twoMemories(), notebook.Failed, "the module is not one: ")
		ends(t, "wasm", moduleText{table: []byte{0, 0x80, 0x80, 0x80, 0x80, 0x04}}.fence(), notebook.Failed, "the module is not one: ")
		ends(t, "wasm", moduleText{table: []byte{0, 0x80, 0x80, 0x80, 0x20}}.fence(), notebook.Memory, "")
		works(t, "wasm", func() string { m := prints("fits\n", nil); m.table = []byte{0, 100}; return m.fence() }(), "fits\n")
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
		works(t, "wasm", sizes("environ_sizes_get"), "00\n")
		works(t, "wasm", sizes("args_sizes_get"), "01\n")
	})
	t.Run("69 the host's own words", func(t *testing.T) {
		for _, words := range []string{"context deadline exceeded", "module closed with context deadline exceeded", "timeout"} {
			ends(t, "python", "raise TimeoutError('"+words+"')", notebook.Failed, words)
			ends(t, "javascript", `throw new Error("`+words+`")`, notebook.Failed, words)
		}
	})
	t.Run("70 the status of a deadline or of a cancel", func(t *testing.T) {
		for status, says := range map[int64]string{0xefffffff: "4026531839", 0xffffffff: "4294967295", 1: "1", exitLate: "72", 137: "137"} {
			if res := ends(t, "wasm", exits(int64(int32(uint32(status)))), notebook.Failed, "the module ended itself with status "+says); res.Output != "so far\n" {
				t.Errorf("it keeps %q", res.Output)
			}
		}
		ends(t, "python", "import os\nos._exit(0xefffffff - (1 << 32))", notebook.Failed, "the fence ended itself with status 4026531839")
		works(t, "wasm", exits(0), "so far\n")
	})
	t.Run("71 an end near the deadline that is not the deadline", func(t *testing.T) {
		ends(t, "wasm", prints("", []byte{opUnreachable}).fence(), notebook.Failed, "unreachable")
		ends(t, "python", "import time\nwhile time.monotonic() < 100: pass\nraise ValueError('mine')", notebook.Failed, "ValueError: mine")
		ends(t, "wasm", prints("", slices.Concat(times(100000, nil), []byte{opUnreachable})).fence(), notebook.Failed, "unreachable")
	})
	t.Run("72 a frame in the output", func(t *testing.T) {
		const frame = "\x00\x00\x00\x02\x00\x00"
		if res := ends(t, "python", "import os\nfor fd in range(64):\n    try: os.write(fd, b'\\0\\0\\0\\2\\0\\0')\n    except OSError: pass\nraise Exception('mine')", notebook.Failed, "mine"); res.Output != frame {
			t.Errorf("%q", res.Output)
		}
		if res := ends(t, "wasm", prints(frame, slices.Concat(writing(3, 1024, 6), []byte{opUnreachable})).fence(), notebook.Failed, "unreachable"); res.Output != frame {
			t.Errorf("%q", res.Output)
		}
	})
}
