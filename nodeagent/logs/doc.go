// Package logs reads and rotates container log files in the CRI format.
//
// A container's log is a chain of files: 0.log.20260102-150405.000000000, …, 0.log, the oldest first. The
// runtime appends to the last; the agent renames it when it has grown and tells the runtime to open a
// new one (rotate.go). A reader walks the chain by file identity, not by name, so that it sees every
// line once and in order however often the log is rotated meanwhile (reader.go, follow.go; ND-06).
//
// Read entry.go for the line format, then reader.go.
package logs
