package mcp

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"noted/notebook"
)

// failure is how a tool's error reads: one JSON object, as text.
type failure struct {
	Code    notebook.Code `json:"code"`
	Message string        `json:"message"`
	Hint    string        `json:"hint,omitempty"`
}

func (f *failure) Error() string {
	text, err := json.Marshal(f)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// explainErrors gives every error of a tool the form of [failure]. Those that
// are no *[notebook.Error] are of the SDK, which found the arguments wrong.
func explainErrors(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		res, err := next(ctx, method, r)
		call, ok := res.(*sdk.CallToolResult)
		if err != nil || !ok || !call.IsError {
			return res, err
		}
		var e *notebook.Error
		if !errors.As(call.GetError(), &e) {
			e = notebook.Errorf(notebook.CodeInvalid, "%v", call.GetError()).With("see the tool's input schema")
		}
		message, _ := clip(notebook.Escape(e.Message), maxMessage)
		hint, _ := clip(notebook.Escape(e.Hint), maxMessage)
		explained := &sdk.CallToolResult{}
		explained.SetError(&failure{Code: e.Code, Message: message, Hint: hint})
		return explained, nil
	}
}
