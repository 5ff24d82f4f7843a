package main

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"noted/daemon"
	"noted/mcp"
	"noted/notebook"
)

func (a *app) mcpCommand() *cobra.Command {
	var file string
	fd := -1
	cmd := verb("mcp", "serve the notebook to an agent as MCP tools on stdin and stdout", `
An agent starts this with the token that noted agent add made for it. It can
read pages, append to them, run fences at strict and ask for approvals. It cannot
approve, and what it writes stands as agent:NAME.`, func(ctx context.Context, _ []string) error {
		if (file == "") == (fd < 0) {
			return notebook.Errorf(notebook.CodeInvalid, "an agent comes with its own token").
				With("noted agent add NAME, then --token-file FILE or --token-fd N")
		}
		home, err := a.paths()
		if err != nil {
			return err
		}
		token, err := agentToken(file, fd)
		if err != nil {
			return err
		}
		if owner, err := daemon.ReadToken(home.OwnerToken()); err == nil && token == owner {
			return notebook.Errorf(notebook.CodeRefused, "this is your own token, and an agent that has it writes as you").
				With("noted agent add NAME makes one for the agent")
		}
		b := a.dial(home, token)
		if _, err := b.Status(ctx); err != nil { // tells a wrong token or an absent daemon before the agent waits
			return err
		}
		return mcp.Serve(ctx, b, daemon.Version, readCloser(a.stdin), writeCloser(a.stdout))
	})
	cmd.Flags().StringVar(&file, "token-file", "", "the `file` with the agent's token")
	cmd.Flags().IntVar(&fd, "token-fd", -1, "a file `descriptor` to read the agent's token from")
	cmd.Flags().Lookup("token-fd").DefValue = "0" // hides a default that is not one
	return cmd
}

// agentToken reads a token from a file of its owner alone, or from a descriptor.
func agentToken(path string, fd int) (string, error) {
	if fd < 0 {
		token, err := daemon.ReadToken(path)
		if err != nil {
			return "", badToken(path, err)
		}
		return token, nil
	}
	f := os.NewFile(uintptr(fd), "token")
	if f == nil {
		return "", notebook.Errorf(notebook.CodeInvalid, "%d is not a file descriptor", fd)
	}
	token, err := readLine(f)
	if err != nil {
		return "", notebook.Errorf(notebook.CodeDenied, "cannot read the token from file descriptor %d: %v", fd, reason(err)).
			With("open it for the command, as in --token-fd 3 3<FILE")
	}
	return strings.TrimSpace(token), nil
}

func readCloser(r io.Reader) io.ReadCloser {
	if c, ok := r.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(r)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func writeCloser(w io.Writer) io.WriteCloser {
	if c, ok := w.(io.WriteCloser); ok {
		return c
	}
	return nopCloser{w}
}
