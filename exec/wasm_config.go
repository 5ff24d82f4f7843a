package exec

import "github.com/tetratelabs/wazero"

// engineConfig is how engine files are compiled and run. The two happen in two
// processes, and must agree. Debug sections would make a trap take seconds to
// be told; the deadline is a signal from outside, so no check of a context is
// compiled in, which would cost C code a factor of six.
func engineConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigCompiler().WithDebugInfoEnabled(false)
}
