// Package pairing turns a QR or a typed code into a new roster device.
//
// Two devices that share a secret prove it to each other over a channel that
// has already proven who is at its ends, show two people the same six digits,
// and only then exchange what makes one of them a member. Nothing here knows
// what a roster entry is: the bytes that matter are made and judged by the
// callbacks of [InviteConfig] and [JoinConfig].
package pairing
