package runtime

import (
	"fmt"
	"path"

	"github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/image"
)

// defaultPath is PATH for images that set none, as Docker has it.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// spec writes the OCI runtime specification of a container. The caller holds Images.Use and
// nothing else knows c yet.
func (r *Runtime) spec(s *sandbox, c *container, img *image.Image) (*specs.Spec, error) {
	config := c.config
	sc := config.GetLinux().GetSecurityContext()
	if err := checkSeccomp(sc); err != nil {
		return nil, err
	}
	process, err := r.process(s, c, img)
	if err != nil {
		return nil, err
	}
	mounts, err := r.mounts(s, c)
	if err != nil {
		return nil, err
	}
	namespaces, err := r.specNamespaces(s, sc.GetNamespaceOptions())
	if err != nil {
		return nil, err
	}
	devices, rules, err := r.devices(config)
	if err != nil {
		return nil, err
	}
	resources := r.resources(config.GetLinux().GetResources())
	resources.Devices = rules
	return &specs.Spec{
		Version: specs.Version,
		Process: process,
		Root:    &specs.Root{Path: "rootfs", Readonly: sc.GetReadonlyRootfs()},
		Mounts:  mounts,
		// Whatever the caller wants to find again in runc's own listing.
		Annotations: config.GetAnnotations(),
		Linux: &specs.Linux{
			Namespaces:        namespaces,
			Devices:           devices,
			Resources:         resources,
			CgroupsPath:       c.rec.Cgroup,
			RootfsPropagation: rootfsPropagation(config.GetMounts()),
			MaskedPaths:       maskedPaths(sc),
			ReadonlyPaths:     readonlyPaths(sc),
		},
	}, nil
}

// checkSeccomp refuses what would silently not be enforced. RuntimeDefault is allowed
// although it runs unconfined here, because it is what most manifests ask for (see doc.go).
func checkSeccomp(sc *runtimeapi.LinuxContainerSecurityContext) error {
	if !sc.GetPrivileged() && sc.GetSeccomp().GetProfileType() == runtimeapi.SecurityProfile_Localhost {
		return fmt.Errorf("%w: seccomp profile %q", ErrUnsupported, sc.GetSeccomp().GetLocalhostRef())
	}
	return nil
}

// process is the container's process 1.
func (r *Runtime) process(s *sandbox, c *container, img *image.Image) (*specs.Process, error) {
	config, image := c.config, img.Config.Config
	sc := config.GetLinux().GetSecurityContext()
	args := commandLine(config, image.Entrypoint, image.Cmd)
	if len(args) == 0 {
		return nil, fmt.Errorf("%w: neither the pod nor the image says what to run", ErrInvalid)
	}
	p := &specs.Process{
		Terminal:        config.GetTty(),
		User:            c.rec.User,
		Args:            args,
		Env:             environment(s, config, image.Env),
		Cwd:             workingDir(config.GetWorkingDir(), image.WorkingDir),
		NoNewPrivileges: sc.GetNoNewPrivs(),
		Capabilities:    r.capabilities(sc),
	}
	if res := config.GetLinux().GetResources(); res != nil {
		adj := max(int(res.GetOomScoreAdj()), r.host.minOOMAdj)
		p.OOMScoreAdj = &adj
	}
	return p, nil
}

// commandLine follows the table of the Kubernetes documentation ("Define a command and
// arguments"): a command replaces entrypoint and arguments, arguments alone replace the
// image's arguments.
func commandLine(config *runtimeapi.ContainerConfig, entrypoint, cmd []string) []string {
	command, args := config.GetCommand(), config.GetArgs()
	if len(command) == 0 {
		command = entrypoint
		if len(args) == 0 {
			args = cmd
		}
	}
	return append(command[:len(command):len(command)], args...)
}

// environment is PATH, HOSTNAME, the image's and the pod's variables; later ones win.
func environment(s *sandbox, config *runtimeapi.ContainerConfig, image []string) []string {
	env := append([]string{defaultPath, "HOSTNAME=" + s.hostname()}, image...)
	if config.GetTty() {
		env = append(env, "TERM=xterm")
	}
	for _, kv := range config.GetEnvs() {
		env = append(env, kv.GetKey()+"="+string(kv.GetValue()))
	}
	return lastWins(env)
}

// lastWins keeps the last value of each variable, in the place of its first.
func lastWins(env []string) []string {
	index := map[string]int{}
	var out []string
	for _, kv := range env {
		key := kv
		for i := range kv {
			if kv[i] == '=' {
				key = kv[:i]
				break
			}
		}
		if i, ok := index[key]; ok {
			out[i] = kv
			continue
		}
		index[key] = len(out)
		out = append(out, kv)
	}
	return out
}

func workingDir(wanted, image string) string {
	if wanted == "" {
		wanted = image
	}
	return path.Clean("/" + wanted)
}

// specNamespaces joins the sandbox's namespaces by path; a namespace that is not named
// stays the host's.
func (r *Runtime) specNamespaces(s *sandbox, opts *runtimeapi.NamespaceOption) ([]specs.LinuxNamespace, error) {
	pins := s.namespaces()
	out := []specs.LinuxNamespace{{Type: specs.MountNamespace}}
	if pins.Net {
		out = append(out, specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: pins.path("net")})
	}
	if pins.UTS {
		out = append(out, specs.LinuxNamespace{Type: specs.UTSNamespace, Path: pins.path("uts")})
	}
	if pins.IPC {
		out = append(out, specs.LinuxNamespace{Type: specs.IPCNamespace, Path: pins.path("ipc")})
	}
	if r.host.cgroupV2 {
		out = append(out, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	}
	switch opts.GetPid() {
	case runtimeapi.NamespaceMode_NODE:
		return out, nil
	case runtimeapi.NamespaceMode_CONTAINER:
		return append(out, specs.LinuxNamespace{Type: specs.PIDNamespace}), nil
	}
	path, err := r.sharedPIDNS(s, opts)
	return append(out, specs.LinuxNamespace{Type: specs.PIDNamespace, Path: path}), err
}

// sharedPIDNS is the pod's PID namespace, or that of another container (TARGET: ephemeral
// containers).
func (r *Runtime) sharedPIDNS(s *sandbox, opts *runtimeapi.NamespaceOption) (string, error) {
	if opts.GetPid() == runtimeapi.NamespaceMode_POD {
		s.op.Lock()
		defer s.op.Unlock()
		return r.pidNS(s)
	}
	target, err := r.container(opts.GetTargetId())
	if err != nil {
		return "", err
	}
	if target.rec.SandboxID != s.rec.ID || !r.running(target) {
		return "", fmt.Errorf("%w: target container %s does not run in this pod", ErrInvalid, opts.GetTargetId())
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return fmt.Sprintf("/proc/%d/ns/pid", target.started.PID), nil
}

// Paths of /proc and /sys that tell about or act on the whole host, hidden or read-only in
// ordinary containers: the defaults of Docker, for callers that name none.
var (
	defaultMasked = []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys",
		"/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug",
		"/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	}
	defaultReadonly = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

func maskedPaths(sc *runtimeapi.LinuxContainerSecurityContext) []string {
	if sc.GetPrivileged() {
		return nil
	}
	if sc.GetMaskedPaths() == nil {
		return defaultMasked
	}
	return sc.GetMaskedPaths()
}

func readonlyPaths(sc *runtimeapi.LinuxContainerSecurityContext) []string {
	if sc.GetPrivileged() {
		return nil
	}
	if sc.GetReadonlyPaths() == nil {
		return defaultReadonly
	}
	return sc.GetReadonlyPaths()
}
