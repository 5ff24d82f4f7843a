package main

import (
	"time"

	"noted/notebook"
)

type runJSON struct {
	Number   uint64      `json:"number" doc:"in this device's ledger"`
	Page     string      `json:"page"`
	Title    string      `json:"title"`
	Fence    string      `json:"fence"`
	Ref      string      `json:"ref"`
	Language string      `json:"language"`
	Standing string      `json:"standing"`
	Client   string      `json:"client" doc:"who asked"`
	State    string      `json:"state" doc:"running, done or refused"`
	Reason   string      `json:"reason,omitempty" doc:"of a refusal, and of an end that is not the fence's own doing"`
	Result   *resultJSON `json:"result,omitempty" doc:"of a run that is done"`

	Engine       string   `json:"engine,omitempty" doc:"digest of what ran it"`
	Capabilities []string `json:"capabilities,omitempty" doc:"what it had"`
	Rule         string   `json:"rule,omitempty" doc:"the line of the policy, or the approval, that decided"`
	Approval     uint64   `json:"approval,omitempty" doc:"number of the approval that it rests on"`
	Replays      uint64   `json:"replays,omitempty" doc:"number of the run that it did again"`
}

type resultJSON struct {
	Verdict string     `json:"verdict" doc:"ok, error, timeout, memory, output, violation, crash or cancelled"`
	Rung    string     `json:"rung" doc:"strict, granted or host"`
	Output  string     `json:"output" doc:"head and tail of what the fence wrote"`
	Head    int        `json:"head_bytes" doc:"how much of output is the head"`
	Dropped int64      `json:"dropped_bytes" doc:"what was left out between head and tail"`
	Error   string     `json:"error,omitempty" doc:"message and line of a failed fence"`
	Started time.Time  `json:"started,omitzero"`
	TookUS  int64      `json:"took_us" doc:"from the request to the dead worker"`
	Peak    int64      `json:"peak_bytes,omitempty"`
	Closure string     `json:"closure" doc:"digest of what ran"`
	Inputs  string     `json:"inputs" doc:"digest of its arguments and inputs"`
	Limits  limitsJSON `json:"limits"`
	Layers  []string   `json:"layers" doc:"of the jail, that held"`

	Sent     int64 `json:"sent_bytes,omitempty" doc:"what went to the hosts that it was granted"`
	Received int64 `json:"received_bytes,omitempty" doc:"what came from them"`
}

func runShape(r notebook.RunInfo) runJSON {
	j := runJSON{
		Number: r.Number, Page: id(r.Page), Title: r.Title, Fence: id(r.Fence), Ref: r.Fence.Short(), Language: r.Language,
		Standing: r.Standing, Client: r.Client, State: r.State, Reason: r.Reason,
		Engine: id(r.Engine), Capabilities: capabilities(r.Capabilities), Rule: r.Rule, Approval: r.Approval, Replays: r.Replays,
	}
	if res := r.Result; res.Verdict != notebook.NoVerdict {
		j.Result = &resultJSON{
			Verdict: res.Verdict.String(), Rung: res.Rung.String(), Output: res.Output, Head: res.Head, Dropped: res.Dropped,
			Error: res.Error, TookUS: res.Took, Peak: res.Peak, Closure: res.Closure.String(),
			Inputs: res.Inputs.String(), Limits: limitsShape(res.Limits), Layers: list(res.Layers),
			Sent: res.Sent, Received: res.Received,
		}
		if res.Started != 0 {
			j.Result.Started = time.UnixMilli(res.Started).UTC()
		}
	}
	return j
}

type replayJSON struct {
	Same    bool     `json:"same" doc:"it came out as before"`
	Differs []string `json:"differs" doc:"how it did not"`
	Run     runJSON  `json:"run" doc:"the new run"`
	Of      runJSON  `json:"of" doc:"the one that it did again"`
}

func replayShape(p *notebook.Replay) replayJSON {
	return replayJSON{Same: len(p.Differs) == 0, Differs: list(p.Differs), Run: runShape(p.Run), Of: runShape(p.Of)}
}
