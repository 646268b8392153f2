package apiserver

import (
	"context"
	"time"
)

// ForgetRetired forgets at once what would be forgotten when the last request that may use it has had its time.
func (s *Server) ForgetRetired() { s.customs.forgetRetired(time.Now().Add(time.Hour)) }

// CustomLeftovers are what is kept for custom resources.
type CustomLeftovers struct{ Definitions, Retired, Owned, Webhooks int }

// CustomLeftovers counts them.
func (s *Server) CustomLeftovers() (out CustomLeftovers) {
	s.customs.mu.Lock()
	out.Definitions, out.Retired = len(s.customs.known), len(s.customs.retired)
	s.customs.mu.Unlock()
	for _, row := range s.owners.Rows() {
		if row.Group == "example.com" {
			out.Owned++
		}
	}
	out.Webhooks = s.converter.Clients()
	return out
}

// TendPlaces does what the server does every placePeriod, as one that has seen all Leases unchanged for as long as their life.
func (s *Server) TendPlaces(ctx context.Context) error {
	leases, err := s.serverLeases(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	seen := sightings{looked: now, leases: map[string]sighting{}}
	for _, lease := range leases {
		seen.leases[lease.Name] = sighting{version: lease.ResourceVersion, since: now.Add(-placeLife)}
	}
	return s.tendPlaces(ctx, &seen)
}
