package apiserver

import "time"

// ForgetRetired forgets at once what would be forgotten when the last request that may use it has had its time.
func (s *Server) ForgetRetired() { s.customs.forgetRetired(time.Now().Add(time.Hour)) }

// CustomLeftovers are what is kept for custom resources.
type CustomLeftovers struct{ Definitions, Retired, Types, Created, Managers, Webhooks int }

// CustomLeftovers counts them.
func (s *Server) CustomLeftovers() (out CustomLeftovers) {
	s.customs.mu.Lock()
	out.Definitions, out.Retired = len(s.customs.known), len(s.customs.retired)
	s.customs.mu.Unlock()
	s.ownership.mu.Lock()
	defer s.ownership.mu.Unlock()
	for row := range s.ownership.custom {
		if row.Group == "example.com" {
			out.Types++
		}
	}
	for row := range s.ownership.created {
		if row.Group == "example.com" {
			out.Created++
		}
	}
	for key := range s.ownership.managers {
		if key.resource != nil && key.resource.Group == "example.com" {
			out.Managers++
		}
	}
	out.Webhooks = s.converter.Clients()
	return out
}
