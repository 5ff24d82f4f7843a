// Package exec runs a Grant in a jailed one-shot worker process and answers when that worker is dead.
//
// The worker is this program again, started ahead of time: [Worker] must be the
// first statement of main and of TestMain. It closes its jail before it reads
// the first byte that anybody else wrote, runs one fence, writes one frame, and
// is killed. The parent alone decides how the run ended, from its own flags,
// that frame and the exit status, and only after wait4 has returned.
package exec
