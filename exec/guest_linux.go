package exec

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/tetratelabs/wazero"
	"golang.org/x/sys/unix"
)

// reserve reserves address space for the memory of a guest, which can never have
// more than all of the limit. None of it is resident before it is touched.
func reserve(most int64) (*linear, error) {
	area, err := unix.Mmap(-1, 0, int(min(most&^(wasmPage-1), 4<<30)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("the memory of the engine: %w", err)
	}
	return &linear{area: area, most: uint64(len(area))}, nil
}

// load maps the engine file and the code that was compiled of it, which the
// parent has verified and handed in, and closes their descriptors.
func (g *guest) load() error {
	var st unix.Stat_t
	if err := unix.Fstat(fdWasm, &st); err != nil {
		return err
	}
	module, err := unix.Mmap(fdWasm, 0, int(st.Size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	g.file = module
	cache, err := wazero.NewCompilationCacheWithDir(fmt.Sprintf("/proc/self/fd/%d", fdLinks))
	if err != nil {
		return err
	}
	if err := g.prepare(context.Background(), engineConfig().WithCompilationCache(cache), module); err != nil {
		return err
	}
	for fd := fdWasm; fd <= fdLinks; fd++ {
		if err := unix.Close(fd); err != nil {
			return err
		}
	}
	return nil
}

// settle lets go of what was resident for loading only.
func (g *guest) settle() {
	_ = unix.Madvise(g.file, unix.MADV_DONTNEED)
	debug.FreeOSMemory()
}
