// Package rpc is the local door: the notebook over Connect on a Unix socket, roles by token, and the Go client.
package rpc

//go:generate go run ./gen .
