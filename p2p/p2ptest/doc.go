// Package p2ptest lends nodes simulated links, so that many of them run inside one testing/synctest bubble.
package p2ptest
