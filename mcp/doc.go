// Package mcp serves the notebook as MCP tools to an agent, over one stream.
//
// What an agent may do is decided by the Backend that its token opened, never
// here: there is no tool that approves, raises a limit or writes as a person,
// and these tools could not do so through the Backend they get. What the tools
// answer is bounded, and characters that do not show are written out, so that
// neither a page nor an output can slip an agent or its terminal something that
// the person would not see.
package mcp
