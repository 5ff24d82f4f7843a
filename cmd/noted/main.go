// Command noted keeps a notebook of markdown pages in sync between a person's devices and decides what every code fence in them may do.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"noted/daemon"
)

func main() {
	daemon.Child() // in a child of the daemon this never returns, and nothing of the rest happens
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program: what it is told, what it sees, where it writes,
// and the exit code that it answers.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := newApp(env, stdin, stdout, stderr)
	return a.finish(a.execute(ctx, args))
}
