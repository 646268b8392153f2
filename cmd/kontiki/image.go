package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func imageCommand() *cobra.Command {
	l := &local{}
	cmd := &cobra.Command{Use: "image", Short: "Look after the images of this node", Args: rejectArgs}
	l.addRuntimeFlags(cmd)
	cmd.AddCommand(
		&cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the images", Args: rejectArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return l.images(cmd.Context(), listImages) }},
		&cobra.Command{Use: "pull IMAGE", Short: "Pull an image from its registry", Args: exactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return l.images(cmd.Context(), func(ctx context.Context, c runtimeapi.ImageServiceClient) error {
					return pullImage(ctx, c, args[0])
				})
			}},
		&cobra.Command{Use: "rm IMAGE", Short: "Remove an image", Args: exactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return l.images(cmd.Context(), func(ctx context.Context, c runtimeapi.ImageServiceClient) error {
					return removeImage(ctx, c, args[0])
				})
			}},
		&cobra.Command{Use: "import FILE", Short: "Import a `docker save` or OCI archive; - reads standard input", Args: exactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return l.importImages(cmd.Context(), args[0]) }},
	)
	return cmd
}

// images calls f with the node's image service. gRPC's wrapping is taken off its errors.
func (l *local) images(ctx context.Context, f func(context.Context, runtimeapi.ImageServiceClient) error) error {
	conn, err := l.runtime()
	if err != nil {
		return err
	}
	defer conn.Close()
	return plain(f(ctx, runtimeapi.NewImageServiceClient(conn)))
}

func plain(err error) error {
	if s, ok := status.FromError(err); ok && err != nil {
		return errors.New(s.Message())
	}
	return err
}

func listImages(ctx context.Context, c runtimeapi.ImageServiceClient) error {
	reply, err := c.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(out, "IMAGE\tID\tSIZE")
	for _, image := range reply.Images {
		names := image.RepoTags
		if len(names) == 0 {
			names = image.RepoDigests
		}
		fmt.Fprintf(out, "%s\t%s\t%.1f MB\n", strings.Join(names, ","), shortID(image.Id), float64(image.Size)/1e6)
	}
	return out.Flush()
}

// shortID is the first 12 digits of an image's or container's id, which every command accepts.
func shortID(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(12, len(id))]
}

func pullImage(ctx context.Context, c runtimeapi.ImageServiceClient, name string) error {
	reply, err := c.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: name}})
	if err != nil {
		return err
	}
	fmt.Println(reply.ImageRef)
	return nil
}

func removeImage(ctx context.Context, c runtimeapi.ImageServiceClient, name string) error {
	spec := &runtimeapi.ImageSpec{Image: name}
	found, err := c.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: spec})
	if err != nil {
		return err
	}
	if found.Image == nil {
		return fmt.Errorf("there is no image %s", name)
	}
	_, err = c.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: spec})
	return err
}

func (l *local) importImages(ctx context.Context, path string) error {
	archive := os.Stdin
	if path != "-" {
		var err error
		if archive, err = os.Open(path); err != nil {
			return err
		}
		defer archive.Close()
	}
	names, err := l.control().ImportImages(ctx, archive)
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Println(name)
	}
	return nil
}
