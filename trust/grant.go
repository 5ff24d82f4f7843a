package trust

import (
	"maps"
	"slices"

	"noted/notebook"
)

// Grant is the permission to run exact bytes in a stated way, once. Only
// [Decide] makes one that counts.
type Grant struct {
	valid        bool
	page         notebook.PageID
	fence        notebook.FenceID
	closure      notebook.Closure
	included     []Included
	rung         notebook.Rung
	capabilities []notebook.Capability
	inputs       []Input
	args         map[string]string
	limits       notebook.Limits
	approval     uint64
	local        bool
	rule         string
}

// Valid reports whether g was made by [Decide]. The zero value is not.
func (g Grant) Valid() bool { return g.valid }

// Page and Fence say where the closure was read.
func (g Grant) Page() notebook.PageID   { return g.page }
func (g Grant) Fence() notebook.FenceID { return g.fence }

// Closure is what may run: these bytes and no others.
func (g Grant) Closure() notebook.Closure { return slices.Clone(g.closure) }

// Included are the fences of Closure but the last, in its order.
func (g Grant) Included() []notebook.FenceID {
	var ids []notebook.FenceID
	for _, in := range g.included {
		ids = append(ids, in.Fence)
	}
	return ids
}

// Rung is how much the run may reach.
func (g Grant) Rung() notebook.Rung { return g.rung }

// Capabilities are what the run has beyond nothing; empty at strict.
func (g Grant) Capabilities() []notebook.Capability { return slices.Clone(g.capabilities) }

// Inputs are the values of the capabilities.
func (g Grant) Inputs() []Input { return slices.Clone(g.inputs) }

// Limits bound the run.
func (g Grant) Limits() notebook.Limits { return g.limits }

// Approval is the number of the approval that the grant spends or rests on, 0 for none.
func (g Grant) Approval() uint64 { return g.approval }

// Local reports whether the closure stood local: such runs keep a slot of their own.
func (g Grant) Local() bool { return g.local }

// Args are those that the fence declares, as the requester passed them or by
// their defaults, also at strict.
func (g Grant) Args() map[string]string { return maps.Clone(g.args) }

// Rule says what allowed the run: a line of the policy and where it stands, or
// the approval.
func (g Grant) Rule() string { return g.rule }

// Narrow is a grant that lets the same bytes run at the rung and with the
// capabilities, if g lets them have at least that. The rest of g is not in it.
func (g Grant) Narrow(rung notebook.Rung, capabilities []notebook.Capability) (Grant, bool) {
	lacks := func(c notebook.Capability) bool { return !slices.Contains(g.capabilities, c) }
	if !g.valid || rung <= notebook.NoRung || rung > g.rung || slices.ContainsFunc(capabilities, lacks) ||
		rung == notebook.Strict && len(capabilities) > 0 {
		return Grant{}, false
	}
	g.rung, g.capabilities = rung, slices.Clone(capabilities)
	g.inputs = slices.DeleteFunc(slices.Clone(g.inputs), func(in Input) bool { return !slices.Contains(capabilities, in.Capability) })
	return g, true
}
