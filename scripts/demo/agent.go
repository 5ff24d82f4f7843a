package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// agent is a program that has a token and speaks MCP.
type agent struct{ session *mcp.ClientSession }

// agent lets an agent in, which needs the person's PIN, and connects it.
func (d *device) agent(ctx context.Context, name string) (*agent, error) {
	if _, err := d.noted(ctx, 0, "", "agent", "add", name, "--pin-fd", "3"); err != nil {
		return nil, err
	}
	cmd := d.command(ctx, "mcp", "--token-file", filepath.Join(d.home, "agents", name+".token"))
	client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	return &agent{session}, err
}

func (a *agent) close() { a.session.Close() }

func (a *agent) tools(ctx context.Context) (names []string, err error) {
	for tool, err := range a.session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, tool.Name)
	}
	return names, nil
}

// append writes at the end of a page.
func (a *agent) append(ctx context.Context, page, text string) error {
	result, err := a.session.CallTool(ctx, &mcp.CallToolParams{Name: "page_append", Arguments: map[string]string{"page": page, "text": text}})
	if err != nil {
		return err
	}
	if result.IsError {
		said, _ := json.Marshal(result.Content)
		return fmt.Errorf("page_append: %s", said)
	}
	return nil
}
