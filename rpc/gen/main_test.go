package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The committed code is what the proto files give, no file more and none less.
func TestGeneratedCodeIsCurrent(t *testing.T) {
	want, err := generate("..")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string][]byte{}
	paths, err := generated("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		have["notedv1/"+filepath.Base(path)] = b
	}
	if a, b := slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(have)); !slices.Equal(a, b) {
		t.Fatalf("the proto files give %v, committed are %v; run: go generate ./rpc", a, b)
	}
	for name := range want {
		if !bytes.Equal(want[name], have[name]) {
			t.Errorf("%s is not what the proto files give; run: go generate ./rpc", name)
		}
	}
}
