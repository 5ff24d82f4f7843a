// Package daemontest makes devices that share a notebook, so that a test reads as a story.
//
// There are two grounds. [Loopback] has real sockets and real workers: a
// program that uses it calls daemon.Child first in its TestMain. [Bubble] runs
// inside a testing/synctest bubble over simulated links, where time costs
// nothing and links can be cut, and where no fence can run.
//
// Every device is closed at the end of the test, and everything that its home
// then holds is checked.
package daemontest
