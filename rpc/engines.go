package rpc

import (
	"context"

	"noted/notebook"
	"noted/rpc/notedv1"
)

func writeEngineInfo(e *notebook.EngineInfo) *notedv1.EngineInfo {
	return &notedv1.EngineInfo{
		Name: text(e.Name), Version: text(e.Version), Digest: idBytes(e.Digest), Bytes: e.Bytes,
		Source: text(e.Source), Licence: text(e.Licence), State: string(e.State),
	}
}

func readEngineInfo(r *reader, m *notedv1.EngineInfo) notebook.EngineInfo {
	return notebook.EngineInfo{
		Name: m.GetName(), Version: m.GetVersion(), Digest: id[notebook.Hash](r, "digest", m.GetDigest()), Bytes: m.GetBytes(),
		Source: m.GetSource(), Licence: m.GetLicence(),
		State: word(r, "state", m.GetState(), notebook.EngineAbsent, notebook.EngineDamaged, notebook.EngineAdded, notebook.EngineCompiled),
	}
}

// Engines lists the engines that noted knows.
func (c *LocalClient) Engines(ctx context.Context) ([]notebook.EngineInfo, error) {
	return ask(ctx, c.engines.List, &notedv1.ListEnginesRequest{}, func(r *reader, m *notedv1.ListEnginesResponse) []notebook.EngineInfo {
		return every(r, "engines", m.GetEngines(), readEngineInfo)
	})
}

// AddEngine has the daemon keep an engine file, and compile it.
func (c *LocalClient) AddEngine(ctx context.Context, file string) (*notebook.EngineInfo, error) {
	return ask(ctx, c.engines.Add, &notedv1.AddEngineRequest{File: file}, func(r *reader, m *notedv1.AddEngineResponse) *notebook.EngineInfo {
		return needed(r, "engine", m.GetEngine(), pointer(readEngineInfo))
	})
}

// RemoveEngine has the daemon forget an engine file.
func (c *LocalClient) RemoveEngine(ctx context.Context, name string) error {
	return tell(ctx, c.engines.Remove, &notedv1.RemoveEngineRequest{Name: name})
}

type enginesService struct{}

func (enginesService) List(ctx context.Context, _ *notedv1.ListEnginesRequest) (*notedv1.ListEnginesResponse, error) {
	es, err := backend(ctx).Engines(ctx)
	if err != nil {
		return nil, err
	}
	return &notedv1.ListEnginesResponse{Engines: all(es, writeEngineInfo)}, nil
}

func (enginesService) Add(ctx context.Context, q *notedv1.AddEngineRequest) (*notedv1.AddEngineResponse, error) {
	r := &reader{request: true}
	file := r.short("file", q.GetFile(), maxPath)
	if err := r.refused(); err != nil {
		return nil, err
	}
	e, err := backend(ctx).AddEngine(ctx, file)
	if err != nil {
		return nil, err
	}
	return &notedv1.AddEngineResponse{Engine: writeEngineInfo(e)}, nil
}

func (enginesService) Remove(ctx context.Context, q *notedv1.RemoveEngineRequest) (*notedv1.RemoveEngineResponse, error) {
	r := &reader{request: true}
	name := r.short("name", q.GetName(), maxName)
	if err := r.refused(); err != nil {
		return nil, err
	}
	if err := backend(ctx).RemoveEngine(ctx, name); err != nil {
		return nil, err
	}
	return &notedv1.RemoveEngineResponse{}, nil
}
