// Package install puts Kontiki on a machine as a systemd service, and takes everything of it away again.
//
//	/usr/local/lib/kontiki/      the program and what stands beside it: shim, runc, CNI plugins, images
//	/usr/local/bin/kontiki       a link to it
//	/etc/kontiki/ROLE.yaml       the flags, mode 0600: a join token may be among them
//	/etc/systemd/system/kontiki-ROLE.service
//
// Layout.Root puts all of it below another directory, for images of machines and for tests.
//
// Invariants: a file is replaced as a whole, so an upgrade that fails leaves the old program; Install twice is Install once;
// only what Kontiki made is removed (remains.go). Read layout.go, then install.go.
package install
