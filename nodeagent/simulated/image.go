package simulated

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// PullImage makes an image of that name exist. Registries below ".invalid" cannot be reached.
func (r *Runtime) PullImage(_ context.Context, req *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	name := req.GetImage().GetImage()
	host, _, _ := strings.Cut(name, "/")
	if err := checkName(name); err != nil {
		return nil, err
	}
	if name == "" || strings.HasSuffix(host, ".invalid") {
		return nil, status.Errorf(codes.Unknown, "failed to resolve reference %q: no such host", name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name)))
	img := &runtimeapi.Image{Id: digest, Spec: req.Image, RepoDigests: []string{name + "@" + digest}}
	if !strings.Contains(name, "@") {
		img.RepoTags, img.RepoDigests = []string{name}, nil
	}
	r.images[name] = img
	return &runtimeapi.PullImageResponse{ImageRef: digest}, nil
}

// ImageStatus finds an image by name or id; an absent one is an empty answer (CRI).
func (r *Runtime) ImageStatus(_ context.Context, req *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	if err := checkName(req.GetImage().GetImage()); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return &runtimeapi.ImageStatusResponse{Image: r.image(req.GetImage().GetImage())}, nil
}

// checkName refuses what no registry could have. Real runtimes know more of the grammar.
func checkName(name string) error {
	if strings.ContainsRune(name, ' ') {
		return status.Errorf(codes.InvalidArgument, "invalid image reference: %q", name)
	}
	return nil
}

func (r *Runtime) image(name string) *runtimeapi.Image {
	if img, ok := r.images[name]; ok {
		return img
	}
	for _, img := range r.images {
		if img.Id == name {
			return img
		}
	}
	return nil
}

// ListImages lists what was pulled.
func (r *Runtime) ListImages(context.Context, *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &runtimeapi.ListImagesResponse{}
	for _, img := range r.images {
		out.Images = append(out.Images, img)
	}
	return out, nil
}

// RemoveImage forgets an image. Unknown names are no error (CRI).
func (r *Runtime) RemoveImage(_ context.Context, req *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if img := r.image(req.GetImage().GetImage()); img != nil {
		delete(r.images, img.Spec.Image)
	}
	return &runtimeapi.RemoveImageResponse{}, nil
}

// ImageFsInfo says that images take no space.
func (r *Runtime) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{{
		Timestamp:  time.Now().UnixNano(),
		FsId:       &runtimeapi.FilesystemIdentifier{Mountpoint: "/"},
		UsedBytes:  &runtimeapi.UInt64Value{},
		InodesUsed: &runtimeapi.UInt64Value{},
	}}}, nil
}
