// Command demo plays noted's main job on two real daemons over loopback: pair, sync, and a decision on every fence.
//
// Each step says on one line what it shows and what it saw; the first thing
// that is not seen ends it with exit code 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: demo PATH-OF-NOTED")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := play(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "demo: NOT SEEN:", err)
		os.Exit(1)
	}
	fmt.Println("demo: ok")
}

// saw prints a step. shown is what it is about, seen is what happened.
func saw(shown, seen string, args ...any) {
	fmt.Printf("%-58s %s\n", shown, fmt.Sprintf(seen, args...))
}

func play(ctx context.Context, binary string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "noted-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	laptop := &device{name: "laptop", home: filepath.Join(dir, "laptop"), pin: "2580", binary: binary}
	phone := &device{name: "phone", home: filepath.Join(dir, "phone"), pin: "1379", binary: binary}
	for _, d := range []*device{laptop, phone} {
		if err := d.start(ctx); err != nil {
			return err
		}
		defer d.kill()
		saw("A notebook is founded on the "+d.name, "daemon ready, pid %d, strict held by %s", d.pid(), strings.Join(d.layers, " "))
	}
	for _, step := range []func(context.Context, *device, *device) error{
		pairTwo, syncPage, runLocal, runForeign, refuseAndApprove, askAgain, killEndless, agentAndImport, outputStaysOutput, theLedger,
	} {
		if err := step(ctx, laptop, phone); err != nil {
			return err
		}
	}
	for _, d := range []*device{laptop, phone} {
		if err := d.stop(ctx); err != nil {
			return err
		}
	}
	saw("Both daemons are stopped", "nothing of them is left running")
	return nil
}

func pairTwo(ctx context.Context, laptop, phone *device) error {
	inviting, err := laptop.pair(ctx)
	if err != nil {
		return err
	}
	uri := inviting.invitation
	joining, err := phone.join(ctx, uri)
	if err != nil {
		return err
	}
	code, err := inviting.code()
	if err != nil {
		return err
	}
	same, err := joining.code()
	if err != nil {
		return err
	}
	if code != same || len(code) != 6 {
		return fmt.Errorf("the two screens show %q and %q", code, same)
	}
	saw("The laptop shows a QR code, the phone scans its URI", "both screens show %s", code)
	err = errors.Join(inviting.confirm(same), joining.confirm(code), joining.done(), inviting.done())
	if err != nil {
		return err
	}
	saw("The laptop confirms with its PIN", "paired; the first entries are acknowledged both ways")
	wrong, err := phone.refused(ctx, 4, "device", "join", uri, "--yes")
	if err != nil {
		return err
	}
	saw("The phone uses the invitation once more", "refused: %s", wrong)
	return nil
}

// fence texts that the demo types on the laptop.
const (
	sum     = "```lua\nreturn 6 * 7\n```\n"
	dated   = "```lua {wants=\"clock\"}\nreturn \"it is \" .. clock.year\n```\n"
	endless = "```lua\nwhile true do end\n```\n"
)

func syncPage(ctx context.Context, laptop, phone *device) error {
	if err := laptop.types(ctx, "Garden", "Beds and numbers.\n\n"+sum+"\n"+dated); err != nil {
		return err
	}
	begun := time.Now()
	page, err := phone.await(ctx, "Garden", func(p page) bool { return len(p.Fences) == 2 })
	if err != nil {
		return err
	}
	saw("A page is written on the laptop", "the phone has it after %d ms, %d bytes, %d fences", time.Since(begun).Milliseconds(), page.Bytes, len(page.Fences))
	return nil
}

func runLocal(ctx context.Context, laptop, _ *device) error {
	for n, want := range []string{"42", fmt.Sprintf("it is %d", time.Now().UTC().Year())} {
		f, err := laptop.fence(ctx, "Garden", n+1)
		if err != nil {
			return err
		}
		run, err := laptop.run(ctx, f)
		if err != nil {
			return err
		}
		if f.Standing != "local" || run.Result.Rung != "granted" || strings.TrimSpace(run.Result.Output) != want {
			return fmt.Errorf("fence %d on the laptop: standing %s, rung %s, output %q", n+1, f.Standing, run.Result.Rung, run.Result.Output)
		}
		saw(fmt.Sprintf("The laptop runs its own fence %s", f.Ref), "standing %s, rung %s, output %q", f.Standing, run.Result.Rung, want)
	}
	return nil
}

func runForeign(ctx context.Context, _, phone *device) error {
	f, err := phone.fence(ctx, "Garden", 1)
	if err != nil {
		return err
	}
	run, err := phone.run(ctx, f)
	if err != nil {
		return err
	}
	if f.Standing != "device:laptop" || run.Result.Rung != "strict" || strings.TrimSpace(run.Result.Output) != "42" {
		return fmt.Errorf("standing %s, rung %s, output %q", f.Standing, run.Result.Rung, run.Result.Output)
	}
	saw("The phone runs the same fence", "standing %s, only %s, output %q", f.Standing, run.Result.Rung, "42")
	return nil
}

func refuseAndApprove(ctx context.Context, _, phone *device) error {
	f, err := phone.fence(ctx, "Garden", 2)
	if err != nil {
		return err
	}
	reason, err := phone.refused(ctx, 4, "fence", "run", "Garden#2")
	if err != nil {
		return err
	}
	saw("The phone runs the fence that wants the clock", "refused: %s", reason)
	digest, err := phone.propose(ctx, f)
	if err != nil {
		return err
	}
	if err := phone.approve(ctx, f, digest); err != nil {
		return err
	}
	run, err := phone.run(ctx, f)
	if err != nil {
		return err
	}
	if run.Result.Rung != "granted" {
		return fmt.Errorf("approved, but it ran %s", run.Result.Rung)
	}
	saw("The person on the phone approves exactly those bytes", "digest %.12s, rung %s, output %q", digest, run.Result.Rung, strings.TrimSpace(run.Result.Output))
	return nil
}

func askAgain(ctx context.Context, laptop, phone *device) error {
	changed := strings.Replace(dated, "it is ", "it's ", 1)
	if err := laptop.types(ctx, "Garden", "Beds and numbers.\n\n"+sum+"\n"+changed); err != nil {
		return err
	}
	_, err := phone.await(ctx, "Garden", func(p page) bool { return len(p.Fences) == 2 && strings.Contains(p.Fences[1].Code, "it's") })
	if err != nil {
		return err
	}
	reason, err := phone.refused(ctx, 4, "fence", "run", "Garden#2")
	if err != nil {
		return err
	}
	saw("The laptop changes the text by one word", "the phone asks again: %s", reason)
	return nil
}

func killEndless(ctx context.Context, laptop, phone *device) error {
	if err := laptop.types(ctx, "Loop", endless); err != nil {
		return err
	}
	if _, err := phone.await(ctx, "Loop", func(p page) bool { return len(p.Fences) == 1 }); err != nil {
		return err
	}
	f, err := phone.fence(ctx, "Loop", 1)
	if err != nil {
		return err
	}
	run, err := phone.ends(ctx, f, 5)
	if err != nil {
		return err
	}
	if run.Result.Verdict != "timeout" {
		return fmt.Errorf("the endless fence ended with %s", run.Result.Verdict)
	}
	if n := busyWorkers(phone.pid()); n != 0 {
		return fmt.Errorf("%d workers are busy after the answer", n)
	}
	late := time.Duration(run.Result.TookUS)*time.Microsecond - time.Duration(run.Result.Limits.TimeMS)*time.Millisecond
	saw("The phone runs a fence that never ends", "%s, killed %.1f ms after its deadline of %d ms, nothing of it alive", run.Result.Verdict, float64(late.Microseconds())/1000, run.Result.Limits.TimeMS)
	return nil
}

func agentAndImport(ctx context.Context, laptop, _ *device) error {
	a, err := laptop.agent(ctx, "scribe")
	if err != nil {
		return err
	}
	defer a.close()
	if err := a.append(ctx, "Garden", "\n```lua\nreturn \"by an agent\"\n```\n"); err != nil {
		return err
	}
	f, err := laptop.fence(ctx, "Garden", 3)
	if err != nil {
		return err
	}
	if f.Standing != "agent:scribe" || f.Decision != "strict" {
		return fmt.Errorf("the agent's fence stands %s and would run %s", f.Standing, f.Decision)
	}
	tools, err := a.tools(ctx)
	if err != nil {
		return err
	}
	for _, tool := range tools {
		if strings.Contains(tool, "approve") && tool != "fence_request_approval" {
			return fmt.Errorf("the agent has a tool %s", tool)
		}
	}
	saw("An agent writes a fence over MCP", "standing %s, would run %s; its tools: %s", f.Standing, f.Decision, strings.Join(tools, " "))

	folder := filepath.Join(filepath.Dir(laptop.home), "vault")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "Old.md"), []byte("# Old\n\n"+sum), 0o600); err != nil {
		return err
	}
	if _, err := laptop.noted(ctx, 0, "", "import", "markdown", folder); err != nil {
		return err
	}
	if f, err = laptop.fence(ctx, "Old", 1); err != nil {
		return err
	}
	if f.Standing != "import:vault" || f.Decision != "strict" {
		return fmt.Errorf("the imported fence stands %s and would run %s", f.Standing, f.Decision)
	}
	saw("A folder of markdown is imported", "its fence: standing %s, would run %s", f.Standing, f.Decision)
	return nil
}

func outputStaysOutput(ctx context.Context, laptop, phone *device) error {
	const prints = "```lua\nprint(\"~~~lua\")\nprint(\"os.exit()\")\nprint(\"~~~\")\n```\n"
	if err := laptop.types(ctx, "Quine", prints); err != nil {
		return err
	}
	f, err := laptop.fence(ctx, "Quine", 1)
	if err != nil {
		return err
	}
	run, err := laptop.run(ctx, f)
	if err != nil {
		return err
	}
	for _, d := range []*device{laptop, phone} {
		p, err := d.await(ctx, "Quine", func(page) bool { return true })
		if err != nil {
			return err
		}
		if len(p.Fences) != 1 || p.Body != prints {
			return fmt.Errorf("the output changed the page on the %s", d.name)
		}
	}
	if !strings.Contains(run.Result.Output, "~~~lua") {
		return fmt.Errorf("the fence did not print a fence: %q", run.Result.Output)
	}
	saw("A fence prints a fence", "%d lines of output, and still 1 fence in the page, on both devices", strings.Count(strings.TrimSpace(run.Result.Output), "\n")+1)
	return nil
}

func theLedger(ctx context.Context, laptop, phone *device) error {
	for _, d := range []*device{laptop, phone} {
		runs, report, err := d.ledger(ctx)
		if err != nil {
			return err
		}
		if report.Problem != "" || report.Records == 0 {
			return fmt.Errorf("the ledger of the %s: %d records, %s", d.name, report.Records, report.Problem)
		}
		saw("The ledger of the "+d.name, "%d records, chain whole, head %.12s", report.Records, report.Head)
		for _, r := range runs {
			end := r.State
			if r.Result != nil {
				end = r.Result.Verdict + " at " + r.Result.Rung
			}
			fmt.Printf("    %3d  %-8s %-14s %-20s %s\n", r.Number, r.Title, r.Standing, end, r.Reason)
		}
	}
	return nil
}
