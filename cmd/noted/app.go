package main

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"noted/daemon"
	"noted/notebook"
	"noted/rpc"
)

// app is one invocation of the program. Every command is a method on it, and
// nothing of an invocation lives anywhere else.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            map[string]string

	home  string // --home
	json  bool   // --json
	pinFD int    // --pin-fd; negative: the PIN is asked on the terminal
}

func newApp(env []string, stdin io.Reader, stdout, stderr io.Writer) *app {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, env: map[string]string{}, pinFD: -1}
	for _, e := range env {
		if name, value, ok := strings.Cut(e, "="); ok {
			a.env[name] = value
		}
	}
	return a
}

func (a *app) execute(ctx context.Context, args []string) error {
	root := a.root()
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// A mistake in the flags is told in the form that was asked for, also
		// where --json comes after it.
		flags := args
		if i := slices.Index(args, "--"); i >= 0 {
			flags = args[:i]
		}
		a.json = slices.Contains(flags, "--json")
		return notebook.Errorf(notebook.CodeInvalid, "%s: %v", cmd.CommandPath(), err).With("%s --help", cmd.CommandPath())
	})
	return a.reached(root.ExecuteContext(ctx))
}

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "noted",
		Short: "a notebook of markdown pages on all your devices, and a decision on every code fence in it",
		Long: `noted keeps a notebook of markdown pages in sync between your devices, peer to
peer, and runs the code fences in those pages. Every fence knows who wrote it.
One that you did not type on this device runs only in the strictest runtime, or
after you approved its exact bytes.`,
		Version:       daemon.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSuch,
		RunE:          func(cmd *cobra.Command, _ []string) error { return a.overview(cmd.Context()) },
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.CompletionOptions.DisableDefaultCmd = true // see completion.go
	root.SetHelpCommand(a.helpCommand(root))
	root.PersistentFlags().StringVar(&a.home, "home", "", "keep everything under this `directory` (or NOTED_HOME)")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "write one JSON envelope {ok,data,error} instead of text")
	root.AddCommand(
		a.initCommand(), a.daemonCommand(), a.statusCommand(), a.watchCommand(),
		a.pageCommand(), a.queryCommand(), a.fenceCommand(), a.askCommand(), a.runCommand(),
		a.deviceCommand(), a.policyCommand(), a.agentCommand(), a.engineCommand(), a.importCommand(),
		a.ownerCommand(), a.doctorCommand(), a.mcpCommand(), a.completionCommand(),
	)
	return root
}

// noun makes a command that only holds verbs.
func noun(name, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Args: noSuch, DisableFlagsInUseLine: true, RunE: func(cmd *cobra.Command, _ []string) error {
		var names []string
		for _, v := range cmd.Commands() {
			if v.IsAvailableCommand() {
				names = append(names, v.Name())
			}
		}
		return notebook.Errorf(notebook.CodeInvalid, "%s needs a verb: %s", cmd.CommandPath(), strings.Join(names, ", ")).
			With("%s --help", cmd.CommandPath())
	}}
	cmd.AddCommand(verbs...)
	return cmd
}

// noSuch refuses what is not a command, with the nearest one that is.
func noSuch(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := notebook.Errorf(notebook.CodeInvalid, "%s has no command %q", cmd.CommandPath(), args[0])
	if cmd.SuggestionsMinimumDistance == 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return err.With("%s %s", cmd.CommandPath(), near[0])
	}
	return err.With("%s --help", cmd.CommandPath())
}

// verb makes a command that does something. Its use line, such as
// "append PAGE [TEXT]", is also what its arguments are checked against.
func verb(use, short, long string, run func(ctx context.Context, args []string) error) *cobra.Command {
	least, most := arity(use)
	return &cobra.Command{
		Use: use, Short: short, Long: strings.TrimSpace(long), DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < least || len(args) > most {
				return notebook.Errorf(notebook.CodeInvalid, "%s: wrong number of arguments", cmd.CommandPath()).
					With("%s", cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args) },
	}
}

// data records what a command writes under --json, for the reference.
func data(form string, cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{"data": form}
	return cmd
}

// arity reads from a use line how many arguments a command takes:
// [X] may be left out, and of X… there may be more.
func arity(use string) (least, most int) {
	for _, word := range strings.Fields(use)[1:] {
		if !strings.HasPrefix(word, "[") {
			least++
		}
		most++
		if strings.HasSuffix(word, "…") {
			return least, math.MaxInt
		}
	}
	return least, most
}

// backend connects to the daemon of this home as its owner.
func (a *app) backend() (rpc.Backend, error) {
	home, err := a.paths()
	if err != nil {
		return nil, err
	}
	if !home.Exists() {
		return nil, noHome(home)
	}
	token, err := daemon.ReadToken(home.OwnerToken())
	if err != nil {
		return nil, badToken(home.OwnerToken(), err)
	}
	return a.dial(home, token), nil
}

// dial connects to the daemon of home with a client's token.
func (a *app) dial(home daemon.Home, token string) rpc.Backend {
	return rpc.Dial(home.Socket(), token)
}

// reached tells the two kinds of unavailable apart: of something that the
// daemon wanted, and of the daemon itself, which has an exit code of its own.
func (a *app) reached(err error) error {
	if err == nil || failure(err).Code != notebook.CodeUnavailable {
		return err
	}
	if home, perr := a.paths(); perr == nil && home.Exists() && !answers(home) {
		return unreachableError{failure(err)}
	}
	return err
}

func badToken(path string, err error) error {
	if e, ok := errors.AsType[*notebook.Error](err); ok {
		return e
	}
	return notebook.Errorf(notebook.CodeDenied, "cannot read the token in %s: %v", path, reason(err)).
		With("a token file is made by noted init or noted agent add, and is readable by its owner alone")
}

// reason is err without the operation and path that the caller names itself.
func reason(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// absolute is path as the daemon, which has another working directory, must get it.
func absolute(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", notebook.Errorf(notebook.CodeInvalid, "cannot tell where %q is: %v", path, err)
	}
	return abs, nil
}
