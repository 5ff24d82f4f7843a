//go:build !linux

package exec

import (
	"context"
	"io"
	"os"
	"runtime"

	"noted/notebook"
)

const layerSeccomp = "seccomp"

// spawner has nothing to start: outside of Linux there is no jail yet, and
// without one nothing runs.
type spawner struct{}

// roles are what else this program is started as, by argv[0].
var roles map[string]func([]string) int

func openJail(kind) (*spawner, *worker, error) {
	return nil, nil, noJail(runtime.GOOS)
}

func (*spawner) close() {}

// openGranted has nothing to open: no run gets here.
func (r *Runner) openGranted(_ context.Context, k kind, _ *grants) (*worker, func(), error) {
	_, _, err := openJail(k)
	return nil, nil, err
}

// openHost neither: what a shell starts could not be ended as a whole.
func (r *Runner) openHost(ctx context.Context, k kind) (*worker, func(), error) {
	return r.openGranted(ctx, k, nil)
}

func endTree(int) {}

// inherited is what a granted run leaves open, which is nothing here.
type inherited struct {
	dirs     []*dirGrant
	pipes    int
	net      *netGrant
	programs *launcher
}

// launcher starts programs where there is a jail for them.
type launcher struct{}

func (*launcher) names() []string { return nil }

func (*launcher) run(context.Context, string, []string, io.Reader, io.Writer, io.Writer) (int, error) {
	return 0, noJail(runtime.GOOS)
}

func inherit(notebook.Limits, []string) (*inherited, error) { return &inherited{}, nil }

func (*spawner) worker(k kind, _ *engineFiles) (*worker, error) {
	_, _, err := openJail(k)
	return nil, err
}

func (*worker) alive() bool { return false }
func (*worker) peak() int64 { return 0 }

func ending(p *os.ProcessState, _ notebook.Limits) end { return end{code: p.ExitCode()} }

func closeInherited(int) {}

func seal(notebook.Limits, *inherited, engine) ready {
	return ready{missing: layerSeccomp, reason: noJail(runtime.GOOS).reason}
}
