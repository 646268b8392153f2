package etcdapi

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// authServer refuses everything about users and roles, and says why.
type authServer struct{ pb.UnimplementedAuthServer }

var errNoAuth = status.Error(codes.Unimplemented,
	"kontiki: etcd's users and roles are not implemented: who has a client certificate of the store's authority may do everything")

// AuthEnable implements pb.AuthServer.
func (authServer) AuthEnable(context.Context, *pb.AuthEnableRequest) (*pb.AuthEnableResponse, error) {
	return nil, errNoAuth
}

// AuthDisable implements pb.AuthServer.
func (authServer) AuthDisable(context.Context, *pb.AuthDisableRequest) (*pb.AuthDisableResponse, error) {
	return nil, errNoAuth
}

// AuthStatus implements pb.AuthServer.
func (authServer) AuthStatus(context.Context, *pb.AuthStatusRequest) (*pb.AuthStatusResponse, error) {
	return nil, errNoAuth
}

// Authenticate implements pb.AuthServer.
func (authServer) Authenticate(context.Context, *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	return nil, errNoAuth
}

// UserAdd implements pb.AuthServer.
func (authServer) UserAdd(context.Context, *pb.AuthUserAddRequest) (*pb.AuthUserAddResponse, error) {
	return nil, errNoAuth
}

// UserGet implements pb.AuthServer.
func (authServer) UserGet(context.Context, *pb.AuthUserGetRequest) (*pb.AuthUserGetResponse, error) {
	return nil, errNoAuth
}

// UserList implements pb.AuthServer.
func (authServer) UserList(context.Context, *pb.AuthUserListRequest) (*pb.AuthUserListResponse, error) {
	return nil, errNoAuth
}

// UserDelete implements pb.AuthServer.
func (authServer) UserDelete(context.Context, *pb.AuthUserDeleteRequest) (*pb.AuthUserDeleteResponse, error) {
	return nil, errNoAuth
}

// UserChangePassword implements pb.AuthServer.
func (authServer) UserChangePassword(context.Context, *pb.AuthUserChangePasswordRequest) (*pb.AuthUserChangePasswordResponse, error) {
	return nil, errNoAuth
}

// UserGrantRole implements pb.AuthServer.
func (authServer) UserGrantRole(context.Context, *pb.AuthUserGrantRoleRequest) (*pb.AuthUserGrantRoleResponse, error) {
	return nil, errNoAuth
}

// UserRevokeRole implements pb.AuthServer.
func (authServer) UserRevokeRole(context.Context, *pb.AuthUserRevokeRoleRequest) (*pb.AuthUserRevokeRoleResponse, error) {
	return nil, errNoAuth
}

// RoleAdd implements pb.AuthServer.
func (authServer) RoleAdd(context.Context, *pb.AuthRoleAddRequest) (*pb.AuthRoleAddResponse, error) {
	return nil, errNoAuth
}

// RoleGet implements pb.AuthServer.
func (authServer) RoleGet(context.Context, *pb.AuthRoleGetRequest) (*pb.AuthRoleGetResponse, error) {
	return nil, errNoAuth
}

// RoleList implements pb.AuthServer.
func (authServer) RoleList(context.Context, *pb.AuthRoleListRequest) (*pb.AuthRoleListResponse, error) {
	return nil, errNoAuth
}

// RoleDelete implements pb.AuthServer.
func (authServer) RoleDelete(context.Context, *pb.AuthRoleDeleteRequest) (*pb.AuthRoleDeleteResponse, error) {
	return nil, errNoAuth
}

// RoleGrantPermission implements pb.AuthServer.
func (authServer) RoleGrantPermission(context.Context, *pb.AuthRoleGrantPermissionRequest) (*pb.AuthRoleGrantPermissionResponse, error) {
	return nil, errNoAuth
}

// RoleRevokePermission implements pb.AuthServer.
func (authServer) RoleRevokePermission(context.Context, *pb.AuthRoleRevokePermissionRequest) (*pb.AuthRoleRevokePermissionResponse, error) {
	return nil, errNoAuth
}
