package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"noted/daemon"
)

func TestPaths(t *testing.T) {
	run := t.TempDir()
	if err := os.Chmod(run, 0o700); err != nil {
		t.Fatal(err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(run, link); err != nil {
		t.Fatal(err)
	}
	plain := daemon.Home{
		Config: "/h/.config/noted", Data: "/h/.local/share/noted", State: "/h/.local/state/noted",
		Cache: "/h/.cache/noted", Runtime: "/h/.local/state/noted",
	}
	with := func(runtime string) daemon.Home { h := plain; h.Runtime = runtime; return h }
	for _, tt := range []struct {
		name, flag string
		env        []string
		want       daemon.Home
	}{
		{"defaults, no runtime directory", "", []string{"HOME=/h", "XDG_RUNTIME_DIR=/nonexistent"}, plain},
		{"a runtime directory that is safe", "", []string{"HOME=/h", "XDG_RUNTIME_DIR=" + run}, with(run + "/noted")},
		{"one that others can enter", "", []string{"HOME=/h", "XDG_RUNTIME_DIR=" + open}, plain},
		{"one behind a link", "", []string{"HOME=/h", "XDG_RUNTIME_DIR=" + link}, plain},
		{"a relative one", "", []string{"HOME=/h", "XDG_RUNTIME_DIR=run"}, plain},
		{
			"the variables", "",
			[]string{"HOME=/h", "XDG_CONFIG_HOME=/c", "XDG_DATA_HOME=/d", "XDG_STATE_HOME=/s", "XDG_CACHE_HOME=/k", "XDG_RUNTIME_DIR=/nonexistent"},
			daemon.Home{Config: "/c/noted", Data: "/d/noted", State: "/s/noted", Cache: "/k/noted", Runtime: "/s/noted"},
		},
		{"a relative variable is ignored", "", []string{"HOME=/h", "XDG_DATA_HOME=d", "XDG_RUNTIME_DIR=/nonexistent"}, plain},
		{"NOTED_HOME", "", []string{"HOME=/h", "NOTED_HOME=/n"}, daemon.Home{Config: "/n", Data: "/n", State: "/n", Cache: "/n/cache", Runtime: "/n"}},
		{"--home before NOTED_HOME", "/f", []string{"NOTED_HOME=/n"}, daemon.Home{Config: "/f", Data: "/f", State: "/f", Cache: "/f/cache", Runtime: "/f"}},
	} {
		a := newApp(tt.env, nil, nil, nil)
		a.home = tt.flag
		if got, err := a.paths(); err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
	for name, env := range map[string][]string{
		"no HOME":         {},
		"a relative HOME": {"HOME=h"},
		"too deep":        {"NOTED_HOME=/" + strings.Repeat("d", 100)},
	} {
		if got, err := newApp(env, nil, nil, nil).paths(); exitCode(err) != 2 || failure(err).Hint == "" {
			t.Errorf("%s: %+v, %v, want a usage error with the next step", name, got, err)
		}
	}
}
