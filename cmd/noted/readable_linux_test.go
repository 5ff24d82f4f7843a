package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	osexec "os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"noted/daemon/daemontest"
	"noted/notebook"
	"noted/rpc"
)

// noise are fences of each language that put out what nobody could read: every
// byte there is, escape sequences, C1 controls, characters that turn the line
// around, delimiters of fences, HTML, one line of some hundred thousand bytes, and
// a last line that does not end. Each has one that fails with such words.
var noise = map[string]struct{ prints, fails string }{
	"lua": {
		`local all = {} for i = 0, 255 do all[#all + 1] = string.char(i) end print(table.concat(all))
print("\27[2J\27]0;owned\7\27]8;;http://evil\27\\click\27]8;;\27\\\r\8\127")
print("\194\155 31m \194\133\226\128\174 turned \226\129\166\226\128\168\243\160\129\129\239\187\191")
print(string.char(96):rep(3) .. "lua\nos.exit()\n" .. string.char(96):rep(17) .. "\n~~~~~~\n<script>alert(1)</script> </pre>|[x](javascript:1)\n> - # ")
print("… 5 bytes left out …\n[… 5 bytes are not here …]")
print(("y"):rep(3e5) .. string.char(96):rep(23) .. "\n\27[0m the last")`,
		`error("\27[2J\255\0\226\128\174 no\n\194\155 way")`,
	},
	"sh": {
		`printf '` + everyByte() + `\n'
printf '\033[2J\033]0;owned\007\033]8;;http://evil\033\\click\r\010\177\n'
printf '\302\233 31m \302\205\342\200\256 turned \342\201\246\342\200\250\357\273\277\n'
printf '%s\n' '` + "```sh\nexit\n`````````````````\n" + `~~~~~~' '<script>alert(1)</script> </pre>|[x](javascript:1)' '… 5 bytes left out …'
printf '%300000s' y
printf '` + strings.Repeat("`", 23) + `\n\033[0m the last\n'`,
		`x=$'\e[2J\xff no' ; "$x"`,
	},
	"python": {
		`import sys
out = sys.stdout.buffer
out.write(bytes(range(256)))
out.write(b"\n\x1b[2J\x1b]0;owned\x07\x1b]8;;http://evil\x1b\\click\r\b\x7f\n")
out.write("\x9b 31m \x85\u202e turned \u2066\u2028\U000e0041\ufeff\n".encode())
out.write(b"` + "```python\\nexit()\\n`````````````````" + `\n~~~~~~\n<script>alert(1)</script> </pre>|[x](javascript:1)\n")
out.write("… 5 bytes left out …\n".encode())
out.write(b"y" * 300000 + b"` + strings.Repeat("`", 23) + `" + b"\n\x1b[0m the last")`,
		`raise ValueError("\x1b[2J\x00\u202e no\n\x9b way\udc80")`,
	},
	"javascript": {
		`let all = ""; for (let i = 0; i < 256; i++) all += String.fromCharCode(i)
print(all + "\ud800\x1b[2J\x1b]0;owned\x07\r\b\x7f")
print("\x9b 31m \x85\u202e turned \u2066\u2028\ufeff")
print("` + "```js\\nexit()\\n`````````````````" + `\n~~~~~~\n<script>alert(1)</script> </pre>|[x](javascript:1)")
print("… 5 bytes left out …")
print("y".repeat(300000) + "` + strings.Repeat("`", 23) + `" + "\n\x1b[0m the last")`,
		`throw new Error("\x1b[2J\0\u202e no\n\x9b way\ud800")`,
	},
}

// everyByte is every byte as printf takes it.
func everyByte() string {
	var b strings.Builder
	for i := range 256 {
		fmt.Fprintf(&b, `\%03o`, i)
	}
	return b.String()
}

// reader is a person, and an agent of theirs, who look with the commands of the
// program at a device of a story.
type reader struct {
	*daemontest.Hand
	t testing.TB
}

// at is the person at a device, whose daemon answers the commands until the test ends.
func at(t *testing.T, d *daemontest.Device) *reader {
	t.Helper()
	door, err := rpc.NewServer(opener{d.Daemon}, rpc.ServerConfig{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	socket, err := rpc.Listen(d.Home.Socket())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- door.Serve(ctx, socket) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &reader{d.Owner(), t}
}

func (r *reader) env() []string {
	return []string{"NOTED_HOME=" + r.Home.Data, "XDG_RUNTIME_DIR=/nonexistent", "TERM=dumb", "GORACE=atexit_sleep_ms=10"}
}

// looks is what a command writes on stdout, whatever its exit code.
func (r *reader) looks(args ...string) string {
	r.t.Helper()
	cmd := osexec.CommandContext(r.t.Context(), "/proc/self/exe", args...)
	var out, errs bytes.Buffer
	cmd.Args[0], cmd.Env, cmd.Stdout, cmd.Stderr = "noted", r.env(), &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		r.t.Fatal(err)
	}
	r.plain(fmt.Sprintf("what noted %q says", args), errs.String())
	return out.String()
}

// plain fails the test unless text is what a terminal shows and does not obey.
func (r *reader) plain(what, text string) {
	r.t.Helper()
	if i := strings.IndexFunc(text, func(c rune) bool {
		return c != '\n' && c != '\t' && !unicode.IsGraphic(c) || c == unicode.ReplacementChar
	}); i >= 0 {
		r.t.Errorf("%s has, at byte %d, what nobody can read: %q", what, i, text[max(0, i-40):min(len(text), i+40)])
	} else if notebook.Escape(text) != text {
		r.t.Errorf("%s has what does not show as what it is", what)
	}
}

// reads reads the data of a JSON envelope that has to be plain, too.
func reads[T any](r *reader, what, out string) (data T) {
	r.t.Helper()
	line, _, _ := strings.Cut(out, "\n")
	r.plain(what, line)
	var e struct {
		Data  T
		Error any
	}
	if err := json.Unmarshal([]byte(line), &e); err != nil || e.Error != nil {
		r.t.Fatalf("%s is no answer: %v: %.200q", what, err, line)
	}
	return e.Data
}

// shown is what a note of page show, or run show, has as the output: the code of
// the one fence that is in it.
func (r *reader) shown(what, out, prefix string) string {
	r.t.Helper()
	var note strings.Builder
	for line := range strings.Lines(out) {
		if text, ok := strings.CutPrefix(line, prefix); ok {
			note.WriteString(text)
		}
	}
	text := note.String()
	if i := strings.Index(text, "```"); i >= 0 {
		text = text[i:]
	}
	fences, err := notebook.Fences(text)
	if err != nil || len(fences) != 1 || !fences[0].Closed() {
		r.t.Fatalf("%s has %d fences: %v\n%.300q", what, len(fences), err, text)
	}
	return fences[0].Part(text).Code
}

// watches hears what noted watch writes until it is stopped.
func (r *reader) watches(args ...string) (stop func() string) {
	ctx, cancel := context.WithCancel(context.Background())
	var out syncBuffer
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx, append([]string{"watch"}, args...), r.env(), strings.NewReader(""), &out, io.Discard)
	}()
	return func() string {
		cancel()
		select {
		case <-ended:
		case <-time.After(patience):
			r.t.Errorf("noted watch does not stop")
		}
		return out.String()
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// agent is an agent's program, which speaks with noted mcp.
type agent struct {
	t    testing.TB
	r    *reader
	in   io.WriteCloser
	out  *bufio.Reader
	next int
}

func (r *reader) agent(name string) *agent {
	r.t.Helper()
	r.Agent(name)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		var errs bytes.Buffer
		ended <- run(context.Background(), []string{"mcp", "--token-file", r.Home.AgentToken(name)}, r.env(), in, out, &errs)
		gone := fmt.Errorf("noted mcp has ended: %s", errs.String())
		_, _ = in.CloseWithError(gone), out.CloseWithError(gone)
	}()
	a := &agent{t: r.t, r: r, in: toServer, out: bufio.NewReader(fromServer)}
	r.t.Cleanup(func() {
		_ = toServer.Close()
		select {
		case <-ended:
		case <-time.After(patience):
			r.t.Error("noted mcp does not end with its client")
		}
	})
	a.asks("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "a", "version": "1"}})
	if _, err := io.WriteString(a.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		r.t.Fatal(err)
	}
	return a
}

func (a *agent) asks(method string, params any) json.RawMessage {
	a.t.Helper()
	a.next++
	request, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": a.next, "method": method, "params": params})
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.in.Write(append(request, '\n')); err != nil {
		a.t.Fatal(err)
	}
	line, err := a.out.ReadString('\n')
	if err != nil {
		a.t.Fatal(err)
	}
	if !utf8.ValidString(line) || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl) {
		a.t.Errorf("noted mcp answers %s with what is no text", method)
	}
	var answer struct {
		ID     int
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal([]byte(line), &answer); err != nil || answer.ID != a.next || answer.Error != nil {
		a.t.Fatalf("noted mcp answers %s: %v: %.300q", method, err, line)
	}
	return answer.Result
}

// agentRun is a run as the tools have it.
type agentRun struct {
	Number  uint64
	Verdict string
	Output  string
	Cut     bool
	Dropped int64 `json:"dropped_bytes"`
	Error   string
}

// calls calls a tool; what it answers twice has to be the same.
func calls[T any](a *agent, tool string, args map[string]any) (out T) {
	a.t.Helper()
	var res struct {
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
		IsError           bool
	}
	if err := json.Unmarshal(a.asks("tools/call", map[string]any{"name": tool, "arguments": args}), &res); err != nil || len(res.Content) != 1 || res.IsError {
		a.t.Fatalf("%s: %v %+v", tool, err, res)
	}
	var twice [2]any
	for i, text := range []string{res.Content[0].Text, string(res.StructuredContent)} {
		if err := json.Unmarshal([]byte(text), &twice[i]); err != nil {
			a.t.Fatal(err)
		}
	}
	if fmt.Sprint(twice[0]) != fmt.Sprint(twice[1]) {
		a.t.Errorf("%s answers two things", tool)
	}
	if err := json.Unmarshal([]byte(res.Content[0].Text), &out); err != nil {
		a.t.Fatal(err)
	}
	return out
}

// TestCase36NoiseIsReadableEverywhere: what a fence of each language puts out, whatever
// it is, is text wherever its result is read: in the commands of the person and
// their JSON, while it comes, by the tools of an agent, and on another device.
// Each says the same number of bytes that were not kept, and the page stays as it is.
func TestCase36NoiseIsReadableEverywhere(t *testing.T) {
	w := daemontest.Loopback(t, "laptop", "phone")
	laptop := w.Device("laptop")
	laptop.Stops()
	laptop.Exec.Engines = daemontest.Engines(t)
	laptop.Starts()
	w.Pair("laptop", "phone")
	r, phone := at(t, laptop), at(t, w.Device("phone"))
	scribe := r.agent("scribe")

	bodies := map[string]string{}
	for language, n := range noise {
		const fence = "~~~~~~~~~~\n"
		bodies[language] = "before\n\n" + strings.TrimSuffix(fence, "\n") + language + "\n" + n.prints + "\n" + fence +
			"\nbetween\n\n" + strings.TrimSuffix(fence, "\n") + language + "\n" + n.fails + "\n" + fence + "\nafter\n"
		r.Types(language, bodies[language])
	}
	w.Settle()
	asText, asJSON := r.watches("--kind", "output"), r.watches("--json")
	told := r.Watches()
	var printed, byAgent []*notebook.RunInfo
	for _, language := range slices.Sorted(maps.Keys(noise)) {
		for n := 1; n <= 2; n++ {
			ref := fmt.Sprintf("%s#%d", language, n)
			r.runsOnATerminal(ref)
			r.looks("fence", "run", ref)
			kept := r.Fence(language, n).Last
			if want := []notebook.Verdict{notebook.OK, notebook.Failed}[n-1]; kept == nil || kept.Result.Verdict != want {
				t.Fatalf("%s: %+v", ref, kept)
			}
			r.readsOnTheLaptop(ref, kept)
			if n == 1 {
				printed = append(printed, kept)
			}
			byAgent = append(byAgent, r.readsAsAnAgent(scribe, ref, kept))
		}
	}
	for _, args := range [][]string{{"run", "list"}, {"fence", "list"}} {
		r.plain(fmt.Sprintf("noted %q", args), r.looks(args...))
		reads[json.RawMessage](r, fmt.Sprintf("noted %q --json", args), r.looks(append(args, "--json")...))
	}
	for language, body := range bodies {
		r.Sees(language, body)
		if raw := r.looks("page", "show", "--raw", language); raw != body {
			t.Errorf("%s: the body is another one", language)
		}
	}
	w.Settle()
	phone.readsElsewhere(r.ID, byAgent, bodies)

	for _, run := range printed {
		w.Eventually("the watcher hears all of it", func() bool {
			said, dropped := heard(told.All(), run.Number)
			return said+dropped == int64(len(run.Result.Output))+run.Result.Dropped
		})
	}
	r.plain("noted watch", asText())
	for line := range strings.Lines(asJSON()) {
		reads[eventJSON](r, "an event", line)
	}
}

// heard is how many bytes of a run's output a watcher was told, and how many it
// was told that it missed.
func heard(events []notebook.Event, number uint64) (said, dropped int64) {
	for _, e := range events {
		if e.Kind == "output" && e.Run.Number == number {
			said, dropped = said+int64(len(e.Output)), dropped+e.Dropped
		}
	}
	return said, dropped
}

// runsOnATerminal runs a fence as a person does, who sees its output as it comes.
func (r *reader) runsOnATerminal(ref string) {
	r.t.Helper()
	cmd := osexec.Command("/proc/self/exe", "fence", "run", ref)
	cmd.Args[0], cmd.Env = "noted", r.env()
	screen, err := converse(cmd, "")
	if _, exited := errors.AsType[*osexec.ExitError](err); err != nil && !exited {
		r.t.Fatal(err)
	}
	r.plain("the terminal with "+ref, screen)
	if strings.HasSuffix(ref, "#1") && (!strings.HasPrefix(screen, `\u{0}\u{1}`) || !strings.Contains(screen, `\u{1b}[0m the last`)) {
		r.t.Errorf("the terminal with %s has not both ends: %.100q … %q", ref, screen, screen[max(0, len(screen)-100):])
	}
}

// readsOnTheLaptop looks at a run with every command that shows it.
func (r *reader) readsOnTheLaptop(ref string, kept *notebook.RunInfo) {
	r.t.Helper()
	page, number := strings.Split(ref, "#")[0], fmt.Sprint(kept.Number)
	res := kept.Result
	if n := int64(len(res.Output)) + res.Dropped; res.Verdict == notebook.OK && (n < 300_000 || res.Dropped == 0 || !strings.Contains(res.Output, "\x00") || !strings.HasSuffix(strings.TrimSpace(res.Output), "the last")) {
		r.t.Errorf("%s: %d kept of %d: %.50q … %q", ref, len(res.Output), n, res.Output, res.Output[max(0, len(res.Output)-50):])
	}
	if res.Verdict == notebook.Failed && !strings.Contains(res.Error, "[2J") {
		r.t.Errorf("%s fails with %q", ref, res.Error)
	}
	looks := [][]string{{"run", "show", number}, {"page", "show", page}}
	if res.Verdict == notebook.OK {
		looks = append(looks, []string{"fence", "show", ref}, []string{"fence", "why", ref}, []string{"run", "replay", number})
	}
	for _, args := range looks {
		what := fmt.Sprintf("noted %q", args)
		r.plain(what, r.looks(args...))
		out := r.looks(append(args, "--json")...)
		r.plain(what+" --json", out)
		if !json.Valid([]byte(out)) {
			r.t.Errorf("%s --json is no JSON", what)
		}
	}

	same := func(what string, j *runJSON) {
		r.t.Helper()
		if j == nil || j.Number != kept.Number || j.Result == nil || j.Result.Output != res.Output || j.Result.Dropped != res.Dropped || j.Result.Head != res.Head || j.Result.Error != res.Error {
			r.t.Errorf("%s of %s is another result", what, ref)
		}
	}
	run := reads[runJSON](r, "run show", r.looks("run", "show", number, "--json"))
	same("run show", &run)
	same("fence show", reads[fenceJSON](r, "fence show", r.looks("fence", "show", ref, "--json")).Last)
	view := reads[pageViewJSON](r, "page show", r.looks("page", "show", page, "--json"))
	f := r.Fence(page, int(ref[len(ref)-1]-'0'))
	same("page show", view.Fences[f.Number-1].Last)
	if view.Body != r.Body(page) {
		r.t.Errorf("page show of %s has another body", page)
	}
	if res.Verdict != notebook.OK {
		return
	}

	// As text: the number, and one fence with the output, which nothing in it ends.
	dropped := fmt.Sprintf("%d bytes", res.Dropped)
	text := r.looks("page", "show", page)
	if !strings.Contains(text, ", last ok, "+dropped+" of output left out\n") {
		r.t.Errorf("page show of %s does not say that %s are left out", page, dropped)
	}
	want := notebook.Escape(output(res))
	if !strings.HasSuffix(want, "\n") {
		want += "\n"
	}
	head, _, _ := strings.Cut(text, "between\n")
	if got := r.shown("page show", head, bar); got != want {
		r.t.Errorf("page show of %s shows other output", page)
	}
	text = r.looks("run", "show", number)
	if got := r.shown("run show", text, bar); got != want || !regexp.MustCompile("\nleft out +"+dropped+" of output\n").MatchString(text) {
		r.t.Errorf("run show of %s shows other output, or not that %s are left out", ref, dropped)
	}
}

// readsAsAnAgent has the agent run the fence, which is strict then, and look.
func (r *reader) readsAsAnAgent(scribe *agent, ref string, kept *notebook.RunInfo) *notebook.RunInfo {
	r.t.Helper()
	page, _, _ := strings.Cut(ref, "#")
	f := r.Fence(page, int(ref[len(ref)-1]-'0'))
	ran := calls[agentRun](scribe, "fence_run", map[string]any{"page": page, "fence": f.ID.String(), "shown": f.Hash.String()})
	strict, err := r.Client.RunInfo(r.t.Context(), ran.Number)
	if err != nil {
		r.t.Fatal(err)
	}
	if ran.Verdict != kept.Result.Verdict.String() || ran.Dropped != kept.Result.Dropped || strict.Result.Output != kept.Result.Output || strict.Result.Rung != notebook.Strict {
		r.t.Errorf("%s: for the agent it is %s, %d bytes dropped, %+v", ref, ran.Verdict, ran.Dropped, strict.Result.Rung)
	}
	listed := calls[struct{ Fences []struct{ Last agentRun } }](scribe, "fence_list", map[string]any{"page": page}).Fences[f.Number-1].Last
	for what, got := range map[string]agentRun{"fence_run": ran, "fence_list": listed} {
		r.plain(what+" of "+ref, got.Output+got.Error)
		if got.Number != ran.Number || got.Dropped != kept.Result.Dropped {
			r.t.Errorf("%s of %s says that run %d dropped %d bytes", what, ref, got.Number, got.Dropped)
		}
		if kept.Result.Verdict == notebook.OK && (!got.Cut || !strings.HasPrefix(got.Output, notebook.Escape(kept.Result.Output[:100])) || !strings.HasSuffix(strings.TrimSpace(got.Output), `\u{1b}[0m the last`)) {
			r.t.Errorf("%s of %s has not both ends: %.100q … %q", what, ref, got.Output, got.Output[max(0, len(got.Output)-100):])
		}
	}
	return strict
}

// readsElsewhere looks at what came to another device: the same results, and no
// page that is another one.
func (r *reader) readsElsewhere(from notebook.DeviceID, runs []*notebook.RunInfo, bodies map[string]string) {
	r.t.Helper()
	came := map[notebook.FenceID]*notebook.Result{}
	for e, err := range r.Daemon.Missing(nil) {
		if err != nil {
			r.t.Fatal(err)
		}
		h, err := notebook.DecodeHeader(e.Header)
		if err != nil {
			r.t.Fatal(err)
		}
		if h.Kind != notebook.KindResult || h.Device != from {
			continue
		}
		res, err := notebook.DecodeResult(e.Body)
		if err != nil {
			r.t.Fatal(err)
		}
		came[res.Fence] = res
	}
	for _, run := range runs {
		got, want := came[run.Fence], run.Result
		if got == nil || got.Output != want.Output || got.Dropped != want.Dropped || got.Head != want.Head || got.Error != want.Error || !utf8.ValidString(got.Output+got.Error) {
			r.t.Errorf("%s: what came to the phone is another result", run.Title)
		}
	}
	for language, body := range bodies {
		r.Sees(language, body)
		if n := len(r.Page(language).Fences); n != 2 {
			r.t.Errorf("the phone has %d fences on the page of %s", n, language)
		}
		for _, args := range [][]string{{"page", "show", language}, {"fence", "why", language + "#1"}} {
			r.plain(fmt.Sprintf("on the phone noted %q", args), r.looks(args...))
		}
	}
	// A fence of the laptop's runs there as it ran here.
	for n, verdict := range []notebook.Verdict{notebook.OK, notebook.Failed} {
		run := r.Runs("lua", n+1)
		here := came[run.Fence]
		if run.Result.Verdict != verdict || run.Result.Output != here.Output || run.Result.Dropped != here.Dropped || run.Result.Error != here.Error {
			r.t.Errorf("on the phone lua#%d ends otherwise", n+1)
		}
		for _, args := range [][]string{{"run", "show", fmt.Sprint(run.Number)}, {"page", "show", "lua"}} {
			r.plain(fmt.Sprintf("on the phone noted %q", args), r.looks(args...))
			reads[json.RawMessage](r, "its JSON", r.looks(append(args, "--json")...))
		}
	}
}
