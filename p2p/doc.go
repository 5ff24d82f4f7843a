// Package p2p finds roster devices and carries framed streams and the sync exchange between them.
package p2p
