//go:build !linux

package exec

import (
	"context"
	"errors"
)

// engineFiles are an engine as a worker gets it, where there are workers.
type engineFiles struct{}

func (*Engines) files(context.Context, string) (*engineFiles, error) {
	return nil, errors.ErrUnsupported
}

func reserve(int64) (*linear, error) { return nil, errors.New("there is no jail for an engine here") }

func (g *guest) load() error { return errors.ErrUnsupported }

func (g *guest) settle() {}
