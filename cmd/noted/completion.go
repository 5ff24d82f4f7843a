package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"noted/notebook"
	"noted/rpc"
)

func (a *app) completionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "completion SHELL",
		Short: "write a script that completes noted's commands in a shell",
		Long: `SHELL is bash, zsh or fish. To have it always, for example:

  noted completion bash > ~/.local/share/bash-completion/completions/noted`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return notebook.Errorf(notebook.CodeInvalid, "which shell?").With("noted completion bash, zsh or fish")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			}
			return notebook.Errorf(notebook.CodeInvalid, "there is no completion for %q", args[0]).With("noted completion bash, zsh or fish")
		},
	}
	return cmd
}

func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "show help for a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return notebook.Errorf(notebook.CodeInvalid, "noted has no command %q", strings.Join(args, " ")).With("noted --help")
			}
			return cmd.Help()
		},
	}
}

// completing is how long a shell waits for names at most.
const completing = 500 * time.Millisecond

// complete makes a completion of the first argument out of what the daemon
// knows. Where no daemon answers there is nothing to complete.
func (a *app) complete(names func(context.Context, rpc.Backend) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		none := cobra.ShellCompDirectiveNoFileComp
		if len(args) > 0 {
			return nil, none
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completing)
		defer cancel()
		b, err := a.backend()
		if err != nil {
			return nil, none
		}
		all, err := names(ctx, b)
		if err != nil {
			return nil, none
		}
		var out []string
		for _, n := range all {
			// What a shell would have to escape, or a terminal would act on, is left out.
			if strings.HasPrefix(n, prefix) && notebook.EscapeLine(n) == n {
				out = append(out, n)
			}
		}
		return out, none
	}
}

func (a *app) completePages() cobra.CompletionFunc {
	return a.complete(func(ctx context.Context, b rpc.Backend) ([]string, error) {
		pages, err := b.Pages(ctx)
		names := []string{"today"}
		for _, p := range pages {
			names = append(names, p.Title)
		}
		return names, err
	})
}

func (a *app) completeFences(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.complete(func(ctx context.Context, b rpc.Backend) ([]string, error) {
		i := strings.LastIndexByte(prefix, '#')
		if i < 0 {
			pages, err := b.Pages(ctx)
			var names []string
			for _, p := range pages {
				if p.Fences > 0 {
					names = append(names, p.Title+"#")
				}
			}
			return names, err
		}
		view, err := b.Page(ctx, prefix[:i])
		if err != nil {
			return nil, err
		}
		var names []string
		for _, f := range view.Fences {
			names = append(names, fmt.Sprintf("%s#%d", prefix[:i], f.Number))
		}
		return names, nil
	})(cmd, args, prefix)
}

func (a *app) completeDevices(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.complete(func(ctx context.Context, b rpc.Backend) ([]string, error) {
		devices, err := b.Devices(ctx)
		var names []string
		for _, d := range devices {
			if !d.Self && !d.Removed {
				names = append(names, d.Name)
			}
		}
		return names, err
	})(cmd, args, prefix)
}

func (a *app) completeRuns(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.complete(func(ctx context.Context, b rpc.Backend) ([]string, error) {
		runs, err := b.Runs(ctx, 20)
		var names []string
		for _, r := range runs {
			names = append(names, fmt.Sprint(r.Number))
		}
		return names, err
	})(cmd, args, prefix)
}

func (a *app) completeAsks(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.complete(func(ctx context.Context, b rpc.Backend) ([]string, error) {
		asks, err := b.Asks(ctx)
		var names []string
		for _, k := range asks {
			if k.State == askOpen {
				names = append(names, fmt.Sprint(k.ID))
			}
		}
		return names, err
	})(cmd, args, prefix)
}

func (a *app) completeAgents(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.complete(func(ctx context.Context, b rpc.Backend) ([]string, error) {
		agents, err := b.Agents(ctx)
		var names []string
		for _, g := range agents {
			names = append(names, g.Name)
		}
		return names, err
	})(cmd, args, prefix)
}

func (a *app) completeEngines(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.complete(func(ctx context.Context, b rpc.Backend) ([]string, error) {
		engines, err := b.Engines(ctx)
		var names []string
		for _, e := range engines {
			if e.State != notebook.EngineAbsent {
				names = append(names, e.Name)
			}
		}
		return names, err
	})(cmd, args, prefix)
}
