// Package notedv1 is the wire form of the local door: its messages, its services, and the roles that each route asks for.
//
// All files but this one are generated from rpc/noted/v1 by "go generate ./rpc".
package notedv1
