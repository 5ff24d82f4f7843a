package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"noted/notebook"
	"noted/rpc"
)

// fenceName is a reference to a fence as a person writes it: PAGE#N or PAGE#fXXXXXXXXX.
type fenceName struct {
	page   string
	number int    // the Nth fence, from 1; 0 where id says which
	id     string // the short form of its id
}

// parseFence splits a reference at its last #, because a title may hold others.
func parseFence(ref string) (fenceName, error) {
	i := strings.LastIndexByte(ref, '#')
	if i <= 0 {
		return fenceName{}, notebook.Errorf(notebook.CodeInvalid, "%q does not name a fence", ref).
			With("write PAGE#N for the Nth fence of a page, or PAGE#fXXXXXXXXX")
	}
	page, which := ref[:i], ref[i+1:]
	if n, err := strconv.ParseUint(which, 10, 31); err == nil && n > 0 && which[0] != '0' && which[0] != '+' {
		return fenceName{page: page, number: int(n)}, nil
	}
	if id := strings.ToLower(which); shortFence(id) {
		return fenceName{page: page, id: id}, nil
	}
	return fenceName{}, notebook.Errorf(notebook.CodeInvalid, "%q does not name a fence: after the last # stands a number from 1 or an id such as f2ab3cd4ef", ref).
		With("noted fence list %s", quoted(page))
}

// shortFence reports whether s has the form of [notebook.FenceID.Short].
func shortFence(s string) bool {
	return regexp.MustCompile(`^f[a-z2-7]{9}$`).MatchString(s)
}

// find picks the fence that n names among those of its page.
func (n fenceName) find(page *notebook.PageView) (*notebook.FenceInfo, error) {
	var found []*notebook.FenceInfo
	for i := range page.Fences {
		f := &page.Fences[i]
		if n.number > 0 && f.Number == n.number || n.id != "" && f.ID.Short() == n.id {
			found = append(found, f)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		var numbers []string
		for _, f := range found {
			numbers = append(numbers, fmt.Sprintf("#%d", f.Number))
		}
		return nil, notebook.Errorf(notebook.CodeAmbiguous, "%s names %d fences of %q: %s", n.id, len(found), page.Title, strings.Join(numbers, " ")).
			With("name it by its number")
	case n.number > 0:
		return nil, notebook.Errorf(notebook.CodeNotFound, "%q has no fence #%d, it has %d", page.Title, n.number, len(page.Fences)).
			With("noted fence list %s", quoted(n.page))
	}
	return nil, notebook.Errorf(notebook.CodeNotFound, "%q has no fence %s", page.Title, n.id).
		With("noted fence list %s", quoted(n.page))
}

// fence connects to the daemon, fetches the page of a reference and picks the
// fence. What it answers is the moment that the person saw.
func (a *app) fence(ctx context.Context, ref string) (rpc.Backend, *notebook.PageView, *notebook.FenceInfo, error) {
	name, err := parseFence(ref)
	if err != nil {
		return nil, nil, nil, err
	}
	b, page, err := a.page(ctx, name.page)
	if err != nil {
		return nil, nil, nil, err
	}
	f, err := name.find(page)
	if err == nil && f.Unseen {
		var why *notebook.Explanation
		if why, err = b.Why(ctx, page.ID, f.ID); err == nil {
			f = &why.Fence
		}
	}
	return b, page, f, err
}

// page connects to the daemon and fetches a page.
func (a *app) page(ctx context.Context, ref string) (rpc.Backend, *notebook.PageView, error) {
	b, err := a.backend()
	if err != nil {
		return nil, nil, err
	}
	page, err := b.Page(ctx, ref)
	return b, page, err
}

// findDevice picks the device that name names: by its name, with or without the
// fingerprint that tells it from one that looks alike, or by the beginning of its id. Removed devices count only where no other answers to the name.
func findDevice(all []notebook.DeviceInfo, name string) (*notebook.DeviceInfo, error) {
	const least = 4 // letters of an id; fewer are a coincidence
	var live, gone []*notebook.DeviceInfo
	for i := range all {
		d := &all[i]
		named := d.Name == name || strings.TrimSuffix(d.Name, "~"+d.ID.Short()) == name
		if !named && (len(name) < least || !strings.HasPrefix(d.ID.String(), strings.ToLower(name))) {
			continue
		}
		if d.Removed {
			gone = append(gone, d)
		} else {
			live = append(live, d)
		}
	}
	if len(live) == 0 {
		live = gone
	}
	switch len(live) {
	case 1:
		return live[0], nil
	case 0:
		return nil, notebook.Errorf(notebook.CodeNotFound, "there is no device %q", name).With("noted device list")
	}
	var ids []string
	for _, d := range live {
		ids = append(ids, d.ID.Short())
	}
	return nil, notebook.Errorf(notebook.CodeAmbiguous, "%q names %d devices: %s", name, len(live), strings.Join(ids, " ")).
		With("use one of these ids instead of the name")
}

// parseNumber reads the number of a run, an ask or an approval.
func parseNumber(what, s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return 0, notebook.Errorf(notebook.CodeInvalid, "%q is not the number of %s", s, what)
	}
	return n, nil
}

// parseArgs reads the k=v pairs of --arg.
func parseArgs(pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	args := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || k == "" {
			return nil, notebook.Errorf(notebook.CodeInvalid, "%q is not an argument", pair).With("write --arg name=value")
		}
		if _, twice := args[k]; twice {
			return nil, notebook.Errorf(notebook.CodeInvalid, "the argument %q is given twice", k).With("give each name once")
		}
		args[k] = v
	}
	return args, nil
}

// quoted is s as a person would type it in a shell.
func quoted(s string) string {
	if regexp.MustCompile(`^[\p{L}\p{N}_./=:@%+-]+$`).MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
