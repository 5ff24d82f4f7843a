package notebook

import "time"

// The types of this file are what the daemon shows to its clients and what
// they ask of it. They are values: nothing in them can be acted through.

// Revision is a page's state at a time: its sorted automerge heads.
type Revision []Hash

// PageInfo is a page without its body.
type PageInfo struct {
	ID       PageID
	Title    string
	Revision Revision
	Size     int // bytes of the body
	Fences   int
	Changed  time.Time // of the newest entry, as its author claims
	Deleted  bool
	Notes    []string // what a person should know: an undeleted page, a title held twice
}

// PageView is a page with its body.
type PageView struct {
	PageInfo
	Body   string
	Fences []FenceInfo
}

// Splice replaces Delete code points at At with Insert. The splices of one
// edit all speak of the same base revision, ascend, and do not overlap.
type Splice struct {
	At     int
	Delete int
	Insert string
}

// Edit is a change of one page's body against the revision the client saw.
type Edit struct {
	Page    PageID
	Base    Revision // mandatory
	Splices []Splice
	Via     string // "stdin" or "editor" where the text did not come from a person's keys; can only lower the class
}

// Put replaces a whole body; characters that both texts share keep their authors.
type Put struct {
	Page     PageID
	Base     Revision
	Body     string
	Via      string
	AsTyped  bool // the person vouches for text that did not come from keys; needs presence
	Presence Presence
}

// Presence is the proof that a person is there.
type Presence struct {
	PIN   string // where the home has one
	Typed string // otherwise the sentence that the refusal asked for, typed on a terminal
}

// FenceInfo is a fence with what noted thinks of it.
type FenceInfo struct {
	Page     PageID
	ID       FenceID
	Number   int // the Nth fence of its page, from 1
	Language string
	Info     string
	Code     string
	Hash     Hash   // of the closure; requests to run and approve name it; zero if Unseen
	Standing string // "local", or the foreign authors as "device:NAME agent:NAME import:SOURCE structure"
	Decision string // what a request to run would get: a rung, "ask" or "refuse"
	Reason   string // why, in one sentence
	Approved []Approval
	Last     *RunInfo // newest result here, nil if none
	Stale    bool     // Last is of other bytes
	Includes []Included
	Unseen   bool // there were too many includes on its page to look at all at once; [Explanation] looks at it alone
}

// Included is a fence that another one includes, as this device has it. Its
// bytes are in the closure, at the same place as in the list.
type Included struct {
	Page     PageID
	Title    string // of its page
	Fence    FenceID
	Standing string // of this fence alone
}

// Range is a run of code points of a page by one author.
type Range struct {
	From, To int
	Text     string // visible text, or what was deleted
	Author   Author
	Name     string // the author as this device calls it
	Deleted  bool   // a deletion inside the fence counts as its deleter's authorship
}

// Explanation answers "noted fence why".
type Explanation struct {
	Fence  FenceInfo
	Ranges []Range
	Rule   string   // the rule that decided
	Change []string // what would change it

	Closure Closure // the exact bytes, what it includes first
}

// FenceRef addresses a fence as the client saw it.
type FenceRef struct {
	Page  PageID
	Fence FenceID
	Shown Hash // of the closure that was shown; a mismatch is refused as stale
}

// RunRequest asks to run a fence.
type RunRequest struct {
	FenceRef
	Args map[string]string
}

// RunInfo is one record of the ledger that stands for a run or a refusal.
type RunInfo struct {
	Number   uint64 // in this device's ledger
	Page     PageID
	Title    string
	Fence    FenceID
	Language string
	Standing string
	Client   string
	State    string // "running", "done", "refused"
	Reason   string // of a refusal, and of an end that is not the fence's own doing
	Result   Result

	Engine       Hash         // of the engine that ran it; zero of a refusal
	Capabilities []Capability // that it had
	Rule         string       // the line of the policy, or the approval, that decided
	Approval     uint64       // that it rests on; 0: none
	Replays      uint64       // the run that it did again; 0: it is no replay
}

// RunOutput is a piece of what a run wrote.
type RunOutput struct {
	Number  uint64 // of the run
	Text    string // hostile; whole characters
	Dropped int64  // bytes before it that are not told, because whoever listens did not keep up
}

// Replay is a run that was done again with what it had been given, beside it.
type Replay struct {
	Run     RunInfo  // the new one
	Of      RunInfo  // the old one
	Differs []string // how the new one is not the old one again; empty: they are the same
}

// Scope says how long an approval lasts.
type Scope string

const (
	ScopeOnce    Scope = "once"    // spent with the run
	ScopeContent Scope = "content" // until the bytes change or it expires
)

// ProposalRequest asks what an approval of a fence would be.
type ProposalRequest struct {
	FenceRef
	Rung         Rung // Strict or Granted; NoRung means what the fence asks for
	Capabilities []Capability
	Scope        Scope
	Expires      time.Time // zero: does not expire
	Args         map[string]string
	AnyArgs      bool
}

// Proposal is everything that an approval would pin, for a person to read.
// Approving takes its digest, so what was shown is what is approved.
type Proposal struct {
	ProposalRequest
	Digest   Hash
	Closure  Closure
	Included []Included // where the closure's parts but the last were read
	Standing string
	Origin   []string // who wrote it, and by which way it came here
	Limits   Limits
	Notes    []string // what is unusual: invisible characters, rung host
	Previous string   // the last approved text of this fence and what it includes, as Closure.Text has it; empty if none
}

// Approval is a person's yes to exact bytes, on this device.
type Approval struct {
	ID           uint64
	Page         PageID
	Title        string
	Fence        FenceID
	Digest       Hash
	Closure      Hash
	Rung         Rung
	Capabilities []Capability
	Scope        Scope
	Given        time.Time
	Expires      time.Time
	Spent        bool
	Void         string // why it no longer counts; empty while it does
	For          string // whose runs it allows: "owner", "agent:NAME"
}

// Ask is an open request for approval.
type Ask struct {
	ID       uint64
	Client   string
	Reason   string // the client's words, hostile
	Fence    FenceInfo
	Title    string
	Proposal Proposal
	Asked    time.Time
	State    string // "open", "approved", "denied", "void"
}

// Answer is a person's answer to one ask. A yes names what was shown of it.
type Answer struct {
	Ask    uint64
	Digest Hash // of the proposal; not needed for a no
}

// DeviceInfo is a member of the roster as this device sees it.
type DeviceInfo struct {
	ID          DeviceID
	Name        string // followed by ~ and the beginning of the id where another's could be taken for it
	Role        Role
	Self        bool
	Removed     bool
	AddedBy     DeviceID
	Connected   bool
	Addresses   []string
	Behind      uint64 // entries of ours that it has not acknowledged, where known
	LastSeen    time.Time
	Problem     string
	Quarantined time.Time // since when nothing of it runs here unasked; zero: it is in no quarantine
	Paused      string    // why its log is paused on this device; empty if it is not
}

// QuarantineReport is what putting a device into quarantine did.
type QuarantineReport struct {
	Stopped []uint64  // runs that were under way
	Voided  []uint64  // approvals that rested on its text
	Ran     []RunInfo // what of its text ran here before, newest first, without output
	Count   int       // how many ran, also those that are not in Ran
}

// Resolution is what a person decides about a device that signed two histories.
// To remove it is the third way out.
type Resolution string

const (
	ResolveKeep  Resolution = "keep"  // it is trusted again, and goes on in a new epoch
	ResolveClone Resolution = "clone" // a copy of it wrote too; on the device itself, what is lost stays lost
)

// Contradiction is a device's two histories as this device knows them.
type Contradiction struct {
	Device DeviceID
	Open   bool // nothing new of the device is taken until a person decides
	Epoch  Epoch
	Seq    uint64       // of the entries that contradict each other
	Stands SignedHeader // the one that stands
	Other  SignedHeader // and the one that does not
	Lost   []LostEntry  // of the device, that do not stand, newest first
	Count  int          // how many there are, also those that are not in Lost
}

// SignedHeader is an entry without its body: enough to show who signed it.
type SignedHeader struct {
	Hash   Hash
	Header []byte
	Sig    []byte
}

// LostEntry is an entry of a history that does not stand.
type LostEntry struct {
	Page  PageID
	Title string
	Kind  string
	Time  time.Time // as its author claims
	Text  string    // what it inserts, or sets; at most its beginning
}

// Quota is how much of one device's log is kept here, or how much of it is.
type Quota struct {
	Bytes  uint64 // of its entries
	Pages  uint64 // that it began
	Actors uint64 // of it on one page: one for each of its doors in each opening of its store
	Epochs uint64 // openings of its store for writing
}

// DeviceQuota is a device's quota on this device.
type DeviceQuota struct {
	Device DeviceID
	Name   string
	Self   bool // whose own entries never pause
	Quota  Quota
	Used   Quota  // Actors: the most on any page so far
	Paused string // why its log is paused here, and until when or how it goes on; empty if it is not
}

// PairState is a step of a pairing as both screens show it.
type PairState string

const (
	PairWaiting PairState = "waiting" // Invitation is to be shown
	PairCompare PairState = "compare" // Code is to be compared, and confirmed
	PairDone    PairState = "done"
	PairFailed  PairState = "failed" // Reason says why
)

// PairEvent is one step of a pairing.
type PairEvent struct {
	Session    string // names the pairing in Confirm
	State      PairState
	Invitation string // the URI, also in the QR
	Expires    time.Time
	Peer       DeviceID
	Name       string // the other device's name, its claim
	Notebook   NotebookID
	Code       string // six digits
	Reason     string
}

// AgentInfo is an agent that has a token.
type AgentInfo struct {
	Name    string
	Created time.Time
	Open    int // open asks
}

// EngineState is what a device has of an engine.
type EngineState string

const (
	EngineAbsent   EngineState = "absent"   // no file of it here
	EngineDamaged  EngineState = "damaged"  // the file is not the one that was added
	EngineAdded    EngineState = "added"    // the file is here, it is compiled when it is first needed
	EngineCompiled EngineState = "compiled" // its compiled code is here too
)

// EngineInfo describes an engine that noted knows: a WebAssembly module that
// runs a language.
type EngineInfo struct {
	Name    string
	Version string
	Digest  Hash  // SHA-256 of its file without custom sections
	Bytes   int64 // of that file
	Source  string
	Licence string
	State   EngineState
}

// ImportReport says what an import found, took and left.
type ImportReport struct {
	Source string
	Files  int
	Pages  int
	Fences int
	Bytes  int64
	Lines  []ImportLine // what was left out or changed, and why
}

// ImportLine is one thing to know about one file.
type ImportLine struct {
	Path   string // relative, escaped
	Taken  bool
	Reason string
}

// PolicyView is the policy in force with the source of every line.
type PolicyView struct {
	Path     string
	Digest   Hash // of the file as it is now
	Accepted bool // the file is the one in force
	Lines    []PolicyLine
	Problem  string // why the file could not be read; the accepted one stays in force
}

// PolicyLine is one rule.
type PolicyLine struct {
	Rule   string
	Value  string
	Source string // "default" or the file and line
}

// PolicyCase is what the policy decides on one fixture.
type PolicyCase struct {
	Name     string
	Line     int    // of the file of fixtures
	Expected string // granted, strict, ask or refuse; with the capabilities where the fixture says which
	Decided  string // in the same words
	Rule     string // the line of the policy that decided; empty where none did
	Reason   string
	Passed   bool
}

// LedgerReport is the outcome of checking the ledger's chain.
type LedgerReport struct {
	Records int
	Head    Hash
	Problem string
	Seals   []LedgerSeal
}

// LedgerSeal is a record that begins a new chain after a broken one: what stands
// before it proves nothing.
type LedgerSeal struct {
	Number uint64
	Reason string // what was wrong
}

// Status is the daemon in one look.
type Status struct {
	Version  string
	Model    string // what makes the changes of edits: automerge, or native
	PID      int
	Home     string
	Notebook NotebookID
	Device   DeviceInfo
	Pages    int
	Entries  uint64
	Void     int
	Waiting  int
	Peers    int
	Asks     int
	Running  int
	Layers   []string // of the jail
	Strict   string   // empty, or why strict cannot be had here
	NoPIN    bool
	Started  time.Time
	Notes    []string // everything that wants a person's attention
}

// Event is one thing that happened. Of an output Run says which run wrote it;
// one that was told all its output, and adds up the bytes of Output and Dropped,
// has what the run wrote, byte for byte, but that a byte that is no character is
// a question mark.
type Event struct {
	Time   time.Time
	Kind   string // "page", "run", "output", "ask", "device", "sync", "note"
	Page   PageID
	Title  string
	Fence  FenceID
	Run    *RunInfo
	Ask    *Ask
	Device DeviceID
	Text   string // one line for a person

	Output  string // what a run wrote since the last event of it; hostile, whole characters
	Dropped int64  // bytes of output before it that are not told, because whoever watches did not keep up
}
