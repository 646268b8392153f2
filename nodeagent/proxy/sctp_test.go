package proxy

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// sctpInit is a packet that opens an association (RFC 9260, section 3.3.2): what a kernel with SCTP would send.
func sctpInit(from, to uint16) []byte {
	p := make([]byte, 12+20)
	binary.BigEndian.PutUint16(p, from)
	binary.BigEndian.PutUint16(p[2:], to)
	p[12] = 1 // INIT
	binary.BigEndian.PutUint16(p[14:], 20)
	binary.BigEndian.PutUint32(p[16:], 1)     // initiate tag
	binary.BigEndian.PutUint32(p[20:], 65536) // window
	binary.BigEndian.PutUint16(p[24:], 1)     // streams
	binary.BigEndian.PutUint16(p[26:], 1)
	binary.LittleEndian.PutUint32(p[8:], checksum(p))
	return p
}

// checksum is that of RFC 9260, appendix A, over a packet whose own is left out.
func checksum(p []byte) uint32 {
	zeroed := append([]byte{}, p...)
	clear(zeroed[8:12])
	return crc32.Checksum(zeroed, crc32.MakeTable(crc32.Castagnoli))
}

// TestSCTP sends the first packet of an association to a Service, from sockets below SCTP: the test needs no SCTP sockets,
// which few kernels have, but connection tracking that knows the protocol.
func TestSCTP(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.service("sctp", corev1.ServiceSpec{ClusterIP: "10.96.0.20", Ports: []corev1.ServicePort{
		{Port: 132, Protocol: corev1.ProtocolSCTP, TargetPort: intstr.FromInt32(8080)},
	}}, map[string]bool{"pod2": true})
	listen := func(space string) (conn net.PacketConn) {
		var err error
		w.spaces[space].In(func() { conn, err = net.ListenPacket("ip4:132", pods[space]) })
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	client, server := listen("pod1"), listen("pod2")
	arrived := make(chan string, 1)
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			if n < 12 {
				continue
			}
			select {
			case arrived <- fmt.Sprint(from, " ", binary.BigEndian.Uint16(buffer[2:]), " ", binary.LittleEndian.Uint32(buffer[8:]) == checksum(buffer[:n])):
			default:
			}
		}
	}()
	deadline := time.Now().Add(time.Minute)
	for port := uint16(40000); ; port++ { // each a new association: rules may not be there yet
		_, err := client.WriteTo(sctpInit(port, 132), &net.IPAddr{IP: net.ParseIP("10.96.0.20")})
		require.NoError(t, err)
		select {
		case got := <-arrived:
			require.Equal(t, "10.244.0.11 8080 true", got)
			return
		case <-time.After(20 * time.Millisecond):
			require.True(t, time.Now().Before(deadline), "no packet has come: %s", w.rules())
		}
	}
}
