// Package importer reads a folder of another tool's notes into pages and accounts for every file it saw.
//
// What it reads is hostile: names, links, devices, sizes and bytes. It reads
// regular files inside one os.Root and nothing else, bounds everything before it
// reads it, and takes what it can.
package importer
