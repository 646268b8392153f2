package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kontiki/nodeagent/podspec"
)

// Mounter makes and removes mounts. It is nil on nodes that may not mount: then a memory emptyDir is an
// ordinary directory and a subPath is handed out as the path itself.
type Mounter interface {
	Bind(source, target string) error
	Tmpfs(target string, sizeBytes int64) error
	// Unmount removes the mount at target; where nothing is mounted it does nothing.
	Unmount(target string) error
}

// Tokens makes service account tokens for projected volumes.
type Tokens interface {
	// Token returns a token for the pod and when it expires.
	Token(ctx context.Context, pod *corev1.Pod, audience string, lifetimeSeconds int64) (string, time.Time, error)
}

// Sources are what the files of API volumes come from.
type Sources interface {
	podspec.Sources
	// ClusterTrustBundle returns the one of a name; an absent one is an API not-found error.
	ClusterTrustBundle(ctx context.Context, name string) (*certificatesv1.ClusterTrustBundle, error)
	// ClusterTrustBundles returns those of a signer.
	ClusterTrustBundles(ctx context.Context, signer string) ([]certificatesv1.ClusterTrustBundle, error)
}

// Certificates has keys and certificates made for projected volumes.
type Certificates interface {
	// Certificate has a signer certify a new key for the pod. While the signer has not done so the error says what is awaited;
	// the next call for the same place (unique in the pod) goes on with the same request.
	Certificate(ctx context.Context, pod *corev1.Pod, place string, source *corev1.PodCertificateProjection) (*Certificate, error)
}

// Certificate is a private key (PKCS #8) and the chain that certifies it, both in PEM.
type Certificate struct {
	Key, Chain []byte
	RefreshAt  time.Time // when another should take its place
}

// Manager makes the volumes below one directory. It keeps no state in memory: every call looks at the
// disk, so it may follow a crash at any moment. Calls for one pod must not overlap.
type Manager struct {
	Root    string
	Mounter Mounter
	Tokens  Tokens

	Certificates Certificates
}

// Input is what the files of API volumes are made from.
type Input struct {
	Sources Sources
	Facts   podspec.Facts
}

// PodDir is the directory that belongs to the pod.
func (m *Manager) PodDir(uid types.UID) string { return filepath.Join(m.Root, "pods", string(uid)) }

func (m *Manager) volumeDir(uid types.UID, name string) string {
	return filepath.Join(m.PodDir(uid), "volumes", name)
}

// Mount makes every volume of the pod, or brings the API volumes up to date, and returns the host
// path of each. The error names the first volume that failed.
func (m *Manager) Mount(ctx context.Context, pod *corev1.Pod, in Input) (map[string]string, error) {
	paths := map[string]string{}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		path, err := m.mount(ctx, pod, v, in)
		if err != nil {
			return nil, fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", v.Name, err)
		}
		paths[v.Name] = path
	}
	return paths, nil
}

func (m *Manager) mount(ctx context.Context, pod *corev1.Pod, v *corev1.Volume, in Input) (string, error) {
	dir := m.volumeDir(pod.UID, v.Name)
	switch {
	case v.EmptyDir != nil:
		return dir, m.emptyDir(dir, v.EmptyDir, fsGroup(pod))
	case v.HostPath != nil:
		return v.HostPath.Path, checkHostPath(v.HostPath)
	case v.ConfigMap != nil, v.Secret != nil, v.DownwardAPI != nil, v.Projected != nil:
		old := readPayload(dir)
		files, err := m.payload(ctx, pod, v, in, old)
		if err != nil && old != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
			return dir, nil // the API server cannot be asked: what was written before a restart serves on
		}
		if err != nil {
			return "", err
		}
		return dir, write(dir, files, fsGroup(pod))
	}
	return "", ErrUnsupported
}

func fsGroup(pod *corev1.Pod) *int64 {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	return pod.Spec.SecurityContext.FSGroup
}

// Refreshes says whether the pod has volumes whose files follow the API.
func Refreshes(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil {
			return true
		}
	}
	return false
}

// Unmount removes the pod's mounts and leaves its files.
func (m *Manager) Unmount(uid types.UID) error {
	if m.Mounter == nil {
		return nil
	}
	for _, pattern := range []string{"volume-subpaths/*/*/*", "volumes/*"} {
		targets, _ := filepath.Glob(filepath.Join(m.PodDir(uid), pattern)) // the pattern is well formed
		for _, t := range targets {
			if err := m.Mounter.Unmount(t); err != nil {
				return fmt.Errorf("unmount %s: %w", t, err)
			}
		}
	}
	return nil
}

// Free removes the pod's volumes, and nothing else of its directory. It is idempotent.
func (m *Manager) Free(uid types.UID) error {
	if err := m.Unmount(uid); err != nil {
		return err
	}
	for _, dir := range []string{"volume-subpaths", "volumes"} {
		if err := os.RemoveAll(filepath.Join(m.PodDir(uid), dir)); err != nil {
			return fmt.Errorf("remove volumes: %w", err)
		}
	}
	return nil
}

// Remove unmounts everything of the pod and deletes its directory. It is idempotent.
func (m *Manager) Remove(uid types.UID) error {
	if err := m.Unmount(uid); err != nil {
		return err
	}
	if err := os.RemoveAll(m.PodDir(uid)); err != nil {
		return fmt.Errorf("remove pod directory: %w", err)
	}
	return nil
}

// Pods lists the pods that have a directory.
func (m *Manager) Pods() ([]types.UID, error) {
	entries, err := os.ReadDir(filepath.Join(m.Root, "pods"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	uids := make([]types.UID, 0, len(entries))
	for _, e := range entries {
		uids = append(uids, types.UID(e.Name()))
	}
	return uids, err
}
