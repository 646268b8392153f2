package kubeversion

const (
	// Kubernetes is the release whose API the server speaks, and whose kubelet the agent is like.
	Kubernetes = "v1.37.2"
	// Reported is what clients read, who compare it with their own: the build says that it is not Kubernetes itself.
	Reported = Kubernetes + "+kontiki"
)

// What Kubernetes calls the release in version.Info: it emulates no older one, and its clients may be one release older.
const (
	Major         = "1"
	Minor         = "37"
	MinCompatible = "36" // minor
)
