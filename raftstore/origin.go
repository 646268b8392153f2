package raftstore

import "context"

// Origin says who asked for a write. It is in the raft entry, for people who look into the log; the
// replicated state does not depend on it. Each string is cut to maxOriginBytes.
type Origin struct {
	User      string `json:"user,omitempty"`
	UserAgent string `json:"userAgent,omitempty"`
	RequestID string `json:"requestID,omitempty"`
}

const maxOriginBytes = 256

// memberOrigin is for what a member writes of its own accord, such as notes about itself.
var memberOrigin = Origin{User: "system:store", UserAgent: "kontiki member"}

type originKey struct{}

// WithOrigin returns a context whose writes carry o.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

func originOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	for _, s := range []*string{&o.User, &o.UserAgent, &o.RequestID} {
		if len(*s) > maxOriginBytes {
			*s = (*s)[:maxOriginBytes]
		}
	}
	return o
}
