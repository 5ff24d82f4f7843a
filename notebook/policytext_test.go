package notebook

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPolicyText(t *testing.T) {
	for _, c := range []struct{ title, body, want string }{
		{"policy.toml", "", "a page called policy.toml"},
		{" Policy.TOML ", "text", "a page called policy.toml"},
		{"Notes", "---\ntrust: local\n---\n", "front matter with trust"},
		{"Notes", "---\ntags: [a]\nauto-run: true\n---\n", "front matter with auto-run"},
		{"Notes", "---\r\nautoRun: true\r\n---\r\n", "front matter with auto-run"},
		{"Notes", "---\n  skipPrompts: true\n", "front matter with skipPrompts"},
		{"Notes", "---\n\"skip_prompts\": true\n---", "front matter with skipPrompts"},
		{"Notes", "---\ntimeout: 1h\n---\n", "front matter with timeout"},
		{"Notes", "+++\ntrust = \"local\"\n+++\n", "front matter with trust"},
		{"Notes", "```toml\n[foreign]\nlua = \"granted\"\n```\n", "a fence of TOML with [foreign]"},
		{"Notes", "~~~~ toml\n# x\n\n[ local ] # mine\n~~~~\n", "a fence of TOML with [local]"},
		{"Notes", "> - ```TOML\n>   [limits]\n>   ```\n", "a fence of TOML with [limits]"},
		{"Notes", "```toml\n[device.abc]\n", "a fence of TOML with [device]"},
		{"Notes", "```{.toml}\n[auto]\n", "a fence of TOML with [auto]"},
		{"Notes", "```toml title=\"policy.toml\"\n", "a fence called policy.toml"},
		{"Notes", "``` policy.toml\n", "a fence called policy.toml"},
		{"Notes", "```toml file=/etc/noted/policy.toml\n", "a fence called policy.toml"},
		{"Notes", "text\n\n```lua {auto-run=true}\n", "a fence with auto-run"},
		{"Notes", "```lua {x=1, trust=local}\n", "a fence with trust"},
		{"Notes", "```lua {timeout=60}\n", "a fence with timeout"},
		{"Notes", "- skip-prompts:: true\n", "the property skipPrompts"},
		{"Notes", "auto-run:: true\n", "the property auto-run"},
		{"Notes", "```lua\nx\n```\n```toml\n[foreign]\n```\n", "a fence of TOML with [foreign]"},

		{"Policy", "My thoughts on policy.toml and trust.\n", ""},
		{"Notes", "", ""},
		{"Notes", "---\ntags: [trust]\ntitle: policy\n---\ntrust: me\n", ""},
		{"Notes", "text\n---\ntrust: local\n---\n", ""},
		{"Notes", "```lua {wants=\"page\"}\nlocal trust = 1\nauto-run:: x\n[foreign]\n```\n", ""},
		{"Notes", "```toml\n[package]\nname = \"x\"\n[tool.foreign]\n[locals]\n[device\n```\n[foreign]\n", ""},
		{"Notes", "```toml\n````\n", ""},
		{"Notes", "[foreign]: https://example.org\n\nstd::trust::x\n", ""},
		{"Notes", "tags:: trust\n", ""},
		{"Notes", "---\n" + strings.Repeat("x", 100) + ": trust\n---\n", ""},
	} {
		if got := PolicyText(c.title, c.body); got != c.want {
			t.Errorf("%q: %q, want %q", c.body, got, c.want)
		}
	}
}

// It never fails, and what it says is of its own words.
func TestPolicyTextOfAnything(t *testing.T) {
	lines := rapid.SampledFrom([]string{"---", "+++", "```", "~~~toml", "```toml x", "[foreign]", "trust: x", "trust = x", "a:: b", "trust:: b", "> ", "- ", "\r", "\x00\x1b[31m", "[device.\x1b]", ":", "=", "::", "`", "[", "[]"})
	rapid.Check(t, func(t *rapid.T) {
		said := PolicyText(rapid.String().Draw(t, "title"), strings.Join(rapid.SliceOf(rapid.OneOf(lines, rapid.String())).Draw(t, "body"), "\n"))
		if len(said) > 64 || strings.Trim(said, "abcdefghijklmnopqrstuvwxyzTOMLP []-.") != "" {
			t.Fatalf("%q", said)
		}
	})
}

func BenchmarkPolicyText(b *testing.B) {
	body := strings.Repeat("A line of prose that somebody wrote, of the usual length, with a word: and another.\n\n- an item\n```lua\nreturn 1\n```\n", 10_000)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if PolicyText("Notes", body) != "" {
			b.Fatal("found something")
		}
	}
}
