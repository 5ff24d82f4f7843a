package main

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"noted/daemon"
	"noted/notebook"
)

// config is what config.toml, the environment and flags may set. Nothing of
// trust is among it: what may run is said in policy.toml alone.
type config struct {
	Name     string   `toml:"name"`      // of this device, where init makes a notebook
	Listen   []string `toml:"listen"`    // multiaddresses for other devices
	LogLevel string   `toml:"log_level"` // debug, info, warn or error
}

// maxConfig is the size in bytes that no sensible file has.
const maxConfig = 64 << 10

// config reads the settings of home: flags win over the environment, that over
// the file. flags has the values of flags that were given.
func (a *app) config(home daemon.Home, flags config) (config, error) {
	file, err := readConfig(filepath.Join(home.Config, "config.toml"))
	if err != nil {
		return file, err
	}
	c := config{
		Name:     cmp.Or(flags.Name, a.env["NOTED_NAME"], file.Name),
		LogLevel: cmp.Or(flags.LogLevel, a.env["NOTED_LOG_LEVEL"], file.LogLevel, "info"),
		Listen:   file.Listen,
	}
	if v := a.env["NOTED_LISTEN"]; v != "" {
		c.Listen = strings.Split(v, ",")
	}
	if len(flags.Listen) > 0 {
		c.Listen = flags.Listen
	}
	if _, err := c.level(); err != nil {
		return c, err
	}
	return c, nil
}

func (c config) level() (slog.Level, error) {
	var l slog.Level
	switch c.LogLevel {
	case "debug", "info", "warn", "error":
		return l, l.UnmarshalText([]byte(c.LogLevel))
	}
	return l, notebook.Errorf(notebook.CodeInvalid, "there is no log level %q", c.LogLevel).With("use debug, info, warn or error")
}

// readConfig reads a file that need not be there. What it does not know is an
// error that names the line: a setting with a typing error is not silently none.
func readConfig(path string) (config, error) {
	var c config
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, notebook.Errorf(notebook.CodeFailed, "cannot read %s: %v", path, reason(err)).With("correct its permissions, or remove it")
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return c, notebook.Errorf(notebook.CodeFailed, "cannot read %s: %v", path, reason(err)).With("correct it, or remove it")
	}
	if len(b) > maxConfig {
		return c, notebook.Errorf(notebook.CodeInvalid, "%s is larger than %s", path, size(maxConfig)).With("make it smaller")
	}
	err = toml.NewDecoder(strings.NewReader(string(b))).DisallowUnknownFields().Decode(&c)
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(strict.Errors) > 0 {
		line, _ := strict.Errors[0].Position()
		return c, notebook.Errorf(notebook.CodeInvalid, "%s, line %d: there is no setting %q", path, line, strings.Join(strict.Errors[0].Key(), ".")).
			With("the settings are name, listen and log_level; what may run is set in policy.toml")
	}
	if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := bad.Position()
		return c, notebook.Errorf(notebook.CodeInvalid, "%s, line %d: %s", path, line, bad.Error()).With("correct the line")
	}
	if err != nil {
		return c, notebook.Errorf(notebook.CodeInvalid, "%s: %v", path, err).With("correct it")
	}
	return c, nil
}
