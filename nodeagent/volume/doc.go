// Package volume makes the volumes of pods: emptyDir, hostPath, and the four kinds whose files are
// written from the API (configMap, secret, downwardAPI, projected).
//
// Layout below the manager's root, as the kubelet lays it out:
//
//	pods/UID/volumes/NAME/            the volume
//	pods/UID/volume-subpaths/NAME/CONTAINER/INDEX   a bind mount of one subPath
//
// Invariants: files from the API change all at once, by renaming one symlink (writer.go); a subPath never
// leads out of its volume, whatever symlinks a container puts there (subpath.go); unmounting a pod
// never deletes through a mount point (manager.go).
//
// Not yet: persistentVolumeClaim, ephemeral, csi, nfs and image volumes; they are refused with an error that
// says so.
//
// Read manager.go first.
package volume
