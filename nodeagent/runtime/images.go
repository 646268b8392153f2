package runtime

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/image"
)

// ListImages lists the images on this node.
func (r *Runtime) ListImages(_ context.Context, req *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	resp := &runtimeapi.ListImagesResponse{}
	if ref := req.GetFilter().GetImage().GetImage(); ref != "" {
		img, err := r.images.Get(ref)
		if errors.Is(err, image.ErrNotFound) {
			return resp, nil
		}
		if err != nil {
			return nil, err
		}
		resp.Images = append(resp.Images, criImage(img))
		return resp, nil
	}
	for _, img := range r.images.List() {
		resp.Images = append(resp.Images, criImage(img))
	}
	return resp, nil
}

// ImageStatus tells about one image; none is an answer without an image (CRI).
func (r *Runtime) ImageStatus(_ context.Context, req *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	img, err := r.images.Get(req.GetImage().GetImage())
	if errors.Is(err, image.ErrNotFound) {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	resp := &runtimeapi.ImageStatusResponse{Image: criImage(img)}
	if req.GetVerbose() {
		resp.Info = verbose(map[string]any{"config": img.Config, "chain": img.Chain})
	}
	return resp, nil
}

func criImage(img *image.Image) *runtimeapi.Image {
	out := &runtimeapi.Image{Id: img.ID, RepoTags: img.Tags, RepoDigests: img.Digests, Size: uint64(img.Size), Spec: &runtimeapi.ImageSpec{Image: img.ID}}
	user, _, _ := strings.Cut(img.Config.Config.User, ":")
	if uid, err := parseID(user); err == nil {
		out.Uid = &runtimeapi.Int64Value{Value: int64(uid)}
	} else {
		out.Username = user
	}
	return out
}

// PullImage fetches an image and answers with its id.
func (r *Runtime) PullImage(ctx context.Context, req *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	auth, err := authenticator(req.GetAuth())
	if err != nil {
		return nil, err
	}
	img, err := r.images.Pull(ctx, req.GetImage().GetImage(), auth)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.PullImageResponse{ImageRef: img.ID}, nil
}

// authenticator reads CRI's credentials: user and password, both as base64 in Auth, or tokens.
func authenticator(a *runtimeapi.AuthConfig) (authn.Authenticator, error) {
	if a == nil {
		return authn.Anonymous, nil
	}
	cfg := authn.AuthConfig{
		Username: a.GetUsername(), Password: a.GetPassword(),
		IdentityToken: a.GetIdentityToken(), RegistryToken: a.GetRegistryToken(),
	}
	if cfg.Username == "" && a.GetAuth() != "" {
		b, err := base64.StdEncoding.DecodeString(a.GetAuth())
		user, password, ok := strings.Cut(strings.TrimRight(string(b), "\x00"), ":")
		if err != nil || !ok {
			return nil, fmt.Errorf("%w: auth is not base64 of user:password", ErrInvalid)
		}
		cfg.Username, cfg.Password = user, password
	}
	if cfg == (authn.AuthConfig{}) {
		return authn.Anonymous, nil
	}
	return authn.FromConfig(cfg), nil
}

// RemoveImage forgets an image. Layers that containers still use stay until those are gone.
func (r *Runtime) RemoveImage(_ context.Context, req *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	if err := r.images.Remove(req.GetImage().GetImage()); err != nil {
		return nil, err
	}
	return &runtimeapi.RemoveImageResponse{}, r.pruneImages()
}

// ImageFsInfo tells how much the images take.
func (r *Runtime) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	bytes, files := r.images.Usage()
	now := time.Now().UnixNano()
	return &runtimeapi.ImageFsInfoResponse{
		ImageFilesystems: []*runtimeapi.FilesystemUsage{{
			Timestamp: now, FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: r.images.Dir()},
			UsedBytes: &runtimeapi.UInt64Value{Value: bytes}, InodesUsed: &runtimeapi.UInt64Value{Value: files},
		}},
		ContainerFilesystems: []*runtimeapi.FilesystemUsage{{
			Timestamp: now, FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: r.cfg.containers()},
			UsedBytes: &runtimeapi.UInt64Value{}, InodesUsed: &runtimeapi.UInt64Value{},
		}},
	}, nil
}
