package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"time"
)

// patience is how long a client helper waits for the other side.
const patience = 10 * time.Second

// largestDatagram is the most that UDP carries over IPv4.
const largestDatagram = 65507

func get(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return wrongUsage("get")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(os.Stdout, response.Body); err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", args[0], response.Status)
	}
	return nil
}

func resolve(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return wrongUsage("resolve")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, args[0])
	if err != nil {
		return err
	}
	slices.Sort(addresses)
	for _, a := range addresses {
		fmt.Println(a)
	}
	return nil
}

func tcpEcho(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return wrongUsage("tcp-echo")
	}
	listener, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	fmt.Println("tcp-echo: listening on", listener.Addr())
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go func() { // ends with its connection
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}()
	}
}

func udpEcho(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return wrongUsage("udp-echo")
	}
	conn, err := net.ListenPacket("udp", args[0])
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	fmt.Println("udp-echo: listening on", conn.LocalAddr())
	buffer := make([]byte, largestDatagram)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := conn.WriteTo(buffer[:n], from); err != nil {
			return err
		}
	}
}

func send(_ context.Context, args []string) error {
	if len(args) != 3 || args[0] != "tcp" && args[0] != "udp" {
		return wrongUsage("send")
	}
	conn, err := net.DialTimeout(args[0], args[1], patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, args[2]); err != nil {
		return err
	}
	reply := make([]byte, largestDatagram)
	n, err := conn.Read(reply)
	if err != nil {
		return err
	}
	fmt.Println(string(reply[:n]))
	return nil
}
