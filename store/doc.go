// Package store keeps a home's records in one bbolt file that can check itself.
//
// Values are opaque bytes here: what an entry or a record means is the
// business of the packages that write it. What this package promises is that
// an update that returned nil survives kill -9, that a transaction lands as a
// whole or not at all, and that its indexes agree.
package store
