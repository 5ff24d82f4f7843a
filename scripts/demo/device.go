package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// device is one home with its daemon, driven through the command line alone.
type device struct {
	name, home, pin, binary string
	daemon                  *osexec.Cmd
	layers                  []string
}

// What the demo reads of noted's --json answers.
type (
	envelope struct {
		OK    bool            `json:"ok"`
		Data  json.RawMessage `json:"data"`
		Error struct {
			Code, Message, Hint string
		} `json:"error"`
	}
	page struct {
		Title  string  `json:"title"`
		Bytes  int     `json:"bytes"`
		Body   string  `json:"body"`
		Fences []fence `json:"fences"`
	}
	fence struct {
		Ref, Code, Hash, Standing, Decision string
		Number                              int
		page                                string
	}
	run struct {
		Number   uint64
		Title    string
		Standing string
		State    string
		Reason   string
		Result   *struct {
			Verdict string
			Rung    string
			Output  string
			TookUS  int64 `json:"took_us"`
			Limits  struct {
				TimeMS int64 `json:"time_ms"`
			}
		}
	}
	ledgerReport struct {
		Records int
		Head    string
		Problem string
	}
)

func (d *device) command(ctx context.Context, args ...string) *osexec.Cmd {
	cmd := osexec.CommandContext(ctx, d.binary, append([]string{"--home", d.home, "--json"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.home}
	return cmd
}

// secret makes a file descriptor that holds text, for the child's fd 3 and up.
func secret(cmd *osexec.Cmd, text string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, r)
	_, err = w.WriteString(text)
	return errors.Join(err, w.Close())
}

func closeExtra(cmd *osexec.Cmd) {
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
}

// noted runs one command with its PIN on fd 3 and expects an exit code.
func (d *device) noted(ctx context.Context, exit int, stdin string, args ...string) (json.RawMessage, error) {
	e, err := d.call(ctx, exit, stdin, args...)
	return e.Data, err
}

func (d *device) call(ctx context.Context, exit int, stdin string, args ...string) (envelope, error) {
	cmd := d.command(ctx, args...)
	if err := secret(cmd, d.pin); err != nil {
		return envelope{}, err
	}
	defer closeExtra(cmd)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != exit {
		return envelope{}, fmt.Errorf("on the %s, noted %s: exit code %d where %d was expected\n%s%s", d.name, strings.Join(args, " "), code, exit, out.Bytes(), errs.Bytes())
	} else if code == 0 && err != nil {
		return envelope{}, err
	}
	var e envelope
	if err := json.Unmarshal(out.Bytes(), &e); err != nil {
		return e, fmt.Errorf("on the %s, noted %s wrote no envelope: %w\n%s", d.name, strings.Join(args, " "), err, out.Bytes())
	}
	return e, nil
}

// refused runs a command that must be refused and returns the reason.
func (d *device) refused(ctx context.Context, exit int, args ...string) (string, error) {
	e, err := d.call(ctx, exit, "", args...)
	if err == nil && (e.OK || e.Error.Message == "" || e.Error.Hint == "") {
		err = fmt.Errorf("on the %s, noted %s was not refused with a reason and a next step", d.name, strings.Join(args, " "))
	}
	return e.Error.Message, err
}

// ask runs a command and reads its data.
func ask[T any](ctx context.Context, d *device, args ...string) (T, error) {
	var v T
	data, err := d.noted(ctx, 0, "", args...)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	return v, err
}

// start founds the home and starts its daemon on loopback.
func (d *device) start(ctx context.Context) error {
	if _, err := d.noted(ctx, 0, "", "init", "--name", d.name, "--pin-fd", "3"); err != nil {
		return err
	}
	d.daemon = d.command(context.WithoutCancel(ctx), "daemon", "run", "--listen", "/ip4/127.0.0.1/udp/0/quic-v1", "--listen", "/ip4/127.0.0.1/tcp/0")
	log, err := os.Create(filepath.Join(d.home, "daemon.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	d.daemon.Stderr = log
	out, err := d.daemon.StdoutPipe()
	if err != nil {
		return err
	}
	if err := d.daemon.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("the daemon of the %s did not come up: %s", d.name, said)
	}
	status, err := ask[struct{ Layers []string }](ctx, d, "status")
	d.layers = status.Layers
	return err
}

func (d *device) pid() int { return d.daemon.Process.Pid }

func (d *device) stop(ctx context.Context) error {
	if _, err := d.noted(ctx, 0, "", "daemon", "stop"); err != nil {
		return err
	}
	return d.daemon.Wait()
}

// kill ends the daemon of a demo that failed.
func (d *device) kill() {
	if d.daemon.ProcessState == nil {
		d.daemon.Process.Kill()
		d.daemon.Wait()
	}
}

// types writes a page as the person: they vouch for it with their PIN.
func (d *device) types(ctx context.Context, title, body string) error {
	if _, err := ask[page](ctx, d, "page", "show", title); err != nil {
		if _, err := d.noted(ctx, 0, "", "page", "new", title); err != nil {
			return err
		}
	}
	_, err := d.noted(ctx, 0, body, "page", "put", title, "--as", "typed", "--pin-fd", "3")
	return err
}

// await waits until a page is as it should be.
func (d *device) await(ctx context.Context, title string, ok func(page) bool) (page, error) {
	deadline := time.Now().Add(10 * time.Second)
	for {
		p, err := ask[page](ctx, d, "page", "show", title)
		if err == nil && ok(p) {
			return p, nil
		}
		if time.Now().After(deadline) {
			return p, fmt.Errorf("the page %s on the %s is not what was expected after 10 s: %+v, %v", title, d.name, p, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (d *device) fence(ctx context.Context, title string, n int) (fence, error) {
	p, err := ask[page](ctx, d, "page", "show", title)
	if err != nil {
		return fence{}, err
	}
	if len(p.Fences) < n {
		return fence{}, fmt.Errorf("the page %s on the %s has %d fences", title, d.name, len(p.Fences))
	}
	f := p.Fences[n-1]
	f.page = title
	return f, nil
}

func (d *device) run(ctx context.Context, f fence) (run, error) { return d.ends(ctx, f, 0) }

// ends runs a fence that was looked at, and expects an exit code.
func (d *device) ends(ctx context.Context, f fence, exit int) (run, error) {
	var r run
	data, err := d.noted(ctx, exit, "", "fence", "run", f.page+"#"+f.Ref, "--shown", f.Hash)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && r.Result == nil {
		err = fmt.Errorf("the run of %s#%s has no result", f.page, f.Ref)
	}
	return r, err
}

func (d *device) propose(ctx context.Context, f fence) (string, error) {
	p, err := ask[struct{ Digest string }](ctx, d, "fence", "approve", f.page+"#"+f.Ref, "--propose")
	return p.Digest, err
}

func (d *device) approve(ctx context.Context, f fence, digest string) error {
	_, err := d.noted(ctx, 0, "", "fence", "approve", f.page+"#"+f.Ref, "--digest", digest, "--pin-fd", "3")
	return err
}

func (d *device) ledger(ctx context.Context) ([]run, ledgerReport, error) {
	runs, err := ask[[]run](ctx, d, "run", "list")
	if err != nil {
		return nil, ledgerReport{}, err
	}
	report, err := ask[ledgerReport](ctx, d, "run", "verify")
	return runs, report, err
}

// busyWorkers counts the children of a daemon that have used the processor for a
// tenth of a second: a spare that waits has not.
func busyWorkers(daemon int) int {
	busy := 0
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, found := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest)
		if !found || len(fields) < 13 || fields[1] != strconv.Itoa(daemon) {
			continue
		}
		user, _ := strconv.Atoi(fields[11])
		if user > 10 { // hundredths of a second
			busy++
		}
	}
	return busy
}
