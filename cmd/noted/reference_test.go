package main

import (
	osexec "os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noted/notebook"
)

func TestParseFence(t *testing.T) {
	for _, tt := range []struct {
		ref  string
		want fenceName
	}{
		{"Notes#1", fenceName{page: "Notes", number: 1}},
		{"Notes#12", fenceName{page: "Notes", number: 12}},
		{"C##2", fenceName{page: "C#", number: 2}},
		{"issue #7#3", fenceName{page: "issue #7", number: 3}},
		{"=1a2b#1", fenceName{page: "=1a2b", number: 1}},
		{"today#1", fenceName{page: "today", number: 1}},
		{"Notes#fabcdefg27", fenceName{page: "Notes", id: "fabcdefg27"}},
		{"Notes#FABCDEFG27", fenceName{page: "Notes", id: "fabcdefg27"}},
	} {
		got, err := parseFence(tt.ref)
		if err != nil || got != tt.want {
			t.Errorf("parseFence(%q) = %+v, %v, want %+v", tt.ref, got, err, tt.want)
		}
	}
	for _, ref := range []string{
		"", "#", "#1", "Notes", "Notes#", "Notes#0", "Notes#-1", "Notes#+1", "Notes#01", "Notes#1.5", "Notes#1 ",
		"Notes#99999999999", "Notes#f", "Notes#fabc", "Notes#fabcdefg271", "Notes#gabcdefg27", "Notes#fabcdefg18", "Notes#①",
	} {
		if got, err := parseFence(ref); exitCode(err) != 2 {
			t.Errorf("parseFence(%q) = %+v, %v, want a usage error", ref, got, err)
		}
	}
}

func TestFindFence(t *testing.T) {
	one, two := notebook.FenceID{1}, notebook.FenceID{2}
	page := &notebook.PageView{PageInfo: notebook.PageInfo{Title: "Notes"}, Fences: []notebook.FenceInfo{{ID: one, Number: 1}, {ID: two, Number: 2}}}
	for _, tt := range []struct {
		name fenceName
		want notebook.FenceID
	}{
		{fenceName{page: "Notes", number: 2}, two},
		{fenceName{page: "Notes", id: one.Short()}, one},
	} {
		if f, err := tt.name.find(page); err != nil || f.ID != tt.want {
			t.Errorf("%+v finds %v, %v", tt.name, f, err)
		}
	}
	for _, name := range []fenceName{{page: "Notes", number: 3}, {page: "Notes", id: "fzzzzzzzzz"}} {
		if f, err := name.find(page); exitCode(err) != 3 {
			t.Errorf("%+v finds %v, %v, want not found", name, f, err)
		}
	}

	// Two fences whose short ids collide are told apart by number only.
	page.Fences[1].ID = one
	_, err := fenceName{page: "Notes", id: one.Short()}.find(page)
	if f := failure(err); f.Code != notebook.CodeAmbiguous || !strings.Contains(f.Message, "#1 #2") {
		t.Errorf("a shared id gives %v, want both numbers", err)
	}
	if f, err := (fenceName{page: "Notes", number: 2}).find(page); err != nil || f.Number != 2 {
		t.Errorf("number 2 finds %v, %v", f, err)
	}
}

func TestFindDevice(t *testing.T) {
	laptop, phone, gone, twin, alike := notebook.DeviceID{1}, notebook.DeviceID{2}, notebook.DeviceID{3}, notebook.DeviceID{4}, notebook.DeviceID{5}
	all := []notebook.DeviceInfo{
		{ID: laptop, Name: "laptop"},
		{ID: phone, Name: "phone"},
		{ID: gone, Name: "phone", Removed: true},
		{ID: twin, Name: "tablet"},
		{ID: alike, Name: "Laptop 2~" + alike.Short()}, // as a device is shown whose name could be taken for another's
	}
	for name, want := range map[string]notebook.DeviceID{
		"laptop":                       laptop,
		"phone":                        phone, // the removed one does not count while another has the name
		laptop.String():                laptop,
		phone.Short():                  phone,
		gone.Short():                   gone,
		strings.ToUpper(phone.Short()): phone,
		"Laptop 2":                     alike,
		"Laptop 2~" + alike.Short():    alike,
		twin.String()[:4] + twin.String()[4:][:10]: twin,
	} {
		if d, err := findDevice(all, name); err != nil || d.ID != want {
			t.Errorf("%q finds %v, %v", name, d, err)
		}
	}
	for _, name := range []string{"", "lap", "Laptop", laptop.String()[:3], "nobody", laptop.String() + "a", "Laptop 2~", "Laptop 2~" + laptop.Short(), "laptop~" + alike.Short()} {
		if d, err := findDevice(all, name); exitCode(err) != 3 {
			t.Errorf("%q finds %v, %v, want not found", name, d, err)
		}
	}

	all[3].Name = "phone"
	_, err := findDevice(all, "phone")
	if f := failure(err); f.Code != notebook.CodeAmbiguous || !strings.Contains(f.Message, phone.Short()) || !strings.Contains(f.Message, twin.Short()) {
		t.Errorf("a shared name gives %v, want both ids", err)
	}
}

func TestParseArgs(t *testing.T) {
	got, err := parseArgs([]string{"a=1", "b=", "c=x=y"})
	if err != nil || len(got) != 3 || got["a"] != "1" || got["b"] != "" || got["c"] != "x=y" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range [][]string{{"a"}, {"=1"}, {""}, {"a=1", "a=2"}} {
		if got, err := parseArgs(bad); exitCode(err) != 2 {
			t.Errorf("parseArgs(%q) = %v, %v, want a usage error", bad, got, err)
		}
	}
}

// What a hint prints can be pasted into a shell and means the same there.
func TestQuotedIsWhatAShellReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("aé'\"\\$`#&;|<>()*?[]{}~! \t\n=-"))).Draw(t, "title")
		out, err := osexec.Command("sh", "-c", "printf %s "+quoted(s)).Output()
		if err != nil || string(out) != s {
			t.Fatalf("a shell reads %s as %q, %v", quoted(s), out, err)
		}
	})
}
