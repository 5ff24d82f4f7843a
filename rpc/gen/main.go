package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// The output lies in rpc/notedv1: one package for messages and services.
const module = "module=noted/rpc"

// plugins are the tools with their parameters. "simple" makes handlers take
// and return messages without connect's wrappers.
var plugins = []struct{ tool, parameter string }{
	{"protoc-gen-go", module},
	{"protoc-gen-connect-go", module + ",package_suffix,simple"},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: gen DIR, where DIR is the directory of package rpc")
	}
	files, err := generate(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if err := write(os.Args[1], files); err != nil {
		log.Fatal(err)
	}
}

// generate compiles the proto files under dir and returns the generated files
// by their path relative to dir.
func generate(dir string) (map[string][]byte, error) {
	sources, err := filepath.Glob(filepath.Join(dir, "noted", "v1", "*.proto"))
	if err != nil {
		return nil, err
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("no proto files under %s", dir)
	}
	names := make([]string, 0, len(sources))
	for _, s := range sources {
		names = append(names, "noted/v1/"+filepath.Base(s))
	}
	slices.Sort(names)

	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(context.Background(), names...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: names}
	seen := map[string]bool{}
	for _, file := range compiled {
		request.ProtoFile = appendFile(request.ProtoFile, file, seen)
	}

	out := map[string][]byte{}
	for _, p := range plugins {
		request.Parameter = proto.String(p.parameter)
		if err := run(p.tool, request, out); err != nil {
			return nil, fmt.Errorf("%s: %w", p.tool, err)
		}
	}
	return out, nil
}

// appendFile appends file after everything that it imports, each once, which
// is the order that plug-ins ask for.
func appendFile(to []*descriptorpb.FileDescriptorProto, file protoreflect.FileDescriptor, seen map[string]bool) []*descriptorpb.FileDescriptorProto {
	if seen[file.Path()] {
		return to
	}
	seen[file.Path()] = true
	for i := range file.Imports().Len() {
		to = appendFile(to, file.Imports().Get(i).FileDescriptor, seen)
	}
	return append(to, protodesc.ToFileDescriptorProto(file))
}

// run gives request to a plug-in and puts what it generates into out.
func run(tool string, request *pluginpb.CodeGeneratorRequest, out map[string][]byte) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "tool", tool)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stderr = os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(answer, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, f := range response.File {
		out[f.GetName()] = []byte(f.GetContent())
	}
	return nil
}

// generated lists the generated files that are in dir now. Beside them the
// package has its documentation, which is written by hand.
func generated(dir string) ([]string, error) {
	messages, err := filepath.Glob(filepath.Join(dir, "notedv1", "*.pb.go"))
	if err != nil {
		return nil, err
	}
	services, err := filepath.Glob(filepath.Join(dir, "notedv1", "*.connect.go"))
	return append(messages, services...), err
}

// write makes the generated directory hold files and no other generated file.
func write(dir string, files map[string][]byte) error {
	old, err := generated(dir)
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
