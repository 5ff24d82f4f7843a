package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"noted/daemon"
)

func TestConfigPrecedence(t *testing.T) {
	dir := t.TempDir()
	home := daemon.Home{Config: dir}
	load := func(file string, env []string, flags config) (config, error) {
		t.Helper()
		path := filepath.Join(dir, "config.toml")
		if file == "" {
			_ = os.Remove(path)
		} else if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		return newApp(env, nil, nil, nil).config(home, flags)
	}
	file := "name = \"file\"\nlog_level = \"warn\"\nlisten = [\"/ip4/1.1.1.1/tcp/1\"]\n"
	env := []string{"NOTED_NAME=env", "NOTED_LOG_LEVEL=error", "NOTED_LISTEN=/a,/b"}
	flags := config{Name: "flag", LogLevel: "debug", Listen: []string{"/c"}}
	for _, tt := range []struct {
		name, file string
		env        []string
		flags      config
		want       config
	}{
		{"nothing", "", nil, config{}, config{LogLevel: "info"}},
		{"file", file, nil, config{}, config{"file", []string{"/ip4/1.1.1.1/tcp/1"}, "warn"}},
		{"environment", file, env, config{}, config{"env", []string{"/a", "/b"}, "error"}},
		{"flags", file, env, flags, flags},
	} {
		got, err := load(tt.file, tt.env, tt.flags)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tt.name, err, diff)
		}
	}
	for name, bad := range map[string]struct{ file, says string }{
		"an unknown setting": {"name = \"x\"\npolicy = \"x\"\n", "line 2"},
		"a trust setting":    {"[local]\nlua = \"host\"\n", "policy.toml"},
		"bad syntax":         {"\n\nname = \n", "line 3"},
		"a wrong type":       {"name = 7\n", "line 1"},
		"a bad level":        {"log_level = \"loud\"\n", "debug, info, warn or error"},
		"too large":          {strings.Repeat("#\n", maxConfig), "larger"},
	} {
		_, err := load(bad.file, nil, config{})
		if exitCode(err) != 2 || !strings.Contains(failure(err).Error(), bad.says) {
			t.Errorf("%s: %v, want a usage error that says %q", name, err, bad.says)
		}
	}
}
