package main

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"noted/daemon"
	"noted/notebook"
)

// paths says where this home is: all of it under --home or NOTED_HOME, or in
// the directories that the XDG base directory specification names.
func (a *app) paths() (daemon.Home, error) {
	one := a.home
	if one == "" {
		one = a.env["NOTED_HOME"]
	}
	if one != "" {
		dir, err := absolute(one)
		if err != nil {
			return daemon.Home{}, err
		}
		home := daemon.Home{Config: dir, Data: dir, State: dir, Cache: filepath.Join(dir, "cache"), Runtime: dir}
		return home, socketFits(home)
	}
	person := a.env["HOME"]
	if !filepath.IsAbs(person) {
		return daemon.Home{}, notebook.Errorf(notebook.CodeInvalid, "HOME is not set, so there is no place for a notebook").
			With("set HOME, or choose a place with --home DIR")
	}
	// A relative path in these variables is to be ignored, says the specification.
	dir := func(variable, fallback string) string {
		if base := a.env[variable]; filepath.IsAbs(base) {
			return filepath.Join(base, "noted")
		}
		return filepath.Join(person, fallback, "noted")
	}
	home := daemon.Home{
		Config: dir("XDG_CONFIG_HOME", ".config"),
		Data:   dir("XDG_DATA_HOME", ".local/share"),
		State:  dir("XDG_STATE_HOME", ".local/state"),
		Cache:  dir("XDG_CACHE_HOME", ".cache"),
	}
	home.Runtime = home.State
	if base := a.env["XDG_RUNTIME_DIR"]; safeRuntime(base) {
		home.Runtime = filepath.Join(base, "noted")
	} else if base := "/run/user/" + strconv.Itoa(os.Getuid()); a.env["XDG_RUNTIME_DIR"] == "" && safeRuntime(base) {
		home.Runtime = filepath.Join(base, "noted")
	}
	return home, socketFits(home)
}

// safeRuntime reports whether dir is a directory of this user that nobody else
// can enter. A socket in any other is a door that somebody may have swapped.
func safeRuntime(dir string) bool {
	if !filepath.IsAbs(dir) {
		return false
	}
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && info.Mode().Perm()&0o077 == 0 && ownedByUser(info)
}

// socketFits refuses a home so deep that the kernel could not name its socket.
func socketFits(home daemon.Home) error {
	const most = len(syscall.RawSockaddrUnix{}.Path) - 1
	if n := len(home.Socket()); n > most {
		return notebook.Errorf(notebook.CodeInvalid, "%s has %d bytes, and the path of a socket at most %d", home.Socket(), n, most).
			With("choose a shorter directory with --home DIR")
	}
	return nil
}

func noHome(home daemon.Home) error {
	return unreachableError{notebook.Errorf(notebook.CodeUnavailable, "there is no notebook in %s yet", home.Data).With("noted init")}
}
