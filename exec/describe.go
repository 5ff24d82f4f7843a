package exec

import (
	"fmt"

	"noted/notebook"
	"noted/trust"
)

// Describe says what [Resolve] found, for a person to read before they agree to
// it. It is empty where there is nothing to say beyond the capability's name.
func Describe(c notebook.Capability, pin []byte) string {
	var g grants
	if _, err := g.add(trust.Input{Capability: c, Value: pin}); err != nil {
		return ""
	}
	for _, d := range g.dirs {
		return fmt.Sprintf("%s, inode %d of device %d", d.real, d.id.inode, d.id.device)
	}
	for _, p := range g.programs {
		return fmt.Sprintf("%s with SHA-256 %v", p.real, p.digest)
	}
	return ""
}
