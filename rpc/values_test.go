package rpc

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"noted/notebook"
)

// Everything that a Backend takes and answers crosses the socket unchanged, in
// both directions. Values are made from the notebook's types by reflection, so
// a field that is added there and forgotten here fails this test.
func TestValuesCrossTheSocket(t *testing.T) {
	h := newHouse(t)
	client := reflect.ValueOf(h.client(t, RoleOwner))
	backend := reflect.TypeFor[Backend]()
	for i := range backend.NumMethod() {
		method := backend.Method(i)
		t.Run(method.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { crosses(t, h.desk, client.MethodByName(method.Name), method) })
		})
	}
}

// crosses makes one call of a method with values of its types.
func crosses(t *rapid.T, d *desk, call reflect.Value, method reflect.Method) {
	args := []reflect.Value{reflect.ValueOf(context.Background())}
	var sent []any            // what the desk has to see
	var streamed, given []any // what the client's function saw, and has to see
	for i := 1; i < method.Type.NumIn(); i++ {
		switch in := method.Type.In(i); in {
		case reflect.TypeFor[func(int, string)]():
			d.steps = nil
			for range rapid.IntRange(0, 3).Draw(t, "steps") {
				s := progress{rapid.IntRange(0, math.MaxInt).Draw(t, "done"), rapid.String().Draw(t, "path")}
				d.steps, given = append(d.steps, s), append(given, s)
			}
			args = append(args, reflect.ValueOf(func(done int, path string) { streamed = append(streamed, progress{done, path}) }))
		case reflect.TypeFor[func(notebook.PairEvent) error]():
			d.pairing = answerOf[[]notebook.PairEvent](t)
			for _, e := range d.pairing {
				given = append(given, e)
			}
			args = append(args, reflect.ValueOf(func(e notebook.PairEvent) error { streamed = append(streamed, e); return nil }))
		case reflect.TypeFor[func(notebook.RunOutput) error]():
			d.output = answerOf[[]notebook.RunOutput](t)
			for _, o := range d.output {
				given = append(given, o)
			}
			args = append(args, reflect.ValueOf(func(o notebook.RunOutput) error { streamed = append(streamed, o); return nil }))
		case reflect.TypeFor[func(notebook.Event) error]():
			events := answerOf[[]notebook.Event](t)
			d.events = make(chan notebook.Event, len(events))
			for _, e := range events {
				d.events <- e
				given = append(given, e)
			}
			close(d.events)
			args = append(args, reflect.ValueOf(func(e notebook.Event) error { streamed = append(streamed, e); return nil }))
		default:
			name := ""
			if method.Name == "Append" && i == 3 {
				name = "Via"
			}
			v := generator{request: true}.value(t, in, name)
			args, sent = append(args, v), append(sent, v.Interface())
		}
	}
	var want reflect.Value
	if method.Type.NumOut() == 2 {
		want = generator{}.value(t, method.Type.Out(0), "")
		for want.Kind() == reflect.Pointer && want.IsNil() {
			want = reflect.New(want.Type().Elem())
		}
		d.mu.Lock()
		d.answers[method.Name] = want.Interface()
		d.mu.Unlock()
	}

	out := call.Call(args)
	if err := out[len(out)-1]; !err.IsNil() {
		t.Fatalf("%s(%+v): %v", method.Name, sent, err.Interface())
	}
	if got := d.last(); got.method != method.Name || !equal(got.args, sent) {
		t.Fatalf("the daemon saw %s(%#v)\nthe client asked %s(%#v)", got.method, got.args, method.Name, sent)
	}
	if !equal(streamed, given) {
		t.Fatalf("the client saw the events %#v\nthe daemon gave %#v", streamed, given)
	}
	if want.IsValid() && !reflect.DeepEqual(out[0].Interface(), want.Interface()) {
		t.Fatalf("the client saw %#v\nthe daemon answered %#v", out[0].Interface(), want.Interface())
	}
}

func equal(a, b []any) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }

func answerOf[T any](t *rapid.T) T {
	return generator{}.value(t, reflect.TypeFor[T](), "").Interface().(T)
}

// generator makes values of the notebook's types. What a request may not leave
// out is there in a request.
type generator struct{ request bool }

// numbers are the types that are one of a few numbers, with the last of them.
var numbers = map[reflect.Type]uint8{
	reflect.TypeFor[notebook.Class]():   uint8(notebook.Moved),
	reflect.TypeFor[notebook.Rung]():    uint8(notebook.Host),
	reflect.TypeFor[notebook.Verdict](): uint8(notebook.Cancelled),
	reflect.TypeFor[notebook.Role]():    uint8(notebook.RoleHub),
}

func (g generator) value(t *rapid.T, typ reflect.Type, name string) reflect.Value {
	v := reflect.New(typ).Elem()
	switch typ {
	case reflect.TypeFor[time.Time]():
		if rapid.Bool().Draw(t, "some time") {
			v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(-62135596800+1, 253402300799).Draw(t, "seconds"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()))
		}
		return v
	case reflect.TypeFor[[]byte]():
		if b := rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "bytes"); len(b) > 0 {
			v.SetBytes(b)
		}
		return v
	case reflect.TypeFor[notebook.Task]():
		v.SetString(string(rapid.SampledFrom([]notebook.Task{notebook.NoTask, notebook.Todo, notebook.Done}).Draw(t, "task")))
		return v
	case reflect.TypeFor[notebook.Origin](): // of a row, which says how it stands instead
		return v
	case reflect.TypeFor[notebook.Scope]():
		v.SetString(string(rapid.SampledFrom([]notebook.Scope{"", notebook.ScopeOnce, notebook.ScopeContent}).Draw(t, "scope")))
		return v
	case reflect.TypeFor[notebook.EngineState]():
		v.SetString(string(rapid.SampledFrom([]notebook.EngineState{"", notebook.EngineAbsent, notebook.EngineDamaged, notebook.EngineAdded, notebook.EngineCompiled}).Draw(t, "state")))
		return v
	case reflect.TypeFor[notebook.PairState]():
		v.SetString(string(rapid.SampledFrom([]notebook.PairState{"", notebook.PairWaiting, notebook.PairCompare, notebook.PairDone, notebook.PairFailed}).Draw(t, "state")))
		return v
	}
	switch typ.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int:
		v.SetInt(int64(rapid.IntRange(0, math.MaxInt).Draw(t, "int")))
	case reflect.Int64:
		v.SetInt(rapid.Int64Range(math.MinInt64+1, math.MaxInt64-1).Draw(t, "int64"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint64"))
	case reflect.Uint8:
		last, known := numbers[typ]
		if !known {
			t.Fatalf("%s is a number whose values this test does not know", typ)
		}
		v.SetUint(uint64(rapid.Uint8Range(0, last).Draw(t, "number")))
	case reflect.String:
		s := rapid.String().Draw(t, "string")
		if name == "Via" {
			s = rapid.SampledFrom([]string{"", viaStdin, viaEditor}).Draw(t, "via")
		} else if typ == reflect.TypeFor[notebook.Capability]() {
			s = rapid.StringN(0, 8, maxWord).Draw(t, "capability")
		} else if g.request {
			s = rapid.StringN(0, 16, maxWord).Draw(t, "short string")
		}
		v.SetString(s)
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(rapid.Byte().Draw(t, "byte")))
		}
		if g.request && v.IsZero() {
			v.Index(0).SetUint(1)
		}
	case reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, "length")
		if n > 0 || typ == reflect.TypeFor[notebook.Revision]() && (g.request || rapid.Bool().Draw(t, "no heads")) {
			v.Set(reflect.MakeSlice(typ, 0, n))
		}
		for range n {
			v.Set(reflect.Append(v, g.value(t, typ.Elem(), "")))
		}
	case reflect.Map:
		if n := rapid.IntRange(0, 3).Draw(t, "entries"); n > 0 {
			v.Set(reflect.MakeMap(typ))
			for range n {
				v.SetMapIndex(g.value(t, typ.Key(), ""), g.value(t, typ.Elem(), ""))
			}
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "some") {
			v.Set(reflect.New(typ.Elem()))
			v.Elem().Set(g.value(t, typ.Elem(), ""))
		}
	case reflect.Struct:
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() {
				v.Field(i).Set(g.value(t, f.Type, f.Name))
			}
		}
	default:
		t.Fatalf("this test makes no value of %s", typ)
	}
	return v
}

// A time that a hostile device claims, and text that is not UTF-8, are shown as
// well as they can be instead of hiding the whole answer.
func TestWhatCannotBeCarriedIsShownAsTheNearest(t *testing.T) {
	h := newHouse(t)
	c := h.client(t, RoleOwner)
	h.answers["Pages"] = []notebook.PageInfo{
		{Title: "a\xffb", Changed: time.UnixMilli(math.MaxInt64)},
		{Title: "c", Changed: time.UnixMilli(math.MinInt64), Notes: []string{"\xc3"}},
	}
	got, err := c.Pages(within10(t))
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Title != "a\uFFFDb" || got[1].Notes[0] != "\uFFFD" {
		t.Errorf("the text came as %q and %q", got[0].Title, got[1].Notes[0])
	}
	if !got[0].Changed.Equal(lastTime) || got[1].Changed.Year() != 1 {
		t.Errorf("the times came as %v and %v", got[0].Changed, got[1].Changed)
	}

	h.answers["RunInfo"] = &notebook.RunInfo{Result: notebook.Result{Output: "h\xff\xfet\xff", Head: 2}}
	run, err := c.RunInfo(within10(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	if r := run.Result; r.Output[:r.Head] != "h\uFFFD" || r.Output[r.Head:] != "\uFFFDt\uFFFD" {
		t.Errorf("the output came as head %q and tail %q", r.Output[:r.Head], r.Output[r.Head:])
	}
}

// What a person writes is never changed on its way in.
func TestTextThatIsNotUTF8IsNotSent(t *testing.T) {
	h := newHouse(t)
	c := h.client(t, RoleOwner)
	put := notebook.Put{Page: notebook.PageID{1}, Base: notebook.Revision{}, Body: "a\xffb"}
	_, err := c.Put(within10(t), put)
	if e := wantCode(t, err, notebook.CodeInvalid); !strings.Contains(e.Message, "body") {
		t.Errorf("the error does not name the field: %v", e)
	}
	if h.count() != 0 {
		t.Error("the daemon saw it")
	}
	put.Body = "a\uFFFDb"
	if _, err := c.Put(within10(t), put); err != nil {
		t.Errorf("the same in UTF-8: %v", err)
	}
}

// Every call of a Backend has one route, and every route a call.
func TestEveryCallHasARoute(t *testing.T) {
	backend := reflect.TypeFor[Backend]()
	table := routes()
	if len(table) != backend.NumMethod() {
		t.Errorf("there are %d routes and %d calls", len(table), backend.NumMethod())
	}
	var streams []string
	for i := range backend.NumMethod() {
		m := backend.Method(i)
		if in := m.Type.In(m.Type.NumIn() - 1); in.Kind() == reflect.Func {
			streams = append(streams, m.Name)
		}
	}
	var open []string
	for _, r := range table {
		if r.stream {
			_, method, _ := strings.Cut(r.name, ".")
			open = append(open, method)
		}
	}
	slices.Sort(open)
	if !slices.Equal(open, streams) {
		t.Errorf("the routes that stream are %v, the calls %v", open, streams)
	}
}
