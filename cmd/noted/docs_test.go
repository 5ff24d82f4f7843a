package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestReference keeps docs/cli.md equal to what the commands are.
func TestReference(t *testing.T) {
	golden(t, "../../docs/cli.md", reference(newApp(nil, nil, nil, nil).root()))
}

// Every command says what it writes under --json, in forms that are described.
func TestEveryCommandNamesItsData(t *testing.T) {
	walk(newApp(nil, nil, nil, nil).root(), func(cmd *cobra.Command) {
		if cmd.HasSubCommands() || cmd.Name() == "help" || cmd.Name() == "completion" || cmd.Name() == "mcp" {
			return
		}
		form := cmd.Annotations["data"]
		if form == "" {
			t.Errorf("%s does not say what --json writes", cmd.CommandPath())
		}
		for part := range strings.SplitSeq(form, ";") {
			name := strings.TrimSpace(part)
			name = strings.TrimPrefix(name, "with --propose: ")
			name = strings.TrimPrefix(name, "list of ")
			name, _, _ = strings.Cut(name, ",")
			if _, known := shapes()[name]; !known && !strings.HasPrefix(name, "the number") && name != "nothing" {
				t.Errorf("%s writes %q, which is not a form of the reference", cmd.CommandPath(), name)
			}
		}
	})
}

func walk(cmd *cobra.Command, each func(*cobra.Command)) {
	each(cmd)
	for _, c := range cmd.Commands() {
		walk(c, each)
	}
}

// reference writes docs/cli.md.
func reference(root *cobra.Command) string {
	var b strings.Builder
	f := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	f("# The commands of noted\n\nThis page is written by a test from the commands themselves: `go test ./cmd/noted -run TestReference -update`.\n\n")
	f("%s\n\n", root.Long)
	f("## Naming things\n\n")
	f("- %s\n- %s\n", aboutPages, aboutFences)
	f("- A device is its name or the beginning of its id; a run, an ask and an approval are numbers.\n\n")
	f("## Exit codes\n\n| code | meaning | codes in JSON |\n|---|---|---|\n")
	for _, e := range exits() {
		var codes []string
		for _, c := range e.codes {
			codes = append(codes, "`"+string(c)+"`")
		}
		f("| %d | %s | %s |\n", e.code, e.meaning, strings.Join(codes, " "))
	}
	f("\n## Flags of every command\n\n")
	flags(&b, root.PersistentFlags())
	f("\n## Settings\n\n")
	f("`config.toml` in the config directory may set `name`, `listen` (a list of multiaddresses) and `log_level`. ")
	f("`NOTED_NAME`, `NOTED_LISTEN` (with commas) and `NOTED_LOG_LEVEL` win over the file, flags over both. ")
	f("What may run is set in `policy.toml` beside it and nowhere else: no flag, no variable. ")
	f("`NOTED_HOME` is the directory of everything; without it the XDG base directories are used. ")
	f("`VISUAL` or `EDITOR` is the editor; `NO_COLOR` turns colours off.\n")
	walk(root, func(cmd *cobra.Command) {
		if cmd == root || cmd.HasSubCommands() || cmd.Name() == "help" {
			return
		}
		f("\n## %s\n\n", cmd.CommandPath())
		f("    %s\n\n%s.\n", cmd.UseLine(), sentence(cmd.Short))
		if cmd.Long != "" {
			f("\n%s\n", cmd.Long)
		}
		if cmd.LocalFlags().HasAvailableFlags() {
			f("\n")
			flags(&b, cmd.LocalFlags())
		}
		if form := cmd.Annotations["data"]; form != "" {
			f("\nData: %s.\n", form)
		}
	})
	f("\n## Data\n\nWith `--json` a command writes `{\"ok\":true,\"data\":…}` or `{\"ok\":false,\"error\":{\"code\",\"message\",\"hint\"}}` on one line; ")
	f("commands that stream write one such line for each event. `fence run` and `run verify` write both data and error where a run or the ledger is not ok. ")
	f("Names are snake_case, ids and digests hexadecimal, device ids fingerprints, times RFC 3339 in UTC.\n")
	for _, name := range shapeNames() {
		f("\n### %s\n\n| field | type | |\n|---|---|---|\n", name)
		fields(&b, reflect.TypeOf(shapes()[name]))
	}
	return b.String()
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func flags(b *strings.Builder, set *pflag.FlagSet) {
	set.VisitAll(func(fl *pflag.Flag) {
		if fl.Hidden || fl.Name == "help" || fl.Name == "version" {
			return
		}
		value, usage := pflag.UnquoteUsage(fl)
		if value != "" {
			value = " " + strings.ToUpper(value)
		}
		fmt.Fprintf(b, "- `--%s%s`: %s\n", fl.Name, value, usage)
	})
}

func fields(b *strings.Builder, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			fields(b, field.Type)
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		form := formOf(field.Type)
		if options != "" {
			form += ", may be missing"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, form, field.Tag.Get("doc"))
	}
}

// formOf is a type as the reference calls it.
func formOf(t reflect.Type) string {
	for name, v := range shapes() {
		if reflect.TypeOf(v) == t {
			return name
		}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return formOf(t.Elem())
	case reflect.Slice:
		return "list of " + formOf(t.Elem())
	case reflect.Map:
		return "map"
	case reflect.Bool:
		return "bool"
	case reflect.String:
		return "string"
	case reflect.Struct:
		return "time"
	}
	return "number"
}
