package exec

import (
	"maps"
	"slices"

	"noted/notebook"
	"noted/trust"
)

// job is what a grant lets run, checked.
type job struct {
	fence    notebook.FenceID
	language string
	closure  notebook.Hash
	rung     notebook.Rung
	limits   notebook.Limits
	local    bool
	request  request
	grants   grants
	tell     func(p []byte) // see [Runner.Follow]; may be nil
}

// maxMemory and maxTime are beyond what any policy should allow; they keep the
// arithmetic of limits in bounds.
const (
	maxMemory = 64 << 30
	maxTime   = 1 << 42 // nanoseconds: over an hour
	maxSource = 16 << 20
	maxInputs = notebook.MaxBody + notebook.MaxRowsOut + 4<<10 // a page, rows, and some small values
	maxOutput = 80 << 10                                       // so that a result with it fits notebook.MaxResult
)

// newJob takes a grant apart. What cannot run here is refused with the reason.
func newJob(g trust.Grant) (job, error) {
	refuse := func(format string, args ...any) (job, error) {
		return job{}, notebook.Errorf(notebook.CodeUnavailable, format, args...)
	}
	if !g.Valid() {
		return job{}, notebook.Errorf(notebook.CodeRefused, "nothing runs without a grant")
	}
	closure := g.Closure()
	j := job{fence: g.Fence(), closure: closure.Hash(), language: notebook.Canonical(closure.Main().Language), rung: g.Rung(), limits: g.Limits(), local: g.Local()}
	switch {
	case j.rung == notebook.Host && j.language != "sh":
		return refuse("only a shell runs with the person's own powers")
	case j.rung != notebook.Strict && j.rung != notebook.Granted && j.rung != notebook.Host:
		return refuse("nothing runs at %s", j.rung)
	case len(closure) != len(g.Included())+1:
		return refuse("a part of the fence is missing")
	case j.language == wasmLanguage.name && len(closure) > 1:
		return job{}, notebook.Errorf(notebook.CodeRefused, "a wasm fence is one module and includes nothing").
			With("link what it needs into the module, and take include out of the fence's info string")
	}
	for _, p := range closure {
		if _, found := languageOf(j.language); !found || notebook.Canonical(p.Language) != j.language {
			return refuse("there is no runtime for %q here yet", p.Language)
		}
	}
	for i, fence := range g.Included() {
		j.request.before = append(j.request.before, field{fence.Short(), closure[i].Code})
	}
	j.request.source = closure.Main().Code
	for _, c := range g.Capabilities() {
		switch c {
		case notebook.CapPage, notebook.CapClock, notebook.CapSeed, notebook.CapQuery:
		case notebook.CapArgs:
			j.request.args = []field{}
		default:
			if !slices.Contains([]notebook.Capability{notebook.CapDir, notebook.CapProgram, notebook.CapNet}, c.Kind()) {
				return refuse("the capability %q is not here yet", c)
			}
			if !slices.ContainsFunc(g.Inputs(), func(in trust.Input) bool { return in.Capability == c }) {
				return job{}, unresolved(c)
			}
		}
	}
	args := g.Args()
	for _, name := range slices.Sorted(maps.Keys(args)) {
		j.request.args = append(j.request.args, field{name, args[name]})
	}
	for _, in := range g.Inputs() {
		if in.Capability == notebook.CapArgs {
			continue
		}
		if !slices.Contains(g.Capabilities(), in.Capability) {
			return refuse("the input %q comes without its capability", in.Capability)
		}
		if taken, err := j.grants.add(in); err != nil {
			return job{}, err
		} else if taken {
			continue
		}
		j.request.inputs = append(j.request.inputs, field{string(in.Capability), string(in.Value)})
	}
	return j, j.check()
}

func (j *job) kind() kind { return kind{j.language, j.limits} }

func (j *job) check() error {
	l := j.limits
	if l.Time <= 0 || l.Memory <= 0 || l.Output <= 0 || l.Source <= 0 ||
		l.Time > maxTime || l.Memory > maxMemory || l.Output > maxOutput || l.Source > maxSource {
		return notebook.Errorf(notebook.CodeInvalid, "the limits %+v cannot be kept", l).With("see noted policy show")
	}
	if n, most := size(j.request.before)+len(j.request.source)+size(j.request.args), j.kind().source(); n > most {
		hint := "make them smaller, or raise limits.source in policy.toml"
		if most == notebook.MaxModuleText {
			hint = "make the module smaller: compile it for size and strip it"
		}
		return notebook.Errorf(notebook.CodeExhausted, "the fence, what it includes and its arguments are %d bytes, the limit is %d", n, most).With("%s", hint)
	}
	if n := size(j.request.inputs); n > maxInputs {
		return notebook.Errorf(notebook.CodeExhausted, "what the fence is given is %d bytes, the limit is %d", n, maxInputs)
	}
	if len(j.request.before) >= notebook.MaxClosure {
		return notebook.Errorf(notebook.CodeExhausted, "%d included fences are too many, the limit is %d", len(j.request.before), notebook.MaxIncludes)
	}
	if len(j.request.args) > maxFields {
		return notebook.Errorf(notebook.CodeExhausted, "%d arguments are too many, the limit is %d", len(j.request.args), maxFields)
	}
	return nil
}
