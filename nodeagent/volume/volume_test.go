package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ptr[T any](v T) *T { return &v }

// sources has one config map "cm" and one secret "s", whose content a test may change, and an error for all else.
type sources struct {
	mu  sync.Mutex
	cm  map[string]string
	s   map[string][]byte
	err error

	bundles []certificatesv1.ClusterTrustBundle
}

func (s *sources) set(cm map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cm = cm
}

func (s *sources) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if name != "cm" {
		return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
	}
	return &corev1.ConfigMap{Data: s.cm, BinaryData: map[string][]byte{"bin": {0, 1}}}, nil
}

func (s *sources) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	if name != "s" {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	return &corev1.Secret{Data: s.s}, nil
}

func (s *sources) ClusterTrustBundle(_ context.Context, name string) (*certificatesv1.ClusterTrustBundle, error) {
	for i := range s.bundles {
		if s.bundles[i].Name == name {
			return &s.bundles[i], nil
		}
	}
	return nil, apierrors.NewNotFound(certificatesv1.Resource("clustertrustbundles"), name)
}

func (s *sources) ClusterTrustBundles(_ context.Context, signer string) (all []certificatesv1.ClusterTrustBundle, err error) {
	for _, b := range s.bundles {
		if b.Spec.SignerName == signer {
			all = append(all, b)
		}
	}
	return all, nil
}

func podWith(volumes ...corev1.Volume) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u", Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{Volumes: volumes}}
}

func configMap(name string, change func(*corev1.ConfigMapVolumeSource)) corev1.Volume {
	src := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
	if change != nil {
		change(src)
	}
	return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: src}}
}

func mount(t *testing.T, m *Manager, pod *corev1.Pod, src Sources) (string, error) {
	t.Helper()
	paths, err := m.Mount(t.Context(), pod, Input{Sources: src})
	return paths["v"], err
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func TestConfigMapVolume(t *testing.T) {
	m, src := &Manager{Root: t.TempDir()}, &sources{cm: map[string]string{"a": "1", "b": "2"}}
	pod := podWith(configMap("cm", func(s *corev1.ConfigMapVolumeSource) { s.DefaultMode = ptr(int32(0o400)) }))
	dir, err := mount(t, m, pod, src)
	require.NoError(t, err)
	require.Equal(t, "1", content(t, filepath.Join(dir, "a")))
	require.Equal(t, "\x00\x01", content(t, filepath.Join(dir, "bin")))
	info, err := os.Stat(filepath.Join(dir, "a"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o400), info.Mode())
	version, err := os.Readlink(filepath.Join(dir, dataLink))
	require.NoError(t, err)

	_, err = mount(t, m, pod, src)
	require.NoError(t, err)
	again, err := os.Readlink(filepath.Join(dir, dataLink))
	require.NoError(t, err)
	require.Equal(t, version, again, "nothing changed, nothing written")

	src.set(map[string]string{"b": "3", "c": "4"}) // keys come and go (ND-10)
	_, err = mount(t, m, pod, src)
	require.NoError(t, err)
	require.Equal(t, "3", content(t, filepath.Join(dir, "b")))
	require.Equal(t, "4", content(t, filepath.Join(dir, "c")))
	require.NoFileExists(t, filepath.Join(dir, "a"))
	require.DirExists(t, filepath.Join(dir, version), "for readers that have just followed the link")
	_, err = mount(t, m, pod, src)
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(dir, version), "old versions are removed")
}

func TestItemsAndOptional(t *testing.T) {
	m, src := &Manager{Root: t.TempDir()}, &sources{cm: map[string]string{"a": "1"}}
	dir, err := mount(t, m, podWith(configMap("cm", func(s *corev1.ConfigMapVolumeSource) {
		s.Items = []corev1.KeyToPath{{Key: "a", Path: "deep/er/a", Mode: ptr(int32(0o640))}}
	})), src)
	require.NoError(t, err)
	require.Equal(t, "1", content(t, filepath.Join(dir, "deep/er/a")))
	require.NoFileExists(t, filepath.Join(dir, "bin"))

	_, err = mount(t, &Manager{Root: t.TempDir()}, podWith(configMap("none", nil)), src)
	require.True(t, apierrors.IsNotFound(err))
	require.ErrorContains(t, err, `MountVolume.SetUp failed for volume "v"`)
	_, err = mount(t, &Manager{Root: t.TempDir()}, podWith(configMap("none", func(s *corev1.ConfigMapVolumeSource) { s.Optional = ptr(true) })), src)
	require.NoError(t, err)
	_, err = mount(t, &Manager{Root: t.TempDir()}, podWith(configMap("cm", func(s *corev1.ConfigMapVolumeSource) {
		s.Items = []corev1.KeyToPath{{Key: "zz", Path: "z"}}
	})), src)
	require.ErrorIs(t, err, ErrKey)
	_, err = mount(t, &Manager{Root: t.TempDir()}, podWith(configMap("cm", func(s *corev1.ConfigMapVolumeSource) {
		s.Items = []corev1.KeyToPath{{Key: "a", Path: "../../escaped"}}
	})), src)
	require.ErrorIs(t, err, ErrFileName)
}

func TestVolumeStaysWhileAPIIsAway(t *testing.T) {
	m, src := &Manager{Root: t.TempDir()}, &sources{cm: map[string]string{"a": "1"}}
	pod := podWith(configMap("cm", nil))
	dir, err := mount(t, m, pod, src)
	require.NoError(t, err)
	src.err = errors.New("connection refused")
	_, err = mount(t, m, pod, src)
	require.NoError(t, err)
	require.Equal(t, "1", content(t, filepath.Join(dir, "a")))
	_, err = mount(t, &Manager{Root: t.TempDir()}, pod, src)
	require.ErrorIs(t, err, src.err, "but there is nothing to go on with at the first time")
}

// TestUpdatesAreAtomic has a reader that never sees two versions mixed (ND-10). It opens the data directory once per look,
// as a program does that wants a consistent view.
func TestUpdatesAreAtomic_ND10(t *testing.T) {
	m, src := &Manager{Root: t.TempDir()}, &sources{cm: map[string]string{"x": "0", "y": "0"}}
	pod := podWith(configMap("cm", nil))
	dir, err := mount(t, m, pod, src)
	require.NoError(t, err)
	done := make(chan struct{})
	var wg sync.WaitGroup
	var mixed error
	looks := 0
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			root, err := os.OpenRoot(filepath.Join(dir, dataLink))
			if errors.Is(err, fs.ErrNotExist) {
				if _, err = os.Lstat(filepath.Join(dir, dataLink)); err == nil {
					continue // two updates went by between reading the link and following it
				}
			}
			if err != nil {
				mixed = err // the link must always be there
				return
			}
			x, errX := root.ReadFile("x")
			y, errY := root.ReadFile("y")
			root.Close()
			if errX == nil && errY == nil { // not a version that was removed meanwhile
				looks++
				if string(x) != string(y) {
					mixed = fmt.Errorf("x=%s y=%s", x, y)
					return
				}
			}
		}
	})
	for i := 1; i <= 200; i++ {
		src.set(map[string]string{"x": fmt.Sprint(i), "y": fmt.Sprint(i)})
		_, err := mount(t, m, pod, src)
		require.NoError(t, err)
	}
	close(done)
	wg.Wait()
	require.NoError(t, mixed)
	require.Positive(t, looks)
}

// TestCrashDuringUpdate leaves what a crash may leave, and updates.
func TestCrashDuringUpdate(t *testing.T) {
	m, src := &Manager{Root: t.TempDir()}, &sources{cm: map[string]string{"a": "1"}}
	pod := podWith(configMap("cm", nil))
	dir, err := mount(t, m, pod, src)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, versionPrefix+"half"), 0o755))
	require.NoError(t, os.Symlink(versionPrefix+"half", filepath.Join(dir, newDataLink)))
	require.NoError(t, os.Remove(filepath.Join(dir, "a")))
	_, err = mount(t, m, pod, src)
	require.NoError(t, err)
	require.Equal(t, "1", content(t, filepath.Join(dir, "a")))
	require.NoDirExists(t, filepath.Join(dir, versionPrefix+"half"))
	_, err = os.Lstat(filepath.Join(dir, newDataLink))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// tokens counts what it makes.
type tokens struct {
	made    int
	expires time.Duration
}

func (k *tokens) Token(context.Context, *corev1.Pod, string, int64) (string, time.Time, error) {
	k.made++
	return fmt.Sprint("token", k.made), time.Now().Add(k.expires), nil
}

func TestProjected(t *testing.T) {
	maker := &tokens{expires: time.Hour}
	m, src := &Manager{Root: t.TempDir(), Tokens: maker}, &sources{cm: map[string]string{"ca.crt": "CA"}, s: map[string][]byte{"pw": []byte("x")}}
	pod := podWith(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr(int64(3600))}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
		{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
	}}}})
	dir, err := mount(t, m, pod, src)
	require.NoError(t, err)
	for name, want := range map[string]string{"token": "token1", "ca.crt": "CA", "pw": "x", "namespace": "ns"} {
		require.Equal(t, want, content(t, filepath.Join(dir, name)))
	}
	_, err = mount(t, m, pod, src)
	require.NoError(t, err)
	require.Equal(t, 1, maker.made, "a token is kept while it is young")
	require.NoError(t, m.Remove("u"))

	maker.expires = 10 * time.Minute // less than a fifth of an hour is left
	_, err = mount(t, m, pod, src)
	require.NoError(t, err)
	_, err = mount(t, m, pod, src)
	require.NoError(t, err)
	require.Equal(t, "token3", content(t, filepath.Join(dir, "token")))
}

func TestEmptyDirAndFSGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to give files to a group")
	}
	m, src := &Manager{Root: t.TempDir()}, &sources{cm: map[string]string{"a": "1"}}
	pod := podWith(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, configMap("cm", nil))
	pod.Spec.Volumes[1].Name = "w"
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr(int64(4242))}
	paths, err := m.Mount(t.Context(), pod, Input{Sources: src})
	require.NoError(t, err)
	var st unix.Stat_t
	require.NoError(t, unix.Stat(paths["v"], &st))
	require.Equal(t, uint32(4242), st.Gid)
	require.Equal(t, uint32(unix.S_IFDIR|unix.S_ISGID|0o777), st.Mode)
	require.NoError(t, unix.Stat(filepath.Join(paths["w"], "a"), &st))
	require.Equal(t, uint32(4242), st.Gid)

	require.NoError(t, os.WriteFile(filepath.Join(paths["v"], "kept"), nil, 0o600))
	_, err = m.Mount(t.Context(), pod, Input{Sources: src})
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(paths["v"], "kept"))
}

func TestHostPath(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		path string
		kind corev1.HostPathType
		ok   bool
	}{
		{root + "/none", corev1.HostPathUnset, true},
		{root + "/none", corev1.HostPathDirectory, false},
		{root + "/made/dir", corev1.HostPathDirectoryOrCreate, true},
		{root + "/made2/file", corev1.HostPathFileOrCreate, true},
		{file, corev1.HostPathFile, true},
		{file, corev1.HostPathDirectory, false},
		{file, corev1.HostPathSocket, false},
		{"/dev/null", corev1.HostPathCharDev, true},
		{"/dev/null", corev1.HostPathBlockDev, false},
	} {
		err := checkHostPath(&corev1.HostPathVolumeSource{Path: c.path, Type: &c.kind})
		if c.ok {
			require.NoError(t, err, c)
		} else {
			require.ErrorIs(t, err, ErrHostPath, c)
		}
	}
}

func TestUnsupported(t *testing.T) {
	_, err := mount(t, &Manager{Root: t.TempDir()}, podWith(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}), &sources{})
	require.ErrorIs(t, err, ErrUnsupported)
}

// recorder is a Mounter that only remembers.
type recorder struct{ bound map[string]string }

func (r recorder) Bind(source, target string) error {
	real, err := os.Readlink(source) // what /proc/self/fd/N is
	r.bound[target] = real
	return err
}
func (r recorder) Tmpfs(string, int64) error   { return nil }
func (r recorder) Unmount(target string) error { delete(r.bound, target); return nil }

// TestSubPathCannotEscape has a volume whose content was made by an enemy (CVE-2017-1002101, CVE-2021-25741).
func TestSubPathCannotEscape(t *testing.T) {
	host := t.TempDir()
	vol := filepath.Join(host, "vol")
	require.NoError(t, os.MkdirAll(filepath.Join(vol, "dir"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(host, "host-secret"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(vol, "dir", "file"), nil, 0o600))
	require.NoError(t, os.Symlink("/", filepath.Join(vol, "root")))
	require.NoError(t, os.Symlink("..", filepath.Join(vol, "up")))
	require.NoError(t, os.Symlink("dir", filepath.Join(vol, "inside")))
	mounts := recorder{map[string]string{}}
	m := &Manager{Root: t.TempDir(), Mounter: mounts}
	v := &corev1.Volume{Name: "v"}
	sub := func(path string) (string, error) { return m.SubPath("u", v, vol, path, "c", 0) }

	for path, want := range map[string]string{"dir": "dir", "dir/file": "dir/file", "inside/file": "dir/file", "new/deep": "new/deep", ".": "."} {
		target, err := sub(path)
		require.NoError(t, err, path)
		require.Equal(t, filepath.Join(vol, want), mounts.bound[target], path)
	}
	for _, path := range []string{"root", "root/etc", "up/host-secret", "up/made", "../host-secret", "/etc", "dir/../../host-secret", ""} {
		_, err := sub(path)
		require.ErrorIs(t, err, ErrSubPath, path)
	}
	_, err := sub("root/etc")
	require.ErrorContains(t, err, `subPath "root/etc" leads out of the volume`)
	require.NoDirExists(t, filepath.Join(host, "made"))
}

func TestRemove(t *testing.T) {
	m := &Manager{Root: t.TempDir()}
	_, err := mount(t, m, podWith(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}), &sources{})
	require.NoError(t, err)
	pods, err := m.Pods()
	require.NoError(t, err)
	require.Len(t, pods, 1)
	require.NoError(t, m.Remove("u"))
	require.NoError(t, m.Remove("u"))
	pods, err = m.Pods()
	require.NoError(t, err)
	require.Empty(t, pods)
}

// TestHostMounts makes real mounts and removes them.
func TestHostMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root (CAP_SYS_ADMIN) to mount")
	}
	m := &Manager{Root: t.TempDir(), Mounter: HostMounter{}}
	size := resource.MustParse("1Mi")
	pod := podWith(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &size}}})
	dir, err := mount(t, m, pod, &sources{})
	if errors.Is(err, unix.EPERM) {
		t.Skip("needs CAP_SYS_ADMIN to mount")
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Remove("u")) })
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &st))
	require.Equal(t, int64(unix.TMPFS_MAGIC), int64(st.Type))
	require.Equal(t, int64(1<<20), int64(st.Blocks)*st.Bsize)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("old"), 0o600))
	target, err := m.SubPath("u", &pod.Spec.Volumes[0], dir, "f", "c", 0)
	require.NoError(t, err)
	require.Equal(t, "old", content(t, target))
	require.NoError(t, os.Remove(filepath.Join(dir, "f")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("new"), 0o600))
	require.Equal(t, "old", content(t, target), "a subPath keeps the file that it found (ND-10)")
	target, err = m.SubPath("u", &pod.Spec.Volumes[0], dir, "f", "c", 0)
	require.NoError(t, err)
	require.Equal(t, "new", content(t, target), "the next start of the container takes the new one")
	require.NoError(t, m.Unmount("u")) // a reboot, say
	require.False(t, mounted(dir))
	_, err = mount(t, m, pod, &sources{})
	require.NoError(t, err)
	require.True(t, mounted(dir))
	require.NoError(t, m.Remove("u"))
	require.NoDirExists(t, m.PodDir("u"))
}
