package rpc

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"noted/notebook"
	"noted/rpc/notedv1"
)

var (
	page16 = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 16))
	hash32 = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{2}, 32))
)

// A person with curl can use the daemon, and what they misspell is refused by
// name: an unknown field would be a precondition that is not kept.
func TestJSONRequests(t *testing.T) {
	put := func(fields string) string { return `{"put":{"page":"` + page16 + `",` + fields + `}}` }
	edit := func(fields string) string { return `{"edit":{"page":"` + page16 + `","base":{},` + fields + `}}` }
	for _, c := range []struct {
		name, route, body string
		says              string // empty: it is done
	}{
		{"a page by its title", getRoute, `{"ref":"today"}`, ""},
		{"an empty message", statusRoute, `{}`, ""},
		{"the owner's put", putRoute, put(`"base":{"heads":["` + hash32 + `"]},"body":"x"`), ""},
		{"an empty base that is there", putRoute, put(`"base":{},"body":"x"`), ""},
		{"the proto's own names", putRoute, put(`"base":{},"body":"x","as_typed":true`), ""},
		{"an edit", editRoute, edit(`"splices":[{"at":1,"delete":"2","insert":"x"}],"via":"stdin"`), ""},

		{"no base", putRoute, put(`"body":"x"`), "put.base is missing"},
		{"a base of null", putRoute, put(`"base":null,"body":"x"`), "put.base is missing"},
		{"a misspelt base", putRoute, put(`"bsae":{},"body":"x"`), `unknown field "bsae"`},
		{"a base in the wrong place", putRoute, `{"put":{"page":"` + page16 + `","body":"x"},"base":{}}`, `unknown field "base"`},
		{"a field of nobody", getRoute, `{"ref":"today","role":"owner"}`, `unknown field "role"`},
		{"a field of nobody, deep", editRoute, edit(`"splices":[{"at":1,"length":2}]`), `unknown field "length"`},
		{"a class of its own", putRoute, put(`"base":{},"class":"CLASS_TYPED"`), `unknown field "class"`},
		{"a field twice", getRoute, `{"ref":"today","ref":"tomorrow"}`, "duplicate field"},
		{"a field under both names", putRoute, put(`"base":{},"asTyped":false,"as_typed":true`), "duplicate field"},
		{"a field in other letters", getRoute, `{"REF":"today"}`, `unknown field "REF"`},
		{"a comment", getRoute, `{"ref":"today"} // please`, "syntax error"},
		{"two messages", getRoute, `{"ref":"today"}{"ref":"x"}`, "unexpected token"},
		{"half a message", getRoute, `{"ref":"today"`, "unexpected EOF"},
		{"no message", getRoute, ``, "send {}"},
		{"a list", getRoute, `[]`, "unexpected token"},
		{"text that is not UTF-8", getRoute, "{\"ref\":\"a\xff\"}", "invalid UTF-8"},
		{"a deep nest", getRoute, `{"ref":` + strings.Repeat("[", 100000), "invalid value"},
		{"an id in short", putRoute, `{"put":{"page":"AQE=","base":{}}}`, "put.page has 2 bytes instead of 16"},
		{"no id", putRoute, `{"put":{"base":{}}}`, "put.page is missing"},
		{"nothing at all", putRoute, `{}`, "put is missing"},
		{"a head in short", putRoute, put(`"base":{"heads":["AQE="]}`), "put.base.heads[0] has 2 bytes instead of 32"},
		{"a head too long", putRoute, put(`"base":{"heads":["` + hash32 + `","` + base64.StdEncoding.EncodeToString(make([]byte, 33)) + `"]}`), "put.base.heads[1] has 33 bytes"},
		{"a door that is none", putRoute, put(`"base":{},"via":"keyboard"`), `put.via is "keyboard"`},
		{"a place before the text", editRoute, edit(`"splices":[{"at":0},{"at":-1}]`), "edit.splices[1].at is -1"},
		{"a number that is none", editRoute, edit(`"splices":[{"at":1.5}]`), "invalid value"},
		{"a title that is too long", "/noted.v1.Pages/Create", `{"title":"` + strings.Repeat("t", notebook.MaxTitle+1) + `"}`, "title has 513 bytes and may have 512"},
		{"a run of what was not shown", "/noted.v1.Fences/Run", `{"request":{"ref":{"page":"` + page16 + `","fence":"` + page16 + `"}}}`, "request.ref.shown is missing"},
		{"an approval of nothing", "/noted.v1.Fences/Approve", `{"request":{"ref":{"page":"` + page16 + `","fence":"` + page16 + `","shown":"` + hash32 + `"}}}`, "digest is missing"},
		{"a rung that is none", "/noted.v1.Fences/Propose", `{"request":{"ref":{"page":"` + page16 + `","fence":"` + page16 + `","shown":"` + hash32 + `"},"rung":9}}`, "request.rung has the unknown value 9"},
		{"a rung that is no word", "/noted.v1.Fences/Propose", `{"request":{"rung":"RUNG_ROOT"}}`, "invalid value"},
		{"a scope that is none", "/noted.v1.Fences/Propose", `{"request":{"ref":{"page":"` + page16 + `","fence":"` + page16 + `","shown":"` + hash32 + `"},"scope":"forever"}}`, `request.scope is "forever"`},
		{"too many args", "/noted.v1.Fences/Run", `{"request":{"ref":{"page":"` + page16 + `","fence":"` + page16 + `","shown":"` + hash32 + `"},"args":{` + manyArgs(maxArgs+1, 1) + `}}}`, "request.args has 65 entries"},
		{"args that are too long", "/noted.v1.Fences/Run", `{"request":{"ref":{"page":"` + page16 + `","fence":"` + page16 + `","shown":"` + hash32 + `"},"args":{` + manyArgs(1, maxArgsSize) + `}}}`, "request.args has 1 entries"},
		{"as many args as may be", "/noted.v1.Fences/Run", `{"request":{"ref":{"page":"` + page16 + `","fence":"` + page16 + `","shown":"` + hash32 + `"},"args":{` + manyArgs(maxArgs, maxArgsSize/maxArgs-3) + `}}}`, ""},
		{"a yes to nothing", "/noted.v1.Asks/Answer", `{"answers":[{"ask":1}],"yes":true}`, "digest is missing"},
		{"a no to nothing", "/noted.v1.Asks/Answer", `{"answers":[{"ask":1}]}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			got := post(t, plainClient(t, h.path), c.route, ownerToken, c.body)
			if c.says == "" {
				if got.status != http.StatusOK || h.count() != 1 {
					t.Errorf("the answer is %d %s", got.status, got.body)
				}
				return
			}
			if got.Code != "invalid_argument" || !strings.Contains(got.Message, c.says) {
				t.Errorf("the answer is %s, want one that says %q", got.body, c.says)
			}
			if h.count() != 0 {
				t.Error("it reached the daemon")
			}
		})
	}
}

// manyArgs is n entries with values of so many bytes.
func manyArgs(n, size int) string {
	var s []string
	for i := range n {
		s = append(s, fmt.Sprintf(`"%03d":"%s"`, i, strings.Repeat("v", size)))
	}
	return strings.Join(s, ",")
}

// Times and lengths that no calendar has are refused; their neighbours are read.
func TestTimesThatAreNone(t *testing.T) {
	for _, c := range []struct {
		t  *timestamppb.Timestamp
		ok bool
	}{
		{nil, true},
		{&timestamppb.Timestamp{}, true},
		{timestamppb.New(lastTime), true},
		{&timestamppb.Timestamp{Seconds: lastTime.Unix() + 1}, false},
		{&timestamppb.Timestamp{Seconds: math.MinInt64}, false},
		{&timestamppb.Timestamp{Nanos: 1e9}, false},
		{&timestamppb.Timestamp{Nanos: -1}, false},
	} {
		r := &reader{request: true}
		if r.time("expires", c.t); (r.refused() == nil) != c.ok {
			t.Errorf("%v: %v", c.t, r.refused())
		}
	}
	for _, c := range []struct {
		d  *durationpb.Duration
		ok bool
	}{
		{nil, true},
		{durationpb.New(-5), true},
		{&durationpb.Duration{Seconds: 9e9}, true},
		{&durationpb.Duration{Seconds: 1e10}, false},
		{&durationpb.Duration{Seconds: -1e10}, false},
		{&durationpb.Duration{Seconds: math.MaxInt64}, false},
		{&durationpb.Duration{Seconds: 1, Nanos: -1}, false},
	} {
		r := &reader{}
		if r.duration("time", c.d); (r.garbled() == nil) != c.ok {
			t.Errorf("%v: %v", c.d, r.garbled())
		}
	}
}

// What a plain request asks for comes back as plain JSON.
func TestAPlainAnswer(t *testing.T) {
	h := newHouse(t)
	h.answers["Page"] = &notebook.PageView{PageInfo: notebook.PageInfo{ID: notebook.PageID{0: 1}, Title: "Groceries"}, Body: "milk\n"}
	got := post(t, plainClient(t, h.path), getRoute, viewerToken, `{"ref":"Groceries"}`)
	if got.status != http.StatusOK || !strings.Contains(got.body, `"body":"milk\n"`) || !strings.Contains(got.body, `"title":"Groceries"`) {
		t.Errorf("the answer is %d %s", got.status, got.body)
	}
	if call := h.last(); call.method != "Page" || call.args[0] != "Groceries" {
		t.Errorf("the daemon saw %v", call)
	}
}

// The binary form is as strict, at every depth.
func TestBinaryRequestsWithUnknownFields(t *testing.T) {
	whole := &notedv1.EditPageRequest{Edit: &notedv1.Edit{
		Page: bytes.Repeat([]byte{1}, 16), Base: &notedv1.Revision{}, Splices: []*notedv1.Splice{{At: 1}, {At: 2}},
	}}
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
	binary := func(q *http.Request) { q.Header.Set("Content-Type", "application/proto") }
	for name, c := range map[string]struct {
		spoil func(*notedv1.EditPageRequest)
		says  string
	}{
		"none":      {func(*notedv1.EditPageRequest) {}, ""},
		"above":     {func(m *notedv1.EditPageRequest) { m.ProtoReflect().SetUnknown(unknown) }, "noted.v1.EditPageRequest has the unknown field 99"},
		"in it":     {func(m *notedv1.EditPageRequest) { m.Edit.ProtoReflect().SetUnknown(unknown) }, "noted.v1.Edit has the unknown field 99"},
		"in a list": {func(m *notedv1.EditPageRequest) { m.Edit.Splices[1].ProtoReflect().SetUnknown(unknown) }, "noted.v1.Splice has the unknown field 99"},
		"in a leaf": {func(m *notedv1.EditPageRequest) { m.Edit.Base.ProtoReflect().SetUnknown(unknown) }, "noted.v1.Revision has the unknown field 99"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			m := proto.CloneOf(whole)
			c.spoil(m)
			b, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got := post(t, plainClient(t, h.path), editRoute, ownerToken, string(b), binary)
			if !strings.Contains(got.Message, c.says) || (got.Code == "invalid_argument") != (c.says != "") || (h.count() == 1) != (c.says == "") {
				t.Errorf("the answer is %d %s, %d calls reached the daemon", got.status, got.body, h.count())
			}
		})
	}
}

// A client reads the answers of a daemon that is newer than itself.
func TestAnswersWithUnknownFieldsAreRead(t *testing.T) {
	m := &notedv1.Status{Version: "9"}
	m.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var got notedv1.Status
	if err := (binaryCodec{tolerant: true}).Unmarshal(b, &got); err != nil || got.GetVersion() != "9" {
		t.Errorf("it reads %q, %v", got.GetVersion(), err)
	}
	if err := (binaryCodec{}).Unmarshal(b, &got); err == nil {
		t.Error("the server's codec takes it too")
	}
}

// An answer that does not fit the notebook's types is not half understood.
func TestAnswersThatAreNotRight(t *testing.T) {
	r := &reader{}
	within(r, "page", &notedv1.PageView{Info: &notedv1.PageInfo{Id: []byte{1}}}, readPageView)
	e := wantCode(t, r.garbled(), notebook.CodeFailed)
	if !strings.Contains(e.Message, "page.info.id has 1 bytes instead of 16") || e.Hint == "" {
		t.Errorf("the error is %v", e)
	}
	r = &reader{}
	within(r, "page", &notedv1.PageView{Info: &notedv1.PageInfo{Id: make([]byte, 16)}}, readPageView)
	if err := r.garbled(); err != nil {
		t.Errorf("an answer that is right: %v", err)
	}
}

// Whatever bytes come, a request that is taken means the same when it is
// written again, and nothing panics.
func FuzzEditRequest(f *testing.F) {
	good, err := proto.Marshal(&notedv1.EditPageRequest{Edit: writeEdit(&notebook.Edit{
		Page: notebook.PageID{1}, Base: notebook.Revision{{1}, {2}}, Splices: []notebook.Splice{{At: 1, Delete: 2, Insert: "é"}}, Via: viaStdin,
	})})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, false)
	f.Add([]byte(`{"edit":{"page":"`+page16+`","base":{"heads":["`+hash32+`"]},"splices":[{"at":1}]}}`), true)
	f.Add([]byte(`{"edit":{"edit":{}}}`), true)
	f.Add([]byte{0x0a, 0x80, 0x80, 0x80, 0x80, 0x01}, false)
	f.Fuzz(func(t *testing.T, b []byte, asJSON bool) {
		var m notedv1.EditPageRequest
		var err error
		if asJSON {
			err = jsonCodec{"json"}.Unmarshal(b, &m)
		} else {
			err = binaryCodec{}.Unmarshal(b, &m)
		}
		if err != nil {
			return
		}
		r := &reader{request: true}
		e := needed(r, "edit", m.GetEdit(), readEdit)
		if r.refused() != nil {
			return
		}
		if e.Base == nil || e.Page.IsZero() && !bytes.Equal(m.GetEdit().GetPage(), make([]byte, 16)) {
			t.Fatalf("taken without page or base: %+v", e)
		}
		again := within(&reader{request: true}, "edit", writeEdit(&e), readEdit)
		if !e.Page.IsZero() && !reflect.DeepEqual(again, e) {
			t.Fatalf("it reads as %+v, and written again as %+v", e, again)
		}
	})
}
