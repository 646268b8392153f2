// Package ledger writes to a cluster that is being broken, keeps a record of what was acknowledged, and compares that with what
// is there in the end and with what watches have told.
//
// Each write creates a ConfigMap with a name of its own, NAME-1, NAME-2 …, so nothing can be overwritten and "is it there?" has
// one answer. A create whose outcome is not known is sent again under the same name: "already exists" says that it had
// happened. Three promises of the API are checked:
//
//   - what was acknowledged is there, and stays there (report.go);
//   - what was refused, and not tried again, is not there;
//   - a watch tells each write exactly once, in the order of revisions, even if its server is lost and it goes on at another
//     one from the last revision that it has seen (watcher.go).
//
// Read writer.go first.
package ledger
