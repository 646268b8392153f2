package discovery

import (
	"encoding/json"
	"net/http"
	"runtime"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/version"

	"kontiki/internal/kubeversion"
)

// Version is what /version answers and kubectl version prints.
func Version() version.Info {
	info := version.Info{
		Major:                 kubeversion.Major,
		Minor:                 kubeversion.Minor,
		EmulationMajor:        kubeversion.Major,
		EmulationMinor:        kubeversion.Minor,
		MinCompatibilityMajor: kubeversion.Major,
		MinCompatibilityMinor: kubeversion.MinCompatible,
		GitVersion:            kubeversion.Reported,
		GitTreeState:          "clean",
		GoVersion:             runtime.Version(),
		Compiler:              runtime.Compiler,
		Platform:              runtime.GOOS + "/" + runtime.GOARCH,
	}
	build, _ := debug.ReadBuildInfo()
	if build == nil {
		return info
	}
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision":
			info.GitCommit = s.Value
		case s.Key == "vcs.time":
			info.BuildDate = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			info.GitTreeState = "dirty"
		}
	}
	return info
}

// VersionHandler serves /version.
func VersionHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(Version()) // the client has gone if this fails
	})
}
