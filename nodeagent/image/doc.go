// Package image keeps the images of one node: what they are called, how they are configured,
// and their layers, each unpacked once into a directory that every root file system shares.
//
// On disk, below the directory given to Open:
//
//	records/HEX.json      one image: names, digests, configuration, its layers (HEX is the image id)
//	layers/KEY/fs/        an unpacked layer, with overlayfs' own whiteouts and opaque marks
//	layers/KEY/layer.json which layer that is, and its size
//	layers/tmp-*          a layer being unpacked; thrown away at the next start
//
// A layer is known by its chain id (OCI image spec, config.md: the digest of the layer together
// with everything below it), not by its diff id alone: a tar may leave out parent directories or
// write through a symbolic link of a lower layer, so what it unpacks to depends on what it lies on.
//
// Invariants: a layer directory without the tmp- prefix is complete (it was synced, then renamed);
// a record names only layers that exist; a name belongs to at most one image. Compressed layers
// are not kept: nothing here needs them again.
//
// Read store.go first, then unpack.go. Not yet: parallel download of layers, image volumes,
// signature policies.
package image
