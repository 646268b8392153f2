package grpcserver

import (
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// method is one that is served: unary or stream is set.
type method struct {
	impl       any
	unary      grpc.MethodHandler
	stream     grpc.StreamHandler
	streamInfo *grpc.StreamServerInfo
}

// RegisterService implements grpc.ServiceRegistrar. It is called before Serve.
func (s *Server) RegisterService(d *grpc.ServiceDesc, impl any) {
	prefix := "/" + d.ServiceName + "/"
	for _, m := range d.Methods {
		s.methods[prefix+m.MethodName] = &method{impl: impl, unary: m.Handler}
	}
	for _, m := range d.Streams {
		path := prefix + m.StreamName
		s.methods[path] = &method{impl: impl, stream: m.Handler, streamInfo: &grpc.StreamServerInfo{
			FullMethod: path, IsClientStream: m.ClientStreams, IsServerStream: m.ServerStreams,
		}}
	}
}

// find returns the method of a path, or what a client is told that asks for another one.
func (s *Server) find(path string) (*method, error) {
	if m := s.methods[path]; m != nil {
		return m, nil
	}
	service, name, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !ok {
		return nil, status.Errorf(codes.Unimplemented, "malformed method name: %q", path)
	}
	for known := range s.methods {
		if strings.HasPrefix(known, "/"+service+"/") {
			return nil, status.Errorf(codes.Unimplemented, "unknown method %s for service %s", name, service)
		}
	}
	return nil, status.Errorf(codes.Unimplemented, "unknown service %s", service)
}
