//go:build cgo

package exec

// With cgo the test binary, and so its workers, has the C library's threads:
// the jail must hold and let them be. Without cgo the same tests run without.
import _ "net"
