package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"noted/notebook"
)

func (a *app) engineCommand() *cobra.Command {
	return noun("engine", "files that run languages which noted has no runtime of its own for", a.engineList(), a.engineAdd(), a.engineRemove())
}

func (a *app) engineList() *cobra.Command {
	return data("list of engine", verb("list", "list the engines that can be had, and what is here of them", `
An engine is one certain WebAssembly file: its SHA-256 is part of this program,
and no other file is taken. Where a person gets it is told where it is absent.`, func(ctx context.Context, _ []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		engines, err := b.Engines(ctx)
		if err != nil {
			return err
		}
		return a.answer(shape(engines, engineShape), func(t *text) { engineTable(t, engines) })
	}))
}

func engineTable(t *text, engines []notebook.EngineInfo) {
	rows := [][]string{{"ENGINE", "STATE", "VERSION", "SIZE", "SHA-256", "LICENCE"}}
	for _, e := range engines {
		rows = append(rows, []string{e.Name, string(e.State), e.Version, size(e.Bytes), e.Digest.String()[:16], e.Licence})
	}
	t.table(rows...)
	for _, e := range engines {
		switch e.State {
		case notebook.EngineAbsent:
			t.line("next: noted engine add FILE, with %s", e.Source)
		case notebook.EngineDamaged:
			t.line("%s the file of %s is not the one that was added", t.paint(red, "problem:"), e.Name)
			t.line("next: noted engine add FILE, with %s", e.Source)
		}
	}
}

func (a *app) engineAdd() *cobra.Command {
	cmd := verb("add FILE", "keep an engine file, and compile it", `
FILE is a WebAssembly module whose SHA-256, without the custom sections that a
debugger reads, is one that noted has. It is copied, and compiled in a jailed
process, which for Python takes some seconds. Nothing runs that did not run
before but by the rules of your policy, so no PIN is asked for.`, func(ctx context.Context, args []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		file, err := absolute(args[0])
		if err != nil {
			return err
		}
		e, err := b.AddEngine(ctx, file)
		if err != nil {
			return err
		}
		return a.answer(engineShape(*e), func(t *text) { t.line("engine %s is %s: %s, %s", e.Name, e.State, e.Version, size(e.Bytes)) })
	})
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"wasm"}, cobra.ShellCompDirectiveFilterFileExt
	}
	return data("engine", cmd)
}

func (a *app) engineRemove() *cobra.Command {
	cmd := verb("remove NAME", "forget an engine file and what was compiled of it", "", func(ctx context.Context, args []string) error {
		b, err := a.backend()
		if err != nil {
			return err
		}
		if err := b.RemoveEngine(ctx, args[0]); err != nil {
			return err
		}
		engines, err := b.Engines(ctx)
		if err != nil {
			return err
		}
		for _, e := range engines {
			if e.Name == args[0] {
				return a.answer(engineShape(e), func(t *text) { t.line("engine %s is removed", e.Name) })
			}
		}
		return fmt.Errorf("the engine %s is not listed any more", args[0])
	})
	cmd.ValidArgsFunction = a.completeEngines
	return data("engine", cmd)
}

type engineJSON struct {
	Name    string `json:"name"`
	State   string `json:"state"` // absent, damaged, added or compiled
	Version string `json:"version"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"` // of the file without its custom sections
	Source  string `json:"source"`
	Licence string `json:"licence"`
}

func engineShape(e notebook.EngineInfo) engineJSON {
	return engineJSON{
		Name: e.Name, State: string(e.State), Version: e.Version, Bytes: e.Bytes, SHA256: e.Digest.String(),
		Source: e.Source, Licence: e.Licence,
	}
}
