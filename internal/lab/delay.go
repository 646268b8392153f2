package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
)

// Not every kernel has a queue that delays packets (sch_netem). So a process does it: while a machine's packets are delayed,
// the outer end of its cable is in no bridge, and a relay carries the frames between it and a second cable that is.
//
//	s1's eth0 ══ klab-s1   relay   klabr-s1 ══ klabb-s1 ── kontiki-lab (bridge)

// relayEnds are the names of the second cable's ends: the relay's and the bridge's.
func (h *Host) relayEnds() (relay, bridge string) { return "klabr-" + h.Name, "klabb-" + h.Name }

// delayPackets puts a relay between the machine and the bridge, with 0 a plain cable. It takes the place of an earlier one.
func (h *Host) delayPackets(d time.Duration) error {
	if err := errors.Join(h.Relay.kill(), h.plug(d == 0)); err != nil || d == 0 {
		h.Relay = process{}
		return err
	}
	relayEnd, _ := h.relayEnds()
	log, err := os.OpenFile(h.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(h.lab.Program, "lab", "relay", "--machine-end", h.outer(), "--bridge-end", relayEnd, "--delay", d.String())
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if h.Relay, err = startHelper(cmd, h.outer()); err != nil {
		return fmt.Errorf("lab: relay of %s: %w: %s", h.Name, err, lastWords(log.Name()))
	}
	return nil
}

// plug puts the machine's cable into the bridge, or takes it out and lays a second one into the bridge.
func (h *Host) plug(plain bool) error {
	relayEnd, bridgeEnd := h.relayEnds()
	if err := removeLink(relayEnd); err != nil { // with its other end
		return err
	}
	outer, err := netlink.LinkByName(h.outer())
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if plain {
		return errors.Join(netlink.LinkSetMaster(outer, bridge), netlink.LinkSetARPOn(outer))
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MasterIndex = bridgeEnd, bridge.Attrs().Index
	second := &netlink.Veth{LinkAttrs: attributes, PeerName: relayEnd}
	if err := netlink.LinkAdd(second); err != nil {
		return fmt.Errorf("lab: second link of %s: %w", h.Name, err)
	}
	peer, err := netlink.LinkByName(relayEnd)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	// Out of the bridge this machine's own stack gets the frames, too, and must not answer for the bridge.
	return errors.Join(netlink.LinkSetARPOff(outer), netlink.LinkSetARPOff(peer), netlink.LinkSetNoMaster(outer),
		netlink.LinkSetUp(second), netlink.LinkSetUp(peer))
}

// startHelper starts a process of the lab that has its place outside of all machines, and waits until it says that it is ready
// by a first line on its standard output.
func startHelper(cmd *exec.Cmd, mark string) (process, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return process{}, err
	}
	if err := cmd.Start(); err != nil {
		return process{}, err
	}
	first := make([]byte, len(readyLine))
	n, err := out.Read(first)
	if err != nil || strings.TrimSpace(string(first[:n])) != strings.TrimSpace(readyLine) {
		return process{}, errors.Join(errors.New("it has ended"), cmd.Process.Kill(), cmd.Wait())
	}
	go func() { _ = cmd.Wait() }() // reaped if it ends while this process runs; init does it later
	return process{PID: cmd.Process.Pid, Mark: mark}, nil
}

// readyLine is what a helper prints when it is at work.
const readyLine = "ready\n"
