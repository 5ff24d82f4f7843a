// Command gen compiles the proto files of package rpc and writes the Go code of package notedv1.
//
// It needs nothing but this module: the compiler is a library, the two
// plug-ins are tools of go.mod. "go generate ./rpc" runs it.
package main
