package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) agentCommand() *cobra.Command {
	return noun("agent", "agents that may read and write the notebook under their own name", a.agentList(), a.agentAdd(), a.agentRemove())
}

func (a *app) agentList() *cobra.Command {
	return data("list of agent", verb("list", "list the agents that have a token", "", func(ctx context.Context, _ []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		home, err := a.paths()
		if err != nil {
			return err
		}
		agents, err := b.Agents(ctx)
		if err != nil {
			return err
		}
		file := func(name string) string {
			path := home.AgentToken(name)
			if _, err := os.Stat(path); err != nil {
				return ""
			}
			return path
		}
		shaped := shape(agents, func(g notebook.AgentInfo) agentJSON {
			j := agentShape(g)
			j.TokenFile = file(g.Name)
			return j
		})
		return a.answer(shaped, func(t *text) { agentTable(t, shaped) })
	}))
}

func agentTable(t *text, agents []agentJSON) {
	if len(agents) == 0 {
		t.line("no agents")
		t.line("next: noted agent add NAME")
		return
	}
	rows := [][]string{{"AGENT", "SINCE", "OPEN ASKS", "TOKEN FILE"}}
	for _, g := range agents {
		rows = append(rows, []string{g.Name, when(g.Created), fmt.Sprint(g.OpenAsks), g.TokenFile})
	}
	t.table(rows...)
}

func (a *app) agentAdd() *cobra.Command {
	cmd := verb("add NAME", "give an agent a token of its own", `
What the agent writes stands as agent:NAME. It can ask for an approval and never
give one. Its token is in a file that only you can read, and nowhere else.`, func(ctx context.Context, args []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		home, err := a.paths()
		if err != nil {
			return err
		}
		name := args[0]
		err = a.present(ctx, b, func(p notebook.Presence) error {
			_, err := b.AddAgent(ctx, name, p) // the daemon has put it into its file; a screen is no place for it
			return err
		})
		if err != nil {
			return err
		}
		path := home.AgentToken(name)
		return a.answer(agentJSON{Name: name, TokenFile: path}, func(t *text) {
			t.line("agent %s has its token in %s", name, path)
			t.line("next: have it start noted mcp --token-file %s", quoted(path))
		})
	})
	return data("agent", a.pinFlag(cmd))
}

func (a *app) agentRemove() *cobra.Command {
	cmd := verb("remove NAME", "void an agent's token", "", func(ctx context.Context, args []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		if err := b.RemoveAgent(ctx, args[0]); err != nil {
			return err
		}
		return a.answer(agentJSON{Name: args[0]}, func(t *text) { t.line("agent %s is removed, its token is void", args[0]) })
	})
	cmd.ValidArgsFunction = a.completeAgents
	return data("agent", cmd)
}
