package exec

import (
	"flag"
	"os"
	"strings"
	"testing"

	"noted/notebook"
)

var update = flag.Bool("update", false, "write the golden files")

// walk lists everything that a fence can reach from its globals and from the
// metatables of its values, by walking there itself.
const walk = `
local seen, lines = {}, {}
local visit
local function meta(path, v)
  local ok, m = pcall(getmetatable, v)
  if ok and m ~= nil then visit(path .. '<meta>', m) end
end
visit = function(path, v)
  local t = type(v)
  if t == 'table' then
    if seen[v] then lines[#lines+1] = path .. ' = ' .. seen[v] return end
    seen[v] = path
    lines[#lines+1] = path .. ' table'
    local names = {}
    for k in pairs(v) do names[#names+1] = k end
    table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
    for _, k in ipairs(names) do visit(path .. '.' .. tostring(k), v[k]) end
  elseif t == 'function' then
    lines[#lines+1] = path .. (seen[v] and ' = ' .. seen[v] or ' function')
    seen[v] = seen[v] or path
  else
    lines[#lines+1] = path .. ' ' .. t .. ' ' .. tostring(v)
  end
  if t ~= 'string' then meta(path, v) end
end
visit('_G', _G)
local values = {1, true, '', print, coroutine.create(print)}
for _, v in ipairs(values) do meta('<' .. type(v) .. '>', v) end
meta('<nil>', nil)
for _, l in ipairs(lines) do print(l) end
`

// TestReachableGlobals fails when the engine, or we, give a fence one name more
// or less than the golden files say.
func TestReachableGlobals(t *testing.T) {
	r := newRunner(t, Config{Limits: quick})
	granted := strictJob(quick, walk)
	granted.rung = notebook.Granted
	granted.request.inputs = []field{{"page", "a page"}, {"clock", "1796137982123"}, {"seed", "seed"}}
	granted.request.args = []field{{"who", "me"}}
	for name, j := range map[string]job{"strict": strictJob(quick, walk), "granted": granted} {
		res := runJob(t, r, j)
		if res.Verdict != notebook.OK || res.Dropped > 0 {
			t.Fatalf("%s: %v %s", name, res.Verdict, res.Error)
		}
		file := "testdata/golden/globals-" + name + ".txt"
		if *update {
			if err := os.WriteFile(file, []byte(res.Output), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if res.Output != string(want) {
			t.Errorf("%s: a fence reaches other names than %s says:\n%s", name, file, res.Output)
		}
		for _, never := range []string{
			"io", "os", "debug", "package", "channel", "load", "loadstring", "loadfile", "dofile", "require", "module",
			"getfenv", "setfenv", "newproxy", "collectgarbage", "_printregs", "string.dump", "math.randomseed",
		} {
			if strings.Contains(res.Output, "_G."+never+" ") {
				t.Errorf("%s: %s exists", name, never)
			}
		}
		for _, value := range []string{"page", "clock", "args", "math.random"} {
			if got := strings.Contains(res.Output, "_G."+value+" "); got != (name == "granted") {
				t.Errorf("%s: %s exists: %v", name, value, got)
			}
		}
	}
}
