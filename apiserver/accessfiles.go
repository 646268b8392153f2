package apiserver

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kontiki/apiserver/authconfig"
)

// defaultFollowEvery is how often the files of AccessConfig are looked at.
const defaultFollowEvery = 10 * time.Second

// accessFile is one of the files of AccessConfig, followed.
type accessFile struct {
	path    string
	version authconfig.Version
	read    func(*authconfig.Rules) error
	reloads *prometheus.CounterVec // by status
}

// followAccessFiles takes what changes in the files of AccessConfig into use, until ctx ends.
func (s *Server) followAccessFiles(ctx context.Context) {
	config := s.config.Access
	every := config.FollowEvery
	if every == 0 {
		every = defaultFollowEvery
	}
	files := []*accessFile{
		{path: config.Files.Authentication, read: config.Files.Authenticate, reloads: s.metrics.authenticationReloads},
		{path: config.Files.Authorization, read: config.Files.Authorize, reloads: s.metrics.authorizationReloads},
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	rules := config.Rules
	for {
		for _, f := range files {
			if f.version.Changed(f.path) {
				s.reloadAccess(f, &rules)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// reloadAccess takes a file into use, if it is right.
func (s *Server) reloadAccess(f *accessFile, rules *authconfig.Rules) {
	next := *rules
	err := f.read(&next)
	if err == nil {
		err = s.judgeBy(next)
	}
	if err != nil {
		f.reloads.WithLabelValues("failure").Inc()
		s.log.Error("a configuration file is at fault; what it said before goes on", "file", f.path, "err", err)
		return
	}
	*rules = next
	f.reloads.WithLabelValues("success").Inc()
	s.log.Info("a configuration file is in use", "file", f.path)
}
